/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads a lock by fairlock_inspect(), and keeps what it reports until it is printed. The function
 * reports one holder or waiter at a time; if the connection breaks, it begins again.
 */
#define _DEFAULT_SOURCE 1 /* what -std=c11 hides */

#include "fairlock_operate.h"
#include "inspection.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "exposition.h"
#include "text.h"

/*
 * What is kept of a reading: bytes of ids, and of what is known of each. A server may list holders and
 * waiters without end. 100000 waiters with usual ids take 14 MB.
 */
#define KEPT_MAX (16U << 20)

#define DATE "%Y-%m-%d %H:%M:%S"

static struct party party_of(const struct fairlock_report *report)
{
  return (struct party){.id = copied(report->id, report->id_size),
                        .id_size = report->id_size,
                        .ours = report->kind == FAIRLOCK_KIND_FAIRLOCK,
                        .listens = report->listens,
                        .alive = report->life != FAIRLOCK_LIFE_DEAD,
                        .later = report->place > 0 && report->life == FAIRLOCK_LIFE_UNKNOWN,
                        .shares = report->shares};
}

/* Returns whether one more is kept. Says once, for all readings, that it is not. */
static bool is_kept(struct inspection *inspection, const struct fairlock_report *report)
{
  static bool told;
  size_t size = sizeof(struct holder) + report->id_size;
  if (inspection->kept + size <= KEPT_MAX) {
    inspection->kept += size;
    return true;
  }
  if (!told)
    complain(
        "there are more holders and waiters than fairlock keeps, which is %u MB: more waiters are "
        "only counted, and more holders are left out",
        KEPT_MAX >> 20);
  told = true;
  return false;
}

static void take_limits(struct inspection *inspection, const struct fairlock_report *report)
{
  size_t size = report->limits_size;
  if (size >= sizeof inspection->limits) size = 0;
  if (size > 0) memcpy(inspection->limits, report->limits, size);
  inspection->limits[size] = 0;
}

static void take_last(struct past *past, const struct fairlock_last *last)
{
  if (last->id == NULL) return;
  past->id = copied(last->id, last->id_size);
  past->id_size = last->id_size;
  past->words = copied(last->words, last->words_size);
  past->words_size = last->words_size;
  past->token = last->token;
  past->lasted_ms = last->lasted_ms;
  past->end = (int)last->end;
}

static void take_holder(struct inspection *inspection, const struct fairlock_report *report)
{
  inspection->outdated = report->outdated;
  take_last(&inspection->last, &report->last);
  if (report->id == NULL || !is_kept(inspection, report)) return;
  inspection->holders = with_room(inspection->holders, inspection->holder_count,
                                  &inspection->holder_room, sizeof *inspection->holders);
  inspection->shared = report->shares;
  inspection->limit = report->limit;
  if (report->holder_index == 0) take_limits(inspection, report);
  inspection->holders[inspection->holder_count++] =
      (struct holder){.party = party_of(report),
                      .ttl_ms = report->ttl_ms,
                      .hold_count = report->hold_count,
                      .token = report->token,
                      .lease_ms = report->lease_ms,
                      .unheard_ms = report->unheard_ms,
                      .renews = report->renews};
}

static void take_waiter(struct inspection *inspection, const struct fairlock_report *report)
{
  if (inspection->left_out > 0 || !is_kept(inspection, report)) {
    inspection->left_out++;
    return;
  }
  inspection->waiters = with_room(inspection->waiters, inspection->waiter_count,
                                  &inspection->waiter_room, sizeof *inspection->waiters);
  inspection->waiters[inspection->waiter_count++] = party_of(report);
}

static bool add_report(const struct fairlock_report *report, void *context)
{
  struct inspection *inspection = context;
  bool holds = report->place == 0;
  if (holds && report->holder_index == 0) inspection_clear(inspection);
  if (holds) take_holder(inspection, report);
  else take_waiter(inspection, report);
  return true;
}

int inspection_read(struct inspection *inspection, struct session *session, const char *name,
                    size_t size)
{
  return fairlock_inspect(&session->client, name, size, add_report, inspection);
}

