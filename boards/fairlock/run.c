/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `fairlock run`: runs a command under a lock, as flock(1) does.
 *
 * This process does not speak to the server. The agent, another process (agent.c), holds the
 * lock; the guard, a third one (guard.c), is the parent of the command. This file waits for
 * messages from both and for signals, in three stages: until the lock is acquired; until the
 * command has ended and --at-least is over; until the lock is released. It passes signals and the
 * terminal on to the command, and its exit status is that of the command, unless the lock was lost.
 */
#define _DEFAULT_SOURCE 1 /* what -std=c11 hides */

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "command.h"
#include "agent.h"
#include "fairlock_log.h"
#include "fairlock_share.h"
#include "hold.h"
#include "options.h"
#include "record.h"
#include "signals.h"
#include "system.h"
#include "text.h"

#define LEASE_MS           30000U
#define MOST_CLAIM_MS      5000U /* the waiter timeout */
#define MOST_KILL_AFTER_MS 5000U
#define MOST_REPLICAS      100U
#define MOST_TOLD          16
#define ANSWER_MS          1000U /* by then the agent has answered, unless it is stopped */
#define MOST_ENDING_MS     6000U /* by then killed processes have ended, if they can be */
#define MOST_STOPPED       5     /* the agent may be found stopped so often in a row */

/* What happens to the command. Each stage follows the one before it; STOPPED may go back. */
enum stage {
  CONNECTING, /* the agent looks for a server, and has nothing to give back        */
  ACQUIRING,  /* the agent has asked for the lock, so it may have to give it back  */
  RUNNING,    /* the command runs                                                  */
  STOPPED,    /* it is stopped by job control                                      */
  ENDED       /* it has ended; what it has started may run                         */
};

/* How long the lock is to be held. This never goes back. */
enum hold {
  KEPT,    /* as --at-least says, too            */
  HURRIED, /* --at-least no longer counts        */
  LOST     /* it is not, or no longer, held      */
};

/* Whose children we get if the guard is killed. */
enum heirs {
  NONE,        /* nobody's                                    */
  ALL_OURS,    /* those of the command                        */
  WITH_OTHERS, /* the same, but we had children before        */
};

/* Which subcommand it is. */
enum kind { RUN = 1, HOLD = 2, ACQUIRE = 4 };

/* What the command line says, as long as it is parsed. */
struct given {
  bool nonblock, exclusive;
  uint32_t replicas, history;
  const char *string, *id;
};

struct run {
  enum kind kind;
  struct holding holding; /* not for RUN */
  struct agent_options lock;
  struct given given;
  char *shown;              /* the locks' names, printable   */
  char *names[MOST_LOCKS];  /* the same, each by itself      */
  size_t count;             /* how many                      */
  char **arguments;         /* the command and its arguments */
  uint32_t conflict_status; /* -E                            */
  uint32_t lost_status;     /* --lost-exit-code              */
  const char *metrics_file;
  bool wait_all; /* --wait-all */
  bool overdue;  /* --max-hold has ended what still ran */

  enum stage stage;
  enum hold hold;
  enum heirs heirs;
  struct grant grants[MOST_LOCKS];
  size_t granted;
  int64_t requested_at, acquired_at; /* in long_clock_ms(); 0: not yet */
  bool left;                         /* the wait was given up */
  int cancelled_by;                  /* the signal that ended the wait; 0: none */
  int ended_by;                      /* the signal that ended the wait, or the command; 0: none */
  int agent_stopped; /* looks in a row that found the agent stopped, before it held the lock */

  /* events that were reported since the last connection was made */
  struct agent_message told[MOST_TOLD];
  size_t told_count;
  struct session session;
  struct record record;
  char address[ADDRESS_SIZE]; /* of the server that has served us last; "": that of the URL */
  struct agent agent;
  struct terminal terminal;
  struct child child;
  int signals; /* readable when signals came */
};

/* The result of a wait: a signal, or a message from the agent, or a byte from the guard. */
struct event {
  int signal; /* 0: none */
  bool guard;
  struct agent_message agent; /* news 0: none */
};

/* The command line */

static const struct choice losing[] = {
    {"term", ON_LOST_TERM}, {"kill", ON_LOST_KILL}, {"ignore", ON_LOST_IGNORE}, {0}};

static const struct choice asking[] = {{"term", SIGTERM}, {"int", SIGINT},   {"hup", SIGHUP},
                                       {"quit", SIGQUIT}, {"usr1", SIGUSR1}, {"usr2", SIGUSR2},
                                       {"kill", SIGKILL}, {"ignore", 0},     {0}};

#define OF(member) offsetof(struct run, member)

