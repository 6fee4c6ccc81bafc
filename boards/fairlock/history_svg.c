/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Draws a history: a lane for each host, in which a thin bar is a wait and a thick one a hold; how
 * long the queue was below; and the times. What overlaps in a host's lane, words included, goes into
 * another row of it. Above CROWD_MIN spans a lane has one row, and shows holds alone.
 *
 * The picture is no larger than its pixels: what would be drawn over what is there is left out. All
 * text goes through printable() and print_escaped(), so the picture is well-formed whatever names
 * and ids contain.
 */
#define _DEFAULT_SOURCE 1 /* what -std=c11 hides */

#include "history.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "command.h"
#include "text.h"

#define WIDTH       960
#define LEFT        132 /* of the times' axis  */
#define RIGHT       926
#define TOP         70
#define ROW         25
#define BAR         18
#define GAP         9   /* between two lanes   */
#define LETTER      6.7 /* the width of one, rather too much */
#define CROWD_MIN   60
#define MOST_HOSTS  40 /* the rest shares the last lane     */
#define HOST_MAX    15 /* characters                        */
#define TITLE_MAX   80
#define MOST_ROWS   64   /* of one host          */
#define LEAST_MS    2000 /* that a picture is long */
#define LEAST_QUEUE 20   /* ms: a shorter wait is a request that was answered at once */
#define COLUMNS     (RIGHT - LEFT)

static const char style[] =
    ".title{font-weight:bold;font-size:15px}.mid{fill:#57606a}.wait{fill:#b9cfea}.hold{fill:#"
    "2563ae}"
    ".crash{fill:#fbe3df;stroke:#b3261e;stroke-dasharray:3}.bad{stroke:#b3261e;stroke-width:2.5;"
    "fill:none}.red{fill:#b3261e}.grid{stroke:#e4e7eb}.axis{stroke:#8c959f}.left{stroke:#57606a;"
    "stroke-width:2}.in,.ground{fill:#fff}.ground{opacity:.92}.end{text-anchor:end}.middle{text-"
    "anchor:middle}.halo{paint-"
    "order:"
    "stroke;stroke:#fff;stroke-width:4px}";

/* Words beside a bar, and where a span with its words begins and ends. */
struct words {
  char *text; /* printable, allocated; NULL: none */
  double x, begin, end;
  bool ends;   /* they end at x, and do not begin there */
  bool inside; /* they are in the bar                   */
};

struct lane {
  char *host;
  int number; /* which one it was before they were sorted */
  double top;
  int rows;
  double taken[MOST_ROWS]; /* to which x each row is */
  double marked, said;     /* to which x there are marks and words, if it has one row */
};

struct drawing {
  FILE *to;
  const struct history *history;
  int64_t from_ms, to_ms;
  bool crowded;
  struct lane lanes[MOST_HOSTS];
  int lane_count;
  int *lane_of, *row_of; /* each span's */
  double bottom;         /* of the lanes */
};

static void print_escaped(FILE *to, const char *text)
{
  static const char special[] = "<>&'\"";
  static const char *const escapes[] = {"&lt;", "&gt;", "&amp;", "&apos;", "&quot;"};
  for (; *text != 0; text++) {
    const char *found = strchr(special, *text);
    if (found == NULL) fputc(*text, to);
    else fputs(escapes[found - special], to);
  }
}

static double x_of(const struct drawing *drawing, int64_t ms)
{
  double part = (double)(ms - drawing->from_ms) / (double)(drawing->to_ms - drawing->from_ms);
  return LEFT + part * (RIGHT - LEFT);
}

static double width_of(const char *text)
{
  return (double)characters_of(text) * LETTER;
}

static void draw_text(struct drawing *drawing, double x, double y, const char *style_of,
                      const char *text)
{
  fprintf(drawing->to, "<text x='%.1f' y='%.1f' class='%s'>", x, y, style_of);
  print_escaped(drawing->to, text);
  fputs("</text>\n", drawing->to);
}

/* The times of the picture */

