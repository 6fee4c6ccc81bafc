/*
 * Peers that behave as Redisson's RFairLock is documented and seen to behave: they share the hash,
 * the queue, the scores and the channels with us, know nothing of the rest, and never repeat a
 * request.
 *
 * A peer enqueues, then subscribes, sometimes seconds later, then asks again whenever it is woken
 * or the time it was told has passed. It holds with a lease of 30 s that it renews, and some give
 * up waiting. When its connection breaks it is gone; and some hang for minutes while their
 * connection stands, so that they listen and do nothing.
 */
#include "world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PEER_LEASE "30000"

/* The longest that a peer takes from entering the queue to listening: less than a window. */
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

enum peer_state {
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

struct peer {
  struct world *world;
  int index, incarnation;
  enum peer_state state;
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
static void start(struct peer *peer);

static void later(struct peer *peer, int64_t delay)
{
  world_later(peer->world, delay, wake, peer, ++peer->stamp);
}

static void die(struct peer *peer)
{
  struct world *world = peer->world;
  TRACE(world, "%s dies", peer->party->id);
  peer->party->gone = true;
  check_belief(peer->party, false, 0, 0);
  peer->state = DEAD;
  peer->link = NULL;
  later(peer, world->ending ? MINUTE * 10 : random_around(&world->random, 5 * SECOND));
}

/* Sending */

static void send_words(struct peer *peer, const struct text *words, int count)
{
  uint8_t buffer[4096];
  struct resp_writer writer;
  resp_writer_init(&writer, buffer, sizeof buffer, 0);
  resp_write_header(&writer, RESP_ARRAY, count);
  for (int i = 0; i < count; i++)
    resp_write_bulk(&writer, words[i].data, words[i].size);
  if (writer.total > sizeof buffer) abort();
  link_send(peer->link, buffer, writer.used);
}

static void channel_of(const struct peer *peer, const char *id, char *channel, size_t size)
{
  snprintf(channel, size, "redisson_lock__channel%s:%s", peer->party->lock->text[1] + 19, id);
}

/* arguments: what follows the id; NULL ends them. */
static void send_script(struct peer *peer, const char *script, enum peer_state state,
                        const char *const *arguments)
{
  struct party *party = peer->party;
  struct text words[12] = {text_of("EVAL"), text_of(script), text_of("3")};
  int count = 3;
  for (int i = 0; i < 3; i++)
    words[count++] = party->lock->keys[i];
  words[count++] = text_of(party->id);
  for (; *arguments != NULL; arguments++)
    words[count++] = text_of(*arguments);
  peer->state = state;
  send_words(peer, words, count);
}

static void send_subscription(struct peer *peer, bool on)
{
  char channel[160];
  channel_of(peer, peer->party->id, channel, sizeof channel);
  struct text words[2] = {text_of(on ? "SUBSCRIBE" : "UNSUBSCRIBE"), text_of(channel)};
  peer->joined = on;
  peer->settling++;
  send_words(peer, words, 2);
}

static void clock_text(const struct peer *peer, char text[24])
{
  snprintf(text, 24, "%lld", (long long)(world_server_micros(peer->world) / MS));
}

static void ask(struct peer *peer)
{
  char now[24];
  clock_text(peer, now);
  send_script(peer, acquire_script, ASKING, (const char *const[]){PEER_LEASE, "300000", now, NULL});
}

static void release(struct peer *peer)
{
  char now[24];
  char channel[160];
  clock_text(peer, now);
  channel_of(peer, "", channel, sizeof channel);
  check_belief(peer->party, false, 0, 0);
  send_script(peer, release_script, RELEASING, (const char *const[]){channel, now, NULL});
}

static void rest(struct peer *peer)
{
  struct world *world = peer->world;
  peer->state = RESTING;
  if (peer->joined) send_subscription(peer, false);
  later(peer, random_around(&world->random, world->profile.think));
}

/* What the server keeps for it is what it may believe in. */
static void believe(struct peer *peer)
{
  struct party *party = peer->party;
  struct key *hash = store_find(redis_store(peer->world->redis), party->lock->keys[0]);
  bool holds = hash != NULL && dict_find(&hash->dict, text_of(party->id)) != NULL;
  int64_t until = holds ? (hash->expires + 1) * MS - EPOCH - peer->world->jump : 0;
  check_belief(party, holds, until, 1);
}

/* Replies */

static void asked(struct peer *peer)
{
  struct world *world = peer->world;
  if (peer->nil) {
    believe(peer);
    if (peer->joined) send_subscription(peer, false);
    peer->state = HOLDING;
    peer->hold_until = world->now + random_around(&world->random, world->profile.hold);
    later(peer, random_below(&world->random, 10 * SECOND));
  } else if (!peer->joined) {
    peer->state = JOINING;
    later(peer, random_chance(&world->random, 200) ? random_below(&world->random, SLOWNESS) : 0);
  } else if (world->now > peer->until) {
    send_script(peer, leave_script, LEAVING, (const char *const[]){"300000", NULL});
  } else {
    peer->state = WAITING;
    int64_t wait = peer->number < 1 ? 1 : peer->number;
    if (wait * MS > peer->until - world->now) wait = (peer->until - world->now) / MS + 1;
    later(peer, peer->woken ? 0 : wait * MS);
    peer->woken = false;
  }
}

/*
 * It asks in vain: an entry of the queue has lost its score, and nobody of ours comes by any more.
 * Or it may not listen.
 */
static void give_up(struct peer *peer)
{
  struct link *link = peer->link;
  die(peer);
  link_close(link);
}

static void replied(struct peer *peer)
{
  bool in_vain = peer->world->ending && peer->world->profile.faults & FAULT_EVICT;
  if (peer->failed && (in_vain || peer->settling > 0)) {
    give_up(peer);
    return;
  }
  if (peer->failed) {
    later(peer, 500 * MS); /* the same again */
    return;
  }
  switch (peer->state) {
  case GREETING:
    rest(peer);
    break;
  case ASKING:
    asked(peer);
    break;
  case RENEWING:
    believe(peer);
    peer->state = HOLDING;
    later(peer, 10 * SECOND);
    break;
  case RELEASING:
  case LEAVING:
    rest(peer);
    break;
  default:
    break;
  }
}

static void wake(void *object, uint32_t stamp)
{
  struct peer *peer = object;
  struct world *world = peer->world;
  if (stamp != peer->stamp || world->failed) return;
  if (peer->asleep_until > world->now) {
    events_add(&world->events, peer->asleep_until, wake, peer, stamp);
    return;
  }
  switch (peer->state) {
  case DEAD:
    if (!world->ending) start(peer);
    break;
  case RESTING:
    if (world->ending) break;
    peer->until =
        world->now +
        (random_chance(&world->random, 500) ? MINUTE * 60 : random_below(&world->random, MINUTE));
    peer->woken = false;
    ask(peer);
    break;
  case HOLDING:
    if (world->now >= peer->hold_until) release(peer);
    else send_script(peer, renew_script, RENEWING, (const char *const[]){PEER_LEASE, NULL});
    break;
  case RELEASING:
    release(peer);
    break;
  case JOINING:
    if (!peer->joined) send_subscription(peer, true);
    break;
  case GREETING:
    break;
  default:
    ask(peer);
    break;
  }
}

/* A message, or the confirmation of a subscription: both mean, ask again. */
static void pushed(struct peer *peer)
{
  if (peer->state == JOINING) ask(peer);
  else if (peer->state == WAITING) later(peer, 0);
  else if (peer->state == ASKING) peer->woken = true;
}

static void take_event(struct peer *peer, const struct resp_event *event)
{
  if (event->depth == 0) {
    peer->in_push = event->type == RESP_PUSH;
    peer->failed = event->type == RESP_SIMPLE_ERROR;
    peer->nil = event->type == RESP_NULL;
    peer->number = event->integer;
  }
  if (peer->in_push && event->depth == 1 && event->size >= 9 &&
      memchr("su", event->data[0], 2) != NULL)
    peer->settling--;
  if (!event->last) return;
  if (peer->in_push) pushed(peer);
  else replied(peer);
}

static void on_arrived(void *owner, struct link *link, const void *data, size_t size)
{
  struct peer *peer = owner;
  if (peer->link != link) return;
  if (peer->used + size > sizeof peer->buffer) abort();
  memcpy(peer->buffer + peer->used, data, size);
  peer->used += size;
  size_t start_at = 0;
  int status = RESP_EVENT;
  while (status == RESP_EVENT && peer->link == link) {
    struct resp_event event;
    size_t used;
    status =
        resp_decode(&peer->decoder, peer->buffer + start_at, peer->used - start_at, &used, &event);
    start_at += used;
    if (status == RESP_EVENT) take_event(peer, &event);
  }
  memmove(peer->buffer, peer->buffer + start_at, peer->used - start_at);
  peer->used -= start_at;
}

static void on_opened(void *owner, struct link *link)
{
  struct peer *peer = owner;
  struct text words[2] = {text_of("HELLO"), text_of("3")};
  if (peer->link == link) send_words(peer, words, 2);
}

static void on_broke(void *owner, struct link *link)
{
  struct peer *peer = owner;
  if (peer->link == link) die(peer);
}

static int64_t asleep_until(void *owner)
{
  const struct peer *peer = owner;
  return peer->asleep_until;
}

static const struct link_user link_user = {on_opened, on_arrived, on_broke, asleep_until};

/* Life */

static void start(struct peer *peer)
{
  struct world *world = peer->world;
  char id[48];
  snprintf(id, sizeof id, "p%dx%d:1", peer->index, ++peer->incarnation);
  peer->party =
      world_add_party(world, id, &world->locks[random_below(&world->random, world->profile.locks)]);
  peer->state = GREETING;
  peer->used = 0;
  peer->joined = false;
  peer->settling = 0;
  peer->asleep_until = 0;
  resp_decoder_init(&peer->decoder, 256);
  peer->link = link_open(world, &link_user, peer, peer->latency);
}

void peers_start(struct world *world)
{
  if (world->profile.peers == 0) return;
  world->peers = calloc((size_t)world->profile.peers, sizeof *world->peers);
  if (world->peers == NULL) abort();
  for (int i = 0; i < world->profile.peers; i++) {
    struct peer *peer = &world->peers[i];
    peer->world = world;
    peer->index = i;
    peer->latency = 1 + random_around(&world->random, world->profile.latency);
    start(peer);
  }
}

void peers_free(struct world *world)
{
  free(world->peers);
}

/*
 * One of them is hit: its connection is closed, its power is cut, or it freezes, perhaps for so
 * long that it is as good as dead.
 */
void peer_crash(struct world *world)
{
  if (world->profile.peers == 0) return;
  struct peer *peer = &world->peers[random_below(&world->random, world->profile.peers)];
  if (peer->state == DEAD || peer->asleep_until > world->now) return;
  int64_t kind = random_below(&world->random, 3);
  if (kind == 2) {
    bool long_one = random_chance(&world->random, 300);
    peer->asleep_until =
        world->now + random_around(&world->random, long_one ? 2 * MINUTE : 5 * SECOND);
    peer->party->late = true;
    return;
  }
  struct link *link = peer->link;
  if (kind == 1) link_silence(link, true, true);
  die(peer);
  link_close(link);
}

/* The server refuses for a while what they ask. */
void peers_late(struct world *world)
{
  for (int i = 0; i < world->profile.peers; i++)
    world->peers[i].party->late = true;
}

bool peers_idle(struct world *world)
{
  for (int i = 0; i < world->profile.peers; i++) {
    if (world->peers[i].state != RESTING && world->peers[i].state != DEAD) return false;
  }
  return true;
}

const char *peer_script(int index)
{
  const char *const scripts[] = {acquire_script, release_script, leave_script, renew_script};
  return index < 4 ? scripts[index] : NULL;
}
