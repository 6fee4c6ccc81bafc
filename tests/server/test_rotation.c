/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A password that is rotated, and credentials that expire, on a real server: holders and waiters go
 * through many rotations, with connections that are cut off; none loses its hold, no two hold
 * at a time, tokens rise. And an AUTH on a connection that stays disturbs nobody.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine.h"
#include "fairlock_credentials.h"
#include "fairlock_share.h"
#include "harness.h"
#include "support/counters.h"

/* What the function gives. */
struct keys {
  char password[32];
  bool none;
  uint32_t valid_ms;
  int asked, refused;
};

struct member {
  struct client client;
  struct fairlock_credentials credentials;
  struct keys keys;
  struct fairlock handle;
  struct fairlock_shared shared;
  uint64_t token; /* of its hold; 0: it does not hold */
  int64_t since;
};

enum { MEMBERS = 5 };
static struct member members[MEMBERS];

static bool give(struct fairlock_login *login, void *context)
{
  struct keys *keys = context;
  keys->asked++;
  keys->refused += login->refused;
  login->user = "job";
  login->password = keys->password;
  login->valid_ms = keys->valid_ms;
  return !keys->none;
}

/* The server knows this password, and no other. */
static void serve(const char *password)
{
  CHECK(raw_run(&redis, "ACL SETUSER job reset on >%s ~* &* +@all", password));
}

static void note(const char *password)
{
  for (int i = 0; i < MEMBERS; i++)
    (void)snprintf(members[i].keys.password, sizeof members[i].keys.password, "%s", password);
}

static void cut_off(void)
{
  (void)raw_run(&redis, "CLIENT KILL USER job");
}

static void open_member(struct member *member, uint32_t valid_ms)
{
  memset(member, 0, sizeof *member);
  member->keys.valid_ms = valid_ms;
  note("secret");
  client_prepare(&member->client, server.port);
  client_start(&member->client);
  member->credentials.function = give;
  member->credentials.context = &member->keys;
  fairlock_use_credentials(&member->client.client, &member->credentials);
  CHECK_EQUAL(fairlock_init(&member->handle, &member->client.client, "door"), FAIRLOCK_OK);
}

static void start(uint32_t valid_ms)
{
  begin();
  serve("secret");
  for (int i = 0; i < MEMBERS; i++)
    open_member(&members[i], valid_ms);
}

static void finish(void)
{
  for (int i = 0; i < MEMBERS; i++) {
    if (members[i].token != 0) CHECK_EQUAL(fairlock_release(&members[i].handle), FAIRLOCK_OK);
    CHECK_EQUAL(fairlock_deinit(&members[i].handle), FAIRLOCK_OK);
    CHECK_EQUAL(atomic_load(&members[i].client.losses), 0);
    client_close(&members[i].client);
  }
  CHECK(raw_run(&redis, "ACL DELUSER job"));
  CHECK(nothing_left(&redis, "door"));
}

static uint64_t newest; /* token */
static unsigned holds;

static int holders(void)
{
  int count = 0;
  for (int i = 0; i < MEMBERS; i++)
    count += fairlock_remaining_ms(&members[i].handle) > 0;
  return count;
}

/* Each acquires, holds for some ms, releases, and again. */
static void take_turn(struct member *member, int hold_ms)
{
  int result = fairlock_result(&member->handle);
  if (result == FAIRLOCK_PENDING) return;
  uint64_t token = fairlock_token(&member->handle);
  if (token == 0 && member->token == 0) {
    /* of a release: it was cut off, and was sent again */
    CHECK(result == FAIRLOCK_OK || result == FAIRLOCK_UNKNOWN);
    CHECK_EQUAL(fairlock_start_acquire(&member->handle, FAIRLOCK_FOREVER, FAIRLOCK_RENEW),
                FAIRLOCK_PENDING);
  } else if (member->token == 0) {
    CHECK_EQUAL(holders(), 1);
    CHECK(token > newest);
    newest = token;
    holds++;
    member->token = token;
    member->since = now_ms();
  } else if (now_ms() - member->since >= hold_ms) {
    CHECK_EQUAL((int64_t)token, (int64_t)member->token);
    member->token = 0;
    CHECK_EQUAL(fairlock_start_release(&member->handle), FAIRLOCK_PENDING);
  }
}

