/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the server's memory shows, in words that the promises use, and the excuses that concern all
 * of them. Nothing here changes or judges anything.
 */
#include "world.h"

#include <string.h>

/* Excuses that concern all promises */

bool world_safe(const struct world *world)
{
  return !(world->struck & UNSAFE) && !world->set_back;
}

/* What a script that was stopped half-way has left ends with the next one, or with a lease. */
bool world_stopped(const struct world *world, unsigned faults)
{
  return world->struck & faults && world->refused_at >= world->now - MINUTE - world->longest;
}

bool world_ordered(const struct world *world)
{
  return world_safe(world) && !world_stopped(world, FAULT_DENY);
}

bool world_strict(const struct world *world)
{
  return world->profile.synced && !world->profile.skewed;
}

/* What the keys hold */

struct party *party_named(const struct world *world, struct text id)
{
  const struct entry *entry = dict_find(&world->parties, id);
  return entry != NULL ? entry->object : NULL;
}

struct text value_of(const struct key *key, const char *field)
{
  const struct entry *entry = key != NULL ? dict_find(&key->dict, text_of(field)) : NULL;
  return entry != NULL ? (struct text){entry->value, entry->value_size} : (struct text){"", 0};
}

uint64_t number_of(struct text text)
{
  int64_t value = 0;
  return resp_parse_number(text.data, text.size, &value) && value > 0 ? (uint64_t)value : 0;
}

struct note read_note(struct text text)
{
  uint64_t numbers[3] = {0};
  for (int i = 0; i < 3; i++) {
    const char *blank = memchr(text.data, ' ', text.size);
    size_t size = blank != NULL ? (size_t)(blank - text.data) : text.size;
    numbers[i] = number_of((struct text){text.data, size});
    if (blank != NULL) size++;
    text.data += size;
    text.size -= size;
  }
  struct note note = {.alive_until = (int64_t)(numbers[0] * 1000 + numbers[1] / 1000 + numbers[2]),
                      .timeout_ms = (int64_t)numbers[2],
                      .claim_ms = (int64_t)numbers[2]};
  while (text.size > 0) {
    const char *blank = memchr(text.data, ' ', text.size);
    size_t size = blank != NULL ? (size_t)(blank - text.data) : text.size;
    if (text.data[0] == 'C')
      note.claim_ms = (int64_t)number_of((struct text){text.data + 1, size - 1});
    if (blank != NULL) size++;
    text.data += size;
    text.size -= size;
  }
  return note;
}

const struct entry *score_of(const struct party *party)
{
  struct key *scores = store_find(redis_store(party->world->redis), party->lock->keys[2]);
  return scores != NULL ? dict_find(&scores->dict, text_of(party->id)) : NULL;
}

/* Time, by the server and in the world */

int64_t world_server_ms(const struct world *world)
{
  return world_server_micros(world) / MS;
}

int64_t expiry_time(int64_t expires, int64_t jump)
{
  if (expires == STORE_NEVER) return INT64_MAX;
  return (expires + 1) * MS - EPOCH - jump;
}

/* Waiters */

bool party_alive(const struct party *party)
{
  return party->place.alive_until > world_server_ms(party->world);
}

bool party_listens(const struct party *party)
{
  char channel[160];
  struct redis *redis = party->world->redis;
  struct lock *lock = party->lock;
  struct resp_writer writer;
  resp_writer_init(&writer, channel, sizeof channel, 0);
  resp_write_raw(&writer, "redisson_lock__channel", 22);
  resp_write_raw(&writer, lock->keys[1].data + 19, lock->keys[1].size - 19);
  resp_write_raw(&writer, ":", 1);
  resp_write_raw(&writer, party->id, strlen(party->id));
  struct text name = {channel, writer.used};
  return redis_listeners(redis, name, false) > 0 || redis_listeners(redis, name, true) > 0;
}