static void find_range(struct drawing *drawing)
{
  const struct history *history = drawing->history;
  drawing->from_ms = INT64_MAX;
  for (size_t i = 0; i < history->count; i++) {
    const struct span *span = &history->spans[i];
    int64_t begin = span_begin(span);
    int64_t end = span_end(history, span);
    if (begin < drawing->from_ms) drawing->from_ms = begin;
    if (end > drawing->to_ms) drawing->to_ms = end;
  }
  if (drawing->to_ms - drawing->from_ms < LEAST_MS) drawing->to_ms = drawing->from_ms + LEAST_MS;
}

/* The distance of two lines of the axis, in s. */
static int64_t step_of(const struct drawing *drawing)
{
  static const int64_t steps[] = {1,    2,    5,    10,    15,    30,    60,    120,    300,   600,
                                  1800, 3600, 7200, 14400, 21600, 43200, 86400, 172800, 604800};
  int64_t step = steps[0];
  int64_t seconds = (drawing->to_ms - drawing->from_ms) / 1000;
  for (size_t i = 0; i < sizeof steps / sizeof steps[0] && seconds / step > 10; i++)
    step = steps[i];
  while (seconds / step > 10)
    step *= 2;
  return step;
}

/* The first line: a multiple of the step, in local time. */
static int64_t first_line(const struct drawing *drawing, int64_t step)
{
  struct tm local = {0};
  time_t from = (time_t)(drawing->from_ms / 1000);
  (void)localtime_r(&from, &local);
  int64_t second = local.tm_hour * 3600 + local.tm_min * 60 + local.tm_sec;
  int64_t within = step < 86400 ? step : 86400;
  return ((int64_t)from - second % within + within) * 1000;
}

static void draw_axis(struct drawing *drawing, double bottom)
{
  int64_t step = step_of(drawing);
  const char *format = step < 60 ? "%H:%M:%S" : step < 86400 ? "%H:%M" : "%m-%d";
  char text[32];
  for (int64_t at = first_line(drawing, step); at <= drawing->to_ms; at += step * 1000) {
    double x = x_of(drawing, at);
    fprintf(drawing->to,
            "<path class='grid' d='M%.1f %dV%.1f'/><path class='axis' d='M%.1f %.1fv4'/>\n", x,
            TOP - 10, bottom, x, bottom);
    time_text(text, at, format);
    draw_text(drawing, x, bottom + 18, "middle mid", text);
  }
}

/* What is said beside a bar */

static char *words_of(const struct span *span)
{
  char text[40] = "";
  switch (span->fate) {
  case BROKEN:
    return span_breaker(span);
  case CRASHED:
    return copied("never released", 14);
  case LOST_IT:
    return copied("lost", 4);
  case GAVE_UP:
    return copied("gave up", 7);
  case RELEASED:
    if (span->status > 0) snprintf(text, sizeof text, "status %" PRId64, span->status);
    return *text != 0 ? copied(text, strlen(text)) : NULL;
  default:
    return NULL;
  }
}

/* Puts the words behind the bar or, if there is more room, before it; and cuts them. */
static struct words place_words(const struct drawing *drawing, const struct span *span)
{
  double begin = x_of(drawing, span_begin(span));
  double end = x_of(drawing, span_end(drawing->history, span));
  double room = RIGHT + 24 - end;
  struct words words = {.text = words_of(span), .begin = begin, .end = end};
  if (words.text == NULL) return words;
  double gap = span->fate == BROKEN || span->fate == LOST_IT ? 10 : 5;
  double width = width_of(words.text) + gap;
  if (span->fate == CRASHED && width <= end - x_of(drawing, span->from_ms)) {
    words.x = x_of(drawing, span->from_ms) + 5;
    words.inside = true;
    return words;
  }
  words.ends = width > room && begin - LEFT > room;
  if (words.ends) room = begin - LEFT;
  if (width > room) words.text = fitted(words.text, (size_t)((room - gap) / LETTER) + 1);
  width = width_of(words.text) + gap;
  words.x = words.ends ? begin - 5 : end + gap;
  if (words.ends) words.begin -= width;
  else words.end += width;
  return words;
}

