/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Waiters that behave as Redisson's RFairLock is documented and observed to behave: they share the
 * hash, the queue, the scores and the channels with us, know nothing of the rest, and never repeat
 * a request.
 *
 * A waiter enqueues, then subscribes, sometimes seconds later, then asks again whenever it is woken
 * or the time it was told has passed. It holds with a lease of 30 s that it renews, and some give
 * up waiting. When its connection breaks it is gone; and some hang for minutes while their
 * connection is up, so that they listen and do nothing. Several are threads of one process, which
 * share the beginning of their ids, and hang or die together.
 */
#include "world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define REDISSON_LEASE "30000"

/* The longest that one takes from entering the queue to listening: less than the 5 s it has. */
#define SLOWNESS (4 * SECOND)

/*
 * In a script with queue, scores and now: heads whose score has passed are dropped. head: the first
 * that is left.
 */
#define DROP_LATE_HEADS                                                                            \
  "local head = redis.call('lindex', queue, 0)\n"                                                  \
  "while head do\n"                                                                                \
  "  local score = redis.call('zscore', scores, head)\n"                                           \
  "  if not score or tonumber(score) > now then break end\n"                                       \
  "  redis.call('zrem', scores, head)\n"                                                           \
  "  redis.call('lpop', queue)\n"                                                                  \
  "  head = redis.call('lindex', queue, 0)\n"                                                      \
  "end\n"

/*
 * KEYS lock, queue, scores; ARGV id, lease, wait, now. nil: acquired; else how long to wait at
 * most. A newcomer's score is what the last one has left, or the lock, plus wait.
 */
static const char acquire_script[] =
    "local lock, queue, scores = KEYS[1], KEYS[2], KEYS[3]\n"
    "local id, lease, wait, now = ARGV[1], ARGV[2], tonumber(ARGV[3]), "
    "tonumber(ARGV[4])\n" DROP_LATE_HEADS
    "if redis.call('exists', lock) == 0 and (not head or head == id) then\n"
    "  redis.call('lpop', queue)\n"
    "  redis.call('zrem', scores, id)\n"
    "  for _, other in ipairs(redis.call('zrange', scores, 0, -1)) do redis.call('zincrby', "
    "scores, -wait, other) end\n"
    "  redis.call('hset', lock, id, 1)\n"
    "  redis.call('pexpire', lock, lease)\n"
    "  return nil\n"
    "end\n"
    "if redis.call('hexists', lock, id) == 1 then\n"
    "  redis.call('hincrby', lock, id, 1)\n"
    "  redis.call('pexpire', lock, lease)\n"
    "  return nil\n"
    "end\n"
    "local score = redis.call('zscore', scores, id)\n"
    "if score then return tonumber(score) - wait - now end\n"
    "local last = redis.call('lindex', queue, -1)\n"
    "local left = redis.call('pttl', lock)\n"
    "if last and last ~= id then left = tonumber(redis.call('zscore', scores, last)) - now end\n"
    "if redis.call('zadd', scores, now + left + wait, id) == 1 then redis.call('rpush', queue, id) "
    "end\n"
    "return left\n";

/* KEYS lock, queue, scores; ARGV id, channel's beginning, now. nil: not the holder's. */
static const char release_script[] =
    "local lock, queue, scores = KEYS[1], KEYS[2], KEYS[3]\n"
    "local id, channel, now = ARGV[1], ARGV[2], tonumber(ARGV[3])\n" DROP_LATE_HEADS
    "local free = redis.call('exists', lock) == 0\n"
    "if not free and redis.call('hexists', lock, id) == 0 then return nil end\n"
    "if not free and redis.call('hincrby', lock, id, -1) > 0 then return 0 end\n"
    "redis.call('del', lock)\n"
    "if head then redis.call('publish', channel .. head, 0) end\n"
    "return 1\n";

/* KEYS lock, queue, scores; ARGV id, wait: gives up waiting. */
static const char leave_script[] =
    "local queue, scores, id = KEYS[2], KEYS[3], ARGV[1]\n"
    "local behind = false\n"
    "for _, other in ipairs(redis.call('lrange', queue, 0, -1)) do\n"
    "  if behind then redis.call('zincrby', scores, -tonumber(ARGV[2]), other) end\n"
    "  if other == id then behind = true end\n"
    "end\n"
    "redis.call('zrem', scores, id)\n"
    "redis.call('lrem', queue, 0, id)\n"
    "return 'left'\n";

