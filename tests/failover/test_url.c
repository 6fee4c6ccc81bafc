/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All that a URL can ask for at once, as a service does it: boards/examples/loops/epoll.c finds its
 * master by Sentinels, with TLS to all of them and passwords, and stays through a fail-over.
 */
#include "scene.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifndef EXAMPLES
#define EXAMPLES     "build/examples" /* the makefile says where they really are */
#define TLS_EXAMPLES "build/tls/examples"
#define CERTIFICATES "build/tls/certificates"
#endif

#define PASSWORD          "s:3c/r@t"
#define ENCODED           "s%3A3c%2Fr%40t"
#define SENTINEL_PASSWORD "sesame"

/* Long enough to hold through the fail-over; who waits is not asked often then. */
#define HOLD_MS   "15000"
#define WAITER_MS "20000"

struct program {
  pid_t pid;
  FILE *lines;
};

static const struct rig_options safe = {
    .certificates = CERTIFICATES, .password = PASSWORD, .sentinel_password = SENTINEL_PASSWORD};

/* The password of the Sentinels is not in the URL. */
static void start_all(void)
{
  if (setenv("SENTINEL_PASSWORD", SENTINEL_PASSWORD, 1) != 0) give_up("setenv");
  sentinels_start(&rig, &safe);
}

/* The rig's URL with a login. */
static const char *url_with(const char *login)
{
  static char url[400];
  char seeds[300];
  rig_url(&rig, 3, seeds, sizeof seeds);
  char *rest = strstr(seeds, "://") + 3;
  (void)snprintf(url, sizeof url, "%.*s%s@%s", (int)(rest - seeds), seeds, login, rest);
  return url;
}

static void start(struct program *program, const char *path, const char *url, const char *hold_ms,
                  const char *ca)
{
  int output;
  const char *words[] = {path, url, DOOR, hold_ms, WAITER_MS, ca, NULL};
  program->pid = spawn_program(words, NULL, &output);
  program->lines = fdopen(output, "r");
  if (program->lines == NULL) give_up("fdopen");
}

static bool says(struct program *program, const char *begin)
{
  char line[200] = "";
  bool right =
      fgets(line, sizeof line, program->lines) != NULL && strncmp(line, begin, strlen(begin)) == 0;
  if (!right) printf("# instead of \"%s\": %s\n", begin, line);
  return right;
}

static void ends(struct program *program, int status)
{
  CHECK_EQUAL(reap(program->pid), status);
  (void)fclose(program->lines);
}

/* One holds, and another waits, while the master dies: both go on at the next one. */
static void test_failover(void)
{
  struct program holder, waiter;
  start_all();
  const char *url = url_with("default:" ENCODED);
  start(&holder, TLS_EXAMPLES "/epoll_tls", url, HOLD_MS, CERTIFICATES "/ca.crt");
  CHECK(says(&holder, "held after"));
  start(&waiter, TLS_EXAMPLES "/epoll_tls", url, "1", CERTIFICATES "/ca.crt");
  CHECK(queue_reaches(node_raw(&rig.node[0]), DOOR, 1));
  CHECK(scene_replicated(0));
  node_kill(&rig.node[0]);
  int master = sentinels_promote(&rig, 0);
  if (!CHECK(master > 0)) return;
  CHECK(says(&holder, "released"));
  CHECK(says(&waiter, "held after"));
  CHECK(says(&waiter, "released"));
  ends(&holder, 0);
  ends(&waiter, 0);
  CHECK(nothing_left(node_raw(&rig.node[master]), DOOR));
  rig_stop(&rig);
}

/* What is wrong is told in words, and never is a password sent without TLS. */
static void test_wrong(void)
{
  static const struct {
    const char *path, *login, *ca, *words;
  } wrong[] = {
      {EXAMPLES "/epoll", "u:" ENCODED, NULL, "the URL: it asks for TLS, which this program"},
      {TLS_EXAMPLES "/epoll_tls", "u:%", NULL, "the URL: its password has a '%'"},
      {TLS_EXAMPLES "/epoll_tls", ":" ENCODED, "/nowhere",
       "the URL: it asks for TLS, and /nowhere cannot be used: No such file"},
      {TLS_EXAMPLES "/epoll_tls", ":wrong", CERTIFICATES "/ca.crt",
       "failed: the server refuses this user"},
      {TLS_EXAMPLES "/epoll_tls", ":" ENCODED, CERTIFICATES "/others.crt", "failed: "},
  };
  start_all();
  for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
    struct program program;
    start(&program, wrong[i].path, url_with(wrong[i].login), "1", wrong[i].ca);
    CHECK(says(&program, wrong[i].words));
    ends(&program, 1);
  }
  rig_stop(&rig);
}

const struct check_test check_tests[] = {
    {"url: Sentinels, TLS and passwords in a loop, through a fail-over", test_failover},
    {"url: what is wrong with it is told", test_wrong},
    {0}};
