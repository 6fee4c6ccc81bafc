/* SPDX-License-Identifier: Apache-2.0 */
/* The fairlock command: picks the subcommand. See command.h for a map of the files. */
#define _DEFAULT_SOURCE 1 /* what -std=c11 hides */

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>

#include "command.h"
#include "fairlock.h"
#include "options.h"
#include "signals.h"
#include "system.h"

static const char help[] =
    "usage: fairlock run [OPTION]... NAME [--] COMMAND [ARGUMENT]...\n"
    "       fairlock hold [OPTION]... NAME\n"
    "       fairlock acquire --state FILE [--pid N] [--for SECONDS] [OPTION]... NAME\n"
    "       fairlock release FILE\n"
    "       fairlock status [--json|--quiet] [OPTION]... NAME...\n"
    "       fairlock watch [OPTION]... NAME\n"
    "       fairlock list [--json|--null|--metrics] [OPTION]... [PATTERN]\n"
    "       fairlock break [--token N|--holder ID] [--ask|--yes] [OPTION]... NAME\n"
    "       fairlock history [--since T] [--json] [--svg FILE] [OPTION]... NAME\n"
    "       fairlock load [--json] [OPTION]...\n"
    "       fairlock --version\n"
    "\n"
    "A fair lock over Redis: first come, first served, among machines.\n"
    "\n"
    "  run      run a command while holding the lock NAME, as flock(1) does\n"
    "  hold     hold the lock NAME while somebody reads the output\n"
    "  acquire  hold it while a process runs, or for a time, or until it is released\n"
    "  release  end that\n"
    "  status   print who holds a lock, and who waits for it\n"
    "  watch    the same, live\n"
    "  list     print which locks are held or waited for\n"
    "  break    end somebody else's hold, or ask for its end\n"
    "  history  print who has held a lock, and who has waited for it\n"
    "  load     load the scripts, for firmware that is built without them\n"
    "\n"
    "The server is named by --url or FAIRLOCK_URL: redis://[user:password@]host[:port][/db],\n"
    "redis+sentinel://HOSTS/service, redis+cluster://HOSTS or unix:///path. The options that\n"
    "all subcommands have, such as --url, may also come before the subcommand.\n"
    "See 'fairlock SUBCOMMAND --help' and fairlock(1) for more.\n";

static const struct {
  const char *name;
  int (*function)(int argc, char **argv);
} commands[] = {
    {"run", run_command},         {"hold", hold_command},     {"acquire", acquire_command},
    {"release", release_command}, {"status", status_command}, {"watch", watch_command},
    {"list", list_command},       {"break", break_command},   {"history", history_command},
    {"load", load_command},
};

static bool with_times;

void complain_with_times(void)
{
  with_times = true;
}

int64_t time_of_day_ms(void)
{
  struct timeval now;
  gettimeofday(&now, NULL);
  return (int64_t)now.tv_sec * 1000 + now.tv_usec / 1000;
}

int64_t long_clock_ms(void)
{
  struct timespec now = {0};
#ifdef CLOCK_BOOTTIME
  if (clock_gettime(CLOCK_BOOTTIME, &now) != 0) /* as port/posix/clock.c */
#endif
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

void time_text(char text[32], int64_t ms, const char *format)
{
  struct tm local;
  time_t seconds = (time_t)(ms / 1000);
  if (localtime_r(&seconds, &local) == NULL || strftime(text, 32, format, &local) == 0) *text = 0;
}

void print_time(FILE *to, int64_t ms, const char *format)
{
  char text[32];
  time_text(text, ms, format);
  fputs(text, to);
}

static void print_line(int64_t at_ms, const char *format, va_list arguments)
{
  flockfile(stderr); /* that of another thread is another line */
  fputs("fairlock: ", stderr);
  if (with_times) {
    print_time(stderr, at_ms, "%Y-%m-%d %H:%M:%S");
    fprintf(stderr, ".%03d ", (int)(at_ms % 1000));
  }
  vfprintf(stderr, format, arguments);
  fputc('\n', stderr);
  funlockfile(stderr);
}

void complain(const char *format, ...)
{
  va_list arguments;
  va_start(arguments, format);
  print_line(time_of_day_ms(), format, arguments);
  va_end(arguments);
}

void complain_of(int64_t at_ms, const char *format, ...)
{
  va_list arguments;
  va_start(arguments, format);
  print_line(at_ms, format, arguments);
  va_end(arguments);
}

int end_output(int status)
{
  if (fflush(stdout) == 0 && !ferror(stdout)) return status;
  complain("cannot write: %s", strerror(errno));
  return EXIT_SYSTEM;
}

static int give_help(int argc, char **argv)
{
  char *arguments[] = {argv[0], (char *)"--help", NULL};
  for (size_t i = 0; argc > 1 && i < sizeof commands / sizeof commands[0]; i++) {
    if (strcmp(argv[1], commands[i].name) == 0) return commands[i].function(2, arguments);
  }
  fputs(help, stdout);
  return end_output(EXIT_DONE);
}

/* Moves the subcommand to the front, before options that come before it on the command line. */
static void move_subcommand(int argc, char **argv)
{
  int at = 1;
  for (int size = 1; size > 0 && at < argc; at += size)
    size = size_of_common_option(argv[at]);
  if (at >= argc) return;
  char *subcommand = argv[at];
  memmove(&argv[2], &argv[1], (size_t)(at - 1) * sizeof *argv);
  argv[1] = subcommand;
}

int main(int argc, char **argv)
{
  signals_outlive_limits();
  if (!system_fill_standard()) {
    complain("cannot open /dev/null: %s", strerror(errno));
    return EXIT_SYSTEM;
  }
  move_subcommand(argc, argv);
  const char *command = argc > 1 ? argv[1] : "";
  for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++) {
    if (strcmp(command, commands[i].name) == 0) return commands[i].function(argc - 1, argv + 1);
  }
  if (strcmp(command, "--help") == 0 || strcmp(command, "-h") == 0 ||
      strcmp(command, "help") == 0) {
    return give_help(argc - 1, argv + 1);
  }
  if (strcmp(command, "--version") == 0 || strcmp(command, "-V") == 0) {
    printf("fairlock %s, format %d\n", fairlock_version(), FAIRLOCK_FORMAT);
    return end_output(EXIT_DONE);
  }
  if (*command == 0 || size_of_common_option(command) > 0)
    complain("a subcommand is missing: run, hold, acquire, release, status, watch, list, break, "
             "history or load");
  else if (*command == '-')
    complain("%s cannot come before the subcommand, only options of all subcommands, such as --url",
             command);
  else
    complain("there is no subcommand '%s', only run, hold, acquire, release, status, watch, list, "
             "break, history and load",
             command);
  fputs("Try 'fairlock --help'.\n", stderr);
  return EXIT_USAGE;
}
