/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The client, with any engine, any port, and any number of other tasks: whatever they do, each
 * function returns with the mutex unlocked, and locks it only when it is; the engine is called with
 * it, connect(), send() and recv() without it; one task at a time is inside send(), and one inside
 * the others; nothing is sent to, or received from, a connection that is not open, and none is closed
 * while a task sends; whoever is inside fairlock_run() leaves the client to others only while it is
 * there, and is woken by the last of them if it sleeps until then. In a forked process nothing but
 * close() is touched.
 *
 * One task is looked at. Whenever it gets the mutex, the others have changed what they may change
 * (others()); whenever it gives it up, it has changed only what is its own (mine()). CALL names what
 * the task does.
 *
 * Assumed: what engine.h and port.h promise, and that an operation ends, after TURNS turns at the
 * latest: what is true at the head of a turn is the same in each (fairlock_engine_tick() checks it).
 * Those that begin and end a handle of their own take wait_for_end() by what client_finish proves of it.
 */
#include "fairlock_operate.h"
#include "proof.h"

#include "lock/client.c"

#ifndef TURNS
#define TURNS 3
#endif

static struct fairlock_client K;
static struct fairlock H;
static struct port_transport T;
static struct fairlock *handle_of_mine = &H;

static bool locked, is_fork;
static bool i_send, i_serve;                 /* the task itself does */
static bool sending_before, serviced_before; /* when it got the mutex */
static bool left_before, sleeps_before, waited_before, blocked_before;
static bool told_runner; /* since then */
static bool transport_open;
static enum { CLOSED, OPENING, OPEN } stage; /* of the engine */
static int turns;

static struct fairlock_blocked other, newcomer;
static bool newcomer_came;
static struct port_event other_event;

/* An operation does not go on for ever. */
static bool goes_on(void)
{
  return ++turns <= TURNS;
}

/* Only the runner begins or ends to leave the client to others; whoever waits tells it. */
static void others_run(void)
{
  if (K.runner == NULL || K.runner == &other_event) {
    K.runner = nondet_bool() ? &other_event : NULL;
    K.left = K.runner != NULL && nondet_bool();
    K.sleeps = K.left && nondet_bool();
    K.waited = nondet_bool();
  }
  K.waited = K.waited || nondet_bool();
}

/* An operation that was begun is counted until it ends. */
static void others_begin(void)
{
  H.begun = H.result == FAIRLOCK_PENDING && nondet_bool();
  K.engine.begun = nondet_uint32();
  ASSUME(K.engine.begun < UINT32_MAX && (!H.begun || K.engine.begun > 0));
}

static void note_state(void)
{
  sending_before = K.sending;
  serviced_before = K.serviced;
  left_before = K.left;
  sleeps_before = K.sleeps;
  waited_before = K.waited;
  blocked_before = K.blocked != NULL;
  told_runner = false;
}

static void others(void)
{
  if (!i_send) K.sending = nondet_bool();
  if (!i_serve) {
    K.serviced = nondet_bool();
    /* another one services the client: nobody closes what this one sends to */
    if (!i_send) {
      stage = nondet_bool() ? CLOSED : nondet_bool() ? OPENING : OPEN;
      /* it may have connected, and not have said so yet */
      transport_open = stage == OPEN || (stage == OPENING && K.serviced && nondet_bool());
    }
  }
  others_run();
  if (!newcomer_came && nondet_bool()) {
    newcomer_came = true;
    newcomer.handle = nondet_bool() ? &H : NULL;
    newcomer.next = K.blocked;
    K.blocked = &newcomer;
  }
  bool more = goes_on();
  K.stop = !more || nondet_bool();
  K.engine.broken = nondet_bool();
  K.engine.connect_requested = more && nondet_bool();
  handle_of_mine->result = more && nondet_bool() ? FAIRLOCK_PENDING : FAIRLOCK_OK;
  others_begin();
  note_state();
}

/*
 * Only the runner leaves the client to others, and only while it runs. It is told of a wait by whoever
 * has waited, and woken by the last of them if it sleeps until then.
 */
