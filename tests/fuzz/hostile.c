/* SPDX-License-Identifier: Apache-2.0 */
/* A hostile server's words; see hostile.h. */
#include "fairlock_follow.h"
#include "hostile.h"

#include <string.h>

/* The waiter timeout of a waiter that is handed the lock. */
enum { CLAIM_MS = 5000 };

unsigned hostile_next(struct hostile *hostile)
{
  if (hostile->left == 0) return 0;
  hostile->left--;
  return *hostile->input++;
}

static int64_t next_number(struct hostile *hostile)
{
  static const int64_t odd[] = {
      -2, -1, 0, 1, 2, 99, INT64_MAX, INT64_MIN, 1700000000000, 9007199254740993};
  unsigned choice = hostile_next(hostile);
  return choice < sizeof odd / sizeof odd[0] ? odd[choice] : (int64_t)(choice - 10);
}

static size_t put_text(uint8_t *to, const char *text)
{
  memcpy(to, text, strlen(text));
  return strlen(text);
}

static size_t put_answer(uint8_t *to, int64_t state, int64_t value, int64_t at)
{
  struct resp_writer writer;
  resp_writer_init(&writer, to, HOSTILE_SIZE, 0);
  resp_write_header(&writer, RESP_ARRAY, 3);
  resp_write_header(&writer, RESP_INTEGER, state);
  resp_write_header(&writer, RESP_INTEGER, value);
  resp_write_header(&writer, RESP_INTEGER, at);
  return writer.used;
}

static size_t put_any_answer(struct hostile *hostile, uint8_t *to)
{
  int64_t state = next_number(hostile);
  int64_t value = next_number(hostile);
  return put_answer(to, state, value,
                    hostile_next(hostile) % 8 != 0 ? hostile->now : next_number(hostile));
}

/* The queue of a lock has changed; or another key, or all of them. */
static size_t put_invalidation(struct hostile *hostile, uint8_t *to)
{
  static const char *const keys[] = {"redisson_lock_queue:{n}", "redisson_lock_queue:a{b",
                                     "redisson_lock_queue:{m}", "redisson_lock_timeout:{n}", "n"};
  unsigned choice = hostile_next(hostile);
  struct resp_writer writer;
  resp_writer_init(&writer, to, HOSTILE_SIZE, 0);
  resp_write_header(&writer, RESP_PUSH, 2);
  resp_write_bulk(&writer, "invalidate", 10);
  if (choice % 8 == 7) {
    resp_write_raw(&writer, "_\r\n", 3);
    return writer.used;
  }
  resp_write_header(&writer, RESP_ARRAY, 1);
  if (choice % 8 == 6) resp_write_bulk(&writer, "redisson_lock_queue:{\0\r\n}", 25);
  else resp_write_bulk(&writer, keys[choice % 5], strlen(keys[choice % 5]));
  return writer.used;
}

/* On the channel of a handle, or, sometimes, of one that does not exist. */
static size_t put_push(struct hostile *hostile, uint8_t *to)
{
  static const char *const kinds[] = {"message", "subscribe", "message", "pmessage"};
  char channel[256];
  char message[3 * RESP_NUMBER_SIZE + 2];
  struct resp_writer writer;
  unsigned first = hostile_next(hostile);
  unsigned which = first % (WITNESS_LOCKS + 1) % WITNESS_LOCKS;
  if (first >= 224) return put_invalidation(hostile, to);
  uint32_t number = hostile->witness->numbers[which] + (hostile_next(hostile) % 16 == 1);
  size_t channel_size = witness_channel(hostile->witness, which, number, channel);
  size_t size = resp_format_number(message, next_number(hostile));
  if (hostile_next(hostile) % 4 != 0) {
    bool near = hostile_next(hostile) % 4 != 0;
    message[size++] = ' ';
    size += resp_format_number(message + size,
                               near ? hostile->now - hostile_next(hostile) : next_number(hostile));
    message[size++] = ' ';
    size += resp_format_number(message + size, near ? CLAIM_MS : next_number(hostile));
  }
  const char *kind = kinds[hostile_next(hostile) % 4];
  resp_writer_init(&writer, to, HOSTILE_SIZE, 0);
  resp_write_header(&writer, RESP_PUSH, 3);
  resp_write_bulk(&writer, kind, strlen(kind));
  resp_write_bulk(&writer, channel, channel_size);
  resp_write_bulk(&writer, message, size);
  return writer.used;
}

