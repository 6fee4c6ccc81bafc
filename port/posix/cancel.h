/*
 * Holds off the end of a thread by pthread_cancel(). Private to port/posix.
 *
 * A thread that ended inside the client would leave it with nobody who services it, for ever: the
 * mutex locked, or something begun that only this thread would have finished. So a thread is not
 * ended while it has the mutex, which includes all functions of the program that the client calls
 * with it, nor inside a function of the port that waits, sends, receives or closes. Elsewhere the
 * client calls nothing at which a thread can be ended.
 */
#ifndef PORT_POSIX_CANCEL_H
#define PORT_POSIX_CANCEL_H

#ifndef PORT_POSIX_NO_THREADS
#include <pthread.h>
#endif

#ifdef PTHREAD_CANCEL_DISABLE /* Android has none of this */

/* Returns how it was before, for allow_cancel(). */
static inline int hold_off_cancel(void)
{
  int before = PTHREAD_CANCEL_ENABLE;
  (void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
  return before;
}

/* As it was before. A thread that was cancelled meanwhile goes on, to where it can be ended next. */
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
