/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Does with the library's engine what the clients of the model do, so that test_engine.py can compare
 * the two. The model's time, server and network are kept: a line of stdin is a step of the model,
 * and for each there is a line of stdout.
 *
 *   HANDLE ... STEP [WORD...]   the words between are the model's state, which is not read here
 *   TICK                        a second passes for everybody
 *   RUN RENEWS LEASE SHORT ACQUIRES0 ACQUIRES   begins anew; what they mean: world.pml
 *
 * The answer has three parts, with | between. How the handle was before the step: since the start,
 * in ms; its phase; the flags QUEUED, OWED, UNCONFIRMED, and whether it listens; kinds in doubt;
 * requests unanswered; holds; token; in how many ms its phase ends, all that it has sent is over, it
 * sends, doubt is over, and it wants to be called; how often it has acquired, and renewed; R if it renews; whether the engine wants to send (S) or to connect (C).
 * Then what the program was told since the last line of this handle. Then what came of the step, of SEND
 * the commands, their words separated by commas.
 *
 * Each client lives in a time of its own, a few ms ahead of the model's: when the model takes
 * requests in doubt for expired, the engine adds a margin of 2 ms, and these have to pass.
 */
#include "internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CLIENTS   3
#define START     0xffff8000U /* the clock wraps around after 33 s */
#define EPOCH     1700000000000
#define TICK_MS   1000U
#define MARGIN_MS 3U

static const char *const phases[] = {
    "FREE",    "QUEUEING", "TRYING", "HELD",    "REENTERING", "RELEASE_ONE",   "RELEASING",
    "LEAVING", "REMOVING", "LOST",   "FORCING", "INSPECTING", "AUTHENTICATING"};

static const char *const errors[] = {
    "-OOM command not allowed when used memory > 'maxmemory'.\r\n",
    "-MISCONF Redis is configured to save RDB snapshots\r\n",
    "-BUSY Redis is busy running a script\r\n",
    "-ERR Error running script (call to f_12): @user_script:3: @user_script: 3: -OOM no memory\r\n",
    "-NOREPLICAS Not enough good replicas to write.\r\n",
};

/* A script was stopped half-way. Of who does not wait, the model says only what passes. */
static const char *const stops[] = {
    "-ERR The user executing the script can't run this command script: 12, on @user_script:3.\r\n",
    "-ERR ACL failure in script: No permissions to access a key script: 12, on @user_script:3.\r\n",
    "-ERR user_script:3: attempt to index a nil value script: 12, on @user_script:3.\r\n",
};
#define STOPPED 95

static struct client {
  struct fairlock_config config;
  struct fairlock_engine engine;
  struct fairlock handle;
  uint8_t send[512], receive[300];
  char channel[200];   /* to which it subscribes */
  char told[200];      /* what the program was told, since the last line */
  uint32_t now;        /* its time */
  uint32_t slept;      /* how much has passed while it was frozen */
  unsigned unread;     /* requests whose answers it has not read */
  unsigned before;     /* how many of them were sent before the SUBSCRIBE */
  bool frozen, behind; /* behind: it has slept, and has to read what has come meanwhile */
  bool subscribing;    /* its SUBSCRIBE was not answered */
  uint32_t lease;      /* for which it acquires */
  uint32_t last_lease; /* for which it does so for the last time */
  unsigned acquires;   /* how often it still does */
} clients[CLIENTS];

static unsigned refusals;

/* The time of the server: each client's clock is right. */
static int64_t server_time(const struct client *client)
{
  return EPOCH + (int64_t)(uint32_t)(client->now - START);
}

static void tell(struct client *client, const char *what)
{
  size_t size = strlen(client->told);
  snprintf(client->told + size, sizeof client->told - size, " %s", what);
}

static void on_lost(struct fairlock *handle, const struct fairlock_loss *loss, void *context)
{
  (void)loss;
  (void)handle;
  tell(context, "lost");
}

static void on_ended(struct fairlock *handle, const struct fairlock_end *end, void *context)
{
  char text[20];
  snprintf(text, sizeof text, "%d", end->status);
  tell(context, text);
  if (end->status != handle->result) tell(context, "another result");
}

