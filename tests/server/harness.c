/* SPDX-License-Identifier: Apache-2.0 */
/* Clients and actors for the suites, and what they look for in Redis; see harness.h. */
#include "engine.h"
#include "harness.h"

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "support/counters.h"

/* A test that takes longer has failed. */
#define TEST_LIMIT_S 600

struct server server;
struct raw redis;

/* What is in Redis */

int64_t hold_count_of(struct raw *raw, const char *name, const char *id)
{
  return raw_number(raw, "HGET %s %s", name, id);
}

int64_t queue_length(struct raw *raw, const char *name)
{
  return raw_number(raw, "LLEN redisson_lock_queue:{%s}", name);
}

int64_t listeners(struct raw *raw, const char *name)
{
  return raw_number(raw, "PUBSUB CHANNELS redisson_lock__channel:{%s}:*", name);
}

int64_t scripts_run(struct raw *raw)
{
  static const char *const commands[] = {"cmdstat_eval:calls=", "cmdstat_evalsha:calls="};
  const char *text = raw_text(raw, "INFO commandstats");
  int64_t sum = 0;
  for (int i = 0; i < 2; i++) {
    const char *at = strstr(text, commands[i]);
    if (at != NULL) sum += strtol(at + strlen(commands[i]), NULL, 10);
  }
  return sum;
}

bool queue_reaches(struct raw *raw, const char *name, int64_t length)
{
  int64_t until = now_ms() + SOON;
  while (queue_length(raw, name) != length) {
    if (now_ms() > until) return false;
    sleep_ms(2);
  }
  return true;
}

/* Fields of our hash that are about a waiter: they contain its id, and so a colon. */
static int64_t notes_on_waiters(struct raw *raw, const char *name)
{
  int64_t notes = 0;
  int64_t fields = raw_number(raw, "HKEYS fairlock:{%s}", name);
  for (int64_t i = 1; i <= fields; i++)
    notes += strchr(raw->element[i].text, ':') != NULL;
  return notes;
}

bool no_trace_of_waiters(struct raw *raw, const char *name)
{
  bool clean = CHECK_EQUAL(raw_number(raw, "EXISTS redisson_lock_queue:{%s}", name), 0);
  clean &= CHECK_EQUAL(raw_number(raw, "EXISTS redisson_lock_timeout:{%s}", name), 0);
  clean &= CHECK_EQUAL(notes_on_waiters(raw, name), 0);
  return clean;
}

bool nothing_left(struct raw *raw, const char *name)
{
  bool clean = CHECK_EQUAL(raw_number(raw, "EXISTS %s", name), 0);
  clean &= no_trace_of_waiters(raw, name);
  return clean;
}

bool sane(struct raw *raw, const char *name)
{
  char waiter[64][FAIRLOCK_HOLDER_ID_SIZE];
  int64_t ttl = raw_number(raw, "PTTL %s", name);
  bool good = CHECK(ttl != -1);
  good &= CHECK(raw_number(raw, "PTTL fairlock:{%s}", name) != -1);
  int64_t count = raw_number(raw, "LRANGE redisson_lock_queue:{%s} 0 63", name);
  for (int64_t i = 0; i < count; i++)
    (void)snprintf(waiter[i], sizeof waiter[i], "%s", raw->element[i + 1].text);
  for (int64_t i = 0; i < count; i++) {
    good &= CHECK(raw_number(raw, "ZSCORE redisson_lock_timeout:{%s} %s", name, waiter[i]) > 0);
  }
  return good;
}

/* Clients */

static void count_loss(struct fairlock *handle, const struct fairlock_loss *loss, void *context)
{
  (void)loss;
  struct client *client = context;
  (void)handle;
  (void)atomic_fetch_add(&client->losses, 1);
}

void client_prepare(struct client *client, int port)
{
  memset(client, 0, sizeof *client);
  (void)snprintf(client->service, sizeof client->service, "%d", port);
  port_posix_tcp(&client->socket, "127.0.0.1", client->service);
  client->config.receive_buffer = client->receive;
  client->config.receive_size = sizeof client->receive;
  client->config.send_buffer = client->send;
  client->config.send_size = sizeof client->send;
  client->config.lost = count_loss;
  client->config.lost_context = client;
}

void client_start(struct client *client)
{
  CHECK_EQUAL(fairlock_client_init(&client->client, &client->config, &client->socket.transport),
              FAIRLOCK_OK);
}

void client_open(struct client *client, int port)
{
  client_prepare(client, port);
  client_start(client);
}

void client_close(struct client *client)
{
  fairlock_client_deinit(&client->client);
}

