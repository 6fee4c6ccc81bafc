/*
 * Entropy of a POSIX system: getrandom() where there is one, because it waits until the kernel has gathered some (two
 * equal devices that boot at the same time must not draw the same client id); else, and where the kernel lacks it,
 * /dev/urandom. Never a clock or a process id: those repeat.
 */
#define _DEFAULT_SOURCE 1 /* what -std=c11 hides */

#include "port.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#if defined __has_include && !defined __cppcheck__ /* which does not know it */
#if __has_include(<sys/random.h>)
#include <sys/random.h> /* GRND_NONBLOCK tells whether getrandom() is in it */
#endif
#endif

#ifndef O_CLOEXEC
#define O_CLOEXEC 0
#endif

static ssize_t draw(int file, void *data, size_t size)
{
#ifdef GRND_NONBLOCK
  if (file < 0) return getrandom(data, size, 0);
#endif
  return read(file, data, size);
}

/* Fills data from the file, or from getrandom() if file is negative. */
static bool fill(int file, void *data, size_t size)
{
  unsigned char *at = data;
  while (size > 0) {
    ssize_t drawn = draw(file, at, size);
    if (drawn < 0 && errno == EINTR) continue;
    if (drawn <= 0) return false;
    at += drawn;
    size -= (size_t)drawn;
  }
  return true;
}

bool port_entropy(void *data, size_t size)
{
#ifdef GRND_NONBLOCK
  if (fill(-1, data, size)) return true;
#endif
  int file = open("/dev/urandom", O_RDONLY | O_CLOEXEC);
  if (file < 0) return false;
  bool filled = fill(file, data, size);
  (void)close(file);
  return filled;
}
