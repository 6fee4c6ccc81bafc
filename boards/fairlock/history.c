/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `fairlock history`: prints who has held a lock, and who has waited for it, from the stream that
 * record.c writes.
 *
 * The entries are read page by page, and become notes; the notes with the same token are one hold.
 * A token is, in microseconds, the server's time at which the hold began, and an entry's id the
 * server's time at which it was written, so no other clock counts. Whoever may write to the stream
 * can write anything, so nothing is believed that would take more than KEPT_MAX bytes or the time
 * for MOST_ENTRIES entries.
 */
#define _DEFAULT_SOURCE 1 /* what -std=c11 hides */

#include "history.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "command.h"
#include "exposition.h"
#include "inspection.h"
#include "options.h"
#include "query.h"
#include "record.h"
#include "text.h"

#define PAGE         "1000" /* entries of one request */
#define KEPT_MAX     (32U << 20)
#define MOST_ENTRIES 2000000U
#define TEXT_MAX     256U            /* bytes of a text that are kept                          */
#define LATEST_MS    253402300799999 /* the end of the year 9999                               */
#define LONGEST_MS   31622400000     /* a year: a hold or a wait of an entry was not longer    */
#define COLUMN_MAX   40U             /* characters of a host or a command in the table         */

/* What an entry says; in this order if they have the same token. */
enum kind { BEGIN, BREAK, LOSS, END, LEAVE, NOTHING };

struct note {
  enum kind kind;
  bool shared;
  uint64_t token;
  int64_t at_ms;
  int64_t waited_ms, status;    /* -1: not known */
  struct text id, word, reason; /* word: the command, or who broke it */
};

struct reading {
  struct session session; /* reads the lock    */
  struct session second;  /* reads the history */
  struct query query;
  struct inspection inspection;
  struct history history;
  const char *since, *svg;
  bool json;
  int64_t since_ms;

  struct note *notes;
  size_t count, room, entries, kept;
  struct note note;    /* of the entry that is read                       */
  uint64_t last[2];    /* the id of the last entry                        */
  char field[16];      /* the field whose value comes next; "": a field's name does */
  bool named, went_on; /* there is such a field; the page had a later id than the last one */
};

static const struct option_row options[] = {
    {"since", 0, OPTION_TEXT, offsetof(struct reading, since), "T",
     .help = "leave out what has ended before: 90s, 30min, 12h or 7d ago, or the\n"
             "local time, such as 2:00 or '2026-11-30 2:00'"},
    {"json", 0, OPTION_FLAG, offsetof(struct reading, json), NULL,
     .help = "print a JSON object for each hold, and each wait that was given up"},
    {"svg", 0, OPTION_TEXT, offsetof(struct reading, svg), "FILE",
     .help = "write a picture to FILE, and print nothing without --json"},
    {0},
};

static const struct command_line usage = {
    .command = "history",
    .usage = "fairlock history [--since T] [--json] [--svg FILE] [OPTION]... NAME",
    .about =
        "\n"
        "Prints the holds of the lock NAME, how each has ended, and who has broken it; and the\n"
        "waits that were given up. Only those are known that run --history, or hold or acquire\n"
        "with that option, have recorded. All times are the server's.\n",
    .statuses = "Exit status: 0; 1 there is no history, or",
    .options = options,
};

/* Texts */

static void set_text(struct text *text, const void *bytes, size_t size)
{
  if (size > TEXT_MAX) size = TEXT_MAX;
  free(text->bytes);
  *text = (struct text){copied(bytes, size), size};
}

static char *shown(const struct text *text)
{
  return printable(text->bytes, text->size);
}

/* True for the bytes of a character of UTF-8 but the first. */
static bool is_rest(char byte)
{
  return ((unsigned char)byte >> 6) == 2;
}

size_t characters_of(const char *text)
{
  size_t count = 0;
  for (; *text != 0; text++)
    count += !is_rest(*text);
  return count;
}

char *fitted(char *text, size_t most)
{
  static const char mark[] = "\xe2\x80\xa6";
  const char *at = text;
  if (characters_of(text) <= most) return text;
  for (size_t count = 1; count < most; count++)
    for (at++; is_rest(*at); at++)
      ;
  size_t kept = (size_t)(at - text);
  text = grown(text, kept + sizeof mark);
  memcpy(text + kept, mark, sizeof mark);
  return text;
}

