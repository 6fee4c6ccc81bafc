/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs a suite of the host on a board: the lines go to the log, and the exit status to whoever runs
 * the simulator.
 */
#include "board.h"
#include "check.h"

void check_write(const char *text)
{
  board_write(text);
}

int main(void)
{
  return check_run(NULL) > 0;
}
