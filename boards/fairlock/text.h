/* SPDX-License-Identifier: Apache-2.0 */
/* Prints any bytes, for people and as JSON. */
#ifndef TEXT_H
#define TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* realloc(), which ends the program when there is no memory. */
void *grown(void *memory, size_t size);

/* Returns the array of `count` elements with room for one more. */
void *with_room(void *array, size_t count, size_t *room, size_t size);

/* Returns a copy of bytes with a NUL after them, to be freed. */
char *copied(const void *bytes, size_t size);

/*
 * Returns a printable copy of bytes, to be freed. Bytes that are not printable, well-formed UTF-8
 * become \xNN, and a backslash becomes two.
 */
char *printable(const void *bytes, size_t size);

/*
 * Prints "key":"bytes". JSON has text and no bytes, so bytes that are not well-formed UTF-8 become
 * U+FFFD; then a second member, "key_hex", has all bytes in hexadecimal digits.
 */
void print_json_bytes(FILE *to, const char *key, const void *bytes, size_t size);

/* Colours of text on a terminal. */
enum paint { PLAIN, STRONG, GOOD, DOUBTFUL, BAD };

/* What to print before text of that colour; "" without colours, or with NO_COLOR. */
const char *paint(FILE *to, enum paint how);

/* True if the word, of `size` bytes, is in a list of words that are separated by spaces. */
bool has_word(const char *list, const char *word, size_t size);

/* Writes a time in milliseconds to text, as print_span() does. */
#define SPAN_SIZE 48
void span_text(char text[SPAN_SIZE], int64_t ms);

/* Prints a time in milliseconds: "0.8 s", "12 s", "3 min 12 s", "5 h 3 min", "2 d 5 h". */
void print_span(FILE *to, int64_t ms);

#endif