static void service_all(int ms, int hold_ms)
{
  int64_t until = now_ms() + ms;
  do {
    for (int i = 0; i < MEMBERS; i++) {
      (void)fairlock_poll(&members[i].client.client, 1);
      if (hold_ms > 0) take_turn(&members[i], hold_ms);
    }
    CHECK(holders() <= 1);
  } while (now_ms() < until);
}

/* Each is connected, and has been cut off before. */
static bool all_connected(const uint32_t before[MEMBERS])
{
  for (int i = 0; i < MEMBERS; i++) {
    struct fairlock_client *client = &members[i].client.client;
    if (!fairlock_engine_ready(&client->engine)) return false;
    if (counters_of(client).connections == before[i]) return false;
  }
  return true;
}

/*
 * One rotation: server and function change in either order, or there is nothing meanwhile. Ends when
 * all are connected again.
 */
static void rotate(int round, int hold_ms)
{
  char password[32];
  uint32_t connects[MEMBERS];
  (void)snprintf(password, sizeof password, "secret%d", round);
  for (int i = 0; i < MEMBERS; i++)
    connects[i] = counters_of(&members[i].client.client).connections;
  if (round % 4 == 0) note(password);
  if (round % 4 == 3) CHECK(raw_run(&redis, "ACL DELUSER job"));
  else serve(password);
  if (round % 4 == 1)
    for (int i = 0; i < MEMBERS; i++)
      members[i].keys.none = true;
  cut_off();
  service_all(50 + round % 8 * 30, hold_ms);
  serve(password);
  note(password);
  for (int i = 0; i < MEMBERS; i++)
    members[i].keys.none = false;
  AWAIT(all_connected(connects), service_all(5, hold_ms));
}

static void test_rotations(void)
{
  const char *asked = getenv("ROTATIONS");
  unsigned rotations = asked != NULL ? (unsigned)atoi(asked) : 20;
  start(0);
  newest = 0;
  holds = 0;
  for (unsigned round = 1; round <= rotations; round++)
    rotate((int)round, 5);
  service_all(3000, 5);
  int refused = 0;
  for (int i = 0; i < MEMBERS; i++) {
    struct fairlock_counters counters = counters_of(&members[i].client.client);
    printf("# %d: %u holds, %u connections, asked %d times, %d of them because of a refusal\n", i,
           (unsigned)counters.acquisitions, (unsigned)counters.connections, members[i].keys.asked,
           members[i].keys.refused);
    CHECK(counters.connections >= rotations);
    refused += members[i].keys.refused;
  }
  printf("# %u holds\n", holds);
  CHECK(refused > 0 && holds > rotations);
  /* the last ones */
  for (int i = 0; i < MEMBERS; i++)
    (void)fairlock_cancel(&members[i].handle);
  AWAIT(fairlock_result(&members[0].handle) != FAIRLOCK_PENDING &&
            fairlock_result(&members[1].handle) != FAIRLOCK_PENDING &&
            fairlock_result(&members[2].handle) != FAIRLOCK_PENDING &&
            fairlock_result(&members[3].handle) != FAIRLOCK_PENDING &&
            fairlock_result(&members[4].handle) != FAIRLOCK_PENDING,
        service_all(10, 0));
  for (int i = 0; i < MEMBERS; i++)
    members[i].token = fairlock_token(&members[i].handle);
  finish();
}

/* The first member holds, and the others wait in their order. Returns the token. */
static uint64_t line_up(void)
{
  CHECK_EQUAL(fairlock_acquire(&members[0].handle, 1000, FAIRLOCK_RENEW), FAIRLOCK_OK);
  uint64_t token = fairlock_token(&members[0].handle);
  for (int i = 1; i < MEMBERS; i++) {
    CHECK_EQUAL(fairlock_start_acquire(&members[i].handle, FAIRLOCK_FOREVER, FAIRLOCK_RENEW),
                FAIRLOCK_PENDING);
    AWAIT(queue_length(&redis, "door") == i, service_all(5, 0));
  }
  return token;
}

