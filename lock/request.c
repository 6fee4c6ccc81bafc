/*
 * What the engine says: the greeting, and the requests that engine->request describes.
 *
 * A request is written anew for each piece of it that is sent, with what is already out left out by the writer; so
 * all of it follows from engine->request, the handle's name and the configuration, none of which changes
 * meanwhile. Everything of the caller's goes out as the payload of a bulk string, whose length stands before it.
 */
#include "internal.h"

#include <string.h>

static const char queue_key[] = "redisson_lock_queue:";
static const char timeout_key[] = "redisson_lock_timeout:";
static const char ours_key[] = "fairlock:";
static const char channel_name[] = "redisson_lock__channel:";

static void write_text(struct resp_writer *writer, const char *text)
{
  resp_write_bulk(writer, text, strlen(text));
}

/* Redisson puts braces around the name, so that all keys of a lock share a slot, unless the name has one of its own. */
static bool braced(const struct fairlock *handle)
{
  return memchr(handle->name, '{', handle->name_size) == NULL;
}

static size_t id_text(const struct fairlock *handle, char number[RESP_NUMBER_SIZE])
{
  return resp_format_number(number, handle->number);
}

/* A bulk string of prefix and name, and, for a channel, a colon and the handle's id. */
static void write_key(struct resp_writer *writer, const struct fairlock *handle, const char *prefix, bool with_id)
{
  const struct fairlock_engine *engine = handle->engine;
  char number[RESP_NUMBER_SIZE];
  size_t digits = id_text(handle, number);
  size_t prefix_size = strlen(prefix);
  bool braces = braced(handle);
  size_t size = prefix_size + handle->name_size + (braces ? 2U : 0U);
  if (with_id) size += engine->id_size + digits + 2;
  resp_write_header(writer, RESP_BULK_STRING, (int64_t)size);
  resp_write_raw(writer, prefix, prefix_size);
  if (braces) resp_write_raw(writer, "{", 1);
  resp_write_raw(writer, handle->name, handle->name_size);
  if (braces) resp_write_raw(writer, "}", 1);
  if (with_id) {
    resp_write_raw(writer, ":", 1);
    resp_write_raw(writer, engine->id, engine->id_size);
    resp_write_raw(writer, ":", 1);
    resp_write_raw(writer, number, digits);
  }
  resp_write_end(writer);
}

size_t channel_size(const struct fairlock *handle)
{
  char number[RESP_NUMBER_SIZE];
  return sizeof channel_name - 1 + handle->name_size + (braced(handle) ? 2U : 0U) + 2 + handle->engine->id_size +
         id_text(handle, number);
}

static void write_id(struct resp_writer *writer, const struct fairlock *handle)
{
  const struct fairlock_engine *engine = handle->engine;
  char number[RESP_NUMBER_SIZE];
  size_t digits = id_text(handle, number);
  resp_write_header(writer, RESP_BULK_STRING, (int64_t)(engine->id_size + 1U + digits));
  resp_write_raw(writer, engine->id, engine->id_size);
  resp_write_raw(writer, ":", 1);
  resp_write_raw(writer, number, digits);
  resp_write_end(writer);
}

/* EVALSHA with the script's hash, or EVAL with its text, and the four keys. arguments: how many follow. */
static void write_script(struct resp_writer *writer, const struct fairlock *handle, int index, bool eval, int arguments)
{
  const struct fairlock_script *script =
      index == FAIRLOCK_SCRIPT_INSPECT ? handle->engine->inspection->script : &fairlock_scripts[index];
  resp_write_header(writer, RESP_ARRAY, 7 + arguments);
  if (eval) {
    write_text(writer, "EVAL");
    resp_write_header(writer, RESP_BULK_STRING, script->size[0] + script->size[1]);
    resp_write_raw(writer, script->part[0], script->size[0]);
    if (script->size[1] > 0) resp_write_raw(writer, script->part[1], script->size[1]);
    resp_write_end(writer);
  } else {
    write_text(writer, "EVALSHA");
    resp_write_bulk(writer, script->sha1, 40);
  }
  resp_write_bulk_number(writer, 4);
  resp_write_bulk(writer, handle->name, handle->name_size);
  write_key(writer, handle, queue_key, false);
  write_key(writer, handle, timeout_key, false);
  write_key(writer, handle, ours_key, false);
}

