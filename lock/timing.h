/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Times of our clock, and spans between two of them, in ms.
 *
 * Wrap-around. The clock wraps around after 2^32 ms (49.7 days). So two times are compared by their
 * difference: b is after a if b - a is less than 2^31 ms (24.9 days). A future time is never that
 * far away, because no wait and no lease is longer than FAIRLOCK_DURATION_MAX_MS (12.4 days). So a
 * time that seems to be further in the future has passed, and has_come() returns true for it. A
 * past time may be that far away, if nobody has ticked for weeks, and then seems to be in the
 * future. Where that would do harm, the span since a time is compared with a limit: doubt_over(),
 * and over() in handle.c. And the engine asks to be called again after HORIZON_MS at most, so it
 * notices when nobody has ticked.
 */
#ifndef FAIRLOCK_TIMING_H
#define FAIRLOCK_TIMING_H

#include "fairlock.h"

/* When nothing is due, the caller comes back after this time. A power of two takes shorter code. */
#define HORIZON_MS (FAIRLOCK_DURATION_MAX_MS / 16 + 1)

/* True if a is b or later. */
static inline bool reached(uint32_t a, uint32_t b)
{
  return (int32_t)(a - b) >= 0;
}

/* The earlier of two times. */
static inline uint32_t earlier(uint32_t a, uint32_t b)
{
  return reached(a, b) ? b : a;
}

/* True if two times are more than span apart; `to` itself counts as span apart. */
static inline bool farther_than(uint32_t span, uint32_t from, uint32_t to)
{
  return to + span - from - 1 >= 2 * span;
}

/*
 * True if `time`, which was at most FAIRLOCK_DURATION_MAX_MS in the future when it was set, has
 * come.
 */
static inline bool has_come(uint32_t now, uint32_t time)
{
  return time - now - 1 > FAIRLOCK_DURATION_MAX_MS;
}

/* The shorter, and the longer, of two spans. */
static inline uint32_t shorter(uint32_t a, uint32_t b)
{
  return a < b ? a : b;
}

static inline uint32_t longer(uint32_t a, uint32_t b)
{
  return a > b ? a : b;
}

/* in_ms, or the time from now to `time` if that is shorter; 0 if `time` has passed. */
static inline uint32_t sooner(uint32_t now, uint32_t in_ms, uint32_t time)
{
  if (has_come(now, time)) return 0;
  return shorter(in_ms, time - now);
}

/*
 * How much two clocks that differ by 1 % may disagree about an interval. A hold is believed in for
 * so much less; an old request is feared for so much more.
 */
static inline uint32_t margin(uint32_t interval)
{
  return interval / 64 + 2;
}

/* The part of an interval that is not over by either of two clocks, whichever of them is fast. */
static inline uint32_t safe_part(uint32_t interval)
{
  uint32_t part = interval - margin(interval);
  return part < interval ? part : 0; /* the margin of 2 or less is longer */
}

/* When a lease for which a request asked at sent_at ends, by our clock. */
static inline uint32_t safe_end(uint32_t sent_at, uint32_t lease_ms)
{
  return sent_at + safe_part(lease_ms);
}

#endif
