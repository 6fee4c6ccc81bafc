/*
 * `fairlock break`: ends the hold of a lock, or asks its holder to release it, for an operator.
 *
 * It looks at the lock first, and then means the hold that it saw, or that the command line names,
 * and no other: a hold that has begun since is left alone. Without a name it asks on the terminal
 * whether that hold is to end.
 */
#define _DEFAULT_SOURCE 1 /* what -std=c11 hides */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#include "command.h"
#include "inspection.h"
#include "text.h"

#define USAGE        "fairlock break [--token N|--holder ID] [--ask|--yes] [OPTION]... NAME"
#define MOST_WAIT_MS 86400000U
#define LOOK_MS      200

static const char *const help[] = {
    "usage: " USAGE "\n"
    "\n"
    "Ends the hold of the lock NAME, and hands the lock to the next in line. On a terminal it\n"
    "shows the hold and asks first. The holder finds out when it next renews or releases, and\n"
    "acts as the holder until then: only the fencing tokens tell the two holders apart.\n"
    "\n"
    "  --token N            end the hold with this token, if it has not ended\n"
    "  --holder ID          end the hold of this holder, as status prints it\n"
    "  --yes                end the present hold, without asking on the terminal\n"
    "  --ask                do not end it: ask its holder to release it. The holder decides;\n"
    "                       run sends its command a signal, see run --on-ask\n"
    "  -w, --wait SECONDS   with --ask: wait at most this long for the hold to end\n",
    common_help,
    "\n"
    "Exit status: 0 the hold has ended, or its holder was asked (with -w: it has ended); 1 the\n"
    "lock is free or has another hold, or the answer was no; with --ask, the holder cannot be\n"
    "asked, or has not released; 64 usage, 66 no password file, 71 no output (the hold may\n"
    "have ended), 75 server unreachable or unable to serve, 76 protocol error, 77 denied, 78 a\n"
    "replica, or the wrong node of a cluster.\n",
    NULL,
};

enum { OPTION_TOKEN = OPTION_OWN, OPTION_HOLDER, OPTION_ASK, OPTION_YES };

static const struct option options[] = {COMMON_OPTIONS,
                                        {"token", required_argument, NULL, OPTION_TOKEN},
                                        {"holder", required_argument, NULL, OPTION_HOLDER},
                                        {"ask", no_argument, NULL, OPTION_ASK},
                                        {"yes", no_argument, NULL, OPTION_YES},
                                        {"wait", required_argument, NULL, 'w'},
                                        {0}};

struct breaking {
  struct session session;
  const char *name;
  char *shown;               /* the name, printable */
  struct fairlock_hold hold; /* from the command line; after mean_seen(), the hold that was seen */
  bool ask, yes, waits;
  uint32_t wait_ms;
  struct inspection seen;
  bool readable; /* the library could read the lock's keys */
};

/* Which hold is meant */

static bool is_named(const struct breaking *breaking)
{
  return breaking->hold.token != 0 || breaking->hold.holder != NULL;
}

/*
 * True if the hold that was seen is the one that the command line names: by its token, or by its
 * holder's id, either as it is or as `fairlock status` prints it.
 */
static bool is_meant(const struct breaking *breaking)
{
  const struct inspection *seen = &breaking->seen;
  const char *holder = breaking->hold.holder;
  if (breaking->hold.token != 0) return breaking->hold.token == seen->token;
  if (holder == NULL || strcmp(holder, seen->holder.id) == 0) return true;
  char *shown = party_shown(&seen->holder);
  bool same = strcmp(holder, shown) == 0;
  free(shown);
  return same;
}

/*
 * Makes the hold that was seen the one to end: names it by its token or, if it has none, by its
 * holder. Returns false if no request can name it (see struct fairlock_hold for which ids it can).
 * Then only --yes can break the lock, whoever holds it by then.
 */
static bool mean_seen(struct breaking *breaking)
{
  const struct party *holder = &breaking->seen.holder;
  bool nameable = breaking->readable && strlen(holder->id) == holder->id_size &&
                  strpbrk(holder->id, " \t\n\v\f\r") == NULL && strcmp(holder->id, "*") != 0;
  breaking->hold.token = breaking->readable ? breaking->seen.token : 0;
  breaking->hold.holder = breaking->hold.token == 0 && nameable ? holder->id : NULL;
  return breaking->hold.token != 0 || nameable;
}

