/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A lock's memory is one piece: the handle, what is left of it once it is dropped, a place in the queue
 * of events for each kind, and the name. So an event takes no memory when it comes, but for the words of
 * an asking, and the queue cannot overflow.
 *
 * The engine's callbacks only put a lock's place at the end of the queue. The memory of a dropped lock is
 * freed when that event is read, which is the last.
 */
#include "core.h"

#include "driver.h"
#include "fairlock_abandon.h"
#include "fairlock_operate.h"
#include "fairlock_share.h"

#include <string.h>

#ifdef __wasm__
#define EXPORTED(name) __attribute__((export_name(#name)))
#else
#define EXPORTED(name)
#endif

/* Bytes of the send buffer of a core. What is more takes several sends. */
#ifndef FAIRLOCK_CORE_SEND_SIZE
#define FAIRLOCK_CORE_SEND_SIZE 4096U
#endif

/* A place in the queue, which is a ring with the core's own at its begin and end. */
struct place {
  struct place *next, *before;
  struct fairlock_core_lock *lock;
  struct fairlock_core_event event;
  char *words; /* event.words, which are freed by this */
};

enum { ENDED, LOST, ASKED, KINDS };

struct fairlock_core_lock {
  struct fairlock_core *core;
  struct fairlock_core_lock *next, *before; /* of all of the core, a ring */
  uint32_t key;
  struct place places[KINDS];
  struct fairlock_shared handle;
  struct fairlock_rest rest;
  char name[];
};

struct fairlock_core {
  struct fairlock_engine engine;
  struct fairlock_config config;
  struct fairlock_core_lock *locks;
  struct place queue;
  struct place last;                /* that was read */
  struct fairlock_core_lock *freed; /* whose FAIRLOCK_CORE_FREED that is */
  const uint8_t *output;
  uint8_t *input;
  uint32_t leaving;
  uint32_t now;    /* the latest that was passed */
  uint32_t ticked; /* the time of the last tick */
  int32_t status;
  char id[FAIRLOCK_HOLDER_ID_SIZE];
  uint8_t send[FAIRLOCK_CORE_SEND_SIZE];
  uint8_t more[]; /* the receive buffer and the strings of the configuration */
};

/*
 * A loop that reads its clock once, and does something in between that reads it again, passes a time that
 * is before the last one. To the engine that would be one of 49 days later. What is further back than a
 * minute is such a time: after a sleep of weeks.
 */
#define BACK_MS 60000U

static uint32_t forward(struct fairlock_core *core, uint32_t now)
{
  if (core->now - now >= BACK_MS) core->now = now;
  return core->now;
}

static void tick(struct fairlock_core *core, uint32_t now)
{
  core->ticked = forward(core, now);
  fairlock_engine_tick(&core->engine, core->ticked);
}

/* The queue */

static void take_out(struct place *place)
{
  if (place->next == NULL) return;
  place->next->before = place->before;
  place->before->next = place->next;
  place->next = NULL;
}

static void forget_words(struct place *place)
{
  fairlock_core_free(place->words);
  place->words = NULL;
  place->event.words = NULL;
  place->event.words_size = 0;
}

static struct place *put(struct fairlock_core_lock *lock, int which, uint32_t kind, int32_t status,
                         uint64_t token)
{
  struct place *place = &lock->places[which];
  struct place *end = &lock->core->queue;
  take_out(place);
  forget_words(place);
  place->lock = lock;
  place->event.kind = kind;
  place->event.key = lock->key;
  place->event.status = status;
  place->event.token = token;
  place->next = end;
  place->before = end->before;
  end->before->next = place;
  end->before = place;
  return place;
}

static struct fairlock_core_lock *lock_of(struct fairlock *handle)
{
  return (struct fairlock_core_lock *)(void *)((char *)handle -
                                               offsetof(struct fairlock_core_lock, handle.handle));
}

static void on_ended(struct fairlock *handle, const struct fairlock_end *end, void *context)
{
  (void)context;
  (void)put(lock_of(handle), ENDED, FAIRLOCK_CORE_ENDED, end->status, end->token);
}

