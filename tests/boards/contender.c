/* SPDX-License-Identifier: Apache-2.0 */
/* Contends for a lock; see contender.h. No libc but string.h. */
#include "contender.h"
#include "fairlock.h"
#include "fairlock_keep.h"
#include "resp.h"

#include <string.h>

#define PATIENCE_MS 10000U

static const char arrive[] = "return redis.call('incr', 'present')";
static const char look[] = "return tonumber(redis.call('get', 'present'))";

static const char enter[] =
    "if redis.call('exists', 'inside') == 1 then redis.call('incr', 'violations') end "
    "redis.call('set', 'inside', ARGV[1]) "
    "return tonumber(redis.call('get', 'counter') or 0)";

static const char leave[] =
    "if redis.call('get', 'inside') ~= ARGV[1] then redis.call('incr', 'violations') end "
    "redis.call('set', 'counter', ARGV[2]) "
    "local next = redis.call('lindex', 'redisson_lock_queue:{contended}', 0) or '-' "
    "local time = redis.call('time') "
    "local ms = time[1] * 1000 + math.floor(time[2] / 1000) "
    "redis.call('rpush', 'history', string.format('%s %s %s %d', ARGV[1], ARGV[3], next, ms)) "
    "redis.call('del', 'inside') "
    "return 1";

static bool send_all(const struct port_transport *transport, const uint8_t *data, size_t size)
{
  uint32_t began = port_clock_ms();
  while (size > 0) {
    int sent = transport->send(transport->context, data, size);
    if (sent == PORT_CLOSED || port_clock_ms() - began > PATIENCE_MS) return false;
    if (sent < 0) continue;
    data += sent;
    size -= (size_t)sent;
  }
  return true;
}

/* Receives one integer. */
static bool receive_number(const struct port_transport *transport, int64_t *number)
{
  static uint8_t buffer[64 + RESP_OVERHEAD];
  size_t size = 0;
  uint32_t began = port_clock_ms();
  struct resp_decoder decoder;
  struct resp_event event;
  resp_decoder_init(&decoder, 64);
  while (port_clock_ms() - began < PATIENCE_MS) {
    size_t used;
    int got = transport->recv(transport->context, buffer + size, sizeof buffer - size, 100);
    if (got == PORT_CLOSED) return false;
    if (got < 0) continue;
    size += (size_t)got;
    int status = resp_decode(&decoder, buffer, size, &used, &event);
    if (status == RESP_EVENT) {
      *number = event.integer;
      return event.type == RESP_INTEGER;
    }
    if (status < 0) return false;
    memmove(buffer, buffer + used, size - used);
    size -= used;
  }
  return false;
}

/* Runs a script with up to three arguments and returns its integer. */
static bool ask(const struct port_transport *transport, const char *script, const char *id,
                int64_t counter, uint64_t token, int64_t *answer)
{
  static uint8_t buffer[1024];
  struct resp_writer writer;
  resp_writer_init(&writer, buffer, sizeof buffer, 0);
  resp_write_header(&writer, RESP_ARRAY, 6);
  resp_write_bulk(&writer, "EVAL", 4);
  resp_write_bulk(&writer, script, strlen(script));
  resp_write_bulk_number(&writer, 0);
  resp_write_bulk(&writer, id, strlen(id));
  resp_write_bulk_number(&writer, counter);
  resp_write_bulk_number(&writer, (int64_t)token);
  if (writer.total > sizeof buffer) return false;
  return send_all(transport, buffer, writer.used) && receive_number(transport, answer);
}

/* Waits until all are there: without others there is no contention. */
static bool gather(const struct port_transport *data, uint32_t parties)
{
  int64_t present;
  if (!ask(data, arrive, "", 0, 0, &present)) return false;
  while (present < parties) {
    if (!ask(data, look, "", 0, 0, &present)) return false;
  }
  return true;
}

static const char *one_round(struct fairlock *handle, const struct port_transport *data,
                             const char *id)
{
  int64_t counter, done;
  if (fairlock_acquire(handle, FAIRLOCK_FOREVER, FAIRLOCK_RENEW) != FAIRLOCK_OK)
    return "acquire failed";
  uint64_t token = fairlock_token(handle);
  if (!ask(data, enter, id, 0, 0, &counter)) return "cannot enter";
  if (!ask(data, leave, id, counter + 1, token, &done)) return "cannot leave";
  if (fairlock_remaining_ms(handle) == 0) return "the hold was lost";
  if (fairlock_release(handle) != FAIRLOCK_OK) return "release failed";
  return NULL;
}

const char *contend(const struct contender *contender)
{
  static uint8_t receive_buffer[FAIRLOCK_RECEIVE_SIZE(16, 0)];
  static uint8_t send_buffer[512];
  static const struct fairlock_config config = {
      .receive_buffer = receive_buffer,
      .receive_size = sizeof receive_buffer,
      .send_buffer = send_buffer,
      .send_size = sizeof send_buffer,
      .offline_ms = FAIRLOCK_FOREVER,
  };
  static struct fairlock_client client;
  static struct fairlock_keeping keeper;
  static struct fairlock handle;
  const struct port_transport *data = contender->data;
  char id[FAIRLOCK_HOLDER_ID_SIZE];
  uint32_t began = port_clock_ms();
  int connected = PORT_WOULD_BLOCK;
  while ((connected == PORT_WOULD_BLOCK || connected == PORT_NEEDS_INPUT) &&
         port_clock_ms() - began < PATIENCE_MS)
    connected = data->connect(data->context, 100);
  if (connected != PORT_OK) return "no connection";
  if (fairlock_client_init(&client, &config, contender->lock) != FAIRLOCK_OK) return "no client";
  keeper.keep_ms = contender->keep_ms;
  if (keeper.keep_ms > 0 && fairlock_use_keeping(&client, &keeper) != FAIRLOCK_OK)
    return "keeps nothing";
  if (fairlock_init(&handle, &client, "contended") != FAIRLOCK_OK) return "no handle";
  if (fairlock_connect(&client) != FAIRLOCK_OK) return "no server";
  fairlock_id(&handle, id, FAIRLOCK_HOLDER_ID_SIZE);
  if (!gather(data, contender->parties)) return "cannot gather";
  for (uint32_t i = 0; i < contender->rounds; i++) {
    const char *trouble = one_round(&handle, data, id);
    if (trouble != NULL) return trouble;
  }
  if (fairlock_deinit(&handle) != FAIRLOCK_OK) return "deinit failed";
  fairlock_client_deinit(&client);
  data->close(data->context);
  return NULL;
}
