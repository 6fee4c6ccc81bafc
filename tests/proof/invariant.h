/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is true of an engine and its handles between any two calls: the invariant, as code. README.md
 * says the same in words. A harness begins with any state in which it holds (any_state()), makes one
 * call, and checks that it holds again; so it holds after any sequence of calls.
 *
 * There are HANDLES, 1 or 2, of which the first ADDED are in the heap, the others not yet. How they stand
 * there and among those that await answers is any way that there is. A is always the one on top: the
 * two differ in nothing but their names.
 */
#ifndef PROOF_INVARIANT_H
#define PROOF_INVARIANT_H

#include "fairlock_operate.h"
#include "proof.h"

#include "lock/break.c"
#include "lock/share.c"

#ifndef HANDLES
#define HANDLES 1
#endif

#ifndef ADDED
#define ADDED HANDLES
#endif

/* The query of inspect.c, if the harness has that. */
#ifndef INSPECTION
#define INSPECTION ((const struct fairlock_query *)NULL)
#endif

/* The buffers: any size would do, a small one is cheaper. */
#define NAME_SIZE    4
#define RECEIVE_SIZE FAIRLOCK_RECEIVE_SIZE(NAME_SIZE, 0)
#define SEND_SIZE    FAIRLOCK_SEND_MIN

static struct fairlock_engine E;
/* Each an object of its own. As elements of one array they would cost a hundred times as much. */
static struct fairlock A;
#if HANDLES > 1
static struct fairlock B;
#else
#define B A
#endif
static struct fairlock_config C;
static uint8_t receive_buffer[RECEIVE_SIZE], send_buffer[SEND_SIZE];
static const char names[HANDLES][NAME_SIZE];
static struct fairlock_target hold_of_another = {.token = FAIRLOCK_ANY_TOKEN};

/* The server's numbers are at most 2^53, and its seconds are counted here in milliseconds. */
#define NUMBER_MAX ((int64_t)1 << 53)
#define TIME_MAX   (NUMBER_MAX * 1000 + UINT32_MAX)

/* As in handle.c: how many requests of each phase may await their answers. */
static unsigned most_unanswered(uint8_t phase)
{
  if (phase == FREE || phase == LOST) return 0;
  return phase == QUEUEING || (phase >= HELD && phase <= RELEASE_ONE) ? FAIRLOCK_UNANSWERED_MAX : 1;
}

static struct fairlock *one(unsigned i)
{
  return i == 0 ? &A : &B;
}

static bool is_added(const struct fairlock *handle)
{
  return (ADDED > 0 && handle == &A) || (ADDED > 1 && handle == &B);
}

/* Not what ADDED says, but what the heap is now. */
static bool in_heap(const struct fairlock *handle)
{
  const struct fairlock *top = E.first;
  return top != NULL && (top == handle || top->place.left == handle || top->place.right == handle);
}

/* After the call, what does not hold is named. */
static bool names_it;