static bool same_id(const struct party *a, const struct party *b)
{
  return a->id_size == b->id_size && memcmp(a->id, b->id, a->id_size) == 0;
}

static bool same_waiter(const struct party *a, const struct party *b)
{
  return same_id(a, b) && a->ours == b->ours && a->listens == b->listens && a->alive == b->alive &&
         a->later == b->later && a->shares == b->shares;
}

static bool same_holder(const struct holder *a, const struct holder *b)
{
  return same_id(&a->party, &b->party) && a->party.ours == b->party.ours &&
         a->party.alive == b->party.alive && a->token == b->token && a->hold_count == b->hold_count;
}

static bool has_holder(const struct inspection *inspection, const struct holder *holder)
{
  for (size_t i = 0; i < inspection->holder_count; i++) {
    if (same_holder(&inspection->holders[i], holder)) return true;
  }
  return false;
}

bool inspection_differs(const struct inspection *a, const struct inspection *b)
{
  if (a->holder_count != b->holder_count || inspection_waiters(a) != inspection_waiters(b) ||
      a->shared != b->shared || a->limit != b->limit || strcmp(a->limits, b->limits) != 0 ||
      a->outdated != b->outdated || a->last.token != b->last.token)
    return true;
  for (size_t i = 0; i < a->holder_count; i++) {
    if (!has_holder(b, &a->holders[i])) return true;
  }
  for (size_t i = 0; i < a->waiter_count; i++) {
    if (!same_waiter(&a->waiters[i], &b->waiters[i])) return true;
  }
  return false;
}

int64_t holder_age_ms(const struct holder *holder, int64_t server_ms)
{
  if (holder->token == 0) return -1;
  int64_t age = server_ms - (int64_t)(holder->token / 1000);
  return age > 0 ? age : 0;
}

size_t inspection_waiters(const struct inspection *inspection)
{
  return inspection->waiter_count + inspection->left_out;
}

void inspection_forget_waiters(struct inspection *inspection)
{
  for (size_t i = 0; i < inspection->waiter_count; i++)
    free(inspection->waiters[i].id);
  free(inspection->waiters);
  inspection->waiters = NULL;
  inspection->waiter_count = 0;
  inspection->waiter_room = 0;
  inspection->left_out = 0;
}

void inspection_clear(struct inspection *inspection)
{
  for (size_t i = 0; i < inspection->holder_count; i++)
    free(inspection->holders[i].party.id);
  free(inspection->holders);
  free(inspection->last.id);
  free(inspection->last.words);
  inspection_forget_waiters(inspection);
  memset(inspection, 0, sizeof *inspection);
}

const char *party_kind(const struct party *party)
{
  return party->ours ? "fairlock" : "redisson";
}

const char *party_condition(const struct party *party)
{
  if (party->later) return "unknown";
  if (!party->alive) return "dead";
  return party->listens ? "listens" : "silent";
}

char *party_shown(const struct party *party)
{
  return printable(party->id, party->id_size);
}

/* Reads `count` digits of five bits each, lowest first. Returns false if one is not a digit. */
static bool read_digits(const char *text, unsigned count, uint64_t *value)
{
  static const char digits[] = "0123456789abcdefghijklmnopqrstuv";
  *value = 0;
  for (unsigned i = 0; i < count; i++) {
    const char *digit = memchr(digits, text[i], sizeof digits - 1);
    if (digit == NULL) return false;
    *value |= (uint64_t)(digit - digits) << 5 * i;
  }
  return true;
}

/*
 * An id ends in "CONNECTION.TIME:NUMBER": see make_id() in the library. TIME has seven digits for
 * the seconds, which are from 2004 to 2106, and five for the microseconds with bit 20 set.
 */