static void mine_of_runner(void)
{
  CHECK((!K.left || K.runner != NULL) && (!K.sleeps || K.left));
  CHECK(!H.begun || K.engine.begun > 0);
  if (K.runner != &other_event) return;
  CHECK(K.left == left_before && K.sleeps == sleeps_before && (K.waited || !waited_before));
  CHECK(!K.sleeps || !blocked_before || K.blocked != NULL || (told_runner && K.waited));
}

/* A flag that was set is not set again, and cleared only by the task that has set it. */
static void mine(void)
{
  if (K.sending != sending_before) {
    CHECK(K.sending != i_send);
    i_send = K.sending;
  }
  if (K.serviced != serviced_before) {
    CHECK(K.serviced != i_serve);
    i_serve = K.serviced;
  }
  mine_of_runner();
  note_state();
  CHECK(stage != OPEN || transport_open);
}

/* The port */

bool port_mutex_forked(const struct port_mutex *mutex)
{
  CHECK(mutex == &K.mutex);
  return is_fork;
}

void port_mutex_init(struct port_mutex *mutex)
{
  CHECK(mutex == &K.mutex);
}

void port_mutex_destroy(struct port_mutex *mutex)
{
  CHECK(mutex == &K.mutex && !locked);
}

void port_mutex_lock(struct port_mutex *mutex)
{
  CHECK(mutex == &K.mutex && !locked && !is_fork);
  locked = true;
  others();
}

void port_mutex_unlock(struct port_mutex *mutex)
{
  CHECK(mutex == &K.mutex && locked);
  mine();
  locked = false;
}

void port_event_init(struct port_event *event)
{
  CHECK(event != NULL);
}

void port_event_destroy(struct port_event *event)
{
  CHECK(event != NULL && K.runner != event && locked);
}

void port_event_set(struct port_event *event)
{
  CHECK(event != NULL && locked);
  if (event == &other_event) told_runner = true;
}

static bool slept, yielded;

/* The runner sleeps for long beside others only if there is one who wakes it. */
static void check_runner_sleeps(uint32_t timeout_ms)
{
  CHECK(K.sleeps ? K.blocked != NULL : timeout_ms <= YIELD_MS);
  if (K.sleeps && timeout_ms > YIELD_MS) slept = true;
  if (!K.sleeps) yielded = true;
}

void port_event_wait(struct port_event *event, struct port_mutex *mutex, uint32_t timeout_ms)
{
  CHECK(event != NULL && mutex == &K.mutex && locked && timeout_ms <= PORT_WAIT_MAX_MS);
  if (event == K.runner && K.left) check_runner_sleeps(timeout_ms);
  mine();
  others();
}

uint32_t port_clock_ms(void)
{
  return nondet_uint32();
}

uintptr_t port_task_self(void)
{
  return 1;
}

static int connects(void *context, uint32_t timeout_ms)
{
  (void)context;
  CHECK(!locked && !is_fork && i_serve && !transport_open && timeout_ms <= PORT_WAIT_MAX_MS);
  int result = nondet_int();
  ASSUME(result == PORT_OK || result == PORT_WOULD_BLOCK || result == PORT_NEEDS_INPUT ||
         result == PORT_CLOSED || result == PORT_UNREACHABLE || result == PORT_UNTRUSTED);
  transport_open = result == PORT_OK;
  return result;
}

static int sends(void *context, const void *data, size_t size)
{
  (void)context, (void)data;
  CHECK(!locked && !is_fork && i_send && transport_open && size > 0);
  int result = nondet_int();
  ASSUME((result > 0 && (size_t)result <= size) || result == PORT_WOULD_BLOCK ||
         result == PORT_CLOSED);
  return goes_on() ? result : PORT_CLOSED;
}

