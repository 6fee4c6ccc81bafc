/* SPDX-License-Identifier: Apache-2.0 */
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
 * no handler for SIGPIPE (no function raises it). A connection takes three descriptors. A thread that is cancelled inside a function
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

  /* how many addresses the next connect() passes over */
  unsigned skip;

  /* -1: none */
  int socket;

  /* a pipe that ends a wait, as its first end becomes readable; -1: none. Accessed atomically */
  int wake[2];

  /* SO_RCVTIMEO as it is set; 0: not set */
  uint32_t receive_limit_ms;

  bool connected;

  /* the attempt to connect waits for lookup */
  bool resolving;

  /* something was received on this connection */
  bool heard;

  /* nothing has come for a while: the next wait is one that can be woken */
  bool idle;

  /* whether the last send() would have blocked. Two tasks share it, so it is accessed atomically */
  unsigned char send_blocked;

  /* what failed last; 0: nothing. Accessed atomically, too */
  int failure;
};

/* As in fairlock.h: they are given memory of the program. */
#define port_posix_tcp      PORT_RELEASED(port_posix_tcp)
#define port_posix_unix     PORT_RELEASED(port_posix_unix)
#define port_posix_url      PORT_RELEASED(port_posix_url)
#define port_posix_read_url PORT_RELEASED(port_posix_read_url)

/*
 * Makes a transport to the server at host (an IPv4 or IPv6 address without brackets, or a name) and
 * service (a port number, or a name such as "redis"). All addresses of a name are tried in order:
 * each for a second, and the last for as long as the client allows. After a connection on which
 * nothing was received, the next connect() begins with the address after that one. A name is
 * resolved for each connection, in a thread of its own, so that connect() does not block. That
 * takes some 100 bytes of memory, which are freed when the resolver has finished, possibly after
 * fairlock_client_deinit().
 */
void port_posix_tcp(struct port_posix *posix, const char *host, const char *service);

/*
 * Makes a transport to several servers, Sentinels or nodes of a cluster, which a client that calls
 * fairlock_follow() tries one after the other. seeds: "host:port", separated by commas, an IPv6
 * address in brackets; the string must stay valid. Returns false if an entry does not have that
 * form, or its host has more than 255 characters.
 */
bool port_posix_seeds(struct port_posix *posix, const char *seeds);

/*
 * Makes a transport to a server at a Unix socket. Returns false if path is longer than the system
 * allows; then connecting fails, too.
 */
bool port_posix_unix(struct port_posix *posix, const char *path);

/* Room for the name of a host, its end mark included. */
#define PORT_POSIX_HOST_SIZE 256

/*
 * Writes the host to which this transport connects now into size bytes (1 or more), with a NUL: a name,
 * or an address without brackets; "" for a Unix socket, and if there is no room for all of it. A transport around this one can use it to check who answers. context: the
 * context of this transport.
 */
void port_posix_host(const void *context, char *host, size_t size);

/* Room for all that port_posix_error() writes, its NUL included. */
#define PORT_POSIX_ERROR_SIZE 64

/*
 * Writes why connecting failed last, or why the connection broke, into size bytes (1 or more), with a
 * NUL, in the system's words, cut off if they do not fit: those of gai_strerror() if a name was not resolved, otherwise those of
 * strerror(); "Connection timed out" if the client has given up. "" if nothing has failed since the
 * last connection was made; if that one is closed, the client has closed it. Of several addresses
 * or servers, it is about the one that failed last. Any task may call it, and a log function.
 */
void port_posix_error(const struct port_posix *posix, char *text, size_t size);

/*
 * The socket, for your event loop to watch (fairlock_wants() says for what); -1: there is none.
 * While connecting, wait until it is writable. Ask again after each call of the client, because it
 * changes with each connection, and while several addresses are tried. A new socket may have the
 * number of the previous one. So the loop has to forget a socket that was closed, as epoll does by
 * itself, or watch it for one event at a time.
 */
int port_posix_fd(const struct port_posix *posix);

/* Servers by URL */

