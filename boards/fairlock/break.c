/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `fairlock break`: ends the hold of a lock, or asks its holder to release it, for an operator.
 *
 * It looks at the lock first, and then means the hold that the command line names or, without a
 * name, all that it saw: several, if they share the lock. It means no other: a hold that has begun
 * since is left alone. Without a name it asks on the terminal whether these holds are to end.
 */
#define _DEFAULT_SOURCE 1 /* what -std=c11 hides */

#include <inttypes.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/utsname.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#include "command.h"
#include "fairlock_operate.h"
#include "inspection.h"
#include "record.h"
#include "text.h"

#define MOST_WAIT_MS 86400000U
#define LOOK_MS      200
#define MOST_REASON  128 /* lock/FORMAT.md */

struct breaking {
  struct session session;
  const char *name;
  char *shown;                 /* the name, printable */
  const char *reason;          /* --reason; NULL: not given */
  char who[64];                /* USER@HOST */
  char words[256];             /* that, and why */
  const char *token;           /* --token, before it is parsed; NULL: not given */
  struct fairlock_target hold; /* that the command line names; after mean(), one of those meant */
  bool ask, yes;
  uint32_t wait_ms; /* NOT_GIVEN: it does not wait for the end */
  struct inspection seen;
  const struct holder *meant; /* those of seen that are meant: the first, and how many */
  size_t meant_count;
  uint64_t *asked; /* the tokens of the holds whose holders were asked */
  size_t asked_count;
  bool readable; /* the library could read the lock's keys */
  struct record record;
};

static const struct option_row options[] = {
    {"token", 0, OPTION_TEXT, offsetof(struct breaking, token), "N",
     .help = "end the hold with this token, if it has not ended"},
    {"holder", 0, OPTION_TEXT, offsetof(struct breaking, hold.holder), "ID",
     .help = "end the hold of this holder, as status prints it"},
    {"reason", 0, OPTION_TEXT, offsetof(struct breaking, reason), "TEXT",
     .help = "why: the holder is told, and status shows it, with who did it"},
    {"yes", 0, OPTION_FLAG, offsetof(struct breaking, yes), NULL,
     .help = "end the present hold, or holds, without asking on the terminal"},
    {"ask", 0, OPTION_FLAG, offsetof(struct breaking, ask), NULL,
     .help = "do not end it: ask its holder to release it. The holder decides;\n"
             "run sends its command a signal, see run --on-ask"},
    {"wait", 'w', OPTION_SECONDS, offsetof(struct breaking, wait_ms), "SECONDS",
     .help = "with --ask: wait at most this long for the hold to end", .least = 0,
     .most = MOST_WAIT_MS},
    {0},
};

static const struct command_line usage = {
    .command = "break",
    .usage = "fairlock break [--token N|--holder ID] [--ask|--yes] [--reason TEXT]\n"
             "                      [OPTION]... NAME",
    .about =
        "\n"
        "Ends the hold of the lock NAME, and hands the lock to the next in line. On a terminal it\n"
        "shows the hold and asks first. The holder is told at once if it listens, as fairlock run\n"
        "does. Any other finds out when it next renews or releases, and acts as the holder until\n"
        "then: only the fencing tokens tell the two holders apart. If several share the lock, it\n"
        "is the one that is named, or all of them.\n",
    .statuses =
        "Exit status: 0 the hold has ended, or its holder was asked (with -w: it has ended); 1 "
        "the\n"
        "lock is free or has other holds, or the answer was no; with --ask, a holder cannot be\n"
        "asked, or has not released; 71 also if the hold may have ended; 82 the lock is used by a\n"
        "later release in a way that this one does not know, or",
    .options = options,
};

/* Which hold is meant */

static bool is_named(const struct breaking *breaking)
{
  return breaking->hold.token != 0 || breaking->hold.holder != NULL;
}

