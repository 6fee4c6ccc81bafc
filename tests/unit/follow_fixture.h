/* SPDX-License-Identifier: Apache-2.0 */
/* Servers that move, and the transport's list of seeds: engine_fixture.h, with a topology. */
#ifndef FOLLOW_FIXTURE_H
#define FOLLOW_FIXTURE_H

#include "engine_fixture.h"
#include "fairlock_follow.h"

extern struct fairlock_topology topology;
extern char address[64];   /* the topology's */
extern unsigned seeds;     /* how many the transport has */
extern unsigned seed;      /* where it goes next, 1 to seeds; 0: to `place` */
extern bool goes_anywhere; /* aim() takes addresses */
extern char place[64];     /* the address that aim() took last */

/* The transport's; its context is &seeds. */
bool aim(void *context, const char *where);
/* A topology that says nothing yet, and so many seeds; set_up_seeds() makes an engine, too. */
void prepare_seeds(unsigned count);
void set_up_seeds(unsigned count);
/* The engine follows the topology. */
void follow(void);
void follow_seeds(unsigned count);
/* The answer to HELLO, as servers give it: with elements inside elements. */
void say_hello(const char *version, const char *mode, const char *role);

#endif
