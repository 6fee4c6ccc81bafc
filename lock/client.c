/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The client: joins the engine to a port, for tasks that block and for those that do not.
 *
 * One mutex guards the engine. It is unlocked during connect(), send() and recv() of the transport,
 * and locked during close() and aim(), which do not wait. Of all tasks inside a blocking call, one
 * services the client: it connects, receives and closes. The others send their own requests, and
 * sleep on an event of their own until their operation is over, or until they have to service the
 * client. They also wake at the engine's deadline and do what is due, so the task that receives
 * never has to be woken.
 *
 * A task inside fairlock_run() services the client while no other does. Who waits for an answer gets it
 * sooner if it receives that itself than if it is woken by another task. So the runner leaves the client
 * to those that wait, and to those that are likely to wait again in a moment: for YIELD_MS after the last
 * wait, unless there are operations for which nobody waits.
 *
 * Only one task sends at a time. It also sends what others have to send meanwhile, in as few calls
 * as possible. The connection is never closed while a task sends.
 *
 * If the program has one task (PORT_ONE_TASK), the compiler leaves out all code for others.
 *
 * A forked process has a copy of all this: of the mutex, which may be locked there for ever, and of
 * the connection, which the parent uses. So in a forked process every operation returns before it
 * touches either; fairlock_client_deinit() closes the copy of the connection.
 */
#include "engine.h"
#include "fairlock_abandon.h"
#include "fairlock_credentials.h"
#include "fairlock_follow.h"
#include "fairlock_keep.h"
#include "fairlock_log.h"
#include "fairlock_operate.h"
#include "timing.h"

#include <string.h>

#ifdef FAIRLOCK_ASSERT
#include "internal.h" /* the schedule */

/*
 * True if the memory is that of a handle of this client. Adding it again would break the schedule.
 */
static bool in_use(const struct fairlock_client *client, const struct fairlock *memory)
{
  const struct fairlock *handle = client->engine.first;
  while (handle != NULL && handle != memory)
    handle = fairlock_schedule_next(handle, true);
  return handle != NULL;
}
#else
#define FAIRLOCK_ASSERT(condition) ((void)0)
#endif

/*
 * While another task services the client, work that is due is left to that task for this long. If
 * the waiting task looked again at once, it would keep the other one from getting the mutex. And so long
 * the runner leaves the client to tasks that have waited.
 */
#define YIELD_MS 5U

/*
 * While bytes are unsent, or while connecting, fairlock_poll() asks to be called again after this
 * time, because its caller may not notice when sending or connecting can go on.
 */
#define BLOCKED_MS 10U

/*
 * A task inside a blocking call or fairlock_poll(): it services the client, or sleeps. On the stack
 * of that task.
 */
struct fairlock_blocked {
  /* it is inside fairlock_poll(), and waits for anything that happens */
  bool polls;

  /* the handle for whose operation it waits; NULL: it waits for a connection, or polls */
  const struct fairlock *handle;
  struct fairlock_blocked *next;
  struct port_event event;
};

static struct fairlock_client *client_of(struct fairlock *handle)
{
  FAIRLOCK_ASSERT(handle != NULL && handle->engine != NULL); /* it is initialised */
  return (struct fairlock_client *)(void *)((char *)handle->engine -
                                            offsetof(struct fairlock_client, engine));
}

/*
 * True in a forked process. Has to be called before the mutex is locked, which may block for ever.
 */
static bool forked(const struct fairlock_client *client)
{
  FAIRLOCK_ASSERT(client != NULL && client->transport != NULL); /* it is initialised */
  return port_mutex_forked(&client->mutex);
}

static void lock(struct fairlock_client *client)
{
  port_mutex_lock(&client->mutex);
}

static struct fairlock_client *lock_client_of(struct fairlock *handle)
{
  struct fairlock_client *client = client_of(handle);
  lock(client);
  return client;
}

static int unlock(struct fairlock_client *client, int status)
{
  port_mutex_unlock(&client->mutex);
  return status;
}

/* Another task is inside send(). */
static bool sending(const struct fairlock_client *client)
{
  return !PORT_ONE_TASK && client->sending;
}

/*
 * Does what is due, and sends as much as it can without blocking, unless another task is sending,
 * which then sends all. Returns the time. Called, and returns, with the mutex locked; unlocks it to
 * send.
 */
