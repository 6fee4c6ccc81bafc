/* SPDX-License-Identifier: Apache-2.0 */
/* The test frame; see check.h. No libc but string.h, so that it runs on a board. */
#include "check.h"

#include <string.h>

static bool failed;
static bool skipped;

static void write_number(int64_t number)
{
  char text[24];
  size_t at = sizeof text - 1;
  uint64_t value = number < 0 ? 0 - (uint64_t)number : (uint64_t)number;
  text[at] = 0;
  do {
    text[--at] = (char)('0' + value % 10);
    value /= 10;
  } while (value > 0);
  if (number < 0) text[--at] = '-';
  check_write(text + at);
}

static void begin_failure(const char *file, int line)
{
  failed = true;
  check_write("# ");
  check_write(file);
  check_write(":");
  write_number(line);
  check_write(": ");
}

bool check_true(bool condition, const char *file, int line, const char *text)
{
  if (condition) return true;
  begin_failure(file, line);
  check_write(text);
  check_write("\n");
  return false;
}

bool check_equal(int64_t is, int64_t expected, const char *file, int line, const char *text)
{
  if (is == expected) return true;
  begin_failure(file, line);
  check_write(text);
  check_write(" is ");
  write_number(is);
  check_write(", expected ");
  write_number(expected);
  check_write("\n");
  return false;
}

bool check_bytes(const void *is, size_t is_size, const void *expected, size_t expected_size,
                 const char *file, int line)
{
  if (is_size == expected_size && (is_size == 0 || memcmp(is, expected, is_size) == 0)) return true;
  begin_failure(file, line);
  check_write("bytes differ; sizes ");
  write_number((int64_t)is_size);
  check_write(" and ");
  write_number((int64_t)expected_size);
  check_write("\n");
  return false;
}

void check_skip(const char *why)
{
  skipped = true;
  check_write("# skipped: ");
  check_write(why);
  check_write("\n");
}

int check_run(const char *only)
{
  int failures = 0;
  for (const struct check_test *test = check_tests; test->name != NULL; test++) {
    if (only != NULL && strstr(test->name, only) == NULL) continue;
    failed = false;
    skipped = false;
    test->run();
    check_write(failed ? "not ok " : skipped ? "skip " : "ok ");
    check_write(test->name);
    check_write("\n");
    if (failed) failures++;
  }
  return failures;
}
