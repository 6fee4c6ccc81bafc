/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What src/embedded.rs cannot know of the engine: how large its structs are, and how they are filled in.
 */
#include "driver.h"
#include "fairlock_abandon.h"

#define DIGIT(number, unit) (char)('0' + (number) / (unit) % 10)
#define DIGITS(number)                                                                             \
  DIGIT(number, 10000), DIGIT(number, 1000), DIGIT(number, 100), DIGIT(number, 10), DIGIT(number, 1)
#define MARK 'f', 'a', 'i', 'r', 'l', 'o', 'c', 'k', ' ', 's', 'i', 'z', 'e', 's', ':'

struct embedded_client {
  struct fairlock_engine engine;
  struct fairlock_config config;
};

/* Of a client, of a slot, and where the handle is in a slot: build.rs reads them. */
const char fairlock_rust_sizes[] = {
    MARK, DIGITS(sizeof(struct embedded_client)),         ' ', DIGITS(sizeof(struct fairlock_rest)),
    ' ',  DIGITS(offsetof(struct fairlock_rest, handle)), ' '};

_Static_assert(sizeof(struct embedded_client) < 100000, "five digits");
_Static_assert(_Alignof(struct embedded_client) <= 8 && _Alignof(struct fairlock_rest) <= 8,
               "as struct Memory in Rust");

/* As Options in Rust. */
struct embedded_options {
  const char *client_id, *user, *password, *client_name;
  uint32_t database, lease_ms, waiter_ms, claim_ms, response_ms, connect_ms, offline_ms;
};

int fairlock_rust_init(struct embedded_client *client, const struct embedded_options *options,
                       void *receive, void *send, size_t size, fairlock_ended_fn ended,
                       fairlock_lost_fn lost, void *context)
{
  client->config = (struct fairlock_config){.receive_buffer = receive,
                                            .receive_size = size,
                                            .send_buffer = send,
                                            .send_size = size,
                                            .client_id = options->client_id,
                                            .user = options->user,
                                            .password = options->password,
                                            .client_name = options->client_name,
                                            .database = options->database,
                                            .lease_ms = options->lease_ms,
                                            .waiter_ms = options->waiter_ms,
                                            .claim_ms = options->claim_ms,
                                            .response_ms = options->response_ms,
                                            .connect_ms = options->connect_ms,
                                            .offline_ms = options->offline_ms,
                                            .lost = lost,
                                            .lost_context = context,
                                            .ended = ended,
                                            .ended_context = context};
  return fairlock_engine_init(&client->engine, &client->config);
}

int fairlock_rust_add(struct embedded_client *client, struct fairlock_rest *slot, const char *name,
                      size_t size)
{
  return fairlock_engine_add(&client->engine, &slot->handle.handle, name, size);
}

/* Apart, so that a program that shares nothing has none of its code. */
int fairlock_rust_add_shared(struct embedded_client *client, struct fairlock_rest *slot,
                             const char *name, size_t size, uint32_t limit)
{
  return fairlock_engine_add_shared(&client->engine, &slot->handle, name, size, limit);
}

/* From a slot that is free afterwards to another one, which `freed` says is free. */
int fairlock_rust_abandon(struct fairlock_rest *from, struct fairlock_rest *to, char *name,
                          size_t name_size, fairlock_freed_fn freed, void *context, uint32_t now)
{
  to->freed = freed;
  to->context = context;
  to->name = name;
  to->name_size = name_size;
  return fairlock_engine_abandon(&from->handle.handle, to, now);
}