static uint32_t attend(struct fairlock_client *client)
{
  struct fairlock_engine *engine = &client->engine;
  const struct port_transport *transport = client->transport;
  for (;;) {
    uint32_t now = port_clock_ms();
    size_t size = 0;
    fairlock_engine_tick(engine, now);
    if (sending(client) || engine->broken) return now;
    const uint8_t *data = fairlock_engine_output(engine, &size, now);
    if (size == 0) return now;
    if (!PORT_ONE_TASK) client->sending = true;
    port_mutex_unlock(&client->mutex);
    int sent = transport->send(transport->context, data, size);
    port_mutex_lock(&client->mutex);
    if (!PORT_ONE_TASK) client->sending = false;
    if (sent == PORT_WOULD_BLOCK) return now;
    if (sent > 0) fairlock_engine_sent(engine, (size_t)sent);
    else fairlock_engine_fail(engine, FAIRLOCK_UNREACHABLE); /* service() then closes it */
  }
}

/* Ends the wait of the task that services the client, if the transport can. */
static void wake_servicing(const struct fairlock_client *client)
{
  const struct port_transport *transport = client->transport;
  if (!PORT_ONE_TASK && client->serviced && transport->wake != NULL)
    transport->wake(transport->context);
}

static void wake_runner(struct fairlock_client *client)
{
  if (!PORT_ONE_TASK && client->runner != NULL) port_event_set(client->runner);
}

/* Operations go on for whose end perhaps nobody waits. */
static bool have_begun(const struct fairlock_client *client)
{
#if PORT_ONE_TASK
  (void)client;
  return false;
#else
  return client->engine.begun > 0;
#endif
}

/* Something has changed: wakes the runner, unless it leaves that to others. */
static void tell_runner(struct fairlock_client *client)
{
  if (!client->left || have_begun(client)) wake_runner(client);
}

/*
 * True while a task has to wait: for the end of the handle's operation, or, without a handle, for a
 * connection.
 */
static bool waits(const struct fairlock_client *client, const struct fairlock *handle)
{
  return handle != NULL ? handle->result == FAIRLOCK_PENDING : client->engine.connect_requested;
}

/*
 * Wakes the tasks whose wait is over. news: also those inside fairlock_poll(), because operations
 * may have ended. If nobody services the client, also wakes a task to do so: the newest, because
 * its answer is likely to come last.
 */
static void wake_blocked(struct fairlock_client *client, bool news)
{
  struct fairlock_blocked *next = NULL;
  if (PORT_ONE_TASK) return;
  client->news |= news;
  for (struct fairlock_blocked *task = client->blocked; task != NULL; task = task->next) {
    if (task->polls ? news : !waits(client, task->handle)) port_event_set(&task->event);
    else if (next == NULL) next = task;
  }
  if (next != NULL && !client->serviced) port_event_set(&next->event);
}

/*
 * Services the client once. Only the task that has set `serviced` may call it. Blocks for up to
 * wait_ms, with the mutex unlocked. Returns true if there may be more to do at once.
 */
static bool service(struct fairlock_client *client, uint32_t wait_ms, uint32_t now,
                    struct port_event *event)
{
  struct fairlock_engine *engine = &client->engine;
  const struct port_transport *transport = client->transport;
  unsigned wants = fairlock_engine_wants(engine, now);
  size_t size = 0; /* of the buffer to receive into; connecting has none */
  int got;
  if (wants & FAIRLOCK_CLOSE) {
    transport->close(transport->context);
    fairlock_engine_closed(engine, FAIRLOCK_UNREACHABLE, now);
    return false;
  }
  if (wants == 0) {
    port_event_wait(event, &client->mutex, wait_ms);
    return false;
  }
  if (wants & FAIRLOCK_CONNECT) {
    fairlock_engine_opening(engine, now);
    wait_ms = shorter(wait_ms, fairlock_engine_deadline(engine, now)); /* it may be sooner by now */
    port_mutex_unlock(&client->mutex);
    got = transport->connect(transport->context, wait_ms);
  } else {
    uint8_t *data = fairlock_engine_input(engine, &size);
    port_mutex_unlock(&client->mutex);
    got = transport->recv(transport->context, data, size, wait_ms);
  }
  port_mutex_lock(&client->mutex);
  now = port_clock_ms();
  engine->needs_input = got == PORT_NEEDS_INPUT;
  if (got == PORT_WOULD_BLOCK || got == PORT_NEEDS_INPUT) got = 0;
  int failure = got == PORT_UNTRUSTED ? FAIRLOCK_UNTRUSTED : FAIRLOCK_UNREACHABLE;
  if (got < 0) fairlock_engine_fail(engine, failure); /* the next call closes the connection */
  else if (size > 0) fairlock_engine_received(engine, (size_t)got, now);
  else if (got > 0) fairlock_engine_opened(engine, now);
  return got > 0;
}

/*
 * True if the task with this event can only wait, because another one services the client, or is to, or
 * still sends on a connection that has to be closed.
 */
static bool stands_aside(const struct fairlock_client *client, const struct port_event *event)
{
  if (PORT_ONE_TASK) return false;
  if (client->serviced || (client->runner == event && client->left)) return true;
  return client->engine.broken && sending(client);
}

