/* SPDX-License-Identifier: Apache-2.0 */
/* Processes; see process.h. Linux: nothing else ends the children of a killed program. */
#include "process.h"
#include "clock.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

static pid_t owner; /* the process of the suite */
static pid_t children[256];
static char folders[16][40];

void give_up(const char *why)
{
  printf("not ok harness: %s: %s\n", why, strerror(errno));
  exit(1);
}

/* On a signal, too. */
static void remove_all(const char *folder)
{
  static const char *const files[] = {"/log", "/dump.rdb"};
  for (size_t i = 0; i < COUNT(files); i++) {
    char path[80];
    strcpy(path, folder);
    strcat(path, files[i]);
    (void)unlink(path);
  }
  (void)chmod(folder, 0700);
  (void)rmdir(folder);
}

static void kill_children(void)
{
  for (size_t i = 0; i < COUNT(children); i++) {
    if (children[i] > 0) (void)kill(children[i], SIGKILL);
  }
}

static void remove_folders(void)
{
  for (size_t i = 0; i < COUNT(folders); i++) {
    if (folders[i][0] != 0) remove_all(folders[i]);
    folders[i][0] = 0;
  }
}

static void clean_up(void)
{
  if (getpid() != owner) return;
  slay_all_but(0);
  remove_folders();
}

static void on_signal(int number)
{
  static const char late[] = "# the test took too long, or was interrupted\nnot ok harness\n";
  if (getpid() == owner) {
    kill_children();
    (void)!write(STDOUT_FILENO, late, sizeof late - 1);
    remove_folders();
  }
  _exit(128 + number);
}

static void set_up(void)
{
  static const int signals[] = {SIGALRM, SIGINT, SIGTERM, SIGHUP};
  if (owner != 0) return;
  owner = getpid();
  (void)atexit(clean_up);
  (void)signal(SIGPIPE, SIG_IGN);
  for (size_t i = 0; i < COUNT(signals); i++)
    (void)signal(signals[i], on_signal);
}

void die_with(pid_t parent)
{
  (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(1);
}

static pid_t fork_child(void)
{
  set_up();
  (void)fflush(stdout);
  pid_t pid = fork();
  if (pid < 0) give_up("fork");
  if (pid == 0) {
    (void)alarm(0);
    die_with(owner);
    return 0;
  }
  for (size_t i = 0; i < COUNT(children); i++) {
    if (children[i] == 0) {
      children[i] = pid;
      return pid;
    }
  }
  (void)kill(pid, SIGKILL);
  give_up("too many children");
}

pid_t spawn(void (*run)(int index, void *context), int index, void *context)
{
  pid_t pid = fork_child();
  if (pid == 0) {
    run(index, context);
    (void)fflush(stdout);
    _exit(0);
  }
  return pid;
}

static void run_program(const char *const *words, int in, int out)
{
  (void)dup2(in, STDIN_FILENO);
  (void)dup2(out, STDOUT_FILENO);
  (void)execvp(words[0], (char *const *)(uintptr_t)words);
  (void)fprintf(stderr, "# cannot run %s: %s\n", words[0], strerror(errno));
  _exit(127);
}

static void close_on_exec(const int ends[2])
{
  (void)fcntl(ends[0], F_SETFD, FD_CLOEXEC);
  (void)fcntl(ends[1], F_SETFD, FD_CLOEXEC);
}

void open_pipe(int ends[2])
{
  if (pipe(ends) != 0) give_up("pipe");
  close_on_exec(ends);
}

static void open_ends(bool piped, int ends[2])
{
  if (piped) {
    open_pipe(ends);
    return;
  }
  ends[0] = ends[1] = open("/dev/null", O_RDWR);
  close_on_exec(ends);
}

pid_t spawn_program(const char *const *words, int *in, int *out)
{
  int to[2], from[2];
  open_ends(in != NULL, to);
  open_ends(out != NULL, from);
  pid_t pid = fork_child();
  if (pid == 0) run_program(words, to[0], from[1]);
  (void)close(to[0]);
  (void)close(from[1]);
  if (in != NULL) *in = to[1];
  if (out != NULL) *out = from[0];
  return pid;
}

static void forget_child(pid_t pid)
{
  for (size_t i = 0; i < COUNT(children); i++) {
    if (children[i] == pid) children[i] = 0;
  }
}

int reap(pid_t pid)
{
  int64_t until = now_ms() + SOON;
  int status = -1; /* for one that was reaped before */
  while (waitpid(pid, &status, WNOHANG) == 0) {
    if (now_ms() > until) return -1;
    sleep_ms(5);
  }
  forget_child(pid);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

void slay(pid_t pid)
{
  for (size_t i = 0; i < COUNT(children); i++) {
    if (pid <= 0 || children[i] != pid) continue;
    (void)kill(pid, SIGKILL);
    (void)waitpid(pid, NULL, 0);
    children[i] = 0;
  }
}

void slay_all_but(pid_t pid)
{
  for (size_t i = 0; i < COUNT(children); i++) {
    if (children[i] != pid) slay(children[i]);
  }
}

void own_folder(char folder[40])
{
  set_up();
  (void)snprintf(folder, 40, "/tmp/fairlock-test-XXXXXX");
  if (mkdtemp(folder) == NULL) give_up("mkdtemp");
  for (size_t i = 0; i < COUNT(folders); i++) {
    if (folders[i][0] != 0) continue;
    memcpy(folders[i], folder, sizeof folders[i]);
    return;
  }
  give_up("too many folders");
}

void remove_folder(const char *folder)
{
  remove_all(folder);
  for (size_t i = 0; i < COUNT(folders); i++) {
    if (strcmp(folders[i], folder) == 0) folders[i][0] = 0;
  }
}

void *share(size_t size)
{
  void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) give_up("mmap");
  return memory;
}
