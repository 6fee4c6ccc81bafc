/* SPDX-License-Identifier: Apache-2.0 */
/* The judge of histories finds what is wrong in them: histories with one fault each, and good ones. */
#include "support/history.h"
#include "check.h"

#include <stdlib.h>
#include <string.h>

/* What a text comes to: lines of LOCK CLIENT LIMIT TOKEN CALLED QUEUED START END. */
static struct verdict judge_text(const char *text)
{
  struct history history;
  FILE *file = fmemopen((void *)(uintptr_t)text, strlen(text), "r");
  if (file == NULL) abort();
  CHECK(history_read(&history, file));
  (void)fclose(file);
  history.quiet = true;
  struct verdict verdict = judge(&history);
  free(history.holds);
  return verdict;
}

static const struct {
  const char *what, *text;
  int overlaps, crowds, tokens, order, most;
} histories[] = {
    {"one after the other",
     "0 1 -1 7  1 2 10 20\n"
     "0 2 -1 8  3 4 20 30\n"
     "0 3 -1 9  5 6 31 40\n"
     "1 4 -1 9  5 6 31 40\n",
     0, 0, 0, 0, 1},
    {"without tokens", "0 1 -1 0 1 2 10 20\n0 2 -1 0 3 4 20 30\n0 3 -1 0 5 6 31 40\n", 0, 0, 0, 0,
     1},
    {"shared, then alone",
     "0 1 2 7  1 2 10 20\n"
     "0 2 2 8  3 4 11 20\n"
     "0 3 0 9  5 6 20 30\n"
     "0 4 -1 11 7 8 30 40\n",
     0, 0, 0, 0, 2},
    {"many", "0 1 0 7 1 2 10 20\n0 2 0 8 3 4 11 20\n0 3 0 9 5 6 12 20\n", 0, 0, 0, 0, 3},
    {"two holders", "0 1 -1 7 1 0 10 20\n0 2 -1 8 2 0 19 30\n", 1, 0, 0, 0, 2},
    {"two holders without tokens", "0 1 -1 0 1 0 10 20\n0 2 -1 0 2 0 19 30\n", 1, 0, 0, 0, 2},
    {"three holders", "0 1 -1 7 1 0 10 30\n0 2 -1 8 2 0 19 30\n0 3 -1 9 2 0 29 40\n", 2, 0, 0, 0,
     3},
    {"alone beside one who shares", "0 1 2 7 1 0 10 20\n0 2 -1 8 2 0 19 30\n", 1, 0, 0, 0, 2},
    {"one who shares beside one alone", "0 1 -1 7 1 0 10 20\n0 2 0 8 2 0 19 30\n", 1, 0, 0, 0, 2},
    {"no belief", "0 1 -1 7 1 0 10 10\n0 2 -1 8 2 0 5 30\n", 0, 0, 0, 0, 1},
    {"a third of two", "0 1 2 7 1 0 10 20\n0 2 2 8 2 0 11 30\n0 3 2 9 2 0 12 30\n", 0, 1, 0, 0, 3},
    {"the smallest limit binds", "0 1 2 7 1 0 10 20\n0 2 0 8 2 0 11 30\n0 3 3 9 2 0 12 30\n", 0, 1,
     0, 0, 3},
    {"two after one of two", "0 1 2 7 1 0 10 20\n0 2 2 8 2 0 11 30\n0 3 3 9 2 0 20 30\n", 0, 0, 0,
     0, 2},
    {"the same token", "0 1 -1 8 1 0 10 20\n0 2 -1 8 11 0 21 30\n", 0, 0, 2, 0, 1},
    {"a smaller token", "0 1 -1 8 1 0 10 20\n0 2 -1 7 11 0 21 30\n", 0, 0, 2, 0, 1},
    {"a smaller token, called before", "0 1 -1 8 1 0 10 20\n0 2 -1 7 2 0 21 30\n", 0, 0, 1, 0, 1},
    {"a smaller token of one who shares", "0 1 2 8 1 0 10 20\n0 2 2 7 11 0 12 30\n", 0, 0, 0, 0, 2},
    {"a smaller token of one alone", "0 1 2 8 1 0 10 20\n0 2 -1 7 11 0 21 30\n", 0, 0, 2, 0, 1},
    {"a smaller token than one alone had", "0 1 -1 8 1 0 10 20\n0 2 2 7 11 0 21 30\n", 0, 0, 2, 0,
     1},
    {"overtaken", "0 1 -1 8 1 3 20 30\n0 2 -1 7 4 5 10 20\n", 0, 0, 0, 1, 1},
    {"not known to stand in line", "0 1 -1 8 1 0 20 30\n0 2 -1 7 4 5 10 20\n", 0, 0, 0, 0, 1},
    {"called before that", "0 1 -1 8 1 4 20 30\n0 2 -1 7 4 5 10 20\n", 0, 0, 0, 0, 1},
    {"overtaken, without tokens", "0 1 -1 0 1 3 20 30\n0 2 -1 0 4 5 10 20\n", 0, 0, 0, 1, 1},
    {"overtaken by one with a token", "0 1 -1 0 1 3 20 30\n0 2 -1 7 4 5 10 20\n", 0, 0, 0, 1, 1},
    {"overtaken by one without", "0 1 -1 8 1 3 20 30\n0 2 -1 0 4 5 10 20\n", 0, 0, 0, 1, 1},
    {"heard of late", "0 1 2 7 1 3 20 30\n0 2 2 8 4 5 10 30\n", 0, 0, 0, 0, 2},
    {"another lock",
     "0 1 -1 0 1 3 20 30\n1 2 -1 0 4 5 10 20\n0 1 -1 8 1 3 30 40\n2 2 -1 7 4 5 10 20\n", 0, 0, 0, 0,
     1},
};

