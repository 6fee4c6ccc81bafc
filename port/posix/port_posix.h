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
 * calls, frees everything. The process may call exec() (sockets are close-on-exec) and needs
 * no handler for SIGPIPE (no function raises it). A thread that is cancelled inside a function
 * finishes it first; asynchronous cancellation is not allowed inside. A forked process may only
 * close() it; the connection stays the parent's.
 */
#ifndef PORT_POSIX_H
#define PORT_POSIX_H

#include "port.h"

#ifdef __cplusplus
extern "C" {
#endif

struct addrinfo;
struct port_posix_lookup;

/* A transport over a socket. */
struct port_posix {
  /* for the client; all the rest is private */
  struct port_transport transport;

  /* name or address, or the path of a Unix socket */
  const char *host;

  /* port or service name; NULL: host is a path */
  const char *service;

  /* "host:port,host:port"; NULL: host and service are the only address */
  const char *seeds;

  /* the seed in use; NULL: none yet */
  const char *seed;

  /* where a redirection leads; NULL: nowhere */
  const char *target;

  /* host is being resolved, by a thread; NULL: it is not */
  struct port_posix_lookup *lookup;

  /* what host resolved to; NULL unless connecting */
  struct addrinfo *addresses;

  /* the address being tried */
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

  /* the attempt to connect waits for lookup */
  bool resolving;

  /* something was received on this connection */
  bool heard;

  /* the last send() would have blocked. Shared by two tasks: touched only atomically */
  unsigned char send_blocked;

  /* what failed last; 0: nothing. Touched only atomically, too */
  int failure;
};

/*
 * A server at host (an IPv4 or IPv6 address without brackets, or a name) and service (a port
 * number, or a name such as "redis"). All addresses of a name are tried in order. One that does not
 * answer within a second gives way to the next, and the last is tried for as long as the client
 * allows. After a connection on which nothing was received, the next begins with the address after
 * that one. A name is resolved at each connect, by a thread, so that nothing blocks; an address
 * needs none. The memory for that, some 100 bytes, is freed when the resolver is done, which may be
 * a while after fairlock_client_deinit().
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

/* Room for port_posix_error(), the end mark included. */
#define PORT_POSIX_ERROR_SIZE 64

/*
 * Why connecting failed last, or the connection broke, in the system's words, cut to what fits:
 * those of gai_strerror() when a name was not resolved, otherwise those of strerror(). "Connection
 * timed out" when the client gave up connecting. "" when nothing has failed since the last
 * connection was made; if that one is closed, the client has closed it. Of several addresses or
 * servers, the one that failed last. May be called by any task, and by the function of a log.
 */
void port_posix_error(const struct port_posix *posix, char text[PORT_POSIX_ERROR_SIZE]);

/*
 * The socket, for your event loop to watch (fairlock_wants() says what for); -1: there is none to
 * watch. While connecting, wait until it is writable. Ask again after each call of the client: it
 * changes with each reconnect, and while the addresses of a host are tried. A new socket may have
 * the number of the one before: the loop must forget a socket when it is closed, as epoll does by
 * itself, or watch it for one event at a time.
 */
int port_posix_fd(const struct port_posix *posix);

#ifdef __cplusplus
}
#endif

#endif