/* KEYS lock; ARGV id, lease */
static const char renew_script[] =
    "if redis.call('hexists', KEYS[1], ARGV[1]) == 0 then return 0 end\n"
    "return redis.call('pexpire', KEYS[1], ARGV[2])\n";

enum redisson_state {
  GREETING,
  RESTING,
  ASKING,
  JOINING,
  WAITING,
  HOLDING,
  RENEWING,
  RELEASING,
  LEAVING,
  DEAD
};

struct redisson {
  struct world *world;
  int process, index, incarnation;
  enum redisson_state state;
  struct party *party;
  struct link *link;
  uint32_t stamp;
  bool woken, joined;
  int64_t asleep_until, until, hold_until;
  int64_t latency;
  uint8_t buffer[512];
  size_t used;
  struct resp_decoder decoder;
  bool in_push;
  int settling; /* subscriptions begun or ended, and not confirmed */
  bool failed;  /* the reply is an error */
  bool nil;
  int64_t number;
};

static void wake(void *object, uint32_t stamp);
static void start(struct redisson *redisson);

static void later(struct redisson *redisson, int64_t delay)
{
  world_later(redisson->world, delay, wake, redisson, ++redisson->stamp);
}

static void die(struct redisson *redisson)
{
  struct world *world = redisson->world;
  TRACE(world, "%s dies", redisson->party->id);
  redisson->party->gone = true;
  check_belief(redisson->party, false, 0, 0);
  redisson->state = DEAD;
  redisson->link = NULL;
  later(redisson, world->ending ? MINUTE * 10 : random_around(&world->random, 5 * SECOND));
}

/* Sending */

static void send_words(struct redisson *redisson, const struct text *words, int count)
{
  uint8_t buffer[4096];
  struct resp_writer writer;
  resp_writer_init(&writer, buffer, sizeof buffer, 0);
  resp_write_header(&writer, RESP_ARRAY, count);
  for (int i = 0; i < count; i++)
    resp_write_bulk(&writer, words[i].data, words[i].size);
  if (writer.total > sizeof buffer) abort();
  link_send(redisson->link, buffer, writer.used);
}

static void channel_of(const struct redisson *redisson, const char *id, char *channel, size_t size)
{
  snprintf(channel, size, "redisson_lock__channel%s:%s", redisson->party->lock->text[1] + 19, id);
}

/* arguments: what follows the id; NULL ends them. */
static void send_script(struct redisson *redisson, const char *script, enum redisson_state state,
                        const char *const *arguments)
{
  struct party *party = redisson->party;
  struct text words[12] = {text_of("EVAL"), text_of(script), text_of("3")};
  int count = 3;
  for (int i = 0; i < 3; i++)
    words[count++] = party->lock->keys[i];
  words[count++] = text_of(party->id);
  for (; *arguments != NULL; arguments++)
    words[count++] = text_of(*arguments);
  redisson->state = state;
  send_words(redisson, words, count);
}

static void send_subscription(struct redisson *redisson, bool on)
{
  char channel[160];
  channel_of(redisson, redisson->party->id, channel, sizeof channel);
  struct text words[2] = {text_of(on ? "SUBSCRIBE" : "UNSUBSCRIBE"), text_of(channel)};
  redisson->joined = on;
  redisson->settling++;
  send_words(redisson, words, 2);
}

static void clock_text(const struct redisson *redisson, char text[24])
{
  snprintf(text, 24, "%lld", (long long)(world_server_micros(redisson->world) / MS));
}

static void ask(struct redisson *redisson)
{
  char now[24];
  clock_text(redisson, now);
  send_script(redisson, acquire_script, ASKING,
              (const char *const[]){REDISSON_LEASE, "300000", now, NULL});
}

static void release(struct redisson *redisson)
{
  char now[24];
  char channel[160];
  clock_text(redisson, now);
  channel_of(redisson, "", channel, sizeof channel);
  check_belief(redisson->party, false, 0, 0);
  send_script(redisson, release_script, RELEASING, (const char *const[]){channel, now, NULL});
}

static void rest(struct redisson *redisson)
{
  struct world *world = redisson->world;
  redisson->state = RESTING;
  if (redisson->joined) send_subscription(redisson, false);
  later(redisson, random_around(&world->random, world->profile.think));
}

/* It may believe in the lease that the server keeps for it. */
static void believe(struct redisson *redisson)
{
  struct party *party = redisson->party;
  struct key *hash = store_find(redis_store(redisson->world->redis), party->lock->keys[0]);
  bool holds = hash != NULL && dict_find(&hash->dict, text_of(party->id)) != NULL;
  int64_t until = holds ? (hash->expires + 1) * MS - EPOCH - redisson->world->jump : 0;
  check_belief(party, holds, until, 1);
}

