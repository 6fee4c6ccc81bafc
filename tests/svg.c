/* SPDX-License-Identifier: Apache-2.0 */
/* The frame of a picture: its ground, the styles that all use, and the lines of an axis. */
#include "svg.h"

FILE *svg_begin(const char *path, int width, int height, const char *style)
{
  FILE *file = fopen(path, "w");
  if (file == NULL) return NULL;
  fprintf(file,
          "<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 %d %d' font-family='sans-serif' "
          "font-size='12'>\n"
          "<style>.title{font-weight:bold}.grid{stroke:#ccc}.end{text-anchor:end}.middle{text-"
          "anchor:middle}%s</style>\n"
          "<rect width='100%%' height='100%%' fill='white'/>\n",
          width, height, style);
  return file;
}

bool svg_end(FILE *file)
{
  fprintf(file, "</svg>\n");
  bool written = ferror(file) == 0;
  return fclose(file) == 0 && written;
}

double svg_step(double most)
{
  double power = 1;
  while (power * 10 <= most)
    power *= 10;
  while (power > most)
    power /= 10;
  if (most <= power * 1.2) return power / 5;
  if (most <= power * 3) return power / 2;
  return most <= power * 6 ? power : power * 2;
}
