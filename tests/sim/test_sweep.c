/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every operation of the transport fails in turn: the client layer runs scenarios against the small
 * Redis over a transport and a clock of this file's own, once for each operation of it and each
 * kind of fault, and for sampled pairs of them.
 *
 * Time is virtual: it passes while the client waits for bytes, and an agenda has what others do.
 * After each operation the server must cover what the client believes; at the end the results must
 * be possible ones, in time, and nothing may be left.
 *
 *     test_sweep NAME                     the tests whose name contains NAME
 *     SWEEP="2 14 6" test_sweep NAME      only the fault of kind 6 at operation 14 in scenario 2,
 *                                         with a trace
 */
#include "check.h"
#include "engine.h"
#include "fairlock_keep.h"
#include "fairlock_operate.h"
#include "fairlock_share.h"
#include "random.h"
#include "redis.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EPOCH 1700000000000
#define LOCK  "door"

/* Kinds of faults. The first two hit connect(), then come those of send(), then those of recv(). */
enum fault {
  NO_FAULT,
  CONNECT_REFUSED,
  CONNECT_HANGS,
  SEND_ONE_BYTE,
  SEND_BLOCKED,
  SEND_BLOCKED_LONG,
  SEND_RESET_BEFORE,
  SEND_RESET_AFTER,
  SEND_RESET_HALF,
  SEND_RESET_LATE,
  SEND_VANISHES,
  RECV_ONE_BYTE,
  RECV_RESET,
  RECV_RESET_LATER,
  RECV_SILENT,
  RECV_LATE,
  RECV_TOO_LATE,
  FAULTS
};

static struct {
  int64_t now; /* ms */
  struct redis *redis;
  int operation;       /* of the client under test, counted  */
  int fault_at[2];     /* operations that fail               */
  enum fault fault[2]; /* and how                            */
  int hit;             /* faults that fitted their operation */
  int begun, told;     /* operations of the client's that no call waits for, and their ends */
  bool trace;
  bool broken; /* a promise is */
  char why[160];
} world;

static void fail(const char *why)
{
  if (world.broken) return;
  world.broken = true;
  snprintf(world.why, sizeof world.why, "%s", why);
}

/* The agenda */

static struct entry_of_agenda {
  int64_t at;
  void (*run)(void *object);
  void *object;
} agenda[16];
static int agenda_size;

static void plan(int64_t at, void (*run)(void *object), void *object)
{
  if (agenda_size == 16) abort();
  agenda[agenda_size++] = (struct entry_of_agenda){at, run, object};
}

/* Goes on to the next entry, or to limit if that comes first. */
static void pass(int64_t limit)
{
  int next = -1;
  for (int i = 0; i < agenda_size; i++) {
    if (agenda[i].at <= limit && (next < 0 || agenda[i].at < agenda[next].at)) next = i;
  }
  if (next < 0) {
    if (world.now < limit) world.now = limit;
    return;
  }
  struct entry_of_agenda entry = agenda[next];
  agenda[next] = agenda[--agenda_size];
  if (world.now < entry.at) world.now = entry.at;
  entry.run(entry.object);
}

static void pass_all(int64_t limit)
{
  while (world.now < limit)
    pass(limit);
}

/* The port is port/single, with a clock that wraps around early. */

uint32_t port_clock_ms(void)
{
  return (uint32_t)(0xfffffc00U + (uint64_t)world.now);
}

/* All that a client with one task waits for, while it has no connection. */
void port_idle(uint32_t ms)
{
  pass(world.now + ms);
}

/* The transport */

struct wire {
  struct port_transport transport;
  struct redis_client *server;
  bool faulty; /* its operations count         */
  bool silent; /* nothing goes through         */
  bool dead;   /* the next operation tells     */
  int64_t blocked_until, late_until, hangs_until;
  uint8_t inbox[16384];
  size_t begin, end;
};

/* What arrives after its connection is gone. */
struct late {
  struct redis_client *server;
  size_t size;
  uint8_t data[1024];
};

static struct wire wire, other_wire;
static struct fairlock_client client, other_client;
static struct fairlock_shared sharer; /* or a handle that wants the lock alone */
static struct fairlock_downgrading sharing;
#define door sharer.handle
static struct fairlock other_door;
static struct fairlock_keeping keeper;