/* An id is HOST.PROCESS.CONNECTION.TIME:NUMBER, or has --id before CONNECTION. */
static size_t host_size(const struct text *id)
{
  const char *bytes = id->bytes;
  size_t size = id->size;
  const char *colon = size > 0 ? strrchr(bytes, ':') : NULL;
  if (colon != NULL) size = (size_t)(colon - bytes);
  for (int parts = colon != NULL ? 2 : 0; parts > 0; parts--) {
    size_t end = size;
    while (end > 0 && bytes[end - 1] != '.')
      end--;
    if (end > 1) size = end - 1;
  }
  size_t digits = size;
  while (digits > 0 && bytes[digits - 1] >= '0' && bytes[digits - 1] <= '9')
    digits--;
  return digits < size && digits > 1 && bytes[digits - 1] == '.' ? digits - 1 : size;
}

char *span_host(const struct span *span)
{
  size_t size = span->id.bytes != NULL ? host_size(&span->id) : 0;
  return size > 0 ? printable(span->id.bytes, size) : copied("?", 1);
}

char *span_breaker(const struct span *span)
{
  char *by = shown(&span->by);
  char *reason = shown(&span->reason);
  size_t size = strlen(by) + strlen(reason) + 16;
  char *text = grown(NULL, size);
  snprintf(text, size, "broken by %s%s%s", *by != 0 ? by : "?", *reason != 0 ? ": " : "", reason);
  free(by);
  free(reason);
  return text;
}

/* Entries */

static void clear_note(struct note *note)
{
  free(note->id.bytes);
  free(note->word.bytes);
  free(note->reason.bytes);
  *note = (struct note){.kind = NOTHING, .at_ms = -1, .waited_ms = -1, .status = -1};
}

/* Keeps the note of the entry that was read, if it says anything. */
static void end_entry(struct reading *reading)
{
  struct note *note = &reading->note;
  bool good = note->kind != NOTHING && note->at_ms >= 0 &&
              (note->token > 0 || note->kind == LEAVE || note->kind == BREAK);
  if (good) {
    reading->kept += sizeof *note + note->id.size + note->word.size + note->reason.size + 64;
    reading->notes = with_room(reading->notes, reading->count, &reading->room, sizeof *note);
    reading->notes[reading->count++] = *note;
    *note = (struct note){0};
  }
  clear_note(note);
}

/* Takes "MS-NUMBER", which has to be larger than that of the entry before it. */
static void take_id(struct reading *reading, const struct resp_event *event)
{
  char text[48], *end;
  uint64_t id[2];
  if (event->data == NULL || event->size >= sizeof text) return;
  memcpy(text, event->data, event->size);
  text[event->size] = 0;
  id[0] = strtoull(text, &end, 10);
  if (*end != '-') return;
  id[1] = strtoull(end + 1, &end, 10);
  if (*end != 0) return;
  const uint64_t *last = reading->last;
  if (id[0] < last[0] || (id[0] == last[0] && id[1] <= last[1])) return;
  memcpy(reading->last, id, sizeof id);
  reading->went_on = true;
  if (id[0] <= LATEST_MS) reading->note.at_ms = (int64_t)id[0];
}

/* A number from 0 to most; otherwise `otherwise`. */
static int64_t number_of(const struct resp_event *event, int64_t most, int64_t otherwise)
{
  int64_t number;
  bool good = resp_parse_number(event->data, event->size, &number) && number >= 0 && number <= most;
  return good ? number : otherwise;
}

/* Takes a field that says what has happened. Returns false if it is none. */
static bool take_kind(struct note *note, const char *field, const struct resp_event *event)
{
  static const char *const names[] = {[BEGIN] = RECORD_BEGIN,
                                      [BREAK] = RECORD_BROKEN,
                                      [LOSS] = RECORD_LOST,
                                      [END] = RECORD_END,
                                      [LEAVE] = RECORD_LEFT};
  for (int kind = BEGIN; kind < NOTHING; kind++) {
    if (strcmp(field, names[kind]) != 0) continue;
    note->kind = (enum kind)kind;
    if (kind == LEAVE) set_text(&note->id, event->data, event->size);
    else note->token = (uint64_t)number_of(event, (int64_t)1 << 53, 0);
    return true;
  }
  return false;
}

