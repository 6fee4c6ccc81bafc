/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A module of Python's that has the library inside: open(PORT) makes a client, and turn() acquires
 * a lock, releases it, and returns the token. Threads may call turn() at the same time.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <fairlock/fairlock.h>
#include <fairlock/port_posix.h>

static unsigned char received[FAIRLOCK_RECEIVE_SIZE(64, 0)], sent[1024];
static const struct fairlock_config config = {.receive_buffer = received,
                                              .receive_size = sizeof received,
                                              .send_buffer = sent,
                                              .send_size = sizeof sent};
static struct port_posix server;
static struct fairlock_client client;
static char port_name[6];

/* turns that are being taken; another one that sees it fails */
static volatile int inside;

static PyObject *fail(int status)
{
  return PyErr_Format(PyExc_RuntimeError, "%s", fairlock_status_text(status));
}

static PyObject *open_client(PyObject *self, PyObject *arguments)
{
  (void)self;
  const char *name;
  if (!PyArg_ParseTuple(arguments, "s", &name)) return NULL;
  strncpy(port_name, name, sizeof port_name - 1);
  port_posix_tcp(&server, "127.0.0.1", port_name);
  int status = fairlock_client_init(&client, &config, &server.transport);
  return status == FAIRLOCK_OK ? Py_NewRef(Py_None) : fail(status);
}

static int take_turn(uint64_t *token)
{
  struct fairlock door;
  int status = fairlock_init(&door, &client, "door");
  if (status != FAIRLOCK_OK) return status;
  status = fairlock_acquire(&door, 30000, FAIRLOCK_RENEW);
  if (status == FAIRLOCK_OK) {
    bool alone = ++inside == 1;
    *token = fairlock_token(&door);
    inside--;
    status = fairlock_release(&door);
    if (!alone) status = FAIRLOCK_LOST;
  }
  fairlock_deinit(&door);
  return status;
}

static PyObject *turn(PyObject *self, PyObject *none)
{
  (void)self;
  (void)none;
  uint64_t token = 0;
  int status;
  Py_BEGIN_ALLOW_THREADS;
  status = take_turn(&token);
  Py_END_ALLOW_THREADS;
  return status == FAIRLOCK_OK ? PyLong_FromUnsignedLongLong(token) : fail(status);
}

static PyMethodDef functions[] = {
    {"open", open_client, METH_VARARGS, "Makes a client of the server at that port."},
    {"turn", turn, METH_NOARGS, "Takes a turn at the lock, and returns its token."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT, "doors", NULL, -1, functions, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit_doors(void)
{
  return PyModule_Create(&module);
}
