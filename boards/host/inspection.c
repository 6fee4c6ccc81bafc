/*
 * Reads a lock by fairlock_inspect(), which reports piece by piece and may begin again when the
 * connection breaks, and keeps the pieces until they are printed.
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
  return true;
}

static bool take_holder(struct inspection *inspection, const struct fairlock_report *report)
{
  inspection->held = report->id != NULL;
  inspection->ttl_ms = report->ttl_ms;
  inspection->hold_count = report->hold_count;
  inspection->token = report->token;
  if (report->waiters > 0) {
    inspection->waiters = calloc(report->waiters, sizeof *inspection->waiters);
    if (inspection->waiters == NULL) return false;
  }
  return report->id == NULL || copy_party(&inspection->holder, report);
}

static void take(const struct fairlock_report *report, void *context)
{
  struct inspection *inspection = context;
  bool done;
  if (report->place == 0) {
    inspection_clear(inspection);
    done = take_holder(inspection, report);
  } else {
    done = inspection->waiters != NULL &&
           copy_party(&inspection->waiters[inspection->waiter_count], report);
    if (done) inspection->waiter_count++;
  }
  if (!done) inspection->out_of_memory = true;
}

int inspection_read(struct inspection *inspection, struct session *session, const char *name,
                    size_t size)
{
  int status = fairlock_inspect(&session->client, name, size, take, inspection);
  if (status == FAIRLOCK_OK && inspection->out_of_memory) {
    complain("out of memory");
    exit(EXIT_SYSTEM);
  }
  return status;
}

static bool same_party(const struct party *a, const struct party *b)
{
  return a->id_size == b->id_size && (a->id_size == 0 || memcmp(a->id, b->id, a->id_size) == 0) &&
         a->ours == b->ours && a->listens == b->listens && a->alive == b->alive;
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

void inspection_clear(struct inspection *inspection)
{
  free(inspection->holder.id);
  for (size_t i = 0; i < inspection->waiter_count; i++)
    free(inspection->waiters[i].id);
  free(inspection->waiters);
  memset(inspection, 0, sizeof *inspection);
}

const char *party_kind(const struct party *party)
{
  return party->ours ? "fairlock" : "redisson";
}

const char *party_condition(const struct party *party)
{
  if (!party->alive) return "dead";
  return party->listens ? "listens" : "silent";
}

char *bytes_shown(const void *bytes, size_t size)
{
  char *shown = printable(bytes, size);
  if (shown != NULL) return shown;
  complain("out of memory");
  exit(EXIT_SYSTEM);
}

char *party_shown(const struct party *party)
{
  return bytes_shown(party->id, party->id_size);
}

/* The token is the server's time in microseconds when the hold began, or little more. */
static void print_since(FILE *to, uint64_t token)
{
  char text[32];
  struct tm local;
  time_t began = (time_t)(token / 1000000);
  if (localtime_r(&began, &local) == NULL) return;
  if (strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S", &local) > 0) fprintf(to, ", since %s", text);
}

void inspection_print_holder(FILE *to, const struct inspection *inspection, bool with_ttl)
{
  if (!inspection->held) {
    fputs("free", to);
    return;
  }
  char *id = party_shown(&inspection->holder);
  fprintf(to, "held by %s (%s", id, party_kind(&inspection->holder));
  free(id);
  if (inspection->hold_count == 0) fputs(", handed over, not confirmed yet", to);
  if (inspection->hold_count > 1) fprintf(to, ", %" PRId64 " times", inspection->hold_count);
  if (inspection->token != 0) fprintf(to, ", token %" PRIu64, inspection->token);
  if (with_ttl && inspection->token != 0) print_since(to, inspection->token);
  if (with_ttl && inspection->ttl_ms < 0) fputs(", without end", to);
  if (with_ttl && inspection->ttl_ms >= 0)
    fprintf(to, ", %.1f s left", (double)inspection->ttl_ms / 1000);
  fputc(')', to);
}

void inspection_print_waiters(FILE *to, const struct inspection *inspection, size_t most)
{
  size_t shown = inspection->waiter_count;
  if (shown > most) shown = most > 0 ? most - 1 : 0;
  for (size_t i = 0; i < shown; i++) {
    const struct party *waiter = &inspection->waiters[i];
    char *id = party_shown(waiter);
    fprintf(to, "  %4zu  %-8s  %-7s  %s\n", i + 1, party_kind(waiter), party_condition(waiter), id);
    free(id);
  }
  if (shown < inspection->waiter_count)
    fprintf(to, "  and %zu more\n", inspection->waiter_count - shown);
}

static void print_json_holder(FILE *to, const struct inspection *inspection)
{
  if (!inspection->held) {
    fputs("\"held\":false,\"holder\":null,\"kind\":null,\"hold_count\":0,\"ttl_ms\":null,"
          "\"token\":null,\"since_ms\":null",
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
