/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The client for a program with one task, on port/single, in a time of the test's own: while there
 * is no connection it idles, and does not spin; and no call blocks for longer than
 * lock/fairlock.h says, whatever is wrong with the server.
 */
#include <stdio.h>

#include "../../port/single/port_types.h" /* in place of the one that the library's own build has */

#include "../../lock/client.c"

#include "check.h"

enum { READINGS_PER_MS = 1000 };

static uint8_t receive_buffer[256];
static uint8_t send_buffer[1024];
static const struct fairlock_config idle_config = {.receive_buffer = receive_buffer,
                                                   .receive_size = sizeof receive_buffer,
                                                   .send_buffer = send_buffer,
                                                   .send_size = sizeof send_buffer,
                                                   .client_id = "id"};
static struct fairlock_client idle_client;
static struct fairlock door;
static uint32_t now_ms, idled_ms;
static unsigned readings, connects, idles;

/* Time passes for one who spins, too. */
uint32_t port_clock_ms(void)
{
  if (++readings % READINGS_PER_MS == 0) now_ms++;
  return now_ms;
}

void port_idle(uint32_t ms)
{
  CHECK(ms > 0 && ms <= PORT_WAIT_MAX_MS);
  idles++;
  idled_ms += ms;
  now_ms += ms;
}

static int refuse(void *context, uint32_t timeout_ms)
{
  (void)context;
  (void)timeout_ms;
  connects++;
  return PORT_UNREACHABLE;
}

static int no_send(void *context, const void *data, size_t size)
{
  (void)context;
  (void)data;
  (void)size;
  return PORT_CLOSED;
}

static int no_receive(void *context, void *data, size_t size, uint32_t timeout_ms)
{
  (void)context;
  (void)data;
  (void)size;
  (void)timeout_ms;
  return PORT_CLOSED;
}

static void no_close(void *context)
{
  (void)context;
}

static struct port_transport nobody = {refuse, no_send, no_receive, no_close, NULL, NULL, NULL};

static void set_up(void)
{
  now_ms = idled_ms = 0;
  readings = connects = idles = 0;
  CHECK_EQUAL(fairlock_client_init(&idle_client, &idle_config, &nobody), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_init(&door, &idle_client, "door"), FAIRLOCK_OK);
}

static void test_acquire_idles(void)
{
  set_up();
  CHECK_EQUAL(fairlock_acquire(&door, 10000, FAIRLOCK_RENEW), FAIRLOCK_UNREACHABLE);
  CHECK(now_ms >= 10000 && idled_ms > 9900);
  CHECK(connects > 3);
  CHECK(idles < 100);
  CHECK(readings < 2000);
  fairlock_client_deinit(&idle_client);
}

/* For as long as it may, and not at all if it may not. */
static void test_poll_idles(void)
{
  set_up();
  (void)fairlock_poll(&idle_client, 1000);
  CHECK_EQUAL(idles, 1);
  CHECK_EQUAL(idled_ms, 1000);
  (void)fairlock_poll(&idle_client, 7);
  CHECK_EQUAL(idles, 2);
  CHECK_EQUAL(idled_ms, 1007);
  (void)fairlock_poll(&idle_client, 0);
  CHECK_EQUAL(idles, 2);
  fairlock_client_deinit(&idle_client);
}

/* ---- how long the calls block ---- */

#define GREETING "%1\r\n$2\r\nid\r\n:10\r\n*2\r\n$1\r\n1\r\n$1\r\n0\r\n"
#define DONE     "*3\r\n:1\r\n:5\r\n:1000\r\n"

enum { WAITER = 5000, RESPONSE = 2000, CONNECT = 5000, OFFLINE = 10000 };

/* What is wrong with the server. */
enum fault {
  NONE,

  /* nobody listens there */
  REFUSES,

  /* its name is not resolved, or its network swallows what is sent there */
  NEVER_OPENS,

  /* paused: the system accepts for it */
  MUTE,

  /* the same, and the system takes its time */
  OPENS_LATE,

  /* answers the greeting, and nothing else: CLIENT PAUSE WRITE */
  ONLY_GREETS,

  /* the same, and that as late as it may */
  GREETS_LATE,
  FAULTS
};

