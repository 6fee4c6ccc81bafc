/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The client for other languages; see service.h.
 *
 * A thread of each client sits in fairlock_run(). Operations are begun by fairlock_start_...(), so
 * what happens comes in callbacks: they only note it, and put the lock into a queue. The library
 * calls them with its own mutex locked, and they lock the gate inside that. So whoever has the gate
 * must not call the library.
 *
 * A lock that is freed goes through fairlock_abandon(), whatever it is doing. What is left of it
 * lives in the same memory, which the library gives back when the server has been told.
 */
#define _DEFAULT_SOURCE 1 /* what -std=c11 hides */

#include "service.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fairlock_abandon.h"
#include "fairlock_follow.h"
#include "fairlock_keep.h"
#include "fairlock_operate.h"
#include "port_openssl.h"
#include "port_posix.h"

#define NAME_MAX_DEFAULT 512U
#define SEND_SIZE        2048U
#define MOVING_LEASE_MS  60000U /* a fail-over takes two thirds of it at most */

/* Room for a name, an id and, beside them, what somebody who asks says. */
#define RECEIVE_SIZE(name_max) (FAIRLOCK_RECEIVE_SIZE(name_max, FAIRLOCK_ID_MAX) + FLS_WORDS_SIZE)

_Static_assert((int)FLS_PENDING == (int)FAIRLOCK_PENDING && FLS_FOREVER == FAIRLOCK_FOREVER &&
                   FLS_RENEW == FAIRLOCK_RENEW && FLS_ID_SIZE >= FAIRLOCK_HOLDER_ID_SIZE,
               "service.h has the numbers of fairlock.h");

/* A place in a list, which is a ring, or the list itself. */
struct link {
  struct link *next, *previous;
};

struct fls_lock {
  struct fairlock_shared own; /* begins with the handle, by which callbacks know the lock */
  struct fls_client *client;

  /* the gate guards what follows */
  struct link all;        /* in the client's locks, until it is freed */
  struct link queued;     /* in its events, while event.what is not 0 */
  struct fls_event event; /* what was not read yet, and the user */
  uint64_t token;         /* of the last hold; 0: none yet */
  bool by_event;          /* the operation was begun for an event */
  bool freed;             /* it has no events any more */

  struct fairlock_rest rest;
  char name[];
};

struct fls_client {
  struct fairlock_client client;
  struct fairlock_config config;
  struct fairlock_topology topology;
  struct fairlock_keeping keeping;
  struct port_posix_server server;
  struct port_openssl tls;
  struct fls_options options; /* the strings are copies */
  char *strings;              /* these */
  void *received;
  unsigned char sent[SEND_SIZE];
  bool ready; /* the library's client is initialised */
  pthread_t thread;

  struct port_mutex gate; /* guards what follows; who has it never calls the library */
  struct link locks;      /* all that are not freed */
  struct link events;     /* locks with an event */
  int out[2];       /* a pipe, with a byte in it while there is an event, or after fls_stop() */
  bool stopped;     /* fls_next() has no more events */
  unsigned readers; /* threads inside fls_next() */
  unsigned leaving; /* locks that were freed, whose memory is in use still */
  struct port_event quiet; /* set when one of these two becomes 0 */
};

static void append(struct link *list, struct link *link)
{
  link->next = list;
  link->previous = list->previous;
  link->previous->next = link;
  list->previous = link;
}

static void take_out(struct link *link)
{
  link->next->previous = link->previous;
  link->previous->next = link->next;
}

static bool empty(const struct link *list)
{
  return list->next == list;
}

/* Has to be asked before the gate is locked, which may block for ever in a forked process. */
static bool forked(const struct fls_client *client)
{
  return port_mutex_forked(&client->gate);
}

/* Events. These are called with the gate locked. */

static void fill_pipe(struct fls_client *client)
{
  ssize_t written = write(client->out[1], "", 1);
  (void)written; /* it was empty, so there is room */
}

static void empty_pipe(struct fls_client *client)
{
  char byte;
  ssize_t got = read(client->out[0], &byte, 1);
  (void)got;
}

static void queue_event(struct fls_lock *lock, uint32_t what)
{
  struct fls_client *client = lock->client;
  if (client->stopped) return;
  if (empty(&client->events)) fill_pipe(client);
  if (lock->event.what == 0) append(&client->events, &lock->queued);
  lock->event.what |= what;
}

