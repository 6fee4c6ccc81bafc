/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the engine sends: the greeting, and the requests that engine->request describes.
 *
 * If a request does not fit into the send buffer, it is written from its start for each piece, and
 * the writer skips the bytes that were sent already. So a request may depend only on what does not
 * change meanwhile: engine->request, name and id of the handle, the hold that it breaks, user and
 * password, the configuration, and what the greeting has found out. All strings of the program are
 * sent as bulk strings, with their length, so none can be taken for a command.
 */
#include "internal.h"

#include <string.h>

const char fairlock_request_channel_prefix[] = "redisson_lock__channel:";

/* The prefixes of all keys but the lock's own, the queue's first. */
const char fairlock_request_key_prefixes[] =
    "redisson_lock_queue:\0redisson_lock_timeout:\0fairlock:\0";

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

static void write_byte(struct resp_writer *writer, char byte, bool wanted)
{
  resp_write_raw(writer, &byte, wanted);
}

/* Writes the argument that common.lua describes. */
static void write_words(struct resp_writer *writer, const struct fairlock_request *request)
{
  write_id(writer, request->handle);
  fairlock_request_write_number(writer, ' ', request->expires);
  fairlock_request_write_number(writer, ' ', request->mode);
  if (request->mode > request->claim_ms)
    fairlock_request_write_number(writer, 'C', request->claim_ms);
  fairlock_request_write_number(writer, ' ', request->lease_ms);
  write_byte(writer, '+', request->renews);
  if (request->token != 0) fairlock_request_write_number(writer, ' ', (int64_t)request->token);
}

/*
 * Writes the payload of a bulk string: a key; or, with the prefix of a channel, the name of the
 * handle's channel, which ends in its id; or, without a prefix, the argument of the script.
 */
static void write_payload(struct resp_writer *writer, const struct fairlock *handle,
                          const char *prefix)
{
  if (prefix == NULL) {
    write_words(writer, &handle->engine->request);
    return;
  }
  bool brace = braced(handle);
  resp_write_raw(writer, prefix, strlen(prefix));
  write_byte(writer, '{', brace);
  resp_write_raw(writer, handle->name, handle->name_size);
  write_byte(writer, '}', brace);
  if (prefix != fairlock_request_channel_prefix) return;
  write_byte(writer, ':', true);
  write_id(writer, handle);
}

static size_t payload_size(const struct fairlock *handle, const char *prefix)
{
  struct resp_writer nowhere;
  resp_writer_init(&nowhere, NULL, 0, 0);
  write_payload(&nowhere, handle, prefix);
  return nowhere.total;
}

/* Writes the payload as a bulk string: first to find its length, and then really. */
void fairlock_request_write_bulk(struct resp_writer *writer, const struct fairlock *handle,
                                 const char *prefix)
{
  resp_write_header(writer, RESP_BULK_STRING, (int64_t)payload_size(handle, prefix));
  write_payload(writer, handle, prefix);
  resp_write_end(writer);
}

/* Writes the key of the queue as a bulk string. */
void fairlock_request_write_queue(struct resp_writer *writer, const struct fairlock *handle)
{
  fairlock_request_write_bulk(writer, handle, fairlock_request_key_prefixes);
}

size_t fairlock_request_channel_size(const struct fairlock *handle)
{
  return payload_size(handle, fairlock_request_channel_prefix);
}

/* Writes the one argument of the lock's own script. */
void fairlock_request_write_argument(struct resp_writer *writer,
                                     const struct fairlock_request *request)
{
  fairlock_request_write_bulk(writer, request->handle, NULL);
}

static void write_request(struct resp_writer *writer, const struct fairlock_request *request)
{
  const struct fairlock *handle = request->handle;
  const struct fairlock_query *query = request->query;
  if (request->subscribe) {
    const char *command = request->kind == KIND_LEAVE ? "SUNSUBSCRIBE" : "SSUBSCRIBE";
    fairlock_request_write_command(writer, handle->engine->sharded ? command : command + 1, 2);
    fairlock_request_write_bulk(writer, handle, fairlock_request_channel_prefix);
  }
  fairlock_script_write(writer, query->script, request->eval, query->words);
  fairlock_request_write_text(writer, "4");
  resp_write_bulk(writer, handle->name, handle->name_size);
  for (const char *prefix = fairlock_request_key_prefixes; *prefix != 0;
       prefix += strlen(prefix) + 1)
    fairlock_request_write_bulk(writer, handle, prefix);
  query->write(writer, request);
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
