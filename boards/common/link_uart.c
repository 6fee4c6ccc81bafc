/* The second UART as a line to a bridge on the simulator's host. */
#include "link.h"
#include "board.h"
#include "port_uart.h"

static size_t read_line(void *context, void *data, size_t size)
{
  (void)context;
  return board_line_read(data, size);
}

static size_t write_line(void *context, const void *data, size_t size)
{
  (void)context;
  return board_line_write(data, size);
}

static void wait_line(void *context, uint32_t timeout_ms)
{
  (void)context;
  (void)timeout_ms;
  board_idle();
}

void port_idle(uint32_t ms)
{
  (void)ms; /* the tick ends it within a millisecond */
  board_idle();
}

bool link_start(struct fairlock_client *client, const struct fairlock_config *config)
{
  static const struct port_uart_line line = {read_line, write_line, wait_line, NULL};
  static struct port_uart uart;
  board_line_init();
  port_uart_init(&uart, &line, board_random());
  return fairlock_client_init(client, config, &uart.transport) == FAIRLOCK_OK;
}