static void take_value(struct note *note, const char *field, const struct resp_event *event)
{
  if (take_kind(note, field, event)) return;
  if (strcmp(field, RECORD_ID) == 0) set_text(&note->id, event->data, event->size);
  if (strcmp(field, RECORD_COMMAND) == 0 || strcmp(field, RECORD_BY) == 0)
    set_text(&note->word, event->data, event->size);
  if (strcmp(field, RECORD_REASON) == 0) set_text(&note->reason, event->data, event->size);
  if (strcmp(field, RECORD_WAITED) == 0) note->waited_ms = number_of(event, LONGEST_MS, -1);
  if (strcmp(field, RECORD_STATUS) == 0) note->status = number_of(event, 255, -1);
  if (strcmp(field, RECORD_SHARED) == 0) note->shared = true;
}

/* A page is {{id, {field, value, ...}}, ...}. */
static void take_event(struct reading *reading, const struct resp_event *event)
{
  bool text = event->type == RESP_BULK_STRING && event->data != NULL && !event->cut;
  if (event->depth == 1) {
    end_entry(reading);
    reading->entries++;
    reading->named = false;
  }
  if (event->depth == 2 && event->type == RESP_BULK_STRING) take_id(reading, event);
  if (event->depth != 3) return;
  if (reading->named && text) take_value(&reading->note, reading->field, event);
  if (!reading->named) query_copy(reading->field, sizeof reading->field, event);
  reading->named = !reading->named;
}

/* Reads a page. Returns a status. */
static int read_page(struct reading *reading, const char *start, const char *key, size_t size)
{
  const struct word words[] = {{"XRANGE", 6}, {key, size},  {start, strlen(start)},
                               {"+", 1},      {"COUNT", 5}, {PAGE, sizeof PAGE - 1}};
  struct resp_event event;
  int status = query_ask(&reading->query, words, 6);
  reading->went_on = false;
  do {
    if (status == FAIRLOCK_OK) status = query_event(&reading->query, &event);
    if (status != FAIRLOCK_OK) return status;
    if (event.depth == 0 && query_is_error(&event)) return query_refused(&reading->query, &event);
    if (reading->kept < KEPT_MAX && reading->entries < MOST_ENTRIES) take_event(reading, &event);
  } while (!event.last);
  end_entry(reading);
  return FAIRLOCK_OK;
}

static int read_entries(struct reading *reading)
{
  char key[BESIDE_KEY_SIZE], start[64];
  const char *name = reading->history.name;
  size_t size = beside_key(key, RECORD_PREFIX, name, strlen(name));
  int status;
  clear_note(&reading->note);
  snprintf(start, sizeof start, "%" PRId64, reading->since_ms);
  do {
    status = read_page(reading, start, key, size);
    snprintf(start, sizeof start, "(%" PRIu64 "-%" PRIu64, reading->last[0], reading->last[1]);
    bool full = reading->kept >= KEPT_MAX || reading->entries >= MOST_ENTRIES;
    if (full) complain("the history is longer than fairlock keeps: give a later --since");
    if (full) break;
  } while (status == FAIRLOCK_OK && reading->went_on);
  return status;
}

/* Spans */

int64_t span_begin(const struct span *span)
{
  return span->from_ms - (span->wait_ms > 0 ? span->wait_ms : 0);
}

int64_t span_end(const struct history *history, const struct span *span)
{
  int64_t end = span->to_ms >= 0 ? span->to_ms : history->now_ms;
  return end > span->from_ms ? end : span->from_ms;
}

static int compare_notes(const void *left, const void *right)
{
  const struct note *a = left, *b = right;
  if (a->token != b->token) return a->token < b->token ? -1 : 1;
  if (a->kind != b->kind) return a->kind < b->kind ? -1 : 1;
  return a->at_ms < b->at_ms ? -1 : a->at_ms > b->at_ms;
}

static int compare_spans(const void *left, const void *right)
{
  const struct span *a = left, *b = right;
  if (a->from_ms != b->from_ms) return a->from_ms < b->from_ms ? -1 : 1;
  return a->token < b->token ? -1 : a->token > b->token;
}

/* Moves a text, unless there is one. */
static void move_text(struct text *to, struct text *from)
{
  if (to->bytes != NULL) return;
  *to = *from;
  *from = (struct text){0};
}

/* Adds to the span what a note says of it; they come in the order of enum kind. */
static void add_note(struct span *span, struct note *note)
{
  static const enum fate fates[] = {
      [BEGIN] = CRASHED, [BREAK] = BROKEN, [LOSS] = LOST_IT, [END] = RELEASED, [LEAVE] = GAVE_UP};
  move_text(&span->id, &note->id);
  if (span->wait_ms < 0) span->wait_ms = note->waited_ms;
  if (note->status >= 0) span->status = note->status;
  span->shared = span->shared || note->shared;
  move_text(note->kind == BREAK ? &span->by : &span->command, &note->word);
  move_text(&span->reason, &note->reason);
  if (note->kind == BEGIN || span->fate != CRASHED) return;
  span->fate = fates[note->kind];
  span->to_ms = note->at_ms;
}