static void drop_event(struct fls_lock *lock)
{
  struct fls_client *client = lock->client;
  if (lock->event.what == 0) return;
  take_out(&lock->queued);
  lock->event = (struct fls_event){.user = lock->event.user};
  if (empty(&client->events) && !client->stopped) empty_pipe(client);
}

/* Callbacks, with the library's mutex locked. */

static struct fls_lock *lock_of(struct fairlock *handle)
{
  return (struct fls_lock *)(void *)handle;
}

static void on_ended(struct fairlock *handle, const struct fairlock_end *end, void *context)
{
  struct fls_client *client = context;
  struct fls_lock *lock = lock_of(handle);
  port_mutex_lock(&client->gate);
  if (end->token != 0) lock->token = end->token;
  if (lock->by_event && !lock->freed) {
    lock->event.status = end->status;
    lock->event.token = end->status == FAIRLOCK_OK ? end->token : 0;
    queue_event(lock, FLS_ENDED);
  }
  port_mutex_unlock(&client->gate);
}

static void on_lost(struct fairlock *handle, const struct fairlock_loss *loss, void *context)
{
  struct fls_client *client = context;
  struct fls_lock *lock = lock_of(handle);
  port_mutex_lock(&client->gate);
  lock->token = loss->token;
  if (!lock->freed) {
    lock->event.lost = loss->token;
    lock->event.reason = (int32_t)loss->reason;
    queue_event(lock, FLS_LOST);
  }
  port_mutex_unlock(&client->gate);
}

static void on_asked(struct fairlock *handle, const struct fairlock_asking *asking, void *context)
{
  struct fls_client *client = context;
  struct fls_lock *lock = lock_of(handle);
  size_t size = asking->size < FLS_WORDS_SIZE ? asking->size : FLS_WORDS_SIZE - 1;
  port_mutex_lock(&client->gate);
  if (!lock->freed) {
    lock->event.asked = asking->token;
    if (size > 0) memcpy(lock->event.words, asking->words, size);
    lock->event.words[size] = 0;
    queue_event(lock, FLS_ASKED);
  }
  port_mutex_unlock(&client->gate);
}

static void on_freed(struct fairlock_rest *rest, void *context)
{
  struct fls_lock *lock = context;
  struct fls_client *client = lock->client;
  (void)rest;
  port_mutex_lock(&client->gate);
  if (--client->leaving == 0) port_event_set(&client->quiet);
  port_mutex_unlock(&client->gate);
  free(lock);
}

/* The client's life */

static const char *read_url(struct fls_client *client)
{
  const struct fls_options *options = &client->options;
  const struct port_openssl_config trust = {.ca_file = options->ca_file,
                                            .certificate = options->certificate,
                                            .key = options->key,
                                            .name = options->tls_name};
  bool trusts = trust.ca_file || trust.certificate || trust.key || trust.name;
  const char *wrong = port_openssl_url(&client->tls, &client->server, options->url, &trust);
  if (wrong != NULL || client->server.tls || !trusts) return wrong;
  return "it asks for no TLS, but there is a ca_file, certificate, key or tls_name";
}

/* Copies the options of a caller who may know fewer of them. Returns what failed, or NULL. */
static const char *copy_options(struct fls_client *client, const struct fls_options *given)
{
  struct fls_options *options = &client->options;
  const char **strings[] = {&options->url,
                            &options->client_id,
                            &options->client_name,
                            &options->user,
                            &options->password,
                            &options->sentinel_user,
                            &options->sentinel_password,
                            &options->ca_file,
                            &options->certificate,
                            &options->key,
                            &options->tls_name};
  size_t count = sizeof strings / sizeof *strings;
  size_t size = 1;
  memcpy(options, given, given->size < sizeof *options ? given->size : sizeof *options);
  for (size_t i = 0; i < count; i++)
    size += *strings[i] != NULL ? strlen(*strings[i]) + 1 : 0;
  char *copy = client->strings = malloc(size);
  if (copy == NULL) return "there is no memory";
  for (size_t i = 0; i < count; i++) {
    if (*strings[i] == NULL) continue;
    size = strlen(*strings[i]) + 1;
    *strings[i] = memcpy(copy, *strings[i], size);
    copy += size;
  }
  return NULL;
}

