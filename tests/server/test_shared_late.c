/*
 * The stories of test_replies and test_late, played by handles that share the lock: requests that are
 * lost or come late, replies that are lost, scripts that are unknown.
 */
#include "story.h"

static void play(enum cast who, const char *what, size_t order, int strand_ms, bool settle)
{
  cast = who;
  sweep(what, order, strand_ms, settle);
  cast = ALONE;
}

static void test_requests_lost(void)
{
  play(BESIDE, "cut before", offsetof(struct proxy_control, cut_before), 0, false);
}

static void test_replies_lost(void)
{
  unknown_scripts = true;
  play(BESIDE, "scripts flushed, cut after", offsetof(struct proxy_control, cut_after), 0, false);
  unknown_scripts = false;
}

static void test_replies_lost_mixed(void)
{
  play(MIXED, "cut after", offsetof(struct proxy_control, cut_after), 0, false);
}

static void test_late_at_rest(void)
{
  play(BESIDE, "stranded for a while", offsetof(struct proxy_control, strand), 150, true);
}

static void test_late_mixed(void)
{
  play(MIXED, "stranded for longer", offsetof(struct proxy_control, strand), 400, false);
}

static void test_noscript(void)
{
  cast = BESIDE;
  tell_with_flushes();
  cast = MIXED;
  tell_with_flushes();
  cast = ALONE;
}

const struct check_test check_tests[] = {
    {"shared late: each request lost", test_requests_lost},
    {"shared late: each reply lost, scripts unknown", test_replies_lost},
    {"shared late: each reply lost, of one that shares", test_replies_lost_mixed},
    {"shared late: while nothing else happens", test_late_at_rest},
    {"shared late: while the story goes on", test_late_mixed},
    {"shared late: NOSCRIPT for each operation", test_noscript},
    {NULL, NULL},
};