static enum fault fault;
static uint32_t opened_at; /* 0: not asked for */
static uint32_t answers_at;
static const char *answer;

static void pass_time(uint32_t ms)
{
  now_ms += ms;
}

static int try_to_open(void *context, uint32_t timeout_ms)
{
  bool late = fault == OPENS_LATE || fault == GREETS_LATE;
  (void)context;
  if (fault == REFUSES) return PORT_UNREACHABLE;
  if (opened_at == 0) opened_at = now_ms;
  answer = NULL;
  if (fault != NEVER_OPENS && !late) return PORT_OK;
  pass_time(timeout_ms);
  return late && now_ms - opened_at >= CONNECT - 200 ? PORT_OK : PORT_WOULD_BLOCK;
}

static int hear(void *context, const void *data, size_t size)
{
  (void)context;
  bool greeting = size > 10 && memcmp(data, "*2\r\n$5\r\nHELLO", 13) == 0;
  if (greeting && fault != MUTE && fault != OPENS_LATE) {
    answer = GREETING;
    answers_at = now_ms + (fault == GREETS_LATE ? RESPONSE + CONNECT - 200 : 0);
  } else if (fault == NONE) {
    answer = DONE;
    answers_at = now_ms;
  }
  return (int)size;
}

static int answer_in_time(void *context, void *data, size_t size, uint32_t timeout_ms)
{
  (void)context;
  if (answer == NULL || now_ms + timeout_ms < answers_at) {
    pass_time(timeout_ms);
    return PORT_WOULD_BLOCK;
  }
  if (now_ms < answers_at) now_ms = answers_at;
  size_t length = strlen(answer);
  CHECK(length <= size);
  memcpy(data, answer, length);
  answer = NULL;
  return (int)length;
}

static void end_connection(void *context)
{
  (void)context;
  opened_at = 0;
  answer = NULL;
}

static struct port_transport server = {try_to_open, hear, answer_in_time, end_connection, NULL,
                                       NULL,        NULL};

static bool ignore(const struct fairlock_report *report, void *context)
{
  (void)report;
  (void)context;
  return true;
}

static int call_connect(void)
{
  return fairlock_connect(&idle_client);
}

static int call_acquire(void)
{
  return fairlock_acquire(&door, FAIRLOCK_FOREVER, 60000);
}

static int call_acquire_a_while(void)
{
  return fairlock_acquire(&door, 3000, 60000);
}

static int call_try_acquire(void)
{
  return fairlock_try_acquire(&door, 60000);
}

static int call_release(void)
{
  return fairlock_release(&door);
}

static int call_deinit(void)
{
  return fairlock_deinit(&door);
}

static int call_force_release(void)
{
  return fairlock_force_release(&idle_client, "door", 4, FAIRLOCK_ANY_TOKEN);
}

static int call_ask_release(void)
{
  return fairlock_ask_release(&idle_client, "door", 4, FAIRLOCK_ANY_TOKEN);
}

static int call_inspect(void)
{
  return fairlock_inspect(&idle_client, "door", 4, ignore, NULL);
}

/* As lock/fairlock.h says. */
static const struct call {
  const char *name;
  int (*call)(void);
  uint32_t most_ms;
  bool holds; /* before */
} calls[] = {
    {"connect", call_connect, 2 * CONNECT + RESPONSE, false},
    {"acquire", call_acquire, OFFLINE + RESPONSE, false},
    {"acquire, for a while", call_acquire_a_while, 3000 + RESPONSE, false},
    {"try_acquire", call_try_acquire, CONNECT + 2 * RESPONSE, false},
    {"release", call_release, OFFLINE, true},
    {"deinit", call_deinit, OFFLINE, false},
    {"force_release", call_force_release, OFFLINE, false},
    {"ask_release", call_ask_release, OFFLINE, false},
    {"inspect", call_inspect, OFFLINE, false},
};

