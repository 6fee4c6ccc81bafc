/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Servers that move: each call of topology.c, from any state in which the invariant and
 * valid_topology() hold. Nothing is touched that must not be, what aim() is given is an address, and
 * both hold afterwards.
 *
 * Assumed: an event as the decoder makes them, behind another value's or its own first one; what is
 * proved of the codec and of request.c; fairlock_slot(), by what `slot` proves; an answer, by what
 * `engine_answer` proves. aim() answers what it likes, and calls nothing.
 */
#include "fairlock_follow.h"
#include "proof.h"

#include "lock/topology.c"

static struct fairlock_topology T;
#define TOPOLOGY &T
#include "invariant.h"

#include "codec.h"
#include "event.h"
#include "memchr.h"

#define ADDRESS_SIZE 6
#define TEXT_SIZE    11 /* "MOVED 1 h:7" */

static const char service[] = "s";
static char *room;

/* It ends, and has a port. */
static bool is_address(const char *text)
{
  bool port = false;
  unsigned i = 0;
  while (i < ADDRESS_SIZE && text[i] != 0) {
    if (text[i] == ':') port = true;
    i++;
  }
  return i < ADDRESS_SIZE && port;
}

/* An address was refused that was put in the place of the one of this connection. */
static bool refused;

static bool aim(void *context, const char *address)
{
  (void)context;
  CHECK(address == NULL || (address == room && is_address(address)));
  bool can = nondet_bool();
  if (address != NULL) refused = !can;
  return can;
}

/* The Sentinel has named a host, and a port may follow. */
static bool half_named(void)
{
  return E.stage == RESOLVING && E.value_type == RESP_ARRAY && E.element > 0 && !E.broken;
}

static bool valid_topology(void)
{
  HOLDS(E.topology == &T && E.links == &T.own.link);
  HOLDS(T.own.link.hooks == &hooks && T.own.link.inner == NULL);
  HOLDS(T.own.aim == NULL ||
        (T.own.aim == aim && T.address == room && T.address_size <= ADDRESS_SIZE));
  HOLDS(T.own.aim == NULL || T.address_size > 1);
  HOLDS(T.service == NULL || (T.own.aim != NULL && !T.cluster));
  HOLDS(T.own.state < 2 * REPLICATED && IMPLIES(T.own.state & PROVES, T.service == NULL));
  HOLDS(IMPLIES(T.own.to_sentinel, T.service != NULL && !(T.own.state & AWAY)));
  HOLDS(IMPLIES(E.stage == RESOLVING, T.own.to_sentinel));
  HOLDS(IMPLIES(T.own.state & (AWAY | MOVED), T.own.aim != NULL));
  HOLDS(IMPLIES(T.own.state & AWAY, room[0] == 0 || (is_address(room) && !refused)));
  HOLDS(IMPLIES(T.own.state & MOVED, E.broken && is_address(room) && !refused));
  HOLDS(IMPLIES(half_named(), is_address(room)));
  return true;
}

/* An event of these types has text, the others have none. */
static struct resp_event any_event(void)
{
  struct resp_event event;
  event.size = nondet_size();
  ASSUME(event.size <= TEXT_SIZE && event.depth <= RESP_DEPTH_MAX);
  ASSUME(event.size == 0 || has_text(event.type));
  ASSUME(IMPLIES(event.depth == 0, E.value_type == event.type && E.element == 0));
  ASSUME(IMPLIES(event.depth > 0, !is_error(&E)));
  /* any other value has broken the connection at its head */
  ASSUME(IMPLIES(event.depth > 0 && E.stage == RESOLVING,
                 E.value_type == RESP_ARRAY || E.value_type == RESP_PUSH));
  event.data = any_bytes(TEXT_SIZE);
  return event;
}

/* The calls. */

static void event(void)
{
  struct resp_event any = any_event();
  bool moved = T.own.state & MOVED;
  uint8_t stage = E.stage;
  ASSUME(E.stage > OPENING && !E.broken);
  ASSUME(IMPLIES(T.own.state & SCRIPT_DONE, fairlock_pipeline_busy(&E))); /* by the WAIT */
  bool seen = route_event(&E, &any, &T.own.link);
  bool head = any.depth == 0 && (any.type == RESP_MAP || any.type == RESP_SET);
  CHECK(IMPLIES(head && stage == RESOLVING, E.broken));
  CHECK(any.size <= TEXT_SIZE && (any.size == 0 || __CPROVER_r_ok(any.data, any.size)));
  REACHED(seen && stage == RESOLVING && !moved && T.own.state & MOVED);
  REACHED(!seen && stage == UP && !moved && T.own.state & MOVED);
  REACHED(seen && stage == UP && !E.broken);
  REACHED(!seen && T.own.state & SCRIPT_DONE);
}

