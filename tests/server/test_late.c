/*
 * A request that comes late, each in turn: its connection breaks, the client sends it again on a new one, and then
 * the first one reaches the server, too. It must neither end nor begin a hold that it does not belong to.
 */
#include "story.h"

static void test_at_rest(void)
{
  sweep("stranded for a while", offsetof(struct proxy_control, strand), 150, true);
}

static void test_in_passing(void)
{
  sweep("stranded for longer", offsetof(struct proxy_control, strand), 400, false);
}

const struct check_test check_tests[] = {
    {"late: while nothing else happens", test_at_rest},
    {"late: while the story goes on", test_in_passing},
    {NULL, NULL},
};