/* The rest returns a status; *of is what it is about. */
static int set_up(struct fls_client *client, const char **of)
{
  const struct fls_options *options = &client->options;
  struct port_posix_server *server = &client->server;
  uint32_t name_max = options->name_max != 0 ? options->name_max : NAME_MAX_DEFAULT;
  *of = "name_max";
  if (name_max > FAIRLOCK_NAME_MAX) return FAIRLOCK_TOO_LONG;
  client->received = malloc(RECEIVE_SIZE(name_max));
  if (client->received == NULL) return FAIRLOCK_OOM;
  client->config = (struct fairlock_config){
      .receive_buffer = client->received,
      .receive_size = RECEIVE_SIZE(name_max),
      .send_buffer = client->sent,
      .send_size = sizeof client->sent,
      .client_id = options->client_id,
      .client_name = options->client_name,
      .user = options->user != NULL ? options->user : server->user,
      .password = options->password != NULL ? options->password : server->password,
      .database = server->database,
      .lease_ms = options->lease_ms == 0 && server->moves ? MOVING_LEASE_MS : options->lease_ms,
      .waiter_ms = options->waiter_ms,
      .claim_ms = options->claim_ms,
      .response_ms = options->response_ms,
      .connect_ms = options->connect_ms,
      .offline_ms = options->offline_ms,
      .lost = on_lost,
      .lost_context = client,
      .ended = on_ended,
      .ended_context = client,
      .asked = options->listen != 0 ? on_asked : NULL,
      .asked_context = client};
  *of = "an option";
  int status = fairlock_client_init(&client->client, &client->config, server->transport);
  client->ready = status == FAIRLOCK_OK;
  if (status == FAIRLOCK_OK && options->keep_ms != 0) {
    *of = "keep_ms";
    client->keeping.keep_ms = options->keep_ms;
    status = fairlock_use_keeping(&client->client, &client->keeping);
  }
  if (status == FAIRLOCK_OK && (server->moves || options->replicas > 0)) {
    *of = "replicas";
    client->topology = (struct fairlock_topology){.address = server->address,
                                                  .address_size = sizeof server->address,
                                                  .service = server->service,
                                                  .cluster = server->cluster,
                                                  .sentinel_user = options->sentinel_user,
                                                  .sentinel_password = options->sentinel_password,
                                                  .replicas = options->replicas};
    status = fairlock_follow(&client->client, &client->topology);
  }
  return status;
}

static bool make_pipe(int ends[2])
{
  if (pipe(ends) != 0) {
    ends[0] = ends[1] = -1;
    return false;
  }
  for (int i = 0; i < 2; i++) {
    (void)fcntl(ends[i], F_SETFD, FD_CLOEXEC);
    (void)fcntl(ends[i], F_SETFL, O_NONBLOCK);
  }
  return true;
}

static void *serve(void *client)
{
  (void)fairlock_run(client);
  return NULL;
}

