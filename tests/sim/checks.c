/*
 * After each script, and each time a client was serviced: what has happened, as the server's memory
 * shows it, and which promises to ask.
 */
#include "world.h"

#include "texts.h"

#include <stdio.h>
#include <string.h>

/* The holder */

static void begin_hold(struct lock *lock, struct party *party, uint64_t token)
{
  struct world *world = party->world;
  check_gone_holds(party);
  check_order(party);
  check_barging(party);
  if (party->device != NULL) {
    check_token_given(party, token);
    world->counters.grants++;
    if (party->place.queued) world->counters.waits++;
    check_wanted(party, token);
  } else {
    party->peer.acquired = world_server_ms(world);
    world->counters.redisson_grants++;
  }
  order_leave(party);
  party->loss.over = false;
  party->place.uncertain = false;
  party->granted = token;
  party->lease.held_step = party->progress.asked_step;
  party->belief.epoch = world->epoch;
  party->peer.forced = false;
  party->peer.late = false;
  TRACE(world, "%s holds %s, token %llu", party->id, lock->text[0], (unsigned long long)token);
}

/* The lock as it stands after a script. */
static void look_at_holder(struct world *world, struct lock *lock, const struct party *by)
{
  struct store *store = redis_store(world->redis);
  struct key *hash = store_find(store, lock->keys[0]);
  struct party *holder = NULL;
  struct text count = {"", 0};
  uint64_t token = 0;
  if (hash != NULL) {
    const struct entry *entry = hash->dict.slots;
    while (entry->name == NULL)
      entry++;
    holder = party_named(world, (struct text){entry->name, entry->size});
    count = (struct text){entry->value, entry->value_size};
    if (hash->dict.used != 1)
      world_fail(world, "%s has %u holders", lock->text[0], hash->dict.used);
    if (hash->expires == STORE_NEVER) world_fail(world, "%s has no end", lock->text[0]);
    if (holder == NULL) {
      world_fail(world, "%s is held by a stranger", lock->text[0]);
      return;
    }
    if (holder->device != NULL)
      token = number_of(value_of(store_find(store, lock->keys[3]), "token"));
  }
  bool changed =
      holder != lock->holder || (holder != NULL && token != lock->token && holder->device != NULL);
  /* the note was evicted */
  if (token == 0 && world->profile.faults & FAULT_EVICT) changed = false;
  if (changed) loss_end_hold(lock->holder);
  lock->holder = holder;
  lock->token = token;
  if (!changed || holder == NULL) return;
  begin_hold(lock, holder, token);
  if (holder->device != NULL) check_first(world, lock);
  if (holder->device != NULL) check_claim(holder, hash, count);
  check_told(holder, by);
}

/* What was asked for */

static struct lock *lock_named(const struct world *world, struct text name)
{
  int64_t index;
  if (name.size < 2 || !resp_parse_number(name.data + 1, name.size - 1, &index)) return NULL;
  return index < world->profile.locks ? &world->locks[index] : NULL;
}

/* What common.lua takes; of a Redisson script only the id, and of one that breaks none. */
struct asked {
  struct text id;
  int64_t mode;
  uint64_t lease_ms, token;
  bool acquires;
  bool forces;   /* ends somebody's hold */
  bool releases; /* or leaves the queue */
};

static struct asked asked_for(const struct execution *execution, int script)
{
  struct asked asked = {.id = execution->arguments[0], .acquires = script == ASKS_ACQUIRE};
  struct text words[5] = {{"", 0}};
  struct text rest = asked.id;
  if (script < 0) return asked;
  for (int i = 0; i < 5 && rest.size > 0; i++) {
    const char *space = memchr(rest.data, ' ', rest.size);
    size_t size = space != NULL ? (size_t)(space - rest.data) : rest.size;
    words[i] = (struct text){rest.data, size};
    size += space != NULL;
    rest = (struct text){rest.data + size, rest.size - size};
  }
  /* the id of a holder is not that of who asks */
  if (script == ASKS_BREAK) asked.id.size = 0;
  else asked.id = words[0];
  (void)resp_parse_number(words[2].data, words[2].size, &asked.mode);
  if (words[3].size > 0 && words[3].data[words[3].size - 1] == '+') words[3].size--;
  asked.lease_ms = number_of(words[3]);
  asked.token = number_of(words[4]);
  asked.forces = script == ASKS_BREAK && asked.mode == -1;
  asked.releases = script == ASKS_RELEASE;
  return asked;
}

