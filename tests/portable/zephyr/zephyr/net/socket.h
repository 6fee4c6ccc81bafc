/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The calls of Zephyr's sockets that port/zephyr makes, on the host's. TLS is none: a socket for it
 * is one without, and the options that it was given are kept, for a test to look at.
 */
#ifndef ZEPHYR_NET_SOCKET_H
#define ZEPHYR_NET_SOCKET_H

#include <arpa/inet.h>
#include <sys/socket.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

#define ZSOCK_POLLIN       POLLIN
#define ZSOCK_POLLOUT      POLLOUT
#define ZSOCK_POLLERR      POLLERR
#define ZSOCK_POLLHUP      POLLHUP
#define ZSOCK_POLLNVAL     POLLNVAL
#define ZSOCK_MSG_DONTWAIT (MSG_DONTWAIT | MSG_NOSIGNAL)

#define IPPROTO_TLS_1_2  258
#define SOL_TLS          282
#define TLS_SEC_TAG_LIST 1
#define TLS_HOSTNAME     2

#define zsock_pollfd       pollfd
#define zsock_addrinfo     addrinfo
#define zsock_getaddrinfo  getaddrinfo
#define zsock_freeaddrinfo freeaddrinfo
#define zsock_inet_pton    inet_pton
#define zsock_connect      connect
#define zsock_getsockopt   getsockopt
#define zsock_poll         poll
#define zsock_send         send
#define zsock_recv         recv
#define zsock_close        close
#define zsock_fcntl        fcntl

/* What the last socket for TLS was given, one for each option; size 0: nothing. */
struct tls_stand_in {
  socklen_t size[3];
  char value[3][64];
};
extern struct tls_stand_in tls_stand_in;

static inline int zsock_socket(int family, int type, int protocol)
{
  if (protocol == IPPROTO_TLS_1_2) memset(&tls_stand_in, 0, sizeof tls_stand_in);
  return socket(family, type, protocol == IPPROTO_TLS_1_2 ? 0 : protocol);
}

static inline int zsock_setsockopt(int socket, int level, int option, const void *value,
                                   socklen_t size)
{
  if (level != SOL_TLS) return setsockopt(socket, level, option, value, size);
  if (size > sizeof tls_stand_in.value[0]) return -1;
  tls_stand_in.size[option] = size;
  memcpy(tls_stand_in.value[option], value, size);
  return 0;
}

#endif
