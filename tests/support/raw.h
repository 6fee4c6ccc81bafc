/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A connection to a server that looks at it without the library: blocking, RESP2, or RESP3 after a
 * HELLO 3. It shares nothing with the library, not even the codec, so that a mistake there cannot
 * hide one here.
 */
#ifndef SUPPORT_RAW_H
#define SUPPORT_RAW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct raw_element {
  char type; /* as it stands before the value; '_' for nil */
  int64_t integer;
  size_t size;
  char *text; /* ended by NUL */
};

struct raw {
  int socket;
  size_t count; /* elements of the last reply, its outermost one included */
  struct raw_element element[512];
  size_t used;
  char buffer[1 << 16];
};

/* False: nobody listens on that port. */
bool raw_open(struct raw *raw, int port);
void raw_close(struct raw *raw);

/*
 * Runs a command and waits for its reply. format: words separated by one blank; %s a string, %d an
 * int, %ld an int64_t, %b bytes (const void *, size_t), inside of words, too. raw_run: false if the
 * reply was an error, whose text is element[0]. raw_number: the integer, or number of elements, -1
 * for nil, INT64_MIN for an error. raw_text: "" for nil.
 */
bool raw_run(struct raw *raw, const char *format, ...);
int64_t raw_number(struct raw *raw, const char *format, ...);
const char *raw_text(struct raw *raw, const char *format, ...);

/* Sends only; raw_reply() waits for the next reply. False: none came. */
void raw_send(struct raw *raw, const char *format, ...);
bool raw_reply(struct raw *raw);

/* The next reply or message; false if nothing of it comes within timeout_ms. */
bool raw_reply_within(struct raw *raw, int timeout_ms);

#endif