/*
 * One step of a wait: services the client once, or sleeps if another task services it. Blocks for
 * up to timeout_ms. now: what attend() has returned just before. Called, and returns, with the
 * mutex locked. Returns true if there may be more to do at once.
 */
static bool service_or_sleep(struct fairlock_client *client, uint32_t timeout_ms, uint32_t now,
                             struct port_event *event)
{
  bool beside = stands_aside(client, event);
  uint32_t wait = fairlock_engine_deadline(&client->engine, now);
  /* bytes could not be sent, and the task inside recv() may not notice when they can */
  if (beside && (wait == 0 || client->engine.send_end > 0)) wait = YIELD_MS;
  wait = shorter(shorter(timeout_ms, PORT_WAIT_MAX_MS), wait);
  if (beside) {
    port_event_wait(event, &client->mutex, wait);
    return false;
  }
  client->serviced = true;
  wake_blocked(client, false); /* operations of other tasks may have ended */
  bool closes = client->engine.broken;
  bool more = service(client, wait, now, event);
  wake_blocked(client, more || closes);
  client->serviced = false;
  /* the runner leaves it to a task that has begun to wait meanwhile */
  if (!PORT_ONE_TASK && client->runner == event) wake_blocked(client, false);
  return more;
}

/* Adds the task to the list of those that wait, so that others can wake it. */
static void begin_waiting(struct fairlock_client *client, struct fairlock_blocked *self)
{
  port_event_init(&self->event);
  if (PORT_ONE_TASK) return;
  self->next = client->blocked;
  client->blocked = self;
}

static void end_waiting(struct fairlock_client *client, struct fairlock_blocked *self)
{
  struct fairlock_blocked **link = &client->blocked;
  if (!PORT_ONE_TASK) {
    while (*link != self)
      link = &(*link)->next;
    *link = self->next;
    client->waited = true;
    wake_blocked(client, false);
    if (client->blocked == NULL && (client->sleeps || have_begun(client))) wake_runner(client);
  }
  port_event_destroy(&self->event);
}

/*
 * A task begins to wait. If nobody reads now, an answer to an earlier request, or to the greeting, may
 * have lain there for long, and does not show how long the server took.
 */
static void note_unread(struct fairlock_client *client)
{
  struct fairlock_engine *engine = &client->engine;
  bool read = !PORT_ONE_TASK && (client->serviced || client->runner != NULL);
  bool open = fairlock_engine_wants(engine, port_clock_ms()) & FAIRLOCK_RECEIVE;
  bool answered = fairlock_engine_ready(engine) && engine->last_sent == engine->last_received;
  if (!read && open && !answered) engine->overslept = true;
}

/* Blocks until the task's wait is over. Called, and returns, with the mutex locked. */
static void wait_for_end(struct fairlock_client *client, struct fairlock *handle)
{
  struct fairlock_blocked self = {.handle = handle};
  if (handle != NULL) handle->awaited = true;
  note_unread(client);
  begin_waiting(client, &self);
  tell_runner(client);
  for (;;) {
    uint32_t now = attend(client);
    if (!waits(client, handle)) break;
    service_or_sleep(client, FAIRLOCK_FOREVER, now, &self.event);
  }
  if (handle != NULL) handle->awaited = false;
  end_waiting(client, &self);
}

/* The client's life */

int fairlock_client_init(struct fairlock_client *client, const struct fairlock_config *config,
                         struct port_transport *transport)
{
  FAIRLOCK_ASSERT(client != NULL && config != NULL && transport != NULL);
  memset(client, 0, sizeof *client);
  client->transport = transport;
  int status = fairlock_engine_init(&client->engine, config);
  if (status == FAIRLOCK_OK) port_mutex_init(&client->mutex);
  return status;
}

void fairlock_client_deinit(struct fairlock_client *client)
{
  FAIRLOCK_ASSERT(client != NULL && client->transport != NULL);
  client->transport->close(client->transport->context);
  client->transport->close(
      client->transport->context); /* frees what is left of attempts to connect */
  if (!forked(client)) fairlock_engine_deinit(&client->engine);
  port_mutex_destroy(&client->mutex);
}

int fairlock_follow(struct fairlock_client *client, struct fairlock_topology *topology)
{
  FAIRLOCK_ASSERT(client != NULL && client->transport != NULL && topology != NULL);
  if (forked(client)) return FAIRLOCK_FORKED;
  const struct port_transport *transport = client->transport;
  return fairlock_engine_follow(&client->engine, topology, transport->aim, transport->context);
}

/* keep.c has ended operations without asking the server: wakes the tasks that wait for them. */
static void on_answered(void *context)
{
  wake_blocked(context, true);
}