/* One hold, and those who wait for it, through thirty: nobody loses its place. */
static void test_one_hold(void)
{
  start(0);
  uint64_t token = line_up();
  for (int round = 1; round <= 30; round++) {
    rotate(round, 0);
    CHECK_EQUAL((int64_t)fairlock_token(&members[0].handle), (int64_t)token);
    CHECK_EQUAL(queue_length(&redis, "door"), MEMBERS - 1);
  }
  AWAIT(listeners(&redis, "door") == MEMBERS - 1, service_all(10, 0));
  for (int i = 0; i < MEMBERS; i++) {
    AWAIT(fairlock_remaining_ms(&members[i].handle) > 0, service_all(5, 0));
    CHECK(fairlock_token(&members[i].handle) >= token);
    token = fairlock_token(&members[i].handle);
    CHECK_EQUAL(fairlock_start_release(&members[i].handle), FAIRLOCK_PENDING);
    AWAIT(fairlock_result(&members[i].handle) != FAIRLOCK_PENDING, service_all(5, 0));
    CHECK_EQUAL(fairlock_result(&members[i].handle), FAIRLOCK_OK);
  }
  finish();
}

static const char name[] = "door";

/* All but the last share the lock, which that one waits for. */
static void share_all(uint64_t tokens[MEMBERS])
{
  for (int i = 0; i < MEMBERS; i++) {
    struct member *member = &members[i];
    CHECK_EQUAL(fairlock_init_shared(&member->shared, &member->client.client, name, MEMBERS - 1),
                FAIRLOCK_OK);
    if (i == MEMBERS - 1) break;
    CHECK_EQUAL(fairlock_acquire(&member->shared.handle, 1000, FAIRLOCK_RENEW), FAIRLOCK_OK);
    tokens[i] = fairlock_token(&member->shared.handle);
  }
  CHECK_EQUAL(
      fairlock_start_acquire(&members[MEMBERS - 1].shared.handle, FAIRLOCK_FOREVER, FAIRLOCK_RENEW),
      FAIRLOCK_PENDING);
  AWAIT(queue_length(&redis, "door") == 1, service_all(5, 0));
}

/* All still hold by their tokens, and one that waits follows the first that releases. */
static void end_shares(const uint64_t tokens[MEMBERS])
{
  struct fairlock *waiter = &members[MEMBERS - 1].shared.handle;
  CHECK_EQUAL(queue_length(&redis, "door"), 1);
  AWAIT(listeners(&redis, "door") > 0, service_all(10, 0));
  for (int i = 0; i < MEMBERS - 1; i++) {
    CHECK(fairlock_token(&members[i].shared.handle) == tokens[i]);
    CHECK_EQUAL(fairlock_release(&members[i].shared.handle), FAIRLOCK_OK);
    AWAIT(fairlock_result(waiter) != FAIRLOCK_PENDING, service_all(5, 0));
    CHECK(fairlock_token(waiter) > tokens[MEMBERS - 2]);
  }
  CHECK_EQUAL(fairlock_release(waiter), FAIRLOCK_OK);
  for (int i = 0; i < MEMBERS; i++)
    CHECK_EQUAL(fairlock_deinit(&members[i].shared.handle), FAIRLOCK_OK);
}

static void test_shares(void)
{
  uint64_t tokens[MEMBERS];
  start(0);
  share_all(tokens);
  for (int round = 1; round <= 12; round++)
    rotate(round, 0);
  end_shares(tokens);
  finish();
}

/* The same by an AUTH each 750 ms on standing connections. */
static void test_shares_expiry(void)
{
  uint64_t tokens[MEMBERS];
  start(1000);
  share_all(tokens);
  AWAIT(members[0].keys.asked >= 6 && members[MEMBERS - 1].keys.asked >= 6, service_all(10, 0));
  for (int i = 0; i < MEMBERS; i++)
    CHECK_EQUAL(counters_of(&members[i].client.client).connections, 1);
  end_shares(tokens);
  finish();
}

/* The numbers of our connections, all in one. */
static int64_t connections(void)
{
  int64_t sum = 0;
  for (int i = 0; i < MEMBERS; i++)
    sum += counters_of(&members[i].client.client).connections;
  return sum;
}

