/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A server that says what a server should never say, once, at each moment of a client's life: the
 * operation succeeds or fails with a clear status, and after that all works again.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "harness.h"
#include "support/proxy.h"

#define NAME "hostile"

static struct proxy proxy;
static struct client far;
static struct fairlock mine;
static char my_id[FAIRLOCK_HOLDER_ID_SIZE];
static char scene[80];

#define EXPECT(is, expected) explain(CHECK_EQUAL((is), (expected)))

static void explain(bool good)
{
  if (!good) printf("#   %s\n", scene);
}

/* What a server should never say. */
static const char *const nonsense[] = {
    "+OK\r\n",
    ":1\r\n",
    "$-1\r\n",
    "_\r\n",
    "*0\r\n",
    "*2\r\n:1\r\n:2\r\n",
    "*4\r\n:1\r\n:2\r\n:3\r\n:4\r\n",
    "*3\r\n:1\r\n:0\r\n:0\r\n",
    "*3\r\n:1\r\n:-1\r\n:-1\r\n",
    "*3\r\n:7\r\n:7\r\n:7\r\n",
    "*3\r\n:0\r\n:1\r\n:1\r\n",
    "*3\r\n:1\r\n:99999999999999999999\r\n:1\r\n",
    "*3\r\n$3\r\nabc\r\n:1\r\n:1\r\n",
    "*3\r\n*1\r\n:1\r\n:1\r\n:1\r\n",
    "*3\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n:1\r\n",
    "*2147483647\r\n",
    "*99999999999\r\n",
    "*-5\r\n",
    "$2147483647\r\nab",
    "%1\r\n+a\r\n+b\r\n",
    "-ERR odd\r\n",
    "-\r\n",
    "-NOSCRIPT No matching script.\r\n",
    "!3\r\nERR\r\n",
    "|1\r\n+a\r\n+b\r\n:1\r\n",
    ">3\r\n+message\r\n+x\r\n+0\r\n*3\r\n:-2\r\n:0\r\n:0\r\n",
    "*3\r\n:-1\r\n:0\r\n:1\r\n*3\r\n:1\r\n:5\r\n:5\r\n",
    "HTTP/1.1 200 OK\r\n\r\n",
    "\r\n\r\n",
    "*3\r\n:1\r\n:5\r\n",
};
#define NONSENSE (sizeof nonsense / sizeof nonsense[0])

/*
 * One answer of an operation is replaced: the operation succeeds, or fails with a clear status, and
 * then all works again.
 */
static void garble(size_t which, int index)
{
  (void)snprintf(scene, sizeof scene, "nonsense %d for request %d", (int)which, index);
  (void)snprintf(proxy.control->garbage, sizeof proxy.control->garbage, "%s", nonsense[which]);
  client_prepare(&far, proxy.port);
  far.config.response_ms = 400; /* some of the nonsense never ends; nothing fails if more is late */
  far.config.connect_ms = 400;
  client_start(&far);
  EXPECT(fairlock_init(&mine, &far.client, NAME), FAIRLOCK_OK);
  atomic_store(&proxy.control->requests, 0);
  atomic_store(&proxy.control->garble, index);
  int status[4];
  status[0] = fairlock_acquire(&mine, 4000, 5000);
  status[1] = fairlock_acquire(&mine, 4000, 5000);
  status[2] = fairlock_release(&mine);
  status[3] = fairlock_release(&mine);
  for (int i = 0; i < 4; i++) {
    bool known = status[i] == FAIRLOCK_OK || status[i] == FAIRLOCK_PROTOCOL ||
                 status[i] == FAIRLOCK_REFUSED || status[i] == FAIRLOCK_UNREACHABLE ||
                 status[i] == FAIRLOCK_LOST || status[i] == FAIRLOCK_NOT_HELD ||
                 status[i] == FAIRLOCK_UNSUPPORTED || status[i] == FAIRLOCK_UNKNOWN ||
                 status[i] == FAIRLOCK_TIMEOUT;
    if (!CHECK(known))
      printf("#   %s, operation %d: %s\n", scene, i, fairlock_status_name(status[i]));
  }
  while (fairlock_hold_count(&mine) > 0 || fairlock_result(&mine) == FAIRLOCK_LOST) {
    if (fairlock_release(&mine) == FAIRLOCK_NOT_HELD) break;
  }
  atomic_store(&proxy.control->garble, 0);
  EXPECT(fairlock_acquire(&mine, 5 * SOON, 5 * SOON), FAIRLOCK_OK);
  fairlock_id(&mine, my_id, FAIRLOCK_HOLDER_ID_SIZE);
  EXPECT(hold_count_of(&redis, NAME, my_id), 1);
  EXPECT(raw_number(&redis, "HGET fairlock:{" NAME "} token"), (int64_t)fairlock_token(&mine));
  EXPECT(fairlock_release(&mine), FAIRLOCK_OK);
  EXPECT(fairlock_deinit(&mine), FAIRLOCK_OK);
  client_close(&far);
  (void)nothing_left(&redis, NAME);
}

static void test_nonsense(void)
{
  begin();
  proxy_start(&proxy, server.port);
  for (size_t which = 0; which < NONSENSE; which++) {
    for (int index = 1; index <= 7; index++)
      garble(which, index);
    (void)alarm(600);
  }
  proxy_stop(&proxy);
}

const struct check_test check_tests[] = {
    {"hostile: nonsense for each answer", test_nonsense},
    {NULL, NULL},
};