int fairlock_use_keeping(struct fairlock_client *client, struct fairlock_keeping *keeping)
{
  FAIRLOCK_ASSERT(client != NULL && client->transport != NULL && keeping != NULL);
  if (forked(client)) return FAIRLOCK_FORKED;
  int status = fairlock_engine_keep(&client->engine, keeping);
  if (status != FAIRLOCK_OK) return status;
  keeping->own.serviced = &client->serviced;
  keeping->own.answered = on_answered;
  keeping->own.context = client;
  return status;
}

int fairlock_set_log(struct fairlock_client *client, struct fairlock_log *log)
{
  FAIRLOCK_ASSERT(client != NULL && client->transport != NULL);
  FAIRLOCK_ASSERT(log != NULL && log->function != NULL);
  if (forked(client)) return FAIRLOCK_FORKED;
  fairlock_engine_set_log(&client->engine, log);
  return FAIRLOCK_OK;
}

int fairlock_use_downgrading(struct fairlock_client *client, struct fairlock_downgrading *option)
{
  FAIRLOCK_ASSERT(client != NULL && client->transport != NULL && option != NULL);
  if (forked(client)) return FAIRLOCK_FORKED;
  fairlock_engine_use_downgrading(&client->engine, option);
  return FAIRLOCK_OK;
}

int fairlock_use_credentials(struct fairlock_client *client,
                             struct fairlock_credentials *credentials)
{
  FAIRLOCK_ASSERT(client != NULL && client->transport != NULL);
  FAIRLOCK_ASSERT(credentials != NULL && credentials->function != NULL);
  if (forked(client)) return FAIRLOCK_FORKED;
  fairlock_engine_use_credentials(&client->engine, credentials);
  return FAIRLOCK_OK;
}

int fairlock_connect(struct fairlock_client *client)
{
  if (forked(client)) return FAIRLOCK_FORKED;
  lock(client);
  struct fairlock_engine *engine = &client->engine;
  bool was_up = fairlock_engine_ready(engine);
  fairlock_engine_connect(engine, port_clock_ms());
  wait_for_end(client, NULL);
  if (!fairlock_engine_ready(engine)) return unlock(client, engine->last_error);
  if (!was_up) engine->last_error = FAIRLOCK_OK;
  return unlock(client, FAIRLOCK_OK);
}

int fairlock_init_bytes(struct fairlock *handle, struct fairlock_client *client, const void *name,
                        size_t size)
{
  FAIRLOCK_ASSERT(handle != NULL);
  if (forked(client)) return FAIRLOCK_FORKED;
  lock(client);
  FAIRLOCK_ASSERT(!in_use(client, handle));
  int status = fairlock_engine_add(&client->engine, handle, name, size);
  return unlock(client, status);
}

int fairlock_init_shared_bytes(struct fairlock_shared *shared, struct fairlock_client *client,
                               const void *name, size_t size, uint32_t limit)
{
  FAIRLOCK_ASSERT(shared != NULL);
  if (forked(client)) return FAIRLOCK_FORKED;
  lock(client);
  FAIRLOCK_ASSERT(!in_use(client, &shared->handle));
  int status = fairlock_engine_add_shared(&client->engine, shared, name, size, limit);
  return unlock(client, status);
}

int fairlock_init(struct fairlock *handle, struct fairlock_client *client, const char *name)
{
  return fairlock_init_bytes(handle, client, name, name != NULL ? strlen(name) : 0);
}

int fairlock_init_shared(struct fairlock_shared *shared, struct fairlock_client *client,
                         const char *name, uint32_t limit)
{
  return fairlock_init_shared_bytes(shared, client, name, name != NULL ? strlen(name) : 0, limit);
}

/* Takes the handle out, and waits until that is done. Called with the mutex locked. */
static int take_out(struct fairlock_client *client, struct fairlock *handle)
{
  int status;
  while (status = fairlock_engine_remove(handle, port_clock_ms()), status == FAIRLOCK_PENDING) {
    wait_for_end(client, handle);
    if (handle->result < 0) return handle->result;
  }
  return status;
}

int fairlock_deinit(struct fairlock *handle)
{
  if (forked(client_of(handle))) return FAIRLOCK_FORKED;
  struct fairlock_client *client = lock_client_of(handle);
  int status = handle->awaited ? FAIRLOCK_IN_PROGRESS : take_out(client, handle);
  return unlock(client, status);
}

/* Operations. The functions that begin one are called, and return, with the mutex locked. */

/*
 * Why the calling task may not begin an operation; FAIRLOCK_OK: it may. Only the task that has
 * acquired a hold, or has adopted it, may use it.
 */
static int refusal(const struct fairlock *handle)
{
  if (PORT_ONE_TASK) return FAIRLOCK_OK;
  if (handle->awaited) return FAIRLOCK_IN_PROGRESS;
  return handle->holds > 0 && handle->by.task != port_task_self() ? FAIRLOCK_WRONG_TASK
                                                                  : FAIRLOCK_OK;
}