static void output(void)
{
  struct resp_writer writer;
  resp_writer_init(&writer, send_buffer, SEND_SIZE, 0);
  ASSUME(E.stage > OPENING && !E.broken);
  write_output(&E, &writer, &T.own.link);
  REACHED(T.own.to_sentinel && E.request.handle == NULL);
  REACHED(E.request.handle != NULL);
}

static void ended(void)
{
  bool away = T.own.state & MOVED;
  ASSUME(E.stage == CLOSED);
  (void)on_closed(&E, &T.own.link);
  CHECK(!(T.own.state & MOVED) && (bool)(T.own.state & AWAY) == away);
  REACHED(away && E.backoff_ms == 0);
  REACHED(T.own.to_sentinel);
}

/* The first call: it makes a topology that is valid. */
static void followed(void)
{
  struct fairlock_topology any;
  T = any;
  E.topology = NULL;
  E.links = NULL;
  ASSUME(E.stage == CLOSED);
  T.service = nondet_bool() ? service : NULL;
  T.address = nondet_bool() ? room : NULL;
  ASSUME(T.address_size <= ADDRESS_SIZE);
  int status = fairlock_engine_follow(&E, &T, nondet_bool() ? aim : NULL, NULL);
  CHECK(status == FAIRLOCK_OK || (status == FAIRLOCK_INVALID && E.topology == NULL));
  REACHED(status == FAIRLOCK_OK && T.own.to_sentinel);
  REACHED(status == FAIRLOCK_OK && T.own.aim == NULL);
  ASSUME(status == FAIRLOCK_OK);
}

/* What they are made of, as any that keep their contracts. */

/*
 * An answer may change all but the topology. It takes no handle out, and what ends a hold goes on if
 * it was not carried out: engine_answer.
 */
void any_answer(struct fairlock_engine *engine, int status)
{
  uint32_t now = E.now;
  bool there = in_heap(&A);
  bool goes_on = status == FAIRLOCK_PENDING && ending(&A);
  uint8_t phase = A.phase;
  CHECK(engine->stage == UP && fairlock_pipeline_busy(engine));
  CHECK(status == FAIRLOCK_PENDING || good_status(status));
  check_state();
  names_it = false;
  any_state();
  E.now = now;
  E.links = &T.own.link;
  ASSUME(in_heap(&A) == there && IMPLIES(goes_on, A.phase == phase) && valid_topology());
}

unsigned any_slot(const void *name, size_t size)
{
  CHECK(__CPROVER_r_ok(name, size));
  unsigned slot = nondet_uint16();
  ASSUME(slot < 16384);
  return slot;
}

size_t resp_format_number(char text[RESP_NUMBER_SIZE], int64_t number)
{
  (void)number;
  CHECK(__CPROVER_w_ok(text, RESP_NUMBER_SIZE));
  size_t size = 1 + nondet_uint8() % 3;
  __CPROVER_havoc_slice(text, size);
  return size;
}

void resp_write_bulk_number(struct resp_writer *writer, int64_t number)
{
  (void)writer, (void)number;
}

void fairlock_request_write_command(struct resp_writer *writer, const char *name, int words)
{
  (void)writer, (void)name, (void)words;
}

void fairlock_request_write_text(struct resp_writer *writer, const char *text)
{
  (void)writer;
  CHECK(text != NULL);
}

void fairlock_request_write_number(struct resp_writer *writer, char before, int64_t number)
{
  (void)writer, (void)before, (void)number;
}

void fairlock_request_write_hello(const struct fairlock_engine *engine, struct resp_writer *writer)
{
  (void)writer;
  CHECK(engine == &E);
}

void harness(void)
{
  struct fairlock_topology any;
  T = any;
  room = (char *)any_bytes(ADDRESS_SIZE);
  refused = nondet_bool();
  T.address = room;
  any_state();
  T.own.link.hooks = &hooks;
  T.own.link.inner = NULL;
  E.links = &T.own.link;
  ASSUME(valid_topology());
  CALL();
  check_state();
  (void)valid_topology();
}
