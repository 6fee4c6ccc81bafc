/*
 * The fairlock command: what its files share. main.c picks a subcommand; each subcommand is a file
 * and returns the command's exit status. Messages go to stderr, begin with "fairlock: " and say
 * what to do.
 *
 *   main.c      subcommands, help, version
 *   options.c   numbers, names and the options that all subcommands have
 *   url.c       where the server is
 *   session.c   a client of that server; statuses to messages and exit statuses
 *   tls.h       TLS, in tls/openssl.c or tls/none.c
 *   run.c       `fairlock run`: keeper.c holds the lock in a second process; guard.c, in another, is
 *               the parent of the command and ends all that it has started, child.c starts it,
 *               signals.c and terminal.c pass on to it signals and the terminal; metrics.c writes down what was counted;
 *               system.c has what only some systems can do
 *   status.c, watch.c, break.c   those subcommands; inspection.c reads, text.c prints any bytes
 *   list.c      `fairlock list`; query.c asks the server what the library does not;
 *               list_metrics.c writes metrics of all locks; exposition.c, those of run, too
 */
#ifndef COMMAND_H
#define COMMAND_H

#include <stdint.h>

/* Exit statuses: those of flock(1) and sysexits.h, and two of our own. */
enum {
  EXIT_DONE = 0,
  EXIT_CONFLICT = 1, /* not acquired (run -E), or nothing to break                     */
  EXIT_USAGE = 64,   /* the command line or the URL makes no sense                      */
  EXIT_NO_INPUT =
      66, /* the password file, or one of TLS, is of no use                               */
  EXIT_NO_EXEC = 69,     /* COMMAND cannot be executed                                      */
  EXIT_SYSTEM = 71,      /* the system refused a process, a pipe, memory or output          */
  EXIT_UNREACHABLE = 75, /* the server cannot be reached, or cannot serve now               */
  EXIT_PROTOCOL = 76,    /* the server answered with something that is of no use to us      */
  EXIT_DENIED = 77,      /* the server refuses this user, or TLS does not trust a certificate */
  EXIT_READ_ONLY = 78,   /* the server is a replica, or another shard                       */
  EXIT_LOST = 79,        /* the lock was lost while COMMAND ran                             */
  EXIT_NESTED = 80       /* the lock is held by a fairlock run that we run under            */
};

int run_command(int argc, char **argv);
int status_command(int argc, char **argv);
int watch_command(int argc, char **argv);
int list_command(int argc, char **argv);
int break_command(int argc, char **argv);

/* Prints "fairlock: " and a line to stderr. */
#if defined __GNUC__
__attribute__((format(printf, 1, 2)))
#endif
void complain(const char *format, ...);

/* The same for what happened at that time, in ms since 1970. */
#if defined __GNUC__
__attribute__((format(printf, 2, 3)))
#endif
void complain_of(int64_t at_ms, const char *format, ...);

/* From now on each line has date and time of day in it. */
void complain_with_times(void);

/* In ms since 1970. */
int64_t time_of_day_ms(void);

/*
 * Flushes stdout. Returns status, or EXIT_SYSTEM, after a complaint, if the output could not be
 * written.
 */
int end_output(int status);

#endif