static void set_up(struct client *client, unsigned number, uint32_t lease_ms)
{
  struct fairlock_config *config = &client->config;
  static const char *const ids[CLIENTS] = {"first", "second", "third"};
  memset(client, 0, sizeof *client);
  config->lease_ms = lease_ms;
  config->client_id = ids[number];
  config->send_buffer = client->send;
  config->send_size = number == 1 ? FAIRLOCK_SEND_MIN : sizeof client->send;
  config->receive_buffer = client->receive;
  config->receive_size = sizeof client->receive;
  config->waiter_ms = 5000;
  config->response_ms = 2500;
  /* nobody gives up because the server is silent */
  config->connect_ms = FAIRLOCK_DURATION_MAX_MS / 4;
  config->offline_ms = FAIRLOCK_FOREVER;
  config->lost = on_lost;
  config->ended = on_ended;
  config->lost_context = client;
  config->ended_context = client;
  client->now = START;
  client->engine.now = START;
  if (fairlock_engine_init(&client->engine, config) != FAIRLOCK_OK ||
      fairlock_engine_add(&client->engine, &client->handle, "door", 4) != FAIRLOCK_OK)
    exit(2);
  client->engine.now = START;
  fairlock_engine_tick(&client->engine, START);
}

/* The model measures no round trip, and pauses before it connects as it likes. */
static void settle(struct client *client)
{
  client->engine.round_trip_ms = 0;
  client->engine.backoff_ms = 0;
  fairlock_engine_set_timeouts(&client->engine);
  fairlock_engine_tick(&client->engine, client->now);
}

/* Feeds what the server says: to one client in pieces. */
static void feed(struct client *client, const char *text)
{
  size_t left = strlen(text);
  size_t most = client == &clients[1] ? 7 : left;
  while (left > 0) {
    size_t room;
    uint8_t *to = fairlock_engine_input(&client->engine, &room);
    size_t step = left < room ? left : room;
    if (step > most) step = most;
    if (room == 0) return; /* it is broken, and test_engine.py sees that */
    memcpy(to, text, step);
    fairlock_engine_received(&client->engine, step, client->now);
    fairlock_engine_tick(&client->engine, client->now);
    text += step;
    left -= step;
  }
}

/* All that is written now. */
static char *output(struct client *client)
{
  static char text[4096];
  size_t used = 0;
  size_t size;
  const uint8_t *data;
  while (data = fairlock_engine_output(&client->engine, &size, client->now), size > 0) {
    if (client == &clients[1] && size > 1) size /= 2; /* no more fits into the socket */
    if (used + size >= sizeof text) exit(3);
    memcpy(text + used, data, size);
    used += size;
    fairlock_engine_sent(&client->engine, size);
  }
  text[used] = 0;
  return text;
}

/* text: NULL for the number of subscriptions. */
static void push(struct client *client, const char *kind, const char *text)
{
  uint8_t bytes[400];
  struct resp_writer writer;
  resp_writer_init(&writer, bytes, sizeof bytes - 1, 0);
  resp_write_header(&writer, RESP_PUSH, 3);
  resp_write_bulk(&writer, kind, strlen(kind));
  resp_write_bulk(&writer, client->channel, strlen(client->channel));
  if (text != NULL) resp_write_bulk(&writer, text, strlen(text));
  else resp_write_header(&writer, RESP_INTEGER, 1);
  bytes[writer.used] = 0;
  feed(client, (char *)bytes);
}

/* Time passes, and the engine is called when it has asked for that. */
static void pass(struct client *client, uint32_t until)
{
  struct fairlock_engine *engine = &client->engine;
  unsigned turns = 0;
  while (true) {
    uint32_t wait = fairlock_engine_deadline(engine, client->now);
    /* a device that has slept reads what has come meanwhile before it misses any answer */
    if (wait > until - client->now || client->behind) wait = until - client->now;
    client->now += wait;
    if (engine->stage > OPENING && !client->behind)
      fairlock_engine_received(engine, 0, client->now);
    fairlock_engine_tick(engine, client->now);
    if (client->now == until) return;
    if (++turns == 100) {
      tell(client, "spins");
      client->now = until;
    }
  }
}

static void pass_tick(void)
{
  for (unsigned i = 0; i < CLIENTS; i++) {
    struct client *client = &clients[i];
    if (client->frozen) client->slept += TICK_MS;
    else pass(client, client->now + TICK_MS);
    settle(client);
  }
}

/* Steps: each returns what came of it */

static const char *acquire(struct client *client, uint32_t wait_ms)
{
  struct fairlock *handle = &client->handle;
  /* the model's program does not wait for the end of a release: it has waited for offline_ms */
  if (handle->result == FAIRLOCK_PENDING && ending(handle))
    fairlock_handle_on_failed(handle, FAIRLOCK_UNREACHABLE);
  if (!holding(handle)) client->acquires--;
  uint32_t lease_ms = client->acquires > 0 ? client->lease : client->last_lease;
  int status = fairlock_engine_acquire(handle, wait_ms, lease_ms, client->now);
  return status == FAIRLOCK_PENDING ? "ok" : "acquire";
}

static const char *cancel(struct client *client)
{
  int status = fairlock_engine_cancel(&client->handle, client->now);
  return status == FAIRLOCK_OK ? "ok" : "cancel";
}

