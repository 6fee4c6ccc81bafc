/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Resolves a name in another thread, because getaddrinfo() takes no time-out: when no name server
 * answers it takes 10 s and more.
 *
 * A lookup is a block of memory with two owners: its thread, which only calls getaddrinfo(), and
 * the transport that waits for the answer. The one that needs it longer frees it. So a transport
 * may give up a lookup, and its own memory may be gone, while the thread is still inside the
 * resolver. This block, some 100 bytes, is the only memory that port/posix allocates.
 *
 * The transport polls for the answer, often at first and then less often. So it needs no
 * descriptor, which fork() or exec() would copy, and no condition variable, whose clock somebody
 * might set.
 *
 * PORT_POSIX_NO_THREADS: for a system without POSIX threads and fork(). Resolving then blocks, as
 * it also does when no thread can be started.
 */
#define _DEFAULT_SOURCE 1 /* what -std=c11 hides */

#include "resolve.h"

#include "port_posix.h"
#include "process.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#ifndef PORT_POSIX_NO_THREADS
#include <pthread.h>
#endif

/* The longest pause between two looks. */
#define LOOK_MS 16U

/* An answer that is older than this is not used, and the name is resolved again. */
#define OLD_MS 5000U

struct port_posix_lookup {
  /* 2, until the thread has ended or the transport has given up */
  atomic_int owners;

  /* true: the answer is below. Until then only the thread accesses what is below */
  atomic_bool answered;

  /* 0, or what failed; see resolve.h */
  int failure;
  struct addrinfo *addresses;
  uint32_t answered_at;

  /* a note of the process in which the thread runs; see process.h */
  long process;

  /* points into text, after the host */
  const char *service;
  char text[];
};

static void release(struct port_posix_lookup *lookup)
{
  if (atomic_fetch_sub(&lookup->owners, 1) > 1) return;
  if (lookup->addresses != NULL) freeaddrinfo(lookup->addresses);
  port_posix_forget_process(lookup->process);
  free(lookup);
}

static void look_up(struct port_posix_lookup *lookup)
{
  struct addrinfo hints = {0};
  hints.ai_socktype = SOCK_STREAM;
  struct addrinfo *addresses = NULL;
  int error = getaddrinfo(lookup->text, lookup->service, &hints, &addresses);
  lookup->failure = error == EAI_SYSTEM ? errno : RESOLVER(error);
  if (error == 0) lookup->addresses = addresses;
  lookup->answered_at = port_clock_ms();
  atomic_store(&lookup->answered, true);
}

#ifdef PORT_POSIX_NO_THREADS
static bool start(struct port_posix_lookup *lookup)
{
  (void)lookup;
  return false;
}
#else
static void *answer(void *context)
{
  struct port_posix_lookup *lookup = context;
  look_up(lookup);
  release(lookup);
  return NULL;
}

/*
 * Starts the thread, with all signals blocked, so that the program's handlers run in its own
 * threads.
 */
static bool start(struct port_posix_lookup *lookup)
{
  pthread_attr_t detached;
  pthread_t thread;
  sigset_t all;
  sigset_t before;
  if (pthread_attr_init(&detached) != 0) return false;
  (void)pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
  (void)sigfillset(&all);
  (void)pthread_sigmask(SIG_SETMASK, &all, &before);
  bool started = pthread_create(&thread, &detached, answer, lookup) == 0;
  (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
  (void)pthread_attr_destroy(&detached);
  return started;
}
#endif

struct port_posix_lookup *port_posix_resolve(const char *host, const char *service)
{
  size_t host_size = strlen(host) + 1;
  size_t service_size = strlen(service) + 1;
  struct port_posix_lookup *lookup = malloc(sizeof *lookup + host_size + service_size);
  if (lookup == NULL) return NULL;
  memset(lookup, 0, sizeof *lookup);
  atomic_init(&lookup->owners, 2);
  atomic_init(&lookup->answered, false);
  lookup->process = port_posix_note_process();
  memcpy(lookup->text, host, host_size);
  memcpy(lookup->text + host_size, service, service_size);
  lookup->service = lookup->text + host_size;
  if (!start(lookup)) {
    atomic_store(&lookup->owners, 1);
    look_up(lookup);
  }
  return lookup;
}

bool port_posix_resolves(const struct port_posix_lookup *lookup, const char *host,
                         const char *service)
{
  if (strcmp(lookup->text, host) != 0 || strcmp(lookup->service, service) != 0) return false;
  return !atomic_load(&lookup->answered) || port_clock_ms() - lookup->answered_at < OLD_MS;
}

bool port_posix_resolved(const struct port_posix_lookup *lookup, uint32_t timeout_ms)
{
  uint32_t began = port_clock_ms();
  for (uint32_t pause = 1; !atomic_load(&lookup->answered);) {
    uint32_t spent = port_clock_ms() - began;
    if (spent >= timeout_ms) return false;
    (void)poll(NULL, 0, (int)(pause < timeout_ms - spent ? pause : timeout_ms - spent));
    if (pause < LOOK_MS) pause *= 2;
  }
  return true;
}

int port_posix_take_answer(struct port_posix_lookup *lookup, struct addrinfo **addresses)
{
  int failure = lookup->failure;
  *addresses = lookup->addresses;
  lookup->addresses = NULL;
  release(lookup);
  return failure;
}

/* In a forked process the thread does not exist, so the transport is the only owner. */
void port_posix_give_up(struct port_posix_lookup *lookup)
{
  if (port_posix_forked(lookup->process)) atomic_store(&lookup->owners, 1);
  release(lookup);
}