/* Room for the longest URL without its password, and for the longest password that Redis accepts. */
#define PORT_POSIX_URL_SIZE      2048
#define PORT_POSIX_PASSWORD_SIZE 16385

/* Room for "host:port". */
#define PORT_POSIX_ADDRESS_SIZE 264

/*
 * Where servers are, and who we are there, as a URL says it:
 *   redis://[user:password@]host[:port][/db]                      a server, or a node of a cluster
 *   redis+sentinel://[user:password@]host[:port],.../service[/db] Sentinels, which know the master
 *   redis+cluster://[user:password@]host[:port],...[/db]          some nodes of a cluster
 *   unix://[user:password@]/path[?db=number]
 * rediss means the same with TLS, to all of them; valkey and valkeys mean the same as redis and
 * rediss. With Sentinels, ?sentinel_tls=false at the end means no TLS to these, and ?sentinel_tls=true
 * means TLS to them; to the servers that they name it is still what the beginning says. An IPv6 address is in brackets, and %41 is an A. User and password are those of the data
 * server, not of the Sentinels: those are the program's to give.
 *
 *     static struct port_posix_server server;
 *     const char *wrong = port_posix_url(&server, getenv("REDIS_URL"));
 *     ... if that is NULL, fill in struct fairlock_config from it, and give server.transport to the client ...
 *
 * The struct is the caller's memory, 25 KB: make it static. It must stay in place as long as the
 * client uses it. Nothing points into the URL, which may be overwritten.
 */
struct port_posix_server {
  /* for fairlock_client_init(). NULL: see port_posix_read_url() */
  struct port_transport *transport;

  /*
   * for struct fairlock_config. NULL: none. With a user and no password, the program has to give the
   * password: without one, the client does not log in
   */
  const char *user;
  const char *password;
  uint32_t database;

  /* Sentinels or nodes of a cluster: the client needs fairlock_follow(). Otherwise it is an option */
  bool moves;

  /* for struct fairlock_topology: the master's name at Sentinels, NULL: none; or nodes of a cluster */
  const char *service;
  bool cluster;
  char address[PORT_POSIX_ADDRESS_SIZE];

  /* the URL asks for TLS, to some of them at least */
  bool tls;

  /*
   * the URL as it was understood, for messages: without user, password and database, and with control
   * characters as %NN
   */
  char shown[2 * PORT_POSIX_URL_SIZE];

  /* the connection, below TLS: for port_posix_fd() and port_posix_error() */
  struct port_posix socket;

  /* to whom the URL asks for TLS: to Sentinels, and to the servers, which Sentinels name if there are any */
  bool sentinel_tls;
  bool server_tls;

  /* the rest is private: with TLS to some alone, what chooses one of two transports */
  struct port_transport split;
  const struct port_transport *safe;

  /* the next connection is to a server that was named; this one is, if it is open */
  bool aimed;
  bool to_server;
  bool open;

  /* what the strings point to */
  char text[PORT_POSIX_URL_SIZE];
  char seeds[PORT_POSIX_URL_SIZE];
  char secret[PORT_POSIX_PASSWORD_SIZE];
};

/*
 * Reads a URL, and makes a transport to what it names; opens nothing. Returns NULL, or what is wrong
 * with the URL, in words that follow its name: "it names no host"; they have no part of it, so no
 * password, and server then has nothing in it. url may be NULL, as for a variable that is not set.
 * One that asks for TLS is refused: port_openssl_url() takes it.
 */
const char *port_posix_url(struct port_posix_server *server, const char *url);

/*
 * The same for a program with another TLS: if the URL asks for it, transport is NULL. Then the program
 * makes a transport of its own around server->socket.transport, and calls port_posix_use_tls().
 */
const char *port_posix_read_url(struct port_posix_server *server, const char *url);

/*
 * Sets server->transport: to tls or, if the URL asks for TLS to Sentinels alone or to servers alone, to
 * one that uses tls for these, and the socket for the others. tls has to stay valid as long as server.
 */
void port_posix_use_tls(struct port_posix_server *server, struct port_transport *tls);

#ifdef __cplusplus
}
#endif

#endif
