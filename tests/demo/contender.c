/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One who wants the lock. It does what its record tells it, with the public interface of the
 * library alone, and writes down what came of it: when it asked, when it was granted, until when it
 * believed.
 *
 * A process has a client of its own, and keeps its lease alive with fairlock_poll() while it works.
 * The team is one process whose threads share a client, and so a connection; fairlock_run() keeps
 * the leases of all alive.
 */
#include "demo.h"
#include "fairlock_share.h"
#include "support/process.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* How often one that waits for an order looks whether there is one. */
enum { LOOK_MS = 10 };

struct member {
  pthread_t thread;
  struct contender *self;
  struct fairlock_client *client;
  const char *lock;
};

void belong_to(pid_t parent)
{
  setpgid(0, 0);
  die_with(parent);
}

static void await(struct contender *self, enum order order)
{
  while (self->order < (int)order)
    sleep_ms(LOOK_MS);
}

static void fail(struct contender *self, int status)
{
  self->status = status;
  self->stage = FAILED;
}

/*
 * The critical section. serviced: the client, if nobody else services it. Returns false when the
 * hold was lost.
 */
static bool work(struct contender *self, struct fairlock *handle, struct fairlock_client *serviced)
{
  while (self->order < RELEASE) {
    int64_t now = story_us();
    uint32_t held = fairlock_remaining_ms(handle);
    if (held == 0) return false;
    self->believed_until = now + (int64_t)held * 1000;
    if (serviced != NULL) fairlock_poll(serviced, LOOK_MS);
    else sleep_ms(LOOK_MS);
  }
  return true;
}

static void contend(struct contender *self, struct fairlock *handle, struct fairlock_client *client)
{
  struct fairlock_client *serviced = self->thread ? NULL : client;
  await(self, ACQUIRE);
  int status = fairlock_connect(client); /* which gives it its id */
  fairlock_id(handle, self->id, FAIRLOCK_HOLDER_ID_SIZE);
  self->asked_at = story_us();
  self->stage = WAITING;
  if (status == FAIRLOCK_OK) status = fairlock_acquire(handle, FAIRLOCK_FOREVER, FAIRLOCK_RENEW);
  if (status != FAIRLOCK_OK) {
    fail(self, status);
    return;
  }
  int64_t now = story_us();
  self->token = fairlock_token(handle);
  self->believed_until = now + (int64_t)fairlock_remaining_ms(handle) * 1000;
  self->granted_at = now;
  self->stage = HOLDING;
  work(self, handle, serviced);
  self->left_at = story_us();
  status = fairlock_release(handle);
  if (status == FAIRLOCK_OK) self->stage = RELEASED;
  else fail(self, status);
}

/* The view is a plain handle for one who wants the lock alone. */
static bool introduce(struct contender *self, struct fairlock_shared *view,
                      struct fairlock_client *client, const char *lock)
{
  int status = self->limit == 0 ? fairlock_init(&view->handle, client, lock)
                                : fairlock_init_shared(view, client, lock, self->limit);
  if (status == FAIRLOCK_OK) self->stage = READY;
  else fail(self, status);
  return status == FAIRLOCK_OK;
}

_Noreturn void run_process(struct contender *self, struct server *server, const char *lock)
{
  struct fairlock_client client;
  struct fairlock_shared view;
  int status = server_client(server, &client);
  if (status != FAIRLOCK_OK) {
    fail(self, status);
    _exit(1);
  }
  if (introduce(self, &view, &client, lock)) {
    contend(self, &view.handle, &client);
    fairlock_deinit(&view.handle);
  }
  fairlock_client_deinit(&client);
  _exit(0);
}

static void *run_member(void *argument)
{
  struct member *member = argument;
  struct fairlock_shared view;
  if (introduce(member->self, &view, member->client, member->lock)) {
    contend(member->self, &view.handle, member->client);
    fairlock_deinit(&view.handle);
  }
  return NULL;
}

static void *run_client(void *client)
{
  fairlock_run(client);
  return NULL;
}

_Noreturn void run_team(struct contender *all, struct server *server, const char *lock)
{
  struct fairlock_client client;
  struct member members[CONTENDERS];
  pthread_t thread;
  int count = 0;
  int status = server_client(server, &client);
  if (status == FAIRLOCK_OK && pthread_create(&thread, NULL, run_client, &client) != 0) _exit(1);
  for (int i = 0; i < CONTENDERS; i++) {
    if (!all[i].thread) continue;
    struct member *member = &members[count];
    *member = (struct member){.self = &all[i], .client = &client, .lock = lock};
    if (status != FAIRLOCK_OK) fail(&all[i], status);
    else if (pthread_create(&member->thread, NULL, run_member, member) == 0) count++;
  }
  if (status != FAIRLOCK_OK) _exit(1);
  for (int i = 0; i < count; i++)
    pthread_join(members[i].thread, NULL);
  fairlock_stop(&client);
  pthread_join(thread, NULL);
  fairlock_client_deinit(&client);
  _exit(0);
}
