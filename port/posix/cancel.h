/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Delays pthread_cancel(). Private to port/posix.
 *
 * If a thread ended inside the client, the mutex might stay locked for ever, or something might
 * never be finished, and nobody could service the client any more. So a thread is not ended while
 * it has the mutex, which includes callbacks of the program that the client calls with it, nor
 * inside a function of the port that waits, sends, receives or closes. Elsewhere the client calls
 * nothing at which a thread can be ended.
 */
#ifndef PORT_POSIX_CANCEL_H
#define PORT_POSIX_CANCEL_H

#ifndef PORT_POSIX_NO_THREADS
#include <pthread.h>
#endif

#ifdef PTHREAD_CANCEL_DISABLE /* Android has none of this */

/* Returns the previous state, which allow_cancel() takes. */
static inline int hold_off_cancel(void)
{
  int before = PTHREAD_CANCEL_ENABLE;
  (void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
  return before;
}

/*
 * Restores the previous state. A thread that was cancelled meanwhile ends at its next cancellation
 * point.
 */
static inline void allow_cancel(int before)
{
  int held_off;
  (void)pthread_setcancelstate(before, &held_off);
}

#else

static inline int hold_off_cancel(void)
{
  return 0;
}

static inline void allow_cancel(int before)
{
  (void)before;
}

#endif

#endif
