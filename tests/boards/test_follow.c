/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A board that follows servers that move: a real cluster, whose master dies. The board reaches the
 * host by another address than the nodes have among themselves, so they do not name it: MOVED then
 * means the same host (cluster-preferred-endpoint-type).
 */
#include "../failover/rig.h"
#include "rig.h"

#include <stdio.h>
#include <string.h>

static struct rig rig;
static struct board board;

static void test_cluster(void)
{
  static const struct rig_options options = {
      .config = "cluster-preferred-endpoint-type unknown-endpoint\n"};
  char seeds[200] = "";
  begin();
  cluster_start(&rig, &options);
  int slot = cluster_slot(&rig, "door:7");
  int owner = cluster_owner(&rig, slot);
  for (int i = 1; i <= 3; i++) { /* the owner comes last */
    size_t size = strlen(seeds);
    (void)snprintf(seeds + size, sizeof seeds - size, "%s10.0.2.2:%d", i == 1 ? "" : ",",
                   rig.node[(owner + i) % 3].port);
  }
  const char *const arguments[] = {seeds, "4", "1500", NULL};
  board_start(&board, "mps2-an385", "superloop_follow", arguments);
  CHECK(board_says(&board, "done"));
  CHECK(board_says(&board, "held after "));
  node_kill(&rig.node[owner]);
  CHECK(cluster_promote(&rig, slot, owner) >= 0);
  CHECK(board_says(&board, "done"));
  CHECK(board_says(&board, "done"));
  CHECK(board_says(&board, "done"));
  CHECK(!board_said(&board, "lost"));
  CHECK_EQUAL(board_ends(&board), 0);
  rig_stop(&rig);
}

const struct check_test check_tests[] = {
    {"qemu_superloop_follows_a_cluster", test_cluster},
    {0},
};
