/*
 * What the engine sends: the greeting, and the requests that engine->request describes.
 *
 * If a request does not fit into the send buffer, it is written from its start for each piece, and
 * the writer skips the bytes that were sent already. So a request may depend only on
 * engine->request, the handle's name, user and password, and the configuration, which do not change
 * meanwhile. All strings of the program are sent as bulk strings, with their length, so none can be
 * taken for a command.
 */
#include "internal.h"

#include <string.h>

static const char channel_name[] = "redisson_lock__channel:";

void fairlock_request_write_text(struct resp_writer *writer, const char *text)
{
  resp_write_bulk(writer, text, strlen(text));
}

/* Writes the header of a command of `words` words, and its name, which is the first of them. */
void fairlock_request_write_command(struct resp_writer *writer, const char *name, int words)
{
  resp_write_header(writer, RESP_ARRAY, words);
  fairlock_request_write_text(writer, name);
}

/* The index of the first brace in the name from `at` on; the size of the name if there is none. */
static size_t find_brace(const char *name, size_t size, size_t at)
{
  while (at < size && name[at] != '{')
    at++;
  return at;
}

/*
 * True if the keys have braces around the name. Redisson adds them so that all keys of a lock are
 * in one slot, unless the name has a '{' itself.
 */
static bool braced(const struct fairlock *handle)
{
  return find_brace(handle->name, handle->name_size, 0) == handle->name_size;
}

/*
 * False for a name like "{x}": it would have the queue and the notes of "x", but a hash of its own,
 * so that both could be held at the same time.
 */
bool fairlock_request_name_is_good(const char *name, size_t size)
{
  return name[0] != '{' || name[size - 1] != '}' || find_brace(name, size, 1) < size;
}

/* Writes a character and then a number. */
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

/* Writes a key as a bulk string, or, with the id at its end, the name of the channel. */
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

/* Writes the key of the queue as a bulk string. */
void fairlock_request_write_queue(struct resp_writer *writer, const struct fairlock *handle)
{
  write_key(writer, handle, "redisson_lock_queue:", false);
}

size_t fairlock_request_channel_size(const struct fairlock *handle)
{
  return name_size(handle, channel_name, true);
}

/* Writes the call of a script, with the four keys, as a command of `words` words. */
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

/* Writes the argument that common.lua describes: first to find its length, and then really. */
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

/* Writes the two words after AUTH: user and password. */
void fairlock_request_write_login(const struct fairlock_engine *engine, struct resp_writer *writer)
{
  fairlock_request_write_text(writer, engine->user != NULL ? engine->user : "default");
  fairlock_request_write_text(writer, engine->password);
}

/* Writes HELLO 3 [AUTH user password] [SETNAME name]. */
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