static void on_lost(struct fairlock *handle, const struct fairlock_loss *loss, void *context)
{
  (void)context;
  (void)put(lock_of(handle), LOST, FAIRLOCK_CORE_LOST, (int32_t)loss->reason, loss->token);
}

static void on_asked(struct fairlock *handle, const struct fairlock_asking *asking, void *context)
{
  (void)context;
  struct place *place =
      put(lock_of(handle), ASKED, FAIRLOCK_CORE_ASKED, FAIRLOCK_OK, asking->token);
  char *words = asking->size > 0 ? fairlock_core_allocate(asking->size) : NULL;
  if (words == NULL) return;
  memcpy(words, asking->words, asking->size);
  place->words = words;
  place->event.words = words;
  place->event.words_size = (uint32_t)asking->size;
}

static void on_freed(struct fairlock_rest *rest, void *context)
{
  (void)rest;
  (void)put(context, ENDED, FAIRLOCK_CORE_FREED, FAIRLOCK_OK, 0);
}

static void free_lock(struct fairlock_core_lock *lock)
{
  struct fairlock_core *core = lock->core;
  for (int i = 0; i < KINDS; i++) {
    take_out(&lock->places[i]);
    forget_words(&lock->places[i]);
  }
  if (lock->next == lock) core->locks = NULL;
  else core->locks = lock->next;
  lock->next->before = lock->before;
  lock->before->next = lock->next;
  fairlock_core_free(lock);
}

EXPORTED(next)
const struct fairlock_core_event *fairlock_core_next(struct fairlock_core *core)
{
  struct place *place = core->queue.next;
  forget_words(&core->last);
  if (core->freed != NULL) {
    free_lock(core->freed);
    core->freed = NULL;
    core->leaving--;
    place = core->queue.next;
  }
  if (place == &core->queue) return NULL;
  take_out(place);
  core->last.event = place->event;
  core->last.words = place->words;
  place->words = NULL;
  if (place->event.kind == FAIRLOCK_CORE_FREED) core->freed = place->lock;
  return &core->last.event;
}

/* Cores and locks */

/* Copies *text to *room, and moves that on. */
static void keep_text(const char **text, uint8_t **room)
{
  if (*text == NULL) return;
  size_t size = strlen(*text) + 1;
  *text = memcpy(*room, *text, size);
  *room += size;
}

EXPORTED(create) struct fairlock_core *fairlock_core_create(struct fairlock_core_options *options)
{
  const char *texts[4] = {options->client_id, options->user, options->password,
                          options->client_name};
  size_t name_max = options->name_max == 0 ? FAIRLOCK_NAME_MAX : options->name_max;
  size_t size = 0;
  options->status = FAIRLOCK_TOO_LONG;
  if (name_max > FAIRLOCK_NAME_MAX) return NULL;
  size_t receive_size = FAIRLOCK_RECEIVE_SIZE(name_max, FAIRLOCK_ID_MAX);
  for (int i = 0; i < 4; i++)
    size += texts[i] != NULL ? strlen(texts[i]) + 1 : 0;
  struct fairlock_core *core = fairlock_core_allocate(sizeof *core + receive_size + size);
  options->status = FAIRLOCK_OOM;
  if (core == NULL) return NULL;
  memset(core, 0, sizeof *core);
  uint8_t *room = core->more + receive_size;
  for (int i = 0; i < 4; i++)
    keep_text(&texts[i], &room);
  core->queue.next = &core->queue;
  core->queue.before = &core->queue;
  core->config = (struct fairlock_config){.receive_buffer = core->more,
                                          .receive_size = receive_size,
                                          .send_buffer = core->send,
                                          .send_size = sizeof core->send,
                                          .client_id = texts[0],
                                          .user = texts[1],
                                          .password = texts[2],
                                          .client_name = texts[3],
                                          .database = options->database,
                                          .lease_ms = options->lease_ms,
                                          .waiter_ms = options->waiter_ms,
                                          .claim_ms = options->claim_ms,
                                          .response_ms = options->response_ms,
                                          .connect_ms = options->connect_ms,
                                          .offline_ms = options->offline_ms,
                                          .lost = on_lost,
                                          .ended = on_ended,
                                          .asked = options->listens != 0 ? on_asked : NULL};
  options->status = fairlock_engine_init(&core->engine, &core->config);
  if (options->status == FAIRLOCK_OK) return core;
  fairlock_core_free(core);
  return NULL;
}

