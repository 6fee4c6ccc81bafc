/* A connection for requests that the library does not make, one after the other. */
#ifndef QUERY_H
#define QUERY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "resp.h"
#include "session.h"

/* The longest text of an answer that is taken whole. */
#define QUERY_TEXT_MAX 8192U

/* Words of a request, and room for the longest one. */
#define QUERY_WORDS_MAX   6
#define QUERY_REQUEST_MAX 8192U

struct query {
  /* made by session_second() */
  struct session *session;

  /* the server is a node of a cluster; a connection was made */
  bool cluster, connected;

  /* where the connection goes; "": to the URL's server */
  char address[ADDRESS_SIZE];

  /* the server's error text; "": none */
  char error[FAIRLOCK_ERROR_SIZE];

  struct resp_decoder decoder;
  size_t start, end, unsent;
  unsigned char received[QUERY_TEXT_MAX + RESP_OVERHEAD];

  /* room for a greeting with the longest password and a user's name as long as a URL, too */
  unsigned char send[2 * QUERY_REQUEST_MAX + URL_SIZE + PASSWORD_MAX];
};

struct word {
  const void *data;
  size_t size;
};

/*
 * Connects to address ("": the URL's server) and authenticates. Returns a status of the library's;
 * FAIRLOCK_OK: query_close() ends it. Otherwise nothing is open.
 */
int query_open(struct query *query, const char *address);

void query_close(struct query *query);

/*
 * Adds a request to those that are sent together, when the first answer is asked for or there is no
 * room for more. The answers to all that are under way have to fit into the system's buffer for a
 * connection. Returns a status.
 */
int query_ask(struct query *query, const struct word *words, int count);

/*
 * The next event of the answers, which are in the order of the requests. An error of the server is
 * an event, too; query_refused() tells its status, and keeps its text. Returns a status.
 */
int query_event(struct query *query, struct resp_event *event);

/* The event is an error instead of an answer. */
bool query_is_error(const struct resp_event *event);
int query_refused(struct query *query, const struct resp_event *event);

/* The answer to TIME, in ms since 1970. Returns a status. */
int query_time(struct query *query, int64_t *server_ms);

#endif