/* Until when the server keeps the hold, ms of its clock: a share has that as its second word. */
static int64_t kept_until(const struct key *key, const struct entry *entry)
{
  const char *blank = memchr(entry->value, ' ', entry->value_size);
  return blank != NULL ? strtoll(blank, NULL, 10) : key->expires;
}

/* What the client believes, the server must cover. */
static void look(void)
{
  uint32_t held = door.engine != NULL ? fairlock_engine_remaining_ms(&door, port_clock_ms()) : 0;
  if (held == 0) return;
  char id[FAIRLOCK_HOLDER_ID_SIZE];
  fairlock_id(&door, id, FAIRLOCK_HOLDER_ID_SIZE);
  struct key *key = store_find(redis_store(world.redis), text_of(LOCK));
  const struct entry *entry = key != NULL ? dict_find(&key->dict, text_of(id)) : NULL;
  if (entry == NULL) fail("the client believes that it holds, but does not");
  else if (kept_until(key, entry) < EPOCH + world.now + held)
    fail("the client believes in more than its lease");
}

/*
 * Counts an operation of the client under test. Returns the fault that hits it, if that is one from
 * least to most.
 */
static enum fault next_fault(const struct wire *of, enum fault least, enum fault most)
{
  if (!of->faulty) return NO_FAULT;
  look();
  int operation = world.operation++;
  for (int i = 0; i < 2; i++) {
    if (world.fault_at[i] != operation || world.fault[i] < least || world.fault[i] > most) continue;
    world.hit++;
    if (world.trace)
      printf("# %lld ms: fault %d at operation %d\n", (long long)world.now, (int)world.fault[i],
             operation);
    return world.fault[i];
  }
  return NO_FAULT;
}

static void disconnect(struct wire *of)
{
  if (of->server != NULL) redis_disconnect(of->server);
  of->server = NULL;
  of->begin = of->end = 0;
  of->silent = of->dead = false;
  of->blocked_until = of->late_until = 0;
}

static int wire_connect(void *context, uint32_t timeout_ms)
{
  struct wire *of = context;
  enum fault fault = next_fault(of, CONNECT_REFUSED, CONNECT_HANGS);
  if (fault == CONNECT_REFUSED) return PORT_UNREACHABLE;
  if (fault == CONNECT_HANGS) of->hangs_until = world.now + 60000;
  if (of->hangs_until > world.now) {
    pass(world.now + timeout_ms);
    return PORT_WOULD_BLOCK;
  }
  of->server = redis_connect(world.redis, of);
  return PORT_OK;
}

/* Whatever goes wrong, the server gets commands, or the beginning of one. */
static void hand_in(struct redis_client *server, const void *data, size_t size)
{
  if (!redis_receive(server, data, size)) fail("the client sends what is no command");
}

static void arrive_late(void *object)
{
  struct late *late = object;
  hand_in(late->server, late->data, late->size);
  redis_disconnect(late->server);
  free(late);
}

/* Bytes after lost bytes are lost, too. */
static void deliver(struct wire *of, const void *data, size_t size)
{
  if (!of->silent) hand_in(of->server, data, size);
}

/*
 * The connection is gone for the client, but what it has sent last arrives at the server some time
 * later.
 */
static void send_late(struct wire *of, const void *data, size_t size)
{
  if (of->silent) return;
  struct late *late = calloc(1, sizeof *late);
  if (late == NULL || size > sizeof late->data) abort();
  memcpy(late->data, data, size);
  late->size = size;
  late->server = of->server;
  late->server->owner = NULL;
  of->server = NULL;
  plan(world.now + 900, arrive_late, late);
}

static int wire_send(void *context, const void *data, size_t size)
{
  struct wire *of = context;
  enum fault fault = next_fault(of, SEND_ONE_BYTE, SEND_VANISHES);
  if (of->dead) return PORT_CLOSED;
  switch (fault) {
  case SEND_ONE_BYTE:
    size = 1;
    break;
  case SEND_BLOCKED:
    return PORT_WOULD_BLOCK;
  case SEND_BLOCKED_LONG:
    of->blocked_until = world.now + 60000;
    break;
  case SEND_RESET_BEFORE:
    of->dead = true;
    return PORT_CLOSED;
  case SEND_RESET_AFTER:
    deliver(of, data, size);
    of->dead = true;
    return (int)size;
  case SEND_RESET_HALF:
    deliver(of, data, size / 2);
    of->dead = true;
    return (int)size;
  case SEND_RESET_LATE:
    send_late(of, data, size);
    of->dead = true;
    return (int)size;
  case SEND_VANISHES:
    of->silent = true;
    break;
  default:
    break;
  }
  if (of->blocked_until > world.now) return PORT_WOULD_BLOCK;
  deliver(of, data, size);
  return (int)size;
}

