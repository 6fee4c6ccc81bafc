/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The memory of cores and locks in WebAssembly: pieces of powers of two, with a list of the free ones
 * of each size. Locks come and go in few sizes, so a freed piece is soon used again. New pieces come
 * from the end of the memory, which grows, and never shrinks.
 */
#include "core.h"

#define SMALLEST 5U /* 32 bytes */
#define PAGE     65536U

/* In front of each piece. Pieces are aligned to it. */
union head {
  union head *next;
  uint32_t size_log;
  uint64_t alignment;
};

/* the linker's: where the data ends */
extern union head heap_base __asm__("__heap_base");

static union head *lists[32];
static union head *end; /* of what was given out */

static union head *take_new(uint32_t size)
{
  union head *piece = end != NULL ? end : &heap_base;
  uint32_t room = __builtin_wasm_memory_size(0) * PAGE - (uint32_t)(uintptr_t)piece;
  if (size > room) {
    uint32_t pages = (size - room + PAGE - 1) / PAGE;
    if (__builtin_wasm_memory_grow(0, pages) == (size_t)-1) return NULL;
  }
  end = piece + size / sizeof *piece;
  return piece;
}

__attribute__((export_name("allocate"))) void *fairlock_core_allocate(size_t size)
{
  uint32_t log = SMALLEST;
  if (size > (size_t)1 << 30) return NULL;
  while (((uint32_t)1 << log) < size + sizeof(union head))
    log++;
  union head *piece = lists[log];
  if (piece != NULL) lists[log] = piece->next;
  else piece = take_new((uint32_t)1 << log);
  if (piece == NULL) return NULL;
  piece->size_log = log;
  return piece + 1;
}

__attribute__((export_name("free"))) void fairlock_core_free(void *memory)
{
  if (memory == NULL) return;
  union head *piece = (union head *)memory - 1;
  uint32_t log = piece->size_log;
  piece->next = lists[log];
  lists[log] = piece;
}
