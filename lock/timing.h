/*
 * Times of our clock, and spans between two of them, in ms.
 *
 * Wrap-around. The clock goes round after 2^32 ms (49.7 days), so two times are compared by their
 * difference: b comes after a if it is reached from a in less than 2^31 ms (24.9 days). Times ahead
 * are never that far away: no wait and no lease is longer than FAIRLOCK_DURATION_MAX_MS (12.4 days).
 * So a time that seems to lie further ahead has passed, and has_come() counts it so. Times past may
 * be that far away, when nobody has ticked for weeks, and would then seem to lie ahead. Where that
 * would do harm, the span since a time is compared with a limit (doubt_over(), over() in handle.c);
 * and the engine asks to be called again after HORIZON_MS at most, so it sees that it was not.
 */
#ifndef FAIRLOCK_TIMING_H
#define FAIRLOCK_TIMING_H

#include "engine.h"

/* When nothing is due, the caller comes back after this time. */
#define HORIZON_MS (FAIRLOCK_DURATION_MAX_MS / 16)

/* a is at or after b. */
static inline bool reached(uint32_t a, uint32_t b)
{
  return (int32_t)(a - b) >= 0;
}

/* Of two times. */
static inline uint32_t earlier(uint32_t a, uint32_t b)
{
  return reached(a, b) ? b : a;
}

/* `time`, which was set at most FAIRLOCK_DURATION_MAX_MS ahead, is now or has passed. */
static inline bool has_come(uint32_t now, uint32_t time)
{
  return time - now - 1 >= FAIRLOCK_DURATION_MAX_MS;
}

/* Of two spans. */
static inline uint32_t shorter(uint32_t a, uint32_t b)
{
  return a < b ? a : b;
}

static inline uint32_t longer(uint32_t a, uint32_t b)
{
  return a > b ? a : b;
}

/* The sooner of in_ms from now and this time, in ms from now. */
static inline uint32_t sooner(uint32_t now, uint32_t in_ms, uint32_t time)
{
  if (has_come(now, time)) return 0;
  return shorter(in_ms, time - now);
}

/*
 * How much to shorten an interval that two clocks measure: they may differ by 1 %, and by rounding.
 */
static inline uint32_t margin(uint32_t interval)
{
  return interval / 64 + 2;
}

/* What is left of an interval that two clocks measure, whichever of them is fast. */
static inline uint32_t safe_part(uint32_t interval)
{
  return interval > margin(interval) ? interval - margin(interval) : 0;
}

/* When a lease that was asked for at sent_at ends. */
static inline uint32_t safe_end(uint32_t sent_at, uint32_t lease_ms)
{
  return sent_at + safe_part(lease_ms);
}

#endif