static size_t put_error(struct hostile *hostile, uint8_t *to)
{
  static const char *const errors[] = {"-NOSCRIPT x\r\n", "-OOM x\r\n",   "-NOPERM x\r\n",
                                       "-READONLY x\r\n", "-LOADING\r\n", "-ERR what\r\n",
                                       "!3\r\nOOM\r\n",   "-\r\n"};
  unsigned choice = hostile_next(hostile);
  if (choice >= 224) return put_text(to, choice % 2 == 0 ? "-WRONGPASS x\r\n" : "-NOAUTH x\r\n");
  return put_text(to, errors[choice % 8]);
}

static size_t put_greeting(const struct hostile *hostile, uint8_t *to)
{
  struct resp_writer writer;
  size_t size = put_text(to, "%2\r\n+proto\r\n:3\r\n+id\r\n:74\r\n");
  if (hostile->selects) size += put_text(to + size, "+OK\r\n");
  resp_writer_init(&writer, to + size, HOSTILE_SIZE - size, 0);
  resp_write_header(&writer, RESP_ARRAY, 2);
  resp_write_bulk_number(&writer, hostile->now / 1000);
  resp_write_bulk_number(&writer, hostile->now % 1000 * 1000);
  return size + writer.used;
}

static size_t put_inspection(struct hostile *hostile, uint8_t *to)
{
  unsigned elements = 6 + hostile_next(hostile) % 8;
  struct resp_writer writer;
  resp_writer_init(&writer, to, HOSTILE_SIZE, 0);
  resp_write_header(&writer, RESP_ARRAY, elements);
  for (unsigned i = 0; i < elements; i++) {
    if (i >= 5 && i % 3 == 2)
      resp_write_bulk(&writer, "a waiter of some length", hostile_next(hostile) % 24);
    else if (hostile_next(hostile) % 8 == 1) resp_write_bulk_number(&writer, next_number(hostile));
    else resp_write_header(&writer, RESP_INTEGER, next_number(hostile));
  }
  return writer.used;
}

static size_t put_raw(struct hostile *hostile, uint8_t *to)
{
  size_t size = hostile_next(hostile);
  if (size > hostile->left) size = hostile->left;
  if (size > 0) memcpy(to, hostile->input, size);
  hostile->input += size;
  hostile->left -= size;
  return size;
}

static size_t put_subscribed(const struct hostile *hostile, const struct witness_request *request,
                             uint8_t *to)
{
  const struct witness *witness = hostile->witness;
  char channel[256];
  struct resp_writer writer;
  unsigned which = 0;
  while (which < WITNESS_LOCKS - 1 && witness->numbers[which] != request->number)
    which++;
  const char *kind = request->script == 's' ? "ssubscribe" : "sunsubscribe";
  if (!witness->sharded) kind++;
  resp_writer_init(&writer, to, HOSTILE_SIZE, 0);
  resp_write_header(&writer, RESP_PUSH, 3);
  resp_write_bulk(&writer, kind, strlen(kind));
  resp_write_bulk(&writer, channel, witness_channel(witness, which, request->number, channel));
  resp_write_header(&writer, RESP_INTEGER, 1);
  return writer.used;
}

/* A greeting that says what kind of server it is; the rest of it may follow, or a Sentinel's. */
static size_t put_role(struct hostile *hostile, uint8_t *to)
{
  static const char *const versions[] = {"7.0.15", "6.2.5", "10.0", "9"};
  static const char *const modes[] = {"cluster", "standalone", "sentinel", "clusters"};
  static const char *const roles[] = {"master", "replica", "sentinel", "replicas"};
  unsigned choice = hostile_next(hostile);
  const char *const fields[] = {"version", versions[choice % 4],   "mode",  modes[choice / 4 % 4],
                                "role",    roles[choice / 16 % 4], "other", "replica"};
  struct resp_writer writer;
  resp_writer_init(&writer, to, HOSTILE_SIZE, 0);
  resp_write_header(&writer, RESP_MAP, 5);
  for (int i = 0; i < 8; i++)
    resp_write_bulk(&writer, fields[i], strlen(fields[i]));
  size_t size = writer.used + put_text(to + writer.used, "+id\r\n:74\r\n");
  if (choice < 128) return size;
  if (hostile->selects) size += put_text(to + size, "+OK\r\n");
  resp_writer_init(&writer, to + size, HOSTILE_SIZE - size, 0);
  resp_write_header(&writer, RESP_ARRAY, 2);
  resp_write_bulk_number(&writer, hostile->now / 1000);
  resp_write_bulk_number(&writer, hostile->now % 1000 * 1000);
  return size + writer.used;
}

