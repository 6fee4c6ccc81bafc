/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the pictures share that our programs draw for the pages: an SVG on a white ground, with
 * nothing from outside.
 */
#ifndef SVG_H
#define SVG_H

#include <stdbool.h>
#include <stdio.h>

/*
 * Begins a picture in the file of that path, with style, in CSS, beside the common one. NULL: it
 * cannot be written.
 */
FILE *svg_begin(const char *path, int width, int height, const char *style);

/* Ends the picture. False: it could not be written. */
bool svg_end(FILE *file);

/*
 * How far apart the lines of an axis from 0 to most, which is above 0, are: 1, 2 or 5 times a power
 * of 10.
 */
double svg_step(double most);

#endif
