/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A simulated Mega 2560 between its console and the gateway's end of its second serial line:
 *     mega IMAGE BRIDGE HOST PORT
 * Serial is our standard input and output; Serial1 is the line of the program BRIDGE. A byte comes in
 * for each ten bits that a line of its speed would take. The board's clock keeps to this machine's.
 * It ends with its standard input.
 */
#define _DEFAULT_SOURCE 1 /* what -std=c11 hides */

#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <avr_uart.h>
#include <sim_avr.h>
#include <sim_elf.h>

#define HERTZ   16000000U
#define STEP_US 1000U
#define STEP    (HERTZ / 1000000 * STEP_US)

struct line {
  avr_irq_t *input;
  avr_cycle_count_t byte_cycles;
  int from, to;
  bool ended;
};

static avr_t *board;

static void die(const char *what)
{
  perror(what);
  exit(2);
}

static uint64_t now_us(void)
{
  struct timespec time;
  (void)clock_gettime(CLOCK_MONOTONIC, &time);
  return (uint64_t)time.tv_sec * 1000000 + (uint64_t)time.tv_nsec / 1000;
}

/* The board has sent a byte. */
static void on_output(struct avr_irq_t *irq, uint32_t value, void *context)
{
  const struct line *line = context;
  char byte = (char)value;
  (void)irq;
  if (write(line->to, &byte, 1) != 1) die("write");
}

/* The time of one more byte is over; or there was none for a while. */
static avr_cycle_count_t on_byte(struct avr_t *avr, avr_cycle_count_t when, void *context)
{
  struct line *line = context;
  struct pollfd end = {.fd = line->from, .events = POLLIN};
  uint8_t byte;
  (void)avr;
  if (poll(&end, 1, 0) <= 0) return when + STEP;
  if (read(line->from, &byte, 1) == 1) avr_raise_irq(line->input, byte);
  else line->ended = true;
  return when + line->byte_cycles;
}

/* The processor sleeps until its next interrupt: main() is what takes as long. */
static void on_sleep(avr_t *avr, avr_cycle_count_t cycles)
{
  (void)avr;
  (void)cycles;
}

static void attach(struct line *line, uint32_t name, uint32_t baud)
{
  uint32_t flags = 0;
  avr_ioctl(board, AVR_IOCTL_UART_SET_FLAGS(name), &flags);
  line->input = avr_io_getirq(board, AVR_IOCTL_UART_GETIRQ(name), UART_IRQ_INPUT);
  line->byte_cycles = 10 * (HERTZ / baud);
  avr_irq_register_notify(avr_io_getirq(board, AVR_IOCTL_UART_GETIRQ(name), UART_IRQ_OUTPUT),
                          on_output, line);
  avr_cycle_timer_register(board, line->byte_cycles, on_byte, line);
}

/* Starts the bridge, and returns our end of its line. */
static int start_bridge(char **arguments)
{
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0) die("socketpair");
  pid_t child = fork();
  if (child < 0) die("fork");
  if (child == 0) {
    (void)close(ends[0]);
    (void)dup2(ends[1], STDIN_FILENO);
    (void)dup2(ends[1], STDOUT_FILENO);
    (void)execv(arguments[0], arguments);
    die(arguments[0]);
  }
  (void)close(ends[1]);
  return ends[0];
}

static void load(const char *image)
{
  static elf_firmware_t firmware;
  board = avr_make_mcu_by_name("atmega2560");
  if (board == NULL || elf_read_firmware(image, &firmware) != 0) die(image);
  avr_init(board);
  board->sleep = on_sleep;
  firmware.frequency = HERTZ;
  avr_load_firmware(board, &firmware);
}

int main(int argc, char **argv)
{
  if (argc != 5) return 64;
  load(argv[1]);
  int bridge = start_bridge(argv + 2);
  struct line console = {.from = STDIN_FILENO, .to = STDOUT_FILENO};
  struct line gateway = {.from = bridge, .to = bridge};
  attach(&console, '0', 115200);
  attach(&gateway, '1', 38400);
  uint64_t due = now_us();
  while (!console.ended && !gateway.ended) {
    avr_cycle_count_t end = board->cycle + STEP;
    while (board->cycle < end) {
      int state = avr_run(board);
      if (state == cpu_Done || state == cpu_Crashed) die("the board has stopped");
    }
    uint64_t now = now_us();
    due += STEP_US;
    if (due > now) (void)usleep((useconds_t)(due - now));
  }
  return gateway.ended;
}
