/* SPDX-License-Identifier: Apache-2.0 */
/* Processes, descriptors and time, where POSIX alone is not enough. */
#define _DEFAULT_SOURCE 1 /* what -std=c11 hides */

#include "system.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "command.h"
#include "port.h"
#include "text.h"

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
  /* the parent has died before prctl(), so the signal will not come */
  if (getppid() != parent) _exit(EXIT_SYSTEM);
}

void system_hide_memory(void)
{
  (void)prctl(PR_SET_DUMPABLE, 0);
}

bool system_adopt(void)
{
  return prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0;
}

/* What /proc/PID/stat says. After the program's name, which may be anything, is the last ')'. */
struct process {
  int id;
  int parent;
  int group;
  char state;
  long threads;
  unsigned long long start; /* its start time: a later process may have the same id */
  bool below;               /* it descends from `root`, see mark_below()            */
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
  int found = sscanf(
      rest + 1, " %c %d %d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %ld %*d %llu",
      &process->state, &process->parent, &process->group, &process->threads, &process->start);
  process->id = (int)strtol(id, NULL, 10);
  process->below = false;
  return found == 5 ? SEEN : UNKNOWN;
}

/* True if /proc shows our PID namespace, and not other processes under the numbers we know. */
static bool proc_is_ours(void)
{
  char line[128];
  int id = 0;
  int inner = 0;
  FILE *file = fopen("/proc/self/status", "re");
  while (file != NULL && fgets(line, sizeof line, file) != NULL) {
    (void)sscanf(line, "Pid: %d", &id);
    (void)sscanf(line, "NSpid: %*d %d", &inner); /* our number in a namespace below that of /proc */
  }
  if (file != NULL) (void)fclose(file);
  return id == (int)getpid() && inner == 0;
}

/* A process whose first thread alone has ended is shown as a zombie, too. */
static bool is_dead(const struct process *process)
{
  return (process->state == 'Z' || process->state == 'X') && process->threads <= 1;
}

