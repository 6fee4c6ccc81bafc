/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The picture: for each peer a line from the usual handover to the longest wait, on a logarithmic
 * scale, and how many overtook.
 */
#include "peers.h"
#include "svg.h"

#include <math.h>

enum { WIDTH = 720, LEFT = 190, RIGHT = 110, TOP = 66, STEP = 26 };

/* A logarithm needs one. */
#define LEAST_MS 0.01

/* The decades that hold all values. */
struct scale {
  double least, most; /* exponents of 10 */
};

static struct scale scale_of(const struct row *rows, int count)
{
  struct scale scale = {0, 0};
  for (int i = 0; i < count; i++) {
    scale.least = fmin(scale.least, floor(log10(fmax(rows[i].median[HANDOVER_P50], LEAST_MS))));
    scale.most = fmax(scale.most, ceil(log10(rows[i].median[LONGEST])));
  }
  return scale;
}

static double place(struct scale scale, double ms)
{
  return LEFT + (log10(fmax(ms, LEAST_MS)) - scale.least) / (scale.most - scale.least) *
                    (WIDTH - LEFT - RIGHT);
}

static void draw_axis(FILE *file, struct scale scale, int bottom)
{
  for (double power = scale.least; power <= scale.most; power++) {
    double ms = pow(10, power);
    double x = place(scale, ms);
    fprintf(file,
            "<line x1='%.1f' x2='%.1f' y1='%d' y2='%d' class='grid'/><text x='%.1f' y='%d' "
            "class='middle'>%g %s</text>\n",
            x, x, TOP - 12, bottom, x, bottom + 16, ms < 1000 ? ms : ms / 1000,
            ms < 1000 ? "ms" : "s");
  }
}

static void draw_row(FILE *file, struct scale scale, const struct row *row, int y)
{
  double from = place(scale, row->median[HANDOVER_P50]);
  double to = place(scale, row->median[LONGEST]);
  fprintf(file,
          "<text x='%d' y='%d' class='end'>%s</text><line x1='%.1f' x2='%.1f' y1='%d' y2='%d' "
          "class='span'/><circle cx='%.1f' cy='%d' r='5' class='handover'/><circle cx='%.1f' "
          "cy='%d' r='5' class='wait'/><text x='%d' y='%d' class='end'>%.0f of %d</text>\n",
          LEFT - 14, y + 4, row->name, from, to, y, y, from, y, to, y, WIDTH - 20, y + 4,
          row->median[OVERTAKING], TURNS);
}

bool draw(const char *path, const struct row *rows, int count)
{
  struct scale scale = scale_of(rows, count);
  int bottom = TOP + count * STEP - 8;
  FILE *file = svg_begin(path, WIDTH, bottom + 28,
                         ".span{stroke:#aaa;stroke-width:2}.handover{fill:#2563ae}"
                         ".wait{fill:#c2410c}");
  if (file == NULL) return false;
  fprintf(file,
          "<text x='14' y='20' class='title'>%d contenders at one lock</text>\n"
          "<circle cx='%d' cy='38' r='5' class='handover'/><text x='%d' y='42'>release to the next "
          "acquire, median</text>\n"
          "<circle cx='%d' cy='38' r='5' class='wait'/><text x='%d' y='42'>longest wait</text>\n"
          "<text x='%d' y='42' class='end'>overtook</text>\n",
          CONTENDERS, LEFT + 5, LEFT + 16, LEFT + 250, LEFT + 261, WIDTH - 20);
  draw_axis(file, scale, bottom);
  for (int i = 0; i < count; i++)
    draw_row(file, scale, &rows[i], TOP + 6 + i * STEP);
  return svg_end(file);
}