int64_t party_client_since_ms(const struct party *party)
{
  uint64_t seconds, micros;
  const char *end = party->id_size > 0 ? strrchr(party->id, ':') : NULL;
  if (!party->ours || end == NULL || end - party->id < 14 || end[-13] != '.') return -1;
  if (!read_digits(end - 12, 7, &seconds) || !read_digits(end - 5, 5, &micros)) return -1;
  micros ^= (uint64_t)1 << 20;
  if (seconds >> 30 == 0 || seconds > UINT32_MAX || micros >= 1000000) return -1;
  return (int64_t)(seconds * 1000 + micros / 1000);
}

void inspection_print_name(FILE *to, const void *name, size_t size)
{
  char *shown = printable(name, size);
  fprintf(to, "%s%s%s: ", paint(to, STRONG), shown, paint(to, PLAIN));
  free(shown);
}

void holder_begin(FILE *to, const struct holder *holder)
{
  char *id = party_shown(&holder->party);
  fprintf(to, "%sheld by %s%s (%s", paint(to, DOUBTFUL), id, paint(to, PLAIN),
          party_kind(&holder->party));
  free(id);
}

/* The server rounds the end of a lease that is shared up. */
static double left_s(const struct holder *holder)
{
  bool rounded = holder->unheard_ms == 0 && holder->ttl_ms > holder->lease_ms;
  return (double)(rounded ? holder->lease_ms : holder->ttl_ms) / 1000;
}

void holder_print(FILE *to, const struct holder *holder, bool with_ttl)
{
  holder_begin(to, holder);
  if (holder->hold_count == 0) fputs(", handed over, not confirmed yet", to);
  if (holder->hold_count > 1) fprintf(to, ", %" PRId64 " times", holder->hold_count);
  if (holder->token != 0) fprintf(to, ", token %" PRIu64, holder->token);
  if (with_ttl && holder->token != 0) {
    /* the token is, in microseconds, the server's time when the hold began, or slightly more */
    fputs(", since ", to);
    print_time(to, (int64_t)(holder->token / 1000), DATE);
  }
  if (with_ttl && holder->ttl_ms < 0) fputs(", without end", to);
  if (with_ttl && holder->ttl_ms >= 0) fprintf(to, ", %.1f s left", left_s(holder));
  if (with_ttl && holder->unheard_ms >= 0) fprintf(to, " of %.1f", (double)holder->lease_ms / 1000);
  if (with_ttl || !holder->party.alive) holder_print_heard(to, holder);
  fputc(')', to);
}

void holder_print_heard(FILE *to, const struct holder *holder)
{
  if (holder->unheard_ms < 0) return;
  fprintf(to, ", heard %.1f s ago", (double)holder->unheard_ms / 1000);
  if (holder->party.alive) return;
  fprintf(to, ", %sprobably dead%s", paint(to, BAD), paint(to, PLAIN));
}

static void print_shared(FILE *to, const struct inspection *inspection)
{
  size_t dead = 0;
  for (size_t i = 0; i < inspection->holder_count; i++)
    dead += !inspection->holders[i].party.alive;
  fprintf(to, "%sshared by %zu", paint(to, DOUBTFUL), inspection->holder_count);
  if (inspection->limit > 0) fprintf(to, " of at most %" PRIu32, inspection->limit);
  if (*inspection->limits != 0) fprintf(to, " (limits in use: %s)", inspection->limits);
  fputs(paint(to, PLAIN), to);
  if (dead > 0) fprintf(to, ", %s%zu probably dead%s", paint(to, BAD), dead, paint(to, PLAIN));
}

void inspection_print_outdated(FILE *to, const struct inspection *inspection)
{
  if (inspection->outdated)
    fprintf(to, ", %sused by a later release%s", paint(to, BAD), paint(to, PLAIN));
}

/* When the last hold of a free lock began and how it has ended; its token is the server's time in us. */
static void print_last(FILE *to, const struct past *last)
{
  if (last->id == NULL) return;
  char *id = printable(last->id, last->id_size);
  fprintf(to, ", last held by %s (token %" PRIu64 ") from ", id, last->token);
  free(id);
  print_time(to, (int64_t)(last->token / 1000), DATE);
  if (last->lasted_ms >= 0) fprintf(to, " for %.1f s", (double)last->lasted_ms / 1000);
  if (last->end == FAIRLOCK_LAST_RELEASED) fputs(", released", to);
  else if (last->end != FAIRLOCK_LAST_BROKEN)
    fputs(", not released: its lease ran out, or its key was deleted", to);
  else fprintf(to, ", %sbroken%s", paint(to, BAD), paint(to, PLAIN));
  char *words = printable(last->words, last->words_size);
  if (*words != 0) fprintf(to, " by %s", words);
  free(words);
}

