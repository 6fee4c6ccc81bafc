/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Several locks at once, on top of the functions of fairlock.h: they are taken in one order, the same
 * for all, so nobody waits in a circle. A program that takes one at a time does not link this file.
 */
#include "fairlock_several.h"

#include <string.h>

/* How often to look, while the next one is waited for, whether those before it are still held. */
#define LOOK_MS 100U

/* Below 0 if the lock of a comes before that of b; 0: they have the same name. */
static int compare(const struct fairlock *a, const struct fairlock *b)
{
  size_t size = a->name_size < b->name_size ? a->name_size : b->name_size;
  int order = memcmp(a->name, b->name, size);
  return order != 0 ? order : (a->name_size > b->name_size) - (a->name_size < b->name_size);
}

/* The one that comes next behind `last`; NULL: none. Behind NULL comes the first. */
static struct fairlock *next_of(struct fairlock *const handles[], size_t count,
                                const struct fairlock *last)
{
  struct fairlock *next = NULL;
  for (size_t i = 0; i < count; i++) {
    if (last != NULL && compare(handles[i], last) <= 0) continue;
    if (next == NULL || compare(handles[i], next) < 0) next = handles[i];
  }
  return next;
}

/*
 * The least that is left of the holds before `end` (NULL: of all): UINT32_MAX if there are none, 0 if
 * one is lost.
 */
static uint32_t least_left(struct fairlock *const handles[], size_t count,
                           const struct fairlock *end)
{
  uint32_t least = UINT32_MAX;
  for (size_t i = 0; i < count; i++) {
    if (end != NULL && compare(handles[i], end) >= 0) continue;
    uint32_t left = fairlock_remaining_ms(handles[i]);
    if (left < least) least = left;
  }
  return least;
}

/* Acquires one while those before it are held. If one of those is lost, it stops waiting. */
static int acquire_next(struct fairlock *const handles[], size_t count, struct fairlock *next,
                        uint32_t wait_ms, uint32_t lease_ms)
{
  int status = fairlock_start_acquire(next, wait_ms, lease_ms);
  while (status == FAIRLOCK_PENDING) {
    uint32_t left = least_left(handles, count, next);
    uint32_t look = left == UINT32_MAX ? FAIRLOCK_DURATION_MAX_MS : LOOK_MS;
    if (left == 0) (void)fairlock_cancel(next);
    status = fairlock_wait(next, left > 0 && left < look ? left : look);
  }
  return status;
}

/* Releases those before `end`; NULL: all. Returns FAIRLOCK_OK, or the first other status. */
static int release_until(struct fairlock *const handles[], size_t count, const struct fairlock *end)
{
  int status = FAIRLOCK_OK;
  for (size_t i = count; i > 0; i--) {
    if (end != NULL && compare(handles[i - 1], end) >= 0) continue;
    int one = fairlock_release(handles[i - 1]);
    if (status == FAIRLOCK_OK) status = one;
  }
  return status;
}

int fairlock_acquire_all(struct fairlock *const handles[], size_t count, uint32_t wait_ms,
                         uint32_t lease_ms)
{
  uint32_t began = port_clock_ms();
  struct fairlock *next;
  size_t different = 0;
  for (next = next_of(handles, count, NULL); next != NULL; next = next_of(handles, count, next))
    different++;
  if (different < count) return FAIRLOCK_INVALID; /* it might wait for itself */
  for (next = next_of(handles, count, NULL); next != NULL; next = next_of(handles, count, next)) {
    uint32_t waited = port_clock_ms() - began;
    uint32_t left = wait_ms == FAIRLOCK_FOREVER ? wait_ms : waited < wait_ms ? wait_ms - waited : 0;
    int status = acquire_next(handles, count, next, left, lease_ms);
    bool lost = least_left(handles, count, next) == 0;
    if (status == FAIRLOCK_OK && !lost) continue;
    if (status == FAIRLOCK_BUSY && wait_ms > 0) status = FAIRLOCK_TIMEOUT;
    if (status == FAIRLOCK_OK) (void)fairlock_release(next);
    (void)release_until(handles, count, next);
    return lost ? FAIRLOCK_LOST : status;
  }
  return FAIRLOCK_OK;
}

int fairlock_release_all(struct fairlock *const handles[], size_t count)
{
  return release_until(handles, count, NULL);
}
