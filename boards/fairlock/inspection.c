/*
 * Reads a lock by fairlock_inspect(), and keeps what it reports until it is printed. The function
 * reports the holder and one waiter at a time; if the connection breaks, it begins again.
 */
#define _DEFAULT_SOURCE 1 /* what -std=c11 hides */

#include "inspection.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "command.h"
#include "text.h"

static bool copy_party(struct party *party, const struct fairlock_report *report)
{
  party->id = malloc(report->id_size + 1);
  if (party->id == NULL) return false;
  memcpy(party->id, report->id, report->id_size);
  party->id[report->id_size] = 0;
  party->id_size = report->id_size;
  party->ours = report->ours;
  party->listens = report->listens;
  party->alive = report->alive;
  party->later = report->later;
  party->seen_at = 0;
  return true;
}

static bool take_holder(struct inspection *inspection, const struct fairlock_report *report)
{
  inspection->held = report->id != NULL;
  inspection->ttl_ms = report->ttl_ms;
  inspection->hold_count = report->hold_count;
  inspection->token = report->token;
  inspection->lease_ms = report->lease_ms;
  inspection->unheard_ms = report->unheard_ms;
  inspection->renews = report->renews;
  inspection->listens = report->listens;
  if (report->id == NULL) return true;
  bool done = copy_party(&inspection->holder, report);
  inspection->holder.listens =
      false; /* inspection->listens has it; inspection_differs() ignores it */
  return done;
}

/* Gets memory as waiters come in, because the number that the server announces may be wrong. */
static bool take_waiter(struct inspection *inspection, const struct fairlock_report *report)
{
  if (inspection->waiter_count == inspection->waiter_room) {
    size_t room = inspection->waiter_room > 0 ? 2 * inspection->waiter_room : 16;
    struct party *waiters = realloc(inspection->waiters, room * sizeof *waiters);
    if (waiters == NULL) return false;
    inspection->waiters = waiters;
    inspection->waiter_room = room;
  }
  if (!copy_party(&inspection->waiters[inspection->waiter_count], report)) return false;
  inspection->waiter_count++;
  return true;
}

static void add_report(const struct fairlock_report *report, void *context)
{
  struct inspection *inspection = context;
  bool done;
  if (report->place == 0) {
    inspection_clear(inspection);
    done = take_holder(inspection, report);
  } else {
    done = take_waiter(inspection, report);
  }
  if (!done) inspection->out_of_memory = true;
}

int inspection_read(struct inspection *inspection, struct session *session, const char *name,
                    size_t size)
{
  int status = fairlock_inspect(&session->client, name, size, add_report, inspection);
  if (status == FAIRLOCK_OK && inspection->out_of_memory) {
    complain("out of memory");
    exit(EXIT_SYSTEM);
  }
  return status;
}

static bool same_party(const struct party *a, const struct party *b)
{
  return a->id_size == b->id_size && (a->id_size == 0 || memcmp(a->id, b->id, a->id_size) == 0) &&
         a->ours == b->ours && a->listens == b->listens && a->alive == b->alive &&
         a->later == b->later;
}

bool inspection_differs(const struct inspection *a, const struct inspection *b)
{
  if (a->held != b->held || a->token != b->token || a->hold_count != b->hold_count) return true;
  if (!same_party(&a->holder, &b->holder) || a->waiter_count != b->waiter_count) return true;
  for (size_t i = 0; i < a->waiter_count; i++) {
    if (!same_party(&a->waiters[i], &b->waiters[i])) return true;
  }
  return false;
}

int64_t inspection_age_ms(const struct inspection *inspection, int64_t server_ms)
{
  if (inspection->token == 0) return -1;
  int64_t age = server_ms - (int64_t)(inspection->token / 1000);
  return age > 0 ? age : 0;
}

void inspection_forget_waiters(struct inspection *inspection)
{
  for (size_t i = 0; i < inspection->waiter_count; i++)
    free(inspection->waiters[i].id);
  free(inspection->waiters);
  inspection->waiters = NULL;
  inspection->waiter_count = 0;
  inspection->waiter_room = 0;
}

