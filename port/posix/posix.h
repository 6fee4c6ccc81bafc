/*
 * The transport of a POSIX system: a stream socket over IPv4, IPv6 or a Unix path.
 *
 *     static struct port_posix server;
 *     port_posix_tcp(&server, "192.0.2.7", "6379");
 *     ... give &server.transport to the client ...
 *
 * The memory is the caller's. It must stay valid and in place (it is its transport's context: do
 * not copy it), and so must the strings, as long as the client uses the transport. Nothing is
 * opened before the client connects; close() of the transport, which fairlock_client_deinit()
 * calls, gives everything back. The process may call exec() (sockets are close-on-exec) and needs
 * no handler for SIGPIPE (no function raises it).
 */
#ifndef PORT_POSIX_H
#define PORT_POSIX_H

#include "port.h"

#ifdef __cplusplus
extern "C" {
#endif

struct addrinfo;

/* A transport over a socket. */
struct port_posix {
  /* for the client; all the rest is private */
  struct port_transport transport;

  /* or the path of a Unix socket */
  const char *host;

  /* port or service name; NULL: host is a path */
  const char *service;

  /* "host:port,host:port"; NULL: host and service are the only address */
  const char *seeds;

  /* the one in use; NULL: none yet */
  const char *seed;

  /* where a redirection leads; NULL: nowhere */
  const char *target;

  /* what host resolved to; NULL unless connecting */
  struct addrinfo *addresses;

  /* the one being tried */
  struct addrinfo *address;

  /* when that attempt began */
  uint32_t attempt_began;

  /* addresses after it */
  unsigned untried;

  /* addresses to pass over when connecting next begins */
  unsigned skip;

  /* -1: none */
  int socket;

  /* SO_RCVTIMEO as it is set; 0: not set */
  uint32_t receive_limit_ms;

  bool connected;

  /* the last send() would have blocked. Shared by two tasks: touched only atomically */
  unsigned char send_blocked;
};

/*
 * A server at host (an IPv4 or IPv6 address without brackets, or a name) and service (a port
 * number, or a name such as "redis"). All addresses of a name are tried in order. One that does not
 * answer within a second gives way to the next, and the last is tried for as long as the client
 * allows. Resolving a name may block: see port.h.
 */
void port_posix_tcp(struct port_posix *posix, const char *host, const char *service);

/*
 * Several servers, Sentinels or nodes of a cluster, which a client that follows servers (see
 * fairlock_follow()) tries one after the other: "host:port", separated by commas, an IPv6 address
 * in brackets. The text stays the caller's. Returns false if an entry is not of that form, or its
 * host is longer than 255 characters.
 */
bool port_posix_seeds(struct port_posix *posix, const char *seeds);

/*
 * A server at a Unix socket. Returns false if path does not fit the system's limit; then connecting
 * to it fails, too.
 */
bool port_posix_unix(struct port_posix *posix, const char *path);

/* Room for the name of a host, its end mark included. */
#define PORT_POSIX_HOST_SIZE 256

/*
 * Writes the host to which connections go now, a name or an address without brackets, for a
 * transport around this one that checks who answers. "" for a Unix socket. context: that of the
 * transport.
 */
void port_posix_host(const void *context, char host[PORT_POSIX_HOST_SIZE]);

/*
 * The socket, for an event loop of your own to watch (fairlock_wants() says for what); -1: none,
 * there is nothing to watch. While connecting, wait until it is writable. Ask again after each call
 * of the client: it changes with each reconnect, and while the addresses of a host are tried. A new
 * socket may have the number of the one before: the loop must forget a socket when it is closed, as
 * epoll does by itself, or watch it for one event at a time.
 */
int port_posix_fd(const struct port_posix *posix);

#ifdef __cplusplus
}
#endif

#endif