static const struct option_row options[] = {
    {"nonblock", 'n', OPTION_FLAG, OF(given.nonblock), NULL,
     .help = "do not wait: fail if the lock is held, or others wait for it"},
    {"nb", 'n', OPTION_FLAG, OF(given.nonblock), NULL, .help = NULL},
    {"wait", 'w', OPTION_SECONDS, OF(lock.wait_ms), "SECONDS",
     .help = "wait for the lock for at most this long (fractions are allowed).\n"
             "Default: as long as the server gives a useful answer once a minute"},
    {"timeout", 'w', OPTION_SECONDS, OF(lock.wait_ms), "SECONDS",
     .help = "the same. It does not limit COMMAND: see --max-hold for that"},
    {"quiet", 'q', OPTION_FLAG, OF(lock.quiet), NULL,
     .help = "do not say who holds the lock when -n or -w ends the wait"},
    {"and", 0, OPTION_LIST, OF(lock.names[1]), "NAME",
     .help = "take this lock, too, and run COMMAND under all of them", .most = MOST_LOCKS - 1},
    {"conflict-exit-code", 'E', OPTION_STATUS, OF(conflict_status), "N",
     .help = "exit status when -n or -w ends the wait. Default: 1"},
    {"command", 'c', OPTION_TEXT, OF(given.string), "STRING",
     .help = "run STRING with $SHELL -c, or /bin/sh", .only = RUN},
    {"exclusive", 'x', OPTION_FLAG, OF(given.exclusive), NULL,
     .help = "hold the lock exclusively, as is the default"},
    {"shared", 's', OPTION_FLAG, OF(lock.shared), NULL,
     .help = "share it with others who run with -s, however many they are"},
    {"limit", 0, OPTION_COUNT, OF(lock.limit), "N",
     .help = "share it, while at most N hold it, 1 to 1000. If others give another\n"
             "number, the smallest that is in use binds",
     .least = 1, .most = FAIRLOCK_LIMIT_MAX},
    {"lease", 0, OPTION_SECONDS, OF(lock.lease_ms), "SECONDS",
     .help = "how long the lock stays held after a crash. Until then it is\n"
             "renewed at each third of the lease. Default: 30",
     .least = FAIRLOCK_LEASE_MIN_MS},
    {"claim", 0, OPTION_SECONDS, OF(lock.claim_ms), "SECONDS",
     .help = "how long the lock stays with this waiter if it is handed over and\n"
             "not taken, as after a crash. 1 to 5; default: 5",
     .least = FAIRLOCK_CLAIM_MIN_MS, .most = MOST_CLAIM_MS},
    {"on-lost", 0, OPTION_CHOICE, OF(lock.on_lost), "ACTION",
     .help = "what to do with COMMAND when the lock is lost, or nearly:\n"
             "term (default): SIGTERM, and SIGKILL when time runs out;\n"
             "kill: SIGKILL; ignore: let it run on",
     .choices = losing, .only = RUN},
    {"on-ask", 0, OPTION_CHOICE, OF(lock.on_ask), "SIGNAL",
     .help = "what to send COMMAND when break --ask asks for the lock: term\n"
             "(default), int, hup, quit, usr1, usr2, kill, or ignore: nothing",
     .choices = asking, .only = RUN},
    {"kill-after", 0, OPTION_SECONDS, OF(lock.kill_after_ms), "SECONDS",
     .help = "time between SIGTERM and SIGKILL; at most a third of the lease.\n"
             "Default: a sixth of it, at most 5",
     .only = RUN},
    {"at-least", 0, OPTION_SECONDS, OF(lock.at_least_ms), "SECONDS",
     .help = "hold the lock for this long even if COMMAND ends sooner: for jobs\n"
             "that machines with different clocks start",
     .only = RUN},
    {"max-hold", 0, OPTION_SECONDS, OF(lock.max_hold_ms), "SECONDS",
     .help = "end COMMAND, and all that it has started, when the lock has been\n"
             "held for this long, and exit with 83",
     .least = 1, .only = RUN},
    {"max-hold", 0, OPTION_SECONDS, OF(lock.max_hold_ms), "SECONDS",
     .help = "release when the lock has been held for this long", .least = 1, .only = HOLD},
    {"for", 0, OPTION_SECONDS, OF(lock.max_hold_ms), "SECONDS",
     .help = "release when the lock has been held for this long", .least = 1, .only = ACQUIRE},
    {"pid", 0, OPTION_COUNT, OF(holding.pid), "N", .help = "release when this process has ended",
     .least = 1, .most = 999999999, .only = ACQUIRE},
    {"state", 0, OPTION_TEXT, OF(holding.state), "FILE",
     .help = "the socket to make, by which fairlock release finds the hold", .only = ACQUIRE},
    {"wait-all", 0, OPTION_FLAG, OF(wait_all), NULL,
     .help = "hold the lock until all that COMMAND has started have ended, too", .only = RUN},
    {"lost-exit-code", 0, OPTION_STATUS, OF(lost_status), "N",
     .help = "exit status when the lock was lost. Default: 79"},
    {"metrics-file", 0, OPTION_TEXT, OF(metrics_file), "FILE",
     .help = "write counters to FILE, every 10 s and at the end, in Prometheus's\n"
             "format; as JSON if its name ends with .json"},
    {"history", 0, OPTION_MAYBE, OF(given.history), "[=N]",
     .help = "write to the lock's history, of at most about N entries, which\n"
             "fairlock history prints. N without a value: 1000; 0: write none.\n"
             "Default: $FAIRLOCK_HISTORY, 0",
     .most = RECORD_MOST_ENTRIES, .without = RECORD_ENTRIES},
    {"replicas", 0, OPTION_COUNT, OF(given.replicas), "N",
     .help = "hold the lock only while N replicas acknowledge it. N should\n"
             "be all that could be promoted. Default: $FAIRLOCK_REPLICAS, 0",
     .most = MOST_REPLICAS},
    {"id", 0, OPTION_TEXT, OF(given.id), "ID",
     .help = "the beginning of the holder's id, 1 to 40 characters. Default:\n"
             "$FAIRLOCK_ID, the host's name and the process id"},
    {"verbose", 0, OPTION_FLAG, OF(lock.verbose), NULL,
     .help = "say what happens to the connection and to the lock, and when"},
    {0},
};

static const struct command_line usage = {
    .command = "run",
    .usage = "fairlock run [OPTION]... NAME [--] COMMAND [ARGUMENT]...",
    .about = "       fairlock run [OPTION]... NAME -c STRING\n"
             "\n"
             "Waits in line for the lock NAME, runs COMMAND while it is held, and releases it.\n",
    .statuses =
        "COMMAND finds in its environment FAIRLOCK_NAME, FAIRLOCK_HOLDER and FAIRLOCK_TOKEN, the\n"
        "fencing token: pass it to what the lock protects, which should refuse older ones. With\n"
        "--and these are of the lock NAME, and FAIRLOCK_TOKENS has the tokens of all.\n"
        "FAIRLOCK_PASSWORD, FAIRLOCK_SENTINEL_PASSWORD, and a password in FAIRLOCK_URL, are not\n"
        "passed on to it.\n"
        "\n"
        "Exit status: COMMAND's. A signal that ends COMMAND, or the wait, ends fairlock, too: "
        "shells\n"
        "call that 128 + its number. Otherwise 1 (see -E) conflict or time-out, 69 COMMAND cannot "
        "be\n"
        "executed, 71 system error, 79 (see --lost-exit-code) lock lost, 80 held by a fairlock "
        "run\n"
        "that this one runs under, 82 a later release uses the lock in a way that this one does "
        "not\n"
        "know, 83 --max-hold is over, or",
    .options = options,
    .kind = RUN,
    .name_ends = true,
};

static const struct command_line usage_of_hold = {
    .command = "hold",
    .usage = "fairlock hold [OPTION]... NAME",
    .about =
        "\n"
        "Waits in line for the lock NAME, prints its fencing token and the holder's id, a space\n"
        "between them, and holds the lock while somebody reads its output, which has to be a "
        "pipe:\n"
        "  exec 9< <(fairlock hold NAME); read -r token id <&9 || exit; ...; exec 9<&-\n"
        "Who reads on finds the end of the output when the lock is lost.\n",
    .statuses =
        "Exit status: 0 released; 1 (see -E) conflict or time-out, 71 system error, 79 lock\n"
        "lost, 80 held by a fairlock run that this one runs under, 82 a later release uses the\n"
        "lock in a way that this one does not know, 83 --max-hold is over, or",
    .options = options,
    .kind = HOLD,
};

