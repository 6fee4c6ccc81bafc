/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the harnesses have in common. CBMC runs harness() for every value that an undefined
 * nondet_...() may return, and every content of memory that nothing has written.
 */
#ifndef PROOF_H
#define PROOF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

bool nondet_bool(void);
uint8_t nondet_uint8(void);
uint16_t nondet_uint16(void);
uint32_t nondet_uint32(void);
uint64_t nondet_uint64(void);
int64_t nondet_int64(void);
int nondet_int(void);
size_t nondet_size(void);

/* Only runs in which it is so are looked at. */
#define ASSUME(condition) __CPROVER_assume(condition)

/* It is so in every run. */
#define CHECK(condition) __CPROVER_assert(condition, #condition)

/*
 * There is a run which gets here, with the condition: so the assumptions exclude no such run. It is
 * another question than CHECK()'s, asked apart.
 */
#ifdef REACH
#define REACHED(condition) __CPROVER_cover(condition)
#else
#define REACHED(condition) ((void)(condition))
#endif

/* Memory of any content. Nothing is known of what is behind it but that it must not be touched. */
static inline uint8_t *any_bytes(size_t size)
{
  uint8_t *bytes = malloc(size);
  ASSUME(bytes != NULL);
  return bytes;
}

/* A pointer in a 64-bit process has 47 bits at most: the size of what it can point to has fewer. */
#define ANY_SIZE ((size_t)1 << 46)

/* What a harness is started by. */
void harness(void);

#endif
