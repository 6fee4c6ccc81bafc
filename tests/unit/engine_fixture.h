/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A client and a server that is written down: the test plays both sides by hand, byte by byte, in a
 * time that it sets itself. No libc but string.h, so that it runs on a board, too.
 */
#ifndef ENGINE_FIXTURE_H
#define ENGINE_FIXTURE_H

#include "check.h"
#include "engine.h"
#include "fairlock_operate.h"

#include <string.h>

#define ID "client-1"
#define CHANNEL(n)                                                                                 \
  "redisson_lock__channel:{door}:" ID ".a2.08s7li100001:" n /* connection 74; the time */
#define DAY   86400000U
#define START 0xfffff000U /* so that each test lives through the wrap-around of the clock */

extern struct fairlock_engine engine;
extern struct fairlock a, b;
extern struct fairlock_target anyone; /* any hold: to be broken */
extern struct fairlock_config config;
extern uint8_t receive_buffer[300], send_buffer[512];
extern char output[8192];
extern size_t output_size;
extern uint32_t now;
extern int losses;
extern struct fairlock_loss last_loss;

void count_loss(struct fairlock *handle, const struct fairlock_loss *loss, void *context);
/* Adds one to the int that context points to. */
void count_end(struct fairlock *handle, const struct fairlock_end *end, void *context);
/* For inspections of which the end alone counts. */
bool report_nothing(const struct fairlock_report *report, void *context);
/* The server's clock, which does not wrap around. */
int64_t server_time(void);
/* Collects what the engine sends. */
void drain(void);
bool sends(const char *text);
bool sends_nothing(void);
void feed(const char *text);
void feed_bytes(const char *text, size_t size);
/* {state, value, server's time}, at `now` of the engine's clock plus `late` ms. */
void answer(int state, int64_t value, int64_t late);
void push(const char *kind, const char *channel, const char *text);
/* A grant with this token, given `ago` ms before `now`. */
void grant(const char *channel, const char *token, int32_t ago);
void pass(uint32_t ms);
/* The answer to TIME: the server's clock is ahead of ours by `late` ms. */
void tell_time(int64_t late);
void greet_late(int64_t late);
void greet(void);
void set_up(void);
void break_connection(void);
/* The engine wants it closed. */
void close_connection(void);
void acquire_a(uint32_t lease_ms);
/* a waits in the queue, and was told so. */
void queue_a(uint32_t wait_ms);

#endif
