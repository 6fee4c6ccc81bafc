/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The lock at work: eight contenders, half of them processes, half of them threads that share a
 * client, on one lock.
 *
 *     demo --server REDIS-SERVER | --url URL [--kill PID]  [--pace MS] [--shared] [--meddle] [--svg FILE]
 *
 * This process tells the story: it lets the contenders come one after the other, waits until the
 * server has seen each, and decides when each holder releases, so that no timing decides what
 * happens. It kills one contender that waits and one that holds. It contends for nothing itself;
 * what it knows is in the records, and what it shows of the server is an inspection. At the end it
 * says what the records prove: exit status 0 if the order was kept and there never were two
 * holders, 1 if not, 2 if the demo could not run, 130 when interrupted. Nothing is left running in
 * any case.
 *
 * --pace: how long each works, in ms. --shared: seven of them are readers, who share the lock up to
 * a limit, and one is a writer. --meddle: delete the key of the lock while its first holder, or the
 * writer, holds, which is not told, to see the verdict go bad. --svg: draw what happened into that file. --kill:
 * the process of the master of servers that move; it is killed, instead of a contender that holds.
 */
#include "demo.h"
#include "support/process.h"
#include "support/raw.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { TICK_MS = 10, INSPECT_MS = 100, PATIENCE_MS = 30000 };

static struct contender *all; /* in memory shared with the contenders */
static struct server server;
static struct fairlock_client observer;
static pid_t team;
static int64_t started;
static int64_t pace_ms = 1400;
static pid_t master; /* to be killed; 0: none */
static bool shared;  /* readers share the lock */
static struct fairlock view;
static int listening, seen_listening; /* waiters: in the inspection that goes on, in the last one */
static int64_t asked_at;              /* when the last one that was answered was begun */
static int arrivals;
static char lock_name[32];
static volatile sig_atomic_t interrupted;

int64_t story_us(void)
{
  return now_us() - started + 1;
}

/* What the server says */

struct contender *find_contender(struct contender *contenders, const struct fairlock_report *report)
{
  for (int i = 0; i < CONTENDERS && report->id != NULL; i++) {
    struct contender *contender = &contenders[i];
    if (contender->stage < READY || strlen(contender->id) != report->id_size) continue;
    if (memcmp(contender->id, report->id, report->id_size) == 0) return contender;
  }
  return NULL;
}

/*
 * Who is seen first has arrived first: the server lists the holder, and then the line in its order.
 */
static void note_arrival(const struct fairlock_report *report)
{
  struct contender *contender = find_contender(all, report);
  if (contender == NULL || contender->arrival != 0) return;
  contender->arrived_at = story_us();
  contender->arrival = ++arrivals;
  if (report->place > 0)
    screen_event("%s is in line, at place %u", contender->name, (unsigned)report->place);
}

static bool take_report(const struct fairlock_report *report, void *context)
{
  (void)context;
  if (report->place == 0) listening = 0;
  else if (report->listens && report->life == FAIRLOCK_LIFE_ALIVE) listening++;
  note_arrival(report);
  screen_report(report);
  return true;
}

/* An inspection may take long, where servers move; it goes on while the story does. */
static void inspect(void)
{
  static int64_t due;
  static int64_t began;
  static bool failing, asked;
  if (story_us() < due) return;
  if (!asked) began = story_us();
  int status = asked ? FAIRLOCK_PENDING : fairlock_start_inspect(&view, take_report, NULL);
  asked = status == FAIRLOCK_PENDING;
  if (asked) fairlock_poll(&observer, 0);
  if (asked) status = fairlock_result(&view);
  if (status == FAIRLOCK_PENDING) {
    screen_draw();
    return;
  }
  asked = false;
  if (status == FAIRLOCK_OK) {
    seen_listening = listening;
    asked_at = began;
  }
  if (status != FAIRLOCK_OK && !failing)
    screen_event("cannot inspect: %s", fairlock_status_text(status));
  failing = status != FAIRLOCK_OK;
  due = story_us() + (int64_t)INSPECT_MS * 1000;
  screen_draw();
}