static int begin_acquire(struct fairlock *handle, uint32_t wait_ms, uint32_t lease_ms)
{
  int status = refusal(handle);
  if (status != FAIRLOCK_OK) return status;
  status = fairlock_engine_acquire(handle, wait_ms, lease_ms, port_clock_ms());
  if (status == FAIRLOCK_PENDING) handle->by.task = port_task_self();
  return status;
}

static int begin_release(struct fairlock *handle)
{
  int status = refusal(handle);
  if (status != FAIRLOCK_OK) return status;
  return fairlock_engine_release(handle, port_clock_ms());
}

/* Both handles have to be idle, and the exclusive one that of this task. */
static int begin_downgrade(struct fairlock *exclusive, struct fairlock_shared *shared,
                           uint32_t lease_ms)
{
  struct fairlock *successor = &shared->handle;
  if (successor->engine != exclusive->engine) return FAIRLOCK_INVALID;
  int status = refusal(exclusive);
  if (status == FAIRLOCK_OK) status = refusal(successor);
  if (status != FAIRLOCK_OK) return status;
  status = fairlock_engine_downgrade(exclusive, shared, lease_ms, port_clock_ms());
  if (status == FAIRLOCK_PENDING) successor->by.task = port_task_self();
  return status;
}

/*
 * Sends the request of an operation that was begun, and unlocks the mutex without waiting for it.
 */
static int start(struct fairlock_client *client, int status)
{
  attend(client);
  tell_runner(client);
  return unlock(client, status);
}

/* The operation of this handle, if it was begun: the runner receives the answer, as perhaps nobody waits. */
static void count(struct fairlock *handle, int status)
{
#if !PORT_ONE_TASK
  if (status != FAIRLOCK_PENDING || handle->begun) return;
  handle->begun = true;
  handle->engine->begun++;
#else
  (void)handle;
  (void)status;
#endif
}

static int start_operation(struct fairlock_client *client, struct fairlock *handle, int status)
{
  count(handle, status);
  return start(client, status);
}

int fairlock_wait(struct fairlock *handle, uint32_t wait_ms)
{
  if (forked(client_of(handle))) return FAIRLOCK_FORKED;
  struct fairlock_client *client = lock_client_of(handle);
  struct fairlock_blocked self = {.handle = handle};
  if (handle->awaited) return unlock(client, FAIRLOCK_IN_PROGRESS);
  handle->awaited = true;
  note_unread(client);
  begin_waiting(client, &self);
  port_event_expect_signals(&self.event);
  tell_runner(client);
  (void)port_task_interrupted(); /* by what was before */
  uint32_t now = attend(client);
  uint32_t began = now;
  uint32_t left = wait_ms;
  while (waits(client, handle)) {
    service_or_sleep(client, left, now, &self.event);
    now = attend(client);
    if (left == 0 || port_task_interrupted()) break;
    if (wait_ms != FAIRLOCK_FOREVER) left = now - began < wait_ms ? wait_ms - (now - began) : 0;
  }
  handle->awaited = false;
  end_waiting(client, &self);
  return unlock(client, handle->result);
}

/* Waits for the end of an operation, if status says that it was begun. Returns its result. */
static int result_of(struct fairlock_client *client, struct fairlock *handle, int status)
{
  if (status != FAIRLOCK_PENDING) return status;
  wait_for_end(client, handle);
  return handle->result;
}

/* The same, and unlocks the mutex. */
static int complete(struct fairlock_client *client, struct fairlock *handle, int status)
{
  return unlock(client, result_of(client, handle, status));
}

/*
 * The result of an acquire that has ended with this status. If the hold was lost before the task ran
 * again, the task does not hold, and has nothing to release.
 */
static int still_held(struct fairlock *handle, int status)
{
  uint32_t now = port_clock_ms();
  if (status != FAIRLOCK_OK || fairlock_engine_remaining_ms(handle, now) > 0) return status;
  return fairlock_engine_release(handle, now);
}

int fairlock_start_deinit(struct fairlock *handle)
{
  if (forked(client_of(handle))) return FAIRLOCK_FORKED;
  struct fairlock_client *client = lock_client_of(handle);
  int status = FAIRLOCK_IN_PROGRESS;
  if (!handle->awaited) status = fairlock_engine_remove(handle, port_clock_ms());
  return start_operation(client, handle, status);
}

int fairlock_abandon(struct fairlock *handle, struct fairlock_rest *rest)
{
  FAIRLOCK_ASSERT(rest != NULL);
  if (forked(client_of(handle))) return FAIRLOCK_FORKED;
  struct fairlock_client *client = lock_client_of(handle);
  int status = FAIRLOCK_IN_PROGRESS;
  if (!handle->awaited) status = fairlock_engine_abandon(handle, rest, port_clock_ms());
  return start(client, status);
}

