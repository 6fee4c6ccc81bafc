/* SPDX-License-Identifier: Apache-2.0 */
/*
 * TLS 1.2 and 1.3 around any transport, by OpenSSL 1.1.1 or newer.
 *
 *     static const struct port_openssl_config config = {.host = port_posix_host};
 *     static struct port_posix server;
 *     static struct port_openssl tls;
 *     port_posix_tcp(&server, "redis.example", "6379");
 *     const char *wrong = port_openssl_init(&tls, &server.transport, &config);
 *     ... if that is NULL, give &tls.transport to the client ...
 *     port_openssl_deinit(&tls);
 *
 * The server has to prove, by a certificate of a CA that we trust, that it has the name we asked
 * for. If it cannot, or if it refuses our certificate, or refuses us because we have none,
 * connecting ends with PORT_UNTRUSTED. The struct is the caller's memory and must not move; OpenSSL
 * allocates more. A connection to the same name as the last one resumes its session, by a ticket;
 * the server's certificate is then not checked again, as is usual with resumption.
 *
 * The files are read again at each connection, so certificates, keys and CAs can be renewed while the
 * client runs. If they have changed, no session is resumed. While they cannot be used, because one is
 * missing or certificate and key do not fit yet, the last ones that could be are used. A folder of
 * CAs may have changed unnoticed, so with one no session is ever resumed. The system's CAs are read
 * again only when a file has changed.
 */
#ifndef PORT_OPENSSL_H
#define PORT_OPENSSL_H

#include "port.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Room for the name of a host, and for port_openssl_error(), the end mark included. */
#define PORT_OPENSSL_HOST_SIZE  256
#define PORT_OPENSSL_ERROR_SIZE 64

/* Private: a hash of files. */
#define PORT_OPENSSL_SUM_SIZE 32

/*
 * Members that are NULL or false have the meaning given. Files are PEM; their names must stay valid.
 */
struct port_openssl_config {
  /* CAs to trust, in a file, or in a folder as c_rehash(1) makes it. Both NULL: the system's */
  const char *ca_file;
  const char *ca_folder;

  /* our certificate, followed by those up to a CA that the server trusts. NULL: none */
  const char *certificate;

  /* the key of our certificate, not encrypted. NULL: it is in that file, too */
  const char *key;

  /*
   * the name, or address, that the server's certificate must have, and that the server is asked for
   * (SNI). NULL: the host to which the connection goes, as host() says. It must stay valid
   */
  const char *name;

  /*
   * writes the host to which the wrapped transport connects into size bytes; context is that transport's:
   * port_posix_host() for a struct port_posix. NULL: name is used
   */
  void (*host)(const void *context, char *host, size_t size);

  /* anybody may be the server: encrypted, but not safe from a man in the middle */
  bool insecure;
};

struct ssl_ctx_st;
struct ssl_st;
struct ssl_session_st;
struct bio_st;

/* A transport that speaks TLS over another one. */
struct port_openssl {
  /* for the client; all the rest is private */
  struct port_transport transport;

  /* the transport that is wrapped */
  const struct port_transport *below;

  struct port_openssl_config config;

  /* guards what follows; not held while `below` is called */
  struct port_mutex mutex;
  bool locked;

  /* made from the files of this hash */
  struct ssl_ctx_st *settings;
  unsigned char sum[PORT_OPENSSL_SUM_SIZE];

  /* OpenSSL's error: why the files that there are now could not be used. 0: they could */
  unsigned long stale;

  /* NULL: no connection */
  struct ssl_st *ssl;

  /* records that came, and records to go; they belong to ssl */
  struct bio_st *in;
  struct bio_st *out;

  /* of an earlier connection to `asked_for`; NULL: none */
  struct ssl_session_st *session;
  char asked_for[PORT_OPENSSL_HOST_SIZE];

  /* one task is sending, and sends what the others have to send, too */
  bool flushing;

  /* ssl reported an error: nothing more can be sent */
  bool broken;

  /* the client gave up during the handshake, in which nothing was wrong */
  bool mute;

  /* the server has closed the last connection, as TLS wants it */
  bool ended;

  /* why TLS failed last: OpenSSL's error and X509_V_ERR; 0: TLS did not fail */
  unsigned long error;
  long verify_error;

  /* between out and `below`: touched by the task that is flushing */
  size_t outgoing_start;
  size_t outgoing_end;
  unsigned char outgoing[4096];

  /* between `below` and in: touched by the task that receives */
  unsigned char incoming[4096];
};

/* As in fairlock.h: it is given memory of the program. */
#define port_openssl_init PORT_RELEASED(port_openssl_init)

/*
 * Makes tls ready, around a transport that is not connected. Reads the files, opens no connection.
 * config is copied. Returns NULL, or which of config's files cannot be used
 * ("TLS": OpenSSL itself); port_openssl_error() then says why, and there is nothing to deinit.
 */
const char *port_openssl_init(struct port_openssl *tls, const struct port_transport *below,
                              const struct port_openssl_config *config);

struct port_posix_server;

/*
 * The same as port_posix_url() (port_posix.h), for a program with OpenSSL: rediss:// and the like are
 * TLS to all servers, nodes and, unless the URL says ?sentinel_tls=false, Sentinels; redis:// is none, and
 * then tls stays empty. config may be NULL: the system's CAs. Its `host` is set here. Returns NULL, or what is wrong with the URL or
 * with config's files, in words that are valid as long as server.
 *
 *     static struct port_posix_server server;
 *     static struct port_openssl tls;
 *     const char *wrong = port_openssl_url(&tls, &server, getenv("REDIS_URL"), NULL);
 *     ... if that is NULL, give server.transport to the client ...
 *     port_openssl_deinit(&tls);
 */
const char *port_openssl_url(struct port_openssl *tls, struct port_posix_server *server,
                             const char *url, const struct port_openssl_config *config);

/*
 * Frees all memory; there is none in what port_openssl_url() has left empty. Call it after
 * fairlock_client_deinit(), also in a forked process: there it sends nothing, and frees nothing if
 * another task of the parent was using it at the fork. In that case a client of the forked process
 * needs a transport that is initialised again; otherwise it can use this one.
 */
void port_openssl_deinit(struct port_openssl *tls);

/*
 * Why TLS failed last, as OpenSSL says it; "the server does not answer in TLS" when the client gave
 * up during the handshake; "the server closed TLS" when it did so in good order. If it failed with old files because there are new ones that cannot be
 * used, the reason for that. "" when TLS did not fail, and in a forked process. May be called by any
 * task.
 */
void port_openssl_error(struct port_openssl *tls, char *text, size_t size);

#ifdef __cplusplus
}
#endif

#endif