int asks_of_lock(struct text request)
{
  const char *word = request.data;
  size_t size = request.size;
  for (int i = 0; i < 3; i++) {
    const char *space = memchr(word, ' ', size);
    if (space == NULL) return ASKS_ACQUIRE;
    size -= (size_t)(space + 1 - word);
    word = space + 1;
  }
  return size > 0 && word[0] == '0' && (size == 1 || word[1] == ' ') ? ASKS_RELEASE : ASKS_ACQUIRE;
}

/* Which of ours it is; -1: Redisson's. */
static int script_index(const struct execution *execution)
{
  if (memcmp(execution->sha1, fairlock_lock_script.sha1, 40) == 0)
    return asks_of_lock(execution->arguments[0]);
  if (memcmp(execution->sha1, fairlock_break_script.sha1, 40) == 0) return ASKS_BREAK;
  return memcmp(execution->sha1, fairlock_inspect_script.sha1, 40) == 0 ? ASKS_INSPECT : -1;
}

static void trace_execution(struct world *world, const struct execution *execution,
                            const char *script)
{
  char line[512];
  size_t used = 0;
  if (world->step < world->trace_from) return;
  for (int i = 0; i < execution->argument_count && used < 300; i++) {
    used += (size_t)snprintf(line + used, sizeof line - used, " %.*s",
                             (int)execution->arguments[i].size, execution->arguments[i].data);
  }
  used += (size_t)snprintf(line + used, sizeof line - used, " ->");
  for (uint32_t i = 0; i < execution->reply->used && used < 450; i++) {
    const struct value *value = &execution->reply->values[i];
    if (value->kind == VALUE_INTEGER)
      used += (size_t)snprintf(line + used, sizeof line - used, " %lld", (long long)value->integer);
    else if (value->kind != VALUE_ARRAY)
      used += (size_t)snprintf(line + used, sizeof line - used, " %.40s",
                               value->text.data != NULL ? value->text.data : "nil");
  }
  world_trace(world, "server: %s %.*s%s", script, (int)execution->keys[0].size,
              execution->keys[0].data, line);
}

/* After each script */

static void follow_ours(struct party *party, const struct execution *execution,
                        const struct asked *asked, bool same, int64_t before)
{
  const struct value *values = execution->reply->values;
  int64_t state = execution->reply->used == 4 ? values[1].integer : -9;
  int64_t mode = asked->mode;
  if (values[0].kind == VALUE_ERROR || state == -2) return;
  if (asked->acquires && state == 1) {
    belief_end_stray(party, execution->client->owner);
    bool confirms = party->handover.claims && mode < 0;
    if (confirms) party->handover.claims = false;
    check_lease(party, confirms || !same, asked->lease_ms, before);
    check_count(party, mode);
    check_first(party->world, party->lock);
    if (same) lease_extended(party, execution->client->owner, mode, asked->lease_ms);
  }
  if (asked->acquires) {
    if (mode > 0 && state == 0) {
      struct link *link = execution->client->owner;
      if (party->place.queued) check_heartbeat(party, link);
      order_heard(party, link);
      party->place.timeout_ms = mode;
      party->place.alive_until = world_server_ms(party->world) + mode;
      party->place.heard_step = link->sent_step;
    }
  } else if (asked->releases && asked->token != 0) {
    if (state == 1) party->repetition.released = asked->token;
    check_repeated(party, asked->token, state == 1);
  }
}