/* True if the command line names this hold, its holder perhaps as status prints it. */
static bool names(const struct breaking *breaking, const struct holder *seen)
{
  const char *holder = breaking->hold.holder;
  if (breaking->hold.token != 0) return breaking->hold.token == seen->token;
  if (strcmp(holder, seen->party.id) == 0) return true;
  char *shown = party_shown(&seen->party);
  bool same = strcmp(holder, shown) == 0;
  free(shown);
  return same;
}

/* Finds the holds that are meant. Returns false if there are none. */
static bool find_meant(struct breaking *breaking)
{
  const struct inspection *seen = &breaking->seen;
  breaking->meant = seen->holders;
  breaking->meant_count = seen->holder_count;
  if (!is_named(breaking)) return seen->holder_count > 0;
  breaking->meant_count = 0;
  for (size_t i = 0; i < seen->holder_count && breaking->meant_count == 0; i++) {
    if (!names(breaking, &seen->holders[i])) continue;
    breaking->meant = &seen->holders[i];
    breaking->meant_count = 1;
  }
  return breaking->meant_count > 0;
}

/* True if a request can name the hold: see struct fairlock_target. */
static bool is_nameable(const struct holder *seen)
{
  const struct party *party = &seen->party;
  return seen->token != 0 ||
         (strlen(party->id) == party->id_size && strpbrk(party->id, " \t\n\v\f\r") == NULL &&
          strcmp(party->id, "*") != 0);
}

/* If not, only --yes can break the lock, whoever holds it by then. */
static bool are_nameable(const struct breaking *breaking)
{
  for (size_t i = 0; i < breaking->meant_count; i++) {
    if (!is_nameable(&breaking->meant[i])) return false;
  }
  return breaking->readable;
}

/* Makes this hold the one of the next request. */
static void mean(struct breaking *breaking, const struct holder *seen)
{
  breaking->hold.token = seen->token;
  breaking->hold.holder = seen->token == 0 ? seen->party.id : NULL;
}

/* Reading the lock, and messages about what was read */

static int look(struct breaking *breaking)
{
  int status =
      inspection_read(&breaking->seen, &breaking->session, breaking->name, strlen(breaking->name));
  breaking->readable = status == FAIRLOCK_OK;
  return status;
}

/* Says that the lock is free, or that it has no such hold as was meant. */
static int complain_of_other(const struct breaking *breaking)
{
  const struct inspection *seen = &breaking->seen;
  if (seen->holder_count == 0) {
    complain("%s is free: there was nothing to break", breaking->shown);
    return EXIT_CONFLICT;
  }
  fprintf(stderr, "fairlock: %s is ", breaking->shown);
  inspection_print_hold(stderr, seen, true);
  fprintf(stderr, ": %s, and nothing was done\n",
          seen->shared ? "none of them has that hold" : "that is another hold");
  return EXIT_CONFLICT;
}

/* Asks on the terminal. Input that was typed before the question is dropped. */
static bool is_confirmed(const struct breaking *breaking)
{
  char answer[16];
  fprintf(stderr, "%s: ", breaking->shown);
  inspection_print_hold(stderr, &breaking->seen, true);
  fprintf(stderr, "; %zu waiting\n", inspection_waiters(&breaking->seen));
  inspection_print_sharers(stderr, &breaking->seen, SIZE_MAX);
  (void)tcflush(STDIN_FILENO, TCIFLUSH);
  if (breaking->meant_count > 1)
    fprintf(stderr, "End these %zu holds? [y/N] ", breaking->meant_count);
  else fputs("End this hold? [y/N] ", stderr);
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
  status = breaking->ask ? fairlock_start_ask_release(&handle, &breaking->hold)
                         : fairlock_start_force_release(&handle, &breaking->hold);
  while (status == FAIRLOCK_PENDING) {
    fairlock_poll(client, PORT_WAIT_MAX_MS);
    status = fairlock_result(&handle);
  }
  (void)fairlock_deinit(&handle);
  return status;
}

