/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The story of story.h: one client behind a proxy, another in front of it, and the result that each
 * step must have.
 */
#include <stdio.h>
#include <string.h>
#include <stddef.h>
#include <stdlib.h>
#include <unistd.h>

#include "fairlock_share.h"
#include "story.h"
#include "support/counters.h"

#define NAME "story"

static struct proxy proxy;
static struct client far;  /* behind the proxy: plays the story */
static struct client near; /* plays the others */
static struct fairlock *mine, *other;
static struct fairlock alone[2];
static struct fairlock_shared shares[2], third;
static char my_id[FAIRLOCK_HOLDER_ID_SIZE], other_id[FAIRLOCK_HOLDER_ID_SIZE];
static char scene[120]; /* what is hit, for the log */
static bool flushing;   /* the server forgets the scripts before each step */

static void explain(bool good)
{
  if (!good) printf("#   %s\n", scene);
}

#define EXPECT(is, expected) explain(CHECK_EQUAL((is), (expected)))

/* Services both clients. */
static void service_both(int ms)
{
  int64_t until = now_ms() + ms;
  do {
    fairlock_poll(&far.client, 2);
    fairlock_poll(&near.client, 0);
  } while (now_ms() < until);
}

static int finish_both(struct fairlock *handle)
{
  AWAIT(fairlock_result(handle) != FAIRLOCK_PENDING, service_both(0));
  return fairlock_result(handle);
}

static void flush(void)
{
  if (flushing) CHECK(raw_run(&redis, "SCRIPT FLUSH"));
}

static int acquire(struct fairlock *handle)
{
  flush();
  int status = fairlock_start_acquire(handle, 15000, FAIRLOCK_RENEW);
  return status == FAIRLOCK_PENDING ? finish_both(handle) : status;
}

static int release(struct fairlock *handle)
{
  flush();
  int status = fairlock_start_release(handle);
  return status == FAIRLOCK_PENDING ? finish_both(handle) : status;
}

static int64_t server_now(void)
{
  CHECK_EQUAL(raw_number(&redis, "TIME"), 2);
  return strtoll(redis.element[1].text, NULL, 10) * 1000 +
         strtoll(redis.element[2].text, NULL, 10) / 1000;
}

/*
 * What a field of the lock says: "COUNT" of a hold alone; "TOKEN ENDS COUNT LEASE" of a share, which
 * ends by itself. -1: no hold, or none any more.
 */
static int64_t count_in(const char *field, int64_t now)
{
  long long ends = 0, count = -1;
  if (strchr(field, ' ') == NULL) return strtoll(field, NULL, 10);
  if (sscanf(field, "%*s %lld %lld", &ends, &count) != 2 || ends <= now) return -1;
  return count;
}

/* How many hold; *count: the hold count of this id, -1 if it does not hold. */
static int holders(const char *id, int64_t *count)
{
  int found = 0;
  int64_t now = server_now(), size = raw_number(&redis, "HGETALL " NAME);
  *count = -1;
  for (int64_t i = 1; i + 1 <= size; i += 2) {
    const char *field = redis.element[i].text;
    int64_t its = strcmp(field, "shared") == 0 ? -1 : count_in(redis.element[i + 1].text, now);
    found += its >= 0;
    if (id != NULL && strcmp(field, id) == 0) *count = its;
  }
  return found;
}

static int64_t count_of(const char *id)
{
  int64_t count = 0;
  if (id != NULL) (void)holders(id, &count);
  return count;
}

/*
 * Who must hold the lock now, besides the third, and its hold count. NULL: nobody. A lock that was
 * just handed over has yet to be confirmed.
 */
static void expect_holder(const char *id, int count)
{
  int64_t its;
  AWAIT(id == NULL || count_of(id) > 0, service_both(1));
  EXPECT(holders(id, &its), (id != NULL) + (cast == BESIDE));
  if (id != NULL) EXPECT(its, count);
  if (id != NULL) EXPECT(raw_number(&redis, "PTTL " NAME) > 0, true);
}

static void end_step(const char *id, int count)
{
  expect_holder(id, count);
  flush();
}

