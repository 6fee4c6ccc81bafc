/* SPDX-License-Identifier: Apache-2.0 */
/*
 * adopt COMMAND [ARGUMENT]...: executes COMMAND as a process that is given the orphans among its
 * descendants, as process 1 of a container is. Exits with 77 where the system has no such thing.
 */
#include <stdio.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/prctl.h>
#endif

int main(int argc, char **argv)
{
#ifdef PR_SET_CHILD_SUBREAPER
  if (argc < 2 || prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0) return 77;
  (void)execvp(argv[1], argv + 1);
  perror(argv[1]);
  return 127;
#else
  (void)argc;
  (void)argv;
  return 77;
#endif
}
