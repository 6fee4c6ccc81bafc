/*
 * A small Redis client for tests: blocking, RESP2, malloc, no error handling but the end of the
 * program. It shares nothing with the library, so that the library's own codec cannot hide a
 * mistake of the library's.
 */
#ifndef INTEROP_REDIS_H
#define INTEROP_REDIS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct redis {
  int socket;
  char *bytes; /* received, not yet read */
  size_t size, used, room;
  char *text; /* the last reply, flattened */
  size_t text_size, text_room;
};

/* Connects to a server on the loopback interface. False: nobody listens. */
bool redis_open(struct redis *redis, int port);
void redis_close(struct redis *redis);

/*
 * Sends a command and returns its reply as text, valid until the next call: numbers in decimal, the
 * elements of an array each on a line of its own, "(nil)" for nothing, "-..." for an error.
 * redis_ask() takes the words from a format string, parted by single spaces; redis_ask_words()
 * takes them as they are.
 */
const char *redis_ask(struct redis *redis, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
const char *redis_ask_words(struct redis *redis, int count, const char *const *words);
int64_t redis_number(struct redis *redis, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Sends a command without waiting for its reply. */
void redis_send(struct redis *redis, int count, const char *const *words);

/* The next reply or message, NULL when none comes within timeout_ms. */
const char *redis_next(struct redis *redis, int timeout_ms);

#endif
