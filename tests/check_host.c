/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs a suite on the host: prints to stdout; an argument picks the tests whose name contains it.
 */
#include "check.h"

#include <stdio.h>

void check_write(const char *text)
{
  fputs(text, stdout);
  fflush(stdout);
}

int main(int argc, char **argv)
{
  return check_run(argc > 1 ? argv[1] : NULL) > 0;
}