/* The time of the token, if it can be that of the hold whose first entry was written then. */
static int64_t began_at(uint64_t token, int64_t at_ms)
{
  int64_t began = (int64_t)(token / 1000);
  return token > 0 && began <= at_ms && at_ms - began <= LONGEST_MS ? began : at_ms;
}

/* Makes a span of each group of notes with the same token; without one, of each. */
static void fold(struct reading *reading)
{
  struct history *history = &reading->history;
  if (reading->count == 0) return;
  history->spans = grown(NULL, reading->count * sizeof *history->spans);
  qsort(reading->notes, reading->count, sizeof *reading->notes, compare_notes);
  for (size_t i = 0; i < reading->count; i++) {
    struct note *note = &reading->notes[i];
    struct span *span = &history->spans[history->count];
    bool same = history->count > 0 && note->token > 0 && span[-1].token == note->token;
    if (same) span--;
    else {
      *span = (struct span){.token = note->token,
                            .fate = CRASHED,
                            .wait_ms = -1,
                            .from_ms = began_at(note->token, note->at_ms),
                            .to_ms = -1,
                            .status = -1};
      history->count++;
    }
    add_note(span, note);
    clear_note(note);
  }
  free(reading->notes);
}

static bool is_held(const struct reading *reading, const struct span *span)
{
  const struct inspection *inspection = &reading->inspection;
  if (span->from_ms >= reading->history.now_ms) return true; /* it began after we looked */
  for (size_t i = 0; i < inspection->holder_count; i++)
    if (inspection->holders[i].token == span->token) return true;
  return false;
}

/* A hold without an end is held, or has crashed; the next one says when it ended at the latest. */
static void settle_ends(struct reading *reading)
{
  struct history *history = &reading->history;
  int64_t next_ms = -1;
  qsort(history->spans, history->count, sizeof *history->spans, compare_spans);
  for (size_t i = history->count; i-- > 0;) {
    struct span *span = &history->spans[i];
    if (span->fate == GAVE_UP || span->token == 0) continue;
    if (span->fate == CRASHED && is_held(reading, span)) span->fate = HELD;
    bool open = span->fate == CRASHED || span->fate == LOST_IT;
    if (open && !span->shared && next_ms >= 0 && (span->to_ms < 0 || span->to_ms > next_ms))
      span->to_ms = next_ms;
    next_ms = span->from_ms;
  }
}

/* The table */

#define DATE "%Y-%m-%d %H:%M:%S"

enum column { HOST, COMMAND, COLUMNS };

static char *cell(const struct span *span, enum column column)
{
  return fitted(column == HOST ? span_host(span) : shown(&span->command), COLUMN_MAX);
}

static void print_cell(char *text, int width)
{
  printf("  %s%*s", text, width - (int)characters_of(text), "");
  free(text);
}

static void print_fate(const struct span *span)
{
  static const char *const texts[] = {
      [RELEASED] = "released", [LOST_IT] = "lost",
      [BROKEN] = "",           [CRASHED] = "never released: it crashed, or was cut off",
      [HELD] = "holds it",     [GAVE_UP] = "gave up"};
  enum paint how = span->fate == RELEASED || span->fate == HELD ? PLAIN
                   : span->fate == GAVE_UP                      ? DOUBTFUL
                                                                : BAD;
  char *breaker = span->fate == BROKEN ? span_breaker(span) : copied("", 0);
  printf("  %s%s%s", paint(stdout, how), texts[span->fate], breaker);
  if (span->status > 0) printf(", status %" PRId64, span->status);
  printf("%s\n", paint(stdout, PLAIN));
  free(breaker);
}

static void print_row(const struct history *history, const struct span *span, const int *widths)
{
  char waited[SPAN_SIZE] = "", span_held[SPAN_SIZE] = "", held[SPAN_SIZE + 2] = "";
  bool at_most = span->fate == CRASHED || span->fate == LOST_IT;
  if (span->wait_ms >= 0) span_text(waited, span->wait_ms);
  if (span->fate != GAVE_UP && (span->to_ms >= 0 || span->fate == HELD)) {
    span_text(span_held, span_end(history, span) - span->from_ms);
    snprintf(held, sizeof held, "%s%s", at_most ? "< " : "", span_held);
  }
  print_time(stdout, span->from_ms, DATE);
  printf("  %12s  %12s", waited, held);
  print_cell(cell(span, HOST), widths[HOST]);
  print_cell(cell(span, COMMAND), widths[COMMAND]);
  print_fate(span);
}

