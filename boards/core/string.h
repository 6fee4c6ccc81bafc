/* SPDX-License-Identifier: Apache-2.0 */
/* Those of string.h that the lock uses, for a compiler without a C library. */
#ifndef FAIRLOCK_CORE_STRING_H
#define FAIRLOCK_CORE_STRING_H

#include <stddef.h>

void *memcpy(void *restrict to, const void *restrict from, size_t size);
void *memmove(void *to, const void *from, size_t size);
void *memset(void *to, int value, size_t size);
void *memchr(const void *where, int value, size_t size);
int memcmp(const void *left, const void *right, size_t size);
size_t strlen(const char *text);

#endif