static const struct command_line usage_of_acquire = {
    .command = "acquire",
    .usage = "fairlock acquire --state FILE [--pid N] [--for SECONDS] [OPTION]... NAME",
    .about =
        "\n"
        "Waits in line for the lock NAME, prints its fencing token and the holder's id, a space\n"
        "between them, and leaves it held by a process in the background, until fairlock release\n"
        "FILE, the end of the process N, or the end of the time: one of these two is needed.\n",
    .statuses =
        "Exit status: 0 acquired; 1 (see -E) conflict or time-out, 71 system error, 80 held by\n"
        "a fairlock run that this one runs under, 82 a later release uses the lock in a way\n"
        "that this one does not know, or",
    .options = options,
    .kind = ACQUIRE,
};

/* Refuses options that contradict each other, and sets what follows from them. */
static int settle_options(struct run *run, const struct command_line *line)
{
  struct agent_options *lock = &run->lock;
  uint32_t sixth = lock->lease_ms / 6;
  if (run->given.nonblock && lock->wait_ms != FAIRLOCK_FOREVER)
    return misused(line, "-n does not wait, -w does: give one of them");
  if (run->given.nonblock) lock->wait_ms = 0;
  lock->shared = lock->shared || lock->limit > 0;
  if (run->given.exclusive && lock->shared)
    return misused(line, "-x holds the lock exclusively, %s shares it: give one of them",
                   lock->limit > 0 ? "--limit" : "-s");
  if (lock->kill_after_ms == NOT_GIVEN) {
    lock->kill_after_ms = sixth < MOST_KILL_AFTER_MS ? sixth : MOST_KILL_AFTER_MS;
  } else if (lock->kill_after_ms > lock->lease_ms / 3) {
    return misused(
        line,
        "--kill-after has to fit into a third of the lease, because renewing needs the rest: "
        "give at most %g, or --lease %g",
        lock->lease_ms / 3 / 1000.0, (double)lock->kill_after_ms * 3 / 1000.0);
  }
  if (lock->max_hold_ms > 0 && lock->at_least_ms >= lock->max_hold_ms)
    return misused(line, "--max-hold has to be longer than --at-least");
  if (run->kind == ACQUIRE && run->holding.state == NULL)
    return misused(line, "--state FILE is needed, by which fairlock release finds the hold");
  if (run->kind == ACQUIRE && run->holding.pid == 0 && lock->max_hold_ms == 0)
    return misused(line, "--pid N or --for SECONDS is needed, or the lock might be held for ever");
  if (run->metrics_file != NULL && *run->metrics_file == 0)
    return misused(line, "--metrics-file needs the name of a file");
  return EXIT_DONE;
}

/* Takes what the environment has if no option has it. */
static int settle_defaults(struct run *run, struct command_line *line)
{
  const struct given *given = &run->given;
  const char *replicas = from_environment("FAIRLOCK_REPLICAS");
  const char *id = from_environment("FAIRLOCK_ID");
  if (given->replicas != NOT_GIVEN) line->replicas = given->replicas;
  else if (replicas != NULL && !parse_count(line, "FAIRLOCK_REPLICAS", "a number", replicas, 0,
                                            MOST_REPLICAS, &line->replicas))
    return EXIT_USAGE;
  run->record.most = given->history;
  if (given->history == NOT_GIVEN && !record_default(line, &run->record.most)) return EXIT_USAGE;
  line->id = given->id != NULL ? given->id : id;
  bool good =
      line->id == NULL || good_id(line, given->id != NULL ? "--id" : "FAIRLOCK_ID", line->id);
  return good ? EXIT_DONE : EXIT_USAGE;
}

/* Takes NAME and the command. As with flock(1), -c may come after NAME. Returns an exit status. */
static int take_arguments(struct run *run, const struct command_line *line)
{
  static char *by_shell[4];
  struct given *given = &run->given;
  char **arguments = line->arguments;
  if (line->count == 0) return misused(line, "the NAME of a lock is missing");
  if (!good_name(line, arguments[0])) return EXIT_USAGE;
  const char **names = run->lock.names;
  names[0] = arguments[0];
  for (run->count = 1; names[run->count] != NULL; run->count++) {
    if (!good_name(line, names[run->count])) return EXIT_USAGE;
    for (size_t i = 0; i < run->count; i++)
      if (strcmp(names[i], names[run->count]) == 0)
        return misused(line, "--and needs a lock that is not named already");
  }
  char **rest = arguments + 1;
  bool escaped = *rest != NULL && strcmp(*rest, "--") == 0;
  if (escaped) rest++;
  else if (given->string == NULL && *rest != NULL &&
           (strcmp(*rest, "-c") == 0 || strcmp(*rest, "--command") == 0)) {
    if (rest[1] == NULL) return misused(line, "-c needs a value");
    given->string = rest[1];
    rest += 2;
  }
  if (run->kind != RUN) {
    if (line->count > 1) return misused(line, "only one NAME, and no COMMAND: see --and");
    return EXIT_DONE;
  }
  run->arguments = rest;
  if (given->string == NULL) {
    if (*rest == NULL) return misused(line, "there is no COMMAND to run, and no -c STRING");
    if (!escaped && **rest == '-')
      return misused(line,
                     "options come before the NAME, and %s after it; if that is the COMMAND, "
                     "write -- before it",
                     *rest);
    return EXIT_DONE;
  }
  if (*rest != NULL)
    return misused(line, "-c takes one STRING and no COMMAND, but '%s' follows: quote it all",
                   *rest);
  const char *shell = from_environment("SHELL");
  by_shell[0] = (char *)(shell != NULL ? shell : "/bin/sh");
  by_shell[1] = (char *)"-c";
  by_shell[2] = (char *)given->string;
  run->arguments = by_shell;
  return EXIT_DONE;
}

static int parse(struct run *run, enum kind kind, int argc, char **argv)
{
  struct command_line line = kind == RUN ? usage : kind == HOLD ? usage_of_hold : usage_of_acquire;
  run->kind = kind;
  run->lock.wait_ms = FAIRLOCK_FOREVER;
  run->lock.lease_ms = LEASE_MS;
  run->lock.kill_after_ms = NOT_GIVEN;
  run->lock.holders = getenv("FAIRLOCK_HOLDERS");
  run->lock.on_ask = kind == RUN ? SIGTERM : 0; /* nobody but the script can tell when it may end */
  run->conflict_status = EXIT_CONFLICT;
  run->lost_status = EXIT_LOST;
  run->given.replicas = NOT_GIVEN;
  run->given.history = NOT_GIVEN;
  int status = parse_options(&line, run, argc, argv);
  if (status == EXIT_DONE) status = take_arguments(run, &line);
  if (status == EXIT_DONE) status = settle_options(run, &line);
  if (status == EXIT_DONE) status = settle_defaults(run, &line);
  if (status == EXIT_DONE && kind != RUN) status = hold_prepare(&run->holding, &line);
  if (status == EXIT_DONE) status = session_prepare(&run->session, &line);
  if (status == EXIT_DONE) status = record_prepare(&run->record, &run->session, &line);
  free(line.url);
  return status;
}