/* Not one of the holds that were meant is there any more. */
static int all_gone(struct breaking *breaking)
{
  int status = look(breaking);
  return status == FAIRLOCK_OK ? complain_of_other(breaking)
                               : session_complain(&breaking->session, status);
}

static void say_broken(const struct breaking *breaking, const struct holder *ended)
{
  printf("%s: broken; it was ", breaking->shown);
  holder_print(stdout, ended, true);
  if (!breaking->seen.shared) printf("; %zu waiting", inspection_waiters(&breaking->seen));
  putchar('\n');
}

/* Writes to the history, if somebody keeps one, or FAIRLOCK_HISTORY says so, who has ended a hold. */
static void record_broken(struct breaking *breaking, const struct holder *ended)
{
  char address[ADDRESS_SIZE];
  struct entry_words *entry = record_next(&breaking->record, breaking->name);
  if (entry == NULL) return;
  session_address(&breaking->session, FAIRLOCK_OK, address);
  record_number(entry, RECORD_BROKEN, ended->token);
  record_text(entry, RECORD_ID, ended->party.id);
  record_text(entry, RECORD_BY, breaking->who);
  if (breaking->reason != NULL) record_text(entry, RECORD_REASON, breaking->reason);
  record_write(&breaking->record, address);
}

/*
 * Without FAIRLOCK_HISTORY the history is written to only if there is one; and not by a user of the
 * URL, whose rights may be for less: the server would log that it has refused the attempt.
 */
static int prepare_record(struct breaking *breaking, const struct command_line *line)
{
  struct record *record = &breaking->record;
  if (!record_default(line, &record->most)) return EXIT_USAGE;
  record->only_existing = record->most == 0;
  if (record->only_existing && breaking->session.config.user == NULL) record->most = RECORD_ENTRIES;
  return record_prepare(record, &breaking->session, line);
}

/* Ends each of the holds that are meant. Those that have ended before are passed over. */
static int end_each(struct breaking *breaking)
{
  const struct inspection *seen = &breaking->seen;
  size_t ended = 0;
  int status = FAIRLOCK_OK;
  for (size_t i = 0; i < breaking->meant_count; i++) {
    mean(breaking, &breaking->meant[i]);
    status = carry_out(breaking);
    if (status == FAIRLOCK_NOT_HELD) continue;
    if (status != FAIRLOCK_OK) break;
    say_broken(breaking, &breaking->meant[i]);
    record_broken(breaking, &breaking->meant[i]);
    ended++;
  }
  if (seen->shared && ended > 0)
    printf("%s: %zu of %zu holds ended; %zu waiting\n", breaking->shown, ended, seen->holder_count,
           inspection_waiters(seen));
  if (status != FAIRLOCK_OK && status != FAIRLOCK_NOT_HELD)
    return session_complain(&breaking->session, status);
  return ended > 0 ? EXIT_DONE : all_gone(breaking);
}

/* Ends whichever holds there are, because those that were seen cannot be named. */
static int end_any(struct breaking *breaking)
{
  breaking->hold = (struct fairlock_target){.token = FAIRLOCK_ANY_TOKEN, .words = breaking->words};
  int status = carry_out(breaking);
  if (status == FAIRLOCK_NOT_HELD) return all_gone(breaking);
  if (status != FAIRLOCK_OK) return session_complain(&breaking->session, status);
  if (!breaking->readable) printf("%s: broken; its holder could not be read\n", breaking->shown);
  for (size_t i = 0; i < breaking->meant_count; i++) {
    say_broken(breaking, &breaking->meant[i]);
    record_broken(breaking, &breaking->meant[i]);
  }
  return EXIT_DONE;
}

