/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files of the demo share: the records of the contenders, which lie in memory that all
 * processes see.
 *
 *   demo.c        the story: who comes when, who is killed, when each is told to release
 *   contender.c   one who wants the lock: a process with a client of its own, or a thread of the
 *                 team, which shares one
 *   server.c      the private redis-server, or the one that a URL names
 *   screen.c      what is seen: the table, who holds and who waits, what happened
 *   verdict.c     what the records prove
 *   timeline.c    the records as a picture
 *   failover.c    a program that has the demo run on servers of which the master is killed
 *
 * A contender writes its part of its record before it stores the stage, or the atomic time, that
 * says so; who has seen that may read the rest. Times are microseconds since the start of the demo.
 */
#ifndef DEMO_H
#define DEMO_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "fairlock.h"
#include "fairlock_follow.h"
#include "fairlock_operate.h"
#include "port_posix.h"
#include "support/clock.h"
#include "support/history.h"

/* Where servers move, a lease has to outlast a fail-over. */
enum { CONTENDERS = 8, LEASE_MS = 3000, MOVING_LEASE_MS = 30000 };

/* Where readers share the lock: how many may at a time, who is killed, and who wants it alone. */
enum { LIMIT = 3, KILLED = 2, WRITER = 4 };

enum stage { STARTING, READY, WAITING, HOLDING, RELEASED, FAILED };

enum order { STAY, ACQUIRE, RELEASE };

/* Times that are not known yet are 0. */
struct contender {
  /* The story's. */
  char name[16];
  bool thread;
  uint32_t limit; /* how many may share the lock when it does; 0: it wants it alone */
  pid_t pid;
  int arrival;        /* 1: the server saw it first, and so on */
  int64_t arrived_at; /* when the server was first seen to know it */
  int64_t killed_at;
  _Atomic int order; /* enum order: what it is told to do */

  /* The contender's own. */
  _Atomic int stage; /* enum stage */
  char id[FAIRLOCK_HOLDER_ID_SIZE];
  int64_t asked_at; /* acquire was called */
  uint64_t token;
  _Atomic int64_t granted_at; /* acquire returned */
  _Atomic int64_t left_at;    /* release was called, or the loss was noticed */
  _Atomic int64_t believed_until;
  int status; /* of the call that failed */
};

/* The contender that a report is about; NULL: none of ours. */
struct contender *find_contender(struct contender *all, const struct fairlock_report *report);
/* The time of the story, never 0: that is a time not known yet. */
int64_t story_us(void);

/* server.c: where the server is, and, if it is ours, its process. */
struct server {
  struct fairlock_config config;
  struct fairlock_topology topology; /* for a URL of several servers */
  struct port_posix_server at;
  char folder[256]; /* of a private server */
  pid_t pid;        /* 0: not ours */
};

/*
 * Starts program as a private server on a free port of 127.0.0.1, or, if url is not NULL, takes the
 * server it names.
 */
bool server_start(struct server *server, const char *program, const char *url);
/* True when a private server has ended by itself. */
bool server_ended(struct server *server);
void server_stop(struct server *server);
/* Makes client ready, with buffers of its own, for the task that calls. One client per process. */
int server_client(struct server *server, struct fairlock_client *client);

/*
 * contender.c: the bodies of processes. They never return, and die with the process that started
 * them.
 */
_Noreturn void run_process(struct contender *self, struct server *server, const char *lock);
_Noreturn void run_team(struct contender *all, struct server *server, const char *lock);
/*
 * Makes this process, just forked by parent, end when that one does, and deaf to the terminal's
 * signals.
 */
void belong_to(pid_t parent);

/* screen.c */
void screen_begin(struct contender *all, const char *lock, const char *url, uint32_t lease_ms);
/* Something happened: a line of text. */
void screen_event(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* One step of an inspection, begun by place 0. */
void screen_report(const struct fairlock_report *report);
/* Draws the view anew, where there is one. */
void screen_draw(void);
/* Leaves the view, and, if table is true, prints the table in its stead. */
void screen_end(bool table);

/* verdict.c */
/*
 * When the hold of one that was granted the lock ended; if it was killed, when it would have ceased
 * to believe.
 */
int64_t end_of_hold(const struct contender *contender);
/* The contenders that were granted the lock, in the order of their tokens. Returns how many. */
int grants(const struct contender *all, const struct contender *granted[CONTENDERS]);
/* One that never arrived, or was neither granted the lock nor killed; NULL: none. */
const struct contender *first_unserved(const struct contender *all);
/* What the judge says of the holds; unless quiet, it prints what is wrong. */
struct verdict verdict_of(const struct contender *all, bool quiet);
/* All were granted in the order in which they arrived, but those killed before. */
bool order_kept(const struct contender *all, const struct verdict *verdict);
/* The largest number that may hold at the same time: that of those who share, or 1. */
int most_at_once(const struct contender *all);
/*
 * From the end of the hold before this one, or from the kill of its holder, to this grant. -1:
 * there was none, or one of the two shares the lock.
 */
int64_t handover_us(const struct contender *all, const struct contender *self);

/* timeline.c: draws what happened, as an SVG. Returns false if the file cannot be written. */
bool draw_timeline(const char *path, const struct contender *all);

#endif
