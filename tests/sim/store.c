/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See store.h. The tables use open addressing; a removal moves the followers up, so there are no
 * tombstones.
 */
#include "store.h"

#include <stdlib.h>
#include <string.h>

bool text_equal(struct text a, struct text b)
{
  return a.size == b.size && memcmp(a.data, b.data, a.size) == 0;
}

struct text text_of(const char *text)
{
  return (struct text){text, strlen(text)};
}

static char *copy(struct text text)
{
  char *data = malloc(text.size + 1);
  if (data == NULL) abort();
  if (text.size > 0) memcpy(data, text.data, text.size);
  data[text.size] = 0;
  return data;
}

static uint32_t hash_of(struct text text)
{
  uint32_t hash = 2166136261U;
  for (size_t i = 0; i < text.size; i++)
    hash = (hash ^ (uint8_t)text.data[i]) * 16777619U;
  return hash ^ (hash >> 15);
}

/* Tables */

static struct entry *slot_of(const struct dict *dict, struct text name, uint32_t hash)
{
  uint32_t mask = dict->size - 1;
  for (uint32_t i = hash & mask;; i = (i + 1) & mask) {
    struct entry *entry = &dict->slots[i];
    if (entry->name == NULL) return entry;
    if (entry->hash == hash && entry->size == name.size &&
        memcmp(entry->name, name.data, name.size) == 0)
      return entry;
  }
}

struct entry *dict_find(const struct dict *dict, struct text name)
{
  if (dict->used == 0) return NULL;
  struct entry *entry = slot_of(dict, name, hash_of(name));
  return entry->name != NULL ? entry : NULL;
}

static void grow(struct dict *dict)
{
  struct dict old = *dict;
  dict->size = old.size == 0 ? 4 : old.size * 2;
  dict->slots = calloc(dict->size, sizeof *dict->slots);
  if (dict->slots == NULL) abort();
  for (uint32_t i = 0; i < old.size; i++) {
    if (old.slots[i].name == NULL) continue;
    uint32_t at = old.slots[i].hash & (dict->size - 1);
    while (dict->slots[at].name != NULL)
      at = (at + 1) & (dict->size - 1);
    dict->slots[at] = old.slots[i];
  }
  free(old.slots);
}

struct entry *dict_add(struct dict *dict, struct text name, bool *fresh)
{
  if (dict->used * 4 >= dict->size * 3) grow(dict);
  uint32_t hash = hash_of(name);
  struct entry *entry = slot_of(dict, name, hash);
  *fresh = entry->name == NULL;
  if (*fresh) {
    *entry = (struct entry){.hash = hash, .size = (uint32_t)name.size, .name = copy(name)};
    dict->used++;
  }
  return entry;
}

bool dict_remove(struct dict *dict, struct text name)
{
  struct entry *entry = dict_find(dict, name);
  if (entry == NULL) return false;
  free(entry->name);
  free(entry->value);
  uint32_t mask = dict->size - 1;
  uint32_t hole = (uint32_t)(entry - dict->slots);
  for (uint32_t i = (hole + 1) & mask; dict->slots[i].name != NULL; i = (i + 1) & mask) {
    uint32_t home = dict->slots[i].hash & mask;
    if (((i - home) & mask) < ((i - hole) & mask)) continue;
    dict->slots[hole] = dict->slots[i];
    hole = i;
  }
  memset(&dict->slots[hole], 0, sizeof dict->slots[hole]);
  dict->used--;
  return true;
}

void dict_free(struct dict *dict)
{
  for (uint32_t i = 0; i < dict->size; i++) {
    free(dict->slots[i].name);
    free(dict->slots[i].value);
  }
  free(dict->slots);
  memset(dict, 0, sizeof *dict);
}

void entry_set(struct entry *entry, struct text value)
{
  char *data = copy(value); /* it may be part of the old one */
  free(entry->value);
  entry->value = data;
  entry->value_size = value.size;
}

/* Lists */

static struct item *at(const struct ring *list, uint32_t index)
{
  return &list->items[(list->first + index) & (list->size - 1)];
}

struct item *list_at(const struct ring *list, int64_t index)
{
  if (index < 0) index += list->used;
  if (index < 0 || index >= list->used) return NULL;
  return at(list, (uint32_t)index);
}

