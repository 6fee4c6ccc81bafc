/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The schedule: whatever is put in, taken out and put elsewhere, the first is one that is due
 * first, and each handle is met once.
 */
#include "check.h"
#include "internal.h"

#include <string.h>

#define HANDLES 300

static struct fairlock_engine engine;
static struct fairlock handles[HANDLES];
static bool scheduled[HANDLES];
static uint32_t seed;

static uint32_t random_below(uint32_t limit)
{
  seed = seed * 1664525 + 1013904223;
  return (uint32_t)(((uint64_t)seed * limit) >> 32);
}

static bool child_of(const struct fairlock *child, const struct fairlock *parent)
{
  if (child == NULL) return true;
  return child->place.up == parent && reached(child->place.due, parent->place.due);
}

/* Every scheduled handle is met once, and none is due before the one above it. */
static bool whole(void)
{
  static bool met[HANDLES];
  size_t count = 0, expected = 0;
  memset(met, 0, sizeof met);
  for (int i = 0; i < HANDLES; i++)
    expected += scheduled[i];
  const struct fairlock *handle = engine.first;
  if (handle != NULL && handle->place.up != NULL) return false;
  for (; handle != NULL; handle = fairlock_schedule_next(handle, true)) {
    size_t i = (size_t)(handle - handles);
    if (met[i] || !scheduled[i] || ++count > expected) return false;
    met[i] = true;
    if (!child_of(handle->place.left, handle) || !child_of(handle->place.right, handle))
      return false;
  }
  return count == expected;
}

static void test_random_changes(void)
{
  uint32_t base = 0xffffff00; /* the clock goes round */
  for (int i = 0; i < HANDLES; i++)
    handles[i].engine = &engine;
  for (int step = 0; step < 20000; step++) {
    uint32_t i = random_below(HANDLES);
    if (scheduled[i]) fairlock_schedule_remove(&handles[i]);
    scheduled[i] = random_below(3) > 0;
    if (scheduled[i]) fairlock_schedule_insert(&handles[i], base + random_below(2000));
    if (!CHECK(whole())) return;
  }
}

/* Without those below a handle: what is due later is not looked at. */
static void test_those_that_are_due(void)
{
  for (uint32_t now = 0xffffff00; now != 2000; now++) {
    int due = 0, met = 0;
    for (int i = 0; i < HANDLES; i++)
      due += scheduled[i] && reached(now, handles[i].place.due);
    const struct fairlock *handle = engine.first;
    while (handle != NULL) {
      bool is_due = reached(now, handle->place.due);
      met += is_due;
      handle = fairlock_schedule_next(handle, is_due);
    }
    if (!CHECK_EQUAL(met, due)) return;
  }
}

const struct check_test check_tests[] = {
    {"schedule: random changes", test_random_changes},
    {"schedule: those that are due, and no others", test_those_that_are_due},
    {NULL, NULL},
};