/* Lanes */

/* The lane of a host, which has one after this; the last one is also that of those above MOST_HOSTS. */
static int find_lane(struct drawing *drawing, char *host)
{
  int i = 0;
  while (i < drawing->lane_count && strcmp(drawing->lanes[i].host, host) != 0)
    i++;
  if (i < drawing->lane_count || i == MOST_HOSTS) {
    free(host);
    if (i == MOST_HOSTS) {
      i--;
      free(drawing->lanes[i].host);
      drawing->lanes[i].host = copied("others", 6);
    }
    return i;
  }
  drawing->lanes[drawing->lane_count++] = (struct lane){.host = host, .number = i, .rows = 1};
  return i;
}

static int compare_lanes(const void *left, const void *right)
{
  const struct lane *a = left, *b = right;
  return strcmp(a->host, b->host);
}

/* Finds the lane of each span. They are in the order of the hosts' names. */
static void find_lanes(struct drawing *drawing)
{
  const struct history *history = drawing->history;
  int sorted[MOST_HOSTS] = {0};
  for (size_t i = 0; i < history->count; i++)
    drawing->lane_of[i] = find_lane(drawing, fitted(span_host(&history->spans[i]), HOST_MAX));
  qsort(drawing->lanes, (size_t)drawing->lane_count, sizeof *drawing->lanes, compare_lanes);
  for (int i = 0; i < drawing->lane_count; i++)
    sorted[drawing->lanes[i].number] = i;
  for (size_t i = 0; i < history->count; i++)
    drawing->lane_of[i] = sorted[drawing->lane_of[i]];
}

/* The first row of the lane that is free there; the last one, if none is. */
static int find_row(struct lane *lane, const struct words *words)
{
  int row = 0;
  while (row < lane->rows && lane->taken[row] > words->begin)
    row++;
  if (row == MOST_ROWS) row--;
  if (row == lane->rows) lane->rows++;
  lane->taken[row] = words->end + 4;
  return row;
}

static void lay_out(struct drawing *drawing)
{
  const struct history *history = drawing->history;
  find_lanes(drawing);
  for (size_t i = 0; i < history->count && !drawing->crowded; i++) {
    struct words words = place_words(drawing, &history->spans[i]);
    drawing->row_of[i] = find_row(&drawing->lanes[drawing->lane_of[i]], &words);
    free(words.text);
  }
  double y = TOP;
  for (int i = 0; i < drawing->lane_count; i++) {
    drawing->lanes[i].top = y;
    y += ROW * drawing->lanes[i].rows + GAP;
    for (int row = 0; row < drawing->lanes[i].rows; row++)
      drawing->lanes[i].taken[row] = 0;
  }
  drawing->bottom = y;
}

static void draw_hosts(struct drawing *drawing)
{
  for (int i = 0; i < drawing->lane_count; i++) {
    const struct lane *lane = &drawing->lanes[i];
    draw_text(drawing, LEFT - 12, lane->top + 13, "end", lane->host);
    if (i > 0)
      fprintf(drawing->to, "<path class='grid' d='M%d %.1fH%d'/>\n", LEFT, lane->top - 7, RIGHT);
  }
}

/* Spans */

/* What a browser shows when the pointer is on it. */
static void draw_title(struct drawing *drawing, const struct span *span)
{
  static const char *const fates[] = {
      [RELEASED] = "released",      [LOST_IT] = "lost", [BROKEN] = "broken",
      [CRASHED] = "never released", [HELD] = "held",    [GAVE_UP] = "gave up"};
  char *id = printable(span->id.bytes, span->id.size);
  char *command = printable(span->command.bytes, span->command.size);
  char waited[SPAN_SIZE], held[SPAN_SIZE];
  span_text(waited, span->wait_ms > 0 ? span->wait_ms : 0);
  span_text(held, span_end(drawing->history, span) - span->from_ms);
  fputs("<title>", drawing->to);
  print_escaped(drawing->to, id);
  fprintf(drawing->to, ", waited %s", waited);
  if (span->fate != GAVE_UP) fprintf(drawing->to, ", held %s, token %" PRIu64, held, span->token);
  fprintf(drawing->to, ", %s%s", fates[span->fate], *command != 0 ? ": " : "");
  print_escaped(drawing->to, command);
  fputs("</title>", drawing->to);
  free(id);
  free(command);
}