/* AUTH after AUTH on standing connections; then a handover by a message. */
static void test_expiry(void)
{
  start(1000); /* an AUTH each 750 ms */
  uint64_t token = line_up();
  for (int round = 1; members[1].keys.asked < 21; round++) {
    char password[32];
    (void)snprintf(password, sizeof password, "secret%d", round);
    serve(password);
    service_all(50, 0);
    note(password);
    service_all(700, 0);
  }
  CHECK_EQUAL(connections(), MEMBERS);
  CHECK_EQUAL(listeners(&redis, "door"), MEMBERS);
  for (int i = 0; i < MEMBERS; i++) {
    AWAIT(fairlock_remaining_ms(&members[i].handle) > 0, service_all(5, 0));
    CHECK(i == 0 || fairlock_token(&members[i].handle) > token);
    token = fairlock_token(&members[i].handle);
    if (i > 0) CHECK_EQUAL(counters_of(&members[i].client.client).granted, 1);
    CHECK_EQUAL(fairlock_start_release(&members[i].handle), FAIRLOCK_PENDING);
    AWAIT(fairlock_result(&members[i].handle) != FAIRLOCK_PENDING, service_all(5, 0));
  }
  CHECK_EQUAL(connections(), MEMBERS);
  finish();
}

/* An AUTH that is refused again and again leaves the connection as it is. */
static void test_refused_auth(void)
{
  start(1000);
  CHECK_EQUAL(fairlock_acquire(&members[0].handle, 1000, FAIRLOCK_RENEW), FAIRLOCK_OK);
  note("wrong");
  AWAIT(members[0].keys.refused >= 2, service_all(10, 0));
  CHECK(strncmp(client_error(&members[0].client), "WRONGPASS", 9) == 0);
  CHECK_EQUAL(fairlock_server_status(&members[0].client.client), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_acquire(&members[0].handle, 0, FAIRLOCK_RENEW), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_release(&members[0].handle), FAIRLOCK_OK);
  int asked = members[0].keys.asked;
  note("secret");
  AWAIT(members[0].keys.asked > asked, service_all(10, 0));
  CHECK_EQUAL(counters_of(&members[0].client.client).connections, 1);
  CHECK_EQUAL(fairlock_release(&members[0].handle), FAIRLOCK_OK);
  finish();
}

/* Wrong for longer than a wait is patient. */
static void test_wrong_for_long(void)
{
  begin();
  serve("secret");
  struct member *member = &members[0];
  open_member(member, 0);
  note("wrong");
  CHECK_EQUAL(fairlock_connect(&member->client.client), FAIRLOCK_DENIED);
  CHECK_EQUAL(fairlock_try_acquire(&member->handle, FAIRLOCK_RENEW), FAIRLOCK_DENIED);
  CHECK(strncmp(client_error(&member->client), "WRONGPASS", 9) == 0);
  int64_t began = now_ms();
  CHECK_EQUAL(fairlock_acquire(&member->handle, FAIRLOCK_FOREVER, FAIRLOCK_RENEW), FAIRLOCK_DENIED);
  CHECK(now_ms() - began >= 9900);
  member->keys.none = true;
  CHECK_EQUAL(fairlock_connect(&member->client.client), FAIRLOCK_DENIED);
  CHECK(strcmp(client_error(&member->client), "no credentials at present") == 0);
  member->keys.none = false;
  note("secret");
  /* the next attempt comes after a pause of up to 5 s */
  CHECK_EQUAL(fairlock_acquire(&member->handle, 15000, FAIRLOCK_RENEW), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_release(&member->handle), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_deinit(&member->handle), FAIRLOCK_OK);
  client_close(&member->client);
  CHECK(raw_run(&redis, "ACL DELUSER job"));
}

const struct check_test check_tests[] = {
    {"rotation: many, with contention", test_rotations},
    {"rotation: thirty under one hold", test_one_hold},
    {"rotation: under holds that are shared", test_shares},
    {"rotation: AUTH on standing connections", test_expiry},
    {"rotation: AUTH under holds that are shared", test_shares_expiry},
    {"rotation: a refused AUTH", test_refused_auth},
    {"rotation: wrong for long", test_wrong_for_long},
    {NULL, NULL},
};