static size_t waiting(const struct wire *of)
{
  return of->silent || of->late_until > world.now ? 0 : of->end - of->begin;
}

static void kill_wire(void *object)
{
  struct wire *of = object;
  of->dead = true;
}

static int wire_recv(void *context, void *data, size_t size, uint32_t timeout_ms)
{
  struct wire *of = context;
  int64_t limit = world.now + timeout_ms;
  enum fault fault = next_fault(of, RECV_ONE_BYTE, RECV_TOO_LATE);
  if (fault == RECV_RESET) of->dead = true;
  if (fault == RECV_RESET_LATER) plan(world.now + 300, kill_wire, of);
  if (fault == RECV_SILENT) of->silent = true;
  if (fault == RECV_LATE) of->late_until = world.now + 1500;
  if (fault == RECV_TOO_LATE) of->late_until = world.now + 3500;
  while (!of->dead && waiting(of) == 0 && world.now < limit) {
    int64_t late = of->late_until > world.now && of->late_until < limit ? of->late_until : limit;
    pass(late);
    if (of->faulty) look();
  }
  if (of->dead) return PORT_CLOSED;
  size_t got = waiting(of);
  if (got == 0) return PORT_WOULD_BLOCK;
  if (got > size) got = size;
  if (fault == RECV_ONE_BYTE) got = 1;
  memcpy(data, of->inbox + of->begin, got);
  of->begin += got;
  if (of->begin == of->end) of->begin = of->end = 0;
  return (int)got;
}

static void wire_close(void *context)
{
  struct wire *of = context;
  if (of->faulty) (void)next_fault(of, FAULTS, FAULTS);
  disconnect(of);
  of->hangs_until = 0;
}

/* The server's side */

static int64_t server_micros(void *context)
{
  (void)context;
  return (EPOCH + world.now) * 1000;
}

static void server_output(void *context, struct redis_client *to, const void *data, size_t size)
{
  struct wire *of = to->owner;
  (void)context;
  if (of == NULL || of->server != to) return;
  if (of->end + size > sizeof of->inbox) abort();
  memcpy(of->inbox + of->end, data, size);
  of->end += size;
}

static void server_executed(void *context, const struct execution *execution)
{
  (void)context;
  if (!world.trace) return;
  printf("# %lld ms:", (long long)world.now);
  for (int i = 0; i < execution->argument_count; i++) {
    printf(" %.*s", (int)execution->arguments[i].size, execution->arguments[i].data);
  }
  printf(" ->");
  for (uint32_t i = 1; i < execution->reply->used; i++)
    printf(" %lld", (long long)execution->reply->values[i].integer);
  printf("\n");
}

/* The other client, which has no faults */

static void other_acquires(void)
{
  if (fairlock_try_acquire(&other_door, 60000) != FAIRLOCK_OK)
    fail("the other client cannot acquire");
}

static void other_releases(void *object)
{
  (void)object;
  (void)fairlock_release(&other_door); /* LOST, when it was forced */
}

static bool other_waits;

static void other_goes_on(void *object)
{
  (void)fairlock_poll(&other_client, 0);
  if (fairlock_result(&other_door) == FAIRLOCK_PENDING) {
    plan(world.now + 20, other_goes_on, object);
    return;
  }
  other_waits = false;
  if (fairlock_result(&other_door) != FAIRLOCK_OK || fairlock_release(&other_door) != FAIRLOCK_OK)
    fail("the other client cannot wait");
}

static void other_comes(void)
{
  other_waits = true;
  (void)fairlock_start_acquire(&other_door, FAIRLOCK_FOREVER, 60000);
  plan(world.now, other_goes_on, NULL);
}

/* Told when an operation has ended that no call waits for. */
static void on_ended(struct fairlock *handle, const struct fairlock_end *end, void *context)
{
  (void)context;
  if (handle != &door || end->status != handle->result)
    fail("the client is told of an end that is none");
  world.told++;
}

/* Scenarios. Each returns whether its results are possible ones. */

static bool one_of_them(int status, int a, int b, int c)
{
  if (world.trace) printf("# %lld ms: %s\n", (long long)world.now, fairlock_status_name(status));
  return status == a || status == b || status == c;
}