static void hold_alone(void)
{
  EXPECT(acquire(mine), FAIRLOCK_OK);
  uint64_t token = fairlock_token(mine);
  EXPECT(raw_number(&redis, "HGET fairlock:{" NAME "} token"), (int64_t)token);
  end_step(my_id, 1);
  EXPECT(acquire(mine), FAIRLOCK_OK);
  EXPECT(fairlock_hold_count(mine), 2);
  end_step(my_id, 2);
  EXPECT(release(mine), FAIRLOCK_OK);
  EXPECT(fairlock_hold_count(mine), 1);
  end_step(my_id, 1);
  EXPECT(fairlock_token(mine) == token, true);
  EXPECT(release(mine), FAIRLOCK_OK);
  EXPECT(fairlock_remaining_ms(mine), 0);
}

/* Waits behind another, gets the lock from it, renews it, and hands it on to it. */
static void wait_and_pass_on(void)
{
  EXPECT(acquire(other), FAIRLOCK_OK);
  EXPECT(fairlock_start_acquire(mine, 15000, FAIRLOCK_RENEW), FAIRLOCK_PENDING);
  AWAIT(queue_length(&redis, NAME) == 1, service_both(1));
  end_step(other_id, 1);
  uint32_t renewals = counters_of(&far.client).renewals;
  EXPECT(release(other), FAIRLOCK_OK);
  EXPECT(finish_both(mine), FAIRLOCK_OK);
  uint64_t token = fairlock_token(mine);
  end_step(my_id, 1);
  AWAIT(counters_of(&far.client).renewals > renewals, service_both(1));
  EXPECT(fairlock_token(mine) == token, true);
  EXPECT(fairlock_hold_count(mine), 1);
  end_step(my_id, 1);
  EXPECT(fairlock_start_acquire(other, 15000, FAIRLOCK_RENEW), FAIRLOCK_PENDING);
  AWAIT(queue_length(&redis, NAME) == 1, service_both(1));
  EXPECT(release(mine), FAIRLOCK_OK);
  EXPECT(finish_both(other), FAIRLOCK_OK);
  EXPECT(fairlock_token(other) > token, true);
  end_step(other_id, 1);
}

/* Queues, and leaves again; then looks, and ends the other's hold. */
static void leave_and_force(void)
{
  static struct picture picture;
  static struct fairlock tool;
  static struct fairlock_target hold;
  EXPECT(fairlock_start_acquire(mine, 15000, FAIRLOCK_RENEW), FAIRLOCK_PENDING);
  AWAIT(queue_length(&redis, NAME) == 1, service_both(1));
  flush();
  EXPECT(fairlock_cancel(mine), FAIRLOCK_OK);
  EXPECT(finish_both(mine), FAIRLOCK_CANCELLED);
  /* without a connection it is reported at once, and done a little later */
  AWAIT(queue_length(&redis, NAME) == 0, service_both(1));
  end_step(other_id, 1);
  AWAIT(queue_length(&redis, NAME) == 0, service_both(1)); /* an acquire that came late is undone */
  EXPECT(queue_length(&redis, NAME), 0);
  EXPECT(fairlock_init(&tool, &far.client, NAME), FAIRLOCK_OK);
  EXPECT(fairlock_start_inspect(&tool, picture_report, &picture), FAIRLOCK_PENDING);
  EXPECT(finish_both(&tool), FAIRLOCK_OK);
  EXPECT(strcmp(picture.holder, other_id), 0);
  flush();
  hold.token = cast == BESIDE ? fairlock_token(other) : FAIRLOCK_ANY_TOKEN;
  EXPECT(fairlock_start_force_release(&tool, &hold), FAIRLOCK_PENDING);
  int status = finish_both(&tool);
  /* the second time it is free */
  EXPECT(status == FAIRLOCK_OK || status == FAIRLOCK_NOT_HELD, true);
  EXPECT(fairlock_deinit(&tool), FAIRLOCK_OK);
  end_step(NULL, 0);
  EXPECT(release(other), FAIRLOCK_LOST);
  EXPECT(acquire(mine), FAIRLOCK_OK);
  end_step(my_id, 1);
  EXPECT(release(mine), FAIRLOCK_OK);
  EXPECT(fairlock_deinit(mine), FAIRLOCK_OK);
}