const char *client_error(struct client *client)
{
  fairlock_error(&client->client, client->error, FAIRLOCK_ERROR_SIZE);
  return client->error;
}

int await_result(struct client *client, struct fairlock *handle)
{
  AWAIT(fairlock_result(handle) != FAIRLOCK_PENDING, fairlock_poll(&client->client, 100));
  return fairlock_result(handle);
}

void make_busy(struct raw *busy)
{
  CHECK(raw_run(&redis, "CONFIG SET lua-time-limit 100"));
  CHECK(raw_open(busy, server.port));
  raw_send(busy, "EVAL %s 0", "while true do end");
  AWAIT(!raw_run(&redis, "GET nothing"), sleep_ms(10));
}

void end_busy(struct raw *busy)
{
  CHECK(raw_run(&redis, "SCRIPT KILL"));
  CHECK(raw_reply(busy));
  CHECK(raw_run(&redis, "CONFIG SET lua-time-limit 5000"));
  raw_close(busy);
}

void service_for(struct client *client, int ms)
{
  int64_t until = now_ms() + ms;
  for (int64_t left = ms; left > 0; left = until - now_ms())
    fairlock_poll(&client->client, (uint32_t)left);
}

int64_t believe(struct hold *hold, struct fairlock *handle)
{
  int64_t now =
      now_us(); /* first: who is stopped before it reads the rest claims less than it could */
  uint32_t held = fairlock_remaining_ms(handle);
  int64_t until = held == 0 ? 0 : now + (int64_t)held * 1000;
  if (until > atomic_load(&hold->until_us)) atomic_store(&hold->until_us, until);
  return until;
}

void service_until_queued(struct client *client, const char *name, int64_t length)
{
  AWAIT(queue_length(&redis, name) == length, service_for(client, 5));
}

static uint32_t connects_of(struct client *client)
{
  return counters_of(&client->client).connections;
}

void service_until_broken(struct client *client, uint32_t connects)
{
  AWAIT(!fairlock_engine_ready(&client->client.engine) || connects_of(client) > connects,
        service_for(client, 5));
}

void break_connection(struct client *client)
{
  uint32_t connects = connects_of(client);
  CHECK(raw_run(&redis, "CLIENT KILL TYPE normal SKIPME yes"));
  service_until_broken(client, connects);
}

static void copy_id(char to[FAIRLOCK_HOLDER_ID_SIZE], const struct fairlock_report *report)
{
  size_t size =
      report->id_size < FAIRLOCK_HOLDER_ID_SIZE - 1 ? report->id_size : FAIRLOCK_HOLDER_ID_SIZE - 1;
  memcpy(to, report->id, size);
  to[size] = 0;
}

bool picture_report(const struct fairlock_report *report, void *context)
{
  struct picture *picture = context;
  if (report->place == 0) {
    memset(picture, 0, sizeof *picture);
    picture->held = report->id != NULL;
    if (picture->held) copy_id(picture->holder, report);
    picture->ttl_ms = report->ttl_ms;
    picture->hold_count = report->hold_count;
    picture->token = report->token;
    picture->waiters = report->waiter_count;
    return true;
  }
  if (report->place <= 8) copy_id(picture->waiter[report->place - 1], report);
  picture->seen++;
  picture->ours += report->kind == FAIRLOCK_KIND_FAIRLOCK;
  picture->later += report->life == FAIRLOCK_LIFE_UNKNOWN;
  picture->alive += report->life != FAIRLOCK_LIFE_DEAD;
  picture->listening += report->listens;
  return true;
}

struct picture inspect(struct client *client, const char *name)
{
  struct picture picture;
  memset(&picture, 0, sizeof picture);
  int status = fairlock_inspect(&client->client, name, strlen(name), picture_report, &picture);
  picture.status = status;
  return picture;
}

/* Actors */

struct command {
  char what;
  uint32_t wait_ms, lease_ms;
};

static void tell_event(int pipe, struct client *client, struct fairlock *handle, char what,
                       int status)
{
  struct event event;
  memset(&event, 0, sizeof event);
  event.what = what;
  event.status = status;
  if (handle->engine != NULL) {
    event.token = fairlock_token(handle);
    event.held_ms = fairlock_remaining_ms(handle);
    event.holds = fairlock_hold_count(handle);
    fairlock_id(handle, event.id, FAIRLOCK_HOLDER_ID_SIZE);
  }
  event.losses = atomic_load(&client->losses);
  event.at_us = now_us();
  event.stats = counters_of(&client->client);
  if (write(pipe, &event, sizeof event) != (ssize_t)sizeof event) _exit(1);
}

