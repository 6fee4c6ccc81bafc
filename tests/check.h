/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The test frame of the C suites. It needs nothing of a platform but check_write(), so that the
 * same suites run on the host and on a board.
 *
 *     static void test_something(void) { CHECK(1 + 1 == 2); CHECK_EQUAL(answer(), 42); }
 *     const struct check_test check_tests[] = {{"something", test_something}, {0}};
 *
 * Each test prints one line: "ok NAME", "skip NAME: WHY", or "not ok NAME" after a line "#
 * FILE:LINE: ..." for each check that failed. tests/tools/run.sh adds these lines up
 * over all suites.
 */
#ifndef CHECK_H
#define CHECK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct check_test {
  const char *name;
  void (*run)(void);
};

/* The suite's tests, ended by an entry without a name. */
extern const struct check_test check_tests[];

/* Runs all tests whose name contains `only` (NULL: all). Returns the number that failed. */
int check_run(const char *only);

/* Prints text. Supplied by check_host.c, or by a board. */
void check_write(const char *text);

/* Used by the macros. They return the condition. */
bool check_true(bool condition, const char *file, int line, const char *text);
bool check_equal(int64_t is, int64_t expected, const char *file, int line, const char *text);
bool check_bytes(const void *is, size_t is_size, const void *expected, size_t expected_size,
                 const char *file, int line);

/* Marks the running test as skipped. */
void check_skip(const char *why);

#define CHECK(condition) check_true((condition), __FILE__, __LINE__, #condition)
#define CHECK_EQUAL(is, expected)                                                                  \
  check_equal((int64_t)(is), (int64_t)(expected), __FILE__, __LINE__, #is)
#define CHECK_BYTES(is, is_size, expected, expected_size)                                          \
  check_bytes((is), (is_size), (expected), (expected_size), __FILE__, __LINE__)

#endif
