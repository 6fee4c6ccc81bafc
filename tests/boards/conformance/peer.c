/* SPDX-License-Identifier: Apache-2.0 */
/* See peer.h. */
#include "peer.h"
#include "support/process.h"

#include <pthread.h>
#include <stdio.h>

#ifndef PEER
#define PEER "build/conformance-peer"
#endif

int peer_start(void)
{
  static const char *const words[] = {PEER, NULL};
  int output;
  int port = 0;
  (void)spawn_program(words, NULL, &output);
  FILE *lines = fdopen(output, "r");
  if (lines == NULL || fscanf(lines, "port %d", &port) != 1) give_up(PEER);
  (void)fclose(lines);
  return port;
}

/* One at a time: what it is to run stands here until it has begun. */
static struct {
  void (*run)(void *context);
  void *context;
} task;

static void *run_task(void *unused)
{
  (void)unused;
  task.run(task.context);
  return NULL;
}

bool peer_start_task(void (*run)(void *context), void *context)
{
  pthread_t thread;
  task.run = run;
  task.context = context;
  return pthread_create(&thread, NULL, run_task, NULL) == 0 && pthread_detach(thread) == 0;
}
