/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A reply lost at each request: the connection is cut before the server executes it, or after that
 * and before the answer. The client sends the request again, and the result is as if nothing had
 * happened.
 */
#include "story.h"

static void test_before(void)
{
  sweep("cut before", offsetof(struct proxy_control, cut_before));
}

static void test_after(void)
{
  sweep("cut after", offsetof(struct proxy_control, cut_after));
}

static void test_after_with_flush(void)
{
  unknown_scripts = true;
  sweep("scripts flushed, cut after", offsetof(struct proxy_control, cut_after));
  unknown_scripts = false;
}

/* NOSCRIPT for each operation, never seen by the caller. */
static void test_noscript(void)
{
  tell_with_flushes();
}

static void test_shared_noscript(void)
{
  cast = BESIDE;
  tell_with_flushes();
  cast = MIXED;
  tell_with_flushes();
  cast = ALONE;
}

const struct check_test check_tests[] = {
    {"replies: each request lost", test_before},
    {"replies: each reply lost", test_after},
    {"replies: each reply lost, scripts unknown", test_after_with_flush},
    {"replies: NOSCRIPT for each operation", test_noscript},
    {"replies, shared: NOSCRIPT for each operation", test_shared_noscript},
    {NULL, NULL},
};
