/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The demo on servers that move: a master, two replicas and three Sentinels, those of the tests of
 * fail-over. `failover DEMO [ARGUMENT]...` starts them, runs the demo with the address of the
 * Sentinels and the process of the master, which the demo kills, and ends them. Its exit status is
 * the demo's.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "failover/rig.h"

/* The rig comes with checks of its own, for a program that has tests. */
const struct check_test check_tests[] = {{NULL, NULL}};

void check_write(const char *text)
{
  (void)fputs(text, stderr);
}

static struct rig rig;

static _Noreturn void become_demo(char **argv, pid_t parent)
{
  static char url[200], process[16];
  char *words[20] = {argv[1], "--url", url, "--kill", process};
  rig_url(&rig, 3, url, sizeof url);
  (void)snprintf(process, sizeof process, "%d", (int)rig.node[0].pid);
  for (int i = 2; argv[i] != NULL && i + 4 < 20; i++)
    words[i + 3] = argv[i];
  die_with(parent);
  (void)execv(words[0], words);
  perror(words[0]);
  _exit(2);
}

/* The demo ends by itself on these, and then we do. */
static void leave_signals(void (*handler)(int number))
{
  static const int numbers[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
  for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
    (void)signal(numbers[i], handler);
}

static pid_t demo;

static void pass_on(int number)
{
  (void)kill(demo, number);
}

/* A server has ended. Once the demo has killed the master, the Sentinels look for the next one. */
static void note_end(pid_t process)
{
  if (process == rig.node[0].pid) {
    node_kill(&rig.node[0]);
    (void)sentinels_be_patient(&rig, false);
  } else {
    (void)waitpid(process, NULL, 0);
  }
}

static int await_demo(void)
{
  int status = 2;
  siginfo_t ended = {0};
  while (demo > 0) {
    if (waitid(P_ALL, 0, &ended, WEXITED | WNOWAIT) != 0) {
      if (errno == EINTR) continue;
      break;
    }
    if (ended.si_pid != demo) {
      note_end(ended.si_pid);
      continue;
    }
    (void)waitpid(demo, &status, 0);
    break;
  }
  return status;
}

int main(int argc, char **argv)
{
  pid_t parent = getpid();
  if (argc < 2) {
    (void)fprintf(stderr, "usage: failover DEMO [ARGUMENT]...\n");
    return 2;
  }
  sentinels_start(&rig, NULL);
  (void)alarm(0); /* people may take their time */
  demo = fork();
  if (demo == 0) {
    leave_signals(SIG_DFL);
    become_demo(argv, parent);
  }
  leave_signals(pass_on);
  int status = await_demo();
  rig_stop(&rig);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 2;
}