/* Replies */

static void asked(struct redisson *redisson)
{
  struct world *world = redisson->world;
  if (redisson->nil) {
    believe(redisson);
    if (redisson->joined) send_subscription(redisson, false);
    redisson->state = HOLDING;
    redisson->hold_until = world->now + random_around(&world->random, world->profile.hold);
    later(redisson, random_below(&world->random, 10 * SECOND));
  } else if (!redisson->joined) {
    redisson->state = JOINING;
    later(redisson,
          random_chance(&world->random, 200) ? random_below(&world->random, SLOWNESS) : 0);
  } else if (world->now > redisson->until) {
    send_script(redisson, leave_script, LEAVING, (const char *const[]){"300000", NULL});
  } else {
    redisson->state = WAITING;
    int64_t wait = redisson->number < 1 ? 1 : redisson->number;
    if (wait * MS > redisson->until - world->now) wait = (redisson->until - world->now) / MS + 1;
    later(redisson, redisson->woken ? 0 : wait * MS);
    redisson->woken = false;
  }
}

/*
 * Asking is useless: an entry of the queue has lost its score, and no client of ours asks any more.
 * Or it may not listen.
 */
static void give_up(struct redisson *redisson)
{
  struct link *link = redisson->link;
  die(redisson);
  link_close(link);
}

static void replied(struct redisson *redisson)
{
  bool in_vain = redisson->world->ending && redisson->world->profile.faults & FAULT_EVICT;
  if (redisson->failed && (in_vain || redisson->settling > 0)) {
    give_up(redisson);
    return;
  }
  if (redisson->failed) {
    later(redisson, 500 * MS); /* the same again */
    return;
  }
  switch (redisson->state) {
  case GREETING:
    rest(redisson);
    break;
  case ASKING:
    asked(redisson);
    break;
  case RENEWING:
    believe(redisson);
    redisson->state = HOLDING;
    later(redisson, 10 * SECOND);
    break;
  case RELEASING:
  case LEAVING:
    rest(redisson);
    break;
  default:
    break;
  }
}

static void wake(void *object, uint32_t stamp)
{
  struct redisson *redisson = object;
  struct world *world = redisson->world;
  if (stamp != redisson->stamp || world->failed) return;
  if (redisson->asleep_until > world->now) {
    events_add(&world->events, redisson->asleep_until, wake, redisson, stamp);
    return;
  }
  switch (redisson->state) {
  case DEAD:
    if (!world->ending) start(redisson);
    break;
  case RESTING:
    if (world->ending) break;
    redisson->until =
        world->now +
        (random_chance(&world->random, 500) ? MINUTE * 60 : random_below(&world->random, MINUTE));
    redisson->woken = false;
    ask(redisson);
    break;
  case HOLDING:
    if (world->now >= redisson->hold_until) release(redisson);
    else send_script(redisson, renew_script, RENEWING, (const char *const[]){REDISSON_LEASE, NULL});
    break;
  case RELEASING:
    release(redisson);
    break;
  case JOINING:
    if (!redisson->joined) send_subscription(redisson, true);
    break;
  case GREETING:
    break;
  default:
    ask(redisson);
    break;
  }
}

/* A message, or the confirmation of a subscription: both mean, ask again. */
static void pushed(struct redisson *redisson)
{
  if (redisson->state == JOINING) ask(redisson);
  else if (redisson->state == WAITING) later(redisson, 0);
  else if (redisson->state == ASKING) redisson->woken = true;
}

static void take_event(struct redisson *redisson, const struct resp_event *event)
{
  if (event->depth == 0) {
    redisson->in_push = event->type == RESP_PUSH;
    redisson->failed = event->type == RESP_SIMPLE_ERROR;
    redisson->nil = event->type == RESP_NULL;
    redisson->number = event->integer;
  }
  if (redisson->in_push && event->depth == 1 && event->size >= 9 &&
      memchr("su", event->data[0], 2) != NULL)
    redisson->settling--;
  if (!event->last) return;
  if (redisson->in_push) pushed(redisson);
  else replied(redisson);
}

