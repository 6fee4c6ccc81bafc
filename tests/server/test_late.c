/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A request that comes late, each in turn: its connection breaks, the client sends it again on a
 * new one, and then the first one reaches the server, too. It must neither end nor begin a hold
 * that it does not belong to.
 */
#include "story.h"

static void test_at_rest(void)
{
  sweep("stranded for a while", offsetof(struct proxy_control, strand), 150, true);
}

static void test_in_passing(void)
{
  sweep("stranded for longer", offsetof(struct proxy_control, strand), 400, false);
}

static struct proxy proxy;
static struct client client;
static struct fairlock handle;

static void open_stranding(const char *name)
{
  begin();
  proxy_start(&proxy, server.port);
  atomic_store(&proxy.control->strand_ms, 2600); /* longer than a request is valid */
  client_open(&client, proxy.port);
  CHECK_EQUAL(fairlock_init(&handle, &client.client, name), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_acquire(&handle, 1000, 60000), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_release(&handle), FAIRLOCK_OK);
}

static void close_stranding(const char *name)
{
  CHECK_EQUAL(fairlock_deinit(&handle), FAIRLOCK_OK);
  client_close(&client);
  proxy_stop(&proxy);
  CHECK(nothing_left(&redis, name));
}

/* The next request is stranded. */
static void strand_next(void)
{
  atomic_store(&proxy.control->strand, atomic_load(&proxy.control->requests) + 1);
}

/*
 * An acquire that comes after it has expired begins no hold that nobody knows of, not even when the
 * client is gone.
 */
static void test_void_acquire(void)
{
  open_stranding("void");
  strand_next();
  int64_t began = now_ms();
  CHECK_EQUAL(fairlock_acquire(&handle, 5000, 60000), FAIRLOCK_OK);
  CHECK_EQUAL(atomic_load(&proxy.control->strand), 0);
  CHECK_EQUAL(fairlock_release(&handle), FAIRLOCK_OK);
  while (now_ms() < began + 3500) {
    CHECK_EQUAL(raw_number(&redis, "EXISTS void"), 0);
    sleep_ms(20);
  }
  close_stranding("void");
}

/* A leave that comes late does not end the next hold. */
static void test_void_leave(void)
{
  open_stranding("void");
  CHECK(raw_run(&redis, "HSET void other:1 1"));
  CHECK(raw_run(&redis, "PEXPIRE void 60000"));
  CHECK_EQUAL(fairlock_start_acquire(&handle, FAIRLOCK_FOREVER, 60000), FAIRLOCK_PENDING);
  int64_t began = now_ms();
  while (queue_length(&redis, "void") == 0 && now_ms() < began + SOON)
    fairlock_poll(&client.client, 5);
  strand_next();
  CHECK_EQUAL(fairlock_cancel(&handle), FAIRLOCK_OK);
  CHECK_EQUAL(await_result(&client, &handle), FAIRLOCK_CANCELLED);
  CHECK_EQUAL(atomic_load(&proxy.control->strand), 0);
  CHECK(raw_run(&redis, "DEL void"));
  CHECK_EQUAL(fairlock_acquire(&handle, FAIRLOCK_FOREVER, 60000), FAIRLOCK_OK);
  service_for(&client, 3500);
  CHECK_EQUAL(raw_number(&redis, "EXISTS void"), 1);
  CHECK_EQUAL(fairlock_release(&handle), FAIRLOCK_OK);
  close_stranding("void");
}

const struct check_test check_tests[] = {
    {"late: while nothing else happens", test_at_rest},
    {"late: while the story goes on", test_in_passing},
    {"late: an acquire that is void", test_void_acquire},
    {"late: a leave that is void", test_void_leave},
    {NULL, NULL},
};
