/* SPDX-License-Identifier: Apache-2.0 */
/* Faults below TLS; see faults.h. */
#include "faults.h"

#include <stdio.h>
#include <string.h>

#define HEADER 5

static size_t least(size_t a, size_t b)
{
  return a < b ? a : b;
}

/* How much of size may pass, when the connection breaks after `cut` bytes. 0: it is broken. */
static size_t passes(const struct faults *faults, size_t size, size_t cut, size_t so_far)
{
  if (faults->piece != 0) size = least(size, faults->piece);
  return cut == 0 ? size : least(size, cut - least(cut, so_far));
}

/* Follows the headers of records; byte 3 and 4 are the length. */
static void count_records(struct faults *faults, const unsigned char *data, size_t size)
{
  static _Thread_local unsigned char header[HEADER];
  for (size_t i = 0; i < size; i++) {
    size_t at = faults->received + i;
    size_t last = faults->records < 32 ? faults->record[faults->records] : SIZE_MAX;
    if (at < last) continue;
    header[at - last] = data[i];
    if (at - last < HEADER - 1) continue;
    faults->records++;
    if (faults->records < 32)
      faults->record[faults->records] = last + HEADER + ((size_t)header[3] << 8 | header[4]);
  }
}

static int faults_connect(void *context, uint32_t timeout_ms)
{
  struct faults *faults = context;
  int status = faults->socket.transport.connect(&faults->socket, timeout_ms);
  if (status == PORT_OK) {
    faults->received = faults->sent = faults->records = 0;
    faults->record[0] = 0;
  }
  return status;
}

static int faults_send(void *context, const void *data, size_t size)
{
  struct faults *faults = context;
  size = passes(faults, size, faults->cut_sent, faults->sent);
  if (size == 0) return PORT_CLOSED;
  if (atomic_load(&faults->blocked) > 0) {
    (void)atomic_fetch_sub(&faults->blocked, 1);
    return PORT_WOULD_BLOCK;
  }
  int sent = faults->socket.transport.send(&faults->socket, data, size);
  if (sent > 0) faults->sent += (size_t)sent;
  return sent;
}

static int faults_recv(void *context, void *data, size_t size, uint32_t timeout_ms)
{
  struct faults *faults = context;
  size = passes(faults, size, faults->cut_received, faults->received);
  if (size == 0) return PORT_CLOSED;
  faults->wait_ms = timeout_ms;
  int got = faults->socket.transport.recv(&faults->socket, data, size, timeout_ms);
  if (got > 0) {
    if (faults->changed >= faults->received && faults->changed < faults->received + (size_t)got &&
        faults->changed != 0)
      ((unsigned char *)data)[faults->changed - faults->received] ^= 1;
    count_records(faults, data, (size_t)got);
    faults->received += (size_t)got;
  }
  return got;
}

static void faults_close(void *context)
{
  struct faults *faults = context;
  faults->socket.transport.close(&faults->socket);
}

void faults_init(struct faults *faults, int port)
{
  memset(faults, 0, sizeof *faults);
  (void)snprintf(faults->service, sizeof faults->service, "%d", port);
  port_posix_tcp(&faults->socket, "127.0.0.1", faults->service);
  faults->transport.connect = faults_connect;
  faults->transport.send = faults_send;
  faults->transport.recv = faults_recv;
  faults->transport.close = faults_close;
  faults->transport.context = faults;
}