#define HOLDS(condition)                                                                           \
  do {                                                                                             \
    __CPROVER_assert(!names_it || (condition), "kept: " #condition);                               \
    if (!(condition)) return false;                                                                \
  } while (0)

#define IMPLIES(a, b) (!(a) || (b))

static bool good_status(int status)
{
  return status <= FAIRLOCK_OK && status >= FAIRLOCK_OUTDATED;
}

static bool good_lease_kept(uint32_t lease_ms)
{
  return lease_ms == 0 ||
         (lease_ms >= FAIRLOCK_LEASE_MIN_MS && lease_ms <= FAIRLOCK_DURATION_MAX_MS);
}

/* What the handle asks for is known, and how its answer is read. */
static bool breaks(const struct fairlock *h)
{
  return h->phase == QUERYING && h->by.inquiry == &hold_of_another.own &&
         h->by.inquiry->query == &breaking;
}

static bool inspects(const struct fairlock *h)
{
  return h->phase == QUERYING && INSPECTION != NULL && h->by.inquiry == &E.inspection &&
         E.inspection.query == INSPECTION;
}

static bool is_query(const struct fairlock_query *query)
{
  return query == &fairlock_lock_query || query == &fairlock_shared_query || query == &breaking ||
         (query != NULL && query == INSPECTION);
}

/* The handle: its phase, and what each phase says of the rest. */
static bool valid_handle(const struct fairlock *h)
{
  bool pending = h->result == FAIRLOCK_PENDING;
  HOLDS(h->engine == &E);
  HOLDS(h->name != NULL && h->name_size > 0 && h->name_size <= NAME_SIZE);
  HOLDS(h->phase <= QUERYING); /* AUTHENTICATING: only with credentials that change */

  /* its operation: the phases of a wait, a re-entry, a release and a question are one */
  HOLDS(pending || good_status(h->result));
  HOLDS(IMPLIES(pending, h->phase != FREE && h->phase != HELD && h->phase != LOST));
  HOLDS(pending || h->phase == FREE || h->phase == HELD || h->phase == LOST || ending(h));
  HOLDS(IMPLIES(h->begun, pending));
  HOLDS(good_status(h->answer) || h->answer == FAIRLOCK_PENDING);
  HOLDS(good_status(h->leave_result) && IMPLIES(h->leave_result < 0, pending));

  /* the hold count */
  HOLDS(IMPLIES(h->phase == HELD || h->phase == REENTERING || h->phase == LOST, h->holds > 0));
  HOLDS(IMPLIES(h->phase == REENTERING, h->holds < UINT16_MAX));
  HOLDS(IMPLIES(h->phase == RELEASE_ONE, h->holds > 1));

  /* the leases; one that was asked for is known */
  HOLDS(good_lease_kept(h->lease_ms) && good_lease_kept(h->reentry_lease_ms));
  HOLDS(IMPLIES(waiting(h) || holding(h), h->lease_ms != 0));

  /* what awaits answers does so on a connection, in the list, and no more of it than its phase may */
  HOLDS(h->unanswered <= most_unanswered(h->phase));
  HOLDS(IMPLIES(h->unanswered > 0, E.stage == UP));

  /* what it sends */
  HOLDS(h->query == &fairlock_lock_query || h->query == &fairlock_shared_query);
  HOLDS(IMPLIES(h->phase == QUERYING, breaks(h) || inspects(h)));
  HOLDS(IMPLIES(inspects(h), E.report != NULL));
  return true;
}

/* The list of those that await answers: it has them all, and nobody else, and its end is known. */
static bool valid_list(void)
{
  const struct fairlock *last = NULL;
  const struct fairlock *handle = E.oldest;
  unsigned listed = 0;
  unsigned awaiting = 0;
  for (unsigned i = 0; i < HANDLES; i++) {
    if (in_heap(one(i)) && one(i)->unanswered > 0) awaiting++;
    if (handle == NULL) continue;
    HOLDS(handle == &A || handle == &B);
    HOLDS(in_heap(handle) && handle->unanswered > 0);
    listed++;
    last = handle;
    handle = handle->place.next_answered;
  }
  HOLDS(handle == NULL && listed == awaiting);
  HOLDS(E.youngest == last);
  return true;
}

/* The heap, of two at most. */
static bool valid_heap(void)
{
  const struct fairlock *top = E.first;
  if (top == NULL) return true;
  HOLDS(top == &A || top == &B);
  HOLDS(top->place.up == NULL);
  HOLDS(top->place.left == NULL || top->place.right == NULL);
  const struct fairlock *below = top->place.left != NULL ? top->place.left : top->place.right;
  if (below == NULL) return true;
  HOLDS(below != top && (below == &A || below == &B));
  HOLDS(below->place.up == top && below->place.left == NULL && below->place.right == NULL);
  return true;
}

static bool valid_decoder(const struct resp_decoder *decoder)
{
  return decoder->limit == RECEIVE_SIZE - RESP_OVERHEAD && decoder->depth <= RESP_DEPTH_MAX;
}

/* The connection, the buffers, and the numbers that the server has told. */
static bool valid_engine(void)
{
  HOLDS(E.config == &C && E.stage <= UP && E.failures <= 7 && E.id_size <= sizeof E.id);
  HOLDS(E.send_start <= E.send_end && E.send_end <= SEND_SIZE);
  HOLDS(IMPLIES(E.send_start == E.send_end, E.send_end == 0));
  HOLDS(E.receive_end <= RECEIVE_SIZE && IMPLIES(!E.broken, E.receive_end < RECEIVE_SIZE));
  HOLDS(valid_decoder(&E.decoder));
  HOLDS(E.error[FAIRLOCK_ERROR_SIZE - 1] == 0);
  HOLDS(good_status(E.last_error) && good_status(E.failure));
  HOLDS(IMPLIES(E.writing, E.stage > OPENING));
  HOLDS(E.stage != RESOLVING || E.topology != NULL);

  /* times */
  HOLDS(E.round_trip_ms <= ROUND_TRIP_MAX_MS);
  HOLDS(E.waiter_ms >= FAIRLOCK_WAITER_MIN_MS && E.waiter_ms <= FAIRLOCK_WAITER_MAX_MS);
  HOLDS(E.claim_ms >= FAIRLOCK_CLAIM_MIN_MS && E.claim_ms <= E.waiter_ms);
  HOLDS(E.response_ms <= FAIRLOCK_WAITER_MAX_MS / 2 * 3);
  HOLDS(E.connect_ms <= FAIRLOCK_DURATION_MAX_MS / 4 && good_wait(E.offline_ms));
  HOLDS(E.server_now >= -3000 && E.server_now <= TIME_MAX);
  for (unsigned i = 0; i < VALUES; i++)
    HOLDS(E.values[i] >= -2 && E.values[i] <= NUMBER_MAX);

  /* the request that is being written, and the message that is being read */
  HOLDS(IMPLIES(E.request.handle != NULL && !E.broken,
                in_heap(E.request.handle) && E.writing && E.stage == UP));
  HOLDS(IMPLIES(E.request.handle != NULL, is_query(E.request.query)));
  HOLDS(IMPLIES(E.addressee != NULL, in_heap(E.addressee)));
  return true;
}

static bool valid(void)
{
  unsigned inspecting = 0;
  unsigned begun = 0;
  if (!valid_heap() || !valid_list() || !valid_engine()) return false;
  for (unsigned i = 0; i < HANDLES; i++) {
    if (!in_heap(one(i))) continue;
    if (!valid_handle(one(i))) return false;
    inspecting += inspects(one(i));
    begun += one(i)->begun;
  }
  HOLDS(inspecting <= 1);
  HOLDS(E.begun == begun);
  return true;
}

/* The caller's functions call nothing, and may be there or not. */
static void on_lost(struct fairlock *handle, const struct fairlock_loss *loss, void *context)
{
  (void)loss;
  (void)context;
  CHECK(in_heap(handle) && (handle->phase == LOST || handle->phase == RELEASING));
}

static void on_asked(struct fairlock *handle, const struct fairlock_asking *asking, void *context)
{
  (void)asking;
  (void)context;
  CHECK(in_heap(handle) && holding(handle));
}

static void on_ended(struct fairlock *handle, const struct fairlock_end *end, void *context)
{
  (void)context;
  CHECK(in_heap(handle) && good_status(end->status) && end->status == handle->result);
}

static bool on_report(const struct fairlock_report *report, void *context)
{
  (void)context;
  CHECK(report->id == NULL || report->id_size == 0 || __CPROVER_r_ok(report->id, report->id_size));
  return true;
}

static struct fairlock *one_of_them(void)
{
  unsigned i = nondet_uint8();
  ASSUME(i <= HANDLES);
  return i == HANDLES ? NULL : i == 0 ? &A : &B;
}

static const struct fairlock_query *any_query(void)
{
  switch (nondet_uint8()) {
  case 0:
    return &fairlock_lock_query;
  case 1:
    return &fairlock_shared_query;
  case 2:
    return &breaking;
  default:
    return INSPECTION;
  }
}

static void any_config(void)
{
  struct fairlock_config any;
  C = any;
  C.receive_buffer = receive_buffer;
  C.receive_size = RECEIVE_SIZE;
  C.send_buffer = send_buffer;
  C.send_size = SEND_SIZE;
  C.client_id = NULL; /* the id's text: tests/unit, tests/fuzz */
  C.user = NULL;
  C.password = NULL;
  C.client_name = NULL;
  C.lost = nondet_bool() ? on_lost : NULL;
  C.ended = nondet_bool() ? on_ended : NULL;
  C.asked = nondet_bool() ? on_asked : NULL;
  /* what fairlock_engine_init() lets through */
  ASSUME(C.waiter_ms == 0 ||
         (C.waiter_ms >= FAIRLOCK_WAITER_MIN_MS && C.waiter_ms <= FAIRLOCK_WAITER_MAX_MS));
  uint32_t waiter_ms = config_or(C.waiter_ms, WAITER_MS);
  ASSUME(C.claim_ms == 0 || (C.claim_ms >= FAIRLOCK_CLAIM_MIN_MS && C.claim_ms <= waiter_ms));
  ASSUME(C.response_ms <= waiter_ms / 2 * 3);
  ASSUME(C.connect_ms <= FAIRLOCK_DURATION_MAX_MS / 4);
  ASSUME(good_lease(C.lease_ms) && good_wait(C.offline_ms));
}

static void shape_heap(void)
{
  E.first = ADDED > 0 ? &A : NULL;
  for (unsigned i = 0; i < HANDLES; i++) {
    one(i)->place.up = NULL;
    one(i)->place.left = NULL;
    one(i)->place.right = NULL;
  }
#if ADDED > 1
  B.place.up = &A;
  if (nondet_bool()) A.place.left = &B;
  else A.place.right = &B;
#endif
}

static void shape_list(void)
{
  bool a = ADDED > 0 && A.unanswered > 0;
  bool b = ADDED > 1 && B.unanswered > 0;
  bool turned = nondet_bool();
  E.oldest = a && !(b && turned) ? &A : b ? &B : NULL;
  E.youngest = b && !(a && turned) ? &B : a ? &A : NULL;
  for (unsigned i = 0; i < HANDLES; i++)
    one(i)->place.next_answered = E.youngest == one(i) ? NULL
                                  : E.oldest == one(i) ? E.youngest
                                                       : one_of_them();
}

/* Any state in which the invariant holds. */
static void any_state(void)
{
  struct fairlock_engine any_engine;
  E = any_engine;
  __CPROVER_havoc_object(receive_buffer);
  any_config();
  E.config = &C;
#ifdef TOPOLOGY
  E.topology = TOPOLOGY;
#else
  E.topology = NULL;
#endif
  E.links = NULL;
  E.user = NULL;
  E.password = NULL;
  E.report = nondet_bool() ? on_report : NULL;
  for (unsigned i = 0; i < HANDLES; i++) {
    struct fairlock any_handle;
    *one(i) = any_handle;
    one(i)->engine = &E;
    /* copied, a union would have a value of its own for each of its members */
    one(i)->reentry_lease_ms = nondet_uint32();
    one(i)->by.inquiry = nondet_bool() ? &hold_of_another.own.inquiry : &E.inspection;
    one(i)->query = nondet_bool() ? &fairlock_lock_query : &fairlock_shared_query;
    one(i)->name = names[i];
    one(i)->name_size = 1 + nondet_uint8() % NAME_SIZE;
  }
  shape_heap();
  shape_list();
  E.addressee = one_of_them();
  E.request.handle = one_of_them();
  E.request.query = any_query();
  E.inspection.query = nondet_bool() ? INSPECTION : NULL;
  hold_of_another.own.inquiry.query = nondet_bool() ? &breaking : NULL;
  ASSUME(valid());
}

/* The invariant holds: if not, what does not is named. */
static void check_state(void)
{
  names_it = true;
  (void)valid();
}

#endif