/* The script that serves a kind of request. */
int script_of(int kind)
{
  switch (kind) {
  case KIND_ACQUIRE:
  case KIND_KEEP:
    return FAIRLOCK_SCRIPT_ACQUIRE;
  case KIND_INSPECT:
    return FAIRLOCK_SCRIPT_INSPECT;
  default:
    return FAIRLOCK_SCRIPT_RELEASE;
  }
}

static void write_acquire(struct resp_writer *writer, const struct fairlock_request *request)
{
  const struct fairlock *handle = request->handle;
  write_script(writer, handle, FAIRLOCK_SCRIPT_ACQUIRE, request->eval, 6);
  write_id(writer, handle);
  resp_write_bulk_number(writer, request->expires);
  resp_write_bulk_number(writer, request->target);
  resp_write_bulk_number(writer, request->lease_ms);
  resp_write_bulk_number(writer, request->mode);
  resp_write_bulk_number(writer, (int64_t)request->token);
}

static void write_release(struct resp_writer *writer, const struct fairlock_request *request)
{
  const struct fairlock *handle = request->handle;
  bool partial = request->target > 0;
  write_script(writer, handle, FAIRLOCK_SCRIPT_RELEASE, request->eval, partial ? 5 : 4);
  write_id(writer, handle);
  resp_write_bulk_number(writer, request->expires);
  resp_write_bulk_number(writer, request->kind == KIND_FORCE ? -1 : request->target);
  resp_write_bulk_number(writer, (int64_t)request->token);
  if (partial) resp_write_bulk_number(writer, request->lease_ms);
}

static void write_request(struct resp_writer *writer, const struct fairlock_request *request)
{
  if (request->subscribe) {
    resp_write_header(writer, RESP_ARRAY, 2);
    write_text(writer, request->kind == KIND_LEAVE ? "UNSUBSCRIBE" : "SUBSCRIBE");
    write_key(writer, request->handle, channel_name, true);
  }
  switch (request->kind) {
  case KIND_ACQUIRE:
  case KIND_KEEP:
    write_acquire(writer, request);
    break;
  case KIND_INSPECT:
    write_script(writer, request->handle, FAIRLOCK_SCRIPT_INSPECT, request->eval, 0);
    break;
  default:
    write_release(writer, request);
    break;
  }
}

/* HELLO 3 [AUTH user password] [SETNAME name], [SELECT database], TIME. */
static void write_greeting(struct resp_writer *writer, const struct fairlock_config *config)
{
  resp_write_header(writer, RESP_ARRAY, 2 + (config->password != NULL ? 3 : 0) + (config->client_name != NULL ? 2 : 0));
  write_text(writer, "HELLO");
  resp_write_bulk_number(writer, 3);
  if (config->password != NULL) {
    write_text(writer, "AUTH");
    write_text(writer, config->user != NULL ? config->user : "default");
    write_text(writer, config->password);
  }
  if (config->client_name != NULL) {
    write_text(writer, "SETNAME");
    write_text(writer, config->client_name);
  }
  if (config->database > 0) {
    resp_write_header(writer, RESP_ARRAY, 2);
    write_text(writer, "SELECT");
    resp_write_bulk_number(writer, config->database);
  }
  resp_write_header(writer, RESP_ARRAY, 1);
  write_text(writer, "TIME");
}

void write_output(const struct fairlock_engine *engine, struct resp_writer *writer)
{
  if (engine->request.handle == NULL) {
    write_greeting(writer, engine->config);
  } else {
    write_request(writer, &engine->request);
  }
}
