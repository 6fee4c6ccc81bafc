/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A transport over Zephyr's sockets, by its own names (zsock_...), so without CONFIG_POSIX_API: IPv4,
 * IPv6, host names, and TLS by Zephyr's secure sockets. Several threads may share the client. The
 * server must be another machine: there is no check against a socket that is connected to itself.
 * The transport has one server: it cannot follow Sentinels or a cluster.
 *
 *     static struct port_zephyr server;
 *
 *     port_zephyr_tcp(&server, "192.0.2.7", "6379");
 *     then give &server.transport to the client
 */
#ifndef PORT_ZEPHYR_H
#define PORT_ZEPHYR_H

#include "port.h"

#include <zephyr/net/tls_credentials.h>
#include <zephyr/sys/atomic.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A transport over a socket of Zephyr's. */
struct port_zephyr {
  /* for the client; all the rest is private */
  struct port_transport transport;

  const char *host;
  const char *service;

  /* TLS; NULL: without */
  const sec_tag_t *tags;
  size_t tag_count;
  const char *name;

  /* which of the host's addresses comes next */
  unsigned turn;

  /* where it connects to; not by its type, whose header would bring POSIX's names to programs */
  uint32_t place[9];

  /* the most that is given to the stack at once, as it lacked memory for more, in bytes; 0: all */
  size_t piece;

  /* the size of a send() that TLS has to see again; 0: none */
  size_t again;

  /* why the last send() would have blocked, if it would */
  atomic_t send_lacks;

  /* see port_zephyr_error() */
  atomic_t error;

  bool connected;

  /* -1: none */
  int socket;
};

/*
 * Makes zephyr ready to connect to host, an address or a name, at the port `service`, a number as a
 * string. Both strings stay the caller's. Opens nothing yet. A name needs CONFIG_DNS_RESOLVER, and
 * room for calloc(); resolving it blocks, for twice CONFIG_NET_SOCKETS_DNS_TIMEOUT at most. Its
 * addresses are tried in turn, one with each attempt to connect.
 */
void port_zephyr_tcp(struct port_zephyr *zephyr, const char *host, const char *service);

/*
 * TLS for it: call it after port_zephyr_tcp(). tags: the count (> 0) tags under which the program
 * has put its credentials by tls_credential_add(): the CA, and, if the server asks for them,
 * certificate and key. name: the name that the server's certificate must have; NULL: host. Both stay
 * the caller's. Needs CONFIG_NET_SOCKETS_SOCKOPT_TLS.
 *
 * Zephyr's connect() does not return before the handshake has ended, so the transport's does not
 * either: it may take seconds, in which the client serves no other task. Up to Zephyr 3.7.0 it has
 * no limit: a server that accepts the connection and then says nothing blocks the client for as
 * long. port/mbedtls and port/bearssl around this transport have one. A certificate that is not
 * trusted is not told from another failure: it counts as a server that cannot be reached.
 */
void port_zephyr_tls(struct port_zephyr *zephyr, const sec_tag_t *tags, size_t count,
                     const char *name);

/*
 * Why the last attempt to connect failed: a number of errno.h, EHOSTUNREACH for a name that was not
 * resolved. 0: it has not. May be called from any thread.
 */
int port_zephyr_error(const struct port_zephyr *zephyr);

#ifdef __cplusplus
}
#endif

#endif