EXPORTED(destroy) void fairlock_core_destroy(struct fairlock_core *core)
{
  fairlock_engine_deinit(&core->engine);
  forget_words(&core->last);
  while (core->locks != NULL)
    free_lock(core->locks);
  fairlock_core_free(core);
}

EXPORTED(lock)
struct fairlock_core_lock *fairlock_core_lock(struct fairlock_core *core, const char *name,
                                              size_t size, int32_t limit, uint32_t key)
{
  core->status = FAIRLOCK_TOO_LONG;
  if (size > FAIRLOCK_NAME_MAX) return NULL;
  struct fairlock_core_lock *lock = fairlock_core_allocate(sizeof *lock + size);
  core->status = FAIRLOCK_OOM;
  if (lock == NULL) return NULL;
  memset(lock, 0, sizeof *lock);
  memcpy(lock->name, name, size);
  if (limit < 0)
    core->status = fairlock_engine_add(&core->engine, &lock->handle.handle, lock->name, size);
  else
    core->status =
        fairlock_engine_add_shared(&core->engine, &lock->handle, lock->name, size, (uint32_t)limit);
  if (core->status != FAIRLOCK_OK) {
    fairlock_core_free(lock);
    return NULL;
  }
  lock->core = core;
  lock->key = key;
  if (core->locks == NULL) {
    lock->next = lock;
    lock->before = lock;
    core->locks = lock;
    return lock;
  }
  lock->next = core->locks;
  lock->before = core->locks->before;
  lock->before->next = lock;
  lock->next->before = lock;
  return lock;
}

EXPORTED(status) int32_t fairlock_core_status(const struct fairlock_core *core)
{
  return core->status;
}

EXPORTED(drop) void fairlock_core_drop(struct fairlock_core_lock *lock, uint32_t now)
{
  for (int i = 0; i < KINDS; i++)
    take_out(&lock->places[i]);
  lock->core->leaving++;
  lock->rest.freed = on_freed;
  lock->rest.context = lock;
  (void)fairlock_engine_abandon(&lock->handle.handle, &lock->rest, forward(lock->core, now));
}

EXPORTED(leaving) uint32_t fairlock_core_leaving(const struct fairlock_core *core)
{
  return core->leaving;
}

/* Operations */

EXPORTED(acquire)
int32_t fairlock_core_acquire(struct fairlock_core_lock *lock, uint32_t wait_ms, uint32_t lease_ms,
                              uint32_t now)
{
  return fairlock_engine_acquire(&lock->handle.handle, wait_ms, lease_ms, forward(lock->core, now));
}

EXPORTED(release) int32_t fairlock_core_release(struct fairlock_core_lock *lock, uint32_t now)
{
  return fairlock_engine_release(&lock->handle.handle, forward(lock->core, now));
}

EXPORTED(cancel) int32_t fairlock_core_cancel(struct fairlock_core_lock *lock, uint32_t now)
{
  return fairlock_engine_cancel(&lock->handle.handle, forward(lock->core, now));
}

EXPORTED(token) uint64_t fairlock_core_token(const struct fairlock_core_lock *lock, uint32_t now)
{
  return fairlock_engine_token(&lock->handle.handle, forward(lock->core, now));
}

EXPORTED(hold_count)
uint32_t fairlock_core_hold_count(const struct fairlock_core_lock *lock, uint32_t now)
{
  return fairlock_engine_hold_count(&lock->handle.handle, forward(lock->core, now));
}

