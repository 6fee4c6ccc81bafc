/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The memory of a client and of its handles. It is private, and declared here only so that the
 * program can provide it. Comments name the file that writes each part. Within a part, bytes come
 * first and arrays last, because shorter instructions reach what is near the beginning.
 *
 * Included by fairlock.h.
 */
#ifndef FAIRLOCK_STATE_H
#define FAIRLOCK_STATE_H

/* Requests of one handle that may await their answers at a time. */
#define FAIRLOCK_UNANSWERED_MAX 3

struct fairlock_credentials;
struct fairlock_engine;
struct fairlock_target;
struct fairlock_hooks;
struct fairlock_inquiry;
struct fairlock_query;
struct fairlock_log;
struct fairlock_report;
struct fairlock_rest;
struct fairlock_topology;
struct resp_event;

/* Private: links the optional features that a program uses; see struct fairlock_hooks. */
struct fairlock_link {
  const struct fairlock_hooks *hooks;
  struct fairlock_link *inner;
};

/* Where a handle is among the others. Private. */
struct fairlock_place {
#if PORT_ONE_TASK
  struct fairlock *next;
#else
  /* its neighbours in the heap, and when it is due */
  struct fairlock *up, *left, *right;
  uint32_t due;

  /* the next one in the list of those that await answers */
  struct fairlock *next_answered;
#endif
};

/* A handle: one holder's view of one named lock. The program's memory; private. Must not move. */
struct fairlock {
  /* handle.c; name and number: fairlock_engine_add(); task: client.c */
  uint8_t phase;
  uint8_t flags;

  /* kinds of requests sent on connections that broke, which may still be carried out */
  uint8_t in_doubt;

  /* the status of the last operation */
  int8_t result;

  /*
   * why the handle leaves the queue; this becomes the result of the operation. If its SUBSCRIBE was
   * refused, it leaves when its acquire was answered. 0: it does not leave
   */
  int8_t leave_result;

  /*
   * client.c: a task is inside a call that waits for the operation, or has not run yet since that
   * has ended. The call returns the result, so the `ended` function is not called
   */
#if PORT_ONE_TASK
  bool awaited;
#else
  bool awaited : 1;

  /* the operation is one of the engine's `begun` */
  bool begun : 1;
#endif

  uint16_t holds;
  uint16_t name_size;

  /* pipeline.c: how many requests of this phase await their answers */
  uint8_t unanswered;

  /* kinds of requests sent on this connection, up to `newest` */
  uint8_t kinds_sent;

  /* sequence number of the newest request */
  uint16_t newest;

  /* sequence number of the SUBSCRIBE or UNSUBSCRIBE under way */
  uint16_t subscribe_sequence;

  /* sequence numbers of the unanswered requests, oldest first */
  uint16_t sequence[FAIRLOCK_UNANSWERED_MAX];

  /* keep.c: what is known about the queue, and whether the release is delayed */
  uint8_t keep;

  /*
   * handle.c: what the newest answer has said to the operation: FAIRLOCK_OK, why it was refused, or
   * FAIRLOCK_PENDING: it has to be sent again, or there was no answer on this connection
   */
  int8_t answer;

  /* when those requests were written */
  uint32_t sent_at[FAIRLOCK_UNANSWERED_MAX];

  /* schedule.c and pipeline.c */
  struct fairlock_place place;

  /* handle.c again: when it next wants to send */
  uint32_t sends_at;

  /* when its phase ends at the latest: the wait, the hold, or the leave */
  uint32_t ends_at;

  /* when all that its requests may have left on the server has ended */
  uint32_t left_until;

  /* when the last useful answer came, or the operation began */
  uint32_t answered_at;

  uint32_t lease_ms;

  /* the lease for which a re-entry asks; 0: that of the configuration, renewed */
  uint32_t reentry_lease_ms;

  struct fairlock_engine *engine;

  /* what it sends while it waits, holds or ends that, and how the answers are read */
  const struct fairlock_query *query;

  const char *name;

  /* its id is "<client's id>:<number>" */
  uint32_t number;

  /* keep.c: when the request that began or confirmed the hold was sent */
  uint32_t kept_since;

  /* either the handle holds, or it looks at a lock, or does something to somebody else's hold */
  union {
    /* the task that has acquired, or has adopted; counts only while `holds` is not 0 */
    uintptr_t task;

    const struct fairlock_inquiry *inquiry;
  } by;

  uint64_t token;
};

/* Of struct fairlock_target, and of an inspection: what such a request sends. Private. */
struct fairlock_inquiry {
  const struct fairlock_query *query;
};

/* A request. It does not change while it is being written. */
struct fairlock_request {
  uint8_t kind;
  bool subscribe;

  /* that bit of the engine's `eval` if the script is sent by its text, else 0 */
  uint8_t eval;

  /* the kinds of the handle's older requests that may still be on their way */
  uint8_t older_kinds;

  /* a WAIT follows */
  bool wait;

  /* the lease will be renewed */
  bool renews;

  uint16_t sequence;

  /* NULL: none is being written, or a greeting */
  struct fairlock *handle;

  const struct fairlock_query *query;

  /* `mode` in the scripts */
  int32_t mode;

  /* named where `mode` is a waiter timeout, and longer */
  int32_t claim_ms;

  /* 0: in a release */
  uint32_t lease_ms;

  int64_t expires;
  uint64_t token;
};

/* The state of a client. The program's memory; private. Must not move. */
struct fairlock_engine {
  /* engine.c; window and backoff_ms also by topology.c */
  uint8_t stage;

  /* connections that failed in a row, up to 7 */
  uint8_t failures;