static void print_table(const struct history *history)
{
  int widths[COLUMNS] = {4, 7};
  for (size_t i = 0; i < history->count; i++) {
    for (int column = 0; column < COLUMNS; column++) {
      char *text = cell(&history->spans[i], (enum column)column);
      int width = (int)characters_of(text);
      if (width > widths[column]) widths[column] = width;
      free(text);
    }
  }
  printf("%s%-19s  %12s  %12s  %-*s  %-*s  END%s\n", paint(stdout, STRONG), "BEGAN", "WAITED",
         "HELD", widths[HOST], "HOST", widths[COMMAND], "COMMAND", paint(stdout, PLAIN));
  for (size_t i = 0; i < history->count; i++)
    print_row(history, &history->spans[i], widths);
}

/* JSON */

static void print_text_member(const char *key, const struct text *text)
{
  putchar(',');
  if (text->bytes == NULL) printf("\"%s\":null", key);
  else print_json_bytes(stdout, key, text->bytes, text->size);
}

static void print_number_member(const char *key, bool known, uint64_t number)
{
  if (known) printf(",\"%s\":%" PRIu64, key, number);
  else printf(",\"%s\":null", key);
}

static void print_json(const struct history *history, const struct span *span)
{
  static const char *const fates[] = {
      [RELEASED] = "released", [LOST_IT] = "lost", [BROKEN] = "broken",
      [CRASHED] = "crashed",   [HELD] = "held",    [GAVE_UP] = "gave_up"};
  bool hold = span->fate != GAVE_UP;
  putchar('{');
  print_json_bytes(stdout, "name", history->name, strlen(history->name));
  printf(",\"end\":\"%s\"", fates[span->fate]);
  print_number_member("token", span->token > 0, span->token);
  print_text_member(hold ? "holder" : "waiter", &span->id);
  print_text_member("command", &span->command);
  printf(",\"shared\":%s", span->shared ? "true" : "false");
  inspection_print_seconds(stdout, "wait_seconds", span->wait_ms);
  inspection_print_seconds(stdout, "start_time_seconds", hold ? span->from_ms : -1);
  inspection_print_seconds(stdout, "end_time_seconds", span->to_ms);
  print_number_member("status", span->status >= 0, (uint64_t)span->status);
  print_text_member("broken_by", &span->by);
  print_text_member("reason", &span->reason);
  puts("}");
}

/* The command */

/* Takes "90s" and the like. Returns false if it is none. */
static bool take_ago(const char *text, int64_t *ms)
{
  static const struct {
    const char *name;
    int64_t ms;
  } units[] = {{"", 1000},     {"s", 1000},    {"m", 60000},
               {"min", 60000}, {"h", 3600000}, {"d", 86400000}};
  size_t digits = strspn(text, "0123456789");
  if (digits == 0 || digits > 9) return false;
  for (size_t i = 0; i < sizeof units / sizeof units[0]; i++) {
    if (strcmp(text + digits, units[i].name) != 0) continue;
    *ms = strtoll(text, NULL, 10) * units[i].ms;
    return true;
  }
  return false;
}

/* Takes a local time: a date, a time, or both. */
static bool take_local(const char *text, int64_t now_ms, int64_t *ms)
{
  struct tm at;
  time_t now = (time_t)(now_ms / 1000);
  int year, month, day, hour = 0, minute = 0, second = 0, used = 0;
  if (localtime_r(&now, &at) == NULL) return false;
  bool dated = sscanf(text, "%4d-%2d-%2d%n", &year, &month, &day, &used) == 3;
  if (dated) {
    if (month < 1 || month > 12 || day < 1 || day > 31) return false;
    at.tm_year = year - 1900;
    at.tm_mon = month - 1;
    at.tm_mday = day;
    text += used;
    if (*text == 'T' || *text == ' ') text++;
  }
  used = 0;
  (void)sscanf(text, "%2d:%2d%n:%2d%n", &hour, &minute, &used, &second, &used);
  bool good = hour >= 0 && hour <= 23 && minute >= 0 && minute <= 59 && second >= 0 && second <= 60;
  if (text[used] != 0 || (!dated && used == 0) || !good) return false;
  at.tm_hour = hour;
  at.tm_min = minute;
  at.tm_sec = second;
  at.tm_isdst = -1;
  *ms = (int64_t)mktime(&at) * 1000;
  if (!dated && *ms > now_ms) *ms -= 86400000;
  return *ms >= 0;
}

