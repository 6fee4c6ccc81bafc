/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program for NuttX's shell: port/conformance, on the port of POSIX as this configuration of NuttX
 * runs it. Not twice at the same time.
 *
 *     fairlock_conformance HOST PORT [PART_OF_A_RULE]
 *
 * HOST and PORT are those of build/conformance-peer. It ends with the number of broken rules.
 */
#include <nuttx/config.h>

#include "conformance.h"
#include "port_posix.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static struct {
  void (*run)(void *context);
  void *context;
} task;

static void print(const char *text)
{
  (void)fputs(text, stdout);
  (void)fflush(stdout);
}

static void *in_task(void *nothing)
{
  (void)nothing;
  task.run(task.context);
  return NULL;
}

static bool start(void (*run)(void *context), void *context)
{
  pthread_t thread;
  pthread_attr_t attributes;
  task.run = run;
  task.context = context;
  (void)pthread_attr_init(&attributes);
  (void)pthread_attr_setstacksize(&attributes, CONFIG_EXAMPLES_FAIRLOCK_STACKSIZE);
  (void)pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  bool started = pthread_create(&thread, &attributes, in_task, NULL) == 0;
  (void)pthread_attr_destroy(&attributes);
  return started;
}

int main(int argc, char *argv[])
{
  struct port_posix peer;
  struct port_conformance port = {.transport = &peer.transport, .write = print, .start = start};
  if (argc < 3) {
    printf("fairlock_conformance HOST PORT [PART_OF_A_RULE]\n");
    return EXIT_FAILURE;
  }
  if (argc > 3) port.only = argv[3];
  port_posix_tcp(&peer, argv[1], argv[2]);
  return port_conformance_run(&port);
}