/* Events, for --verbose */

static bool same_event(const struct agent_message *a, const struct agent_message *b)
{
  return a->event == b->event && a->status == b->status && strcmp(a->address, b->address) == 0 &&
         strcmp(a->text, b->text) == 0;
}

/* True if the event is to be reported: once until there is a connection, and MOST_TOLD at most. */
static bool is_new_event(struct run *run, const struct agent_message *event)
{
  if (event->event == FAIRLOCK_LOG_ASKED) return true; /* whenever it happens */
  if (event->event == FAIRLOCK_LOG_CONNECTED) {
    run->told_count = 0;
    return true;
  }
  for (size_t i = 0; i < run->told_count; i++)
    if (same_event(&run->told[i], event)) return false;
  if (run->told_count == MOST_TOLD) return false;
  run->told[run->told_count++] = *event;
  return true;
}

static void tell_event(const struct run *run, const struct agent_message *event)
{
  static const char *const texts[] = {
      [FAIRLOCK_LOG_CONNECTED] = "connected",
      [FAIRLOCK_LOG_NOT_CONNECTED] = "not connected: ",
      [FAIRLOCK_LOG_DISCONNECTED] = "disconnected: ",
      [FAIRLOCK_LOG_REDIRECTED] = "redirected",
      [FAIRLOCK_LOG_REFUSED] = "refused",
      [FAIRLOCK_LOG_ASKED] = "an operator asks for the hold with token ",
      [FAIRLOCK_LOG_BROKEN] = "told that the hold was broken: ",
  };
  int kind = event->event;
  bool failed = kind == FAIRLOCK_LOG_NOT_CONNECTED || kind == FAIRLOCK_LOG_DISCONNECTED;
  bool elsewhere = kind == FAIRLOCK_LOG_REDIRECTED;
  char *place = session_place(&run->session, elsewhere ? "" : event->address);
  char *words = session_words(event->text);
  const char *said = kind == FAIRLOCK_LOG_CONNECTED ? "" : words;
  if (kind == FAIRLOCK_LOG_ASKED) said += strspn(said, ": ");
  if (kind == FAIRLOCK_LOG_BROKEN)
    said += strspn(said, ": 0"); /* the words behind that begin with none */
  complain_of(event->at_ms, "%s: %s%s%s", place, texts[kind],
              failed ? fairlock_status_text(event->status) : "", said);
  free(words);
  free(place);
}

/* Waiting for something to happen */

/* False when the guard was killed. */
static bool is_guarded(const struct run *run)
{
  return run->agent.guard.pid > 0;
}

/* The guard was killed. Its children may have become ours (system_adopt()). */
static void on_guard_gone(struct run *run)
{
  pid_t guard = run->agent.guard.pid;
  if (guard == 0) return;
  guard_gone(&run->agent.guard, true); /* the command stays a zombie until we have reaped it */
  (void)waitpid(guard, NULL, 0);
}

/* Reaps agent, guard, and what is ours as process 1 of a container, or by system_adopt(). */
static void reap(struct run *run)
{
  pid_t pid;
  while ((pid = waitpid(-1, NULL, WNOHANG)) > 0) {
    if (pid == run->agent.pid) run->agent.pid = 0;
    if (pid == run->agent.guard.pid) on_guard_gone(run);
  }
}

/* The shorter of two times in ms, of which a negative one means never. */
static int sooner(int a, int b)
{
  return b < 0 || (a >= 0 && a < b) ? a : b;
}

/* Continues the guard if it was stopped. Only we, its parent, can see that. */
static void look_at_guard(const struct run *run)
{
  siginfo_t info = {0};
  if (!is_guarded(run)) return;
  int found = waitid(P_PID, (id_t)run->agent.guard.pid, &info, WSTOPPED | WNOHANG);
  if (found == 0 && info.si_pid != 0) guard_rouse(&run->agent.guard);
}

/* True while the wait is to end, as by SIGPIPE, when nobody reads the output any more. */
static bool awaits_reader(const struct run *run)
{
  return run->kind != RUN && run->stage < RUNNING && run->cancelled_by == 0;
}

/* The history is written to the server that has served us last. */
static void note_address(struct run *run, const struct agent_message *message)
{
  bool released = message->news == AGENT_RELEASED && message->status == FAIRLOCK_OK;
  bool left = message->news == AGENT_FAILED &&
              (message->status == FAIRLOCK_TIMEOUT || message->status == FAIRLOCK_CANCELLED);
  if (message->news == AGENT_ACQUIRED || released || left)
    memcpy(run->address, message->address, sizeof run->address);
}

/* Returns the next event, or an empty one after ms; negative: waits without a limit. */
static struct event await(struct run *run, int ms)
{
  struct event event = {0};
  uint32_t began = port_clock_ms();
  for (;;) {
    struct pollfd sources[] = {{.fd = run->signals, .events = POLLIN},
                               {.fd = run->agent.link, .events = POLLIN},
                               {.fd = run->agent.guard.run[0], .events = POLLIN},
                               {.fd = awaits_reader(run) ? STDOUT_FILENO : -1}};
    int tick = metrics_tick(&run->lock.metrics);
    uint32_t waited = port_clock_ms() - began;
    int left = ms < 0 ? ms : waited < (uint32_t)ms ? ms - (int)waited : 0;
    int ready = poll(sources, 4, sooner(left, tick));
    if (ready == 0 && left == sooner(left, tick)) return event;
    if (ready <= 0) continue; /* metrics_tick() is due, or a signal came, which is queued */
    if (sources[1].revents != 0) event.agent = agent_news(&run->agent);
    note_address(run, &event.agent);
    if (event.agent.news == AGENT_EVENT) {
      if (is_new_event(run, &event.agent)) tell_event(run, &event.agent);
      event.agent.news = 0;
      continue; /* what the guard says may follow from a message behind it */
    }
    if (event.agent.news == 0 && sources[0].revents != 0) event.signal = signals_next();
    if (event.agent.news == 0 && event.signal == 0 && sources[3].revents != 0)
      event.signal = SIGPIPE;
    event.guard = sources[2].revents != 0;
    if (event.guard && !guard_hear(&run->agent.guard.run[0])) on_guard_gone(run);
    if (event.signal == SIGCHLD) {
      look_at_guard(run);
      reap(run);
    }
    if (event.agent.news != 0 || event.signal != 0 || event.guard) return event;
  }
}

