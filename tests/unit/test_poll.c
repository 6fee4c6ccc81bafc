/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fairlock_poll() for a device that sleeps between the calls, in a time of the test's own. The
 * device has a serial line: what it sends goes into a ring of 256 bytes, out of which an interrupt
 * takes 11 bytes in a millisecond. At the other end is a server that grants what it is asked for.
 */
#include "check.h"
#include "fairlock.h"

#include <string.h>

enum { RING = 256, BYTES_PER_MS = 11, OPENING_MS = 300, LIMIT_MS = 20000 };

static uint8_t receive_buffer[FAIRLOCK_RECEIVE_SIZE(4, 2)];
static uint8_t send_buffer[512];
static const struct fairlock_config config = {.receive_buffer = receive_buffer,
                                              .receive_size = sizeof receive_buffer,
                                              .send_buffer = send_buffer,
                                              .send_size = sizeof send_buffer,
                                              .client_id = "id"};
static struct fairlock_client client;
static struct fairlock door;

static uint32_t now;

uint32_t port_clock_ms(void)
{
  return now;
}

/* The line */

static bool reachable, connected;
static uint32_t opened_at; /* connecting: the connection is up then; 0: it was not begun */
static unsigned connects;
static size_t in_ring;
static char heard[4096]; /* what the server has of the request that is under way */
static size_t heard_size;
static bool held;         /* by somebody else, so that the device waits */
static unsigned requests; /* for the lock */
static char said[512];    /* what the server said, and the device has not received yet */
static size_t said_size;

static void say(const char *text)
{
  size_t size = strlen(text);
  if (!CHECK(said_size + size <= sizeof said)) return;
  memcpy(said + said_size, text, size);
  said_size += size;
}

/*
 * How long the request is that `heard` begins with; 0: it is not complete. Each line but the
 * strings is "*n" or "$n".
 */
static size_t request_size(void)
{
  size_t at = 0;
  for (long left = 1; left > 0; left--) {
    char type = at < heard_size ? heard[at++] : 0;
    long number = 0;
    while (at < heard_size && heard[at] >= '0' && heard[at] <= '9')
      number = number * 10 + (heard[at++] - '0');
    at += 2;
    if (type == '*') left += number;
    else if (type == '$') at += (size_t)number + 2;
    if (type == 0 || at > heard_size) return 0;
  }
  return at;
}

static void answer_requests(void)
{
  size_t size;
  while ((size = request_size()) > 0) {
    heard[size - 1] = 0;
    const char *subscribe = strstr(heard, "SUBSCRIBE\r\n");
    if (subscribe != NULL) {
      say(">3\r\n$9\r\nsubscribe\r\n");
      say(subscribe + sizeof "SUBSCRIBE\r\n" - 1); /* the channel, up to its last byte */
      say("\n:1\r\n");
    } else if (strstr(heard, "HELLO") != NULL) say("%0\r\n");
    else if (strstr(heard, "TIME") != NULL) say("*2\r\n$10\r\n1700000000\r\n$1\r\n0\r\n");
    else {
      say(held ? "*3\r\n:0\r\n:-1\r\n:1700000001000\r\n" : "*3\r\n:1\r\n:5\r\n:1700000001000\r\n");
      requests++;
    }
    heard_size -= size;
    memmove(heard, heard + size, heard_size);
  }
}

/* What connecting says meanwhile. */
static int pending = PORT_WOULD_BLOCK;

static int line_connect(void *context, uint32_t timeout_ms)
{
  (void)context;
  CHECK_EQUAL(timeout_ms, 0);
  if (!reachable) return PORT_UNREACHABLE;
  if (opened_at == 0) {
    opened_at = now + OPENING_MS;
    connects++;
  }
  if ((int32_t)(now - opened_at) < 0) return pending;
  connected = true;
  return PORT_OK;
}

/*
 * The ring gives up what the interrupt has sent since, so the bytes are known to the server when
 * they go in.
 */
static int line_send(void *context, const void *data, size_t size)
{
  size_t room = RING - in_ring;
  (void)context;
  if (size > room) size = room;
  if (size == 0) return PORT_WOULD_BLOCK;
  if (CHECK(heard_size + size <= sizeof heard)) memcpy(heard + heard_size, data, size);
  heard_size += size;
  in_ring += size;
  return (int)size;
}

