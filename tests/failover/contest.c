/* SPDX-License-Identifier: Apache-2.0 */
/* Contenders; see contest.h. */
#include "contest.h"
#include "fairlock_follow.h"
#include "fairlock_keep.h"
#include "fairlock_share.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define CONTEST_SOON 100000 /* with a fail-over or two in it */
#define LOOK_MS      5      /* between two looks at the belief */

enum task { HOLD, PASS, ROUND };

/* What a contender is told when it starts. */
struct order {
  struct contest *contest;
  const struct connection *connection;
  enum task task;
  uint32_t lease_ms;
  int work_ms;
};

const char *connect_by_url(struct client *client, const struct connection *connection)
{
  static char seeds[400], address[263];
  static struct fairlock_topology topology;
  static struct fairlock_keeping keeper;
  static const char *const schemes[] = {"redis://", "redis+cluster://", "redis+sentinel://"};
  const char *rest = NULL;
  for (size_t i = 0; i < sizeof schemes / sizeof schemes[0]; i++) {
    size_t size = strlen(schemes[i]);
    if (strncmp(connection->url, schemes[i], size) == 0) rest = connection->url + size;
  }
  if (rest == NULL || strlen(rest) >= sizeof seeds) return "no such address";
  strcpy(seeds, rest);
  char *slash = strchr(seeds, '/');
  memset(&topology, 0, sizeof topology);
  topology.address = address;
  topology.address_size = sizeof address;
  topology.replicas = (uint32_t)connection->replicas;
  topology.sentinel_user = connection->sentinel_user;
  topology.sentinel_password = connection->sentinel_password;
  topology.cluster = strncmp(connection->url, "redis+cluster:", 14) == 0;
  if (slash != NULL) {
    *slash = 0;
    topology.service = slash + 1;
  }
  client_prepare(client, 0);
  client->config.lease_ms = connection->lease_ms;
  client->config.offline_ms = connection->offline_ms;
  client->config.password = connection->password;
  if (!port_posix_seeds(&client->socket, seeds)) return "no list of host:port";
  client_start(client);
  if (fairlock_follow(&client->client, &topology) != FAIRLOCK_OK) return "not to be followed";
  keeper.keep_ms = connection->keep_ms;
  bool good = keeper.keep_ms == 0 || fairlock_use_keeping(&client->client, &keeper) == FAIRLOCK_OK;
  return good ? NULL : "not to be kept";
}

static struct hold *note_hold(const struct order *order, int index, struct fairlock *handle,
                              int64_t called)
{
  size_t at = atomic_fetch_add(order->contest->used, 1);
  if (at >= CONTEST_LOG) _exit(2);
  struct hold *hold = &order->contest->hold[at];
  hold->client = index;
  hold->keeps = order->connection->keep_ms > 0;
  hold->shares = order->connection->shares;
  hold->limit = (int)order->connection->limit;
  hold->pid = (int)getpid();
  hold->lock = 0;
  hold->called_us = called;
  hold->start_us = now_us();
  hold->token = fairlock_token(handle);
  (void)believe(hold, handle);
  atomic_store(&hold->written, true);
  return hold;
}

/* Holds until the time is over, or it is told to let go, or the hold is lost. */
static void work(const struct order *order, struct contender *self, struct client *client,
                 struct fairlock *handle, struct hold *hold)
{
  int64_t until = now_ms() + order->work_ms;
  int64_t believed = atomic_load(&hold->until_us);
  atomic_store(&self->holds, believed != 0);
  while (believed != 0 && !(order->task == HOLD && atomic_load(&self->let_go)) &&
         (order->task == HOLD || now_ms() < until)) {
    fairlock_poll(&client->client, LOOK_MS);
    believed = believe(hold, handle);
  }
  atomic_store(&hold->end_us, now_us());
  atomic_store(&self->holds, false);
}

static void go(const struct order *order, int index, struct client *client, struct fairlock *handle)
{
  struct contender *self = &order->contest->contender[index];
  int64_t called = now_us();
  uint32_t patience = order->task == ROUND ? 10000 : FAIRLOCK_FOREVER;
  int status = fairlock_acquire(handle, patience, order->lease_ms);
  if (status != FAIRLOCK_OK) {
    char text[FAIRLOCK_ERROR_SIZE];
    fairlock_error(&client->client, text, FAIRLOCK_ERROR_SIZE);
    if (order->task != ROUND) printf("# contender %d: acquire: %d, %s\n", index, status, text);
    (void)atomic_fetch_add(&self->failed, 1);
    atomic_store(&self->status, status);
    sleep_ms(20);
    return;
  }
  struct hold *hold = note_hold(order, index, handle, called);
  int gap = (int)((hold->start_us - called) / 1000);
  if (gap > atomic_load(&self->worst_gap_ms)) atomic_store(&self->worst_gap_ms, gap);
  (void)atomic_fetch_add(&self->acquired, 1);
  atomic_store(&self->status, status);
  work(order, self, client, handle, hold);
  int released = fairlock_release(handle);
  if (released == FAIRLOCK_LOST) (void)atomic_fetch_add(&self->lost, 1);
  atomic_store(&self->released, released);
}