/* First stage: until the lock is acquired */

static bool ends_wait(int number)
{
  switch (number) {
  case SIGINT:
  case SIGTERM:
  case SIGHUP:
  case SIGQUIT:
  case SIGUSR1:
  case SIGUSR2:
  case SIGPIPE:
    return !signals_ignored_before(number);
  default:
    return false;
  }
}

/* Ctrl-Z sends SIGTSTP to our whole group. We have caught it, so we stop ourselves. */
static void stop_with_group(int number)
{
  if (number == SIGTSTP && !signals_ignored_before(number)) (void)raise(SIGSTOP);
}

static void end_wait(struct run *run)
{
  if (run->stage == ACQUIRING) agent_order(&run->agent, AGENT_CANCEL);
  else agent_kill(&run->agent);
}

static void on_signal_waiting(struct run *run, int number)
{
  stop_with_group(number);
  if (!ends_wait(number) || run->cancelled_by != 0) return;
  run->cancelled_by = number;
  end_wait(run);
}

/* The status that shells use. In the end run_command() sends us the same signal. */
static int ended_by(struct run *run, int number)
{
  run->ended_by = number;
  return 128 + number;
}

static void reap_agent(const struct run *run, const struct agent_message *last)
{
  if (!last->lingers && run->agent.pid > 0) (void)waitpid(run->agent.pid, NULL, 0);
}

/* Who holds the lock, which was not acquired in time, and since when; and how many wait. */
static void tell_rival(const struct run *run, const struct agent_message *message)
{
  char *id = printable(message->holder, strlen(message->holder));
  char since[32] = "", others[32] = "";
  if (message->token > 0) time_text(since, (int64_t)(message->token / 1000), " since %F %T");
  if (message->holders > 1) snprintf(others, sizeof others, " and %u more", message->holders - 1);
  complain("%s is %s%s%s%s, %u waiting", run->names[message->lock],
           message->holders > 0 ? "held by " : "free by now", id, since, others, message->waiters);
  free(id);
}

static int on_failure(struct run *run, const struct agent_message *message)
{
  reap_agent(run, message);
  run->left = run->cancelled_by != 0;
  if (run->lock.verbose && message->news == AGENT_FAILED)
    complain("%s was not acquired: %s", run->shown, fairlock_status_text(message->status));
  if (run->cancelled_by != 0) return ended_by(run, run->cancelled_by);
  if (message->news == AGENT_UNABLE) {
    complain("cannot %s: %s", message->text, strerror(message->status));
    return EXIT_SYSTEM;
  }
  if (!is_guarded(run)) {
    complain("%s was not acquired: the process that guards the command was killed", run->shown);
    return EXIT_SYSTEM;
  }
  if (message->news == AGENT_GONE) {
    complain("the process that holds the lock has ended unexpectedly; was it killed?");
    return EXIT_SYSTEM;
  }
  if (message->news == AGENT_NESTED) {
    complain("%s is held by the fairlock run that this one runs under: it would wait for itself",
             run->names[message->lock]);
    return EXIT_NESTED;
  }
  if (message->news == 0) {
    complain("%s was not acquired: the process that holds it is not running (was it stopped?)",
             run->shown);
    return EXIT_SYSTEM;
  }
  int status = message->status;
  run->left = status == FAIRLOCK_TIMEOUT;
  if (message->known) tell_rival(run, message);
  if (status == FAIRLOCK_BUSY || status == FAIRLOCK_TIMEOUT) return (int)run->conflict_status;
  return session_failed(&run->session, status, message->address, message->text);
}

static void on_retrying(const struct run *run, const struct agent_message *message)
{
  char *place = session_place(&run->session, message->address);
  char *words = session_words(message->text);
  complain("%s: %s%s; trying again", place, fairlock_status_text(message->status), words);
  free(words);
  free(place);
}

/*
 * No message came for a while. A stopped agent sends none, and loses its place or the lock: it is
 * killed, so that it does not go on later. We count looks and not time, because we may have been
 * stopped, too.
 */
static bool agent_is_stuck(struct run *run)
{
  run->agent_stopped = agent_is_stopped(&run->agent) ? run->agent_stopped + 1 : 0;
  if (run->agent_stopped <= MOST_STOPPED) return false;
  agent_kill(&run->agent);
  return true;
}

static void note_grant(struct run *run, const struct agent_message *acquired)
{
  struct grant *grant = &run->grants[run->granted++];
  grant->token = acquired->token;
  memcpy(grant->holder, acquired->holder, sizeof grant->holder);
  run->acquired_at = long_clock_ms();
}

/* Waits until the lock is held, and returns true; or returns false, with the exit status. */
static bool wait_for_lock(struct run *run, int *status)
{
  bool guarded = true;
  for (;;) {
    struct event event = await(run, ANSWER_MS);
    if (guarded && !is_guarded(run)) end_wait(run);
    guarded = is_guarded(run);
    switch (event.agent.news) {
    case 0:
      if (event.signal != 0) on_signal_waiting(run, event.signal);
      else if (!event.guard && agent_is_stuck(run)) {
        *status = on_failure(run, &event.agent);
        return false;
      }
      break;
    case AGENT_RETRYING:
      on_retrying(run, &event.agent);
      break;
    case AGENT_CONNECTED:
      if (run->lock.verbose) complain("%s is requested", run->shown);
      agent_order(&run->agent, AGENT_ACQUIRE);
      run->requested_at = long_clock_ms();
      run->stage = ACQUIRING;
      break;
    case AGENT_ACQUIRED:
      if (run->lock.verbose)
        complain("%s is acquired by %s, token %llu", run->names[event.agent.lock],
                 event.agent.holder, (unsigned long long)event.agent.token);
      note_grant(run, &event.agent);
      if (run->granted == run->count) return true;
      break;
    default:
      *status = on_failure(run, &event.agent);
      return false;
    }
  }
}

/* The history */

/* The begin of each hold. Nobody waits until it is written. */
static void record_begin(struct run *run)
{
  static const char *const instead[] = {
      [RUN] = "", [HOLD] = "fairlock hold", [ACQUIRE] = "fairlock acquire"};
  const char *command = run->kind == RUN ? run->arguments[0] : instead[run->kind];
  for (size_t i = 0; i < run->count; i++) {
    struct entry_words *entry = record_next(&run->record, run->lock.names[i]);
    if (entry == NULL) return;
    record_number(entry, RECORD_BEGIN, run->grants[i].token);
    record_text(entry, RECORD_ID, run->grants[i].holder);
    record_number(entry, RECORD_WAITED, (uint64_t)(run->acquired_at - run->requested_at));
    record_time(entry, WAIT_TIMES, run->acquired_at - run->requested_at);
    record_text(entry, RECORD_COMMAND, command);
    if (run->lock.shared) record_number(entry, RECORD_SHARED, run->lock.limit);
  }
  record_start(&run->record, run->address);
}