int fairlock_start_acquire(struct fairlock *handle, uint32_t wait_ms, uint32_t lease_ms)
{
  if (forked(client_of(handle))) return FAIRLOCK_FORKED;
  struct fairlock_client *client = lock_client_of(handle);
  int status = begin_acquire(handle, wait_ms, lease_ms);
  return start_operation(client, handle, status);
}

int fairlock_client_prepare_acquire(struct fairlock *handle, uint32_t wait_ms, uint32_t lease_ms)
{
  if (forked(client_of(handle))) return FAIRLOCK_FORKED;
  struct fairlock_client *client = lock_client_of(handle);
  int status = begin_acquire(handle, wait_ms, lease_ms);
  return start(client, status);
}

int fairlock_start_release(struct fairlock *handle)
{
  if (forked(client_of(handle))) return FAIRLOCK_FORKED;
  struct fairlock_client *client = lock_client_of(handle);
  int status = begin_release(handle);
  return start_operation(client, handle, status);
}

int fairlock_client_prepare_release(struct fairlock *handle)
{
  if (forked(client_of(handle))) return FAIRLOCK_FORKED;
  struct fairlock_client *client = lock_client_of(handle);
  int status = begin_release(handle);
  return start(client, status);
}

typedef int begin_break_fn(struct fairlock *handle, struct fairlock_target *target, uint32_t now);

static int start_breaking(struct fairlock *handle, struct fairlock_target *target,
                          begin_break_fn *begin)
{
  if (forked(client_of(handle))) return FAIRLOCK_FORKED;
  struct fairlock_client *client = lock_client_of(handle);
  int status = FAIRLOCK_IN_PROGRESS;
  if (!handle->awaited) status = begin(handle, target, port_clock_ms());
  return start_operation(client, handle, status);
}

int fairlock_start_force_release(struct fairlock *handle, struct fairlock_target *target)
{
  return start_breaking(handle, target, fairlock_engine_force);
}

int fairlock_start_ask_release(struct fairlock *handle, struct fairlock_target *target)
{
  return start_breaking(handle, target, fairlock_engine_ask);
}

int fairlock_start_inspect(struct fairlock *handle, fairlock_report_fn report, void *context)
{
  if (forked(client_of(handle))) return FAIRLOCK_FORKED;
  struct fairlock_client *client = lock_client_of(handle);
  int status = FAIRLOCK_IN_PROGRESS;
  if (!handle->awaited) status = fairlock_engine_inspect(handle, report, context, port_clock_ms());
  return start_operation(client, handle, status);
}

int fairlock_acquire(struct fairlock *handle, uint32_t wait_ms, uint32_t lease_ms)
{
  if (forked(client_of(handle))) return FAIRLOCK_FORKED;
  struct fairlock_client *client = lock_client_of(handle);
  int status = begin_acquire(handle, wait_ms, lease_ms);
  status = still_held(handle, result_of(client, handle, status));
  return unlock(client, status);
}

int fairlock_try_acquire(struct fairlock *handle, uint32_t lease_ms)
{
  return fairlock_acquire(handle, 0, lease_ms);
}

int fairlock_release(struct fairlock *handle)
{
  if (forked(client_of(handle))) return FAIRLOCK_FORKED;
  struct fairlock_client *client = lock_client_of(handle);
  int status = begin_release(handle);
  return complete(client, handle, status);
}

int fairlock_start_downgrade(struct fairlock *exclusive, struct fairlock_shared *shared,
                             uint32_t lease_ms)
{
  FAIRLOCK_ASSERT(shared != NULL);
  if (forked(client_of(exclusive))) return FAIRLOCK_FORKED;
  struct fairlock_client *client = lock_client_of(exclusive);
  int status = begin_downgrade(exclusive, shared, lease_ms);
  count(&shared->handle, status);
  return start_operation(client, exclusive, status);
}

int fairlock_downgrade(struct fairlock *exclusive, struct fairlock_shared *shared,
                       uint32_t lease_ms)
{
  FAIRLOCK_ASSERT(shared != NULL);
  if (forked(client_of(exclusive))) return FAIRLOCK_FORKED;
  struct fairlock_client *client = lock_client_of(exclusive);
  int status = begin_downgrade(exclusive, shared, lease_ms);
  if (status != FAIRLOCK_PENDING) return unlock(client, status);
  shared->handle.awaited = true; /* it may end first, and stays this task's until the end */
  wait_for_end(client, exclusive);
  wait_for_end(client, &shared->handle);
  return unlock(client, still_held(&shared->handle, shared->handle.result));
}

