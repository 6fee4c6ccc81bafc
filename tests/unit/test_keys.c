/* SPDX-License-Identifier: Apache-2.0 */
/*
 * No two locks share a key: every name made of a few parts that matter is given to the engine, and
 * the keys of those that it takes are read from what it sends.
 */
#include <stdlib.h>
#include <string.h>

#include "engine_fixture.h"

/* Of the keys of a script, the lock itself, and the three that are made from its name. */
enum { HASH, QUEUE, TIMEOUT, NOTES, KEYS };

enum { PARTS_MAX = 4, ROOM = 100, KEY_ROOM = 4000 };

struct key {
  char text[ROOM];
  int name; /* which name it is of */
  int kind;
};

static struct key keys[KEY_ROOM];
static int key_count;
static int name_count;

/* The word of a request that begins at *at; moves *at behind it. */
static void take_word(char *word, const char **at)
{
  size_t size = strtoul(*at + 1, NULL, 10);
  const char *text = strstr(*at, "\r\n") + 2;
  CHECK(**at == '$' && size < ROOM);
  memcpy(word, text, size);
  word[size] = 0;
  *at = text + size + 2;
}

/* Puts down the keys of the lock called name, if the engine takes the name. */
static void put_down(const char *name)
{
  set_up();
  greet();
  int status = fairlock_engine_add(&engine, &b, name, strlen(name));
  if (status != FAIRLOCK_OK) CHECK_EQUAL(status, FAIRLOCK_INVALID);
  if (status != FAIRLOCK_OK) return;
  CHECK_EQUAL(fairlock_engine_acquire(&b, 0, 1000, now), FAIRLOCK_PENDING);
  CHECK(sends("\r\n$1\r\n4\r\n"));
  const char *at = strstr(output, "\r\n$1\r\n4\r\n") + strlen("\r\n$1\r\n4\r\n");
  for (int kind = 0; kind < KEYS; kind++) {
    CHECK(key_count < KEY_ROOM);
    keys[key_count].name = name_count;
    keys[key_count].kind = kind;
    take_word(keys[key_count++].text, &at);
  }
  name_count++;
}

/* All names of up to PARTS_MAX of the parts. */
static void put_down_all(void)
{
  static const char *const parts[] = {
      "a", "{", "}", "redisson_lock_queue:", "fairlock:", "redisson_lock_timeout:"};
  enum { COUNT = sizeof parts / sizeof parts[0] };
  int total = 1;
  key_count = 0;
  name_count = 0;
  for (int length = 1; length <= PARTS_MAX; length++) {
    total *= COUNT;
    for (int which = 0; which < total; which++) {
      char name[PARTS_MAX * sizeof "redisson_lock_timeout:"] = "";
      int rest = which;
      for (int i = 0; i < length; i++, rest /= COUNT)
        strcat(name, parts[rest % COUNT]);
      if (strlen(name) <= 40) put_down(name);
    }
  }
}

static int compare(const void *first, const void *second)
{
  const struct key *one = first;
  const struct key *other = second;
  int order = strcmp(one->text, other->text);
  return order != 0 ? order : one->kind - other->kind;
}

/* The page forbids this name: it is the key of another lock, whose name has a brace of its own. */
static bool is_forbidden(const char *name)
{
  static const char *const prefixes[] = {
      "redisson_lock_queue:", "redisson_lock_timeout:", "fairlock:"};
  for (unsigned i = 0; i < sizeof prefixes / sizeof prefixes[0]; i++) {
    size_t size = strlen(prefixes[i]);
    if (strncmp(name, prefixes[i], size) == 0 && strchr(name + size, '{') != NULL) return true;
  }
  return false;
}

static void test_no_shared_key(void)
{
  put_down_all();
  CHECK(name_count > 500);
  qsort(keys, (size_t)key_count, sizeof keys[0], compare);
  for (int i = 1; i < key_count; i++) {
    if (strcmp(keys[i].text, keys[i - 1].text) != 0) continue;
    CHECK(keys[i].kind != HASH && keys[i - 1].kind == HASH); /* of the same kind, none is shared */
    CHECK(is_forbidden(keys[i].text));
  }
}

static void test_wholly_in_braces(void)
{
  static const char *const refused[] = {"{}", "{x}", "{x}y}", "{}}", "{ }"};
  static const char *const taken[] = {"{", "}", "{x", "x}", "{{x}", "{x}{y}", "{x}:lock", " {x}"};
  set_up();
  for (unsigned i = 0; i < sizeof refused / sizeof refused[0]; i++)
    CHECK_EQUAL(fairlock_engine_add(&engine, &b, refused[i], strlen(refused[i])), FAIRLOCK_INVALID);
  for (unsigned i = 0; i < sizeof taken / sizeof taken[0]; i++)
    CHECK_EQUAL(fairlock_engine_add(&engine, &b, taken[i], strlen(taken[i])), FAIRLOCK_OK);
}

const struct check_test check_tests[] = {
    {"no two locks share a key", test_no_shared_key},
    {"a name wholly in braces is refused", test_wholly_in_braces},
    {NULL, NULL},
};
