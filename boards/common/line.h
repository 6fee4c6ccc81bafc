/* SPDX-License-Identifier: Apache-2.0 */
/* The second UART as a line, for a port that has functions for one. */
#ifndef LINE_H
#define LINE_H

#include "board.h"

static inline size_t read_line(void *context, void *data, size_t size)
{
  (void)context;
  return board_line_read(data, size);
}

static inline size_t write_line(void *context, const void *data, size_t size)
{
  (void)context;
  return board_line_write(data, size);
}

static inline void wait_line(void *context, uint32_t timeout_ms)
{
  (void)context;
  (void)timeout_ms;
  board_idle();
}

#endif