static void complain_of_deaf(const struct breaking *breaking, const struct holder *seen)
{
  char *id = party_shown(&seen->party);
  complain("%s: %s cannot be asked: it does not listen%s", breaking->shown,
           breaking->seen.shared ? id : "its holder",
           seen->token == 0 ? ", as it is no fairlock client" : "");
  free(id);
}

/* Asks one holder. Returns a status of the library; NOT_HELD: the hold has ended. */
static int ask_one(struct breaking *breaking, const struct holder *seen)
{
  mean(breaking, seen);
  int status = carry_out(breaking);
  if (status == FAIRLOCK_NOT_LISTENING) complain_of_deaf(breaking, seen);
  if (status != FAIRLOCK_OK) return status;
  char *id = party_shown(&seen->party);
  printf("%s: asked %s to release it\n", breaking->shown, id);
  free(id);
  breaking->asked[breaking->asked_count++] = seen->token;
  return status;
}

/* How many of those that were asked still hold, as was seen last. */
static size_t asked_left(const struct breaking *breaking)
{
  const struct inspection *seen = &breaking->seen;
  size_t left = 0;
  for (size_t i = 0; i < breaking->asked_count; i++) {
    for (size_t j = 0; j < seen->holder_count; j++)
      left += seen->holders[j].token == breaking->asked[i];
  }
  return left;
}

/* Waits until the holds whose holders were asked have ended. Returns an exit status. */
static int await_end(struct breaking *breaking)
{
  struct timespec pause = {0, LOOK_MS * 1000000L};
  uint32_t began = port_clock_ms();
  for (;;) {
    int status = look(breaking);
    if (status != FAIRLOCK_OK && !session_may_pass(&breaking->session, status))
      return session_complain(&breaking->session, status);
    size_t left = asked_left(breaking);
    if (status == FAIRLOCK_OK && left == 0) break;
    if (port_clock_ms() - began >= breaking->wait_ms) {
      if (status != FAIRLOCK_OK) return session_complain(&breaking->session, status);
      if (breaking->asked_count == 1)
        complain("%s: its holder has not released it", breaking->shown);
      else
        complain("%s: %zu of its %zu holders have not released it", breaking->shown, left,
                 breaking->asked_count);
      return EXIT_CONFLICT;
    }
    nanosleep(&pause, NULL);
  }
  printf("%s: the hold%s ended\n", breaking->shown, breaking->asked_count > 1 ? "s have" : " has");
  return EXIT_DONE;
}

/* Asks the holders of all holds that are meant. Those that have ended are passed over. */
static int ask_each(struct breaking *breaking)
{
  size_t deaf = 0;
  size_t gone = 0;
  size_t count = breaking->meant_count;
  breaking->asked = grown(NULL, count * sizeof *breaking->asked);
  for (size_t i = 0; i < count; i++) {
    int status = ask_one(breaking, &breaking->meant[i]);
    deaf += status == FAIRLOCK_NOT_LISTENING;
    gone += status == FAIRLOCK_NOT_HELD;
    if (status < 0 && status != FAIRLOCK_NOT_LISTENING && status != FAIRLOCK_NOT_HELD)
      return session_complain(&breaking->session, status);
  }
  if (gone == count) return all_gone(breaking);
  int status = EXIT_DONE;
  if (breaking->wait_ms != NOT_GIVEN && breaking->asked_count > 0 &&
      end_output(EXIT_DONE) == EXIT_DONE)
    status = await_end(breaking);
  return status == EXIT_DONE && deaf > 0 ? EXIT_CONFLICT : status;
}

