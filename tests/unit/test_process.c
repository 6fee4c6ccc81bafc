/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How port/posix tells a forked process from its parent: here, every process has the same number, as
 * process 1 of each PID namespace has.
 *
 * getpid() and madvise() are wrapped: they count, and on demand play an older system.
 */
#define _DEFAULT_SOURCE 1 /* what -std=c11 hides */

#include "check.h"
#include "port.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static atomic_int asked;   /* calls of getpid() */
static bool numbered;      /* each process has a number of its own */
static bool without_wipe;  /* as Linux before 4.14 */
static bool without_sense; /* any advice is taken, and none followed */

pid_t getpid(void)
{
  atomic_fetch_add(&asked, 1);
  return numbered ? (pid_t)syscall(SYS_getpid) : 1;
}

int madvise(void *memory, size_t size, int advice)
{
  if (without_sense) return 0;
  if (!without_wipe) return (int)syscall(SYS_madvise, memory, size, advice);
  errno = EINVAL;
  return -1;
}

static pid_t fork_by_libc(void)
{
  return fork();
}

/* No handler of pthread_atfork() is called. */
static pid_t fork_by_clone(void)
{
  return (pid_t)syscall(SYS_clone, (unsigned long)SIGCHLD, 0UL, 0UL, 0UL, 0UL);
}

static bool ends_well(pid_t child)
{
  int status = -1;
  return CHECK(child > 0) && CHECK_EQUAL(waitpid(child, &status, 0), child) &&
         CHECK_EQUAL(status, 0);
}

static struct port_mutex first, second, third;

/* The child of a child: 0, or what is wrong. */
static int grandchild(void)
{
  if (!port_mutex_forked(&first) || !port_mutex_forked(&second)) return 5;
  port_mutex_init(&third);
  if (port_mutex_forked(&third)) return 6;
  port_mutex_destroy(&first);
  port_mutex_destroy(&second);
  if (port_mutex_forked(&third)) return 7;
  port_mutex_destroy(&third);
  return 0;
}

/* In a child; 0, or what is wrong. */
static int child(pid_t (*fork_it)(void))
{
  int status = 0;
  if (!port_mutex_forked(&first)) return 1;
  port_mutex_init(&second);
  if (port_mutex_forked(&second) || !port_mutex_forked(&first)) return 2;
  pid_t pid = fork_it();
  if (pid == 0) _exit(grandchild());
  if (pid < 0 || waitpid(pid, &status, 0) != pid || !WIFEXITED(status)) return 3;
  if (port_mutex_forked(&second)) return 4;
  return WEXITSTATUS(status);
}

static bool check_forks(pid_t (*fork_it)(void))
{
  port_mutex_init(&first);
  CHECK(!port_mutex_forked(&first));
  pid_t pid = fork_it();
  if (pid == 0) _exit(child(fork_it));
  bool well = ends_well(pid) && CHECK(!port_mutex_forked(&first));
  port_mutex_destroy(&first);
  return well;
}

static void test_fork(void)
{
  atomic_store(&asked, 0);
  (void)check_forks(fork_by_libc);
  CHECK_EQUAL(asked, 0);
}

static void test_clone(void)
{
  atomic_store(&asked, 0);
  (void)check_forks(fork_by_clone);
  CHECK_EQUAL(asked, 0);
}

/* Without such memory, the number of the process has to do. */
static void test_older_system(void)
{
  numbered = true;
  without_wipe = true;
  (void)check_forks(fork_by_libc);
  without_wipe = false;
  without_sense = true;
  (void)check_forks(fork_by_clone);
  without_sense = false;
  numbered = false;
}

/* Areas of this process's memory that a fork wipes. */
static int wiped_areas(void)
{
  char line[400];
  int count = 0;
  FILE *maps = fopen("/proc/self/smaps", "r");
  if (!CHECK(maps != NULL)) return -1;
  while (fgets(line, sizeof line, maps) != NULL) {
    if (strncmp(line, "VmFlags:", 8) == 0 && strstr(line, " wf") != NULL) count++;
  }
  (void)fclose(maps);
  return count;
}

/* More than are counted: the page then stays. Last, as it does. */
static void test_many(void)
{
  static struct port_mutex many[5000];
  CHECK_EQUAL(wiped_areas(), 0);
  for (size_t i = 0; i < sizeof many / sizeof many[0]; i++)
    port_mutex_init(&many[i]);
  CHECK_EQUAL(wiped_areas(), 1);
  for (size_t i = 0; i < sizeof many / sizeof many[0]; i++) {
    if (!CHECK(!port_mutex_forked(&many[i]))) break;
    port_mutex_destroy(&many[i]);
  }
  CHECK_EQUAL(wiped_areas(), 1);
  (void)check_forks(fork_by_libc);
}

static atomic_bool over;

static void *make_and_destroy(void *context)
{
  struct port_mutex mutex;
  int *wrong = context;
  while (!atomic_load(&over)) {
    port_mutex_init(&mutex);
    *wrong += port_mutex_forked(&mutex);
    port_mutex_destroy(&mutex);
  }
  return NULL;
}

/* The page comes and goes under other threads, and under a fork in the middle of that. */
static void test_threads(void)
{
  pthread_t threads[4];
  int wrong[4] = {0};
  atomic_store(&over, false);
  for (int i = 0; i < 4; i++)
    CHECK_EQUAL(pthread_create(&threads[i], NULL, make_and_destroy, &wrong[i]), 0);
  for (int i = 0; i < 20; i++) {
    if (!check_forks(fork_by_libc)) break;
  }
  atomic_store(&over, true);
  for (int i = 0; i < 4; i++) {
    CHECK_EQUAL(pthread_join(threads[i], NULL), 0);
    CHECK_EQUAL(wrong[i], 0);
  }
  CHECK_EQUAL(wiped_areas(), 0);
}

const struct check_test check_tests[] = {{"process: fork", test_fork},
                                         {"process: clone", test_clone},
                                         {"process: older system", test_older_system},
                                         {"process: nothing is left", test_threads},
                                         {"process: many", test_many},
                                         {0}};
