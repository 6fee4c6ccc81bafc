/* Prints any bytes, for people and as JSON. */
#ifndef TEXT_H
#define TEXT_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/*
 * A copy of bytes that a terminal can show: what is not printable, well-formed UTF-8 becomes \xNN,
 * and a backslash becomes two. To be freed; NULL when there is no memory.
 */
char *printable(const void *bytes, size_t size);

/* The same; ends the program when there is no memory. */
char *bytes_shown(const void *bytes, size_t size);

/*
 * Prints "key":"bytes". JSON has no bytes, only text: what is not well-formed UTF-8 becomes U+FFFD,
 * and then a second member "key_hex" has all the bytes, in hexadecimal digits.
 */
void print_json_bytes(FILE *to, const char *key, const void *bytes, size_t size);

/* How text stands out on a terminal. */
enum paint { PLAIN, STRONG, GOOD, DOUBTFUL, BAD };

/*
 * What has to be printed for text to look like that from here on; "" unless `to` is a terminal that
 * shows colours, and the environment has no NO_COLOR.
 */
const char *paint(FILE *to, enum paint how);

/* Prints a time in milliseconds: "0.8 s", "12 s", "3 min 12 s", "5 h 3 min", "2 d 5 h". */
void print_span(FILE *to, int64_t ms);

#endif