static bool released(void)
{
  return one_of_them(fairlock_release(&door), FAIRLOCK_OK, FAIRLOCK_UNKNOWN, FAIRLOCK_UNKNOWN);
}

static bool acquired(uint32_t wait_ms)
{
  return one_of_them(fairlock_acquire(&door, wait_ms, FAIRLOCK_RENEW), FAIRLOCK_OK, FAIRLOCK_OK,
                     FAIRLOCK_OK);
}

static bool acquire_and_release(void)
{
  if (!acquired(FAIRLOCK_FOREVER)) return false;
  pass_all(world.now + 50);
  return released();
}

static bool try_and_release(void)
{
  int status = fairlock_try_acquire(&door, 5000);
  if (!one_of_them(status, FAIRLOCK_OK, FAIRLOCK_BUSY, FAIRLOCK_UNREACHABLE)) return false;
  return status != FAIRLOCK_OK || released();
}

/*
 * Two waits in a row with a leave in between: late requests of the first must not hurt the second.
 */
static bool wait_twice(void)
{
  other_acquires();
  plan(world.now + 900, other_releases, NULL);
  int status = fairlock_acquire(&door, 700, 300);
  if (!one_of_them(status, FAIRLOCK_TIMEOUT, FAIRLOCK_UNREACHABLE, FAIRLOCK_OK)) return false;
  if (status == FAIRLOCK_OK && fairlock_release(&door) == FAIRLOCK_PENDING) return false;
  status = fairlock_acquire(&door, 9000, 20000);
  if (!one_of_them(status, FAIRLOCK_OK, FAIRLOCK_OK, FAIRLOCK_OK)) return false;
  int64_t end = world.now + 2500;
  while (world.now < end)
    (void)fairlock_poll(&client, (uint32_t)(end - world.now));
  return released();
}

static bool wait_and_get(void)
{
  other_acquires();
  plan(world.now + 1000, other_releases, NULL);
  return acquired(FAIRLOCK_FOREVER) && released();
}

static bool reenter(void)
{
  if (!acquired(FAIRLOCK_FOREVER)) return false;
  if (fairlock_acquire(&door, 0, 45000) != FAIRLOCK_OK || fairlock_hold_count(&door) != 2)
    return false;
  if (fairlock_release(&door) != FAIRLOCK_OK || fairlock_hold_count(&door) != 1) return false;
  return released();
}

static bool renew(void)
{
  if (!acquired(FAIRLOCK_FOREVER)) return false;
  int64_t end = world.now + 45000;
  while (world.now < end) {
    (void)fairlock_poll(&client, (uint32_t)(end - world.now));
    if (fairlock_remaining_ms(&door) == 0) return false;
  }
  return released();
}

/* Pairs that may cost nothing, and one who waits in between. */
static bool keep(void)
{
  for (int i = 0; i < 6; i++) {
    if (!acquired(FAIRLOCK_FOREVER)) return false;
    pass_all(world.now + 40);
    if (!released()) return false;
    if (i == 2) other_comes();
    int64_t end = world.now + 1500;
    while (world.now < end || other_waits)
      (void)fairlock_poll(&client, 50);
  }
  return true;
}

static int finish(void)
{
  while (fairlock_result(&door) == FAIRLOCK_PENDING)
    (void)fairlock_poll(&client, FAIRLOCK_FOREVER);
  return fairlock_result(&door);
}

static bool cancel(void)
{
  other_acquires();
  plan(world.now + 600, other_releases, NULL);
  if (fairlock_start_acquire(&door, FAIRLOCK_FOREVER, 300) != FAIRLOCK_PENDING) return false;
  world.begun++;
  int64_t end = world.now + 500;
  while (world.now < end && fairlock_result(&door) == FAIRLOCK_PENDING) {
    (void)fairlock_poll(&client, (uint32_t)(end - world.now));
  }
  int status = fairlock_cancel(&door);
  if (!one_of_them(status, FAIRLOCK_OK, FAIRLOCK_NOT_HELD, FAIRLOCK_OK)) return false;
  status = finish();
  if (!one_of_them(status, FAIRLOCK_CANCELLED, FAIRLOCK_OK, FAIRLOCK_CANCELLED)) return false;
  if (status == FAIRLOCK_OK) (void)fairlock_release(&door);
  return acquired(FAIRLOCK_FOREVER) && released();
}

