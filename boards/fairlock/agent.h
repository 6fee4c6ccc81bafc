/* SPDX-License-Identifier: Apache-2.0 */
/* The agent: the process that holds the lock for `fairlock run`. */
#ifndef AGENT_H
#define AGENT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "guard.h"
#include "metrics.h"
#include "session.h"

#define AGENT_RELEASE_MS      5000U /* `fairlock run` waits so long for a release */
#define AGENT_LATE_RELEASE_MS 500U  /* the same when the lock is lost, or nearly  */

enum on_lost { ON_LOST_TERM, ON_LOST_KILL, ON_LOST_IGNORE };

/* What the agent is told to do. */
enum agent_order {
  AGENT_ACQUIRE = 1, /* acquire the lock. Its answer is AGENT_ACQUIRED or AGENT_FAILED      */
  AGENT_GUARD,       /* the command begins: agent_guard() says so                           */
  AGENT_HURRY,       /* release when the command has ended: at_least_ms no longer counts    */
  /* leave the queue: AGENT_FAILED, or, if the lock came first, AGENT_RELEASED or AGENT_ACQUIRED */
  AGENT_CANCEL,
  AGENT_RELEASE /* release the lock. Its answer is AGENT_RELEASED */
};

struct agent_options {
  const char *names[MOST_LOCKS + 1]; /* of the locks; NULL ends them */
  const char *holders; /* ids of holds under which we run, separated by spaces; NULL: none */
  uint32_t wait_ms;    /* 0: do not wait                                            */
  uint32_t lease_ms;
  uint32_t claim_ms; /* 0: the waiter timeout */
  uint32_t kill_after_ms;

  /* hold it beside others that share it, who are at most `limit` with us; 0: any number */
  bool shared;
  uint32_t limit;

  /* the lock is held for at least so long, even if the command ends sooner; 0: until it ends */
  uint32_t at_least_ms;

  /* the command, and what it has started, is ended when the lock was held for so long; 0: never */
  uint32_t max_hold_ms;

  int on_lost; /* of enum on_lost */

  /* the signal that the command gets when an operator asks for the lock; 0: none */
  int on_ask;

  /* do not ask who holds the lock when it was not acquired in time */
  bool quiet;

  /* report what happens to the connection */
  bool verbose;

  /* where to count what happens; path NULL: nowhere */
  struct metrics metrics;
};

/* What the agent reports. */
enum agent_news {
  AGENT_CONNECTED = 1, /* a server serves us; the agent waits for AGENT_ACQUIRE          */
  AGENT_RETRYING,      /* no server serves us so far: status, text. The agent tries again  */
  AGENT_ACQUIRED,      /* all locks are held. One message for each: token, holder            */
  /* the lock cannot be acquired, because one of `holders` holds it. The agent has ended */
  AGENT_NESTED,
  /* the lock was not acquired: status, text; `known`: who holds it. The agent has ended, or lingers */
  AGENT_FAILED,
  /* the system has refused what text says: status is an errno value. The agent has ended */
  AGENT_UNABLE,
  AGENT_ASKED, /* an operator has asked for the lock, and the command was sent on_ask: text */
  /*
   * the lock is gone: FAIRLOCK_LOST, text as FAIRLOCK_LOG_BROKEN, or ""; or its lease ends soon: status
   * says why it is not renewed
   */
  AGENT_LOST,
  AGENT_RELEASED, /* the status of the release. The agent has ended, or lingers */
  AGENT_EVENT,    /* something has happened to the connection, for --verbose    */
  AGENT_GONE      /* the agent has ended without a message                      */
};

/* Room for an error text, a new address, or the words of who asks or breaks (lock/FORMAT.md). */
#define AGENT_TEXT_SIZE 288

struct agent_message {
  int32_t news;
  int32_t status;
  uint32_t lock; /* which of the names it is about */
  /* the agent goes on with the release or the leave; nobody has to wait for it */
  bool lingers;
  int32_t event; /* AGENT_EVENT: of enum fairlock_log_event      */
  int64_t at_ms; /* AGENT_EVENT: when, in time_of_day_ms()       */
  bool
      known; /* AGENT_FAILED: there are holders, and waiters; the first holder has this token; 0: none */
  uint32_t holders, waiters;
  uint64_t token;
  char holder[FAIRLOCK_HOLDER_ID_SIZE];
  char text[AGENT_TEXT_SIZE]; /* the words of the server, of TLS, or of who asks; "": none   */
  char address[ADDRESS_SIZE]; /* of the server that status is about; "": that of the URL     */
};

struct agent {
  pid_t pid; /* 0: it was reaped */
  int link;  /* readable when there is a message */

  const struct agent_options *options;
  struct guard guard;
};

/* Starts guard, command and agent, which connects. Returns NULL, or what failed, with errno set. */
const char *agent_start(struct agent *agent, struct session *session,
                        const struct agent_options *options, const struct child *child);

/* Returns the next message. Blocks until there is one, which link tells. */
struct agent_message agent_news(struct agent *agent);

/* The command begins. From now on, agent and guard end it if the lock is lost or we die. */
void agent_guard(struct agent *agent);

void agent_order(struct agent *agent, enum agent_order order);

/* After AGENT_ACQUIRED: false if too little of the hold is left to start the command. */
bool agent_may_begin(const struct agent *agent);

/* True when the hold has ended and the agent has not noticed, because it is not running. */
bool agent_let_it_end(const struct agent *agent);

/* True while the agent is stopped by a signal, and so neither obeys nor reports. */
bool agent_is_stopped(const struct agent *agent);

/* Kills the agent, when it has nothing to leave behind, or does not answer. */
void agent_kill(struct agent *agent);

#endif
