/* A client of the server that the command line names. */
#ifndef SESSION_H
#define SESSION_H

#include <pthread.h>
#include <stdbool.h>

#include "fairlock.h"
#include "options.h"
#include "port_openssl.h"
#include "port_posix.h"
#include "url.h"

/* Room for a password and its line's end, as they are read from a file. */
#define PASSWORD_SIZE (PASSWORD_MAX + 2)

/* Room for "host:port". */
#define ADDRESS_SIZE 272

/* The addresses the transport was sent to. The client's task writes them, any task reads them. */
struct addresses {
  pthread_mutex_t mutex;

  /* where the connection is, or will be; "": not known yet */
  char current[ADDRESS_SIZE];

  /* the last one to which connecting failed, and has not succeeded since; "": none */
  char dead[ADDRESS_SIZE];

  /* the last one whose connection has ended; "": none */
  char left[ADDRESS_SIZE];

  /* why these two failed, or ended */
  char why_dead[FAIRLOCK_ERROR_SIZE], why_left[FAIRLOCK_ERROR_SIZE];

  /* the current one is, or was, connected; and: it was tried */
  bool connected, tried;
};

struct session {
  struct url url;

  /* of the environment, which no longer has them; NULL: none. Never given back */
  char *given_password, *given_sentinel_password;
  char password[PASSWORD_SIZE];
  char sentinel_password[PASSWORD_SIZE];

  /* where these two are read at each connection; NULL: they do not change */
  const char *password_file, *sentinel_password_file;
  struct fairlock_credentials credentials;

  /* why there was none for the last connection; "": there was. Guarded as the addresses are */
  char no_password[FAIRLOCK_ERROR_SIZE];
  struct port_posix socket;

  /* around the socket, if the URL asks for it */
  struct port_openssl tls;

  /* the socket's or TLS's, and around it the client's, which notes addresses */
  const struct port_transport *below;
  struct port_transport noting;

  struct addresses addresses;
  struct fairlock_topology topology;
  char redirected[ADDRESS_SIZE];
  char client_id[FAIRLOCK_ID_MAX + 1];
  struct fairlock_config config;
  struct fairlock_client client;
  unsigned char receive[FAIRLOCK_RECEIVE_SIZE(FAIRLOCK_NAME_MAX, FAIRLOCK_ID_MAX)];
  unsigned char send[2048];
};

/*
 * Finds out where the server is and with which password, and takes passwords out of the
 * environment. Opens nothing. Returns EXIT_DONE, or a status after a complaint.
 */
int session_prepare(struct session *session, const struct command_line *line);

/*
 * Makes the client, after the caller has filled in the rest of session->config. Returns a status of
 * the library's.
 */
int session_open(struct session *session);

/*
 * Makes *second ready for another connection to the same servers, as the same user: its
 * transport is *second->below, which has no client. session is prepared from line. Returns
 * EXIT_DONE, or a status after a complaint.
 */
int session_second(struct session *second, const struct session *session,
                   const struct command_line *line);

/*
 * The address that status is about: for UNREACHABLE and UNTRUSTED one that could not be connected
 * to, if there is one; else where the connection is. "": none is known.
 */
void session_address(struct session *session, int status, char address[ADDRESS_SIZE]);

/* The address that the connection goes to now. "": none is known. May be called by a log. */
void session_current(struct session *session, char address[ADDRESS_SIZE]);

/* Connects. Returns EXIT_DONE, or a status after a complaint. */
int session_connect(struct session *session);

/*
 * Why the transport could not connect, or was closed, last: as the system, the resolver or TLS says
 * it; "": not known. connected: a connection was made.
 */
void session_reason(struct session *session, bool connected, char text[FAIRLOCK_ERROR_SIZE]);

/* The same for where the connection goes now. May be called by a log. */
void session_current_reason(struct session *session, char text[FAIRLOCK_ERROR_SIZE]);

/* The error text of the server, the system or TLS for status; "": none. */
void session_error(struct session *session, int status, char text[FAIRLOCK_ERROR_SIZE]);

/*
 * Whether a failure to connect may pass by itself. That of a demoted master may if the URL names
 * Sentinels or nodes, which know its successor; a password that was accepted once may be changing.
 */
bool session_may_pass(struct session *session, int status);

/* Why there was no password for the last connection; "": there was, or none is needed. */
void session_no_password(struct session *session, char text[FAIRLOCK_ERROR_SIZE]);

/* The exit status that stands for a status of the library's. */
int exit_status_of(int status);

/* "URL", or "URL (address)" when the URL does not say it, for messages. Printable; to be freed. */
char *session_place(const struct session *session, const char *address);

/* ": " and the words of session_error(), or "" if there are none. Printable; to be freed. */
char *session_words(const char *error);

/*
 * Says that the server at address (may be "") failed, with its error text (may be ""), and what to
 * do. Returns the exit status.
 */
int session_failed(const struct session *session, int status, const char *address,
                   const char *error);

/* The same, with the client's address and error text. */
int session_complain(struct session *session, int status);

#endif
