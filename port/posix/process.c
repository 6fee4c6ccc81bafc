/*
 * Tells a forked process from the one it was forked from, without a system call.
 *
 * There is a page of memory that the kernel gives to a forked process zeroed: MADV_WIPEONFORK
 * (Linux 4.14) or INHERIT_ZERO (FreeBSD, NetBSD, OpenBSD). The page holds a number, which is the
 * note of this process. A forked process finds 0, and takes the next number when it notes itself, so
 * a number is never that of a process further up. The kernel does this for each fork: for one by
 * clone() or _Fork(), too, which call no handler of pthread_atfork(), and for a child that has the
 * number of its parent because it is process 1 of another PID namespace.
 *
 * Elsewhere, and where there is no memory for the page, a note is the number of the process, negated.
 * Asking for that is a system call, and does not tell such a child from its parent.
 *
 * The page exists as long as there are notes, so that a library that is unloaded leaves nothing
 * behind. A lock to guard it might be held by another thread at a fork, and then for ever in the
 * child. So one word says where the page is and how many notes there are.
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

/* The address of the page, plus the number of notes. With COUNT notes, it is counted no further. */
static atomic_uintptr_t shared;

/* The number that a process has taken last: this one, or one that it was forked from. */
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
 * Some emulators answer any advice with success and do nothing. They are found out by an advice that
 * does not exist.
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

/* 0: the system cannot. */
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

/* Counts a note more, in a page that is made if there is none. NULL: there cannot be one. */
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