static int receives(void *context, void *data, size_t size, uint32_t timeout_ms)
{
  (void)context, (void)data;
  CHECK(!locked && !is_fork && i_serve && transport_open && size > 0);
  CHECK(timeout_ms <= PORT_WAIT_MAX_MS);
  int result = nondet_int();
  ASSUME((result > 0 && (size_t)result <= size) || result == PORT_WOULD_BLOCK ||
         result == PORT_CLOSED || result == PORT_UNTRUSTED);
  return result;
}

static bool whole_client; /* fairlock_client_deinit(): no other task is there */

static void closes(void *context)
{
  (void)context;
  if (!whole_client) mine();
  CHECK(whole_client || (locked && K.serviced && !K.sending && !i_send));
  transport_open = false;
}

/* The engine: any that keeps the contracts of engine.h */

#define WITH(one) CHECK(locked && (one) == &K.engine)

static int any_status(struct fairlock *handle)
{
  int status = nondet_int();
  WITH(handle->engine);
  ASSUME(status <= FAIRLOCK_PENDING && status >= FAIRLOCK_UNTRUSTED);
  if (!goes_on()) ASSUME(status != FAIRLOCK_PENDING);
  if (status == FAIRLOCK_PENDING) handle->result = FAIRLOCK_PENDING;
  handle_of_mine = handle;
  return status;
}

int fairlock_engine_init(struct fairlock_engine *engine, const struct fairlock_config *config)
{
  (void)engine, (void)config;
  return nondet_int();
}

void fairlock_engine_deinit(struct fairlock_engine *engine)
{
  assert(engine == &K.engine);
}

int fairlock_engine_add(struct fairlock_engine *engine, struct fairlock *handle, const char *name,
                        size_t size)
{
  WITH(engine);
  (void)name, (void)size;
  struct fairlock any;
  *handle = any;
  handle->engine = engine;
  handle->result = FAIRLOCK_OK;
  handle->begun = false;
  return nondet_bool() ? FAIRLOCK_OK : FAIRLOCK_INVALID;
}

int fairlock_engine_remove(struct fairlock *handle, uint32_t now)
{
  (void)now;
  return any_status(handle);
}

int fairlock_engine_acquire(struct fairlock *handle, uint32_t wait_ms, uint32_t lease_ms,
                            uint32_t now)
{
  (void)wait_ms, (void)lease_ms, (void)now;
  return any_status(handle);
}

int fairlock_engine_release(struct fairlock *handle, uint32_t now)
{
  (void)now;
  return any_status(handle);
}

int fairlock_engine_cancel(struct fairlock *handle, uint32_t now)
{
  (void)now;
  WITH(handle->engine);
  return nondet_bool() ? FAIRLOCK_OK : FAIRLOCK_NOT_HELD;
}

int fairlock_engine_force(struct fairlock *handle, struct fairlock_target *target, uint32_t now)
{
  (void)target, (void)now;
  return any_status(handle);
}

int fairlock_engine_ask(struct fairlock *handle, struct fairlock_target *target, uint32_t now)
{
  (void)target, (void)now;
  return any_status(handle);
}

int fairlock_engine_inspect(struct fairlock *handle, fairlock_report_fn report, void *context,
                            uint32_t now)
{
  (void)report, (void)context, (void)now;
  return any_status(handle);
}

uint32_t fairlock_engine_remaining_ms(const struct fairlock *handle, uint32_t now)
{
  (void)now;
  WITH(handle->engine);
  return nondet_uint32();
}

unsigned fairlock_engine_wants(const struct fairlock_engine *engine, uint32_t now)
{
  (void)now;
  WITH(engine);
  if (engine->broken) return FAIRLOCK_CLOSE;
  if (stage == OPEN) return FAIRLOCK_RECEIVE | (nondet_bool() ? FAIRLOCK_SEND : 0);
  return stage == OPENING || nondet_bool() ? FAIRLOCK_CONNECT : 0;
}

void fairlock_engine_connect(struct fairlock_engine *engine, uint32_t now)
{
  (void)now;
  WITH(engine);
  engine->connect_requested = goes_on() && nondet_bool();
}