/* Brings about the fault, and makes the call. Returns how long it blocked. */
static uint32_t time_of(const struct call *call, enum fault what, bool connected)
{
  fault = NONE;
  now_ms = 1000;
  opened_at = 0;
  CHECK_EQUAL(fairlock_client_init(&idle_client, &idle_config, &server), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_init(&door, &idle_client, "door"), FAIRLOCK_OK);
  if (connected) CHECK_EQUAL(fairlock_connect(&idle_client), FAIRLOCK_OK);
  if (call->holds) CHECK_EQUAL(fairlock_try_acquire(&door, 60000), FAIRLOCK_OK);
  fault = what;
  /* the connection that is up breaks, or is mute */
  if (connected && what == REFUSES)
    (void)fairlock_engine_fail(&idle_client.engine, FAIRLOCK_UNREACHABLE);
  if (call->call == call_deinit) (void)fairlock_acquire(&door, 1000, 60000); /* which it owes */
  uint32_t began = now_ms;
  int status = call->call();
  CHECK(status < 0 || call->call == call_connect || call->call == call_deinit);
  uint32_t took = now_ms - began;
  fairlock_client_deinit(&idle_client);
  return took;
}

static void test_bounds(void)
{
  for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
    for (int what = REFUSES; what < FAULTS; what++) {
      for (int connected = 0; connected <= 1; connected++) {
        uint32_t took = time_of(&calls[i], (enum fault)what, connected);
        /* 100: pauses, and time passes while the client works */
        if (CHECK(took <= calls[i].most_ms + 100)) continue;
        check_write(calls[i].name);
        CHECK_EQUAL(what * 10 + connected, -1);
        CHECK_EQUAL(took, calls[i].most_ms);
      }
    }
  }
}

/* ---- how often it wakes ---- */

enum { WAIT = 30000, HEARTBEAT = WAITER * 2 / 5 };

static unsigned requests, wakes;
static char queued[sizeof send_buffer + 100];

/* Somebody else holds the lock. */
static int hear_waiter(void *context, const void *data, size_t size)
{
  char text[sizeof send_buffer + 1];
  (void)context;
  memcpy(text, data, size);
  text[size] = 0;
  char *channel = strstr(text, "redisson_lock__channel");
  queued[0] = 0;
  if (strstr(text, "\r\nSUBSCRIBE\r\n") != NULL && CHECK(channel != NULL)) {
    channel[strcspn(channel, "\r")] = 0;
    (void)snprintf(queued, sizeof queued, ">3\r\n$9\r\nsubscribe\r\n$%zu\r\n%s\r\n:1\r\n",
                   strlen(channel), channel);
  }
  (void)strncat(queued, "*3\r\n:0\r\n:-1\r\n:1000\r\n", sizeof queued - strlen(queued) - 1);
  answer = strstr(text, "HELLO") != NULL ? GREETING : queued;
  answers_at = now_ms + 10;
  requests++;
  return (int)size;
}

static int wake(void *context, void *data, size_t size, uint32_t timeout_ms)
{
  CHECK(timeout_ms <= PORT_WAIT_MAX_MS);
  wakes++;
  return answer_in_time(context, data, size, timeout_ms);
}

/* For each heartbeat and each answer once, and otherwise each PORT_WAIT_MAX_MS. */
static void test_wakes(void)
{
  static struct port_transport line = {try_to_open, hear_waiter, wake, end_connection,
                                       NULL,        NULL,        NULL};
  fault = NONE;
  now_ms = 1000;
  CHECK_EQUAL(fairlock_client_init(&idle_client, &idle_config, &line), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_init(&door, &idle_client, "door"), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_connect(&idle_client), FAIRLOCK_OK);
  requests = wakes = 0;
  CHECK_EQUAL(fairlock_acquire(&door, WAIT, FAIRLOCK_RENEW), FAIRLOCK_TIMEOUT);
  CHECK(requests >= WAIT / HEARTBEAT && requests <= WAIT / HEARTBEAT + 2);
  unsigned between = (HEARTBEAT - 1) / PORT_WAIT_MAX_MS; /* two heartbeats */
  CHECK(wakes >= requests * 2 - 1);
  CHECK(wakes <= requests * (2 + between));
  fairlock_client_deinit(&idle_client);
}

const struct check_test check_tests[] = {
    {"single: no call blocks for longer than it may", test_bounds},
    {"single: an acquire without a server idles", test_acquire_idles},
    {"single: a poll without a connection idles", test_poll_idles},
    {"single: a waiter wakes for heartbeats and answers", test_wakes},
    {0}};