/* A handle for each of the two who play it, and in BESIDE the third, who holds all the time. */
static void init_handles(void)
{
  static const char name[] = NAME;
  uint32_t limit = cast == BESIDE ? 2 : 0;
  bool share[] = {cast != ALONE, cast == BESIDE};
  struct fairlock **handle[] = {&mine, &other};
  struct client *client[] = {&far, &near};
  for (int i = 0; i < 2; i++) {
    *handle[i] = share[i] ? &shares[i].handle : &alone[i];
    EXPECT(share[i] ? fairlock_init_shared(&shares[i], &client[i]->client, name, limit)
                    : fairlock_init(&alone[i], &client[i]->client, name),
           FAIRLOCK_OK);
  }
  if (cast != BESIDE) return;
  EXPECT(fairlock_init_shared(&third, &near.client, name, limit), FAIRLOCK_OK);
  EXPECT(fairlock_acquire(&third.handle, 0, 600000), FAIRLOCK_OK);
}

static void deinit_third(void)
{
  if (cast != BESIDE) return;
  EXPECT(fairlock_release(&third.handle), FAIRLOCK_OK);
  EXPECT(fairlock_deinit(&third.handle), FAIRLOCK_OK);
}

/* The whole story. Returns how many requests it took. */
static int tell(void)
{
  client_prepare(&far, proxy.port);
  far.config.lease_ms = 6000; /* to be renewed soon, and to outlast a break on a busy machine */
  client_start(&far);
  client_open(&near, server.port);
  init_handles();
  atomic_store(&proxy.control->requests, 0);
  int64_t until = now_ms() + SOON; /* the greeting, too, may be hit */
  while (fairlock_connect(&far.client) != FAIRLOCK_OK && now_ms() < until)
    continue;
  EXPECT(fairlock_connect(&near.client), FAIRLOCK_OK);
  fairlock_id(mine, my_id, FAIRLOCK_HOLDER_ID_SIZE);
  fairlock_id(other, other_id, FAIRLOCK_HOLDER_ID_SIZE);
  hold_alone();
  wait_and_pass_on();
  leave_and_force();
  EXPECT(counters_of(&far.client).losses, 0);
  EXPECT(fairlock_deinit(other), FAIRLOCK_OK);
  deinit_third();
  client_close(&far);
  client_close(&near);
  return atomic_load(&proxy.control->requests);
}

static void clean(void)
{
  explain(nothing_left(&redis, NAME));
  explain(sane(&redis, NAME));
  CHECK(raw_run(&redis, "FLUSHALL"));
}

/* Tells the story undisturbed, and then once for each request that `order` hits. */
bool unknown_scripts;
enum cast cast;

static char names[1024][12];

void sweep(const char *what, size_t order)
{
  begin();
  proxy_start(&proxy, server.port);
  atomic_int *hits = (atomic_int *)(void *)((char *)proxy.control + order);
  (void)snprintf(scene, sizeof scene, "undisturbed");
  int count = tell();
  memcpy(names, proxy.control->names, sizeof names);
  clean();
  CHECK(count > 15 && count < 60);
  bool reached = true;
  for (int index = 1; reached && index <= count; index++) {
    if (unknown_scripts) CHECK(raw_run(&redis, "SCRIPT FLUSH"));
    (void)snprintf(scene, sizeof scene, "%s request %d of %d, %s", what, index, count,
                   names[index]);
    atomic_store(hits, index);
    (void)tell();
    reached = atomic_load(hits) != index; /* timers may send one more or one less */
    CHECK(reached || index > count - 6);
    clean();
    (void)alarm(120);
  }
  proxy_stop(&proxy);
}

void tell_with_flushes(void)
{
  begin();
  proxy_start(&proxy, server.port);
  flushing = true;
  (void)snprintf(scene, sizeof scene, "scripts flushed before each step");
  (void)tell();
  flushing = false;
  clean();
  proxy_stop(&proxy);
}
