/* The fairlock command: picks the subcommand. See command.h for a map of the files. */
#define _DEFAULT_SOURCE 1 /* what -std=c11 hides */

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "engine.h"

static const char help[] =
    "usage: fairlock run [OPTION]... NAME [--] COMMAND [ARGUMENT]...\n"
    "       fairlock status [--json] [OPTION]... NAME...\n"
    "       fairlock watch [OPTION]... NAME\n"
    "       fairlock list [--json] [OPTION]... [PATTERN]\n"
    "       fairlock break [OPTION]... NAME\n"
    "\n"
    "A fair lock over Redis: first come, first served, among machines.\n"
    "\n"
    "  run      run a command while holding the lock NAME, as flock(1) does\n"
    "  status   print who holds, and who waits\n"
    "  watch    the same, live\n"
    "  list     print which locks are held or waited for\n"
    "  break    end somebody else's hold\n"
    "\n"
    "The server is named by --url or FAIRLOCK_URL: redis://[user:password@]host[:port][/db],\n"
    "redis+sentinel://HOSTS/service, redis+cluster://HOSTS or unix:///path.\n"
    "'fairlock SUBCOMMAND --help' tells more, and so does fairlock(1).\n";

static const struct {
  const char *name;
  int (*function)(int argc, char **argv);
} commands[] = {
    {"run", run_command},   {"status", status_command}, {"watch", watch_command},
    {"list", list_command}, {"break", break_command},
};

void complain(const char *format, ...)
{
  va_list arguments;
  va_start(arguments, format);
  fputs("fairlock: ", stderr);
  vfprintf(stderr, format, arguments);
  fputc('\n', stderr);
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

int main(int argc, char **argv)
{
  const char *command = argc > 1 ? argv[1] : "";
  for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++) {
    if (strcmp(command, commands[i].name) == 0) return commands[i].function(argc - 1, argv + 1);
  }
  if (strcmp(command, "--help") == 0 || strcmp(command, "-h") == 0 ||
      strcmp(command, "help") == 0) {
    return give_help(argc - 1, argv + 1);
  }
  if (strcmp(command, "--version") == 0 || strcmp(command, "-V") == 0) {
    puts("fairlock " FAIRLOCK_VERSION);
    return end_output(EXIT_DONE);
  }
  if (*command == 0) complain("say what to do: run, status, watch, list or break");
  else complain("there is no subcommand '%s', only run, status, watch, list and break", command);
  fputs("Try 'fairlock --help'.\n", stderr);
  return EXIT_USAGE;
}
