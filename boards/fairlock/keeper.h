/* The keeper: the process that holds the lock for `fairlock run`. */
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
  const char *owners; /* ids of holds under which we run, separated by spaces; NULL: none */
  uint32_t wait_ms;   /* 0: do not wait                                            */
  uint32_t lease_ms;
  uint32_t kill_after_ms;

  /* the lock is held for at least so long, even if the command ends sooner; 0: until it ends */
  uint32_t at_least_ms;

  enum on_lost on_lost;

  /* the signal that the command gets when an operator asks for the lock; 0: none */
  int on_ask;

  /* report what happens to the connection */
  bool verbose;

  /* where to count what happens; path NULL: nowhere */
  struct metrics metrics;
};

/* What the keeper reports. */
enum keeper_news {
  KEEPER_CONNECTED = 1, /* a server serves us; the keeper waits for keeper_acquire()          */
  KEEPER_RETRYING,      /* no server serves us so far: status, error. The keeper tries again  */
  KEEPER_ACQUIRED,      /* the lock is held: token, owner                                     */
  /* the lock cannot be acquired, because one of `owners` holds it. The keeper has ended */
  KEEPER_NESTED,
  KEEPER_FAILED, /* the lock was not acquired: status, error. The keeper has ended */
  /*
   * the system has refused something: status is an errno value, error says what. The keeper has
   * ended
   */
  KEEPER_UNABLE,
  KEEPER_ASKED, /* an operator has asked for the lock, and the command was sent on_ask */
  /*
   * the lock is gone: status FAIRLOCK_LOST; or its lease ends soon: status says why it is not
   * renewed
   */
  KEEPER_LOST,
  KEEPER_RELEASED, /* the status of the release. The keeper has ended */
  KEEPER_GONE      /* the keeper has ended without a message          */
};

struct keeper_message {
  int32_t news;
  int32_t status;
  uint64_t token;
  char owner[FAIRLOCK_HOLDER_ID_SIZE];
  char error[FAIRLOCK_ERROR_SIZE];
  char address[ADDRESS_SIZE]; /* of the server that status is about; "": that of the URL */
};

/* An event of the connection, for --verbose. */
struct keeper_event {
  int64_t at_ms; /* in time_of_day_ms() */
  int32_t event; /* of enum fairlock_log_event */
  int32_t status;
  char address[ADDRESS_SIZE]; /* of the server; "": that of the URL */
  char text[224];             /* the words of the server or of TLS, or a new address; "": none */
};

struct keeper {
  pid_t pid;
  int link; /* readable when there is a message */

  /*
   * readable when there are events; -1: none are wanted, or no more will come. It is a separate
   * pipe, so that events can be dropped when it is full, and the keeper never waits for room in it.
   */
  int events;
  const struct keeper_options *options;
  struct guard guard;
};

/*
 * Starts the guard, the process of the command, and the keeper, which begins to connect. session
 * was prepared, and is not open; options must stay valid. Returns NULL, or what failed, with errno
 * set.
 */
const char *keeper_start(struct keeper *keeper, struct session *session,
                         const struct keeper_options *options, const struct child *child);

/* Returns the next message. Blocks until there is one, which link tells. */
struct keeper_message keeper_news(struct keeper *keeper);

/* Reads the next event. Returns false if there is none. Never blocks. */
bool keeper_event(struct keeper *keeper, struct keeper_event *event);

/*
 * Tells keeper and guard that the command begins. From now on they end it when the lock is lost, or
 * when this process dies.
 */
void keeper_guard(struct keeper *keeper);

/* The lock is to be released as soon as the command has ended: at_least_ms no longer counts. */
void keeper_hurry(struct keeper *keeper);

/* The command has ended, and processes that it has left may go on. */
void keeper_unguard(struct keeper *keeper);

/*
 * After KEEPER_ACQUIRED: returns false if too little of the hold is left to start the command. That
 * is right even if the keeper is stopped, or if its later messages were not read yet.
 */
bool keeper_may_begin(const struct keeper *keeper);

/* True when the hold has ended and the keeper has not noticed, because it is not running. */
bool keeper_let_it_end(const struct keeper *keeper);

/* True while the keeper is stopped by a signal, and so neither obeys nor reports. */
bool keeper_is_stopped(const struct keeper *keeper);

/* True when the guard had to end the command because the keeper did not. */
bool keeper_failed_to_end(const struct keeper *keeper);

/* Makes the keeper acquire the lock. Its answer is KEEPER_ACQUIRED or KEEPER_FAILED. */
void keeper_acquire(struct keeper *keeper);

/*
 * Makes the keeper leave the queue. Its answer is KEEPER_FAILED; or KEEPER_RELEASED, if it was
 * granted the lock meanwhile and has released it; or KEEPER_ACQUIRED, if it had sent that already.
 */
void keeper_cancel(struct keeper *keeper);

/* Makes the keeper release the lock. Its answer is KEEPER_RELEASED. */
void keeper_release(struct keeper *keeper);

/*
 * Kills the keeper: before keeper_acquire(), when it has nothing to leave behind, or when it does
 * not answer.
 */
void keeper_kill(struct keeper *keeper);

#endif
