/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For LD_PRELOAD: whoever lists all processes needs two seconds for that, as if they were many.
 */
#define _GNU_SOURCE 1
#include <dirent.h>
#include <dlfcn.h>
#include <stddef.h>
#include <string.h>
#include <time.h>

DIR *opendir(const char *name)
{
  static time_t listed;
  DIR *(*real)(const char *) = NULL;
  struct timespec left = {.tv_sec = 2};
  *(void **)&real = dlsym(RTLD_NEXT, "opendir");
  if (strcmp(name, "/proc") == 0 && time(NULL) - listed > 1) { /* a list may be made anew at once */
    while (nanosleep(&left, &left) != 0)
      ;
    listed = time(NULL);
  }
  return real(name);
}