static int line_receive(void *context, void *data, size_t size, uint32_t timeout_ms)
{
  (void)context;
  CHECK_EQUAL(timeout_ms, 0);
  if (said_size == 0) return PORT_WOULD_BLOCK;
  if (size > said_size) size = said_size;
  memcpy(data, said, size);
  said_size -= size;
  memmove(said, said + size, said_size);
  return (int)size;
}

static void line_close(void *context)
{
  (void)context;
  connected = false;
  opened_at = 0;
  in_ring = heard_size = said_size = 0;
}

static struct port_transport line = {line_connect, line_send, line_receive, line_close,
                                     NULL,         NULL,      NULL};

/* The device */

static unsigned wakings;

/* A millisecond passes. Answers come when the last byte of a request is out. */
static void pass(void)
{
  now++;
  in_ring -= in_ring < BYTES_PER_MS ? in_ring : BYTES_PER_MS;
  if (in_ring == 0) answer_requests();
}

/*
 * Sleeps for as long as it was told, or until something has arrived. woken: the transport has an
 * interrupt, which also ends the sleep when what the client waits for is there.
 */
static void sleep_as_told(uint32_t ms, bool woken)
{
  for (uint32_t slept = 0; slept < ms && said_size == 0 && now < LIMIT_MS; slept++) {
    unsigned wants = fairlock_wants(&client);
    pass();
    if (woken && wants & FAIRLOCK_SEND && in_ring < RING / 2) break;
    if (woken && wants & FAIRLOCK_CONNECT && now == opened_at) break;
  }
  wakings++;
}

static void set_up(void)
{
  now = 1000;
  reachable = true;
  held = false;
  connects = wakings = requests = 0;
  line_close(NULL);
  CHECK_EQUAL(fairlock_client_init(&client, &config, &line), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_init(&door, &client, "door"), FAIRLOCK_OK);
}

static void acquire_asleep(bool woken)
{
  set_up();
  CHECK_EQUAL(fairlock_start_acquire(&door, FAIRLOCK_FOREVER, FAIRLOCK_RENEW), FAIRLOCK_PENDING);
  while (fairlock_result(&door) == FAIRLOCK_PENDING && now < LIMIT_MS)
    sleep_as_told(fairlock_poll(&client, 0), woken);
  CHECK_EQUAL(fairlock_result(&door), FAIRLOCK_OK);
  CHECK_EQUAL(connects, 1);
  CHECK(now - 1000 < OPENING_MS + 500);
}

/* Nobody wakes it but the clock and what arrives. */
static void test_sleeps_as_told(void)
{
  acquire_asleep(false);
  CHECK(wakings < 100);
  fairlock_client_deinit(&client);
}

static void test_woken_by_the_line(void)
{
  acquire_asleep(true);
  CHECK(wakings < 100);
  fairlock_client_deinit(&client);
}

/*
 * A waiter's heartbeat costs two wakings: the clock's, to send it, and the line's, for the reply.
 * That the reply was all is found out in the same call that reads it.
 */
static void test_wakes_for_heartbeats(void)
{
  set_up();
  held = true;
  CHECK_EQUAL(fairlock_start_acquire(&door, FAIRLOCK_FOREVER, FAIRLOCK_RENEW), FAIRLOCK_PENDING);
  while (requests == 0 && now < LIMIT_MS)
    sleep_as_told(fairlock_poll(&client, 0), true);
  sleep_as_told(fairlock_poll(&client, 0), true);
  wakings = requests = 0;
  while (now < LIMIT_MS)
    sleep_as_told(fairlock_poll(&client, 0), true);
  CHECK(requests >= 8);               /* one in 2 s */
  CHECK(wakings <= 2 * requests + 1); /* the last is cut short */
  CHECK_EQUAL(fairlock_result(&door), FAIRLOCK_PENDING);
  fairlock_client_deinit(&client);
}