/* Reading the lock, and messages about what was read */

static int look(struct breaking *breaking)
{
  int status =
      inspection_read(&breaking->seen, &breaking->session, breaking->name, strlen(breaking->name));
  breaking->readable = status == FAIRLOCK_OK;
  return status;
}

/* Says that the lock is free, or that somebody else holds it than the command line names. */
static int complain_of_other(const struct breaking *breaking)
{
  if (!breaking->seen.held) {
    complain("%s is free: there was nothing to break", breaking->shown);
    return EXIT_CONFLICT;
  }
  fprintf(stderr, "fairlock: %s is ", breaking->shown);
  inspection_print_holder(stderr, &breaking->seen, true);
  fputs(": that is another hold, and nothing was done\n", stderr);
  return EXIT_CONFLICT;
}

/* Asks on the terminal. Input that was typed before the question is dropped. */
static bool is_confirmed(const struct breaking *breaking)
{
  char answer[16];
  fprintf(stderr, "%s: ", breaking->shown);
  inspection_print_holder(stderr, &breaking->seen, true);
  fprintf(stderr, "; %zu waiting\n", breaking->seen.waiter_count);
  (void)tcflush(STDIN_FILENO, TCIFLUSH);
  fputs("End this hold? [y/N] ", stderr);
  if (fgets(answer, sizeof answer, stdin) == NULL) {
    fputc('\n', stderr);
    return false;
  }
  answer[strcspn(answer, "\r\n")] = 0;
  return strcasecmp(answer, "y") == 0 || strcasecmp(answer, "yes") == 0;
}

/* Sending the request, and its result */

/* Returns a status of the library. */
static int carry_out(struct breaking *breaking)
{
  struct fairlock handle;
  struct fairlock_client *client = &breaking->session.client;
  int status = fairlock_init(&handle, client, breaking->name);
  if (status != FAIRLOCK_OK) return status;
  status = breaking->ask ? fairlock_start_ask(&handle, &breaking->hold)
                         : fairlock_start_force_release(&handle, &breaking->hold);
  while (status == FAIRLOCK_PENDING) {
    fairlock_poll(client, PORT_WAIT_MAX_MS);
    status = fairlock_result(&handle);
  }
  (void)fairlock_deinit(&handle);
  return status;
}

static int say_broken(const struct breaking *breaking)
{
  if (!breaking->readable) {
    printf("%s: broken; its holder could not be read\n", breaking->shown);
    return EXIT_DONE;
  }
  printf("%s: broken; it was ", breaking->shown);
  inspection_print_holder(stdout, &breaking->seen, true);
  printf("; %zu waiting\n", breaking->seen.waiter_count);
  return EXIT_DONE;
}

/* The holder was asked. With --wait, waits until the hold has ended. Returns an exit status. */
static int await_end(struct breaking *breaking)
{
  struct timespec pause = {0, LOOK_MS * 1000000L};
  uint32_t began = port_clock_ms();
  char *holder = party_shown(&breaking->seen.holder);
  printf("%s: asked %s to release it\n", breaking->shown, holder);
  free(holder);
  if (!breaking->waits || end_output(EXIT_DONE) != EXIT_DONE) return EXIT_DONE;
  for (;;) {
    int status = look(breaking);
    if (status != FAIRLOCK_OK && !session_may_pass(&breaking->session, status))
      return session_complain(&breaking->session, status);
    bool ended = breaking->seen.token != breaking->hold.token;
    if (status == FAIRLOCK_OK && ended) break;
    if (port_clock_ms() - began >= breaking->wait_ms) {
      if (status != FAIRLOCK_OK) return session_complain(&breaking->session, status);
      complain("%s: its holder has not released it", breaking->shown);
      return EXIT_CONFLICT;
    }
    nanosleep(&pause, NULL);
  }
  printf("%s: the hold has ended\n", breaking->shown);
  return EXIT_DONE;
}

