/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A proxy between clients and a redis-server that breaks things on demand. It runs in a process of
 * its own, takes requests and replies apart, and is told what to do through shared memory.
 */
#ifndef SUPPORT_PROXY_H
#define SUPPORT_PROXY_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum proxy_mode {
  PROXY_PASS,
  /* bytes are kept until the mode is PASS again, even if their sender has closed the connection */
  PROXY_HOLD,
  PROXY_DROP /* bytes are lost; the connection stays open */
};

/* How the test and the proxy talk. Requests are counted from 1, over all connections. */
struct proxy_control {
  /* What to do. Indices: 0 for none; the proxy sets them back to 0 when done. */
  /* this request does not reach the server: its connection is cut */
  atomic_int cut_before;
  /* the connection is cut when the server has answered this request, without the answer */
  atomic_int cut_after;
  /* the connection is cut at this request, which reaches the server strand_ms later */
  atomic_int strand;
  atomic_int strand_ms;
  /* how many of the next messages on channels are dropped */
  atomic_int drop_messages;
  /* enum proxy_mode */
  atomic_int to_server;
  atomic_int to_client;
  atomic_int delay_ms; /* added to each direction            */
  atomic_int refuse;   /* new connections are closed at once */
  atomic_int sever;    /* raised by 1: all connections are cut now */

  /* What was seen. */
  atomic_int severed; /* as sever, when that is done */
  atomic_int connections;
  atomic_int requests;
  atomic_int messages;
  _Atomic int64_t bytes_to_server, bytes_to_client; /* received for them */
  char names[1024][12];                             /* of the commands, by request */
};

struct proxy {
  pid_t pid;
  int port;
  struct proxy_control *control;
};

void proxy_start(struct proxy *proxy, int server_port);
void proxy_stop(struct proxy *proxy);

/* Cuts all connections, and waits until that is done. */
void proxy_sever(struct proxy *proxy);

#endif
