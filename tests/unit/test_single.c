/*
 * The client for a program with one task, on port/single, in a time of the test's own: while there
 * is no connection it idles, and does not spin.
 */
#include "../../port/single/port_types.h" /* in place of the one that the library's own build has */

#include "../../lock/client.c"
#include "../../port/single/threads.c"

#include "check.h"

enum { READINGS_PER_MS = 1000 };

static uint8_t receive_buffer[256];
static uint8_t send_buffer[256];
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

static struct port_transport nobody = {refuse, no_send, no_receive, no_close, NULL, NULL};

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

const struct check_test check_tests[] = {
    {"single: an acquire without a server idles", test_acquire_idles},
    {"single: a poll without a connection idles", test_poll_idles},
    {0}};
