/* Processes, descriptors and time, where POSIX alone is not enough. */
#define _DEFAULT_SOURCE 1 /* what -std=c11 hides */

#include "system.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include "command.h"
#include "port.h"

#if defined __linux__ && !defined FAIRLOCK_PLAIN_POSIX
#include <ctype.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <time.h>

void system_die_with(pid_t parent)
{
  (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
  /* it died before the request was made: no signal will come */
  if (getppid() != parent) _exit(EXIT_SYSTEM);
}

void system_hide_memory(void)
{
  (void)prctl(PR_SET_DUMPABLE, 0);
}

/* A line of /proc/PID/stat. The name in it may hold anything, but nothing after it has a ')'. */
struct process {
  int group;
  char state;
  long threads;
};

enum look { GONE, SEEN, UNKNOWN };

static enum look look_at(const char *id, struct process *process)
{
  char path[64];
  char line[1024];
  snprintf(path, sizeof path, "/proc/%.20s/stat", id);
  int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return errno == ENOENT || errno == ESRCH ? GONE : UNKNOWN;
  ssize_t got = read(file, line, sizeof line - 1);
  int error = errno;
  (void)close(file);
  if (got <= 0) return got == 0 || error == ESRCH ? GONE : UNKNOWN;
  line[got] = 0;
  const char *rest = strrchr(line, ')');
  if (rest == NULL) return UNKNOWN;
  int found =
      sscanf(rest + 1, " %c %*d %d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %ld",
             &process->state, &process->group, &process->threads);
  return found == 3 ? SEEN : UNKNOWN;
}

/*
 * A process whose first thread has ended is shown as a zombie, too, while others of its threads
 * run.
 */
static bool is_dead(const struct process *process)
{
  return (process->state == 'Z' || process->state == 'X') && process->threads <= 1;
}

/* True only if the group is known to have zombies and nothing else. */
static bool only_zombies(pid_t group)
{
  struct process process;
  if (look_at("1", &process) != SEEN) return false; /* other users' processes are hidden from us */
  DIR *processes = opendir("/proc");
  if (processes == NULL) return false;
  bool zombies = false;
  bool others = false;
  const struct dirent *entry;
  while (!others && (entry = readdir(processes)) != NULL) {
    if (!isdigit((unsigned char)entry->d_name[0])) continue;
    enum look look = look_at(entry->d_name, &process);
    if (look == UNKNOWN) others = true;
    if (look != SEEN || process.group != (int)group) continue;
    if (is_dead(&process)) zombies = true;
    else others = true;
  }
  (void)closedir(processes);
  return zombies && !others;
}

#ifdef SYS_close_range
static bool close_range_of(int first, int last)
{
  return first > last || syscall(SYS_close_range, (unsigned)first, (unsigned)last, 0U) == 0;
}
#else
static bool close_range_of(int first, int last)
{
  return first > last;
}
#endif

/*
 * CLOCK_BOOTTIME runs while the machine is suspended: what became due meanwhile is due as soon
 * as it wakes.
 */
bool system_wait(int descriptor, int ms)
{
  struct itimerspec due = {.it_value = {ms / 1000, (long)(ms % 1000) * 1000000L}};
  int timer = ms > 0 ? timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC) : -1;
  bool timed = timer >= 0 && timerfd_settime(timer, 0, &due, NULL) == 0;
  struct pollfd sources[] = {{.fd = descriptor, .events = POLLIN}, {.fd = timer, .events = POLLIN}};
  int wait = ms > (int)PORT_WAIT_MAX_MS ? (int)PORT_WAIT_MAX_MS : ms;
  int ready = poll(sources, 2, timed ? -1 : wait);
  if (timer >= 0) (void)close(timer);
  return ready > 0 && sources[0].revents != 0;
}

#else

void system_die_with(pid_t parent)
{
  if (getppid() != parent) _exit(EXIT_SYSTEM);
}

void system_hide_memory(void)
{
}

static bool only_zombies(pid_t group)
{
  (void)group;
  return false;
}

static bool close_range_of(int first, int last)
{
  return first > last;
}

bool system_wait(int descriptor, int ms)
{
  struct pollfd source = {.fd = descriptor, .events = POLLIN};
  int wait = ms > (int)PORT_WAIT_MAX_MS ? (int)PORT_WAIT_MAX_MS : ms;
  return poll(&source, 1, wait) > 0;
}

#endif

#define MOST_DESCRIPTORS 65536 /* when the system has no limit, or one that would take minutes */

bool system_group_lives(pid_t group)
{
  if (kill(-group, 0) != 0 && errno == ESRCH) return false;
  return !only_zombies(group);
}

bool system_fill_standard(void)
{
  for (int i = 0; i <= STDERR_FILENO; i++) {
    if (fcntl(i, F_GETFD) >= 0) continue;
    /* the lowest that is free, so it is i; opened for what nobody does with it */
    int way = i == STDIN_FILENO ? O_WRONLY : O_RDONLY;
    if (open("/dev/null", way | O_CLOEXEC) < 0) return false;
  }
  return true;
}

static bool is_among(int descriptor, const int *keep, size_t count)
{
  for (size_t i = 0; i < count; i++) {
    if (keep[i] == descriptor) return true;
  }
  return false;
}

void system_close_others(const int *keep, size_t count)
{
  long limit = sysconf(_SC_OPEN_MAX);
  int end = limit > 0 && limit < MOST_DESCRIPTORS ? (int)limit : MOST_DESCRIPTORS;
  int last = 2;
  for (size_t i = 0; i < count; i++) {
    if (keep[i] > last) last = keep[i];
  }
  bool rest_closed = close_range_of(last + 1, 0x7fffffff);
  for (int i = 3; i < (rest_closed ? last : end); i++) {
    if (!is_among(i, keep, count)) (void)close(i);
  }
}
