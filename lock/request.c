/*
 * What the engine says: the greeting, and the requests that engine->request describes.
 *
 * A request that does not fit the send buffer is written again from its start for each piece, and
 * the writer skips what was already sent. So it may depend on nothing but engine->request, the
 * handle's name, user and password, and the configuration, none of which changes meanwhile. Whatever
 * comes from the caller is sent as the payload of a bulk string, with its length in front, so none
 * of it can be read as a command.
 */
#include "internal.h"

#include <string.h>

static const char channel_name[] = "redisson_lock__channel:";

void fairlock_request_write_text(struct resp_writer *writer, const char *text)
{
  resp_write_bulk(writer, text, strlen(text));
}

/* Writes the header of a command of so many words, and the first of them, its name. */
void fairlock_request_write_command(struct resp_writer *writer, const char *name, int words)
{
  resp_write_header(writer, RESP_ARRAY, words);
  fairlock_request_write_text(writer, name);
}

/* Where the name has its first brace from `at` on; its size if there is none. */
static size_t find_brace(const char *name, size_t size, size_t at)
{
  while (at < size && name[at] != '{')
    at++;
  return at;
}

/*
 * Redisson puts braces around the name, so that all keys of a lock share a slot, unless the name
 * has a brace of its own.
 */
static bool braced(const struct fairlock *handle)
{
  return find_brace(handle->name, handle->name_size, 0) == handle->name_size;
}

/* "{x}" would have the queue and the notes of "x", but not its hash: two locks, and two holders. */
bool fairlock_request_name_is_good(const char *name, size_t size)
{
  return name[0] != '{' || name[size - 1] != '}' || find_brace(name, size, 1) < size;
}

/* Writes the character and the number. */
void fairlock_request_write_number(struct resp_writer *writer, char before, int64_t number)
{
  char text[1 + RESP_NUMBER_SIZE];
  text[0] = before;
  resp_write_raw(writer, text, 1 + resp_format_number(text + 1, number));
}

/* Writes the id of the handle. */
static void write_id(struct resp_writer *writer, const struct fairlock *handle)
{
  resp_write_raw(writer, handle->engine->id, handle->engine->id_size);
  fairlock_request_write_number(writer, ':', handle->number);
}

/* Writes a key, or with the id the channel, as it stands in a bulk string. */
static void write_name(struct resp_writer *writer, const struct fairlock *handle,
                       const char *prefix, bool with_id)
{
  size_t brace = braced(handle);
  resp_write_raw(writer, prefix, strlen(prefix));
  resp_write_raw(writer, "{", brace);
  resp_write_raw(writer, handle->name, handle->name_size);
  resp_write_raw(writer, "}", brace);
  if (!with_id) return;
  resp_write_raw(writer, ":", 1);
  write_id(writer, handle);
}

static size_t name_size(const struct fairlock *handle, const char *prefix, bool with_id)
{
  struct resp_writer nowhere;
  resp_writer_init(&nowhere, NULL, 0, 0);
  write_name(&nowhere, handle, prefix, with_id);
  return nowhere.total;
}

static void write_key(struct resp_writer *writer, const struct fairlock *handle, const char *prefix,
                      bool with_id)
{
  resp_write_header(writer, RESP_BULK_STRING, (int64_t)name_size(handle, prefix, with_id));
  write_name(writer, handle, prefix, with_id);
  resp_write_end(writer);
}

/* The key of the queue, as a bulk string. */
void fairlock_request_write_queue(struct resp_writer *writer, const struct fairlock *handle)
{
  write_key(writer, handle, "redisson_lock_queue:", false);
}

size_t fairlock_request_channel_size(const struct fairlock *handle)
{
  return name_size(handle, channel_name, true);
}

/* Calls the script, with the four keys, by a command of so many words. */
static void write_call(struct resp_writer *writer, const struct fairlock *handle,
                       const struct fairlock_script *script, int words)
{
  fairlock_script_write(writer, script, handle->engine->request.eval, words);
  fairlock_request_write_text(writer, "4");
  resp_write_bulk(writer, handle->name, handle->name_size);
  write_key(writer, handle, "redisson_lock_queue:", false);
  write_key(writer, handle, "redisson_lock_timeout:", false);
  write_key(writer, handle, "fairlock:", false);
}

static void write_words(struct resp_writer *writer, const struct fairlock_request *request)
{
  if (request->kind == KIND_FORCE) {
    request->handle->by.hold->breaking->write_words(writer, request);
    return;
  }
  write_id(writer, request->handle);
  fairlock_request_write_number(writer, ' ', request->expires);
  fairlock_request_write_number(writer, ' ', request->mode);
  fairlock_request_write_number(writer, ' ', request->lease_ms);
  resp_write_raw(writer, "+", request->renews);
  if (request->token != 0) fairlock_request_write_number(writer, ' ', (int64_t)request->token);
}

/* The argument that common.lua describes: measured, then written. */
static void write_argument(struct resp_writer *writer, const struct fairlock_request *request)
{
  struct resp_writer nowhere;
  resp_writer_init(&nowhere, NULL, 0, 0);
  write_words(&nowhere, request);
  resp_write_header(writer, RESP_BULK_STRING, (int64_t)nowhere.total);
  write_words(writer, request);
  resp_write_end(writer);
}

static void write_request(struct resp_writer *writer, const struct fairlock_request *request)
{
  const struct fairlock *handle = request->handle;
  if (request->kind == KIND_INSPECT) {
    write_call(writer, handle, handle->engine->inspection->script, 7);
    return;
  }
  if (request->subscribe) {
    const char *command = request->kind == KIND_LEAVE ? "SUNSUBSCRIBE" : "SSUBSCRIBE";
    fairlock_request_write_command(writer, handle->engine->sharded ? command : command + 1, 2);
    write_key(writer, handle, channel_name, true);
  }
  const struct fairlock_script *script =
      request->kind == KIND_FORCE ? handle->by.hold->breaking->script : &fairlock_lock_script;
  write_call(writer, handle, script, 8);
  write_argument(writer, request);
}

/* The two words behind AUTH, in a greeting and alone. */
void fairlock_request_write_login(const struct fairlock_engine *engine, struct resp_writer *writer)
{
  fairlock_request_write_text(writer, engine->user != NULL ? engine->user : "default");
  fairlock_request_write_text(writer, engine->password);
}

/* HELLO 3 [AUTH user password] [SETNAME name] */
void fairlock_request_write_hello(const struct fairlock_engine *engine, struct resp_writer *writer)
{
  const char *client_name = engine->config->client_name;
  fairlock_request_write_command(
      writer, "HELLO", 2 + (engine->password != NULL ? 3 : 0) + (client_name != NULL ? 2 : 0));
  fairlock_request_write_text(writer, "3");
  if (engine->password != NULL) {
    fairlock_request_write_text(writer, "AUTH");
    fairlock_request_write_login(engine, writer);
  }
  if (client_name != NULL) {
    fairlock_request_write_text(writer, "SETNAME");
    fairlock_request_write_text(writer, client_name);
  }
}

void fairlock_request_write_output(const struct fairlock_engine *engine, struct resp_writer *writer)
{
  if (engine->request.handle == NULL) {
    fairlock_request_write_greeting(engine, writer, false);
  } else {
    write_request(writer, &engine->request);
  }
}