/* The end of each hold, or that the wait was given up. */
static void record_end(struct run *run, int status)
{
  bool held = run->granted == run->count && !run->left;
  if (!record_finish(&run->record) || (!held && !run->left)) return;
  for (size_t i = 0; i < run->count; i++) {
    struct entry_words *entry = record_next(&run->record, run->lock.names[i]);
    if (entry == NULL) return;
    if (held) {
      record_number(entry, run->hold == LOST ? RECORD_LOST : RECORD_END, run->grants[i].token);
      record_time(entry, HOLD_TIMES, run->lock.metrics.ended - run->lock.metrics.acquired);
    } else {
      int64_t waited_ms = long_clock_ms() - run->requested_at;
      record_text(entry, RECORD_LEFT, run->session.config.client_id);
      record_number(entry, RECORD_WAITED, (uint64_t)waited_ms);
      record_time(entry, WAIT_TIMES, waited_ms);
    }
    record_number(entry, RECORD_STATUS, (uint64_t)status);
  }
  record_start(&run->record, run->address);
  (void)record_finish(&run->record);
}

/* Second stage: while the command runs */

static void start(struct run *run)
{
  agent_guard(&run->agent);
  run->stage = RUNNING;
  terminal_open(&run->terminal);
  if (terminal_talks(&run->terminal))
    terminal_lend(&run->terminal, guard_command(&run->agent.guard));
  child_go(&run->child, run->grants, run->granted);
  if (run->kind == ACQUIRE) hold_let_go();
  metrics_acquired(&run->lock.metrics);
}

static void resume(struct run *run)
{
  if (run->stage != STOPPED) return;
  run->stage = RUNNING;
  terminal_lend(&run->terminal, guard_command(&run->agent.guard));
  guard_forward(&run->agent.guard, SIGCONT);
}

/*
 * The command was stopped. So that a shell which waits for us shows its prompt, we stop ourselves,
 * too, unless the command only wants the terminal: then it gets it.
 */
static void on_stop(struct run *run, int number)
{
  bool wants_terminal = number == SIGTTIN || number == SIGTTOU;
  run->stage = STOPPED;
  if (run->terminal.descriptor < 0 || (number != SIGTSTP && !wants_terminal)) return;
  if (wants_terminal && terminal_lend(&run->terminal, guard_command(&run->agent.guard))) {
    resume(run);
    return;
  }
  terminal_take_back(&run->terminal);
  bool stopped = signals_stop_group();
  if (!stopped && number == SIGTSTP) resume(run); /* nobody could continue us, so we did not stop */
}

/* Returns true, with its status, if the command has ended. Otherwise looks if it was stopped. */
static bool has_ended(struct run *run, int *status)
{
  int number = guard_take_stop(&run->agent.guard);
  if (guard_has_ended(&run->agent.guard, status) || !is_guarded(run)) return true;
  if (number != 0) on_stop(run, number);
  return false;
}

/* True for signals that ask us to end. After one of them --at-least no longer counts. */
static bool hurries(int number)
{
  bool hurry = number == SIGINT || number == SIGTERM || number == SIGQUIT || number == SIGHUP;
  return hurry && !signals_ignored_before(number);
}

static void hurry(struct run *run)
{
  if (run->hold != KEPT) return;
  run->hold = HURRIED;
  agent_order(&run->agent, AGENT_HURRY);
}

/* Says once that --max-hold is over. The guard ends what runs. */
static void look_for_overdue(struct run *run)
{
  if (run->overdue || !guard_is_overdue(&run->agent.guard)) return;
  run->overdue = true;
  complain("%s has been held for %g s (--max-hold); ending the command", run->shown,
           run->lock.max_hold_ms / 1000.0);
  hurry(run);
}

static void lose(struct run *run)
{
  run->hold = LOST;
  metrics_lost(&run->lock.metrics);
}

/* Why the lock is lost, to be freed. broken: as FAIRLOCK_LOG_BROKEN, or "". */
static char *why_lost(const char *broken)
{
  static const char any[] = "its lease ran out, it was broken, or its key deleted";
  const char *words = broken + strspn(broken, "0 ");
  if (*broken == 0) return copied(any, sizeof any - 1);
  char *shown = printable(words, strlen(words));
  size_t size = sizeof "it was broken by " + strlen(shown);
  char *why = grown(NULL, size);
  snprintf(why, size, "it was broken%s%s", *shown != 0 ? " by " : "", shown);
  free(shown);
  return why;
}

static void on_lost(struct run *run, const struct agent_message *message)
{
  static const char *const actions[] = {"ending the command", "killing the command",
                                        "the command continues without it"};
  bool ended = run->stage == ENDED;
  const char *action = ended ? "the command has ended" : actions[run->lock.on_lost];
  const char *shown = run->names[message->lock];
  bool known = run->hold == LOST;
  lose(run);
  if (known && message->news == AGENT_LOST) return;
  if (message->news == AGENT_GONE) {
    complain("the process that holds %s was killed; %s", run->shown, action);
    if (!ended && run->lock.on_lost != ON_LOST_IGNORE) guard_end_all(&run->agent.guard);
  } else if (message->status == FAIRLOCK_LOST) {
    char *why = why_lost(message->text);
    complain("%s is lost: %s; %s", shown, why, action);
    free(why);
  } else {
    char *place = session_place(&run->session, message->address);
    char *words = session_words(message->text);
    bool silent = message->status == FAIRLOCK_UNREACHABLE;
    complain("%s could not be renewed in time: %s%s%s%s; %s", shown, place,
             silent ? " has not answered" : ": ",
             silent ? "" : fairlock_status_text(message->status), words, action);
    free(words);
    free(place);
  }
}

static void on_asked(struct run *run, const struct agent_message *message)
{
  const char *signal = "nothing";
  const char *name = run->names[message->lock];
  char *shown = printable(message->text, strlen(message->text));
  const char *before = *shown != 0 ? ": " : "";
  /* as if somebody had sent us the signal that the command gets */
  if (hurries(run->lock.on_ask) || run->lock.on_ask == SIGKILL) hurry(run);
  if (run->stage == ENDED) {
    complain("%s is asked for by an operator%s%s; %s", name, before, shown,
             run->hold != KEPT ? "it is released now" : "it stays held until --at-least is over");
    free(shown);
    return;
  }
  for (const struct choice *at = asking; at->number != 0; at++)
    if (at->number == run->lock.on_ask) signal = at->name;
  complain("%s is asked for by an operator%s%s; sent %s to the command", name, before, shown,
           signal);
  free(shown);
}

