/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Boards in the simulator; see rig.h. They are run by build/firmware/BOARD/run, which knows the
 * simulator's options.
 */
#include "rig.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#ifndef FIRMWARE
#define FIRMWARE "build/firmware"
#endif
#ifndef BRIDGE
#define BRIDGE "build/uart-bridge"
#endif
#ifndef FAIRLOCK
#define FAIRLOCK "build/fairlock" /* the makefile says where it really is */
#endif

const char *board_options = "";

struct start {
  char program[128], image[128];
  const char *const *arguments;
  int log[2], control[2];
  int line; /* -1: none */
};

/* In the child. */
static void run(int index, void *context)
{
  const struct start *start = context;
  const char *words[16] = {start->program, start->image};
  char flags[200];
  (void)index;
  for (size_t i = 0; start->arguments[i] != NULL; i++)
    words[2 + i] = start->arguments[i];
  (void)fcntl(start->control[1], F_SETFD, 0);
  int size = snprintf(flags, sizeof flags,
                      "-chardev socket,id=control,fd=%d -mon chardev=control,mode=control%s",
                      start->control[1], board_options);
  if (start->line >= 0) {
    (void)fcntl(start->line, F_SETFD, 0);
    (void)snprintf(flags + size, sizeof flags - (size_t)size,
                   " -chardev socket,id=line,fd=%d -serial chardev:line", start->line);
  }
  (void)setenv("QEMU_FLAGS", flags, 1);
  (void)dup2(start->log[1], STDOUT_FILENO);
  (void)execv(start->program, (char *const *)(uintptr_t)words);
  (void)fprintf(stderr, "# cannot run %s: %s\n", start->program, strerror(errno));
  _exit(127);
}

static void command(const struct board *board, const char *text)
{
  (void)!write(board->control, text, strlen(text));
}

void board_start(struct board *board, const char *name, const char *image,
                 const char *const arguments[])
{
  board_start_with_line(board, name, image, arguments, -1);
}

void board_start_with_line(struct board *board, const char *name, const char *image,
                           const char *const arguments[], int line)
{
  struct start start = {.arguments = arguments, .line = line};
  memset(board, 0, sizeof *board);
  (void)snprintf(start.program, sizeof start.program, FIRMWARE "/%s/run", name);
  (void)snprintf(start.image, sizeof start.image, FIRMWARE "/%s/%s.elf", name, image);
  open_pipe(start.log);
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, start.control) != 0) give_up("socketpair");
  board->pid = spawn(run, 0, &start);
  board->log = start.log[0];
  board->control = start.control[0];
  (void)close(start.log[1]);
  (void)close(start.control[1]);
  command(board, "{\"execute\": \"qmp_capabilities\"}\n");
}

struct bridge {
  int line;
  const char *port;
};

static void run_bridge(int index, void *context)
{
  const struct bridge *bridge = context;
  (void)index;
  (void)dup2(bridge->line, STDIN_FILENO);
  (void)dup2(bridge->line, STDOUT_FILENO);
  execl(BRIDGE, BRIDGE, "127.0.0.1", bridge->port, (char *)NULL);
  _exit(127);
}

pid_t bridge_start_to(int line, const char *port)
{
  struct bridge bridge = {line, port};
  return spawn(run_bridge, 0, &bridge);
}

pid_t bridge_start(int line)
{
  return bridge_start_to(line, server.port_text);
}

static void run_modem(int index, void *context)
{
  char line[12];
  int *socket = context;
  (void)index;
  (void)fcntl(*socket, F_SETFD, 0);
  (void)snprintf(line, sizeof line, "%d", *socket);
  execlp("python3", "python3", "tests/boards/modem/modem.py", "--line", line, server.port_text,
         (char *)NULL);
  _exit(127);
}

pid_t modem_start_on(int line)
{
  return spawn(run_modem, 0, &line);
}

/* Reads more of the log, if there is any within that time. */
static bool listen_on(struct board *board, int timeout_ms)
{
  struct pollfd log = {.fd = board->log, .events = POLLIN};
  if (board->ended || board->size == sizeof board->text || poll(&log, 1, timeout_ms) <= 0)
    return false;
  ssize_t got = read(board->log, board->text + board->size, sizeof board->text - board->size);
  board->ended = got <= 0;
  if (got > 0) board->size += (size_t)got;
  return got > 0;
}