static bool time_out(void)
{
  other_acquires();
  plan(world.now + 5000, other_releases, NULL);
  int status = fairlock_acquire(&door, 700, FAIRLOCK_RENEW);
  return one_of_them(status, FAIRLOCK_TIMEOUT, FAIRLOCK_UNREACHABLE, FAIRLOCK_TIMEOUT);
}

static bool on_report(const struct fairlock_report *report, void *context)
{
  int *waiters = context;
  if (report->place == 0) *waiters = (int)report->waiter_count;
  return true;
}

static bool inspect(void)
{
  int waiters = -1;
  other_acquires();
  plan(world.now + 5000, other_releases, NULL);
  int status = fairlock_inspect(&client, LOCK, strlen(LOCK), on_report, &waiters);
  if (!one_of_them(status, FAIRLOCK_OK, FAIRLOCK_UNREACHABLE, FAIRLOCK_OK)) return false;
  return status != FAIRLOCK_OK || waiters == 0;
}

/* Repeated after a lost answer, it finds the lock free. */
static bool force(void)
{
  other_acquires();
  plan(world.now + 5000, other_releases, NULL);
  int status = fairlock_force_release(&client, LOCK, strlen(LOCK), FAIRLOCK_ANY_TOKEN);
  return one_of_them(status, FAIRLOCK_OK, FAIRLOCK_NOT_HELD, FAIRLOCK_UNREACHABLE);
}

static const struct scenario {
  const char *name;
  bool (*run)(void);
  int64_t limit; /* ms that it may take, with one fault */
  bool shares;
} scenarios[] = {
    {"acquire and release", acquire_and_release, 15000, false},
    {"try and release", try_and_release, 20000, false},
    {"wait and hand over", wait_and_get, 20000, false},
    {"leave and wait again", wait_twice, 30000, false},
    {"re-enter", reenter, 15000, false},
    {"renew", renew, 60000, false},
    {"cancel", cancel, 25000, false},
    {"time-out", time_out, 10000, false},
    {"inspect", inspect, 12000, false},
    {"force", force, 12000, false},
    {"keep", keep, 60000, false},
    {"wait to share", wait_and_get, 20000, true},
    {"leave and share again", wait_twice, 30000, true},
};

enum { SCENARIOS = sizeof scenarios / sizeof scenarios[0] };

/* A run of a scenario */

static void set_up_client(struct fairlock_client *which, struct wire *on,
                          const struct fairlock_config *config)
{
  memset(on, 0, sizeof *on);
  on->transport =
      (struct port_transport){wire_connect, wire_send, wire_recv, wire_close, on, NULL, NULL};
  if (fairlock_client_init(which, config, &on->transport) != FAIRLOCK_OK) abort();
}

static void set_up_door(bool shares)
{
  int status = FAIRLOCK_OK;
  if (shares) {
    fairlock_use_downgrading(&client, &sharing);
    status = fairlock_init_shared(&sharer, &client, LOCK, 2);
  } else {
    status = fairlock_init(&door, &client, LOCK);
  }
  if (status != FAIRLOCK_OK) abort();
}

static void set_up(bool keeps, bool shares)
{
  static uint8_t buffers[4][512];
  static const struct fairlock_config config = {.receive_buffer = buffers[0],
                                                .receive_size = 200,
                                                .send_buffer = buffers[1],
                                                .send_size = 512,
                                                .client_id = "one",
                                                .ended = on_ended};
  static const struct fairlock_config other_config = {.receive_buffer = buffers[2],
                                                      .receive_size = 512,
                                                      .send_buffer = buffers[3],
                                                      .send_size = 512,
                                                      .client_id = "two"};
  const struct redis_host host = {
      .micros = server_micros, .output = server_output, .executed = server_executed};
  agenda_size = 0;
  world.now = 0;
  world.operation = 0;
  world.hit = 0;
  world.begun = world.told = 0;
  world.broken = false;
  world.redis = redis_new(&host);
  set_up_client(&client, &wire, &config);
  set_up_door(shares);
  keeper.keep_ms = 4000;
  if (keeps && fairlock_use_keeping(&client, &keeper) != FAIRLOCK_OK) abort();
  set_up_client(&other_client, &other_wire, &other_config);
  if (fairlock_init(&other_door, &other_client, LOCK) != FAIRLOCK_OK) abort();
  wire.faulty = true;
}

static void take_down(void)
{
  while (agenda_size > 0)
    pass(INT64_MAX);
  disconnect(&wire);
  disconnect(&other_wire);
  redis_free(world.redis);
}

