/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs a suite of the host on an AVR, where int and size_t have 16 bits. The simulated machine is a
 * bare processor with memory, which avr.sh reads from outside: the suite's lines stand in avr_log,
 * and avr_status tells when it is over.
 */
#include "check.h"

#define LOG_SIZE 8192U

/* Found by their names. */
extern char avr_log[LOG_SIZE];
extern volatile uint8_t avr_status; /* 0: the suite is running; otherwise its exit status plus 1 */

char avr_log[LOG_SIZE];
volatile uint8_t avr_status;

static size_t written;

void check_write(const char *text)
{
  while (*text != 0 && written < LOG_SIZE)
    avr_log[written++] = *text++;
}

int main(void)
{
  bool failed = check_run(NULL) > 0;
  if (written == LOG_SIZE) failed = true; /* what found no room may tell of a failure */
  avr_status = (uint8_t)(1 + failed);
  for (;;) { /* until the simulator is ended */
  }
}
