/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Measures how deep the stack of the superloop gets on each board: measure_stack BOARD:IMAGE... All
 * run at once and compete for the lock, and the server is restarted meanwhile. Counts the
 * instructions of a handshake, too, where there is TLS. Prints "BOARD:IMAGE BYTES THOUSANDS" for
 * each, and why it fails to stderr.
 */
#include "rig.h"
#include "secure.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
  MOST = 16,
  LIMIT_MS = 300000 /* for all, which takes 16 s, of which the modem takes 14 */
};

/* The harness belongs to the suites, which have tests, and print. */
const struct check_test check_tests[] = {{0}};

void check_write(const char *text)
{
  (void)fputs(text, stderr);
}

static struct board boards[MOST + 1];

/* For images with TLS: the one whose key is pinned, and one for RSA, which takes more. */
static struct server secure_ec, secure_rsa;

static void start(struct board *board, const char *what)
{
  char seed[32];
  const char *arguments[] = {server.port_text, "4", "50", NULL};
  int line[2] = {-1, -1};
  char name[64];
  const char *image = strchr(what, ':') + 1;
  (void)snprintf(name, sizeof name, "%.*s", (int)(image - what - 1), what);
  (void)snprintf(seed, sizeof seed, "10.0.2.2:%d", server.port);
  if (strstr(image, "follow") != NULL) arguments[0] = seed;
  if (strstr(image, "pinned") != NULL) arguments[0] = secure_ec.port_text;
  if (strstr(image, "_ca") != NULL || strstr(image, "_mbedtls") != NULL)
    arguments[0] = secure_rsa.port_text;
  bool over_modem = strstr(image, "modem") != NULL;
  if ((over_modem || strstr(image, "uart") != NULL) &&
      socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, line) == 0) {
    (void)(over_modem ? modem_start_on(line[0]) : bridge_start(line[0]));
  }
  board_start_with_line(board, name, image, arguments, line[1]);
}

/* By then it says so, or why it fails is told. */
static bool says(struct board *board, const char *what, const char *text, int64_t until)
{
  if (board_says_by(board, text, until)) return true;
  fprintf(stderr, "measure_stack: %s: no \"%s\" %s\n", what, text,
          board->ended ? "before its end" : "in time");
  return false;
}

/* The same for `what`, by its image handshake_...; 0: it has none. -1: it fails. */
static int count_handshake(const char *what, int64_t until)
{
  const char *const arguments[] = {secure_ec.port_text, NULL};
  struct board board;
  char name[64], image[64];
  const char *kind = strstr(what, "_pinned");
  if (kind == NULL) kind = strstr(what, "_ca");
  if (kind == NULL) kind = strstr(what, "_mbedtls");
  if (kind == NULL) return 0;
  (void)snprintf(name, sizeof name, "%.*s", (int)strcspn(what, ":"), what);
  (void)snprintf(image, sizeof image, "handshake%s", kind);
  board_options = " -icount shift=0";
  board_start(&board, name, image, arguments);
  bool good = says(&board, image, "handshake ", until);
  int thousands = good ? atoi(board.line + strlen("handshake ")) : -1;
  (void)board_ends(&board);
  return thousands;
}

/*
 * The boards without the scripts' texts need somebody who loads them: another board, or, when those
 * have done their rounds before the restart, nobody.
 */
static bool load(void)
{
  if (load_scripts()) return true;
  fputs("measure_stack: the scripts cannot be loaded\n", stderr);
  return false;
}

static bool restart(void)
{
  server_restart(&server);
  server_restart(&secure_ec);
  server_restart(&secure_rsa);
  return load();
}

int main(int argc, char **argv)
{
  int64_t until = now_ms() + LIMIT_MS;
  /* What the harness prints is no result. */
  FILE *results = fdopen(fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 0), "w");
  if (results == NULL || dup2(STDERR_FILENO, STDOUT_FILENO) < 0) return 1;
  if (argc < 2 || argc > MOST + 1) {
    fprintf(stderr, "measure_stack: %d images, not 1 to %d\n", argc - 1, MOST);
    return 1;
  }
  begin();
  secure_start(&secure_ec, "server", "no");
  secure_start(&secure_rsa, "rsa", "no");
  bool good = load();
  for (int i = 1; i < argc && good; i++)
    start(&boards[i], argv[i]);
  for (int i = 1; i < argc && good; i++)
    good = says(&boards[i], argv[i], "done", until);
  good = good && restart();
  for (int i = 1; i < argc && good; i++) {
    good = says(&boards[i], argv[i], "stack used ", until);
    int thousands = good ? count_handshake(argv[i], until) : -1;
    good = thousands >= 0;
    if (good)
      fprintf(results, "%s %d %d\n", argv[i], atoi(boards[i].line + strlen("stack used ")),
              thousands);
  }
  return fclose(results) == 0 && good ? 0 : 1;
}