static int init_handle(const struct order *order, struct client *client,
                       struct fairlock_shared *memory)
{
  const char *name = order->contest->name;
  if (!order->connection->shares) return fairlock_init(&memory->handle, &client->client, name);
  return fairlock_init_shared(memory, &client->client, name, order->connection->limit);
}

static void contend(int index, void *context)
{
  static struct client client;
  const struct order *order = context;
  struct contender *self = &order->contest->contender[index];
  struct fairlock_shared memory;
  const char *trouble = connect_by_url(&client, order->connection);
  if (trouble != NULL) {
    printf("# contender %d: %s\n", index, trouble);
    (void)fflush(stdout);
    _exit(3);
  }
  if (init_handle(order, &client, &memory) != FAIRLOCK_OK) _exit(4);
  do
    go(order, index, &client, &memory.handle);
  while (order->task == ROUND && !atomic_load(&self->let_go));
  (void)fairlock_deinit(&memory.handle);
  client_close(&client);
  atomic_store(&self->over, true);
}

static int add(struct contest *contest, const struct order *order)
{
  int index = contest->count++;
  CHECK(index < CONTENDERS);
  atomic_store(&contest->contender[index].status, FAIRLOCK_PENDING);
  contest->contender[index].pid = spawn(contend, index, (void *)(uintptr_t)order);
  return index;
}

void contest_begin(struct contest *contest, const char *name)
{
  memset(contest, 0, sizeof *contest);
  (void)snprintf(contest->name, sizeof contest->name, "%s", name);
  contest->hold = share(CONTEST_LOG * sizeof *contest->hold);
  contest->used = share(sizeof *contest->used);
  contest->contender = share(CONTENDERS * sizeof *contest->contender);
}

int contest_hold(struct contest *contest, const struct connection *connection, uint32_t lease_ms)
{
  return add(contest, &(struct order){contest, connection, HOLD, lease_ms, 0});
}

int contest_pass(struct contest *contest, const struct connection *connection, uint32_t lease_ms,
                 int work_ms)
{
  return add(contest, &(struct order){contest, connection, PASS, lease_ms, work_ms});
}

int contest_round(struct contest *contest, const struct connection *connection, uint32_t lease_ms,
                  int work_ms)
{
  return add(contest, &(struct order){contest, connection, ROUND, lease_ms, work_ms});
}

static bool ended(const struct contest *contest, int contender)
{
  return atomic_load(&contest->contender[contender].over);
}

bool contest_holds(struct contest *contest, int contender)
{
  int64_t until = now_ms() + CONTEST_SOON;
  while (!contest_believes(contest, contender)) {
    if (ended(contest, contender) || now_ms() > until) return false;
    sleep_ms(2);
  }
  return true;
}

bool contest_believes(const struct contest *contest, int contender)
{
  return atomic_load(&contest->contender[contender].holds);
}

void contest_let_go(struct contest *contest, int contender)
{
  atomic_store(&contest->contender[contender].let_go, true);
}

void contest_kill(struct contest *contest, int contender)
{
  slay(contest->contender[contender].pid);
  contest->contender[contender].pid = 0;
}

bool contest_over(struct contest *contest, int contender)
{
  struct contender *one = &contest->contender[contender];
  int64_t until = now_ms() + CONTEST_SOON;
  while (!ended(contest, contender) && now_ms() < until)
    sleep_ms(5);
  int status = reap(one->pid);
  if (status < 0) contest_kill(contest, contender);
  one->pid = 0;
  return status == 0 && ended(contest, contender);
}

bool contest_end(struct contest *contest)
{
  bool good = true;
  for (int i = 0; i < contest->count; i++)
    contest_let_go(contest, i);
  for (int i = 0; i < contest->count; i++) {
    if (contest->contender[i].pid > 0) good &= contest_over(contest, i);
  }
  return good;
}

/* The checks */

struct verdict contest_verdict(const struct contest *contest)
{
  struct history history = {.holds = contest->hold, .count = atomic_load(contest->used)};
  return judge(&history);
}

bool contest_good(const struct contest *contest)
{
  struct verdict verdict = contest_verdict(contest);
  return is_good(&verdict);
}

/* When a contender first held; INT64_MAX: never. */
static int64_t first_start(const struct contest *contest, int contender)
{
  int64_t first = INT64_MAX;
  for (size_t i = 0; i < atomic_load(contest->used); i++) {
    const struct hold *hold = &contest->hold[i];
    if (hold->client == contender && atomic_load(&hold->written) && hold->start_us < first)
      first = hold->start_us;
  }
  return first;
}

int contest_disorder(const struct contest *contest, int first, int last)
{
  int found = 0;
  for (int i = first; i < last; i++) {
    if (first_start(contest, i) < first_start(contest, i + 1)) continue;
    printf("# contender %d came before %d and held after it, or never\n", i, i + 1);
    found++;
  }
  return found;
}
