/* SPDX-License-Identifier: Apache-2.0 */
#include "rig.h"
#include "support/clock.h"
#include "support/process.h"

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#ifndef MODEM
#define MODEM "tests/boards/modem/modem.py"
#endif

const struct modem_family *const modem_families[2] = {&modem_quectel, &modem_simcom};
int modem_family_number, modem_baud;
struct modem modem;

static pid_t process;
static int terminal = -1, to_process = -1;
static FILE *from_process;

static size_t read_line(void *context, void *data, size_t size)
{
  (void)context;
  ssize_t got = read(terminal, data, size);
  return got > 0 ? (size_t)got : 0;
}

static size_t write_line(void *context, const void *data, size_t size)
{
  (void)context;
  ssize_t done = write(terminal, data, size);
  return done > 0 ? (size_t)done : 0;
}

static void wait_line(void *context, uint32_t timeout_ms)
{
  struct pollfd line = {.fd = terminal, .events = POLLIN};
  (void)context;
  (void)poll(&line, 1, (int)timeout_ms);
}

void modem_restart(void *context)
{
  (void)context;
  (void)modem_told("restart");
}

struct modem_line modem_line = {read_line, write_line, wait_line, modem_restart, NULL};

static const char *const setup[] = {"AT+QICSGP=1,1,\"internet\"", "AT+QIACT=1", NULL};

struct modem_config modem_config = {
    .line = &modem_line, .setup = setup, .host = "redis.example", .port = 6379};

static void end_modem(void)
{
  if (terminal < 0) return;
  slay(process);
  (void)close(terminal);
  (void)close(to_process);
  (void)fclose(from_process);
}

static const char *answer(void)
{
  static char line[128];
  if (fgets(line, sizeof line, from_process) == NULL) give_up("the modem has ended");
  line[strcspn(line, "\n")] = 0;
  return line;
}

void modem_start(int port)
{
  char port_text[8], baud[8];
  const char *const words[] = {
      "python3", MODEM, "--family", modem_family_number == 1 ? "simcom" : "quectel",
      "--baud",  baud,  port_text,  NULL};
  int from = -1;
  end_modem();
  (void)snprintf(port_text, sizeof port_text, "%d", port);
  (void)snprintf(baud, sizeof baud, "%d", modem_baud);
  process = spawn_program(words, &to_process, &from);
  from_process = fdopen(from, "r");
  terminal = open(answer(), O_RDWR | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
  if (terminal < 0) give_up("the modem's terminal");
  modem_config.family = modem_families[modem_family_number];
  modem_reset_device();
}

void modem_reset_device(void)
{
  if (!modem_init(&modem, &modem_config)) give_up("modem_init");
}

const char *modem_told(const char *what)
{
  char line[64];
  int size = snprintf(line, sizeof line, "%s\n", what);
  if (write(to_process, line, (size_t)size) != size) give_up("the modem has ended");
  return answer();
}

void modem_write(const void *data, size_t size)
{
  for (size_t done = 0; done < size;)
    done += write_line(NULL, (const char *)data + done, size - done);
}