void inspection_print_holders(FILE *to, const struct inspection *inspection, bool with_ttl)
{
  if (inspection->shared) print_shared(to, inspection);
  else if (inspection->holder_count > 0) holder_print(to, inspection->holders, with_ttl);
  else fprintf(to, "%sfree%s", paint(to, GOOD), paint(to, PLAIN));
  if (with_ttl && inspection->holder_count == 0) print_last(to, &inspection->last);
}

void inspection_print_hold(FILE *to, const struct inspection *inspection, bool with_ttl)
{
  inspection_print_holders(to, inspection, with_ttl);
  inspection_print_outdated(to, inspection);
}

/* How many of `count` lines are printed, where `most` lines fit, with one for the rest. */
static size_t lines_of(size_t count, size_t most)
{
  if (count <= most) return count;
  return most > 0 ? most - 1 : 0;
}

static void print_rest(FILE *to, size_t count, size_t shown)
{
  if (shown < count) fprintf(to, "  and %zu more\n", count - shown);
}

void inspection_print_sharers(FILE *to, const struct inspection *inspection, size_t most)
{
  if (!inspection->shared) return;
  size_t shown = lines_of(inspection->holder_count, most);
  for (size_t i = 0; i < shown; i++) {
    fputs("        ", to);
    holder_print(to, &inspection->holders[i], true);
    fputc('\n', to);
  }
  print_rest(to, inspection->holder_count, shown);
}

static void print_waiter(FILE *to, const struct party *waiter, size_t place, const int64_t *now)
{
  char *id = party_shown(waiter);
  int64_t since = party_client_since_ms(waiter);
  enum paint how = !waiter->alive ? BAD : waiter->listens && !waiter->later ? GOOD : DOUBTFUL;
  fprintf(to, "  %4zu  %-8s  %s%-7s%s  %s", place, party_kind(waiter), paint(to, how),
          party_condition(waiter), paint(to, PLAIN), id);
  free(id);
  if (waiter->shares) fputs(", to share it", to);
  if (since >= 0) {
    fputs(", since ", to);
    print_time(to, since, DATE);
    fputs(" at the earliest", to);
  }
  if (now != NULL) {
    fputs(", seen for ", to);
    print_span(to, *now - waiter->seen_at);
  }
  fputc('\n', to);
}

void inspection_print_waiters(FILE *to, const struct inspection *inspection, size_t most,
                              const int64_t *now)
{
  size_t shown = lines_of(inspection->waiter_count, most);
  for (size_t i = 0; i < shown; i++)
    print_waiter(to, &inspection->waiters[i], i + 1, now);
  print_rest(to, inspection_waiters(inspection), shown);
}

/*
 * Both are mostly in the same order, so each search begins where the last one has found something.
 */
void inspection_carry_over(struct inspection *inspection, const struct inspection *before,
                           int64_t now)
{
  size_t at = 0;
  for (size_t i = 0; i < inspection->waiter_count; i++) {
    struct party *waiter = &inspection->waiters[i];
    waiter->seen_at = now;
    for (size_t tries = 0; tries < before->waiter_count; tries++, at++) {
      const struct party *other = &before->waiters[at % before->waiter_count];
      if (!same_id(other, waiter)) continue;
      waiter->seen_at = other->seen_at;
      at++;
      break;
    }
  }
}

/* A member with ms as seconds; null if they are below 0. */
void inspection_print_seconds(FILE *to, const char *name, int64_t ms)
{
  fprintf(to, ",\"%s\":", name);
  if (ms < 0) fputs("null", to);
  else exposition_print_seconds(to, ms);
}

