/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The blocking client on a hostile platform: the transport accepts, delays, cuts, and returns
 * whatever statuses the input says; the server behind it says what a hostile server says; and three
 * tasks use one client and its handles at the same time, switching at any place where the client
 * unlocks its mutex or waits for it, as the input says. Time is the platform's own, and passes only
 * while all tasks wait.
 *
 * The tasks are threads, of which one at a time has the baton; so every run can be repeated.
 *
 * Checked: the client keeps to the contract of port.h (mutex, signals, the order of the transport's
 * calls, sizes, times); each call that blocks returns a result, and, once the server falls silent,
 * in bounded time; the end of each operation that was only begun is told, once; no task is left in a wait without end, and none spins without waiting;
 * everything can be taken out again at the end.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine.h"
#include "fairlock_keep.h"
#include "fairlock_operate.h"
#include "hostile.h"
#include "support/counters.h"

#define CHECK(condition)                                                                           \
  do {                                                                                             \
    if (!(condition)) fail(#condition, __LINE__);                                                  \
  } while (0)

enum {
  HANDLES = WITNESS_LOCKS,
  TASKS = 3,
  MAIN = TASKS,
  IDLE_CALLS = 20000,
  LEFT_MS = 5,
  LONGEST_LEASE = 30000
};

enum line { DOWN, OPENING, UP, BROKEN };

static struct hostile hostile;
static struct witness witness;
static struct fairlock_client client;
static struct fairlock_config config;
static struct fairlock_keeping keeper;
static struct fairlock handles[HANDLES];
static struct fairlock_target holds[HANDLES];
static bool there[HANDLES], leaving[HANDLES];
static unsigned users[HANDLES];                /* tasks inside a call */
static unsigned begun[HANDLES], told[HANDLES]; /* operations that no call waits for */
static uint32_t now, start;

static enum line line;
static bool engaged, sending;
static bool locked, running;
static unsigned idle;         /* calls of the platform's since time has passed */
static uint32_t silent_since; /* when the input ended */
static uint32_t longest;      /* that it may take from then on until all has ended */
static bool silent;
static int signals;    /* that exist */
static unsigned owner; /* of the mutex */
static bool serviced;  /* the client was, when the mutex was last unlocked */
static unsigned servicer;
static uint8_t words[HOSTILE_SIZE];
static size_t words_start, words_end;

static void fail(const char *what, int number)
{
  fprintf(stderr, "line %d, violated: %s\n", number, what);
  abort();
}

static unsigned next(void)
{
  return hostile_next(&hostile);
}

/* Tasks */

enum activity { FINISHED, RUNS, NEEDS_MUTEX, WAITS };

/* The last one is the fuzzer's own thread, which begins and ends the run. */
static struct task {
  enum activity activity;
  uint32_t until;                 /* waits: so long at most */
  const struct port_event *event; /* waits: or until this is set; NULL: no */
  const struct fairlock *handle;  /* inside a call that waits for the end of its operation */
  pthread_cond_t turn;
  pthread_t thread;
} tasks[TASKS + 1];

static pthread_mutex_t baton = PTHREAD_MUTEX_INITIALIZER;
static unsigned current; /* task that has the baton */

/*
 * At the end the calls under way give up, the leases run out, and the handles are taken out one
 * after the other, each when what it left behind has ended. All of it takes longer with a server
 * that was slow before, because the client has adapted to that.
 */
static void bound_silence(void)
{
  const struct fairlock_engine *engine = &client.engine;
  uint32_t answer = engine->connect_ms + engine->response_ms;
  uint32_t calls = engine->offline_ms + 4 * engine->round_trip_ms + answer;
  uint32_t left_behind = LONGEST_LEASE + engine->waiter_ms + engine->response_ms;
  uint32_t all = calls + LONGEST_LEASE + HANDLES * left_behind;
  if (all > longest) longest = all;
}

/*
 * Each call of the platform's counts: if too many come without time passing, a task spins without
 * waiting.
 */
static void count_call(void)
{
  CHECK(++idle < IDLE_CALLS);
  if (hostile.left == 0 && !silent) {
    silent = true;
    silent_since = now;
  }
  bound_silence();
  if (silent) CHECK(now - silent_since < longest);
}

static bool can_run(const struct task *task)
{
  switch (task->activity) {
  case RUNS:
    return true;
  case NEEDS_MUTEX:
    return !locked;
  case WAITS:
    return (int32_t)(now - task->until) >= 0 || (task->event != NULL && task->event->set);
  default:
    return false;
  }
}

/* It has left the client to tasks that have waited, and nothing goes on of which it is to hear. */
static void check_runner_looks_soon(void)
{
  CHECK(client.left && client.engine.begun == 0);
  for (unsigned i = 0; i <= MAIN; i++)
    CHECK(tasks[i].event != client.runner || tasks[i].activity != WAITS ||
          tasks[i].until - now <= LEFT_MS);
}

/*
 * No task sleeps until its time is over that could go on now: because the operation has ended,
 * because nobody services the client, because fairlock_run() does and has something to do, or
 * because it was told to stop.
 */
static void check_sleepers(void)
{
  /* what is to be closed waits for a task that sends, and all others look again every 2 ms */
  if (client.engine.broken) return;
  for (unsigned i = 0; i <= MAIN; i++) {
    if (tasks[i].activity != WAITS || tasks[i].event == NULL) continue;
    CHECK(tasks[i].handle == NULL || tasks[i].handle->result == FAIRLOCK_PENDING);
    CHECK(tasks[i].event != client.runner || !client.stop);
  }
  CHECK(client.serviced || client.blocked == NULL);
  if (!client.serviced && client.runner != NULL) check_runner_looks_soon();
  if (client.serviced && client.runner != NULL && tasks[servicer].activity == WAITS &&
      tasks[servicer].event == client.runner)
    CHECK(fairlock_engine_wants(&client.engine, now) == 0);
}

/* Lets time pass until the first of those that wait has waited long enough. */
static void pass_time(void)
{
  uint32_t least = UINT32_MAX;
  check_sleepers();
  for (unsigned i = 0; i <= MAIN; i++) {
    if (tasks[i].activity == WAITS && tasks[i].until - now < least) least = tasks[i].until - now;
  }
  CHECK(least != UINT32_MAX); /* everybody waits for somebody else */
  now += least;
  idle = 0;
}

/* The task that goes on: the next one, or, as long as there is input, any. */
static unsigned choose(void)
{
  for (;;) {
    unsigned skip = hostile.left > 0 ? next() % (TASKS + 1) : 0;
    for (unsigned i = 0; i < 2 * (TASKS + 1); i++) {
      unsigned which = (current + 1 + i) % (TASKS + 1);
      if (can_run(&tasks[which]) && skip-- == 0) return which;
    }
    for (unsigned which = 0; which <= MAIN; which++) {
      if (can_run(&tasks[which])) return which;
    }
    pass_time();
  }
}

/* Passes the baton on, and returns when it has come back. */
static void change_over(void)
{
  unsigned self = current;
  current = choose();
  if (current == self) return;
  (void)pthread_cond_signal(&tasks[current].turn);
  while (current != self)
    (void)pthread_cond_wait(&tasks[self].turn, &baton);
}

/* Waits for at most timeout_ms, or less if the input says so. */
static void wait_for(const struct port_event *event, uint32_t timeout_ms)
{
  struct task *task = &tasks[current];
  if (running && hostile.left == 0) fairlock_stop(&client);
  if (hostile.left > 0 && next() % 8 == 1) timeout_ms = next() * 4 % (timeout_ms + 1);
  task->activity = WAITS;
  task->until = now + timeout_ms;
  task->event = event;
  change_over();
  task->activity = RUNS;
}

/* The platform: clock, tasks */

uint32_t port_clock_ms(void)
{
  count_call();
  return now;
}

uintptr_t port_task_self(void)
{
  return current + 1;
}

void port_mutex_init(struct port_mutex *mutex)
{
  CHECK(mutex == &client.mutex);
  locked = false;
}

void port_mutex_lock(struct port_mutex *mutex)
{
  struct task *task = &tasks[current];
  CHECK(mutex == &client.mutex);
  count_call();
  task->activity = NEEDS_MUTEX;
  if (locked || (hostile.left > 0 && next() % 8 == 1)) change_over();
  task->activity = RUNS;
  CHECK(!locked);
  locked = true;
  owner = current;
}

bool port_mutex_forked(const struct port_mutex *mutex)
{
  CHECK(mutex == &client.mutex);
  return false;
}

void port_mutex_unlock(struct port_mutex *mutex)
{
  CHECK(mutex == &client.mutex && locked && owner == current);
  if (client.serviced && !serviced) servicer = current;
  serviced = client.serviced;
  locked = false;
}

void port_mutex_destroy(struct port_mutex *mutex)
{
  CHECK(mutex == &client.mutex && !locked);
}

void port_event_init(struct port_event *event)
{
  memset(event, 0, sizeof *event);
  signals++;
}

void port_event_wait(struct port_event *event, struct port_mutex *mutex, uint32_t timeout_ms)
{
  CHECK(signals > 0 && event != NULL);
  count_call();
  if (!event->set) {
    port_mutex_unlock(mutex);
    wait_for(event, timeout_ms);
    port_mutex_lock(mutex);
  }
  event->set = false;
}

void port_event_set(struct port_event *event)
{
  CHECK(signals > 0 && event != NULL && locked && owner == current);
  event->set = true;
}

void port_event_destroy(struct port_event *event)
{
  CHECK(event != NULL && signals-- > 0);
}

/* No signal of the system comes. */
void port_event_expect_signals(struct port_event *event)
{
  CHECK(signals > 0 && event != NULL);
}

bool port_task_interrupted(void)
{
  return false;
}

/* The platform: the transport */

static bool inside(void)
{
  return locked && owner == current;
}

/* One task at a time is inside connect(), recv() and close(). */
static void enter_line(void)
{
  CHECK(!engaged);
  engaged = true;
}

static void leave_line(void)
{
  engaged = false;
}

static int connect_to(void *context, uint32_t timeout_ms)
{
  CHECK(context == &line && !inside() && timeout_ms <= PORT_WAIT_MAX_MS);
  CHECK(line == DOWN || line == OPENING);
  count_call();
  unsigned choice = hostile.left > 0 ? next() % 8 : 7;
  if (choice < 5) {
    line = UP;
    words_start = words_end = 0;
    witness_connected(&witness, config.database > 0 ? 3 : 2);
    return PORT_OK;
  }
  line = OPENING;
  enter_line();
  wait_for(NULL, timeout_ms);
  leave_line();
  if (choice == 5) return timeout_ms % 2 == 0 ? PORT_WOULD_BLOCK : PORT_NEEDS_INPUT;
  line = DOWN;
  return choice == 6 ? PORT_CLOSED : PORT_UNREACHABLE;
}

static int send_to(void *context, const void *data, size_t size)
{
  CHECK(context == &line && !inside() && !sending && size > 0 && size <= config.send_size);
  CHECK(line == UP || line == BROKEN); /* another task may not have heard yet */
  count_call();
  unsigned choice = hostile.left > 0 ? next() % 16 : 15;
  if (choice % 4 == 3) {
    sending = true;
    wait_for(NULL, 0);
    sending = false;
  }
  if (line == BROKEN) return PORT_CLOSED;
  if (choice == 0) return PORT_WOULD_BLOCK;
  if (choice == 1) {
    line = BROKEN;
    return next() % 2 ? PORT_CLOSED : -77;
  }
  if (choice == 2) size = 1 + next() % size;
  witness_knows(&witness, client.engine.id, client.engine.id_size);
  if (!witness_sent(&witness, data, size, now)) fail("the client sends what it may", __LINE__);
  return (int)size;
}

static void think(void)
{
  static const enum hostile_words kinds[] = {
      HOSTILE_HONEST, HOSTILE_HONEST, HOSTILE_HONEST, HOSTILE_HONEST, HOSTILE_HONEST,
      HOSTILE_PUSH,   HOSTILE_ANSWER, HOSTILE_ERROR,  HOSTILE_RAW,    HOSTILE_INSPECTION};
  unsigned kind = next() % 32;
  hostile.now = 1700000000000 + (int64_t)(now - start);
  for (int i = 0; i < HANDLES; i++)
    hostile.tokens[i] = handles[i].token;
  words_start = 0;
  words_end = hostile_say(&hostile, kinds[kind < 10 ? kind : 0], words);
}

static int receive_from(void *context, void *data, size_t size, uint32_t timeout_ms)
{
  CHECK(context == &line && !inside() && size > 0 && timeout_ms <= PORT_WAIT_MAX_MS);
  witness_knows(&witness, client.engine.id, client.engine.id_size);
  CHECK(line == UP || line == BROKEN);
  count_call();
  if (line == BROKEN) return PORT_CLOSED;
  if (words_start == words_end && hostile.left > 0) think();
  if (words_start == words_end || next() % 4 == 1) {
    enter_line();
    wait_for(NULL, timeout_ms);
    leave_line();
    if (line == BROKEN) return PORT_CLOSED;
    if (hostile.left > 0 && next() % 8 == 1) {
      line = BROKEN;
      return next() % 2 ? PORT_CLOSED : 0;
    }
  }
  if (words_start == words_end) return PORT_WOULD_BLOCK;
  size_t part = words_end - words_start;
  if (part > size) part = size;
  /* the witness learns the id at once */
  if (next() % 8 == 1 || client.engine.id_size == 0) part = 1;
  witness_received(&witness, words + words_start, part, now);
  memcpy(data, words + words_start, part);
  words_start += part;
  return (int)part;
}

static void close_it(void *context)
{
  CHECK(context == &line && !engaged && !sending);
  line = DOWN;
}

static struct port_transport transport = {connect_to, send_to, receive_from, close_it,
                                          &line,      NULL,    NULL};

/* The caller */

static bool report(const struct fairlock_report *part, void *context)
{
  volatile char sink = 0;
  CHECK(context == &config && inside());
  for (size_t i = 0; part->id != NULL && i < part->id_size; i++)
    sink = (char)(sink ^ part->id[i]);
  return true;
}

static void lost(struct fairlock *handle, const struct fairlock_loss *loss, void *context)
{
  (void)loss;
  CHECK(context == &config && inside());
  CHECK(handle >= handles && handle < handles + HANDLES);
}

static void ended(struct fairlock *handle, const struct fairlock_end *end, void *context)
{
  CHECK(context == &told && inside());
  CHECK(handle >= handles && handle < handles + HANDLES);
  CHECK(handle->result == end->status && end->status != FAIRLOCK_PENDING);
  told[handle - handles]++;
}

/* Notes whether an operation was begun. */
static void began(unsigned which, int status)
{
  if (status == FAIRLOCK_PENDING) begun[which]++;
}

static void asked(struct fairlock *handle, const struct fairlock_asking *asking, void *context)
{
  (void)asking;
  CHECK(context == &config && inside());
  CHECK(handle >= handles && handle < handles + HANDLES && handle->holds > 0);
}

static void put_in(unsigned which)
{
  const struct witness_lock *lock = &witness_locks[which];
  leaving[which] = true; /* nobody else may use it meanwhile */
  CHECK(fairlock_init(&handles[which], &client, which == 0 ? NULL : "") == FAIRLOCK_INVALID);
  int status = which < 2 ? fairlock_init(&handles[which], &client, lock->name)
                         : fairlock_init_bytes(&handles[which], &client, lock->name, lock->size);
  leaving[which] = false;
  CHECK(status == FAIRLOCK_OK);
  there[which] = true;
  witness.numbers[which] = handles[which].number;
}

static void take_out(unsigned which)
{
  leaving[which] = true;
  int status = fairlock_deinit(&handles[which]);
  leaving[which] = false;
  CHECK(status <= FAIRLOCK_OK && status != FAIRLOCK_INVALID && status != FAIRLOCK_NOT_HELD);
  there[which] = status != FAIRLOCK_OK;
  if (there[which]) return;
  witness.numbers[which] = 0;
  CHECK(told[which] == (config.ended != NULL ? begun[which] : 0));
}

static void look(struct fairlock *handle)
{
  char id[FAIRLOCK_HOLDER_ID_SIZE];
  char error[FAIRLOCK_ERROR_SIZE];
  fairlock_id(handle, id, FAIRLOCK_HOLDER_ID_SIZE);
  CHECK(memchr(id, 0, sizeof id) != NULL);
  if (config.client_id != NULL && id[0] != 0)
    CHECK(memcmp(id, "id.", 3) == 0 && strchr(id, ':') != NULL);
  fairlock_error(&client, error, FAIRLOCK_ERROR_SIZE);
  CHECK(memchr(error, 0, sizeof error) != NULL);
  CHECK(fairlock_remaining_ms(handle) <= LONGEST_LEASE);
  (void)fairlock_token(handle);
  (void)fairlock_hold_count(handle);
  struct fairlock_counters stats = counters_of(&client);
  CHECK(stats.waits <= stats.acquisitions && stats.losses <= stats.acquisitions);
}

static void run(void)
{
  if (running || hostile.left == 0) return;
  running = true;
  fairlock_run(&client);
  running = false;
}

/* A call by a task. One that blocks has to return a result. */
static int call(unsigned what, unsigned which)
{
  struct fairlock *handle = &handles[which];
  const struct witness_lock *lock = &witness_locks[which];
  switch (what) {
  case 0:
    return fairlock_acquire(handle, FAIRLOCK_FOREVER, FAIRLOCK_RENEW);
  case 1:
    return fairlock_acquire(handle, next() * 16, 1000);
  case 2:
    return fairlock_try_acquire(handle, 1000);
  case 3:
    return fairlock_release(handle);
  case 4:
    return fairlock_force_release(&client, lock->name, next() % 8 == 1 ? 0 : lock->size,
                                  next() % 2 ? 1 : FAIRLOCK_ANY_TOKEN);
  case 5:
    return fairlock_inspect(&client, lock->name, next() % 8 == 1 ? 0 : lock->size,
                            next() % 8 == 1 ? NULL : report, &config);
  case 6:
    began(which, fairlock_start_acquire(handle, next() * 16, FAIRLOCK_RENEW));
    break;
  case 7:
    began(which, fairlock_start_release(handle));
    break;
  case 8:
    holds[which].token = FAIRLOCK_ANY_TOKEN;
    began(which, next() % 2 ? fairlock_start_force_release(handle, &holds[which])
                            : fairlock_start_inspect(handle, report, &config));
    break;
  case 9:
    (void)fairlock_poll(&client, next() % 2 ? 0 : next() * 16);
    break;
  case 10:
    return fairlock_cancel(handle);
  case 11:
    look(handle);
    break;
  case 12:
    run();
    break;
  case 13:
    if (running) fairlock_stop(&client);
    break;
  case 14:
    return fairlock_connect(&client);
  default:
    take_out(which);
    break;
  }
  return 0;
}

static void use_client(void)
{
  unsigned choice = next();
  unsigned which = choice % HANDLES;
  if (leaving[which]) return;
  if (!there[which]) {
    put_in(which);
    return;
  }
  users[which]++;
  unsigned what = choice / HANDLES % 16;
  if (what <= 3) tasks[current].handle = &handles[which];
  int status = what == 15 && users[which] > 1 ? FAIRLOCK_IN_PROGRESS : call(what, which);
  tasks[current].handle = NULL;
  users[which]--;
  CHECK(status <= FAIRLOCK_OK && status >= FAIRLOCK_OUTDATED);
}

static void *work(void *context)
{
  unsigned self = (unsigned)((const struct task *)context - tasks);
  (void)pthread_mutex_lock(&baton);
  for (;;) {
    while (current != self)
      (void)pthread_cond_wait(&tasks[self].turn, &baton);
    while (hostile.left > 0) {
      use_client();
      if (next() % 4 == 1) wait_for(NULL, next());
    }
    tasks[self].activity = FINISHED;
    if (tasks[0].activity == FINISHED && tasks[1].activity == FINISHED &&
        tasks[2].activity == FINISHED) {
      tasks[MAIN].activity = RUNS;
    }
    current = choose();
    (void)pthread_cond_signal(&tasks[current].turn);
  }
  return NULL;
}

static void start_tasks(void)
{
  for (unsigned i = 0; i <= MAIN; i++) {
    CHECK(pthread_cond_init(&tasks[i].turn, NULL) == 0);
    if (i < MAIN) CHECK(pthread_create(&tasks[i].thread, NULL, work, &tasks[i]) == 0);
  }
}

static void run_tasks(void)
{
  for (unsigned i = 0; i < TASKS; i++)
    tasks[i].activity = RUNS;
  tasks[MAIN].activity = FINISHED;
  change_over();
}

/*
 * The server is silent now. Whatever is held or going on ends; only the task that acquired may
 * release.
 */
static void end(void)
{
  for (unsigned i = 0; i < HANDLES; i++) {
    while (there[i]) { /* in bounded time: see count_call() */
      (void)fairlock_adopt(&handles[i]);
      (void)fairlock_cancel(&handles[i]);
      (void)fairlock_release(&handles[i]);
      if (fairlock_result(&handles[i]) == FAIRLOCK_PENDING) (void)fairlock_poll(&client, 1000);
      else take_out(i);
    }
  }
  fairlock_client_deinit(&client);
  CHECK(signals == 0 && !locked && line == DOWN);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
  if (tasks[0].thread == 0) {
    (void)pthread_mutex_lock(&baton);
    current = MAIN;
    start_tasks();
  }
  memset(&config, 0, sizeof config);
  memset(&hostile, 0, sizeof hostile);
  memset(handles, 0, sizeof handles);
  memset(there, 0, sizeof there);
  memset(users, 0, sizeof users);
  memset(begun, 0, sizeof begun);
  memset(told, 0, sizeof told);
  hostile.input = data;
  hostile.left = size;
  hostile.witness = &witness;
  unsigned choices = next();
  config.receive_size = FAIRLOCK_RECEIVE_SIZE(3U, 2U);
  config.send_size = FAIRLOCK_SEND_MIN + next();
  config.receive_buffer = malloc(config.receive_size);
  config.send_buffer = malloc(config.send_size);
  CHECK(config.receive_buffer != NULL && config.send_buffer != NULL);
  config.client_id = choices & 8 ? NULL : "id";
  config.database = choices & 1 ? 3 : 0;
  config.password = choices & 2 ? "secret" : NULL;
  config.lost = choices & 4 ? lost : NULL;
  config.lost_context = &config;
  config.ended = choices & 16 ? NULL : ended;
  config.ended_context = &told;
  config.asked = choices & 32 ? asked : NULL;
  config.asked_context = &config;
  hostile.selects = config.database > 0;
  start = now = 0xfffff000U;
  line = DOWN;
  idle = 0;
  longest = 0;
  signals = 0;
  silent = running = engaged = sending = serviced = false;
  words_start = words_end = 0;
  witness_init(&witness, now);
  CHECK(fairlock_client_init(&client, &config, &transport) == FAIRLOCK_OK);
  witness.keeps = choices & 32;
  keeper.keep_ms = 1 + choices / 64 * 6000;
  if (witness.keeps) CHECK(fairlock_use_keeping(&client, &keeper) == FAIRLOCK_OK);
  run_tasks();
  end();
  free(config.receive_buffer);
  free(config.send_buffer);
  return 0;
}
