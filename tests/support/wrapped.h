/* SPDX-License-Identifier: Apache-2.0 */
/* For tests that put functions of their own in place of the system's. Needs _GNU_SOURCE. */
#ifndef SUPPORT_WRAPPED_H
#define SUPPORT_WRAPPED_H

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

/*
 * The system's own function of that name, into a pointer to it of this size. A pointer to a function
 * is not a pointer to an object, but dlsym() hands it out as one.
 */
static inline void find_real(const char *name, void *function, size_t size)
{
  void *found = dlsym(RTLD_NEXT, name);
  if (found == NULL) abort();
  memcpy(function, &found, size);
}

#endif