/* MOVED, with the slot of one of the locks or none of theirs. */
static size_t put_moved(struct hostile *hostile, uint8_t *to)
{
  static const char *const places[] = {" 10.0.0.2:6380\r\n",  " :7\r\n",      " ?:7\r\n",
                                       " node.example:1\r\n", " [::1]:7\r\n", " \r\n",
                                       " host\r\n",           "\r\n"};
  unsigned choice = hostile_next(hostile);
  const struct witness_lock *lock = &witness_locks[choice % (WITNESS_LOCKS + 1) % WITNESS_LOCKS];
  size_t size = put_text(to, choice & 128 ? "-ASK " : "-MOVED ");
  unsigned slot = choice & 64 ? hostile_next(hostile) : fairlock_slot(lock->name, lock->size);
  size += resp_format_number((char *)to + size, slot);
  return size + put_text(to + size, places[choice / 8 % 8]);
}

/* What only servers that move say. */
static size_t put_move(struct hostile *hostile, uint8_t *to)
{
  static const char *const words[] = {
      "-TRYAGAIN x\r\n",
      "-CLUSTERDOWN x\r\n",
      "-UNBLOCKED x\r\n",
      "-MASTERDOWN x\r\n",
      "-ERR WAIT cannot\r\n",
      ":0\r\n",
      ":1\r\n",
      ":2\r\n",
      "*2\r\n$8\r\n10.0.0.2\r\n$4\r\n6380\r\n",
      "_\r\n",
      "*2\r\n$1\r\nh\r\n",
      "*1\r\n:1\r\n",
  };
  static const char *const kinds[] = {"sunsubscribe", "ssubscribe", "smessage", "unsubscribe"};
  unsigned choice = hostile_next(hostile);
  unsigned which = choice / 16 % WITNESS_LOCKS;
  struct resp_writer writer;
  char channel[256];
  if (choice % 16 < 12) return put_text(to, words[choice % 16]);
  if (choice % 16 == 12) return put_moved(hostile, to);
  if (choice % 16 < 15) return put_role(hostile, to);
  resp_writer_init(&writer, to, HOSTILE_SIZE, 0);
  const char *kind = kinds[choice / 64];
  resp_write_header(&writer, RESP_PUSH, 3);
  resp_write_bulk(&writer, kind, strlen(kind));
  resp_write_bulk(
      &writer, channel,
      witness_channel(hostile->witness, which, hostile->witness->numbers[which], channel));
  resp_write_bulk(&writer, "0", 1);
  return writer.used;
}

/* What an honest server would say to the oldest request. */
static size_t put_honest(struct hostile *hostile, uint8_t *to)
{
  const struct witness *witness = hostile->witness;
  if (witness->greeted < witness->greetings) return put_greeting(hostile, to);
  if (witness->first == witness->last) return 0;
  const struct witness_request *request = &witness->requests[witness->first];
  unsigned choice = hostile_next(hostile);
  int64_t token = (int64_t)hostile->tokens[choice / 4 % WITNESS_LOCKS];
  if (request->script == 'A')
    return put_text(to, choice % 4 != 1 ? "+OK\r\n" : choice < 128 ? "-WRONGPASS\r\n" : "-OOM\r\n");
  if (request->script == 'c') return put_text(to, choice % 16 != 1 ? "+OK\r\n" : "-ERR x\r\n");
  if (request->script == 'e') return put_text(to, choice % 4 != 1 ? ":0\r\n" : ":1\r\n");
  if (request->script == 'w') return put_text(to, choice % 8 != 1 ? ":2\r\n" : ":0\r\n");
  if (request->script == 's' || request->script == 'u') return put_subscribed(hostile, request, to);
  if (request->script == 'i')
    return put_text(to, "*6\r\n:4294967296\r\n:9\r\n$2\r\n42\r\n:1\r\n:1\r\n$3\r\na:1\r\n");
  if (request->script == 'b') return put_answer(to, choice % 2, choice / 2 % 2, hostile->now);
  if (request->from != 0) {
    static const int64_t states[] = {1, -1, 1, 2};
    return put_answer(to, states[choice % 4], token + choice / 16, hostile->now);
  }
  if (request->script == 'r') return put_answer(to, choice % 4 != 1, 0, hostile->now);
  if (request->mode < 0) return put_answer(to, choice % 4 != 1 ? 1 : -1, token, hostile->now);
  return put_answer(to, choice % 2, choice, hostile->now);
}

size_t hostile_say(struct hostile *hostile, enum hostile_words words, uint8_t text[HOSTILE_SIZE])
{
  switch (words) {
  case HOSTILE_RAW:
    return put_raw(hostile, text);
  case HOSTILE_ERROR:
    return put_error(hostile, text);
  case HOSTILE_PUSH:
    return put_push(hostile, text);
  case HOSTILE_ANSWER:
    return put_any_answer(hostile, text);
  case HOSTILE_GREETING:
    return put_greeting(hostile, text);
  case HOSTILE_INSPECTION:
    return put_inspection(hostile, text);
  case HOSTILE_MOVE:
    return put_move(hostile, text);
  default:
    return put_honest(hostile, text);
  }
}