/* Sets since_ms: the time, or, below 0, how long ago it is. */
static int settle_since(struct reading *reading, const struct command_line *line)
{
  int64_t ms = 0;
  if (reading->since == NULL) return EXIT_DONE;
  bool ago = take_ago(reading->since, &ms);
  if (!ago && !take_local(reading->since, time_of_day_ms(), &ms))
    return misused(line,
                   "--since needs a time such as 12h, 7d, 2:00 or '2026-11-30 2:00', not '%s'",
                   reading->since);
  reading->since_ms = ago ? -ms : ms;
  return EXIT_DONE;
}

static int ask_time(struct reading *reading)
{
  static const struct word words[] = {{"TIME", 4}};
  int status = query_ask(&reading->query, words, 1);
  return status == FAIRLOCK_OK ? query_time(&reading->query, &reading->history.now_ms) : status;
}

/* Looks who holds the lock. The first time that also tells which server has it. */
static int look(struct reading *reading)
{
  const char *name = reading->history.name;
  int status = inspection_read(&reading->inspection, &reading->session, name, strlen(name));
  return status == FAIRLOCK_OK ? EXIT_DONE : session_complain(&reading->session, status);
}

static int read_history(struct reading *reading)
{
  char address[ADDRESS_SIZE];
  struct query *query = &reading->query;
  int result = look(reading);
  if (result != EXIT_DONE) return result;
  session_address(&reading->session, FAIRLOCK_OK, address);
  query->session = &reading->second;
  int status = query_open(query, address);
  if (status != FAIRLOCK_OK) return query_failed(query, &reading->session, status, false);
  status = ask_time(reading);
  result = look(reading); /* again: what began since then is not told from what has crashed */
  if (reading->since_ms < 0) reading->since_ms += reading->history.now_ms;
  if (reading->since_ms < 0) reading->since_ms = 0;
  if (status == FAIRLOCK_OK && result == EXIT_DONE) status = read_entries(reading);
  query_close(query);
  return status != FAIRLOCK_OK ? query_failed(query, &reading->session, status, false) : result;
}

static int print_history(struct reading *reading)
{
  const struct history *history = &reading->history;
  if (history->count == 0) {
    char *name = printable(history->name, strlen(history->name));
    complain("%s has no history%s: run --history writes one", name,
             reading->since != NULL ? " since then" : "");
    free(name);
    return EXIT_CONFLICT;
  }
  if (reading->json)
    for (size_t i = 0; i < history->count; i++)
      print_json(history, &history->spans[i]);
  else if (reading->svg == NULL) print_table(history);
  const char *why =
      reading->svg != NULL ? exposition_replace(reading->svg, history_draw, history) : NULL;
  if (why == NULL) return end_output(EXIT_DONE);
  complain("cannot write %s: %s", reading->svg, why);
  return EXIT_SYSTEM;
}

static void clear(struct reading *reading)
{
  struct history *history = &reading->history;
  for (size_t i = 0; i < history->count; i++) {
    struct span *span = &history->spans[i];
    free(span->id.bytes);
    free(span->command.bytes);
    free(span->by.bytes);
    free(span->reason.bytes);
  }
  free(history->spans);
  inspection_clear(&reading->inspection);
  fairlock_client_deinit(&reading->session.client);
}

int history_command(int argc, char **argv)
{
  static struct reading reading;
  struct command_line line = usage;
  if (parse_options(&line, &reading, argc, argv) != EXIT_DONE) return EXIT_USAGE;
  reading.history.name = only_name(&line);
  if (reading.history.name == NULL) return EXIT_USAGE;
  int status = settle_since(&reading, &line);
  if (status == EXIT_DONE) status = session_prepare(&reading.session, &line);
  if (status == EXIT_DONE) status = session_second(&reading.second, &reading.session, &line);
  if (status == EXIT_DONE) status = session_connect(&reading.session);
  if (status == EXIT_DONE) {
    status = read_history(&reading);
    if (status == EXIT_DONE) {
      fold(&reading);
      if (reading.history.count > 0) settle_ends(&reading);
      status = print_history(&reading);
    }
    clear(&reading);
  }
  free(line.url);
  return status;
}
