/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The demo as a picture: a row for each contender in the order of the records, time to the right,
 * and below what the records prove.
 */
#include "demo.h"
#include "svg.h"

#include <stdio.h>
#include <string.h>

enum {
  WIDTH = 880,
  LEFT = 140,
  RIGHT = 728,
  TOP = 82,
  PITCH = 28,
  BAR = 18,
  BOTTOM = TOP + CONTENDERS * PITCH
};

static const char sharing_style[] = ".shares{fill:#1f7a5c}";
static const char style[] = ".mid{fill:#555}.waits{fill:#cddaea}.holds{fill:#2563ae}"
                            ".lease{fill:#f9dfda;stroke:#b3261e;stroke-dasharray:3}"
                            ".crash{stroke:#b3261e;stroke-width:3;fill:none}.turn{fill:white}"
                            ".verdict{font-weight:bold;font-size:14px}";

static FILE *file;
static const struct contender *all;
static int64_t origin; /* the first asked */
static int64_t end;

static double place(int64_t at)
{
  return LEFT + (double)(at - origin) / (double)(end - origin) * (RIGHT - LEFT);
}

static void later(int64_t *last, int64_t at)
{
  if (at > *last) *last = at;
}

/* The time from the first request to the last thing that happened to anybody. */
static void measure(void)
{
  origin = 0;
  for (int i = 0; i < CONTENDERS; i++) {
    if (all[i].asked_at != 0 && (origin == 0 || all[i].asked_at < origin)) origin = all[i].asked_at;
  }
  end = origin + 1;
  for (int i = 0; i < CONTENDERS; i++) {
    later(&end, all[i].asked_at);
    later(&end, all[i].killed_at);
    if (all[i].granted_at != 0) later(&end, end_of_hold(&all[i]));
  }
}

static void draw_axis(void)
{
  double most = (double)(end - origin) / 1e6;
  double step = svg_step(most);
  for (double s = 0; s <= most; s += step) {
    double x = LEFT + s / most * (RIGHT - LEFT);
    fprintf(file, "<line x1='%.1f' x2='%.1f' y1='%d' y2='%d' class='grid'/>\n", x, x, TOP - 4,
            BOTTOM);
    fprintf(file, "<text x='%.1f' y='%d' class='middle tick'>%g</text>\n", x, BOTTOM + 16, s);
  }
  fprintf(file, "<text x='%d' y='%d' class='middle mid'>seconds since the first asked</text>\n",
          (LEFT + RIGHT) / 2, BOTTOM + 34);
}

/* A span of time in the row at y. */
static void draw_bar(const char *class, int64_t from, int64_t until, int y)
{
  fprintf(file, "<rect class='%s' x='%.1f' y='%d' width='%.1f' height='%d' rx='2'/>\n", class,
          place(from), y, place(until) - place(from), BAR);
}

static void draw_cross(double x, int y)
{
  fprintf(file, "d='M%.1f %dl10 10m0 -10l-10 10'/>\n", x - 5, y + BAR / 2 - 5);
}

static void draw_crash(const struct contender *self, int y)
{
  bool held = self->granted_at != 0;
  if (held) draw_bar("lease", self->killed_at, end_of_hold(self), y);
  fprintf(file, "<path class='crash' ");
  draw_cross(place(self->killed_at), y);
  fprintf(file, "<text x='%.1f' y='%d'>%s</text>\n", place(self->killed_at) + 10, y + 13,
          held ? "lease runs out" : "passed over");
}

static void draw_hold(const struct contender *self, int turn, int y)
{
  unsigned long long token = self->token;
  int64_t visible = self->killed_at != 0 ? self->killed_at : end_of_hold(self);
  draw_bar(self->limit > 0 ? "shares" : "holds", self->granted_at, end_of_hold(self), y);
  fprintf(file, "<text x='%.1f' y='%d' class='turn'>%s%d</text>\n", place(self->granted_at) + 5,
          y + 13, place(visible) - place(self->granted_at) < 44 ? "" : "turn ", turn);
  fprintf(file, "<text x='%d' y='%d' class='end token'>%llu</text>\n", WIDTH - 12, y + 13, token);
}

