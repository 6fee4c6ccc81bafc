/* SPDX-License-Identifier: Apache-2.0 */
/* A connection for requests for which the library has no function. */
#ifndef QUERY_H
#define QUERY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "resp.h"
#include "session.h"

/* The longest text of an answer that is delivered whole. */
#define QUERY_TEXT_MAX 8192U

/* The most words of a request, and room for the longest request. */
#define QUERY_WORDS_MAX   16
#define QUERY_REQUEST_MAX 16384U

struct query {
  /* prepared by session_second() */
  struct session *session;

  /* what all takes from query_open() on, in ms, at most, and when that was; 0: it is not limited */
  uint32_t budget_ms, opened_at;

  /* whether the server is a node of a cluster, and whether a connection was made */
  bool cluster, connected;

  /* the address of the server; "": that of the URL */
  char address[ADDRESS_SIZE];

  /* the server's error text; "": none */
  char error[FAIRLOCK_ERROR_SIZE];

  struct resp_decoder decoder;
  size_t start, end, unsent;
  unsigned char received[QUERY_TEXT_MAX + RESP_OVERHEAD];

  /* also has room for a greeting with the longest password and the longest user name of a URL */
  unsigned char send[2 * QUERY_REQUEST_MAX + PORT_POSIX_URL_SIZE + PASSWORD_MAX];
};

struct word {
  const void *data;
  size_t size;
};

/*
 * Connects to address ("": the server of the URL) and authenticates. Returns a status of the
 * library. After FAIRLOCK_OK, call query_close() in the end; otherwise the connection is closed
 * already.
 */
int query_open(struct query *query, const char *address);

void query_close(struct query *query);

/*
 * Adds a request to a buffer. The requests in it are sent when it is full, or when query_event() is
 * called for the first answer. All answers that were not read yet have to fit into the system's
 * buffer for a connection. Returns a status.
 */
int query_ask(struct query *query, const struct word *words, int count);

/*
 * Reads the next event of the answers, which come in the order of the requests. An error reply is
 * an event, too; query_refused() turns it into a status, and stores its text. Returns a status.
 */
int query_event(struct query *query, struct resp_event *event);

/* Copies a text that is an element, and as much of it as there is room for; of anything else nothing. */
void query_copy(char *to, size_t room, const struct resp_event *event);

/* Room for the key of what is kept beside a lock. */
#define BESIDE_KEY_SIZE (FAIRLOCK_NAME_MAX + 32)

/* Writes that key: the prefix, and the name, in braces unless it has one. Returns its size. */
size_t beside_key(char key[BESIDE_KEY_SIZE], const char *prefix, const char *name, size_t size);

/* True if the event is an error reply. */
bool query_is_error(const struct resp_event *event);
int query_refused(struct query *query, const struct resp_event *event);

/*
 * Complains that the query's server has failed, and returns the exit status. first: the session of
 * the client; beside: another server has accepted us before.
 */
int query_failed(struct query *query, const struct session *first, int status, bool beside);

/* Asks for the server's time, in ms since 1970. Returns a status. */
int query_time(struct query *query, int64_t *server_ms);

/* Addresses, allocated, without duplicates. Has to be initialised to {0}. */
struct nodes {
  char **address;
  size_t count, room;
};

void nodes_add(struct nodes *nodes, const char *address);

/* Frees the addresses, after which there are none. */
void nodes_forget(struct nodes *nodes);

/* Adds nodes of the cluster to which the query's server belongs. Returns a status. */
enum nodes_kind { MASTERS = 1, REPLICAS = 2 };
int nodes_of_cluster(struct nodes *nodes, struct query *query, unsigned kinds);

/* Adds the replicas of the query's server, which is a master. Returns a status. */
int nodes_of_master(struct nodes *nodes, struct query *query);

#endif