/* After a while without clients the lock is free, and the next client leaves nothing behind. */
static void check_end(void)
{
  wire.faulty = false;
  if (fairlock_deinit(&door) != FAIRLOCK_OK) fail("the handle cannot be taken out");
  pass_all(world.now + 61000);
  if (fairlock_try_acquire(&other_door, 1000) != FAIRLOCK_OK)
    fail("the lock is not free in the end");
  else if (fairlock_release(&other_door) != FAIRLOCK_OK)
    fail("the lock is not released in the end");
  (void)fairlock_deinit(&other_door);
  if (redis_store(world.redis)->keys.used > 1) fail("keys are left");
  struct text channel;
  if (redis_channels(world.redis, &channel) > 0) fail("subscriptions are left");
}

/* Returns the number of operations; *hit: faults that fitted. -1: something is wrong. */
static int run(int scenario, int limit_factor)
{
  const struct scenario *of = &scenarios[scenario];
  set_up(of->run == keep, of->shares);
  bool good = of->run();
  int operations = world.operation;
  int64_t took = world.now;
  if (!good) fail("a result is not a possible one");
  if (took > of->limit * limit_factor) fail("it takes too long");
  int hit = world.hit;
  if (world.told != world.begun) fail("not each end of an operation is told once");
  if (!world.broken) check_end();
  take_down();
  world.hit = hit;
  return operations;
}

static void complain(int scenario)
{
  printf("# %s: %s\n", scenarios[scenario].name, world.why);
  printf("# replay: SWEEP=\"%d %d %d %d %d\"\n", scenario, world.fault_at[0], (int)world.fault[0],
         world.fault_at[1], (int)world.fault[1]);
}

static void set_faults(int at, int fault, int second_at, int second)
{
  world.fault_at[0] = at;
  world.fault[0] = (enum fault)fault;
  world.fault_at[1] = second_at;
  world.fault[1] = (enum fault)second;
}

/* One run as the variable SWEEP says: true when there is one. */
static bool replay(void)
{
  const char *what = getenv("SWEEP");
  int scenario, at, fault;
  int second_at = -1;
  int second = 0;
  if (what == NULL ||
      sscanf(what, "%d %d %d %d %d", &scenario, &at, &fault, &second_at, &second) < 3)
    return false;
  world.trace = true;
  set_faults(at, fault, second_at, second);
  run(scenario, 3);
  if (!CHECK(!world.broken)) complain(scenario);
  return true;
}

static void sweep(int scenario)
{
  int hits = 0;
  set_faults(-1, NO_FAULT, -1, NO_FAULT);
  int operations = run(scenario, 1);
  if (!CHECK(!world.broken)) complain(scenario);
  for (int at = 0; at < operations + 4; at++) {
    for (int fault = NO_FAULT + 1; fault < FAULTS; fault++) {
      set_faults(at, fault, -1, NO_FAULT);
      run(scenario, 1);
      hits += world.hit;
      if (!CHECK(!world.broken)) complain(scenario);
    }
  }
  printf("# %s: %d operations, %d faults\n", scenarios[scenario].name, operations, hits);
  CHECK(hits > operations);
}

static void test_singles(void)
{
  if (replay()) return;
  for (int i = 0; i < SCENARIOS; i++)
    sweep(i);
}

/*
 * With two faults a result may be a failure; what is believed and what is left is checked all the
 * same.
 */
static void test_pairs(void)
{
  struct random random = {7};
  int hits = 0;
  if (getenv("SWEEP") != NULL) return;
  for (int i = 0; i < 40000; i++) {
    int scenario = (int)random_below(&random, SCENARIOS);
    int at = (int)random_below(&random, 20);
    set_faults(at, (int)random_between(&random, 1, FAULTS - 1),
               at + 1 + (int)random_below(&random, 12),
               (int)random_between(&random, 1, FAULTS - 1));
    run(scenario, 3);
    hits += world.hit == 2;
    bool impossible = strcmp(world.why, "a result is not a possible one") == 0;
    if (!CHECK(!world.broken || impossible)) complain(scenario);
  }
  printf("# %d pairs\n", hits);
  CHECK(hits > 1000);
}

const struct check_test check_tests[] = {
    {"sweep: each operation of the transport fails in turn", test_singles},
    {"sweep: pairs of faults", test_pairs},
    {0},
};