/* What the contenders did */

static const struct contender *holder_before(const struct contender *self)
{
  const struct contender *order[CONTENDERS];
  int count = grants(all, order);
  for (int i = 1; i < count; i++) {
    if (order[i] == self) return order[i - 1];
  }
  return NULL;
}

static void tell_shared_grant(const struct contender *self)
{
  int others = -1;
  for (int i = 0; i < CONTENDERS; i++)
    others += all[i].granted_at != 0 && end_of_hold(&all[i]) > story_us();
  screen_event("%s holds, %s; it waited %.1f s", self->name,
               self->limit == 0 ? "alone"
               : others > 0     ? "beside others"
                                : "the first of those who share",
               (double)(self->granted_at - self->asked_at) / 1e6);
}

static void tell_grant(const struct contender *self)
{
  if (shared) {
    tell_shared_grant(self);
    return;
  }
  const struct contender *before = holder_before(self);
  double handover = (double)handover_us(all, self);
  double waited = (double)(self->granted_at - self->asked_at) / 1e6;
  if (before == NULL) screen_event("%s holds, at once: nobody did", self->name);
  else if (before->killed_at != 0)
    screen_event("%s holds, %.2f s after the kill: the lease ran out", self->name, handover / 1e6);
  else
    screen_event("%s holds, %.2f ms after the release; it waited %.1f s", self->name,
                 handover / 1e3, waited);
}

/* Tells what happened before now, in the order in which it happened. */
static void tell_events(int64_t now)
{
  static struct {
    bool granted, left, failed;
  } told[CONTENDERS];
  for (;;) {
    int64_t first = now;
    int who = -1;
    for (int i = 0; i < CONTENDERS; i++) {
      int64_t at = !told[i].granted ? all[i].granted_at : !told[i].left ? all[i].left_at : 0;
      if (at == 0 || at >= first) continue;
      first = at;
      who = i;
    }
    if (who < 0) break;
    if (told[who].granted) {
      told[who].left = true;
      screen_event("%s releases", all[who].name);
    } else {
      told[who].granted = true;
      tell_grant(&all[who]);
    }
  }
  for (int i = 0; i < CONTENDERS; i++) {
    if (all[i].stage != FAILED || told[i].failed) continue;
    told[i].failed = true;
    screen_event("%s failed: %s", all[i].name, fairlock_status_text(all[i].status));
  }
}

/* A contender whose process ended although nobody killed it is killed as well, but not by us. */
static void reap_killed(void)
{
  pid_t pid;
  while ((pid = waitpid(-1, NULL, WNOHANG)) > 0) {
    for (int i = 0; i < CONTENDERS; i++) {
      bool over = all[i].stage >= RELEASED || all[i].killed_at != 0;
      if (all[i].pid == pid && !over) screen_event("%s died", all[i].name);
      if (all[i].pid == pid) all[i].pid = 0;
    }
    if (pid == team) team = 0;
    if (pid == server.pid) {
      server.pid = 0;
      screen_event("the server died");
    }
  }
}

/* One step of looking on. Returns false when the story has to end: interrupted. */
static bool look_on(void)
{
  if (interrupted) return false;
  reap_killed();
  tell_events(story_us());
  inspect();
  sleep_ms(TICK_MS);
  return true;
}

static bool look_on_for(int64_t ms)
{
  int64_t until = story_us() + ms * 1000;
  while (story_us() < until) {
    if (!look_on()) return false;
  }
  return true;
}

/* The story */

static bool has_arrived(const struct contender *self)
{
  return self->arrival != 0 && self->stage >= WAITING;
}

static bool is_ready(const struct contender *self)
{
  return self->stage >= READY;
}

/*
 * Looks on until condition is true of self. A long time without it, or the contender's failure,
 * ends the story.
 */
static bool look_on_until(bool (*condition)(const struct contender *), const struct contender *self)
{
  int64_t limit = story_us() + (int64_t)PATIENCE_MS * 1000;
  while (!condition(self)) {
    if (!look_on() || self->stage == FAILED || story_us() > limit) return false;
  }
  return true;
}

