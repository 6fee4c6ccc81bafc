/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two boards and two processes of the host contend for one lock, as contender.h says. Afterwards
 * the history in the server must show that each grant went to the next in line, that tokens rise,
 * that the counter missed none, and that there were never two inside. The same again while the host
 * is busy with other things, so that the boards get processor time late and in pieces; and with
 * boards that keep the lock.
 */
#include "rig.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifndef CONTENDER
#define CONTENDER "build/tests/boards/contender"
#endif

static void run_host(int index, void *context)
{
  char *rounds = context;
  (void)index;
  execl(CONTENDER, CONTENDER, server.port_text, rounds, "4", (char *)NULL);
  _exit(127);
}

static void spin(int index, void *context)
{
  volatile int *turns = context;
  for (;;)
    *turns += index;
}

/* Well within keep_ms, after which a keep ends though nobody recalls it. */
#define RECALLED_MS 5000

/* One who was in the critical section: its token, who was next in line or "-", and when. */
struct visit {
  char who[FAIRLOCK_HOLDER_ID_SIZE], next[FAIRLOCK_HOLDER_ID_SIZE];
  unsigned long long token;
  int64_t ms;
};

static bool read_visit(int i, struct visit *visit)
{
  return CHECK(sscanf(raw_text(&redis, "LINDEX history %d", i), "%74s %llu %74s %" SCNd64,
                      visit->who, &visit->token, visit->next, &visit->ms) == 4);
}

/*
 * A lock that is kept keeps its token, and its keeper may take it back until it has received that
 * somebody waits: that is no grant. Who waits is the same afterwards, and does not wait for long.
 */
static void check_history(int64_t grants, bool keeping)
{
  struct visit last = {.next = "-"};
  int64_t waited_since = 0;
  int64_t turns = 0;
  CHECK_EQUAL(raw_number(&redis, "LLEN history"), grants);
  for (int i = 0; i < grants; i++) {
    struct visit visit;
    if (!read_visit(i, &visit)) return;
    bool taken_back = keeping && visit.token == last.token && strcmp(visit.who, last.who) == 0;
    bool awaited = strcmp(last.next, "-") != 0;
    CHECK(visit.token > last.token || taken_back);
    if (awaited && taken_back) CHECK(strcmp(visit.next, last.next) == 0);
    if (awaited && !taken_back) {
      CHECK(strcmp(visit.who, last.next) == 0);
      CHECK(visit.ms - waited_since < RECALLED_MS || !keeping);
      turns++;
    }
    if (!awaited || !taken_back) waited_since = visit.ms;
    last = visit;
  }
  CHECK(turns > grants / 5); /* or there was no contention, and no order to keep */
  CHECK_EQUAL(raw_number(&redis, "GET violations"), -1);
  CHECK_EQUAL(atoi(raw_text(&redis, "GET counter")), grants);
}

/* keep_ms: of the boards; "0": they do not keep. */
static void contend_with(const char *first, const char *second, char *rounds, const char *keep_ms)
{
  const char *const arguments[] = {server.port_text, rounds, "4", keep_ms, NULL};
  static struct board boards[2];
  pid_t hosts[2];
  board_start(&boards[0], first, "contender", arguments);
  board_start(&boards[1], second, "contender", arguments);
  for (int i = 0; i < 2; i++)
    hosts[i] = spawn(run_host, i, rounds);
  for (int i = 0; i < 2; i++)
    CHECK(board_says(&boards[i], "contended"));
  for (int i = 0; i < 2; i++)
    CHECK_EQUAL(board_ends(&boards[i]), 0);
  for (int i = 0; i < 2; i++)
    CHECK_EQUAL(reap(hosts[i]), 0);
  check_history(4 * (int64_t)atoi(rounds), atoi(keep_ms) > 0);
  CHECK(nothing_left(&redis, "contended"));
}

static void test_boards_and_processes(void)
{
  static char rounds[] = "100";
  begin();
  contend_with("mps2-an385", "mps2-an385", rounds, "0");
}

static void test_other_processors(void)
{
  static char rounds[] = "25";
  begin();
  contend_with("mps2-an385-m0", "riscv-virt", rounds, "0");
  begin();
  contend_with("mps2-an386", "mps2-an505", rounds, "0");
}

static void test_under_load(void)
{
  static char rounds[] = "25";
  static int turns;
  pid_t spinners[4];
  begin();
  for (int i = 0; i < 4; i++)
    spinners[i] = spawn(spin, i, &turns);
  contend_with("mps2-an385", "riscv-virt", rounds, "0");
  for (int i = 0; i < 4; i++)
    slay(spinners[i]);
}

static void test_keepers(void)
{
  static char rounds[] = "25";
  begin();
  contend_with("mps2-an385", "riscv-virt", rounds, "10000");
}

const struct check_test check_tests[] = {
    {"qemu_boards_and_processes_contend", test_boards_and_processes},
    {"qemu_other_processors_contend", test_other_processors},
    {"qemu_contend_under_load", test_under_load},
    {"qemu_keepers_contend", test_keepers},
    {0},
};
