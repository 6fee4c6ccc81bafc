/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The picture: the server's time for a handover by waiters in the queue, and handovers a second by
 * clients.
 */
#include "bench.h"
#include "svg.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { WIDTH = 360, HEIGHT = 220, LEFT = 60, BOTTOM = 45, TOP = 40 };

static double place_x(double x, double most)
{
  return LEFT + log10(x) / log10(most) * (WIDTH - LEFT - 25);
}

static double place_y(double y, double most)
{
  return HEIGHT - BOTTOM - y / most * (HEIGHT - BOTTOM - TOP);
}

static void draw_curve(FILE *file, int shift, const char *title, const char *across,
                       const struct point *points, int count)
{
  double most_x = points[count - 1].x;
  double most_y = 0;
  for (int i = 0; i < count; i++)
    most_y = fmax(most_y, points[i].y);
  double step = svg_step(most_y);
  most_y = ceil(most_y / step) * step;
  fprintf(file, "<g transform='translate(%d 0)'>\n<text x='%d' y='20' class='title'>%s</text>\n",
          shift, LEFT, title);
  for (double y = 0; y <= most_y * 1.001; y += step) {
    fprintf(file,
            "<line x1='%d' x2='%d' y1='%.1f' y2='%.1f' class='grid'/><text x='%d' y='%.1f' "
            "class='end'>%g</text>\n",
            LEFT, WIDTH - 25, place_y(y, most_y), place_y(y, most_y), LEFT - 6,
            place_y(y, most_y) + 4, y);
  }
  fprintf(file, "<polyline class='curve' points='");
  for (int i = 0; i < count; i++)
    fprintf(file, "%.1f,%.1f ", place_x(points[i].x, most_x), place_y(points[i].y, most_y));
  fprintf(file, "'/>\n");
  for (int i = 0; i < count; i++) {
    double x = place_x(points[i].x, most_x);
    fprintf(file,
            "<circle cx='%.1f' cy='%.1f' r='3'/><text x='%.1f' y='%d' class='middle'>%g</text>\n",
            x, place_y(points[i].y, most_y), x, HEIGHT - BOTTOM + 18, points[i].x);
  }
  fprintf(file, "<text x='%d' y='%d' class='middle'>%s</text>\n</g>\n", (LEFT + WIDTH - 25) / 2,
          HEIGHT - 6, across);
}

void draw(const char *path)
{
  FILE *file = svg_begin(path, 2 * WIDTH, HEIGHT,
                         ".curve{fill:none;stroke:#2563ae;stroke-width:2}circle{fill:#2563ae}");
  if (file == NULL) exit(1);
  draw_curve(file, 0, "server time per handover, &#181;s", "waiters in the queue", waiters_curve,
             waiters_points);
  draw_curve(file, WIDTH, "handovers a second", "clients, one connection each", clients_curve,
             clients_points);
  if (!svg_end(file)) exit(1);
}