void inspection_clear(struct inspection *inspection)
{
  free(inspection->holder.id);
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
  return bytes_shown(party->id, party->id_size);
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

/* A date and a time of day, in the local time zone. */
static void print_date(FILE *to, int64_t ms)
{
  char text[32];
  struct tm local;
  time_t seconds = (time_t)(ms / 1000);
  if (localtime_r(&seconds, &local) == NULL) return;
  if (strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S", &local) > 0) fputs(text, to);
}

void inspection_print_name(FILE *to, const void *name, size_t size)
{
  char *shown = bytes_shown(name, size);
  fprintf(to, "%s%s%s: ", paint(to, STRONG), shown, paint(to, PLAIN));
  free(shown);
}

bool inspection_begin_holder(FILE *to, const struct inspection *inspection)
{
  if (!inspection->held) {
    fprintf(to, "%sfree%s", paint(to, GOOD), paint(to, PLAIN));
    return false;
  }
  char *id = party_shown(&inspection->holder);
  fprintf(to, "%sheld by %s%s (%s", paint(to, DOUBTFUL), id, paint(to, PLAIN),
          party_kind(&inspection->holder));
  free(id);
  return true;
}

void inspection_print_holder(FILE *to, const struct inspection *inspection, bool with_ttl)
{
  if (!inspection_begin_holder(to, inspection)) return;
  if (inspection->hold_count == 0) fputs(", handed over, not confirmed yet", to);
  if (inspection->hold_count > 1) fprintf(to, ", %" PRId64 " times", inspection->hold_count);
  if (inspection->token != 0) fprintf(to, ", token %" PRIu64, inspection->token);
  if (with_ttl && inspection->token != 0) {
    /* the token is, in microseconds, the server's time when the hold began, or slightly more */
    fputs(", since ", to);
    print_date(to, (int64_t)(inspection->token / 1000));
  }
  if (with_ttl && inspection->ttl_ms < 0) fputs(", without end", to);
  if (with_ttl && inspection->ttl_ms >= 0)
    fprintf(to, ", %.1f s left", (double)inspection->ttl_ms / 1000);
  if (with_ttl && inspection->unheard_ms >= 0)
    fprintf(to, " of %.1f", (double)inspection->lease_ms / 1000);
  if (with_ttl || !inspection->holder.alive) inspection_print_heard(to, inspection);
  fputc(')', to);
}

void inspection_print_heard(FILE *to, const struct inspection *inspection)
{
  if (inspection->unheard_ms < 0) return;
  fprintf(to, ", heard %.1f s ago", (double)inspection->unheard_ms / 1000);
  if (inspection->holder.alive) return;
  fprintf(to, ", %sprobably dead%s", paint(to, BAD), paint(to, PLAIN));
}

static void print_waiter(FILE *to, const struct party *waiter, size_t place, const uint32_t *now)
{
  char *id = party_shown(waiter);
  int64_t since = party_client_since_ms(waiter);
  enum paint how = !waiter->alive ? BAD : waiter->listens && !waiter->later ? GOOD : DOUBTFUL;
  fprintf(to, "  %4zu  %-8s  %s%-7s%s  %s", place, party_kind(waiter), paint(to, how),
          party_condition(waiter), paint(to, PLAIN), id);
  free(id);
  if (since >= 0) {
    fputs(", since ", to);
    print_date(to, since);
    fputs(" at the earliest", to);
  }
  if (now != NULL) {
    fputs(", seen for ", to);
    print_span(to, (int64_t)(uint32_t)(*now - waiter->seen_at));
  }
  fputc('\n', to);
}

void inspection_print_waiters(FILE *to, const struct inspection *inspection, size_t most,
                              const uint32_t *now)
{
  size_t shown = inspection->waiter_count;
  if (shown > most) shown = most > 0 ? most - 1 : 0;
  for (size_t i = 0; i < shown; i++)
    print_waiter(to, &inspection->waiters[i], i + 1, now);
  if (shown < inspection->waiter_count)
    fprintf(to, "  and %zu more\n", inspection->waiter_count - shown);
}

/*
 * Both are mostly in the same order, so each search begins where the last one has found something.
 */
void inspection_carry_over(struct inspection *inspection, const struct inspection *before,
                           uint32_t now)
{
  size_t at = 0;
  for (size_t i = 0; i < inspection->waiter_count; i++) {
    struct party *waiter = &inspection->waiters[i];
    waiter->seen_at = now;
    for (size_t tries = 0; tries < before->waiter_count; tries++, at++) {
      const struct party *other = &before->waiters[at % before->waiter_count];
      if (other->id_size != waiter->id_size || memcmp(other->id, waiter->id, waiter->id_size) != 0)
        continue;
      waiter->seen_at = other->seen_at;
      at++;
      break;
    }
  }
}

static void print_json_heard(FILE *to, const struct inspection *inspection)
{
  bool judged = inspection->unheard_ms >= 0 && inspection->renews;
  if (inspection->unheard_ms < 0) fputs(",\"lease_ms\":null,\"unheard_ms\":null", to);
  else
    fprintf(to, ",\"lease_ms\":%" PRIu32 ",\"unheard_ms\":%" PRId64, inspection->lease_ms,
            inspection->unheard_ms);
  fprintf(to, ",\"holder_alive\":%s,\"holder_listens\":%s",
          !judged                    ? "null"
          : inspection->holder.alive ? "true"
                                     : "false",
          inspection->listens ? "true" : "false");
}

static void print_json_holder(FILE *to, const struct inspection *inspection)
{
  if (!inspection->held) {
    fputs("\"held\":false,\"holder\":null,\"kind\":null,\"hold_count\":0,\"ttl_ms\":null,"
          "\"token\":null,\"since_ms\":null,\"lease_ms\":null,\"unheard_ms\":null,"
          "\"holder_alive\":null,\"holder_listens\":false",
          to);
    return;
  }
  fputs("\"held\":true,", to);
  print_json_bytes(to, "holder", inspection->holder.id, inspection->holder.id_size);
  fprintf(to, ",\"kind\":\"%s\",\"hold_count\":%" PRId64, party_kind(&inspection->holder),
          inspection->hold_count);
  if (inspection->ttl_ms < 0) fputs(",\"ttl_ms\":null", to);
  else fprintf(to, ",\"ttl_ms\":%" PRId64, inspection->ttl_ms);
  if (inspection->token == 0) fputs(",\"token\":null,\"since_ms\":null", to);
  else
    fprintf(to, ",\"token\":%" PRIu64 ",\"since_ms\":%" PRIu64, inspection->token,
            inspection->token / 1000);
  print_json_heard(to, inspection);
}

void inspection_print_json(FILE *to, const struct inspection *inspection, const char *name,
                           size_t size, const char *server)
{
  putc('{', to);
  print_json_bytes(to, "name", name, size);
  putc(',', to);
  print_json_bytes(to, "server", server, strlen(server));
  putc(',', to);
  print_json_holder(to, inspection);
}

void inspection_print_json_age(FILE *to, int64_t age_ms, size_t waiters)
{
  if (age_ms < 0) fputs(",\"age_ms\":null", to);
  else fprintf(to, ",\"age_ms\":%" PRId64, age_ms);
  fprintf(to, ",\"waiter_count\":%zu", waiters);
}
