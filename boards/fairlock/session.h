/* SPDX-License-Identifier: Apache-2.0 */
/* A client of the server that the command line or the environment names. */
#ifndef SESSION_H
#define SESSION_H

#include <pthread.h>
#include <stdbool.h>

#include "fairlock.h"
#include "fairlock_credentials.h"
#include "fairlock_follow.h"
#include "options.h"
#include "port_openssl.h"
#include "port_posix.h"

/* The longest password that Redis accepts from a client that has not logged in. */
#define PASSWORD_MAX (PORT_POSIX_PASSWORD_SIZE - 1)

/* Room for a line of a file with a password: the password and the end of the line. */
#define PASSWORD_SIZE (PASSWORD_MAX + 2)

/* Room for "host:port". */
#define ADDRESS_SIZE 272

/* Addresses of servers. The task that services the client writes them; any task may read them. */
struct addresses {
  pthread_mutex_t mutex;

  /* of the connection, or of the next one; "": not known yet */
  char current[ADDRESS_SIZE];

  /* the last one that could not be reached or said nothing, unless it has answered since; "": none */
  char dead[ADDRESS_SIZE];

  /* that of the last connection that has ended; "": none */
  char left[ADDRESS_SIZE];

  /* why connecting has failed, and why that connection has ended */
  char why_dead[FAIRLOCK_ERROR_SIZE], why_left[FAIRLOCK_ERROR_SIZE];

  /*
   * whether there is or was a connection to `current`; whether something came by it; whether one was
   * tried. Only the task that services the client looks at `heard`
   */
  bool connected, heard, tried;
};

/* A password. */
struct secret {
  char *given;              /* what was taken from the environment; NULL: nothing. Never freed */
  const char *file;         /* read again for each connection; NULL: it does not change        */
  char text[PASSWORD_SIZE]; /* what was read from a file                                       */
};

struct session {
  struct port_posix_server server;

  struct secret secret, sentinel_secret;
  struct fairlock_credentials credentials;

  /* why there was no password for the last connection; "": there was. The mutex guards it */
  char no_password[FAIRLOCK_ERROR_SIZE];

  /* TLS around the socket, if the URL asks for it */
  struct port_openssl tls;

  /* the transport of the socket or of TLS; around it that of the client, which notes addresses */
  const struct port_transport *below;
  struct port_transport noting;

  struct addresses addresses;
  struct fairlock_topology topology;
  char client_id[FAIRLOCK_ID_MAX + 1];
  struct fairlock_config config;
  struct fairlock_client client;
  unsigned char receive[FAIRLOCK_RECEIVE_SIZE(FAIRLOCK_NAME_MAX, FAIRLOCK_ID_MAX)];
  unsigned char send[2048];
};

/* Finds out server and password, and takes passwords out of the environment. An exit status. */
int session_prepare(struct session *session, const struct command_line *line);

/* Makes the client. session->config has what the caller wants. Returns a status of the library. */
int session_open(struct session *session);

/* Ends what session_open() has begun. It may be called again. */
void session_close(struct session *session);

/*
 * Prepares another connection to the same servers, as the same user, without a client:
 * second->below. session was prepared from line. Returns EXIT_DONE, or an exit status after a
 * complaint.
 */
int session_second(struct session *second, const struct session *session,
                   const struct command_line *line);

/* Reads the password of a file again, for a second session: it may have changed meanwhile. */
void session_renew_password(struct session *session);

/*
 * The address of the server that status is about; "": not known. For UNREACHABLE and UNTRUSTED that
 * is one to which connecting has failed, if there is one; otherwise it is that of the connection.
 */
void session_address(struct session *session, int status, char address[ADDRESS_SIZE]);

/* The address of the present connection; "": not known. A log function may call it. */
void session_current(struct session *session, char address[ADDRESS_SIZE]);

/* Makes the client and connects. Returns EXIT_DONE, or an exit status after a complaint. */
int session_connect(struct session *session);

/* Why the transport failed last, in words; "": not known. connected: it had a connection. */
void session_reason(struct session *session, bool connected, char text[FAIRLOCK_ERROR_SIZE]);

/* The same for the address of session_current(). A log function may call it. */
void session_current_reason(struct session *session, char text[FAIRLOCK_ERROR_SIZE]);

/* What the server, the system or TLS says about status; "": nothing. */
void session_error(struct session *session, int status, char text[FAIRLOCK_ERROR_SIZE]);

/*
 * True if a failure may pass by itself: READONLY, if the URL names Sentinels or nodes of a cluster,
 * and DENIED, if a password was accepted before, because it may be changing.
 */
bool session_may_pass(struct session *session, int status);

/* Why there was no password for the last connection; "": there was, or it needs none. */
void session_no_password(struct session *session, char text[FAIRLOCK_ERROR_SIZE]);

/* The value of an environment variable; NULL if it is not set or empty. */
const char *from_environment(const char *name);

/* The exit status for a status of the library. */
int exit_status_of(int status);

/* "URL", "URL (address)" or "URL (Sentinel address)". Printable; to be freed. */
char *session_place(const struct session *session, const char *address);

/* The URL without a user and a password, with the database unless that is 0. Printable; to be freed. */
char *session_url(const struct session *session);

/* ": " and error, with "..." if it was cut off, or "" if it is empty. Printable; to be freed. */
char *session_words(const char *error);

/* Prints that a server failed, its error, and what to do. Returns the exit status. */
int session_failed(const struct session *session, int status, const char *address,
                   const char *error);

/* The same after another of the servers has accepted us. */
int session_other_failed(const struct session *session, int status, const char *address,
                         const char *error);

/* The same, with the address and the error text of the client. */
int session_complain(struct session *session, int status);

/*
 * TLS. `make TLS=openssl` builds the command with tls/openssl.c; otherwise make takes tls/none.c,
 * which only says that there is no TLS.
 */

/* Makes tls ready, around the transport below. Returns EXIT_DONE, or a status after a complaint. */
int tls_prepare(struct port_openssl *tls, const struct port_openssl_config *config,
                const struct port_transport *below);

/* The reason for which TLS failed last; "": TLS has not failed. */
void tls_error(struct port_openssl *tls, char text[PORT_OPENSSL_ERROR_SIZE]);

#endif