/* How long the hold has lasted, how long its lease is, and whether it is alive. */
static void print_json_state(FILE *to, const struct holder *holder, int64_t server_ms)
{
  bool judged = holder->unheard_ms >= 0 && holder->renews;
  bool began = holder->token != 0;
  if (began) fprintf(to, ",\"token\":%" PRIu64, holder->token);
  else fputs(",\"token\":null", to);
  inspection_print_seconds(to, "start_time_seconds", began ? (int64_t)(holder->token / 1000) : -1);
  inspection_print_seconds(to, "hold_seconds",
                           began && server_ms >= 0 ? holder_age_ms(holder, server_ms) : -1);
  inspection_print_seconds(to, "lease_seconds",
                           holder->unheard_ms < 0 ? -1 : (int64_t)holder->lease_ms);
  inspection_print_seconds(to, "unheard_seconds", holder->unheard_ms);
  const char *alive = !judged ? "null" : holder->party.alive ? "true" : "false";
  fprintf(to, ",\"alive\":%s,\"listens\":%s", alive, holder->party.listens ? "true" : "false");
}

static void print_json_holder(FILE *to, const struct holder *holder, int64_t server_ms)
{
  putc('{', to);
  print_json_bytes(to, "id", holder->party.id, holder->party.id_size);
  fprintf(to, ",\"kind\":\"%s\",\"hold_count\":%" PRId64, party_kind(&holder->party),
          holder->hold_count);
  inspection_print_seconds(to, "lease_remaining_seconds", holder->ttl_ms);
  print_json_state(to, holder, server_ms);
  putc('}', to);
}

static void print_json_last(FILE *to, const struct past *last)
{
  static const char *const ends[] = {[FAIRLOCK_LAST_EXPIRED] = "unreleased",
                                     [FAIRLOCK_LAST_RELEASED] = "released",
                                     [FAIRLOCK_LAST_BROKEN] = "broken"};
  fputs(",\"last\":", to);
  if (last->id == NULL) {
    fputs("null", to);
    return;
  }
  putc('{', to);
  print_json_bytes(to, "id", last->id, last->id_size);
  fprintf(to, ",\"token\":%" PRIu64, last->token);
  inspection_print_seconds(to, "start_time_seconds", (int64_t)(last->token / 1000));
  inspection_print_seconds(to, "hold_seconds", last->lasted_ms);
  fprintf(to, ",\"end\":\"%s\",", ends[last->end]);
  if (last->words_size > 0) print_json_bytes(to, "broken_by", last->words, last->words_size);
  else fputs("\"broken_by\":null", to);
  putc('}', to);
}

static void print_json_limits(FILE *to, const struct inspection *inspection)
{
  if (*inspection->limits == 0 && inspection->limit > 0) fprintf(to, "%" PRIu32, inspection->limit);
  for (const char *at = inspection->limits; *at != 0; at++)
    putc(*at == ' ' ? ',' : *at, to);
}

void inspection_print_json(FILE *to, const struct inspection *inspection,
                           const struct inspected *of)
{
  putc('{', to);
  print_json_bytes(to, "name", of->name, of->size);
  putc(',', to);
  print_json_bytes(to, "server", of->server, strlen(of->server));
  fprintf(to,
          ",\"held\":%s,\"shared\":%s,\"limit\":", inspection->holder_count > 0 ? "true" : "false",
          inspection->shared ? "true" : "false");
  if (inspection->limit == 0) fputs("null", to);
  else fprintf(to, "%" PRIu32, inspection->limit);
  fputs(",\"limits\":[", to);
  print_json_limits(to, inspection);
  fprintf(to, "],\"outdated\":%s,\"holder_count\":%zu,\"holders\":[",
          inspection->outdated ? "true" : "false", inspection->holder_count);
  for (size_t i = 0; i < inspection->holder_count; i++) {
    if (i > 0) putc(',', to);
    print_json_holder(to, &inspection->holders[i], of->server_ms);
  }
  putc(']', to);
  print_json_last(to, &inspection->last);
  fprintf(to, ",\"waiter_count\":%zu", of->waiters);
}