/* Takes the first line out of the text. */
static bool next_line(struct board *board)
{
  char *end = memchr(board->text, '\n', board->size);
  if (end == NULL) return false;
  size_t size = (size_t)(end - board->text);
  size_t kept = size < sizeof board->line ? size : sizeof board->line - 1;
  memcpy(board->line, board->text, kept);
  board->line[kept] = 0;
  board->size -= size + 1;
  memmove(board->text, end + 1, board->size);
  return true;
}

bool board_says_by(struct board *board, const char *text, int64_t until)
{
  for (;;) {
    while (next_line(board)) {
      if (strncmp(board->line, text, strlen(text)) == 0) return true;
    }
    int64_t left = until - now_ms();
    if (left <= 0 || board->ended) break;
    (void)listen_on(board, (int)left);
  }
  printf("# the board does not say \"%s\", but \"%s\" last%s\n", text, board->line,
         board->ended ? ", and has ended" : "");
  return false;
}

bool board_says(struct board *board, const char *text)
{
  return board_says_by(board, text, now_ms() + SOON);
}

bool board_said(struct board *board, const char *text)
{
  while (listen_on(board, 0))
    continue;
  size_t size = strlen(text);
  const char *at = board->text;
  const char *end = at + board->size;
  while (at != NULL && (size_t)(end - at) >= size) {
    if (memcmp(at, text, size) == 0) return true;
    at = memchr(at, '\n', (size_t)(end - at));
    if (at != NULL) at++;
  }
  return false;
}

void board_forget(struct board *board)
{
  do {
    while (next_line(board))
      continue;
  } while (listen_on(board, 0));
}

void board_cable(struct board *board, bool in)
{
  command(board,
          in ? "{\"execute\": \"set_link\", \"arguments\": {\"name\": \"net0\", \"up\": true}}\n"
             : "{\"execute\": \"set_link\", \"arguments\": {\"name\": \"net0\", \"up\": false}}\n");
  sleep_ms(50); /* it has no answer that is worth reading */
}

void board_reset(struct board *board)
{
  command(board, "{\"execute\": \"system_reset\"}\n");
}

void board_freeze(const struct board *board)
{
  (void)kill(board->pid, SIGSTOP);
}

void board_thaw(const struct board *board)
{
  (void)kill(board->pid, SIGCONT);
}

static void let_go(struct board *board)
{
  (void)close(board->log);
  (void)close(board->control);
  board->log = board->control = -1;
}

int board_ends(struct board *board)
{
  int64_t until = now_ms() + SOON;
  while (!board->ended && now_ms() < until) {
    (void)listen_on(board, 100);
    while (next_line(board))
      continue;
  }
  int status = reap(board->pid);
  let_go(board);
  return status;
}

/*
 * Ending the simulator closes its connections, which does not happen when the power fails: so the
 * cable is pulled first.
 */
void board_power_off(struct board *board)
{
  board_cable(board, false);
  slay(board->pid);
  let_go(board);
}

bool load_scripts(void)
{
  char line[128];
  (void)snprintf(line, sizeof line, FAIRLOCK " --url redis://127.0.0.1:%d load >/dev/null",
                 server.port);
  return system(line) == 0;
}

void check_shared_press(struct board *board)
{
  CHECK(board_says(board, "rounds 150"));
  CHECK(board_says(board, "clashes 0"));
  CHECK(board_says(board, "failures 0"));
  CHECK_EQUAL(board_ends(board), 0);
  CHECK_EQUAL(raw_number(&redis, "EXISTS press"), 0);
  CHECK_EQUAL(queue_length(&redis, "press"), 0);
}

/* Prints what the board says of rules that its port breaks. */
void check_conformance(struct board *board, int rules)
{
  char end[40];
  (void)snprintf(end, sizeof end, "# %d rules, 0 broken", rules);
  bool over = false;
  while (!over && CHECK(board_says(board, ""))) {
    over = strstr(board->line, " rules, ") != NULL;
    if (strncmp(board->line, "ok ", 3) != 0) printf("# %s\n", board->line);
  }
  CHECK(strcmp(board->line, end) == 0);
  CHECK_EQUAL(board_ends(board), 0);
}