static void on_arrived(void *owner, struct link *link, const void *data, size_t size)
{
  struct redisson *redisson = owner;
  if (redisson->link != link) return;
  if (redisson->used + size > sizeof redisson->buffer) abort();
  memcpy(redisson->buffer + redisson->used, data, size);
  redisson->used += size;
  size_t start_at = 0;
  int status = RESP_EVENT;
  while (status == RESP_EVENT && redisson->link == link) {
    struct resp_event event;
    size_t used;
    status = resp_decode(&redisson->decoder, redisson->buffer + start_at, redisson->used - start_at,
                         &used, &event);
    start_at += used;
    if (status == RESP_EVENT) take_event(redisson, &event);
  }
  memmove(redisson->buffer, redisson->buffer + start_at, redisson->used - start_at);
  redisson->used -= start_at;
}

static void on_opened(void *owner, struct link *link)
{
  struct redisson *redisson = owner;
  struct text words[2] = {text_of("HELLO"), text_of("3")};
  if (redisson->link == link) send_words(redisson, words, 2);
}

static void on_broke(void *owner, struct link *link)
{
  struct redisson *redisson = owner;
  if (redisson->link == link) die(redisson);
}

static int64_t asleep_until(void *owner)
{
  const struct redisson *redisson = owner;
  return redisson->asleep_until;
}

static const struct link_user link_user = {on_opened, on_arrived, on_broke, asleep_until};

/* Life */

static void start(struct redisson *redisson)
{
  struct world *world = redisson->world;
  char id[48];
  snprintf(id, sizeof id, "p%d:%dx%d", redisson->process, redisson->index, ++redisson->incarnation);
  redisson->party =
      world_add_party(world, id, &world->locks[random_below(&world->random, world->profile.locks)]);
  redisson->state = GREETING;
  redisson->used = 0;
  redisson->joined = false;
  redisson->settling = 0;
  redisson->asleep_until = 0;
  resp_decoder_init(&redisson->decoder, 256);
  redisson->link = link_open(world, &link_user, redisson, redisson->latency, world->master);
}

void redisson_start_all(struct world *world)
{
  if (world->profile.redissons == 0) return;
  world->redissons = calloc((size_t)world->profile.redissons, sizeof *world->redissons);
  if (world->redissons == NULL) abort();
  int process = 0;
  for (int i = 0; i < world->profile.redissons; i++) {
    struct redisson *redisson = &world->redissons[i];
    redisson->world = world;
    redisson->index = i;
    redisson->process = process;
    if (random_chance(&world->random, 400)) process++;
    redisson->latency = 1 + random_around(&world->random, world->profile.latency);
    start(redisson);
  }
}

void redisson_free_all(struct world *world)
{
  free(world->redissons);
}

enum blow { CLOSED, CUT_OFF, FROZEN };

/* until: when it thaws. */
static void hit(struct redisson *redisson, enum blow blow, int64_t until)
{
  if (redisson->state == DEAD || redisson->asleep_until > redisson->world->now) return;
  if (blow == FROZEN) {
    redisson->asleep_until = until;
    redisson->party->peer.late = true;
    return;
  }
  struct link *link = redisson->link;
  if (blow == CUT_OFF) link_silence(link, true, true);
  die(redisson);
  link_close(link);
}

/*
 * One of them is hit, or its whole process: the connection is closed, the power is cut, or it
 * freezes, perhaps for so long that it is as good as dead.
 */
void redisson_crash(struct world *world)
{
  if (world->profile.redissons == 0) return;
  const struct redisson *one =
      &world->redissons[random_below(&world->random, world->profile.redissons)];
  enum blow blow = (enum blow)random_below(&world->random, 3);
  bool long_one = random_chance(&world->random, 300);
  int64_t until = world->now + random_around(&world->random, long_one ? 2 * MINUTE : 5 * SECOND);
  bool whole = random_chance(&world->random, 500);
  for (int i = 0; i < world->profile.redissons; i++) {
    struct redisson *other = &world->redissons[i];
    if (other == one || (whole && other->process == one->process)) hit(other, blow, until);
  }
}

/* The server refuses for a while what they ask. */
void redisson_late(struct world *world)
{
  for (int i = 0; i < world->profile.redissons; i++)
    world->redissons[i].party->peer.late = true;
}

bool redisson_idle(struct world *world)
{
  for (int i = 0; i < world->profile.redissons; i++) {
    if (world->redissons[i].state != RESTING && world->redissons[i].state != DEAD) return false;
  }
  return true;
}

const char *redisson_script(int index)
{
  const char *const scripts[] = {acquire_script, release_script, leave_script, renew_script};
  return index < 4 ? scripts[index] : NULL;
}
