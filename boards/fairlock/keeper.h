/* The process that holds the lock for `fairlock run`. */
#ifndef KEEPER_H
#define KEEPER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "guard.h"
#include "metrics.h"
#include "session.h"

#define KEEPER_RELEASE_MS                                                                          \
  5000U /* a release that is not answered in this time is left to the lease */
#define KEEPER_LATE_RELEASE_MS                                                                     \
  500U /* the same when the lock is lost, or nearly                         */

enum on_lost { ON_LOST_TERM, ON_LOST_KILL, ON_LOST_IGNORE };

struct keeper_options {
  const char *name;
  const char *owners; /* ids of holds that we run under, with spaces between; NULL: none */
  uint32_t wait_ms;   /* 0: do not wait                                            */
  uint32_t lease_ms;
  uint32_t kill_after_ms;

  /* from when the lock is acquired, even if the command ends sooner; 0: no longer than it runs */
  uint32_t at_least_ms;

  enum on_lost on_lost;

  /* the signal for the command when an operator asks for the lock; 0: none */
  int on_ask;

  /* report what happens to the connection */
  bool verbose;

  /* where to count; path NULL: do not */
  struct metrics metrics;
};

/* What the keeper reports. */
enum keeper_news {
  KEEPER_CONNECTED = 1, /* the server serves us. It waits for keeper_acquire()                    */
  KEEPER_RETRYING, /* no server does so far: status, error. It tries again                    */
  KEEPER_ACQUIRED, /* the lock is held: token, owner                                        */
  /* it is not, because one of owners holds it. The keeper has ended */
  KEEPER_NESTED,
  KEEPER_FAILED, /* it is not, and will not be: status, error. The keeper has ended       */
  /* the system refused what it needs: status is an error number, error what. The keeper has ended */
  KEEPER_UNABLE,
  KEEPER_ASKED, /* an operator has asked for it, and the command was sent the signal for that   */
  /* it is being lost: FAIRLOCK_LOST, gone; else why it could not be renewed */
  KEEPER_LOST,
  KEEPER_RELEASED, /* status of the release. The keeper has ended                            */
  KEEPER_GONE      /* the keeper has ended without a message                                 */
};

struct keeper_message {
  int32_t news;
  int32_t status;
  uint64_t token;
  char owner[FAIRLOCK_HOLDER_ID_SIZE];
  char error[FAIRLOCK_ERROR_SIZE];
  char address[ADDRESS_SIZE]; /* that status is about; "": see the URL */
};

/* What has happened to the connection. */
struct keeper_event {
  int64_t at_ms; /* in time_of_day_ms() */
  int32_t event; /* of enum fairlock_log_event */
  int32_t status;
  char address[ADDRESS_SIZE]; /* where; "": see the URL */
  char text[224];             /* the server's words, those of TLS, or where to; "": none */
};

struct keeper {
  pid_t pid;
  int link; /* readable when there is news */

  /*
   * readable when there are events; -1: none are wanted, or there are no more. A separate pipe:
   * events that do not fit because nobody reads are dropped, and nobody waits for room
   */
  int events;
  const struct keeper_options *options;
  struct guard guard;
};

/*
 * Makes the guard with the process of the command, and the keeper, which begins to connect. session
 * is prepared, not open; options must stay valid. Returns NULL, or what failed, with errno set.
 */
const char *keeper_start(struct keeper *keeper, struct session *session,
                         const struct keeper_options *options, const struct child *child);

/* The next message. Blocks unless link is readable. */
struct keeper_message keeper_news(struct keeper *keeper);

/* Takes the next event, if any. Never blocks. */
bool keeper_event(struct keeper *keeper, struct keeper_event *event);

/* Tells it, and its guard, that the command begins: it is ended when the lock is lost, or when we die. */
void keeper_guard(struct keeper *keeper);

/* Somebody wants the end: at_least_ms does not hold it up. */
void keeper_hurry(struct keeper *keeper);

/* The command has ended. What it has left, if anything, may go on. */
void keeper_unguard(struct keeper *keeper);

/*
 * Once it has reported the lock as acquired: false when too little of the hold is left to start a
 * command, or none, whether or not the keeper runs, and whatever of its news was read.
 */
bool keeper_may_begin(const struct keeper *keeper);

/* True when the hold has ended and the keeper has not noticed, because it is not running. */
bool keeper_let_it_end(const struct keeper *keeper);

/* True while the keeper is stopped by a signal: it can neither obey nor report. */
bool keeper_is_stopped(const struct keeper *keeper);

/* True when the command had to be ended, and the guard did it instead of the keeper. */
bool keeper_failed_to_end(const struct keeper *keeper);

/* Makes it acquire; the answer is KEEPER_ACQUIRED or _FAILED. */
void keeper_acquire(struct keeper *keeper);

/*
 * Makes it leave the queue, or release the lock if it was just acquired; the answer is
 * KEEPER_FAILED or _ACQUIRED.
 */
void keeper_cancel(struct keeper *keeper);

/* Makes it release; the answer is KEEPER_RELEASED. */
void keeper_release(struct keeper *keeper);

/*
 * Kills it: before keeper_acquire(), when it can leave nothing behind, or when it does not answer.
 */
void keeper_kill(struct keeper *keeper);

#endif