bool fairlock_engine_ready(const struct fairlock_engine *engine)
{
  WITH(engine);
  return nondet_bool();
}

void fairlock_engine_opening(struct fairlock_engine *engine, uint32_t now)
{
  (void)now;
  WITH(engine);
  if (stage == CLOSED) stage = OPENING;
}

void fairlock_engine_opened(struct fairlock_engine *engine, uint32_t now)
{
  (void)now;
  WITH(engine);
  CHECK(stage == OPENING && transport_open); /* as engine.h asks for */
  stage = OPEN;
}

void fairlock_engine_closed(struct fairlock_engine *engine, int status, uint32_t now)
{
  (void)status, (void)now;
  WITH(engine);
  CHECK(!transport_open);
  stage = CLOSED;
  engine->broken = false;
}

const uint8_t *fairlock_engine_output(struct fairlock_engine *engine, size_t *size, uint32_t now)
{
  static const uint8_t bytes;
  (void)now;
  WITH(engine);
  *size = stage == OPEN ? nondet_size() : 0;
  ASSUME(*size <= INT32_MAX);
  return &bytes;
}

void fairlock_engine_sent(struct fairlock_engine *engine, size_t size)
{
  WITH(engine);
  CHECK(size > 0 && stage == OPEN); /* of this connection, not of the next one */
}

void fairlock_engine_fail(struct fairlock_engine *engine, int status)
{
  (void)status;
  WITH(engine);
  engine->broken = true;
}

uint8_t *fairlock_engine_input(struct fairlock_engine *engine, size_t *size)
{
  static uint8_t bytes;
  WITH(engine);
  CHECK(!engine->broken && stage == OPEN); /* as engine.h asks for */
  *size = nondet_size();
  ASSUME(*size > 0 && *size <= INT32_MAX);
  return &bytes;
}

void fairlock_engine_received(struct fairlock_engine *engine, size_t size, uint32_t now)
{
  (void)size, (void)now;
  WITH(engine);
  CHECK(stage == OPEN);
  if (nondet_bool()) engine->broken = true;
}

void fairlock_engine_tick(struct fairlock_engine *engine, uint32_t now)
{
  (void)now;
  WITH(engine);
  mine();
  CHECK(!i_send && !i_serve); /* at the head of each turn */
  if (goes_on() && nondet_bool()) engine->broken = true;
}

uint32_t fairlock_engine_deadline(const struct fairlock_engine *engine, uint32_t now)
{
  (void)now;
  WITH(engine);
  return engine->broken ? 0 : nondet_uint32();
}

size_t resp_format_number(char text[RESP_NUMBER_SIZE], int64_t number)
{
  (void)number;
  CHECK(__CPROVER_w_ok(text, 10)); /* a handle's number is one of 32 bits */
  size_t size = nondet_size();
  ASSUME(size > 0 && size <= 10);
  return size;
}

/* What the task does */

static void connect(void)
{
  REACHED(fairlock_connect(&K) == FAIRLOCK_FORKED);
}

static void make_handle(void)
{
  (void)fairlock_init(&H, &K, "a");
}

static void take_out_handle(void)
{
  REACHED(fairlock_deinit(&H) == FAIRLOCK_OK);
}

static void acquire(void)
{
  REACHED(fairlock_acquire(&H, nondet_uint32(), nondet_uint32()) == FAIRLOCK_OK);
}

static void release(void)
{
  REACHED(fairlock_release(&H) == FAIRLOCK_OK);
}

static void cancel(void)
{
  REACHED(fairlock_cancel(&H) == FAIRLOCK_OK);
}

static void poll(void)
{
  (void)fairlock_poll(&K, nondet_uint32());
}

static void run(void)
{
  REACHED(fairlock_run(&K) == FAIRLOCK_IN_PROGRESS);
  REACHED(slept && yielded);
}

static void force_release(void)
{
  REACHED(fairlock_force_release(&K, "a", 1, nondet_uint64()) == FAIRLOCK_OK);
}

