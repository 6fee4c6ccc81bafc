/* SPDX-License-Identifier: Apache-2.0 */
/* The client for other languages with servers that move: a hold, and a wait, outlast a fail-over. */
#include "rig.h"
#include "scene.h"

#include <unistd.h>

static struct rig rig;
static char url[200];

static struct fls_client *open_rig(struct fls_options options)
{
  rig_url(&rig, rig.cluster ? 0 : 3, url, sizeof url);
  options.size = sizeof options;
  options.url = url;
  return open_by_url(&options);
}

/* A client that holds, and one that waits, while the master of the lock changes. */
static struct fls_lock *holder, *waiter;

static void hold_and_wait(struct fls_client *client)
{
  holder = make_lock(client, "door", 1);
  waiter = make_lock(client, "door", 2);
  CHECK_EQUAL(acquire(holder), FLS_OK);
  CHECK(fls_remaining_ms(holder) > 30000); /* the lease is that of servers that move */
  CHECK_EQUAL(fls_acquire(waiter, FLS_FOREVER, FLS_RENEW, 1), FLS_PENDING);
}

static void hand_over(struct fls_client *client)
{
  uint64_t token = fls_held(holder);
  CHECK_EQUAL(release(holder), FLS_OK);
  struct fls_event event = {.size = sizeof event};
  AWAIT(fls_next(client, 1000, &event) == 1, continue);
  CHECK_EQUAL(event.user, 2);
  CHECK_EQUAL(event.status, FLS_OK);
  CHECK(event.token > token && token != 0);
  fls_close(client, SOON);
}

static void test_sentinels(void)
{
  const struct rig_options secret = {.password = "s3cret", .sentinel_password = "sesame"};
  begin();
  (void)alarm(RIG_TEST_S);
  sentinels_start(&rig, &secret);
  struct fls_client *client = open_rig(
      (struct fls_options){.password = "s3cret", .sentinel_password = "sesame", .replicas = 1});
  hold_and_wait(client);
  for (int node = 0; node < 3; node++) /* the replicas have it, too */
    CHECK(queue_reaches(node_raw(&rig.node[node]), "door", 1));
  node_kill(&rig.node[0]);
  int master = sentinels_promote(&rig, 0);
  if (CHECK(master > 0)) hand_over(client);
  rig_stop(&rig);
}

static void test_cluster(void)
{
  const struct rig_options none = {0};
  begin();
  (void)alarm(RIG_TEST_S);
  cluster_start(&rig, &none);
  struct fls_client *client = open_rig((struct fls_options){.replicas = 1});
  hold_and_wait(client);
  int slot = cluster_slot(&rig, "door");
  int master = cluster_owner(&rig, slot);
  CHECK(queue_reaches(node_raw(&rig.node[master]), "door", 1));
  CHECK(cluster_fail_over(&rig, master + 3, ""));
  CHECK_EQUAL(cluster_promoted(&rig, slot, master), master + 3);
  hand_over(client);
  rig_stop(&rig);
}

const struct check_test check_tests[] = {
    {"sentinels", test_sentinels}, {"cluster", test_cluster}, {0}};