/*
 * A server that is not a master has carried something out. Nobody else sees it; but a party that is
 * told it holds there believes it, unless it waits for a replica.
 */
static void follow_stray(struct world *world, struct lock *lock, const struct execution *execution,
                         const struct asked *asked)
{
  const struct value *values = execution->reply->values;
  struct redis *redis = execution->client->redis;
  struct party *by = party_named(world, asked->id);
  bool done =
      values[0].kind != VALUE_ERROR && execution->reply->used == 4 && values[1].integer == 1;
  world->counters.strays++;
  if (done && asked->releases && by != NULL) by->repetition.released = asked->token;
  if (asked->releases && by != NULL && values[0].kind != VALUE_ERROR && by->place.queued)
    by->place.astray = true;
  if (world_strict(world) || !execution->wrote) return; /* a replica never writes */
  struct store *store = redis_store(redis);
  struct party *holder = holder_in(world, store_find(store, lock->keys[0]));
  if (holder == NULL || holder->device == NULL) return;
  const struct link *link = holder->device->link;
  if (link != NULL && link->node->redis == redis)
    belief_add_stray(holder, number_of(value_of(store_find(store, lock->keys[3]), "token")),
                     INT64_MAX);
}

/* Who asks changes nothing, and who names a hold ends no other. token: of the hold until now. */
static void check_broken(struct world *world, const struct lock *lock,
                         const struct execution *execution, const struct asked *asked,
                         uint64_t token)
{
  const struct value *values = execution->reply->values;
  bool done = values[0].kind != VALUE_ERROR && values[1].integer == 1;
  if (!asked->forces && execution->wrote)
    world_fail(world, "%s: asking has changed something", lock->text[0]);
  if (asked->forces && done && asked->token != 0 && asked->token != token)
    world_fail(world, "%s: another hold than the one that was named was ended", lock->text[0]);
}

void check_execution(struct world *world, const struct execution *execution)
{
  static const char *const names[] = {"redisson", "acquire", "release", "break", "inspect"};
  struct lock *lock = lock_named(world, execution->keys[0]);
  int script = script_index(execution);
  world->counters.scripts++;
  if (lock == NULL || world->failed) return;
  trace_execution(world, execution, names[script + 1]);
  if (script == ASKS_INSPECT) return;
  struct asked asked = asked_for(execution, script);
  struct party *party = party_named(world, asked.id);
  if (execution->client->redis != world->redis) {
    follow_stray(world, lock, execution, &asked);
    return;
  }
  bool refused = execution->reply->values[0].kind == VALUE_ERROR;
  bool lacks = (world->profile.faults & (FAULT_EVICT | FAULT_DENY)) != 0;
  if (refused && (asked.releases || asked.forces) && !lacks)
    check_whole(world, execution->reply->values[0].text);
  if (script == ASKS_ACQUIRE && party != NULL && execution->client->owner != NULL)
    progress_asked(party, execution->client->owner);
  bool leaves = party != NULL && asked.releases && asked.token == 0;
  bool void_one = !refused && execution->reply->values[1].integer == -2;
  if (leaves && !refused && !void_one && execution->client->owner != NULL)
    check_late_leave(party, execution->client->owner);
  if (leaves && !void_one) {
    party->place.uncertain = refused && party->place.queued;
    order_leave(party);
  }
  uint64_t token = lock->token;
  struct party *holder = lock->holder;
  look_at_holder(world, lock, party);
  check_redisson(world, lock, script >= 0 && !refused);
  if (token != 0 && lock->token != token) lock->ended = 0; /* perhaps not by a release */
  bool same = holder == lock->holder && token == lock->token;
  const struct key *hash = store_find(redis_store(world->redis), lock->keys[0]);
  int64_t expires = hash != NULL ? hash->expires : 0;
  if (script == ASKS_BREAK) check_broken(world, lock, execution, &asked, token);
  /* refused half-way, it has left the hold a millisecond */
  if (asked.forces && holder != NULL && (!same || expires < lock->expires))
    belief_end_by_force(holder, token, expiry_time(lock->expires, world->jump));
  if (party != NULL && party->device != NULL)
    follow_ours(party, execution, &asked, same, lock->expires);
  else if (party != NULL && execution->reply->values[0].kind == VALUE_INTEGER &&
           execution->argument_count > 3)
    order_heard(party, execution->client->owner);
  else if (party != NULL && execution->reply->values[0].kind == VALUE_TEXT)
    order_leave(party); /* Redisson's, and it gave up */
  lock->expires = expires;
  peers_note_woken(world, lock);
  check_queue(world, lock);
  if (refused && script >= 0) check_dropped(world, lock);
  check_idle(world, lock);
  check_covers(lock);
  bool free_now = lock->holder == NULL;
  bool hands_over = asked.releases || asked.forces || (asked.acquires && asked.mode >= 0);
  if (free_now && world_ordered(world) && script >= 0 && hands_over && !refused && !void_one)
    check_handover(world, lock);
}