/* Signals are for the program's threads. */
static bool start_thread(struct fls_client *client)
{
  sigset_t all, before;
  (void)sigfillset(&all);
  (void)pthread_sigmask(SIG_SETMASK, &all, &before);
  int failure = pthread_create(&client->thread, NULL, serve, &client->client);
  (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
  return failure == 0;
}

/* Closes what a process has open. May be called again. */
static void close_all(struct fls_client *client)
{
  if (client->ready) fairlock_client_deinit(&client->client);
  client->ready = false;
  port_openssl_deinit(&client->tls);
  memset(&client->tls, 0, sizeof client->tls);
  for (int i = 0; i < 2; i++) {
    if (client->out[i] >= 0) (void)close(client->out[i]);
    client->out[i] = -1;
  }
}

static void destroy(struct fls_client *client)
{
  close_all(client); /* which calls on_freed() */
  port_event_destroy(&client->quiet);
  port_mutex_destroy(&client->gate);
  free(client->received);
  free(client->strings);
  free(client);
}

/* Returns false, and says why in error, if the client cannot be used. */
static bool prepare(struct fls_client *client, const struct fls_options *given, char *error)
{
  const char *of = "";
  const char *wrong = copy_options(client, given);
  if (wrong == NULL) {
    wrong = read_url(client);
    of = "the URL cannot be used: ";
  }
  if (wrong == NULL) {
    int status = set_up(client, &of);
    if (status == FAIRLOCK_OK) return true;
    (void)snprintf(error, FLS_ERROR_SIZE, "%s: %s", of, fairlock_status_text(status));
  } else {
    (void)snprintf(error, FLS_ERROR_SIZE, "%s%s", of, wrong);
  }
  return false;
}

struct fls_client *fls_open(const struct fls_options *options, char error[FLS_ERROR_SIZE])
{
  struct fls_client *client = calloc(1, sizeof *client);
  (void)snprintf(error, FLS_ERROR_SIZE, "there is no memory");
  if (client == NULL) return NULL;
  port_mutex_init(&client->gate);
  port_event_init(&client->quiet);
  client->locks = (struct link){&client->locks, &client->locks};
  client->events = (struct link){&client->events, &client->events};
  bool piped = make_pipe(client->out);
  if (prepare(client, options, error)) {
    (void)snprintf(error, FLS_ERROR_SIZE, "the system has no descriptors or no thread left");
    if (piped && start_thread(client)) {
      error[0] = 0;
      return client;
    }
  }
  destroy(client);
  return NULL;
}

/* Waits until no thread reads events, and for up to ms until the server has been told. */
static void settle(struct fls_client *client, uint32_t ms)
{
  uint32_t began = port_clock_ms();
  uint32_t left = ms;
  port_mutex_lock(&client->gate);
  while (client->readers > 0 || (client->leaving > 0 && left > 0)) {
    bool soon = client->leaving > 0 && left > 0 && left < PORT_WAIT_MAX_MS;
    port_event_wait(&client->quiet, &client->gate, soon ? left : PORT_WAIT_MAX_MS);
    uint32_t past = port_clock_ms() - began;
    left = past < ms ? ms - past : 0;
  }
  port_mutex_unlock(&client->gate);
}

static struct fls_lock *any_lock(struct fls_client *client)
{
  port_mutex_lock(&client->gate);
  struct link *first = empty(&client->locks) ? NULL : client->locks.next;
  port_mutex_unlock(&client->gate);
  if (first == NULL) return NULL;
  return (struct fls_lock *)(void *)((char *)first - offsetof(struct fls_lock, all));
}

void fls_close(struct fls_client *client, uint32_t ms)
{
  struct fls_lock *lock;
  if (forked(client)) {
    fls_forked(client);
    return;
  }
  fls_stop(client);
  while ((lock = any_lock(client)) != NULL)
    fls_free(lock);
  settle(client, ms);
  fairlock_stop(&client->client);
  (void)pthread_join(client->thread, NULL);
  destroy(client);
}

void fls_forked(struct fls_client *client)
{
  if (forked(client)) close_all(client);
}

int fls_connect(struct fls_client *client)
{
  return fairlock_connect(&client->client);
}

void fls_error(struct fls_client *client, char text[FLS_ERROR_SIZE])
{
  text[0] = 0;
  if (forked(client)) return;
  int status = fairlock_server_status(&client->client);
  if (status == FAIRLOCK_UNREACHABLE || status == FAIRLOCK_UNTRUSTED) {
    if (client->server.tls) port_openssl_error(&client->tls, text, FLS_ERROR_SIZE);
    if (text[0] == 0) port_posix_error(&client->server.socket, text, FLS_ERROR_SIZE);
  } else {
    fairlock_error(&client->client, text, FLS_ERROR_SIZE);
  }
}

/* Locks */

struct fls_lock *fls_new(struct fls_client *client, const void *name, size_t size, int limit,
                         uintptr_t user, int *status)
{
  bool fits = size <= FAIRLOCK_NAME_MAX;
  struct fls_lock *lock = fits ? calloc(1, sizeof *lock + size) : NULL;
  *status = fits ? FAIRLOCK_OOM : FAIRLOCK_TOO_LONG;
  if (lock == NULL) return NULL;
  if (size > 0) memcpy(lock->name, name, size);
  *status = limit < 0 ? fairlock_init_bytes(&lock->own.handle, &client->client, lock->name, size)
                      : fairlock_init_shared_bytes(&lock->own, &client->client, lock->name, size,
                                                   (uint32_t)limit);
  if (*status != FAIRLOCK_OK) {
    free(lock);
    return NULL;
  }
  lock->client = client;
  lock->event.user = user;
  lock->rest.freed = on_freed;
  lock->rest.context = lock;
  port_mutex_lock(&client->gate);
  append(&client->locks, &lock->all);
  port_mutex_unlock(&client->gate);
  return lock;
}

void fls_free(struct fls_lock *lock)
{
  struct fls_client *client = lock->client;
  if (forked(client)) return;
  port_mutex_lock(&client->gate);
  drop_event(lock);
  lock->freed = true;
  take_out(&lock->all);
  client->leaving++;
  port_mutex_unlock(&client->gate);
  /* if a thread waits with it, which is a mistake, nothing is done, and fls_close() frees nothing */
  (void)fairlock_abandon(&lock->own.handle, &lock->rest);
}

/* The token of a hold whose beginning no callback has told. */
static int note_token(struct fls_lock *lock, int status)
{
  uint64_t token = status == FAIRLOCK_OK ? fairlock_token(&lock->own.handle) : 0;
  if (token == 0) return status;
  port_mutex_lock(&lock->client->gate);
  lock->token = token;
  port_mutex_unlock(&lock->client->gate);
  return status;
}

/* Before an operation, by whichever thread. Returns FAIRLOCK_OK, or why it cannot begin. */
static int begin(struct fls_lock *lock, int event)
{
  int status = fairlock_adopt(&lock->own.handle);
  if (status == FAIRLOCK_IN_PROGRESS || status == FAIRLOCK_FORKED) return status;
  port_mutex_lock(&lock->client->gate);
  lock->by_event = event != 0;
  port_mutex_unlock(&lock->client->gate);
  return FAIRLOCK_OK;
}

int fls_acquire(struct fls_lock *lock, uint32_t wait_ms, uint32_t lease_ms, int event)
{
  int status = begin(lock, event);
  if (status != FAIRLOCK_OK) return status;
  return note_token(lock, fairlock_start_acquire(&lock->own.handle, wait_ms, lease_ms));
}

int fls_release(struct fls_lock *lock, int event)
{
  int status = begin(lock, event);
  return status == FAIRLOCK_OK ? fairlock_start_release(&lock->own.handle) : status;
}

int fls_cancel(struct fls_lock *lock)
{
  return fairlock_cancel(&lock->own.handle);
}

int fls_wait(struct fls_lock *lock, uint32_t ms)
{
  return note_token(lock, fairlock_wait(&lock->own.handle, ms));
}

uint64_t fls_token(struct fls_lock *lock)
{
  if (forked(lock->client)) return 0;
  port_mutex_lock(&lock->client->gate);
  uint64_t token = lock->token;
  port_mutex_unlock(&lock->client->gate);
  return token;
}

uint64_t fls_held(struct fls_lock *lock)
{
  return fairlock_token(&lock->own.handle);
}

uint32_t fls_remaining_ms(struct fls_lock *lock)
{
  return fairlock_remaining_ms(&lock->own.handle);
}

uint32_t fls_hold_count(struct fls_lock *lock)
{
  return fairlock_hold_count(&lock->own.handle);
}

void fls_id(struct fls_lock *lock, char text[FLS_ID_SIZE])
{
  fairlock_id(&lock->own.handle, text, FLS_ID_SIZE);
}

/* Reading events */

int fls_fd(const struct fls_client *client)
{
  return client->out[0];
}

/* Takes the first event, with the gate locked. */
static bool take_event(struct fls_client *client, struct fls_event *event)
{
  size_t size = event->size;
  if (client->stopped || empty(&client->events)) return false;
  struct link *first = client->events.next;
  struct fls_lock *lock =
      (struct fls_lock *)(void *)((char *)first - offsetof(struct fls_lock, queued));
  memset(event, 0, size);
  memcpy(event, &lock->event, size < sizeof *event ? size : sizeof *event);
  event->size = size;
  drop_event(lock);
  return true;
}

int fls_next(struct fls_client *client, uint32_t ms, struct fls_event *event)
{
  struct pollfd out = {.fd = client->out[0], .events = POLLIN};
  uint32_t began = ms > 0 ? port_clock_ms() : 0;
  uint32_t left = ms;
  bool taken;
  if (forked(client)) return 0;
  port_mutex_lock(&client->gate);
  client->readers++;
  while (!(taken = take_event(client, event)) && !client->stopped && left > 0) {
    port_mutex_unlock(&client->gate);
    int wait = ms == FLS_FOREVER ? -1 : left < INT32_MAX ? (int)left : INT32_MAX;
    bool ready = poll(&out, 1, wait) >= 0;
    uint32_t past = port_clock_ms() - began;
    left = ready && past < ms ? ms - past : 0; /* a signal ends it */
    port_mutex_lock(&client->gate);
  }
  if (--client->readers == 0) port_event_set(&client->quiet);
  port_mutex_unlock(&client->gate);
  return taken;
}

void fls_stop(struct fls_client *client)
{
  if (forked(client)) return;
  port_mutex_lock(&client->gate);
  if (!client->stopped && empty(&client->events)) fill_pipe(client);
  client->stopped = true;
  port_mutex_unlock(&client->gate);
}

/* Words */

const char *fls_status_text(int status)
{
  return fairlock_status_text(status);
}

const char *fls_status_name(int status)
{
  return fairlock_status_name(status);
}

const char *fls_version(void)
{
  return fairlock_version();
}
