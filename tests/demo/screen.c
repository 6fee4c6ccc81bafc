/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is seen. On a terminal a view is drawn in place, with plain ANSI sequences: the table, what
 * the server says about who holds and who waits, and the last few events. Elsewhere each event is a
 * line. The table at the end is the same.
 *
 * A frame is put together in memory and written at once, and no line of it is longer than 79
 * columns, so it neither flickers nor wraps.
 */
#include "demo.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { WIDTH = 79, CHART = 16, EVENTS = 6, FRAME_LINES = 17 + EVENTS, WAITERS = 2 * CONTENDERS };

#define RESET  "\033[0m"
#define BOLD   "\033[1m"
#define DIM    "\033[2m"
#define RED    "\033[31m"
#define GREEN  "\033[32m"
#define FILLED "\033[42m"

static struct {
  struct contender *all;
  const char *lock, *url;
  uint32_t lease_ms;
  bool terminal; /* draws in place */
  bool drawn;
  char events[EVENTS][WIDTH + 1];
  int event_count;
  /* The last inspection. */
  char holders[LIMIT * 32];
  int64_t ttl_ms;
  uint64_t token;
  char waiters[WAITERS][32];
  unsigned waiter_count;
} screen;

static char frame[16384];
static size_t frame_size;

/* Adds to the frame. */
static void __attribute__((format(printf, 1, 2))) put(const char *format, ...)
{
  va_list arguments;
  va_start(arguments, format);
  int size = vsnprintf(frame + frame_size, sizeof frame - frame_size, format, arguments);
  va_end(arguments);
  if (size > 0) frame_size += (size_t)size;
  if (frame_size >= sizeof frame) frame_size = sizeof frame - 1;
}

static void show_frame(void)
{
  fwrite(frame, 1, frame_size, stdout);
  fflush(stdout);
  frame_size = 0;
}

static const char *style(const char *sequence)
{
  return screen.terminal ? sequence : "";
}

static void end_line(void)
{
  put("%s\n", style(RESET "\033[K"));
}

/* The table */

/* A duration in nine columns. */
static void put_duration(int64_t us)
{
  if (us < 1000000 && us > -1000000) put(" %6.2f ms", (double)us / 1e3);
  else put(" %7.2f s", (double)us / 1e6);
}

static bool died_waiting(const struct contender *contender)
{
  return contender->killed_at != 0 && contender->granted_at == 0;
}

static char chart_cell(const struct contender *contender, int64_t from, int64_t to)
{
  int64_t at = (from + to) / 2;
  int64_t granted = contender->granted_at;
  int64_t left = contender->left_at;
  int64_t killed = contender->killed_at;
  if (killed != 0 && killed >= from && killed < to) return 'x';
  if (contender->stage < WAITING || at < contender->asked_at || (left != 0 && at >= left))
    return ' ';
  if (killed != 0 && at > killed) return granted != 0 && at < contender->believed_until ? 'x' : ' ';
  return granted != 0 && at >= granted ? '#' : '.';
}

/* At most one is seen to hold at a time: a cell shows what was in the middle of its time. */
static void put_chart(const struct contender *contender, int64_t now)
{
  int64_t tick = now / CHART > 1000000 ? now / CHART : 1000000;
  for (int i = 0; i < CHART && (2 * i + 1) * tick / 2 <= now; i++) {
    char cell = chart_cell(contender, i * tick, (i + 1) * tick);
    if (cell == '#' && screen.terminal) put(FILLED " " RESET);
    else if (cell == 'x') put("%sx%s", style(RED), style(RESET));
    else put("%c", cell);
  }
}

static const char *row_style(const struct contender *contender)
{
  if (contender->killed_at != 0 || contender->stage == FAILED) return style(RED);
  if (contender->stage == HOLDING) return style(BOLD GREEN);
  return contender->stage == RELEASED ? style(DIM) : "";
}

static void put_row(const struct contender *contender, int64_t now)
{
  const struct contender *order[CONTENDERS];
  int count = grants(screen.all, order);
  int grant = 0;
  for (int i = 0; i < count; i++) {
    if (order[i] == contender) grant = i + 1;
  }
  put(" %s%-9s", row_style(contender), contender->name);
  if (contender->arrival > 0) put(" %7d", contender->arrival);
  else put(" %7s", "-");
  if (grant > 0) put(" %5d  %16llu", grant, (unsigned long long)contender->token);
  else put(" %5s  %16s", "-", died_waiting(contender) ? "killed, waiting" : "-");
  int64_t until = grant > 0                   ? contender->granted_at
                  : contender->killed_at != 0 ? contender->killed_at
                                              : now;
  if (contender->stage >= WAITING) put_duration(until - contender->asked_at);
  else put(" %9s", "-");
  int64_t handover = handover_us(screen.all, contender);
  if (handover != -1) put_duration(handover);
  else put(" %9s", "-");
  put("%s  ", style(RESET));
  put_chart(contender, now);
  end_line();
}