/* The server loses its data, or another takes over */

/* The server's data are gone: holders may go on believing, all others start over. */
void check_wiped(struct world *world)
{
  world->epoch++;
  for (int i = 0; i < world->profile.locks; i++) {
    struct lock *lock = &world->locks[i];
    while (lock->queue.first != NULL)
      order_leave(lock->queue.first);
    loss_end_hold(lock->holder);
    lock->holder = NULL;
    lock->ended = 0;
    lock->idle.since = -1;
  }
}

static void check_promoted_lock(struct world *world, struct lock *lock, struct redis *old,
                                int64_t jump)
{
  struct store *store = redis_store(world->redis);
  const struct key *hash = store_find(store, lock->keys[0]);
  const struct key *queue = store_find(store, lock->keys[1]);
  const struct key *notes = store_find(store, lock->keys[3]);
  struct party *holder = holder_in(world, hash);
  uint64_t token = number_of(value_of(notes, "token"));
  bool same = holder != NULL && holder == lock->holder && token == lock->token;
  while (lock->queue.first != NULL)
    order_leave(lock->queue.first);
  for (int64_t i = 0; queue != NULL && i < queue->list.used; i++) {
    const struct item *item = list_at(&queue->list, i);
    struct party *party = party_named(world, (struct text){item->data, item->size});
    if (party != NULL) order_take_place(party, value_of(notes, party->id));
  }
  if (lock->holder != NULL) belief_note_lost(lock, same ? holder : NULL, old, jump);
  if (!same) loss_end_hold(lock->holder);
  lock->holder = holder;
  lock->token = holder != NULL ? token : 0;
  lock->tokens.given = token;
  lock->revived = token;
  if (!world_strict(world) && lock->tokens.believed > token) lock->tokens.believed = token;
  lock->expires = hash != NULL ? hash->expires : 0;
  lock->ended = 0;
  lock->idle.since = -1;
  if (holder == NULL) return;
  holder->handover.claims = text_equal(value_of(hash, holder->id), text_of("0"));
  if (same) return;
  holder->granted = token;
  holder->loss.over = false;
  holder->handover.by_claim = true; /* as far as anybody knows */
  struct forced *of = belief_forced(holder, token);
  if (of == NULL) return;
  /* it is believed in for as long as the old master said */
  if (!world_strict(world)) belief_add_stray(holder, token, of->until);
  of->token = 0;
}

void check_promoted(struct world *world, struct redis *old, int64_t jump)
{
  for (int i = 0; i < world->profile.locks && !world->failed; i++) {
    struct lock *lock = &world->locks[i];
    check_promoted_lock(world, lock, old, jump);
    check_covers(lock);
  }
}
