/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a Redis keeps in memory: keys that are hashes, lists or sorted sets, each with a time at
 * which it ends.
 *
 * Only what the scripts of the lock need of it; the commands are in redis.c. Strings are copied in,
 * and pointers handed out are valid until the next change.
 */
#ifndef SIM_STORE_H
#define SIM_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct text {
  const char *data;
  size_t size;
};

enum store_type { STORE_HASH, STORE_LIST, STORE_ZSET };

#define STORE_NEVER INT64_MAX

/*
 * A table of names with something attached to each: a text, a score, or a pointer of the caller's.
 */
struct entry {
  uint32_t hash;
  uint32_t size;
  char *name; /* NULL: the slot is empty */
  char *value;
  size_t value_size;
  double score;
  void *object;
};

struct dict {
  struct entry *slots;
  uint32_t used;
  uint32_t size; /* a power of two, or 0 */
};

struct item {
  uint32_t hash;
  uint32_t size;
  char *data;
};

struct ring {
  struct item *items;
  uint32_t first, used, size;
};

struct key {
  enum store_type type;
  int64_t expires;  /* ms; STORE_NEVER */
  struct dict dict; /* hash, sorted set */
  struct ring list;
  char *name;
  size_t name_size;
};

struct store {
  struct dict keys;
  int64_t now; /* ms; keys that ended before do not exist any more */
};

struct entry *dict_find(const struct dict *dict, struct text name);
struct entry *dict_add(struct dict *dict, struct text name, bool *fresh);
bool dict_remove(struct dict *dict, struct text name);
void dict_free(struct dict *dict);
void entry_set(struct entry *entry, struct text value);

/* negative: from the end; NULL: none */
struct item *list_at(const struct ring *list, int64_t index);
void list_push(struct ring *list, struct text data, bool front);
void list_remove(struct ring *list, int64_t index);
/* -1: not among the first limit */
int64_t list_find(const struct ring *list, struct text data, int64_t limit);

/* NULL when there is none. */
struct key *store_find(struct store *store, struct text name);
struct key *store_add(struct store *store, struct text name, enum store_type type);
void store_remove(struct store *store, struct key *key);
bool store_empty(const struct key *key);
void store_flush(struct store *store);

/* A copy that is in no store; and what puts it into one, or frees it. NULL stands for no key. */
struct key *store_copy(const struct key *key);
void store_put(struct store *store, struct text name, struct key *copy);
void store_drop(struct key *copy);

bool text_equal(struct text a, struct text b);
struct text text_of(const char *text);

#endif
