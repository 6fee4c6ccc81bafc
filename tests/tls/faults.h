/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A transport between TLS and the socket that counts records, and cuts, delays and blocks as it is
 * told. It uses one thread, so each fault comes at the same byte every time.
 */
#ifndef TLS_FAULTS_H
#define TLS_FAULTS_H

#include <stdatomic.h>
#include <stddef.h>

#include "port_posix.h"

struct faults {
  struct port_transport transport;
  struct port_posix socket;
  char service[8];

  /* the connection breaks after this many bytes were received, or sent; 0: never */
  size_t cut_received, cut_sent;

  /* no more than this many bytes at a time, each way; 0: as many as there are */
  size_t piece;

  /* this byte of what is received comes changed; 0: none */
  size_t changed;

  /* this many calls of send() take nothing */
  atomic_int blocked;

  /* how long the last recv() was to wait */
  uint32_t wait_ms;

  /* bytes of this connection */
  size_t received, sent;

  /* where records begin in what was received: the first few */
  size_t records;
  size_t record[32];
};

/* Wraps a socket to that port of this host. */
void faults_init(struct faults *faults, int port);

#endif