EXPORTED(remaining)
uint32_t fairlock_core_remaining(const struct fairlock_core_lock *lock, uint32_t now)
{
  return fairlock_engine_remaining_ms(&lock->handle.handle, forward(lock->core, now));
}

/* The engine has no functions for what follows. Its struct is not the program's, but is public. */
EXPORTED(id) const char *fairlock_core_id(struct fairlock_core_lock *lock)
{
  struct fairlock_core *core = lock->core;
  size_t size = core->engine.id_size;
  if (size > 0) {
    memcpy(core->id, core->engine.id, size);
    core->id[size++] = ':';
    size += resp_format_number(core->id + size, lock->handle.handle.number);
  }
  core->id[size] = 0;
  return core->id;
}

EXPORTED(server_status) int32_t fairlock_core_server_status(const struct fairlock_core *core)
{
  const struct fairlock_engine *engine = &core->engine;
  bool failed = engine->broken && engine->failure != FAIRLOCK_OK;
  return failed ? engine->failure : engine->last_error;
}

EXPORTED(error) const char *fairlock_core_error(const struct fairlock_core *core)
{
  return core->engine.error;
}

/* The connection */

EXPORTED(wants) uint32_t fairlock_core_wants(struct fairlock_core *core, uint32_t now)
{
  tick(core, now);
  return fairlock_engine_wants(&core->engine, core->ticked);
}

EXPORTED(deadline) uint32_t fairlock_core_deadline(struct fairlock_core *core, uint32_t now)
{
  return fairlock_engine_deadline(&core->engine, forward(core, now));
}

EXPORTED(connect) void fairlock_core_connect(struct fairlock_core *core, uint32_t now)
{
  fairlock_engine_connect(&core->engine, forward(core, now));
}

EXPORTED(opening) void fairlock_core_opening(struct fairlock_core *core, uint32_t now)
{
  fairlock_engine_opening(&core->engine, forward(core, now));
}

EXPORTED(opened) void fairlock_core_opened(struct fairlock_core *core, uint32_t now)
{
  fairlock_engine_opened(&core->engine, forward(core, now));
}

EXPORTED(closed)
void fairlock_core_closed(struct fairlock_core *core, int32_t status, uint32_t now)
{
  fairlock_engine_closed(&core->engine, status, forward(core, now));
}

EXPORTED(ready) uint32_t fairlock_core_ready(const struct fairlock_core *core)
{
  return fairlock_engine_ready(&core->engine) ? 1 : 0;
}

EXPORTED(output) uint32_t fairlock_core_output(struct fairlock_core *core, uint32_t now)
{
  size_t size;
  /* many are sent one after the other, and a tick may look at thousands of locks */
  if (forward(core, now) != core->ticked) tick(core, now);
  core->output = fairlock_engine_output(&core->engine, &size, core->ticked);
  return (uint32_t)size;
}

EXPORTED(output_at) const uint8_t *fairlock_core_output_at(const struct fairlock_core *core)
{
  return core->output;
}

EXPORTED(sent) void fairlock_core_sent(struct fairlock_core *core, uint32_t size)
{
  fairlock_engine_sent(&core->engine, size);
}

EXPORTED(input) uint32_t fairlock_core_input(struct fairlock_core *core)
{
  size_t size;
  core->input = fairlock_engine_input(&core->engine, &size);
  return (uint32_t)size;
}

EXPORTED(input_at) uint8_t *fairlock_core_input_at(const struct fairlock_core *core)
{
  return core->input;
}

EXPORTED(received)
void fairlock_core_received(struct fairlock_core *core, uint32_t size, uint32_t now)
{
  tick(core, now);
  fairlock_engine_received(&core->engine, size, core->ticked);
}

/* Texts */

EXPORTED(status_name) const char *fairlock_core_status_name(int32_t status)
{
  return fairlock_status_name(status);
}

EXPORTED(status_text) const char *fairlock_core_status_text(int32_t status)
{
  return fairlock_status_text(status);
}

EXPORTED(version) const char *fairlock_core_version(void)
{
  return fairlock_version();
}
