/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `fairlock watch`: reads a lock at intervals. On a terminal it redraws one picture; elsewhere it
 * prints a line for each change. A change that is undone between two looks is not seen.
 */
#define _DEFAULT_SOURCE 1 /* what -std=c11 hides */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "command.h"
#include "inspection.h"
#include "text.h"

#define INTERVAL_MS 500U
#define OTHER_LINES 4 /* lines of the picture other than those of waiters */

struct watch {
  struct session session;
  const char *name;
  char *shown;
  bool terminal;
  uint32_t interval_ms;
  int status;  /* the status of the last look */
  char *place; /* the server that was printed last; NULL: none was */
  struct inspection seen;
};

static const struct option_row options[] = {
    {"interval", 'i', OPTION_SECONDS, offsetof(struct watch, interval_ms), "SECONDS",
     .help = "how often to look. Default: 0.5", .least = 10, .most = 3600000},
    {0},
};

static const struct command_line usage = {
    .command = "watch",
    .usage = "fairlock watch [--interval SECONDS] [OPTION]... NAME",
    .about =
        "\n"
        "Shows who holds the lock NAME and who waits for it, live, until it is interrupted: since\n"
        "when at the earliest, and for how long it has been seen to wait. When its output is not\n"
        "a terminal, it prints a line for each change.\n",
    .statuses = "Exit status: that of the signal that ends it (Ctrl-C), or",
    .options = options,
};

/* Prints the time of day, with milliseconds. */
static void print_now(void)
{
  int64_t now = time_of_day_ms();
  print_time(stdout, now, "%H:%M:%S");
  printf(".%03d", (int)(now % 1000));
}

static size_t terminal_rows(void)
{
#ifdef TIOCGWINSZ
  struct winsize size;
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row > OTHER_LINES) return size.ws_row;
#endif
  return 24;
}

/* The server that was asked, printable; to be freed. */
static char *place_of(struct watch *watch)
{
  char address[ADDRESS_SIZE];
  session_address(&watch->session, watch->status, address);
  return session_place(&watch->session, address);
}

static void draw(struct watch *watch)
{
  char *place = place_of(watch);
  fputs("\033[H\033[J", stdout); /* cursor home, erase what follows */
  print_now();
  printf("  %s%s%s on %s\n", paint(stdout, STRONG), watch->shown, paint(stdout, PLAIN), place);
  free(place);
  if (watch->status != FAIRLOCK_OK) {
    printf("%s%s%s; trying again\n", paint(stdout, BAD), fairlock_status_text(watch->status),
           paint(stdout, PLAIN));
    return;
  }
  inspection_print_hold(stdout, &watch->seen, true);
  putchar('\n');
  size_t rows = terminal_rows() - OTHER_LINES;
  size_t holders = watch->seen.shared ? watch->seen.holder_count : 0;
  size_t waiters = inspection_waiters(&watch->seen);
  /* half of the rows, or what the waiters do not need */
  size_t half = rows / 2;
  size_t most = waiters < rows - half ? rows - waiters : half;
  inspection_print_sharers(stdout, &watch->seen, most);
  printf("%zu waiting\n", waiters);
  int64_t now = long_clock_ms();
  inspection_print_waiters(stdout, &watch->seen, rows - (holders < most ? holders : most), &now);
}

/* Prints the server that was asked, if it is not the one that was printed last. */
static void print_place(struct watch *watch)
{
  char *place = place_of(watch);
  bool same = watch->place != NULL && strcmp(place, watch->place) == 0;
  free(same ? place : watch->place);
  if (same) return;
  watch->place = place;
  print_now();
  printf("  %s: read from %s\n", watch->shown, place);
}

/* A part of a list, with a remark; NULL: none. */
static void print_party(const struct party *party, size_t number, const char *remark)
{
  char *id = party_shown(party);
  printf("%s%s", number == 0 ? ": " : ", ", id);
  if (remark != NULL) printf(" (%s)", remark);
  free(id);
}

static void print_line(const struct watch *watch)
{
  print_now();
  printf("  %s: ", watch->shown);
  if (watch->status != FAIRLOCK_OK) {
    printf("%s; trying again\n", fairlock_status_text(watch->status));
    return;
  }
  inspection_print_hold(stdout, &watch->seen, false);
  for (size_t i = 0; watch->seen.shared && i < watch->seen.holder_count; i++)
    print_party(&watch->seen.holders[i].party, i, NULL);
  printf(", %zu waiting", inspection_waiters(&watch->seen));
  for (size_t i = 0; i < watch->seen.waiter_count; i++) {
    const struct party *waiter = &watch->seen.waiters[i];
    bool well = waiter->listens && waiter->alive && !waiter->later;
    print_party(waiter, i, well ? NULL : party_condition(waiter));
  }
  if (watch->seen.left_out > 0) printf(" and %zu more", watch->seen.left_out);
  putchar('\n');
}

/* Reads the lock. Returns true if something has changed. */
static bool look(struct watch *watch)
{
  struct inspection now = {0};
  int status = inspection_read(&now, &watch->session, watch->name, strlen(watch->name));
  bool news =
      status != watch->status || (status == FAIRLOCK_OK && inspection_differs(&now, &watch->seen));
  watch->status = status;
  /* the read failed, so what was seen before is kept */
  if (status != FAIRLOCK_OK) {
    inspection_clear(&now);
    return news;
  }
  inspection_carry_over(&now, &watch->seen, long_clock_ms());
  inspection_clear(&watch->seen);
  watch->seen = now;
  return news;
}

static int watch_lock(struct watch *watch)
{
  struct timespec pause = {watch->interval_ms / 1000, (long)(watch->interval_ms % 1000) * 1000000L};
  watch->status = FAIRLOCK_PENDING;
  for (;;) {
    bool news = look(watch);
    if (watch->status != FAIRLOCK_OK && !session_may_pass(&watch->session, watch->status))
      return session_complain(&watch->session, watch->status);
    if (watch->terminal) draw(watch);
    else if (watch->status == FAIRLOCK_OK) print_place(watch);
    if (!watch->terminal && news) print_line(watch);
    if (end_output(EXIT_DONE) != EXIT_DONE) return EXIT_SYSTEM;
    nanosleep(&pause, NULL);
  }
}

int watch_command(int argc, char **argv)
{
  static struct watch watch;
  struct command_line line = usage;
  watch.interval_ms = INTERVAL_MS;
  if (parse_options(&line, &watch, argc, argv) != EXIT_DONE) return EXIT_USAGE;
  watch.name = only_name(&line);
  if (watch.name == NULL) return EXIT_USAGE;
  watch.shown = printable(watch.name, strlen(watch.name));
  watch.terminal = isatty(STDOUT_FILENO) != 0;
  int status = session_prepare(&watch.session, &line);
  if (status == EXIT_DONE) status = session_connect(&watch.session);
  if (status == EXIT_DONE) status = watch_lock(&watch);
  return status;
}