/* Draws a bar from x to end; y: its middle. */
static void draw_bar(struct drawing *drawing, const struct span *span, const char *style_of,
                     double x, double end, double y)
{
  double height = strcmp(style_of, "wait") == 0 ? 8 : BAR;
  double width = end - x > 1.2 ? end - x : 1.2;
  fprintf(drawing->to, "<rect class='%s' x='%.1f' y='%.1f' width='%.1f' height='%.0f'%s>", style_of,
          x, y - height / 2, width, height, width > 6 ? " rx='2'" : "");
  draw_title(drawing, span);
  fputs("</rect>\n", drawing->to);
}

/* The mark at the end of a hold or of a wait. */
static void draw_mark(struct drawing *drawing, const struct span *span, double x, double y)
{
  if (span->fate == BROKEN || span->fate == LOST_IT)
    fprintf(drawing->to, "<path class='bad' d='M%.1f %.1fl10 10m0-10l-10 10'/>\n", x - 5, y - 5);
  if (span->fate == GAVE_UP)
    fprintf(drawing->to, "<path class='left' d='M%.1f %.1fv14'/>\n", x, y - 7);
  if (span->fate == CRASHED && drawing->crowded)
    fprintf(drawing->to, "<path class='bad' d='M%.1f %.1fv24'/>\n", x, y - 12);
}

/* How long the hold was, within its bar, if that has room. */
static void draw_length(struct drawing *drawing, const struct span *span, double x, double end,
                        double y)
{
  char text[SPAN_SIZE];
  if (span->fate == GAVE_UP || span->fate == CRASHED) return;
  span_text(text, span_end(drawing->history, span) - span->from_ms);
  if (end - x > width_of(text) + 7) draw_text(drawing, x + 5, y + 4, "in", text);
}

static void draw_span(struct drawing *drawing, size_t i)
{
  const struct span *span = &drawing->history->spans[i];
  double y = drawing->lanes[drawing->lane_of[i]].top + ROW * drawing->row_of[i] + BAR / 2.0;
  double x = x_of(drawing, span->from_ms);
  double end = x_of(drawing, span_end(drawing->history, span));
  double begin = x_of(drawing, span_begin(span));
  bool muted = span->fate == GAVE_UP;
  struct words words = place_words(drawing, span);
  if (x - begin > 0.5 || muted) draw_bar(drawing, span, "wait", begin, x, y);
  if (!muted) draw_bar(drawing, span, span->fate == CRASHED ? "crash" : "hold", x, end, y);
  draw_length(drawing, span, x, end, y);
  draw_mark(drawing, span, end, y);
  if (words.text != NULL)
    draw_text(drawing, words.x, y + 4,
              muted          ? (words.ends ? "mid halo end" : "mid halo")
              : words.ends   ? "red halo end"
              : words.inside ? "red"
                             : "red halo",
              words.text);
  free(words.text);
}

/* The same in a lane of one row: what is behind something else is left out. */
static void draw_crowded(struct drawing *drawing, size_t i)
{
  const struct span *span = &drawing->history->spans[i];
  struct lane *lane = &drawing->lanes[drawing->lane_of[i]];
  double y = lane->top + BAR / 2.0;
  double x = x_of(drawing, span->from_ms);
  double end = x_of(drawing, span_end(drawing->history, span));
  double shown = x > lane->taken[0] ? x : lane->taken[0];
  if (span->fate != GAVE_UP && (end > lane->taken[0] + 0.4 || x > lane->taken[0])) {
    draw_bar(drawing, span, span->fate == CRASHED ? "crash" : "hold", shown, end, y);
    draw_length(drawing, span, shown, end, y);
    lane->taken[0] = end > shown + 1.2 ? end : shown + 1.2;
  }
  double mark = span->fate == CRASHED ? x : end;
  if (span->fate == RELEASED || span->fate == HELD || mark < lane->marked) return;
  draw_mark(drawing, span, mark, y);
  lane->marked = mark + 2;
}