/* The agent will send no more messages. */
static void hang_up(struct run *run)
{
  close(run->agent.link);
  run->agent.link = -1;
}

static void on_unkept(struct run *run, const char *action)
{
  lose(run);
  complain("%s could not be renewed in time: the process that holds it is not running (was it "
           "stopped?); %s",
           run->shown, action);
}

/* If the agent was stopped, the guard has ended the command, and no message has told us. */
static void look_for_guard(struct run *run)
{
  if (run->hold == LOST || !guard_acted(&run->agent.guard)) return;
  on_unkept(run, run->lock.on_lost == ON_LOST_IGNORE ? "the command continued without it"
                                                     : "the command was ended");
}

/* True while processes of the command run that have to end before the lock is released. */
static bool has_rest(const struct run *run)
{
  return is_guarded(run) && !guard_is_empty(&run->agent.guard);
}

/* Handles an event while the lock is held. What still runs gets the signals. */
static void on_event(struct run *run, const struct event *event)
{
  int number = event->signal;
  bool ours = number == SIGCHLD || number == SIGCONT || (number == SIGTSTP && run->stage == ENDED);
  if (event->agent.news == AGENT_ASKED) on_asked(run, &event->agent);
  else if (event->agent.news != 0) on_lost(run, &event->agent);
  if (event->agent.news == AGENT_GONE) hang_up(run);
  look_for_overdue(run);
  if (hurries(number)) hurry(run);
  if (number == SIGCONT) resume(run);
  if (run->stage == ENDED) stop_with_group(number);
  if (number != 0 && !ours && has_rest(run)) guard_forward(&run->agent.guard, number);
}

/* Sends a signal to all processes that we have got from the guard; 0: none. Returns as below. */
static int signal_adopted(const struct run *run, int number)
{
  const char *holder = run->heirs == WITH_OTHERS ? run->grants[0].holder : NULL;
  return system_signal_below(getpid(), run->agent.pid, 0, holder, number);
}

/* Kills them all. Returns false if some may be left. */
static bool kill_adopted(struct run *run)
{
  const struct timespec step = {0, 20 * 1000000L};
  uint32_t began = port_clock_ms();
  int left = 1;
  while (left > 0 && port_clock_ms() - began < MOST_ENDING_MS) {
    reap(run);
    left = signal_adopted(run, SIGKILL);
    if (left > 0) (void)nanosleep(&step, NULL);
  }
  return left == 0 && run->heirs == ALL_OURS; /* among others, some may look alike */
}

/*
 * The guard is gone, and nobody can tell how the command has ended. Kills all that it has started.
 * If some of that may be left, the agent is killed, and the lock is left to its lease.
 */
static int end_without_guard(struct run *run)
{
  complain("the process that guards the command was killed; killing the command");
  bool sees_all = run->heirs != NONE && signal_adopted(run, 0) >= 0;
  bool killed =
      sees_all ? kill_adopted(run) : run->heirs == NONE && guard_group_ends(&run->agent.guard);
  if (!killed) agent_kill(&run->agent);
  return EXIT_SYSTEM;
}

/* True if the processes that the command has left are to be ended. */
static bool is_to_end(const struct run *run, int status)
{
  if (run->hold == LOST) return run->lock.on_lost != ON_LOST_IGNORE;
  return run->hold == HURRIED || WIFSIGNALED(status);
}

/* Ends what the command has left. While that fails the lock stays held, unless it is lost. */
static void end_rest(struct run *run)
{
  uint32_t began = port_clock_ms();
  uint32_t patience = run->lock.kill_after_ms + MOST_ENDING_MS;
  bool told = false;
  guard_end_all(&run->agent.guard);
  while (has_rest(run)) {
    bool stubborn = port_clock_ms() - began >= patience;
    if (stubborn && run->hold == LOST) return;
    if (stubborn && !told)
      complain("%s stays held: what the command has started cannot be ended", run->shown);
    told = told || stubborn;
    struct event event = await(run, stubborn ? -1 : (int)patience);
    on_event(run, &event);
  }
}

/*
 * Sees to what the command has left when it ended with this status of waitpid(). It is ended if the
 * command was ended by a signal, or as soon as we are to hurry or the lock is lost. Otherwise
 * --wait-all says that we wait for it; without that, it goes on without the lock.
 */
static void finish_rest(struct run *run, int status)
{
  while (run->wait_all && has_rest(run) && !is_to_end(run, status)) {
    struct event event = await(run, -1);
    on_event(run, &event);
  }
  if (has_rest(run) && is_to_end(run, status)) end_rest(run);
}

/*
 * The command had the terminal, and SIGINT or SIGQUIT from it. Without us the terminal would have
 * signalled our whole group, on which a script or a make that started us relies. So we do it.
 */
static void pass_interrupt(struct run *run, int status)
{
  bool was_lent = run->terminal.lent;
  terminal_take_back(&run->terminal);
  if (!was_lent || !WIFSIGNALED(status)) return;
  int number = WTERMSIG(status);
  if (number != SIGINT && number != SIGQUIT) return;
  hurry(run);
  signals_tell_group(number);
}

/* Waits until the command has ended. Returns its exit status. */
static int supervise(struct run *run)
{
  int status = 0;
  while (!has_ended(run, &status)) {
    struct event event = await(run, -1);
    on_event(run, &event);
  }
  run->stage = ENDED;
  look_for_guard(run);
  look_for_overdue(run);
  pass_interrupt(run, status);
  bool known = guard_has_ended(&run->agent.guard, &status);
  if (known) finish_rest(run, status);
  if (!is_guarded(run)) {
    int failed = end_without_guard(run);
    if (!known) return failed;
  }
  guard_leave(&run->agent.guard);
  if (run->overdue) return EXIT_OVERDUE;
  return WIFSIGNALED(status) ? ended_by(run, WTERMSIG(status)) : WEXITSTATUS(status);
}

/*
 * Waits until --at-least is over, while the agent renews. We cannot leave the rest to a lease of
 * the right length, because a lease that was granted cannot be shortened.
 */
