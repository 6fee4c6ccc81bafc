/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tells a forked process from its parent, without a system call.
 *
 * The kernel can zero a page of memory in each forked process: MADV_WIPEONFORK (Linux 4.14) or
 * INHERIT_ZERO (FreeBSD, NetBSD, OpenBSD). The page has a number, which is the note of this
 * process. A forked process finds 0 there, and takes the next number, so that no two processes of
 * one family have the same. This also works for clone() and _Fork(), which do not call the handlers
 * of pthread_atfork(), and for a child with the process id of its parent, which process 1 of
 * another PID namespace may have.
 *
 * On other systems, and without memory for the page, the note is the negated process id. To get
 * that takes a system call, and it does not tell a child with the same process id from its parent.
 *
 * The page exists as long as there are notes, so that a library that is unloaded leaves nothing
 * behind. We cannot guard it by a lock: another thread might hold it during a fork, and in the
 * child it would be locked for ever. So one atomic word has both the page's address and the number
 * of notes.
 */
#define _DEFAULT_SOURCE 1 /* what -std=c11 hides */

#include "process.h"

#ifndef PORT_POSIX_NO_THREADS

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

#if defined __linux__ || defined __FreeBSD__ || defined __NetBSD__ || defined __OpenBSD__
#include <sys/mman.h>
#endif

#if defined MAP_INHERIT_ZERO && !defined INHERIT_ZERO
#define INHERIT_ZERO MAP_INHERIT_ZERO
#endif

/* Pages are at least this large, so the bits below it are free in the address of one. */
#define COUNT ((uintptr_t)4095)

/* The address of the page, plus the number of notes, which goes no higher than COUNT. */
static atomic_uintptr_t shared;

/* The last number that was taken, by this process or by one from which it was forked. */
static atomic_long last;

static atomic_long *page_in(uintptr_t state)
{
  return (atomic_long *)(state & ~COUNT); /* NOLINT(performance-no-int-to-ptr) */
}

#if defined MADV_WIPEONFORK || defined INHERIT_ZERO

static size_t page_size(void)
{
  return (size_t)sysconf(_SC_PAGESIZE);
}

/*
 * Some emulators return success for any advice and do nothing. So this also gives an advice that
 * does not exist, which has to fail.
 */
static bool wipe_on_fork(void *page)
{
#ifdef MADV_WIPEONFORK
  return madvise(page, page_size(), -1) != 0 && madvise(page, page_size(), MADV_WIPEONFORK) == 0;
#else
  return minherit(page, page_size(), INHERIT_ZERO) == 0;
#endif
}

static void free_page(uintptr_t state)
{
  (void)munmap(page_in(state), page_size());
}

/* Returns the page's address; 0: the system cannot make one. */
static uintptr_t make_page(void)
{
  void *page = mmap(NULL, page_size(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) return 0;
  if (wipe_on_fork(page)) return (uintptr_t)page;
  free_page((uintptr_t)page);
  return 0;
}

#else

static uintptr_t make_page(void)
{
  return 0;
}

static void free_page(uintptr_t state)
{
  (void)state;
}

#endif

/* Counts one more note, and makes the page if there is none. Returns the page; NULL: it failed. */
static atomic_long *join_page(void)
{
  uintptr_t state = atomic_load(&shared);
  uintptr_t made = 0;
  uintptr_t next;
  do {
    if (state == 0 && made == 0) made = make_page();
    if (state == 0 && made == 0) return NULL;
    next = state != 0 ? state : made;
    if ((next & COUNT) < COUNT) next++;
  } while (!atomic_compare_exchange_weak(&shared, &state, next));
  if (made != 0 && page_in(made) != page_in(next)) free_page(made); /* another thread was faster */
  return page_in(next);
}

long port_posix_note_process(void)
{
  atomic_long *page = join_page();
  if (page == NULL) return -(long)getpid();
  long number = atomic_load(page);
  if (number != 0) return number;
  long next = atomic_fetch_add(&last, 1) + 1;
  return atomic_compare_exchange_strong(page, &number, next) ? next : number;
}

bool port_posix_forked(long note)
{
  if (note <= 0) return note != -(long)getpid();
  return atomic_load_explicit(page_in(atomic_load_explicit(&shared, memory_order_relaxed)),
                              memory_order_relaxed) != note;
}

void port_posix_forget_process(long note)
{
  uintptr_t state = atomic_load(&shared);
  uintptr_t next;
  if (note <= 0) return;
  do {
    if ((state & COUNT) == COUNT) return;
    next = (state & COUNT) == 1 ? 0 : state - 1;
  } while (!atomic_compare_exchange_weak(&shared, &state, next));
  if (next == 0) free_page(state);
}

#endif