/* What an event loop has to watch for. */
static void test_wants(void)
{
  set_up();
  CHECK_EQUAL(fairlock_wants(&client), 0);
  CHECK(fairlock_poll(&client, 0) > 3600000); /* nothing will ever be due */
  reachable = false;
  CHECK_EQUAL(fairlock_start_acquire(&door, FAIRLOCK_FOREVER, FAIRLOCK_RENEW), FAIRLOCK_PENDING);
  uint32_t due = 0;
  for (int i = 0; i < 5 && due == 0; i++)
    due = fairlock_poll(&client, 0);
  CHECK(due > 0);
  CHECK_EQUAL(fairlock_wants(&client), 0); /* it rests before it tries again */
  reachable = true;
  now += due;
  due = fairlock_poll(&client, 0);
  CHECK(due > 0 && due <= OPENING_MS);
  CHECK_EQUAL(fairlock_wants(&client), FAIRLOCK_CONNECT);
  now = opened_at;
  (void)fairlock_poll(&client, 0);
  CHECK_EQUAL(fairlock_wants(&client), FAIRLOCK_RECEIVE);
  in_ring = 0;
  answer_requests();
  in_ring = RING;
  for (int i = 0; i < 5; i++)
    due = fairlock_poll(&client, 0);
  CHECK_EQUAL(fairlock_wants(&client), FAIRLOCK_RECEIVE | FAIRLOCK_SEND);
  CHECK(due > 0 && due < 100);
  for (int i = 0; i < 200; i++)
    pass();
  for (int i = 0; i < 200; i++) {
    (void)fairlock_poll(&client, 0);
    pass();
  }
  CHECK_EQUAL(fairlock_result(&door), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_wants(&client), FAIRLOCK_RECEIVE);
  due = fairlock_poll(&client, 0);
  CHECK(due > 1000); /* the next renewal */
  fairlock_client_deinit(&client);
}

/* A handshake: the connection is writable all the time, and the server has to answer first. */
static void test_wants_input(void)
{
  set_up();
  pending = PORT_NEEDS_INPUT;
  CHECK_EQUAL(fairlock_start_acquire(&door, FAIRLOCK_FOREVER, FAIRLOCK_RENEW), FAIRLOCK_PENDING);
  uint32_t due = fairlock_poll(&client, 0);
  CHECK_EQUAL(fairlock_wants(&client), FAIRLOCK_RECEIVE);
  CHECK(due > 1000);          /* the end of connect_ms */
  pending = PORT_WOULD_BLOCK; /* an answer came, and ours to it does not fit into the line */
  due = fairlock_poll(&client, 0);
  CHECK_EQUAL(fairlock_wants(&client), FAIRLOCK_CONNECT);
  CHECK(due <= 10);
  pending = PORT_NEEDS_INPUT;
  due = fairlock_poll(&client, 0);
  now += due; /* the server is silent */
  opened_at = now + 1;
  (void)fairlock_poll(&client, 0);
  CHECK_EQUAL(fairlock_wants(&client), 0); /* it rests */
  CHECK(!connected);
  pending = PORT_WOULD_BLOCK;
  fairlock_client_deinit(&client);
}

/* More has arrived than the receive buffer holds. No further interrupt reports the rest. */
static void test_comes_again_for_the_rest(void)
{
  acquire_asleep(false);
  for (int i = 0; i < 10; i++)
    say(">3\r\n$7\r\nmessage\r\n$8\r\nnonsense\r\n$1\r\n0\r\n");
  while (fairlock_poll(&client, 0) == 0)
    continue;
  CHECK_EQUAL(said_size, 0);
  CHECK_EQUAL(fairlock_wants(&client), FAIRLOCK_RECEIVE);
  fairlock_client_deinit(&client);
}

const struct check_test check_tests[] = {
    {"poll: a device that sleeps as told acquires", test_sleeps_as_told},
    {"poll: a device woken by its line acquires", test_woken_by_the_line},
    {"poll: a waiter wakes twice for a heartbeat", test_wakes_for_heartbeats},
    {"poll: wants", test_wants},
    {"poll: what to wait for while the server has to answer first", test_wants_input},
    {"poll: comes again for the rest", test_comes_again_for_the_rest},
    {0}};