/* turn: 0 if it had none. */
static void draw_row(const struct contender *self, int turn, int y)
{
  int64_t over = turn > 0 ? self->granted_at : self->killed_at != 0 ? self->killed_at : end;
  fprintf(file,
          "<text x='52' y='%d' class='end arrival'>%d</text>\n<text x='68' y='%d'>%s</text>\n",
          y + 13, self->arrival, y + 13, self->name);
  if (self->asked_at != 0) draw_bar("waits", self->asked_at, over, y);
  if (turn > 0) draw_hold(self, turn, y);
  if (self->killed_at != 0) draw_crash(self, y);
  if (self->stage == FAILED)
    fprintf(file, "<text x='%d' y='%d' class='end'>failed</text>\n", RIGHT, y + 13);
}

static void draw_rows(void)
{
  const struct contender *order[CONTENDERS];
  int count = grants(all, order);
  for (int i = 0; i < CONTENDERS; i++) {
    int turn = 0;
    for (int j = 0; j < count; j++) {
      if (order[j] == &all[i]) turn = j + 1;
    }
    draw_row(&all[i], turn, TOP + i * PITCH);
  }
}

struct item {
  const char *class, *text;
  int x;
};

static void draw_legend(int y)
{
  static const struct item alone[] = {{"waits", "waits in line", 140},
                                      {"holds", "holds the lock", 280},
                                      {"crash", "killed", 430},
                                      {"lease", "what is left of its lease", 530}};
  static const struct item shared[] = {{"waits", "waits in line", 140},
                                       {"shares", "shares the lock", 262},
                                       {"holds", "holds it alone", 402},
                                       {"crash", "killed", 534},
                                       {"lease", "what is left of its lease", 618}};
  bool shares = most_at_once(all) > 1;
  const struct item *item = shares ? shared : alone;
  for (int left = shares ? 5 : 4; left > 0; left--, item++) {
    if (strcmp(item->class, "crash") == 0) {
      fprintf(file, "<path class='crash' ");
      draw_cross(item->x + 12, y);
    } else {
      fprintf(file, "<rect class='%s' x='%d' y='%d' width='24' height='%d' rx='2'/>\n", item->class,
              item->x, y, BAR);
    }
    fprintf(file, "<text x='%d' y='%d'>%s</text>\n", item->x + 32, y + 13, item->text);
  }
}

static void draw_verdict(int y)
{
  struct verdict verdict = verdict_of(all, true);
  fprintf(file, "<text x='%d' y='%d' class='verdict'>", LEFT, y);
  fprintf(file, "order %s, ", order_kept(all, &verdict) ? "kept" : "broken");
  if (most_at_once(all) > 1)
    fprintf(file, "at most %d at a time, the writer %s</text>\n", verdict.most,
            verdict.overlaps == 0 ? "alone" : "beside others");
  else if (verdict.most == 1) fprintf(file, "one holder at a time</text>\n");
  else fprintf(file, "%d holders at a time</text>\n", verdict.most);
}

static void draw_titles(void)
{
  bool shares = most_at_once(all) > 1;
  const char *title =
      shares ? "Seven readers and a writer on one lock" : "Eight contenders on one lock";
  fprintf(file, "<title>%s: who waited, and who held it, when</title>\n", title);
  fprintf(file, "<text x='%d' y='24' class='title' font-size='15'>%s</text>\n", LEFT, title);
  fprintf(file, "<text x='%d' y='44' class='mid'>", LEFT);
  if (shares)
    fprintf(file,
            "At most %d readers share it at a time. Drawn by make "
            "demo-picture SCENE=shared from a run on a real Redis.",
            most_at_once(all));
  else
    fprintf(file, "Four processes, and four threads that share a connection. Drawn by make "
                  "demo-picture from a run on a real Redis.");
  fprintf(file, "</text>\n");
}

bool draw_timeline(const char *path, const struct contender *contenders)
{
  char styles[sizeof style + sizeof sharing_style];
  all = contenders;
  snprintf(styles, sizeof styles, "%s%s", style, most_at_once(all) > 1 ? sharing_style : "");
  file = svg_begin(path, WIDTH, BOTTOM + 116, styles);
  if (file == NULL) return false;
  measure();
  draw_titles();
  fprintf(file,
          "<text x='52' y='70' class='end mid'>arrival</text>\n<text x='68' y='70' "
          "class='mid'>contender</text>\n"
          "<text x='%d' y='70' class='end mid'>fencing token</text>\n",
          WIDTH - 12);
  draw_axis();
  draw_rows();
  draw_legend(BOTTOM + 50);
  draw_verdict(BOTTOM + 98);
  return svg_end(file);
}
