/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gettimeofday() of a redis-server that has this preloaded: the time that the file $MODEL_CLOCK holds, us since
 * 1970. (libfaketime calls the server's allocator before that is ready.)
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <unistd.h>

static const volatile uint64_t *micros;

__attribute__((constructor)) static void begin(void)
{
  const char *name = getenv("MODEL_CLOCK");
  int file = name ? open(name, O_RDONLY) : -1;
  void *mapped = mmap(NULL, sizeof *micros, PROT_READ, MAP_SHARED, file, 0);
  if (mapped == MAP_FAILED) _exit(127);
  micros = mapped;
}

int gettimeofday(struct timeval *restrict time, void *restrict zone)
{
  (void)zone;
  uint64_t now = *micros;
  time->tv_sec = (time_t)(now / 1000000);
  time->tv_usec = (suseconds_t)(now % 1000000);
  return 0;
}