static const char *release(struct client *client)
{
  struct fairlock *handle = &client->handle;
  int expected = handle->phase == LOST ? FAIRLOCK_LOST : FAIRLOCK_PENDING;
  unsigned times = handle->phase == LOST ? handle->holds : 1;
  for (unsigned i = 0; i < times; i++) {
    if (fairlock_engine_release(handle, client->now) != expected) return "release";
  }
  return "ok";
}

static const char *begin_connection(struct client *client)
{
  struct fairlock_engine *engine = &client->engine;
  char text[120], microseconds[20];
  int64_t time = server_time(client);
  fairlock_engine_opening(engine, client->now);
  fairlock_engine_opened(engine, client->now);
  if (strstr(output(client), "HELLO") == NULL) return "no greeting";
  feed(client, "%2\r\n$5\r\nproto\r\n:3\r\n$2\r\nid\r\n:74\r\n");
  snprintf(microseconds, sizeof microseconds, "%d", (int)(time % 1000 * 1000));
  snprintf(text, sizeof text, "*2\r\n$10\r\n%lld\r\n$%zu\r\n%s\r\n", (long long)(time / 1000),
           strlen(microseconds), microseconds);
  feed(client, text);
  settle(client);
  pass(client, client->now + MARGIN_MS);
  client->unread = 0;
  client->subscribing = false;
  client->behind = false;
  return fairlock_engine_ready(engine) ? "ok" : "not ready";
}

static const char *break_connection(struct client *client)
{
  struct fairlock *handle = &client->handle;
  if (client->unread > 0) feed(client, "*3\r\n:1\r\n:1"); /* half of an answer */
  fairlock_engine_closed(&client->engine, FAIRLOCK_UNREACHABLE, client->now);
  /* the first client's program does not wait for a release any longer: it goes on in the background */
  if (handle->phase == RELEASING && client == &clients[0])
    fairlock_handle_on_failed(handle, FAIRLOCK_UNREACHABLE);
  client->behind = false;
  return "ok";
}

/* The commands that are written, each word but its length. */
static const char *send_request(struct client *client)
{
  static char words[1024];
  char *line = output(client);
  size_t used = 0;
  for (char *end = strstr(line, "\r\n"); end != NULL; end = strstr(line, "\r\n")) {
    *end = 0;
    if (*line == '*') used += (size_t)snprintf(words + used, sizeof words - used, " /");
    else if (*line != '$') used += (size_t)snprintf(words + used, sizeof words - used, ",%s", line);
    const char *channel = strstr(line, "redisson_lock__channel");
    if (channel != NULL) {
      snprintf(client->channel, sizeof client->channel, "%s", channel);
      client->subscribing = true;
      client->before = client->unread;
    }
    line = end + 2;
  }
  if (used == 0) return "nothing";
  client->unread++;
  return words;
}

/* An answer to a request that was sent `age` ticks ago, as if the server had read it at once. */
static void answer(struct client *client, const char *what, int value, unsigned age)
{
  char text[100];
  long long number = value;
  int state = strcmp(what, "YES") == 0 ? 1 : strcmp(what, "NO") == 0 ? 0 : -1;
  if (strcmp(what, "VOID") == 0) state = -2;
  if (state == 0) number = value == 99 ? -1 : value * (int)TICK_MS;
  if (state < 0) number = 0;
  snprintf(text, sizeof text, "*3\r\n:%d\r\n:%lld\r\n:%lld\r\n", state, number,
           (long long)(server_time(client) - age * TICK_MS));
  feed(client, text);
}

/* A handover that was made `age` ticks ago. */
static void grant(struct client *client, int token, unsigned age)
{
  char text[80];
  const char *more = client == &clients[0] ? " words of a later release" : "";
  snprintf(text, sizeof text, "%d %lld %u%s", token,
           (long long)(server_time(client) - age * TICK_MS), client->config.waiter_ms, more);
  push(client, "message", text);
}

static const char *receive(struct client *client, const char *what, int value, unsigned age)
{
  const char *result = "ok";
  if (client->subscribing && client->before == 0) {
    client->subscribing = false;
    push(client, "subscribe", NULL);
  }
  if (strcmp(what, "GRANT") == 0) {
    grant(client, value, age);
    return "ok";
  }
  client->unread--;
  if (client->subscribing) client->before--;
  if (strcmp(what, "FAILED") == 0 && value == STOPPED && waiting(&client->handle)) {
    const char *error = stops[refusals++ % (sizeof stops / sizeof stops[0])];
    result = strncmp(error, "-ERR user", 9) == 0 ? "REFUSED" : "DENIED";
    feed(client, error);
  } else if (strcmp(what, "FAILED") == 0) {
    const char *error = errors[refusals++ % (sizeof errors / sizeof errors[0])];
    bool refused = strncmp(error, "-OOM", 4) == 0 || strncmp(error, "-ERR", 4) == 0;
    result = refused ? "OOM" : strncmp(error, "-BUSY", 5) == 0 ? "UNAVAILABLE" : "MISCONF";
    feed(client, error);
  } else {
    answer(client, what, value, age);
  }
  if (client->unread == 0) client->behind = false;
  return result;
}

