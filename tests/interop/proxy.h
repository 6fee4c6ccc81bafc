/*
 * A proxy in front of Redis, in a thread: it delays each direction and counts the bytes. It passes
 * on what it gets, in order, and knows nothing of what it means.
 */
#ifndef INTEROP_PROXY_H
#define INTEROP_PROXY_H

#include <stdatomic.h>
#include <stdint.h>

struct proxy {
  int port, server_port;
  int listener;
  int64_t delay_ns;                      /* for each direction */
  _Atomic int64_t to_server, to_clients; /* bytes, over all connections */
};

/* Starts a proxy to the server on server_port, which runs as long as the program does. */
void proxy_start(struct proxy *proxy, int server_port, int delay_ms);

#endif
