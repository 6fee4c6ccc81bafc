/*
 * The demo on servers that move: a master, two replicas and three Sentinels, those of the tests of
 * fail-over. `failover DEMO [ARGUMENT]...` starts them, runs the demo with the address of the
 * Sentinels and the process of the master, which the demo kills, and ends them. Its exit status is
 * the demo's.
 */
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

int main(int argc, char **argv)
{
  int status = 2;
  pid_t parent = getpid();
  if (argc < 2) {
    (void)fprintf(stderr, "usage: failover DEMO [ARGUMENT]...\n");
    return 2;
  }
  sentinels_start(&rig, NULL);
  (void)sentinels_be_patient(&rig, false); /* the demo kills the master */
  (void)alarm(0);                          /* people may take their time */
  demo = fork();
  if (demo == 0) {
    leave_signals(SIG_DFL);
    become_demo(argv, parent);
  }
  leave_signals(pass_on);
  while (demo > 0 && waitpid(demo, &status, 0) != demo) {
  }
  rig_stop(&rig);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 2;
}
