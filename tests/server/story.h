/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One story, played by a client behind a proxy: acquire, re-enter, release, wait, be handed the
 * lock, renew, hand it over, leave the queue, force, inspect. It is played again and again, and
 * each time another request is hit. The results must be the same each time: statuses, hold counts,
 * tokens, the queue.
 */
#ifndef STORY_H
#define STORY_H

#include <stddef.h>

#include "harness.h"
#include "support/proxy.h"

/* The server forgets the scripts before each run of a sweep. */
extern bool unknown_scripts;

/*
 * Who plays it: two who want the lock alone; two of whom one may hold beside a third that holds all
 * the time; one that shares and another that wants the lock alone.
 */
extern enum cast { ALONE, BESIDE, MIXED } cast;

/*
 * Plays the story undisturbed, and then once for each request, giving for it the proxy's order at
 * this offset of struct proxy_control.
 */
void sweep(const char *what, size_t order);

/* Plays the story with SCRIPT FLUSH before each step. */
void tell_with_flushes(void);

#endif