int fairlock_cancel(struct fairlock *handle)
{
  if (forked(client_of(handle))) return FAIRLOCK_FORKED;
  struct fairlock_client *client = lock_client_of(handle);
  int status = fairlock_engine_cancel(handle, port_clock_ms());
  attend(client);
  wake_blocked(client, status == FAIRLOCK_OK);
  return unlock(client, status);
}

int fairlock_adopt(struct fairlock *handle)
{
  if (forked(client_of(handle))) return FAIRLOCK_FORKED;
  struct fairlock_client *client = lock_client_of(handle);
  int status = FAIRLOCK_OK;
  if (handle->result == FAIRLOCK_PENDING || handle->awaited) status = FAIRLOCK_IN_PROGRESS;
  else if (handle->holds == 0) status = FAIRLOCK_NOT_HELD;
  else handle->by.task = port_task_self();
  return unlock(client, status);
}

uint32_t fairlock_remaining_ms(struct fairlock *handle)
{
  if (forked(client_of(handle))) return 0;
  struct fairlock_client *client = lock_client_of(handle);
  uint32_t left = fairlock_engine_remaining_ms(handle, port_clock_ms());
  port_mutex_unlock(&client->mutex);
  return left;
}

uint32_t fairlock_hold_count(struct fairlock *handle)
{
  if (forked(client_of(handle))) return 0;
  struct fairlock_client *client = lock_client_of(handle);
  uint32_t count = fairlock_engine_remaining_ms(handle, port_clock_ms()) > 0 ? handle->holds : 0;
  port_mutex_unlock(&client->mutex);
  return count;
}

uint64_t fairlock_token(struct fairlock *handle)
{
  if (forked(client_of(handle))) return 0;
  struct fairlock_client *client = lock_client_of(handle);
  uint64_t token = fairlock_engine_remaining_ms(handle, port_clock_ms()) > 0 ? handle->token : 0;
  port_mutex_unlock(&client->mutex);
  return token;
}

int fairlock_result(struct fairlock *handle)
{
  if (forked(client_of(handle))) return FAIRLOCK_FORKED;
  struct fairlock_client *client = lock_client_of(handle);
  int status = handle->result;
  return unlock(client, status);
}

/*
 * Operations on a lock rather than on a hold use a handle that exists only during the call. Taking
 * it out cannot fail: nobody else uses it, it does not hold, and it never subscribes or acquires,
 * so nothing of it can be left on the server.
 */
static int dismiss(struct fairlock *visitor, int status)
{
  int taken_out = fairlock_deinit(visitor);
  FAIRLOCK_ASSERT(taken_out == FAIRLOCK_OK);
  (void)taken_out;
  return status;
}

static int break_hold(struct fairlock_client *client, const void *name, size_t size, uint64_t token,
                      begin_break_fn *begin)
{
  struct fairlock visitor;
  struct fairlock_target target = {.token = token};
  int status = fairlock_init_bytes(&visitor, client, name, size);
  if (status != FAIRLOCK_OK) return status;
  lock(client);
  status = begin(&visitor, &target, port_clock_ms());
  return dismiss(&visitor, complete(client, &visitor, status));
}

int fairlock_force_release(struct fairlock_client *client, const void *name, size_t size,
                           uint64_t token)
{
  return break_hold(client, name, size, token, fairlock_engine_force);
}

int fairlock_ask_release(struct fairlock_client *client, const void *name, size_t size,
                         uint64_t token)
{
  return break_hold(client, name, size, token, fairlock_engine_ask);
}

int fairlock_inspect(struct fairlock_client *client, const void *name, size_t size,
                     fairlock_report_fn report, void *context)
{
  struct fairlock visitor;
  if (report == NULL) return FAIRLOCK_INVALID;
  int status = fairlock_init_bytes(&visitor, client, name, size);
  if (status != FAIRLOCK_OK) return status;
  lock(client);
  status = fairlock_engine_inspect(&visitor, report, context, port_clock_ms());
  return dismiss(&visitor, complete(client, &visitor, status));
}

uint32_t fairlock_poll(struct fairlock_client *client, uint32_t timeout_ms)
{
  struct fairlock_blocked self = {.polls = true};
  if (forked(client)) return HORIZON_MS; /* nothing is ever due */
  lock(client);
  struct fairlock_engine *engine = &client->engine;
  begin_waiting(client, &self);
  uint32_t began = attend(client);
  if (!PORT_ONE_TASK && client->news) timeout_ms = 0;
  bool more = service_or_sleep(client, timeout_ms, began, &self.event);
  /* usually there is no more: finding that out here saves the caller's loop a turn */
  if (more) more = service_or_sleep(client, 0, attend(client), &self.event);
  uint32_t now = attend(client);
  end_waiting(client, &self);
  if (!PORT_ONE_TASK) client->news = false; /* the caller looks at the results next */
  uint32_t due = fairlock_engine_deadline(engine, now);
  if (!engine->needs_input &&
      fairlock_engine_wants(engine, now) & (FAIRLOCK_CONNECT | FAIRLOCK_SEND))
    due = shorter(due, BLOCKED_MS);
  port_mutex_unlock(&client->mutex);
  return more ? 0 : due;
}