/* True only if the group is known to have zombies and nothing else. */
static bool only_zombies(pid_t group)
{
  struct process process;
  if (!proc_is_ours() || look_at("1", &process) != SEEN)
    return false; /* it may also hide the processes of other users */
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

/* All processes that /proc shows, sorted by id. */
struct processes {
  struct process *list;
  size_t count, room;
};

static bool add_process(struct processes *all, const struct process *process)
{
  if (all->count == all->room) {
    size_t room = all->room == 0 ? 256 : 2 * all->room;
    struct process *list = realloc(all->list, room * sizeof *list);
    if (list == NULL) return false;
    all->list = list;
    all->room = room;
  }
  all->list[all->count++] = *process;
  return true;
}

static int by_id(const void *a, const void *b)
{
  const struct process *first = a;
  const struct process *second = b;
  return (first->id > second->id) - (first->id < second->id);
}

static struct process *find_process(const struct processes *all, int id)
{
  struct process wanted = {.id = id};
  return bsearch(&wanted, all->list, all->count, sizeof wanted, by_id);
}

/* True if the process was executed under the hold of this id. */
static bool is_under(const struct process *process, const char *holder)
{
  static const char name[] = "FAIRLOCK_HOLDERS=";
  char path[64];
  char *line = NULL;
  size_t room = 0;
  bool found = false;
  snprintf(path, sizeof path, "/proc/%d/environ", process->id);
  FILE *file = fopen(path, "re");
  while (file != NULL && !found && getdelim(&line, &room, 0, file) > 0)
    found = strncmp(line, name, sizeof name - 1) == 0 &&
            has_word(line + sizeof name - 1, holder, strlen(holder));
  if (file != NULL) (void)fclose(file);
  free(line);
  return found;
}

static bool list_processes(struct processes *all)
{
  DIR *processes = opendir("/proc");
  bool listed = processes != NULL;
  const struct dirent *entry;
  all->count = 0;
  while (listed && (entry = readdir(processes)) != NULL) {
    struct process process;
    if (!isdigit((unsigned char)entry->d_name[0])) continue;
    if (look_at(entry->d_name, &process) == SEEN) listed = add_process(all, &process);
  }
  if (processes != NULL) (void)closedir(processes);
  if (listed && all->count > 1) qsort(all->list, all->count, sizeof *all->list, by_id);
  return listed && all->count > 0;
}

/* True if a process has ended while the list was made. Its children have another parent by now. */
static bool is_torn(const struct processes *all)
{
  for (size_t i = 0; i < all->count; i++) {
    int parent = all->list[i].parent;
    if (parent != 0 && find_process(all, parent) == NULL) return true;
  }
  return false;
}

static void mark_below(const struct processes *all, pid_t root, pid_t except, const char *holder)
{
  for (bool more = true; more;) {
    more = false;
    for (size_t i = 0; i < all->count; i++) {
      struct process *process = &all->list[i];
      if (process->below || process->id == (int)except) continue;
      const struct process *parent = find_process(all, process->parent);
      bool child = process->parent == (int)root;
      if (child && holder != NULL && !is_under(process, holder)) continue;
      if (!child && (parent == NULL || !parent->below)) continue;
      process->below = true;
      more = true;
    }
  }
}

/* Sends a signal, and then SIGCONT, to the process, unless another one has its id by now. */
static void signal_process(const struct process *process, int number)
{
#if defined SYS_pidfd_open && defined SYS_pidfd_send_signal
  char id[24];
  struct process now;
  int handle = (int)syscall(SYS_pidfd_open, process->id, 0);
  if (handle >= 0) {
    snprintf(id, sizeof id, "%d", process->id);
    if (look_at(id, &now) == SEEN && now.start == process->start) {
      (void)syscall(SYS_pidfd_send_signal, handle, number, NULL, 0);
      if (number != SIGKILL) (void)syscall(SYS_pidfd_send_signal, handle, SIGCONT, NULL, 0);
    }
    (void)close(handle);
    return;
  }
  if (errno == ESRCH) return;
#endif
  (void)kill((pid_t)process->id, number);
  if (number != SIGKILL) (void)kill((pid_t)process->id, SIGCONT);
}

/* Signals the processes that are marked. number 0: none. Returns how many there are. */
static int signal_below(const struct processes *all, pid_t group, int number)
{
  int count = 0;
  for (size_t i = 0; i < all->count; i++) {
    const struct process *process = &all->list[i];
    if (!process->below) continue;
    count++;
    if (number != 0 && !is_dead(process) && (group == 0 || process->group != (int)group))
      signal_process(process, number);
  }
  return count;
}

/*
 * Kills the children of root. This is quick: while all processes are listed, a busy machine lets a
 * child start another one and end. Not every kernel has the file.
 */
static void kill_children(pid_t root, pid_t except, pid_t group, const char *holder)
{
  char text[4096];
  char *next;
  struct process child;
  snprintf(text, sizeof text, "/proc/%d/task/%d/children", (int)root, (int)root);
  int file = open(text, O_RDONLY | O_CLOEXEC);
  ssize_t got = file < 0 ? 0 : read(file, text, sizeof text - 1);
  if (file >= 0) (void)close(file);
  text[got > 0 ? got : 0] = 0;
  for (char *at = text; strtol(at, &next, 10) > 0; at = next) {
    char id[24];
    snprintf(id, sizeof id, "%ld", strtol(at, NULL, 10));
    bool ours = look_at(id, &child) == SEEN && child.parent == (int)root; /* the last may be cut */
    if (!ours || is_dead(&child) || child.id == (int)except) continue;
    if (holder != NULL && !is_under(&child, holder)) continue;
    if (group == 0 || child.group != (int)group) signal_process(&child, SIGKILL);
  }
}

#define MOST_LOOKS 3 /* how often to list the processes anew, if some end meanwhile */

/* Lists all processes, and marks those that descend from root. */
static bool list_below(struct processes *all, pid_t root, pid_t except, const char *holder)
{
  bool listed = list_processes(all);
  for (int looks = 1; listed && looks < MOST_LOOKS && is_torn(all); looks++)
    listed = list_processes(all);
  if (listed) mark_below(all, root, except, holder);
  return listed;
}

int system_signal_below(pid_t root, pid_t except, pid_t group, const char *holder, int number)
{
  struct processes all = {0};
  int count = -1;
  if (!proc_is_ours()) return -1;
  if (number == SIGKILL) kill_children(root, except, group, holder);
  if (list_below(&all, root, except, holder)) count = signal_below(&all, group, number);
  free(all.list);
  return count;
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

/* poll() whose time limit counts while the machine is suspended, as CLOCK_BOOTTIME does. */
static int poll_for(struct pollfd *sources, size_t count, int ms)
{
  struct itimerspec due = {.it_value = {ms / 1000, (long)(ms % 1000) * 1000000L}};
  int timer = ms > 0 ? timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC) : -1;
  bool timed = timer >= 0 && timerfd_settime(timer, 0, &due, NULL) == 0;
  int wait = ms > (int)PORT_WAIT_MAX_MS ? (int)PORT_WAIT_MAX_MS : ms;
  sources[count] = (struct pollfd){.fd = timer, .events = POLLIN};
  int ready = poll(sources, (nfds_t)(count + 1), timed ? -1 : wait);
  if (timer >= 0) (void)close(timer);
  return ready;
}

#else

void system_die_with(pid_t parent)
{
  if (getppid() != parent) _exit(EXIT_SYSTEM);
}

void system_hide_memory(void)
{
}

#if defined __FreeBSD__
#include <stdlib.h>
#include <sys/procctl.h>

bool system_adopt(void)
{
  return procctl(P_PID, getpid(), PROC_REAP_ACQUIRE, NULL) == 0;
}

/* FreeBSD lists the descendants, but not those below another one that adopts: so this recurses. */
int system_signal_below(pid_t root, pid_t except, pid_t group, const char *holder, int number)
{
  struct procctl_reaper_status status;
  if (holder != NULL || procctl(P_PID, root, PROC_REAP_STATUS, &status) != 0) return -1;
  unsigned room = status.rs_descendants + 64;
  struct procctl_reaper_pidinfo *list = calloc(room, sizeof *list);
  struct procctl_reaper_pids all = {.rp_count = room, .rp_pids = list};
  int count = list != NULL && procctl(P_PID, root, PROC_REAP_GETPIDS, &all) == 0 ? 0 : -1;
  for (unsigned i = 0; count >= 0 && i < room && (list[i].pi_flags & REAPER_PIDINFO_VALID) != 0;
       i++) {
    pid_t id = list[i].pi_pid;
    if (id == except) continue;
    count++;
    if (id != root && (list[i].pi_flags & REAPER_PIDINFO_REAPER) != 0) {
      int more = system_signal_below(id, except, group, NULL, number);
      if (more > 0) count += more;
    }
    if (number == 0 || (group != 0 && getpgid(id) == group)) continue;
    (void)kill(id, number);
    if (number != SIGKILL) (void)kill(id, SIGCONT);
  }
  free(list);
  return count;
}

#else

bool system_adopt(void)
{
  return false;
}

int system_signal_below(pid_t root, pid_t except, pid_t group, const char *holder, int number)
{
  (void)root;
  (void)except;
  (void)group;
  (void)holder;
  (void)number;
  return -1;
}

#endif

static bool only_zombies(pid_t group)
{
  (void)group;
  return false;
}

static bool close_range_of(int first, int last)
{
  return first > last;
}

static int poll_for(struct pollfd *sources, size_t count, int ms)
{
  int wait = ms > (int)PORT_WAIT_MAX_MS ? (int)PORT_WAIT_MAX_MS : ms;
  return poll(sources, (nfds_t)count, wait);
}

#endif

bool system_wait(const int *descriptors, bool *can_read, size_t count, int ms)
{
  struct pollfd sources[SYSTEM_WAIT_MOST + 1];
  bool any = false;
  for (size_t i = 0; i < count; i++)
    sources[i] = (struct pollfd){.fd = descriptors[i], .events = POLLIN};
  int ready = poll_for(sources, count, ms);
  for (size_t i = 0; i < count; i++) {
    can_read[i] = ready > 0 && sources[i].revents != 0;
    any = any || can_read[i];
  }
  return any;
}

#define MOST_DESCRIPTORS 65536 /* closing more than these, one by one, would take minutes */

bool system_group_lives(pid_t group)
{
  if (kill(-group, 0) != 0 && errno == ESRCH) return false;
  return !only_zombies(group);
}

bool system_fill_standard(void)
{
  for (int i = 0; i <= STDERR_FILENO; i++) {
    if (fcntl(i, F_GETFD) >= 0) continue;
    /* open() returns i, the lowest that is free. The wrong way, so that using it still fails. */
    int way = i == STDIN_FILENO ? O_WRONLY : O_RDONLY;
    if (open("/dev/null", way | O_CLOEXEC) < 0) return false;
  }
  return true;
}

int system_watch(pid_t pid)
{
#if defined SYS_pidfd_open && !defined FAIRLOCK_PLAIN_POSIX
  return (int)syscall(SYS_pidfd_open, pid, 0);
#else
  (void)pid;
  errno = ENOSYS;
  return -1;
#endif
}

static bool is_among(int descriptor, const int *keep, size_t count)
{
  for (size_t i = 0; i < count; i++) {
    if (keep[i] == descriptor) return true;
  }
  return false;
}

static void close_others(const int *keep, size_t count)
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

void system_let_go(const int *keep, size_t count)
{
  int nothing = open("/dev/null", O_RDWR);
  for (int i = 0; i < 3 && nothing >= 0; i++)
    (void)dup2(nothing, i);
  close_others(keep, count);
}