static void test_faults(void)
{
  for (size_t i = 0; i < sizeof histories / sizeof *histories; i++) {
    struct verdict verdict = judge_text(histories[i].text);
    bool same = CHECK_EQUAL(verdict.overlaps, histories[i].overlaps);
    same &= CHECK_EQUAL(verdict.crowds, histories[i].crowds);
    same &= CHECK_EQUAL(verdict.tokens, histories[i].tokens);
    same &= CHECK_EQUAL(verdict.order, histories[i].order);
    same &= CHECK_EQUAL(verdict.most, histories[i].most);
    if (!same) check_write(histories[i].what);
  }
}

static void test_time_together(void)
{
  CHECK_EQUAL(judge_text("0 1 -1 7 1 0 10 20\n0 2 -1 8 2 0 15 30\n").overlap_us, 5);
  CHECK_EQUAL(judge_text("0 1 -1 7 1 0 10 20\n0 2 -1 8 2 0 13 18\n").overlap_us, 5);
  CHECK_EQUAL(judge_text("0 1 0 7 1 0 10 20\n0 2 0 8 2 0 15 30\n").overlap_us, 0);
}

static void test_no_history(void)
{
  static const char *const texts[] = {"0 1 -1 7 1 0 10\n", "0 1 -1 7 1 0 10 x\n", "hold\n"};
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
    struct history history;
    FILE *file = fmemopen((void *)(uintptr_t)texts[i], strlen(texts[i]), "r");
    if (file == NULL) abort();
    CHECK(!history_read(&history, file));
    (void)fclose(file);
    free(history.holds);
  }
}

static struct hold made(int lock, uint64_t token, int64_t start, int64_t until, int64_t end)
{
  return (struct hold){.written = true,
                       .lock = lock,
                       .token = token,
                       .called_us = start - 5,
                       .start_us = start,
                       .until_us = until,
                       .end_us = end};
}

static struct verdict judge_quietly(struct hold *holds, size_t count, const int64_t *restart)
{
  struct history history = {holds, count, restart, restart != NULL, true};
  return judge(&history);
}

/* A server that loses what it knew: only within a life, nobody holds beside another. */
static void test_lives(void)
{
  static const int64_t restart[] = {1000};
  struct hold holds[] = {made(0, 100, 100, 200, 150), made(1, 101, 110, 210, 0),
                         made(0, 102, 150, 250, 0), made(0, 103, 230, 0, 0),
                         made(0, 1001, 240, 400, 0)};
  struct verdict verdict = judge_quietly(holds, 5, restart);
  CHECK(is_good(&verdict));
  CHECK_EQUAL(judge_quietly(holds, 5, NULL).overlaps, 1);
  atomic_store(&holds[0].end_us, 0); /* it was killed, and believed on */
  CHECK_EQUAL(judge_quietly(holds, 5, restart).overlaps, 1);
  atomic_store(&holds[2].written, false); /* the other was killed before it wrote that down */
  CHECK_EQUAL(judge_quietly(holds, 5, restart).overlaps, 0);
  holds[4].token = 99; /* tokens rise over all lives */
  holds[4].called_us = 235;
  CHECK(judge_quietly(holds, 5, restart).tokens > 0);
}

static void test_kept(void)
{
  struct hold holds[] = {made(0, 100, 100, 150, 150), made(0, 100, 160, 250, 250)};
  CHECK(judge_quietly(holds, 2, NULL).tokens > 0);
  holds[0].keeps = holds[1].keeps = true;
  CHECK_EQUAL(judge_quietly(holds, 2, NULL).tokens, 0);
  struct hold reversed[] = {holds[1], holds[0]};
  CHECK_EQUAL(judge_quietly(reversed, 2, NULL).tokens, 0);
  holds[1].pid = 1;
  CHECK(judge_quietly(holds, 2, NULL).tokens > 0);
  holds[1].token = 99;
  CHECK(judge_quietly(holds, 2, NULL).tokens > 0);
  /* one that stood in line is overtaken, but not by who has kept the lock */
  holds[0].token = 101;
  holds[0].queued_us = 106;
  holds[0].start_us = 200;
  holds[1].called_us = 107;
  CHECK_EQUAL(judge_quietly(holds, 2, NULL).order, 1);
  holds[1].again = true;
  CHECK_EQUAL(judge_quietly(holds, 2, NULL).order, 0);
}

static void test_downgraded(void)
{
  struct hold holds[] = {made(0, 100, 100, 150, 150), made(0, 103, 160, 250, 250),
                         made(0, 104, 260, 300, 300)};
  holds[2].shares = true;
  holds[2].from = 103;
  CHECK_EQUAL(judge_quietly(holds, 3, NULL).tokens, 0);
  holds[2].from = 100; /* somebody got in between */
  CHECK_EQUAL(judge_quietly(holds, 3, NULL).tokens, 1);
  /* one that goes on overtakes nobody */
  holds[2].token = 99;
  holds[1].queued_us = 200;
  CHECK_EQUAL(judge_quietly(holds, 3, NULL).order, 0);
  holds[2].from = 0;
  CHECK_EQUAL(judge_quietly(holds, 3, NULL).order, 1);
}

const struct check_test check_tests[] = {
    {"history: planted faults", test_faults},
    {"history: time together", test_time_together},
    {"history: texts that are none", test_no_history},
    {"history: lives of a server", test_lives},
    {"history: kept locks", test_kept},
    {"history: from alone to shared", test_downgraded},
    {0},
};