static void start_contenders(void)
{
  pid_t parent = getpid();
  for (int i = 0; i < CONTENDERS; i++) {
    all[i].thread = i % 2 == 1;
    all[i].limit = shared && i != WRITER ? LIMIT : 0;
    const char *kind = all[i].thread ? "thread" : "process";
    if (shared) kind = all[i].limit > 0 ? "reader" : "writer";
    snprintf(all[i].name, sizeof all[i].name, "%s %d", kind, i + 1);
  }
  for (int i = 0; i < CONTENDERS; i += 2) {
    pid_t pid = fork();
    if (pid == 0) {
      belong_to(parent);
      run_process(&all[i], &server, lock_name);
    }
    all[i].pid = pid;
  }
  team = fork();
  if (team == 0) {
    belong_to(parent);
    run_team(all, &server, lock_name);
  }
}

static bool all_arrive(void)
{
  for (int i = 0; i < CONTENDERS; i++) {
    if (!look_on_until(is_ready, &all[i])) return false;
  }
  for (int i = 0; i < CONTENDERS; i++) {
    all[i].order = ACQUIRE;
    if (!look_on_until(has_arrived, &all[i]) || !look_on_for(pace_ms / 5)) return false;
  }
  return true;
}

static void kill_contender(struct contender *victim, const char *what)
{
  if (victim->pid <= 0) return;
  victim->killed_at = story_us();
  kill(victim->pid, SIGKILL);
  screen_event("kill -9 %s, which %s", victim->name, what);
}

/* The one that holds and has not been told to release; NULL for none. */
static struct contender *holder(void)
{
  for (int i = 0; i < CONTENDERS; i++) {
    if (all[i].stage == HOLDING && all[i].killed_at == 0 && all[i].order < RELEASE) return &all[i];
  }
  return NULL;
}

static bool all_over(void)
{
  for (int i = 0; i < CONTENDERS; i++) {
    if (all[i].stage < RELEASED && all[i].killed_at == 0) return false;
  }
  return true;
}

static int still_waiting(void)
{
  int count = 0;
  for (int i = 0; i < CONTENDERS; i++)
    count += all[i].stage == WAITING && all[i].killed_at == 0;
  return count;
}

/*
 * Kills the master of the servers, and looks on until there is another, and whoever waits is back
 * in line: till then a release would hand the lock to the first that is back.
 */
static bool kill_master(const struct contender *self)
{
  int64_t killed_at = story_us();
  int64_t limit = killed_at + (int64_t)PATIENCE_MS * 1000;
  kill(master, SIGKILL);
  screen_event("kill -9 the master of the servers, while %s holds", self->name);
  do {
    if (!look_on() || story_us() > limit) return false;
  } while (asked_at <= killed_at || seen_listening < still_waiting());
  double took = (double)(story_us() - killed_at) / 1e6;
  screen_event("%d are in line at the next master, %.2f s after the kill", seen_listening, took);
  return true;
}

/*
 * Deletes the key of the lock, past the library, and wakes the next in line: the holder is not told, as a
 * break would tell it.
 */
static void meddle_with(const struct contender *self)
{
  static struct raw raw;
  struct sockaddr_storage peer;
  socklen_t size = sizeof peer;
  screen_event("meddling: the key of the lock is deleted, which %s holds", self->name);
  if (getpeername(port_posix_fd(&server.at.socket), (struct sockaddr *)&peer, &size) != 0) return;
  raw.socket = socket(peer.ss_family, SOCK_STREAM, 0);
  if (connect(raw.socket, (struct sockaddr *)&peer, size) == 0) {
    char next[FAIRLOCK_HOLDER_ID_SIZE];
    (void)raw_run(&raw, "DEL %s", lock_name);
    snprintf(next, sizeof next, "%s",
             raw_text(&raw, "LINDEX redisson_lock_queue:{%s} 0", lock_name));
    (void)raw_run(&raw, "PUBLISH redisson_lock__channel:{%s}:%s 0", lock_name, next);
  }
  raw_close(&raw);
}

/*
 * What happens while somebody holds: the second sees the next one killed, the third process is
 * killed itself, or sees the master killed.
 */
