/* SPDX-License-Identifier: Apache-2.0 */
/*
 * After each script, and each time a client was serviced: what has happened, as the server's memory
 * shows it, and which promises to ask.
 */
#include "world.h"

#include "texts.h"

#include <stdio.h>
#include <string.h>

/* Those who hold */

/* inherits: it shares what the same device had alone, so nobody could come first. */
static void begin_hold(struct lock *lock, struct party *party, uint64_t token, bool inherits)
{
  struct world *world = party->world;
  check_gone_holds(party);
  if (!inherits) check_order(party);
  if (!inherits) check_barging(party);
  if (party->device != NULL) {
    check_token_given(party, token);
    world->counters.grants++;
    world->counters.shares += party->shares;
    world->counters.beside += lock->now.used > 1;
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

/* A share whose lease had ended, before the clock went back. */
static bool lives_again(const struct party *party)
{
  const struct held *now = &party->held;
  return now->shared && now->token == party->granted && !party->held_before.is &&
         !world_safe(party->world);
}

/* What the party has now is not what it had. */
static bool has_begun(const struct party *party)
{
  const struct held *now = &party->held;
  if (now->is && party->held_before.is && now->token == party->held_before.token) return false;
  if (lives_again(party)) return false;
  /* the note was evicted */
  return now->is && (now->token != 0 || !(party->world->struck & FAULT_EVICT));
}

/* The lock as it stands after a script. from: the holder whose hold by inherits; NULL: nobody. */
static void look_at_holders(struct world *world, struct lock *lock, const struct party *by,
                            const struct party *from)
{
  holders_read(world, lock);
  check_holders(world, lock);
  if (world->failed) return;
  for (uint32_t i = 0; i < lock->before.used; i++) {
    struct party *party = lock->before.list[i];
    if (!party->held.is || has_begun(party)) loss_end_hold(party);
  }
  for (uint32_t i = 0; i < lock->now.used && !world->failed; i++) {
    struct party *party = lock->now.list[i];
    if (lives_again(party)) party->loss.over = false;
    if (!has_begun(party)) continue;
    begin_hold(lock, party, party->held.token, party == by && from != NULL);
    if (party->device != NULL) check_first(world, lock);
    if (party->device != NULL) check_claim(party);
    check_told(party, by);
  }
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
  int64_t claim; /* 0: none is named */
  uint64_t lease_ms, token;
  bool acquires;
  bool forces;   /* ends somebody's hold */
  bool releases; /* or leaves the queue */
  bool shares;
  struct party *from; /* whose hold it is to inherit, with that token; NULL: nobody's */
};

/* The holder of which a request to downgrade speaks: its number stands for that of the id. */
static struct party *former_of(const struct world *world, const struct asked *asked)
{
  char id[64];
  size_t size = asked->id.size;
  while (size > 0 && asked->id.data[size - 1] != ':')
    size--;
  snprintf(id, sizeof id, "%.*s%lld", (int)size, asked->id.data, (long long)-asked->mode);
  return party_named(world, text_of(id));
}

static bool is_script(const struct execution *execution, const struct fairlock_script *script)
{
  return memcmp(execution->sha1, script->sha1, 40) == 0;
}

static struct asked asked_for(const struct world *world, const struct execution *execution,
                              int script)
{
  struct asked asked = {.id = execution->arguments[0], .acquires = script == ASKS_ACQUIRE};
  bool downgrades = is_script(execution, &fairlock_downgrade_script);
  asked.shares = downgrades || is_script(execution, &fairlock_shared_script);
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
  const char *letter = memchr(words[2].data, 'C', words[2].size);
  if (letter != NULL) {
    size_t size = (size_t)(letter - words[2].data);
    (void)resp_parse_number(letter + 1, words[2].size - size - 1, &asked.claim);
    words[2].size = size;
  }
  (void)resp_parse_number(words[2].data, words[2].size, &asked.mode);
  if (words[3].size > 0 && words[3].data[words[3].size - 1] == '+') words[3].size--;
  asked.lease_ms = number_of(words[3]);
  asked.token = number_of(words[4]);
  asked.forces = script == ASKS_BREAK && asked.mode == -1;
  asked.releases = script == ASKS_RELEASE;
  if (!downgrades) return asked;
  asked.from = former_of(world, &asked);
  asked.mode = 0;
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
  if (is_script(execution, &fairlock_downgrade_script)) return ASKS_ACQUIRE;
  if (is_script(execution, &fairlock_lock_script) || is_script(execution, &fairlock_shared_script))
    return asks_of_lock(execution->arguments[0]);
  if (is_script(execution, &fairlock_break_script)) return ASKS_BREAK;
  return is_script(execution, &fairlock_inspect_script) ? ASKS_INSPECT : -1;
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

/* It has looked at those who wait; a repeated acquire does not. confirms: it is a claim that became a hold. */
static bool lets_in(const struct asked *asked, bool same, bool confirms, int64_t state)
{
  if (!asked->shares) return false;
  return asked->releases || confirms ||
         (asked->acquires && asked->mode >= 0 && (state == 0 || (state == 1 && !same)));
}

static void follow_ours(struct party *party, const struct execution *execution,
                        const struct asked *asked, bool same, int64_t before)
{
  const struct value *values = execution->reply->values;
  int64_t state = execution->reply->used == 4 ? values[1].integer : -9;
  int64_t mode = asked->mode;
  bool confirms = false;
  if (values[0].kind == VALUE_ERROR || state == -2) return;
  if (asked->acquires && state == 1) {
    belief_end_stray(party, execution->client->owner);
    confirms = party->handover.claims && mode < 0;
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
      party->place.claim_ms = asked->claim > 0 ? asked->claim : mode;
      party->place.alive_until = world_server_ms(party->world) + mode;
      party->place.heard_step = link->sent_step;
    }
  } else if (asked->releases && asked->token != 0) {
    if (state == 1) party->repetition.released = asked->token;
    check_repeated(party, asked->token, state == 1);
  }
  if (lets_in(asked, same, confirms, state)) check_let_in(party->world, party->lock);
}

/*
 * The hold that a leave, which names none, has ended on that server. The party may have a newer one on the
 * master by now, and what it never learned of was not meant.
 */
static uint64_t left_elsewhere(const struct party *party, struct redis *redis)
{
  const struct key *notes = store_find(redis_store(redis), party->lock->keys[3]);
  uint64_t ended = number_of(value_of(notes, "released"));
  return ended < party->handle.token ? ended : party->handle.token;
}

/* token: 0, it has left the queue, and given back whatever it held there. */
static void release_elsewhere(struct party *party, uint64_t token, struct redis *redis)
{
  struct repetition *repetition = &party->repetition;
  repetition->released = token;
  if (token == 0) token = left_elsewhere(party, redis);
  if (token > repetition->elsewhere) repetition->elsewhere = token;
}

/* The old master has ended holds by force. Those that the new one has from it go on. */
static void follow_break(const struct lock *lock, const struct asked *asked)
{
  for (uint32_t i = 0; i < lock->now.used; i++) {
    struct party *party = lock->now.list[i];
    uint64_t token = party->held.token;
    if (token == party->revived && (asked->token == 0 || asked->token == token))
      belief_note_broken(party, token);
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
  if (done && asked->releases && by != NULL) release_elsewhere(by, asked->token, redis);
  if (done && asked->from != NULL) release_elsewhere(asked->from, asked->token, redis);
  bool leaves = asked->releases && by != NULL && values[0].kind != VALUE_ERROR;
  if (leaves) left_astray(by, execution->client->owner);
  if (leaves && by->place.queued) by->place.astray = true;
  if (!execution->wrote) return; /* a replica never does */
  if (asked->forces) follow_break(lock, asked);
  if (world_strict(world)) return;
  struct store *store = redis_store(redis);
  const struct key *hash = store_find(store, lock->keys[0]);
  uint64_t newest = number_of(value_of(store_find(store, lock->keys[3]), "token"));
  for (uint32_t i = 0; hash != NULL && i < hash->dict.size; i++) {
    const struct entry *entry = &hash->dict.slots[i];
    if (entry->name == NULL) continue;
    struct party *holder = party_named(world, (struct text){entry->name, entry->size});
    if (holder == NULL || holder->device == NULL) continue;
    const struct link *link = holder->device->link;
    if (link == NULL || link->node->redis != redis) continue;
    uint64_t token = hold_is_shared(hash) ? share_token(hash, entry) : newest;
    belief_add_stray(holder, token, INT64_MAX);
  }
}

/* Until the script. */
static bool held_until_now(const struct party *party)
{
  const struct held *held = &party->held_before;
  return held->is && held->expires > world_server_ms(party->world);
}

static bool has_ended(const struct party *party)
{
  return !party->held.is || party->held.token != party->held_before.token;
}

/* Who asks changes nothing, and who names a hold ends that one; who names none ends all. */
static void check_broken(struct world *world, const struct lock *lock,
                         const struct execution *execution, const struct asked *asked)
{
  const struct value *values = execution->reply->values;
  if (!asked->forces && execution->wrote)
    world_fail(world, "%s: asking has changed something", lock->text[0]);
  if (!asked->forces || values[0].kind == VALUE_ERROR || !world_safe(world)) return;
  bool done = values[1].integer == 1;
  for (uint32_t i = 0; i < lock->before.used; i++) {
    const struct party *party = lock->before.list[i];
    bool meant = done && (asked->token == 0 || asked->token == party->held_before.token);
    if (!held_until_now(party) || meant == has_ended(party)) continue;
    world_fail(world, "%s: %s of %s", lock->text[0],
               meant ? "the hold that was named goes on, that"
                     : "another hold than the one that was named was ended, that",
               party->id);
  }
}

/* Holds that somebody else has ended: a script that was refused half-way has left them a millisecond. */
static void note_forced(const struct world *world, const struct lock *lock)
{
  for (uint32_t i = 0; i < lock->before.used; i++) {
    struct party *party = lock->before.list[i];
    const struct held *before = &party->held_before;
    if (has_ended(party) || party->held.expires < before->expires)
      belief_end_by_force(party, before->token, expiry_time(before->expires, world->jump));
  }
}

/* Some hold has ended or begun, perhaps not by a release. */
static bool has_changed(const struct lock *lock)
{
  for (uint32_t i = 0; i < lock->before.used; i++) {
    const struct party *party = lock->before.list[i];
    if (party->held_before.token != 0 && has_ended(party)) return true;
  }
  return false;
}

/* The one hold has ended, as by a release, and the other has begun. */
static void check_downgraded(struct lock *lock, const struct party *party, struct party *from,
                             uint64_t token)
{
  struct world *world = from->world;
  from->repetition.released = token;
  if (!has_ended(from) || party == NULL || !party->held.is || party->held.token <= token)
    world_fail(world, "%s shares %s in the place of %s, whose hold goes on", party->id,
               lock->text[0], from->id);
  if (from->held_before.token == token) lock->ended = token;
}

/* An inspection tells of all who hold, or of one that is nobody, and of all who wait. */
static void check_inspection(struct world *world, const struct lock *lock,
                             const struct execution *execution)
{
  const struct value *values = execution->reply->values;
  const struct key *queue = store_find(redis_store(world->redis), lock->keys[1]);
  int64_t holders = 0;
  if (values[0].kind == VALUE_ERROR || !world_safe(world)) return;
  if (execution->client->redis != world->redis) return;
  for (uint32_t i = 0; i < lock->now.used; i++) {
    const struct held *held = &lock->now.list[i]->held;
    holders += held->expires >= world_server_ms(world) + held->shared;
  }
  int64_t expected = ((holders > 0 ? holders : 1) << 32) + (queue != NULL ? queue->list.used : 0);
  if (values[1].integer != expected)
    world_fail(world, "%s: an inspection tells of %lld, and not of %lld", lock->text[0],
               (long long)values[1].integer, (long long)expected);
}

void check_execution(struct world *world, const struct execution *execution)
{
  static const char *const names[] = {"redisson", "acquire", "release", "break", "inspect"};
  struct lock *lock = lock_named(world, execution->keys[0]);
  int script = script_index(execution);
  world->counters.scripts++;
  if (lock == NULL || world->failed) return;
  trace_execution(world, execution, names[script + 1]);
  if (script == ASKS_INSPECT) check_inspection(world, lock, execution);
  if (script == ASKS_INSPECT) return;
  struct asked asked = asked_for(world, execution, script);
  struct party *party = party_named(world, asked.id);
  if (execution->client->redis != world->redis) {
    follow_stray(world, lock, execution, &asked);
    return;
  }
  if (party != NULL) left_heard(party, execution->client->owner);
  bool refused = execution->reply->values[0].kind == VALUE_ERROR;
  bool lacks = (world->struck & (FAULT_EVICT | FAULT_DENY)) != 0;
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
  look_at_holders(world, lock, party, asked.from);
  check_redisson(world, lock, script >= 0 && !refused);
  if (has_changed(lock)) lock->ended = 0;
  if (asked.from != NULL && !refused && execution->reply->values[1].integer == 1)
    check_downgraded(lock, party, asked.from, asked.token);
  if (script == ASKS_BREAK) check_broken(world, lock, execution, &asked);
  if (asked.forces) note_forced(world, lock);
  bool same = party != NULL && party->held_before.is && !has_ended(party);
  if (party != NULL && party->device != NULL)
    follow_ours(party, execution, &asked, same, same ? party->held_before.expires : 0);
  else if (party != NULL && execution->reply->values[0].kind == VALUE_INTEGER &&
           execution->argument_count > 3)
    order_heard(party, execution->client->owner);
  else if (party != NULL && execution->reply->values[0].kind == VALUE_TEXT)
    order_leave(party); /* Redisson's, and it gave up */
  if (party != NULL) check_free(party);
  peers_note(world, lock);
  check_queue(world, lock);
  if (refused && script >= 0) check_dropped(world, lock);
  check_idle(world, lock);
  check_covers(lock);
  bool void_or_refused = void_one || (!refused && execution->reply->values[1].integer == 2);
  bool asks = asked.acquires && asked.mode >= 0 && asked.from == NULL;
  bool hands_over = asked.releases || asked.forces || asks;
  bool free_now = store_find(redis_store(world->redis), lock->keys[0]) == NULL;
  if (free_now && world_ordered(world) && script >= 0 && hands_over && !refused && !void_or_refused)
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
    holders_read(world, lock);
    for (uint32_t j = 0; j < lock->before.used; j++)
      loss_end_hold(lock->before.list[j]);
    lock->ended = 0;
    lock->idle.since = -1;
  }
}

/* A hold that the new master knows of, and the old one did not have any more. */
static void bring_back(struct party *party)
{
  struct world *world = party->world;
  uint64_t token = party->held.token;
  party->granted = token;
  party->loss.over = false;
  party->handover.by_claim = true; /* as far as anybody knows */
  struct forced *of = belief_forced(party, token);
  if (of == NULL) return;
  /* it is believed in for as long as the old master said */
  if (!world_strict(world)) belief_add_stray(party, token, of->until);
  belief_note_broken(party, token);
  of->token = 0;
}

static void take_holders(struct lock *lock, struct redis *old, int64_t jump)
{
  for (uint32_t i = 0; i < lock->before.used; i++) {
    struct party *party = lock->before.list[i];
    belief_note_lost(party, !has_ended(party), old, jump);
    if (has_ended(party)) loss_end_hold(party);
  }
  for (uint32_t i = 0; i < lock->now.used; i++) {
    struct party *party = lock->now.list[i];
    party->revived = party->held.token;
    party->handover.claims = party->held.count == 0;
    if (!party->held_before.is || has_ended(party)) bring_back(party);
  }
}

static void check_promoted_lock(struct world *world, struct lock *lock, struct redis *old,
                                int64_t jump)
{
  struct store *store = redis_store(world->redis);
  const struct key *queue = store_find(store, lock->keys[1]);
  const struct key *notes = store_find(store, lock->keys[3]);
  uint64_t token = number_of(value_of(notes, "token"));
  while (lock->queue.first != NULL)
    order_leave(lock->queue.first);
  for (int64_t i = 0; queue != NULL && i < queue->list.used; i++) {
    const struct item *item = list_at(&queue->list, i);
    struct party *party = party_named(world, (struct text){item->data, item->size});
    if (party != NULL) order_take_place(party, value_of(notes, party->id));
  }
  holders_read(world, lock);
  lock->tokens.given = token;
  lock->revived = token;
  if (!world_strict(world) && lock->tokens.believed > token) lock->tokens.believed = token;
  if (!world_strict(world) && lock->tokens.alone > token) lock->tokens.alone = token;
  take_holders(lock, old, jump);
  lock->ended = 0;
  lock->idle.since = -1;
}

void check_promoted(struct world *world, struct redis *old, int64_t jump)
{
  for (int i = 0; i < world->profile.locks && !world->failed; i++) {
    struct lock *lock = &world->locks[i];
    check_promoted_lock(world, lock, old, jump);
    check_covers(lock);
  }
}