static int on_result(struct breaking *breaking, int status)
{
  if (status == FAIRLOCK_OK) return breaking->ask ? await_end(breaking) : say_broken(breaking);
  if (status == FAIRLOCK_BUSY) {
    complain("%s: its holder cannot be asked: it does not listen%s", breaking->shown,
             breaking->readable && breaking->seen.token == 0 ? ", as it is no fairlock client"
                                                             : "");
    return EXIT_CONFLICT;
  }
  if (status == FAIRLOCK_NOT_HELD) status = look(breaking);
  return status == FAIRLOCK_OK ? complain_of_other(breaking)
                               : session_complain(&breaking->session, status);
}

static int break_lock(struct breaking *breaking)
{
  int status = look(breaking);
  /* a lock whose keys cannot be read can still be broken */
  if (!breaking->readable && status != FAIRLOCK_PROTOCOL)
    return session_complain(&breaking->session, status);
  bool named = is_named(breaking);
  if (breaking->readable && (!breaking->seen.held || !is_meant(breaking)))
    return complain_of_other(breaking);
  if (!mean_seen(breaking) && (named || !breaking->yes)) {
    complain(
        "%s: its holder cannot be %s, so another hold might be meant by now: nothing was done; "
        "--yes ends whichever it has",
        breaking->shown, breaking->readable ? "named in a request" : "read");
    return EXIT_CONFLICT;
  }
  if (!named && !breaking->yes && !breaking->ask && !is_confirmed(breaking)) {
    complain("nothing was done");
    return EXIT_CONFLICT;
  }
  return on_result(breaking, carry_out(breaking));
}

/* The command line */

static bool parse_token(const struct command_line *line, const char *text, uint64_t *token)
{
  size_t size = strlen(text);
  bool digits = size > 0 && size <= 16 && strspn(text, "0123456789") == size;
  *token = digits ? strtoull(text, NULL, 10) : 0;
  if (*token > 0 && *token <= (uint64_t)1 << 53) return true;
  misused(line, "--token needs a token, as status prints it, not '%s'", text);
  return false;
}

static bool take_option(struct breaking *breaking, const struct command_line *line, int option)
{
  switch (option) {
  case OPTION_TOKEN:
    return parse_token(line, optarg, &breaking->hold.token);
  case OPTION_HOLDER:
    breaking->hold.holder = optarg;
    return true;
  case OPTION_ASK:
    return breaking->ask = true;
  case OPTION_YES:
    return breaking->yes = true;
  case 'w':
    breaking->waits = true;
    return parse_seconds(line, "-w", optarg, 0, MOST_WAIT_MS, &breaking->wait_ms);
  default:
    return false;
  }
}

static int settle(const struct breaking *breaking, const struct command_line *line)
{
  bool terminal = isatty(STDIN_FILENO) && isatty(STDERR_FILENO);
  if (breaking->hold.token != 0 && breaking->hold.holder != NULL)
    return misused(line, "--token names the hold, so does --holder: give one of them");
  if (breaking->ask && breaking->yes)
    return misused(line, "--ask leaves it to the holder, --yes does not: give one of them");
  if (breaking->waits && !breaking->ask) return misused(line, "-w goes with --ask");
  if (!is_named(breaking) && !breaking->ask && !breaking->yes && !terminal)
    return misused(line, "there is no terminal to ask on: name the hold by --token or --holder, or "
                         "give --yes to end the present one");
  return EXIT_DONE;
}

int break_command(int argc, char **argv)
{
  static struct breaking breaking;
  struct command_line line = {.command = "break", .usage = USAGE};
  int option;
  while ((option = next_option(&line, argc, argv, ":hw:", options, help)) != -1) {
    if (!take_option(&breaking, &line, option)) return EXIT_USAGE;
  }
  if (optind == argc) return misused(&line, "the NAME of a lock is missing");
  if (optind + 1 < argc)
    return misused(&line, "one lock at a time: '%s' is one too many", argv[optind + 1]);
  breaking.name = argv[optind];
  if (!good_name(&line, breaking.name)) return EXIT_USAGE;
  int status = settle(&breaking, &line);
  if (status == EXIT_DONE) status = session_prepare(&breaking.session, &line);
  if (status == EXIT_DONE) status = session_connect(&breaking.session);
  if (status == EXIT_DONE) {
    breaking.shown = bytes_shown(breaking.name, strlen(breaking.name));
    status = end_output(break_lock(&breaking));
    inspection_clear(&breaking.seen);
    free(breaking.shown);
    fairlock_client_deinit(&breaking.session.client);
  }
  free(line.url);
  return status;
}
