/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The decoder beside hiredis' reader, on replies as a server sends them: mixed ones of our scripts,
 * small ones, and large ones. Both look at every byte of every value.
 */
#include "bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { STREAM = 1 << 20 };

static uint8_t stream[STREAM + 8192];
static size_t stream_size;

static void put(const char *text, size_t size)
{
  memcpy(stream + stream_size, text, size);
  stream_size += size;
}

static void fill_mixed(void)
{
  char text[256];
  for (unsigned i = 0; stream_size < STREAM; i++) {
    put(text, (size_t)snprintf(text, sizeof text, "*3\r\n:1\r\n:1763664%09u\r\n:1763664%06u\r\n",
                               i * 7919 % 1000000000, i % 1000000));
    if (i % 4 == 0) {
      put(text, (size_t)snprintf(
                    text, sizeof text,
                    "*3\r\n$7\r\nmessage\r\n$72\r\nredisson_lock__channel:{sixteen-byte-nam}:"
                    "0123456789abcdef0123456789abcd\r\n$30\r\n1763664000000000 1763664000000\r\n"));
    }
    if (i % 16 == 0)
      put("$64\r\n0123456789012345678901234567890123456789012345678901234567890123\r\n", 71);
    if (i % 64 == 0) put("-NOSCRIPT No matching script. Please use EVAL.\r\n", 48);
  }
}

static void fill_small(void)
{
  while (stream_size < STREAM)
    put("+OK\r\n:1\r\n$2\r\nhi\r\n", 17);
}

static void fill_large(void)
{
  static char payload[4096];
  memset(payload, 'x', sizeof payload);
  while (stream_size < STREAM) {
    put("$4096\r\n", 7);
    put(payload, sizeof payload);
    put("\r\n", 2);
  }
}

/*
 * Both sums are of every value's type, number and size, and of the first and last byte of its text.
 */
static uint64_t mix(uint64_t sum, unsigned type, int64_t integer, const void *text, size_t size)
{
  const uint8_t *bytes = text;
  sum = sum * 31 + type + (uint64_t)integer + size;
  if (size > 0) sum += bytes[0] + 256U * bytes[size - 1];
  return sum;
}

static uint64_t ours(void)
{
  struct resp_decoder decoder;
  struct resp_event event;
  size_t start = 0;
  size_t used;
  uint64_t sum = 0;
  resp_decoder_init(&decoder, 65536);
  /* as from a socket: in pieces of 16 KB */
  for (size_t end = 0; end < stream_size;) {
    end = stream_size - end > 16384 ? end + 16384 : stream_size;
    while (resp_decode(&decoder, stream + start, end - start, &used, &event) == RESP_EVENT) {
      start += used;
      bool aggregate = event.type == RESP_ARRAY;
      bool number = event.type == RESP_INTEGER;
      sum = mix(sum, number, number ? event.integer : 0, event.data,
                aggregate || number ? 0 : event.size);
    }
    start += used;
  }
  return sum;
}

static uint64_t walk(uint64_t sum, const redisReply *reply)
{
  bool aggregate = reply->type == REDIS_REPLY_ARRAY;
  bool number = reply->type == REDIS_REPLY_INTEGER;
  sum = mix(sum, number, number ? reply->integer : 0, reply->str,
            aggregate || number ? 0 : reply->len);
  for (size_t i = 0; aggregate && i < reply->elements; i++)
    sum = walk(sum, reply->element[i]);
  return sum;
}

static uint64_t theirs(void)
{
  redisReader *reader = redisReaderCreate();
  void *reply;
  uint64_t sum = 0;
  for (size_t at = 0; at < stream_size; at += 16384) {
    redisReaderFeed(reader, (const char *)stream + at,
                    stream_size - at > 16384 ? 16384 : stream_size - at);
    while (redisReaderGetReply(reader, &reply) == REDIS_OK && reply != NULL) {
      sum = walk(sum, reply);
      freeReplyObject(reply);
    }
  }
  redisReaderFree(reader);
  return sum;
}

void bench_decode(int port)
{
  static const struct {
    const char *name;
    void (*fill)(void);
  } kinds[] = {{"mixed", fill_mixed}, {"small", fill_small}, {"large", fill_large}};
  (void)port;
  for (size_t kind = 0; kind < sizeof kinds / sizeof kinds[0]; kind++) {
    struct series ratio = {.count = 0};
    struct series rate = {.count = 0};
    char name[40];
    stream_size = 0;
    kinds[kind].fill();
    if (ours() != theirs()) {
      fprintf(stderr, "bench: the two decoders disagree on %s replies\n", kinds[kind].name);
      exit(1);
    }
    for (int round = 0; round < 15; round++) {
      double begin = now();
      volatile uint64_t sum = ours();
      double a = now() - begin;
      begin = now();
      sum = theirs();
      (void)sum;
      add(&ratio, (now() - begin) / a);
      add(&rate, (double)stream_size / a);
    }
    snprintf(name, sizeof name, "decode.ratio.%s", kinds[kind].name);
    print_row(name, &ratio, "over hiredis' reader; aim at least 3");
    snprintf(name, sizeof name, "decode.mb_s.%s", kinds[kind].name);
    print_row(name, &rate, NULL);
  }
}