  uint8_t id_size;

  /* how many reads since there was last nothing to receive */
  uint8_t reads;

  /* the connection has to be closed */
  bool broken;

  /* why; 0: not a failure but a redirection */
  int8_t failure;

  /* a request, or the greeting, is being written */
  bool writing;

  /* the caller wants a connection, even if nothing has to be sent */
  bool connect_requested;

  /* this device was frozen: input may have arrived long ago */
  bool overslept;

  /* topology.c: channels belong to shards */
  bool sharded;

  /* holds are believed in only when replicas have acknowledged them */
  bool synced;

  /* reply.c: the types of the reply that is being read */
  uint8_t value_type, push_type;

  /* it has an element of an unexpected kind */
  bool malformed;

  /* HELLO's next element is the number of this connection */
  bool id_is_next;

  /* a bit for each script that the server does not know; handle.c sends the next one by its text */
  uint8_t eval;

  /* client.c: the transport said PORT_NEEDS_INPUT when it was last asked to connect */
  bool needs_input;

  /* engine.c again: while closed, no new connection for this long after `stage_began` */
  uint16_t backoff_ms;

  /* how many requests may be unanswered when another one is sent */
  uint16_t window;

  /* pipeline.c: sequence numbers */
  uint16_t last_sent, last_received;

#if !PORT_ONE_TASK
  /* the list of handles that await answers, sorted by the oldest request of each */
  struct fairlock *oldest, *youngest;

  /* operations under way for whose end perhaps nobody waits: counted by client.c and handle.c */
  uint32_t begun;
#endif

  /* engine.c and handle.c: why there are no useful answers at present; 0: there are */
  int last_error;

  /*
   * pipeline.c again: the longest time for which a request now under way may be valid; 0: there is
   * none. And by which time of the server, of which these are the lower 32 bits, all have expired
   */
  uint32_t request_life_ms;
  uint32_t last_expiry;

  /* when the newest request was written */
  uint32_t requested_at;

  /* schedule.c: all handles */
  struct fairlock *first;

  /* reply.c again: index in the reply under way */
  uint32_t element;

  /* the handle on whose channel the push that is being read came */
  struct fairlock *addressee;

  /* the measured round trip: longer ones count at once, shorter ones gradually */
  uint32_t round_trip_ms;

  /* when the newest known time of the server arrived */
  uint32_t sampled_at;

  /* when it was asked for */
  uint32_t asked_at;

  /* engine.c again */
  const struct fairlock_config *config;
  struct fairlock_topology *topology; /* NULL: one server, at a fixed address */
  struct fairlock_link *links;        /* links.c: the options that are used; NULL: none */

  /* the time that the caller has passed last, in any call */
  uint32_t now;

  /* when the caller has to come back at the latest, as the last tick has found */
  uint32_t next;

  uint32_t stage_began;
  size_t send_start, send_end;

  /* bytes of the request that are in the send buffer or sent */
  size_t request_done;

  size_t receive_end;

  /* when the send buffer was filled */
  uint32_t filled_at;

  /* when there was last nothing to receive */
  uint32_t drained_at;

  /*
   * the waiter timeout, at least three round trips: within this time a handover has to reach the
   * waiter, and its confirmation has to reach the server
   */
  uint32_t waiter_ms;

  /* for how long a handover to a waiter may be unconfirmed: the claim, at least three round trips */
  uint32_t claim_ms;

  /*
   * for how long a request is valid; if its answer takes longer, the connection is dead. At least
   * two round trips
   */
  uint32_t response_ms;

  /* from the configuration, or the default for 0 */
  uint32_t connect_ms, offline_ms;

  /* while up: requests of broken connections may arrive for this long after `stage_began` */
  uint32_t in_doubt_ms;

  uint32_t last_number;
  uint32_t random;

  /* handle.c: the request that is being written; pipeline.c: its number */
  struct fairlock_request request;

  /* the newest known time of the server: reply.c */
  int64_t server_now;

  /* numbers of the reply under way: reply.c */
  int64_t values[5];

  /* inspect.c */
  struct fairlock_inquiry inspection;
  /* NULL: the program has stopped it */
  bool (*report)(const struct fairlock_report *report, void *context);
  void *report_context;

  /* for the next greeting or AUTH: the configuration's, or set by topology.c and credentials.c */
  const char *user, *password;

  struct resp_decoder decoder;
  struct fairlock_counters counters; /* by all */

  /* made by the first greeting */
  char id[FAIRLOCK_ID_MAX + FAIRLOCK_ID_SUFFIX];

  /* the text of the last error, of the server (reply.c), or why topology.c refused a server */
  char error[FAIRLOCK_ERROR_SIZE];
};

/* A client: one connection to one server. The caller's memory; private. Must not move. */
struct fairlock_client {
  struct port_mutex mutex;

  /* a task services the client */
  bool serviced;

  /* a task is inside send() */
  bool sending;

  /* fairlock_stop() was called */
  bool stop : 1;

  /* operations may have ended since a task was last inside fairlock_poll() */
  bool news : 1;

  /* the task inside fairlock_run() leaves the client to tasks that wait */
  bool left : 1;

  /* it sleeps until the last of them wakes it */
  bool sleeps : 1;

  /* a wait has ended since it looked */
  bool waited : 1;

  struct port_transport *transport;

  /* all tasks inside a blocking call, also the one that services the client */
  struct fairlock_blocked *blocked;

  /* what the task inside fairlock_run() waits on; NULL: no task is */
  struct port_event *runner;

  struct fairlock_engine engine;
};

#endif