void list_push(struct ring *list, struct text data, bool front)
{
  if (list->used == list->size) {
    uint32_t size = list->size == 0 ? 4 : list->size * 2;
    struct item *items = malloc(size * sizeof *items);
    if (items == NULL) abort();
    for (uint32_t i = 0; i < list->used; i++)
      items[i] = *at(list, i);
    free(list->items);
    list->items = items;
    list->first = 0;
    list->size = size;
  }
  if (front) list->first = (list->first - 1) & (list->size - 1);
  list->used++;
  *at(list, front ? 0 : list->used - 1) =
      (struct item){hash_of(data), (uint32_t)data.size, copy(data)};
}

void list_remove(struct ring *list, int64_t index)
{
  struct item *item = list_at(list, index);
  if (item == NULL) return;
  free(item->data);
  uint32_t place = (uint32_t)(index < 0 ? index + list->used : index);
  if (place == 0) {
    list->first = (list->first + 1) & (list->size - 1);
  } else {
    for (uint32_t i = place; i + 1 < list->used; i++)
      *at(list, i) = *at(list, i + 1);
  }
  list->used--;
}

int64_t list_find(const struct ring *list, struct text data, int64_t limit)
{
  uint32_t hash = hash_of(data);
  for (uint32_t i = 0; i < list->used && i < limit; i++) {
    const struct item *item = at(list, i);
    if (item->hash == hash && item->size == data.size &&
        memcmp(item->data, data.data, data.size) == 0)
      return i;
  }
  return -1;
}

static void list_free(struct ring *list)
{
  for (uint32_t i = 0; i < list->used; i++)
    free(at(list, i)->data);
  free(list->items);
}

/* Keys */

static void key_free(struct key *key)
{
  dict_free(&key->dict);
  list_free(&key->list);
  free(key->name);
  free(key);
}

void store_remove(struct store *store, struct key *key)
{
  dict_remove(&store->keys, (struct text){key->name, key->name_size});
  key_free(key);
}

struct key *store_find(struct store *store, struct text name)
{
  struct entry *entry = dict_find(&store->keys, name);
  if (entry == NULL) return NULL;
  struct key *key = entry->object;
  if (store->now <= key->expires) return key;
  store_remove(store, key);
  return NULL;
}

struct key *store_add(struct store *store, struct text name, enum store_type type)
{
  bool fresh;
  struct key *key = calloc(1, sizeof *key);
  if (key == NULL) abort();
  key->type = type;
  key->expires = STORE_NEVER;
  key->name = copy(name);
  key->name_size = name.size;
  dict_add(&store->keys, name, &fresh)->object = key;
  return key;
}

struct key *store_copy(const struct key *from)
{
  if (from == NULL) return NULL;
  struct key *key = calloc(1, sizeof *key);
  if (key == NULL) abort();
  key->type = from->type;
  key->expires = from->expires;
  key->name = copy((struct text){from->name, from->name_size});
  key->name_size = from->name_size;
  for (uint32_t i = 0; i < from->dict.size; i++) {
    const struct entry *entry = &from->dict.slots[i];
    bool fresh;
    if (entry->name == NULL) continue;
    struct entry *to = dict_add(&key->dict, (struct text){entry->name, entry->size}, &fresh);
    to->score = entry->score;
    if (entry->value != NULL) entry_set(to, (struct text){entry->value, entry->value_size});
  }
  for (uint32_t i = 0; i < from->list.used; i++) {
    const struct item *item = list_at(&from->list, i);
    list_push(&key->list, (struct text){item->data, item->size}, false);
  }
  return key;
}

void store_put(struct store *store, struct text name, struct key *key)
{
  bool fresh;
  struct entry *old = dict_find(&store->keys, name);
  if (old != NULL) store_remove(store, old->object);
  if (key != NULL) dict_add(&store->keys, name, &fresh)->object = key;
}

void store_drop(struct key *key)
{
  if (key != NULL) key_free(key);
}

bool store_empty(const struct key *key)
{
  return key->type == STORE_LIST ? key->list.used == 0 : key->dict.used == 0;
}

void store_flush(struct store *store)
{
  for (uint32_t i = 0; i < store->keys.size; i++) {
    if (store->keys.slots[i].name != NULL) key_free(store->keys.slots[i].object);
  }
  dict_free(&store->keys);
}