static const char *thaw(struct client *client)
{
  client->frozen = false;
  client->behind = client->unread > 0;
  client->now += client->slept;
  client->slept = 0;
  return "ok";
}

static const char *step(struct client *client, const char *word, const char *what, int value,
                        unsigned age)
{
  if (strcmp(word, "WAIT") == 0) return acquire(client, FAIRLOCK_FOREVER);
  if (strcmp(word, "TRY") == 0) return acquire(client, 0);
  if (strcmp(word, "AGAIN") == 0) return acquire(client, FAIRLOCK_FOREVER);
  if (strcmp(word, "CANCEL") == 0) return cancel(client);
  if (strcmp(word, "RELEASE") == 0) return release(client);
  if (strcmp(word, "CONNECT") == 0) return begin_connection(client);
  if (strcmp(word, "BREAK") == 0) return break_connection(client);
  if (strcmp(word, "SEND") == 0) return send_request(client);
  if (strcmp(word, "GOT") == 0) return receive(client, what, value, age);
  if (strcmp(word, "THAW") == 0) return thaw(client);
  if (strcmp(word, "FREEZE") == 0) client->frozen = true;
  return "ok"; /* LOOK and OVER: nothing is done, but what is due */
}

static int in_ms(const struct client *client, uint32_t time)
{
  return (int)(int32_t)(time - client->now);
}

static char wanted(const struct client *client)
{
  unsigned wants = fairlock_engine_wants(&client->engine, client->now);
  if (wants & FAIRLOCK_CLOSE) return 'X';
  if (wants & FAIRLOCK_SEND) return 'S';
  return wants & FAIRLOCK_CONNECT ? 'C' : '-';
}

static void print_state(const struct client *client)
{
  const struct fairlock *handle = &client->handle;
  const struct fairlock_engine *engine = &client->engine;
  printf("%u %s %d %d %d %d %d %d %d %d %d %d %d %d %u %u %u %c %c|", client->now - START,
         phases[handle->phase], (handle->flags & QUEUED) != 0, (handle->flags & OWED) != 0,
         (handle->flags & UNCONFIRMED) != 0, (handle->flags & (SUBSCRIBED | SUBSCRIBING)) != 0,
         handle->in_doubt, handle->unanswered, handle->holds, (int)handle->token,
         in_ms(client, handle->ends_at), in_ms(client, handle->left_until),
         in_ms(client, handle->sends_at), in_ms(client, engine->stage_began + engine->in_doubt_ms),
         fairlock_engine_deadline(engine, client->now), engine->counters.acquisitions,
         engine->counters.renewals, handle->flags & RENEWS ? 'R' : '-', wanted(client));
}

/* "HANDLE ... STEP [WORD...]" */
static void on_line(char *line)
{
  char word[20], what[20] = "";
  int value = 0;
  unsigned age = 0;
  const char *at = strchr(line, ':');
  struct client *client = &clients[*line - '0'];
  if (at == NULL || client < clients || client >= clients + CLIENTS) exit(4);
  sscanf(at + 1, "%19s %19s %d %u", word, what, &value, &age);
  print_state(client);
  const char *result = step(client, word, what, value, age);
  settle(client);
  printf("%s|%s\n", client->told, result);
  client->told[0] = 0;
}

static void on_run(const char *line)
{
  unsigned renews, lease, shorter_lease, acquires[2];
  if (sscanf(line, "RUN %u %u %u %u %u", &renews, &lease, &shorter_lease, &acquires[0],
             &acquires[1]) != 5)
    exit(4);
  for (unsigned i = 0; i < CLIENTS; i++) {
    set_up(&clients[i], i, lease * TICK_MS);
    clients[i].lease = renews ? FAIRLOCK_RENEW : lease * TICK_MS;
    clients[i].last_lease = shorter_lease > 0 ? shorter_lease * TICK_MS : clients[i].lease;
    clients[i].acquires = acquires[i > 0];
  }
  refusals = 0;
}

int main(void)
{
  char line[200];
  while (fgets(line, sizeof line, stdin) != NULL) {
    if (strncmp(line, "RUN", 3) == 0) on_run(line);
    else if (strncmp(line, "TICK", 4) == 0) pass_tick();
    else on_line(line);
    if (line[0] < '0' || line[0] > '9') puts("");
  }
  return 0;
}