static bool scene(struct contender *self, int number, bool meddle)
{
  if (!look_on_for(pace_ms / 2)) return false;
  if (number == 1 && meddle) meddle_with(self);
  if (number == 2 && all[2].stage == WAITING) kill_contender(&all[2], "is next in line");
  if (!look_on_for(pace_ms / 2)) return false;
  if (self == &all[4] && master == 0) kill_contender(self, "holds");
  else if (self == &all[4] && !kill_master(self)) return false;
  else self->order = RELEASE;
  return true;
}

static bool tell_story(bool meddle)
{
  int64_t limit = 0;
  if (!all_arrive()) return false;
  for (int number = 1; !all_over();) {
    struct contender *self = holder();
    if (self != NULL) {
      if (!scene(self, number++, meddle)) return false;
      limit = story_us() + (int64_t)PATIENCE_MS * 1000;
    }
    if (!look_on() || (limit != 0 && story_us() > limit)) return false;
  }
  return look_on_for(200);
}

static bool was_granted(const struct contender *self)
{
  return self->granted_at != 0;
}

/*
 * Readers share the lock, up to the limit, and leave one after the other; one of them is killed. The
 * writer comes in the middle, and waits for those before it; those behind wait for the writer.
 */
static bool tell_shared_story(bool meddle)
{
  if (!all_arrive()) return false;
  for (int i = 0; i < CONTENDERS; i++) {
    if (!look_on_until(was_granted, &all[i]) || !look_on_for(pace_ms)) return false;
    if (i == WRITER && meddle) {
      meddle_with(&all[i]);
      if (!look_on_until(was_granted, &all[i + 1])) return false;
    }
    if (i == KILLED) kill_contender(&all[i], "shares the lock");
    else all[i].order = RELEASE;
  }
  while (!all_over()) {
    if (!look_on()) return false;
  }
  return look_on_for(200);
}

/* The beginning and the end */

static void end_contenders(void)
{
  for (int i = 0; i < CONTENDERS; i++) {
    if (all[i].pid > 0) kill(all[i].pid, SIGKILL);
  }
  if (team > 0) kill(team, SIGKILL);
  for (int i = 0; i < CONTENDERS; i++) {
    if (all[i].pid > 0) waitpid(all[i].pid, NULL, 0);
  }
  if (team > 0) waitpid(team, NULL, 0);
}

/*
 * A server that goes on should not keep the killed ones in line: who acquires last forgets them,
 * when their time has lapsed.
 */
static void sweep(void)
{
  struct fairlock handle;
  if (interrupted) printf("\ncleaning up on the server: a few seconds\n");
  if (fairlock_init(&handle, &observer, lock_name) != FAIRLOCK_OK) return;
  if (fairlock_acquire(&handle, 10000, 1000) == FAIRLOCK_OK) fairlock_release(&handle);
  fairlock_deinit(&handle);
}

static void on_signal(int number)
{
  interrupted = number;
}

static void catch_signals(void)
{
  struct sigaction action = {.sa_handler = on_signal};
  static const int numbers[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE};
  for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
    sigaction(numbers[i], &action, NULL);
}

/* A server that was just started needs a moment. */
static int reach_server(void)
{
  int status = server_client(&server, &observer);
  int64_t limit = story_us() + (server.pid > 0 ? 10000000 : 0);
  while (status == FAIRLOCK_OK) {
    status = fairlock_connect(&observer);
    if (status == FAIRLOCK_OK || interrupted || story_us() > limit || server_ended(&server)) break;
    sleep_ms(20);
    status = FAIRLOCK_OK;
  }
  return status;
}

static const struct contender *holder_after(const struct contender *self)
{
  const struct contender *order[CONTENDERS];
  int count = grants(all, order);
  for (int i = 0; i < count; i++) {
    if (order[i]->granted_at > self->killed_at) return order[i];
  }
  return NULL;
}