static int obey(struct fairlock *handle, const struct command *command)
{
  switch (command->what) {
  case 'a':
    return fairlock_acquire(handle, command->wait_ms, command->lease_ms);
  case 'r':
    return fairlock_release(handle);
  case 'd':
    return fairlock_deinit(handle);
  case 'p':
    sleep_ms((int)command->wait_ms);
    return FAIRLOCK_OK;
  default:
    return FAIRLOCK_OK;
  }
}

static void act(struct client *client, const char *name, int commands, int events)
{
  struct fairlock handle;
  struct command command;
  client_start(client);
  if (fairlock_init(&handle, &client->client, name) != FAIRLOCK_OK) _exit(1);
  for (;;) {
    struct pollfd wanted = {.fd = commands, .events = POLLIN};
    if (poll(&wanted, 1, 0) == 0) {
      fairlock_poll(&client->client, 10);
      continue;
    }
    if (read(commands, &command, sizeof command) != (ssize_t)sizeof command || command.what == 'q')
      _exit(0);
    if (command.what == 'c') {
      command.what = 'a';
      int status = obey(&handle, &command);
      if (status == FAIRLOCK_OK) sleep_ms(5);
      tell_event(events, client, &handle, 'c', status);
      if (status == FAIRLOCK_OK) (void)fairlock_release(&handle);
    } else {
      int status = obey(&handle, &command);
      tell_event(events, client, &handle, command.what, status);
    }
  }
}

struct start {
  int port;
  const char *name;
  const struct fairlock_config *config;
  int commands[2], events[2];
};

static void run_actor(int index, void *context)
{
  static struct client client;
  const struct start *start = context;
  (void)index;
  (void)close(start->commands[1]);
  (void)close(start->events[0]);
  client_prepare(&client, start->port);
  if (start->config != NULL) {
    struct fairlock_config own = client.config;
    client.config = *start->config;
    client.config.receive_buffer = own.receive_buffer;
    client.config.receive_size = own.receive_size;
    client.config.send_buffer = own.send_buffer;
    client.config.send_size = own.send_size;
    client.config.lost = own.lost;
    client.config.lost_context = own.lost_context;
  }
  act(&client, start->name, start->commands[0], start->events[1]);
}

void actor_start_with(struct actor *actor, int port, const char *name,
                      const struct fairlock_config *config)
{
  struct start start = {.port = port, .name = name, .config = config};
  open_pipe(start.commands);
  open_pipe(start.events);
  actor->pid = spawn(run_actor, 0, &start);
  (void)close(start.commands[0]);
  (void)close(start.events[1]);
  actor->commands = start.commands[1];
  actor->events = start.events[0];
}

void actor_start(struct actor *actor, int port, const char *name)
{
  actor_start_with(actor, port, name, NULL);
}

void actor_tell(const struct actor *actor, char what, uint32_t wait_ms, uint32_t lease_ms)
{
  struct command command;
  memset(&command, 0, sizeof command);
  command.what = what;
  command.wait_ms = wait_ms;
  command.lease_ms = lease_ms;
  CHECK(write(actor->commands, &command, sizeof command) == (ssize_t)sizeof command);
}

struct event actor_hear(const struct actor *actor, int timeout_ms)
{
  struct event event;
  struct pollfd wanted = {.fd = actor->events, .events = POLLIN};
  memset(&event, 0, sizeof event);
  event.status = FAIRLOCK_PENDING;
  if (poll(&wanted, 1, timeout_ms) > 0 &&
      read(actor->events, &event, sizeof event) != (ssize_t)sizeof event) {
    memset(&event, 0, sizeof event);
    event.status = FAIRLOCK_PENDING;
  }
  return event;
}

struct event actor_do(const struct actor *actor, char what, uint32_t wait_ms, uint32_t lease_ms)
{
  actor_tell(actor, what, wait_ms, lease_ms);
  return actor_hear(actor, SOON);
}

void actor_end(struct actor *actor)
{
  struct command command;
  memset(&command, 0, sizeof command);
  command.what = 'q';
  (void)!write(actor->commands, &command, sizeof command);
  (void)close(actor->commands);
  if (actor->pid > 0 && reap(actor->pid) < 0) slay(actor->pid);
  (void)close(actor->events);
  actor->pid = 0;
}

/* Tests */

void begin(void)
{
  if (server.pid == 0) {
    server_start(&server, NULL);
    if (!raw_open(&redis, server.port)) give_up("no connection to redis-server");
  }
  (void)alarm(TEST_LIMIT_S);
  slay_all_but(server.pid); /* those of a test that failed */
  CHECK(raw_run(&redis, "FLUSHALL"));
  CHECK(raw_run(&redis, "SCRIPT FLUSH"));
}