unsigned fairlock_wants(struct fairlock_client *client)
{
  if (forked(client)) return 0;
  lock(client);
  unsigned wants = fairlock_engine_wants(&client->engine, port_clock_ms());
  /* TLS waits for input, and the socket is writable all the time */
  if (wants == FAIRLOCK_CONNECT && client->engine.needs_input) wants = FAIRLOCK_RECEIVE;
  port_mutex_unlock(&client->mutex);
  return wants;
}

/*
 * Whether the runner leaves the client to others now: for how long at most; FAIRLOCK_FOREVER also if it
 * does not. *since: when it began to; kept between the calls.
 */
static uint32_t leave_to_others(struct fairlock_client *client, uint32_t *since, uint32_t now)
{
  bool waiting = client->blocked != NULL;
  uint32_t past = now - *since;
  if (PORT_ONE_TASK) return FAIRLOCK_FOREVER;
  client->sleeps = false;
  if (!waiting && have_begun(client)) {
    client->left = false;
    client->waited = false;
    return FAIRLOCK_FOREVER;
  }
  if (client->left && past < YIELD_MS) return YIELD_MS - past;
  bool lately = client->waited || (waiting && !client->left);
  client->waited = false;
  client->left = lately || waiting;
  client->sleeps = waiting && !lately;
  *since = now;
  return lately ? YIELD_MS : FAIRLOCK_FOREVER;
}

int fairlock_run(struct fairlock_client *client)
{
  struct port_event event;
  uint32_t since = 0;
  if (forked(client)) return FAIRLOCK_FORKED;
  lock(client);
  if (!PORT_ONE_TASK && client->runner != NULL) return unlock(client, FAIRLOCK_IN_PROGRESS);
  port_event_init(&event);
  client->runner = &event;
  if (!PORT_ONE_TASK) client->waited = false;
  while (!client->stop) {
    uint32_t now = attend(client);
    service_or_sleep(client, leave_to_others(client, &since, now), now, &event);
  }
  client->stop = false;
  if (!PORT_ONE_TASK) client->left = client->sleeps = false;
  client->runner = NULL;
  wake_blocked(client, false);
  port_event_destroy(&event);
  return unlock(client, FAIRLOCK_OK);
}

void fairlock_stop(struct fairlock_client *client)
{
  if (forked(client)) return;
  lock(client);
  client->stop = true;
  wake_runner(client);
  wake_servicing(client);
  port_mutex_unlock(&client->mutex);
}

void fairlock_error(struct fairlock_client *client, char *text, size_t size)
{
  FAIRLOCK_ASSERT(text != NULL && size > 0);
  text[0] = 0;
  if (forked(client)) return;
  lock(client);
  if (size > FAIRLOCK_ERROR_SIZE) size = FAIRLOCK_ERROR_SIZE;
  memcpy(text, client->engine.error, size - 1);
  text[size - 1] = 0;
  port_mutex_unlock(&client->mutex);
}

int fairlock_server_status(struct fairlock_client *client)
{
  if (forked(client)) return FAIRLOCK_FORKED;
  lock(client);
  const struct fairlock_engine *engine = &client->engine;
  /* operations end as soon as it fails, but last_error says why only when it is closed */
  bool failed = engine->broken && engine->failure != FAIRLOCK_OK;
  return unlock(client, failed ? engine->failure : engine->last_error);
}

void fairlock_read_counters(struct fairlock_client *client, struct fairlock_counters *counters,
                            size_t size)
{
  FAIRLOCK_ASSERT(counters != NULL);
  memset(counters, 0, size);
  if (forked(client)) return;
  lock(client);
  struct fairlock_counters stats = client->engine.counters;
  stats.waits = stats.granted + stats.polled;
  memcpy(counters, &stats, size < sizeof stats ? size : sizeof stats);
  port_mutex_unlock(&client->mutex);
}

void fairlock_id(struct fairlock *handle, char *text, size_t size)
{
  FAIRLOCK_ASSERT(text != NULL && size > 0);
  text[0] = 0;
  if (forked(client_of(handle))) return;
  struct fairlock_client *client = lock_client_of(handle);
  const struct fairlock_engine *engine = &client->engine;
  char id[FAIRLOCK_HOLDER_ID_SIZE];
  size_t length = engine->id_size;
  if (length > 0) {
    memcpy(id, engine->id, length);
    id[length++] = ':';
    length += resp_format_number(id + length, handle->number);
  }
  unlock(client, 0);
  if (length >= size) return;
  memcpy(text, id, length);
  text[length] = 0;
}