static void print_kills(void)
{
  if (shared) {
    printf("%s was killed while it shared: the lease of its share ended, and no other.\n",
           all[KILLED].name);
    return;
  }
  for (int i = 0; i < CONTENDERS; i++) {
    const struct contender *after = holder_after(&all[i]);
    if (all[i].killed_at == 0 || after == NULL) continue;
    double wait = (double)handover_us(all, after) / 1e6;
    if (all[i].granted_at == 0)
      printf("%s was killed in line: it was passed over at once.\n", all[i].name);
    else
      printf("%s was killed as holder: %s took over %.2f s later.\n", all[i].name, after->name,
             wait);
  }
}

static int print_verdict(void)
{
  struct verdict verdict = verdict_of(all, false);
  const struct contender *unserved = first_unserved(all);
  bool kept = order_kept(all, &verdict);
  int failed = 0;
  for (int i = 0; i < CONTENDERS; i++) {
    if (all[i].stage != FAILED) continue;
    failed++;
    printf("%s failed: %s\n", all[i].name, fairlock_status_text(all[i].status));
  }
  print_kills();
  if (unserved != NULL) printf("%s was not granted the lock\n", unserved->name);
  printf("order: %s\n", kept ? "kept" : "broken");
  printf("holders at once: %d\n", verdict.most);
  if (shared) printf("the writer: %s\n", verdict.overlaps == 0 ? "alone" : "not alone");
  return kept && is_good(&verdict) && failed == 0 ? 0 : 1;
}

static int tell_result(const char *picture)
{
  int status = print_verdict();
  if (picture == NULL || draw_timeline(picture, all)) return status;
  perror(picture);
  return 2;
}

static int run(const char *program, const char *url, bool meddle, const char *picture)
{
  if (!server_start(&server, program, url)) return 2;
  server.topology.replicas = master != 0; /* so that the next master knows who holds */
  start_contenders(); /* before this process connects: no contender may inherit its connection */
  int status = reach_server();
  if (status != FAIRLOCK_OK) {
    fprintf(stderr, "no server at %s: %s\n", server.at.shown, fairlock_status_text(status));
    return 2;
  }
  if (fairlock_init(&view, &observer, lock_name) != FAIRLOCK_OK) return 2;
  screen_begin(all, lock_name, server.at.shown, server.config.lease_ms);
  if (shared) tell_shared_story(meddle);
  else tell_story(meddle);
  tell_events(story_us());
  screen_end(!interrupted);
  end_contenders();
  if (url != NULL && master == 0) sweep();
  return interrupted ? 128 + (int)interrupted : tell_result(picture);
}

static int usage(void)
{
  fprintf(stderr,
          "usage: demo --server REDIS-SERVER | --url URL [--kill PID] [--pace MS] [--shared] "
          "[--meddle] [--svg FILE]\n");
  return 2;
}

int main(int argc, char **argv)
{
  const char *program = NULL;
  const char *url = NULL;
  const char *picture = NULL;
  bool meddle = false;
  for (int i = 1; i < argc; i++) {
    bool more = i + 1 < argc;
    if (strcmp(argv[i], "--server") == 0 && more) program = argv[++i];
    else if (strcmp(argv[i], "--url") == 0 && more) url = argv[++i];
    else if (strcmp(argv[i], "--kill") == 0 && more) master = (pid_t)atoi(argv[++i]);
    else if (strcmp(argv[i], "--pace") == 0 && more) pace_ms = strtol(argv[++i], NULL, 10);
    else if (strcmp(argv[i], "--svg") == 0 && more) picture = argv[++i];
    else if (strcmp(argv[i], "--meddle") == 0) meddle = true;
    else if (strcmp(argv[i], "--shared") == 0) shared = true;
    else return usage();
  }
  if ((program == NULL) == (url == NULL) || pace_ms < 100 || pace_ms > 10000) return usage();
  if (master < 0 || (master > 0 && (program != NULL || shared))) return usage();
  all = share(sizeof *all * CONTENDERS);
  started = now_us();
  snprintf(lock_name, sizeof lock_name, "demo:%ld", (long)getpid());
  catch_signals();
  int status = run(program, url, meddle, picture);
  end_contenders();
  server_stop(&server);
  return status;
}