static void put_title(int64_t now)
{
  char title[WIDTH];
  snprintf(title, sizeof title, "lock %s on %s", screen.lock, screen.url);
  put(" %s%-69.69s%s %6.1f s", style(BOLD), title, style(RESET), (double)now / 1e6);
  end_line();
  put(" 4 processes, and 4 threads that share one client and its connection; lease %d s",
      (int)(screen.lease_ms / 1000));
  end_line();
}

static void put_table(int64_t now)
{
  put(" %s%-9s %7s %5s  %16s %9s %9s  %s", style(BOLD), "contender", "arrival", "grant", "token",
      "waited", "handover", "timeline");
  end_line();
  for (int i = 0; i < CONTENDERS; i++)
    put_row(&screen.all[i], now);
  put("%53s%s. waits  %s # %sholds  %sx%s killed", "", style(RESET), style(FILLED), style(RESET),
      style(RED), style(RESET));
  end_line();
}

/* The view */

/* Who holds and who is in line, as the server says. */
static void put_line_of_waiters(void)
{
  char line[512];
  size_t size = 0;
  line[0] = 0;
  for (unsigned i = 0; i < screen.waiter_count && size < WIDTH; i++) {
    size += (size_t)snprintf(line + size, sizeof line - size, "%s%s", i > 0 ? ", " : "",
                             screen.waiters[i]);
  }
  put(" %sholds%s  %.71s", style(BOLD), style(RESET),
      screen.holders[0] != 0 ? screen.holders : "nobody");
  if (screen.holders[0] != 0 && most_at_once(screen.all) == 1) {
    put(", token %llu, %.1f s of the lease left", (unsigned long long)screen.token,
        (double)screen.ttl_ms / 1e3);
  }
  end_line();
  put(" %snext%s   %.71s", style(BOLD), style(RESET), line[0] != 0 ? line : "nobody");
  end_line();
}

static void erase_frame(void)
{
  if (screen.drawn) put("\033[%dA\r", FRAME_LINES);
}

void screen_draw(void)
{
  if (!screen.terminal) return;
  erase_frame();
  screen.drawn = true;
  put_title(story_us());
  end_line();
  put_table(story_us());
  end_line();
  put_line_of_waiters();
  end_line();
  int first = screen.event_count > EVENTS ? screen.event_count - EVENTS : 0;
  for (int i = first; i < first + EVENTS; i++) {
    if (i < screen.event_count) put("%s", screen.events[i % EVENTS]);
    end_line();
  }
  show_frame();
}

static bool fits_terminal(void)
{
  struct winsize size;
  const char *type = getenv("TERM");
  if (!isatty(STDOUT_FILENO) || type == NULL || strcmp(type, "dumb") == 0) return false;
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0) return false;
  return size.ws_row > FRAME_LINES && size.ws_col > WIDTH;
}

void screen_begin(struct contender *all, const char *lock, const char *url, uint32_t lease_ms)
{
  screen.all = all;
  screen.lock = lock;
  screen.url = url;
  screen.lease_ms = lease_ms;
  screen.terminal = fits_terminal();
  if (screen.terminal) put("\033[?25l");
  else put_title(story_us());
  show_frame();
}

void screen_end(bool table)
{
  if (table) {
    erase_frame();
    if (screen.terminal) put("\033[J");
    if (screen.terminal) put_title(story_us());
    end_line();
    put_table(story_us());
    end_line();
  }
  if (screen.terminal) put("\033[?25h");
  show_frame();
  screen.terminal = false;
}

void screen_event(const char *format, ...)
{
  char text[WIDTH - 8];
  char *line = screen.events[screen.event_count++ % EVENTS];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  snprintf(line, sizeof screen.events[0], " %6.2f  %s", (double)story_us() / 1e6, text);
  if (screen.terminal) return;
  puts(line);
  fflush(stdout);
}

/* The contender in the report, or the beginning of a stranger's id, and what is wrong with it. */
static void describe(const struct fairlock_report *report, char text[32])
{
  const struct contender *contender = find_contender(screen.all, report);
  const char *trouble = "";
  if (report->life == FAIRLOCK_LIFE_DEAD) trouble = " (dead)";
  else if (report->place > 0 && !report->listens) trouble = " (silent)";
  else if (report->place == 0 && contender != NULL && contender->killed_at != 0)
    trouble = " (killed)";
  if (contender != NULL) snprintf(text, 32, "%s%s", contender->name, trouble);
  else
    snprintf(text, 32, "%.*s%s", report->id_size < 8 ? (int)report->id_size : 8, report->id,
             trouble);
}

static void add_holder(const struct fairlock_report *report)
{
  char text[32];
  size_t size = strlen(screen.holders);
  describe(report, text);
  snprintf(screen.holders + size, sizeof screen.holders - size, "%s%s", size > 0 ? ", " : "", text);
}

void screen_report(const struct fairlock_report *report)
{
  if (report->place == 0 && report->holder_index == 0) {
    screen.waiter_count = 0;
    screen.holders[0] = 0;
    screen.ttl_ms = report->ttl_ms;
    screen.token = report->token;
  }
  if (report->place == 0) {
    if (report->id != NULL) add_holder(report);
  } else if (screen.waiter_count < WAITERS) {
    describe(report, screen.waiters[screen.waiter_count++]);
  }
}