static void outwait(struct run *run)
{
  bool told = !run->lock.verbose;
  for (;;) {
    int64_t kept = long_clock_ms() - run->acquired_at;
    if (run->hold != KEPT || kept >= run->lock.at_least_ms) return;
    uint32_t left = run->lock.at_least_ms - (uint32_t)kept;
    if (!told) complain("%s stays held for another %g s", run->shown, left / 1000.0);
    told = true;
    struct event event = await(run, (int)left);
    on_event(run, &event);
  }
}

/* Third stage: until the lock is released */

static int on_released(struct run *run, const struct agent_message *message, int status)
{
  if (run->hold == LOST) return (int)run->lost_status;
  if (message->news == AGENT_RELEASED && message->status == FAIRLOCK_OK) {
    if (run->lock.verbose) complain("%s is released", run->shown);
    return status;
  }
  if (message->news == AGENT_RELEASED && message->status == FAIRLOCK_LOST) {
    lose(run);
    char *why = why_lost(message->text);
    complain("%s was lost %s: %s", run->shown,
             run->lock.at_least_ms > 0 ? "before --at-least was over" : "while the command ran",
             why);
    free(why);
    return (int)run->lost_status;
  }
  const char *why = fairlock_status_text(message->status);
  if (message->news == AGENT_GONE) why = "its agent was killed";
  if (message->news == 0) why = "its agent does not answer (was it stopped?)";
  if (message->text[0] != 0)
    (void)session_failed(&run->session, message->status, message->address, message->text);
  complain("%s could not be released: %s; %s its lease of %g s has run out, or earlier", run->shown,
           why, message->lingers ? "its agent goes on trying until" : "it is free when",
           run->lock.lease_ms / 1000.0);
  return status;
}

/* As process 1 of a container we wait for the agent, which we would end. A signal ends that. */
static void outlast(struct run *run)
{
  struct event event = {0};
  while (getpid() == 1 && event.agent.news != AGENT_GONE && !ends_wait(event.signal))
    event = await(run, -1);
}

/*
 * Makes the agent release the lock, and waits for the answer. A signal ends only the wait. An agent
 * that is stopped is killed, so that it does not go on with an old lock later.
 */
static int release(struct run *run, int status)
{
  struct event event = {0};
  uint32_t patience = (run->hold == LOST ? AGENT_LATE_RELEASE_MS : AGENT_RELEASE_MS) + ANSWER_MS;
  uint32_t began = port_clock_ms();
  if (run->agent.link < 0) {
    reap_agent(run, &event.agent);
    return (int)run->lost_status;
  }
  agent_order(&run->agent, AGENT_RELEASE);
  for (;;) {
    uint32_t waited = port_clock_ms() - began;
    event = await(run, waited < patience ? (int)(patience - waited) : 0);
    if (event.agent.news == AGENT_LOST || event.agent.news == AGENT_ASKED) continue;
    if (event.agent.news != 0) break;
    if (event.signal == 0 && event.guard) continue;
    if (event.signal == 0) {
      agent_kill(&run->agent);
      break;
    }
    if (ends_wait(event.signal) && event.signal != SIGUSR1 && event.signal != SIGUSR2) {
      return run->hold == LOST ? (int)run->lost_status : status;
    }
  }
  reap_agent(run, &event.agent);
  status = on_released(run, &event.agent, status);
  if (event.agent.lingers) outlast(run);
  return status;
}

/*
 * True if too little of the hold is left to start the command, because we or the agent were
 * stopped. It may have reported the loss, too, in a message that we have not read yet.
 */
static bool too_late(struct run *run)
{
  if (agent_may_begin(&run->agent)) return false;
  complain("%s was acquired and lost before the command could be started", run->shown);
  lose(run);
  return true;
}

static int run_under_lock(struct run *run)
{
  int status;
  if (!wait_for_lock(run, &status)) return status;
  run->left = true;
  if (run->cancelled_by != 0) return release(run, ended_by(run, run->cancelled_by));
  if (too_late(run)) return release(run, (int)run->lost_status);
  run->left = false;
  start(run);
  record_begin(run);
  status = supervise(run);
  outwait(run);
  if (run->hold != LOST && agent_let_it_end(&run->agent)) on_unkept(run, "the command has ended");
  return release(run, status);
}

/* Does all that the system can refuse, before any request is sent. Returns what failed, or NULL. */
static const char *start_all(struct run *run)
{
  siginfo_t child;
  run->signals = signals_catch();
  if (run->signals < 0) return "make a pipe";
  if (metrics_start(&run->lock.metrics, run->metrics_file, &run->session, run->lock.names[0]) != 0)
    return "share memory";
  bool others = waitid(P_ALL, 0, &child, WEXITED | WNOHANG | WNOWAIT) == 0;
  run->heirs = !system_adopt() ? NONE : others ? WITH_OTHERS : ALL_OURS;
  run->child.keep = hold_keep;
  run->child.context = &run->holding;
  if (child_prepare(&run->child, run->arguments, run->lock.names[0]) != 0) return "make a pipe";
  return agent_start(&run->agent, &run->session, &run->lock, &run->child);
}

/* The names for messages: "a", or "a + b". */
static void show_names(struct run *run)
{
  size_t size = 0;
  for (size_t i = 0; i < run->count; i++) {
    const char *name = run->lock.names[i];
    run->names[i] = printable(name, strlen(name));
    size_t more = strlen(" + ") + strlen(run->names[i]);
    run->shown = grown(run->shown, size + more + 1);
    size +=
        (size_t)snprintf(run->shown + size, more + 1, "%s%s", i > 0 ? " + " : "", run->names[i]);
  }
}

static int perform(enum kind kind, int argc, char **argv)
{
  static struct run run;
  int status = parse(&run, kind, argc, argv);
  if (status != EXIT_DONE) return status;
  if (run.lock.verbose) complain_with_times();
  show_names(&run);
  const char *failed = start_all(&run);
  if (failed != NULL) {
    complain("cannot %s: %s", failed, strerror(errno));
    return EXIT_SYSTEM;
  }
  status = run_under_lock(&run);
  guard_dismiss(&run.agent.guard);
  metrics_stopped(&run.lock.metrics, status);
  if (kind == ACQUIRE) hold_answer(&run.holding, run.granted > 0, status);
  record_end(&run, status);
  for (size_t i = 0; i < run.count; i++)
    free(run.names[i]);
  free(run.shown);
  if (run.ended_by != 0 && status == 128 + run.ended_by && run.hold != LOST)
    signals_end_by(run.ended_by);
  return status; /* also as process 1 of a container, which no signal ends */
}

int run_command(int argc, char **argv)
{
  return perform(RUN, argc, argv);
}

int hold_command(int argc, char **argv)
{
  return perform(HOLD, argc, argv);
}

int acquire_command(int argc, char **argv)
{
  return perform(ACQUIRE, argc, argv);
}