static int break_lock(struct breaking *breaking)
{
  int status = look(breaking);
  /* a lock whose keys cannot be read can still be broken */
  if (!breaking->readable && status != FAIRLOCK_PROTOCOL)
    return session_complain(&breaking->session, status);
  bool named = is_named(breaking);
  if (breaking->readable && !find_meant(breaking)) return complain_of_other(breaking);
  bool nameable = are_nameable(breaking);
  if (!nameable && (named || !breaking->yes)) {
    complain(
        "%s: its holder cannot be %s, so another hold might be meant by now: nothing was done; "
        "--yes ends whichever it has",
        breaking->shown, breaking->readable ? "named in a request" : "read");
    return EXIT_CONFLICT;
  }
  if (breaking->ask) return ask_each(breaking);
  if (!named && !breaking->yes && !is_confirmed(breaking)) {
    complain("nothing was done");
    return EXIT_CONFLICT;
  }
  return nameable ? end_each(breaking) : end_any(breaking);
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

/*
 * USER@HOST, which is a claim, as anybody may send anything: words of FORMAT.md have no white space there,
 * and do not begin with a digit. Behind sudo, the user is the one who called that.
 */
static void find_who(char *who, size_t size)
{
  struct utsname host;
  const struct passwd *entry = getpwuid(geteuid());
  const char *place = uname(&host) == 0 ? host.nodename : "";
  const char *user = from_environment("SUDO_USER");
  if (user == NULL) user = entry != NULL ? entry->pw_name : "";
  snprintf(who, size, "%.31s@%.*s", user, (int)strcspn(place, "."), place);
  for (char *at = who; *at != 0; at++) {
    if (*at == ' ' || (*at >= '\t' && *at <= '\r') || (at == who && *at >= '0' && *at <= '9'))
      *at = '_';
  }
}

static void name_ourselves(struct breaking *breaking)
{
  const char *reason = breaking->reason;
  find_who(breaking->who, sizeof breaking->who);
  snprintf(breaking->words, sizeof breaking->words, "%s%s%s", breaking->who,
           reason != NULL ? " " : "", reason != NULL ? reason : "");
  breaking->hold.words = breaking->words;
}

static int settle(struct breaking *breaking, const struct command_line *line)
{
  bool terminal = isatty(STDIN_FILENO) && isatty(STDERR_FILENO);
  if (breaking->token != NULL && !parse_token(line, breaking->token, &breaking->hold.token))
    return EXIT_USAGE;
  if (breaking->hold.token != 0 && breaking->hold.holder != NULL)
    return misused(line, "--token names the hold, so does --holder: give one of them");
  if (breaking->ask && breaking->yes)
    return misused(line, "--ask leaves it to the holder, --yes does not: give one of them");
  if (breaking->reason != NULL &&
      (*breaking->reason == 0 || strlen(breaking->reason) > MOST_REASON))
    return misused(line, "--reason needs a text of 1 to %d bytes", MOST_REASON);
  name_ourselves(breaking);
  if (breaking->wait_ms != NOT_GIVEN && !breaking->ask) return misused(line, "-w goes with --ask");
  if (!is_named(breaking) && !breaking->ask && !breaking->yes && !terminal)
    return misused(line, "there is no terminal to ask on: name the hold by --token or --holder, or "
                         "give --yes to end the present one");
  return EXIT_DONE;
}

int break_command(int argc, char **argv)
{
  static struct breaking breaking;
  struct command_line line = usage;
  breaking.wait_ms = NOT_GIVEN;
  if (parse_options(&line, &breaking, argc, argv) != EXIT_DONE) return EXIT_USAGE;
  breaking.name = only_name(&line);
  if (breaking.name == NULL) return EXIT_USAGE;
  int status = settle(&breaking, &line);
  if (status == EXIT_DONE) status = session_prepare(&breaking.session, &line);
  if (status == EXIT_DONE) status = prepare_record(&breaking, &line);
  if (status == EXIT_DONE) status = session_connect(&breaking.session);
  if (status == EXIT_DONE) {
    breaking.shown = printable(breaking.name, strlen(breaking.name));
    status = end_output(break_lock(&breaking));
    inspection_clear(&breaking.seen);
    free(breaking.asked);
    free(breaking.shown);
    fairlock_client_deinit(&breaking.session.client);
  }
  free(line.url);
  return status;
}