static bool on_report(const struct fairlock_report *report, void *context)
{
  (void)report, (void)context;
  return true;
}

static void inspect(void)
{
  REACHED(fairlock_inspect(&K, "a", 1, on_report, NULL) == FAIRLOCK_OK);
}

static void start_any(void)
{
  static struct fairlock_target hold;
  switch (nondet_uint8()) {
  case 0:
    (void)fairlock_start_acquire(&H, nondet_uint32(), nondet_uint32());
    break;
  case 1:
    (void)fairlock_start_release(&H);
    break;
  case 2:
    (void)fairlock_start_deinit(&H);
    break;
  case 3:
    (void)fairlock_start_force_release(&H, &hold);
    break;
  case 4:
    (void)fairlock_start_ask_release(&H, &hold);
    break;
  default:
    (void)fairlock_start_inspect(&H, on_report, NULL);
  }
}

static void ask(void)
{
  char text[FAIRLOCK_HOLDER_ID_SIZE];
  char error[FAIRLOCK_ERROR_SIZE];
  struct fairlock_counters counters;
  switch (nondet_uint8()) {
  case 0:
    (void)fairlock_remaining_ms(&H);
    break;
  case 1:
    (void)fairlock_hold_count(&H);
    break;
  case 2:
    (void)fairlock_token(&H);
    break;
  case 3:
    (void)fairlock_result(&H);
    break;
  case 4:
    (void)fairlock_wants(&K);
    break;
  case 5:
    (void)fairlock_server_status(&K);
    break;
  case 6:
    fairlock_read_counters(&K, &counters, sizeof counters);
    break;
  case 7:
    fairlock_error(&K, error, FAIRLOCK_ERROR_SIZE);
    break;
  case 8:
    fairlock_stop(&K);
    break;
  case 9:
    (void)fairlock_adopt(&H);
    break;
  default:
    fairlock_id(&H, text, FAIRLOCK_HOLDER_ID_SIZE);
  }
}

/* What every function that waits does: called, and returns, with the mutex locked. */
static void waits_and_returns(void)
{
  if (forked(&K)) return;
  lock(&K);
  struct fairlock *handle = nondet_bool() ? &H : NULL;
  wait_for_end(&K, handle);
  mine();
  CHECK(locked && !i_send && !i_serve && !waits(&K, handle));
  CHECK(handle == NULL || !handle->awaited);
  unlock(&K, 0);
}

/* The same in its place, by what client_finish proves of it. */
void any_end(struct fairlock_client *client, struct fairlock *handle);
void any_end(struct fairlock_client *client, struct fairlock *handle)
{
  CHECK(client == &K && locked && !is_fork && !i_send && !i_serve);
  mine();
  others();
  handle->awaited = false;
  handle->result = (int8_t)nondet_int();
  if (handle->result != FAIRLOCK_PENDING) handle->begun = false;
  ASSUME(!waits(client, handle));
}

static void end_client(void)
{
  whole_client = true;
  fairlock_client_deinit(&K);
}

void harness(void)
{
  struct fairlock_client any_client;
  struct fairlock any_handle;
  K = any_client;
  H = any_handle;
  T = (struct port_transport){connects, sends, receives, closes, NULL, NULL, NULL};
  K.transport = &T;
  K.runner = nondet_bool() ? &other_event : NULL;
  H.engine = &K.engine;
  other.handle = nondet_bool() ? &H : NULL;
  other.next = NULL;
  K.blocked = nondet_bool() ? &other : NULL;
  ASSUME(K.engine.id_size <= FAIRLOCK_ID_MAX + FAIRLOCK_ID_SUFFIX);
  is_fork = nondet_bool();
  CALL();
  CHECK(!locked && !i_send && !i_serve);
  CHECK(K.blocked == NULL || K.blocked == &other || K.blocked == &newcomer);
  CHECK(K.blocked != &newcomer || newcomer.next == NULL || newcomer.next == &other);
  REACHED(is_fork);
  REACHED(!is_fork);
}
