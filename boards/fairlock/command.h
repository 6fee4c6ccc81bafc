/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The fairlock command: what its files share. main.c picks a subcommand; each subcommand is a file
 * and returns the command's exit status. Messages go to stderr, begin with "fairlock: " and say
 * what to do.
 *
 *   main.c         picks the subcommand; help and version
 *   options.c      parses numbers, names and the options that all subcommands have
 *   url.c          takes passwords out of URLs
 *   session.c      a client of that server; turns statuses into messages and exit statuses
 *   tls/           TLS, or none
 *   text.c         prints names and ids, which may be any bytes; memory for them
 *
 *   run.c          `fairlock run`, and what it has in common with hold and acquire
 *   hold.c         `fairlock hold`, `acquire` and `release`
 *   agent.c        a second process, which holds the lock
 *   guard.c        a third one, which starts the command, and ends all that it has started
 *   signals.c      passes signals and the terminal on to the command
 *   metrics.c      writes counters to a file
 *   system.c       what only some systems can do
 *
 *   status.c, watch.c, break.c   those subcommands
 *   inspection.c   reads a lock for them, and for list
 *   list.c         `fairlock list`
 *   query.c        sends requests that the library does not have, and finds other servers
 *   list_metrics.c writes metrics of all locks
 *   exposition.c   the format and the files of metrics, for run and list
 *   load.c         `fairlock load`
 *
 *   record.c       writes the history of a lock, for run and break
 *   times.c        histograms of its waits and holds, for record and list
 *   history.c      `fairlock history`: reads it
 *   history_svg.c  draws it
 */
#ifndef COMMAND_H
#define COMMAND_H

#include <stdint.h>
#include <stdio.h>

/* Exit statuses: those of flock(1) and sysexits.h, and five of our own. */
enum {
  EXIT_DONE = 0,
  EXIT_CONFLICT = 1,     /* not acquired (run -E), or nothing to break                     */
  EXIT_USAGE = 64,       /* the command line or the URL is wrong                           */
  EXIT_NO_INPUT = 66,    /* the file of a password, key or certificate is unusable         */
  EXIT_NO_EXEC = 69,     /* COMMAND cannot be executed                                     */
  EXIT_SYSTEM = 71,      /* the system refused a process, a pipe, memory or output         */
  EXIT_UNREACHABLE = 75, /* the server cannot be reached, or cannot serve now              */
  EXIT_PROTOCOL = 76,    /* the server's answer is none that we know                       */
  EXIT_DENIED = 77,      /* the server refuses this user, or TLS does not trust somebody   */
  EXIT_READ_ONLY = 78,   /* the server is a replica, or another shard                      */
  EXIT_LOST = 79,        /* the lock was lost while COMMAND ran                            */
  EXIT_NESTED = 80,      /* the lock is held by a fairlock run that we run under           */
  EXIT_OUTDATED = 82,    /* a later release uses the lock in a way that is not known here  */
  EXIT_OVERDUE = 83      /* the command was ended because --max-hold was over              */
};

int run_command(int argc, char **argv);
int hold_command(int argc, char **argv);
int acquire_command(int argc, char **argv);
int release_command(int argc, char **argv);
int status_command(int argc, char **argv);
int watch_command(int argc, char **argv);
int list_command(int argc, char **argv);
int break_command(int argc, char **argv);
int history_command(int argc, char **argv);
int load_command(int argc, char **argv);

/* Prints "fairlock: " and a line to stderr. */
#if defined __GNUC__
__attribute__((format(printf, 1, 2)))
#endif
void complain(const char *format, ...);

/* The same about something that happened at at_ms, in ms since 1970. */
#if defined __GNUC__
__attribute__((format(printf, 2, 3)))
#endif
void complain_of(int64_t at_ms, const char *format, ...);

/* From now on, each line that is printed has the date and the time in it. */
void complain_with_times(void);

/* Writes a time in ms since 1970, in the local time zone, as strftime() does by the format. */
void time_text(char text[32], int64_t ms, const char *format);

/* Prints it. */
void print_time(FILE *to, int64_t ms, const char *format);

/* Returns the time in ms since 1970. */
int64_t time_of_day_ms(void);

/* port_clock_ms() with more bits: for what may last longer than its 49 days, such as a hold. */
int64_t long_clock_ms(void);

/* Flushes stdout. Returns status, or EXIT_SYSTEM after a complaint. */
int end_output(int status);

#endif