/* Then the words of breaks, on a ground of their own over what is there. */
static void draw_breaker(struct drawing *drawing, const struct span *span, struct lane *lane)
{
  struct words words = place_words(drawing, span);
  double width = width_of(words.text);
  double begin = words.ends ? words.x - width : words.x;
  if (begin > lane->said) {
    double y = lane->top + BAR / 2.0;
    fprintf(drawing->to, "<rect class='ground' x='%.1f' y='%.1f' width='%.1f' height='%d'/>\n",
            begin - 2, y - BAR / 2.0, width + 4, BAR);
    draw_text(drawing, words.x, y + 4, words.ends ? "red end" : "red", words.text);
    lane->said = begin + width + 4;
  }
  free(words.text);
}

static void draw_spans(struct drawing *drawing)
{
  for (size_t i = 0; i < drawing->history->count; i++) {
    if (drawing->crowded) draw_crowded(drawing, i);
    else draw_span(drawing, i);
  }
  for (size_t i = 0; i < drawing->history->count && drawing->crowded; i++) {
    const struct span *span = &drawing->history->spans[i];
    if (span->fate == BROKEN) draw_breaker(drawing, span, &drawing->lanes[drawing->lane_of[i]]);
  }
}

/* The queue */

static int compare_times(const void *left, const void *right)
{
  int64_t a = *(const int64_t *)left, b = *(const int64_t *)right;
  return a < b ? -1 : a > b;
}

static int column_of(const struct drawing *drawing, int64_t ms)
{
  int column = (int)(x_of(drawing, ms) - LEFT);
  return column < 0 ? 0 : column < COLUMNS ? column : COLUMNS - 1;
}

/* Finds for each column of pixels how many waited at most. Returns the most of all. */
static int count_queue(const struct drawing *drawing, int columns[COLUMNS])
{
  const struct history *history = drawing->history;
  int64_t *begins = grown(NULL, 2 * history->count * sizeof *begins);
  int64_t *ends = begins + history->count;
  size_t count = 0;
  int now = 0, most = 0, column = 0;
  for (size_t i = 0; i < history->count; i++) {
    if (history->spans[i].wait_ms < LEAST_QUEUE) continue;
    begins[count] = span_begin(&history->spans[i]);
    ends[count++] = history->spans[i].from_ms;
  }
  qsort(begins, count, sizeof *begins, compare_times);
  qsort(ends, count, sizeof *ends, compare_times);
  for (size_t begun = 0, ended = 0; ended < count;) {
    bool begins_next = begun < count && begins[begun] < ends[ended];
    int until = column_of(drawing, begins_next ? begins[begun++] : ends[ended++]);
    while (column < until)
      columns[++column] = now;
    now += begins_next ? 1 : -1;
    if (now > columns[column]) columns[column] = now;
    if (now > most) most = now;
  }
  free(begins);
  return most;
}

static void draw_queue(struct drawing *drawing, double top, double bottom)
{
  int columns[COLUMNS] = {0};
  char text[32];
  int most = count_queue(drawing, columns);
  double unit = (bottom - top) / (most > 0 ? most : 1);
  fprintf(drawing->to, "<path class='wait' d='M%d %.1f", LEFT, bottom);
  for (int i = 0; i < COLUMNS; i++)
    if (i == 0 || columns[i] != columns[i - 1])
      fprintf(drawing->to, "H%dV%.1f", LEFT + i, bottom - unit * columns[i]);
  fprintf(drawing->to, "H%dV%.1fz'/><path class='axis' d='M%d %.1fH%d'/>\n", RIGHT, bottom, LEFT,
          bottom, RIGHT);
  draw_text(drawing, LEFT - 12, bottom - 2, "end mid", "in line");
  snprintf(text, sizeof text, "most %d", most);
  if (most > 0) draw_text(drawing, LEFT - 12, top + 6, "end mid", text);
}

/* All of it */

static void draw_head(struct drawing *drawing)
{
  const struct history *history = drawing->history;
  char from[32], to[32], longest[SPAN_SIZE], text[192];
  size_t holds = 0, broken = 0, crashed = 0;
  int64_t most_ms = 0;
  for (size_t i = 0; i < history->count; i++) {
    const struct span *span = &history->spans[i];
    holds += span->fate != GAVE_UP;
    broken += span->fate == BROKEN;
    crashed += span->fate == CRASHED;
    if (span->wait_ms > most_ms) most_ms = span->wait_ms;
  }
  bool long_one = drawing->to_ms - drawing->from_ms > 43200000;
  time_text(from, drawing->from_ms, "%Y-%m-%d %H:%M:%S");
  time_text(to, drawing->to_ms, long_one ? "%Y-%m-%d %H:%M:%S %Z" : "%H:%M:%S %Z");
  span_text(longest, most_ms);
  snprintf(text, sizeof text,
           "%s to %s: %zu hold%s, %zu broken, %zu never released, longest wait %s", from, to, holds,
           holds == 1 ? "" : "s", broken, crashed, longest);
  char *name = fitted(printable(history->name, strlen(history->name)), TITLE_MAX);
  draw_text(drawing, LEFT, 26, "title", name);
  draw_text(drawing, LEFT, 46, "mid", text);
  free(name);
}

static void draw_legend(struct drawing *drawing, double y)
{
  FILE *to = drawing->to;
  fprintf(to, "<rect class='wait' x='%d' y='%.1f' width='22' height='8' rx='2'/>\n", LEFT, y - 8);
  draw_text(drawing, LEFT + 30, y, "mid", "waits");
  fprintf(to, "<rect class='hold' x='%d' y='%.1f' width='22' height='14' rx='2'/>\n", LEFT + 85,
          y - 11);
  draw_text(drawing, LEFT + 115, y, "mid", "holds");
  fprintf(to, "<rect class='crash' x='%d' y='%.1f' width='22' height='14' rx='2'/>\n", LEFT + 170,
          y - 11);
  draw_text(drawing, LEFT + 200, y, "mid",
            "crashed, or cut off: ends with the lease, before the next hold");
  fprintf(to, "<path class='bad' d='M%d %.1fl10 10m0-10l-10 10'/>\n", LEFT + 600, y - 9);
  draw_text(drawing, LEFT + 618, y, "mid", "broken, or lost");
}

void history_draw(FILE *to, const void *context)
{
  const struct history *history = context;
  struct drawing drawing = {.to = to, .history = history, .crowded = history->count > CROWD_MIN};
  drawing.lane_of = grown(NULL, history->count * sizeof(int));
  drawing.row_of = grown(NULL, history->count * sizeof(int));
  memset(drawing.row_of, 0, history->count * sizeof(int));
  find_range(&drawing);
  lay_out(&drawing);
  double top = drawing.bottom + 8;
  double bottom = top + (drawing.crowded ? 110 : 46);
  fprintf(to,
          "<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 %d %.0f' font-family='sans-serif' "
          "font-size='12'>\n<style>%s</style>\n<rect width='100%%' height='100%%' fill='white'/>\n",
          WIDTH, bottom + 62, style);
  draw_head(&drawing);
  draw_axis(&drawing, bottom);
  draw_hosts(&drawing);
  draw_queue(&drawing, top, bottom);
  draw_spans(&drawing);
  draw_legend(&drawing, bottom + 46);
  fputs("</svg>\n", to);
  for (int i = 0; i < drawing.lane_count; i++)
    free(drawing.lanes[i].host);
  free(drawing.lane_of);
  free(drawing.row_of);
}
