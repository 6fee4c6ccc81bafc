/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes entries of a history: XADD to a stream of a capped length, HINCRBY to the histograms beside
 * it (times.c), and PEXPIRE, over a connection of their own, which is closed behind them. It holds
 * nothing, so what happens to it harms no hold.
 *
 * The key is `fairlock:fairlock:history:B(name)`, in the slot of the lock's keys. It is the key of
 * no lock: as a name it begins with `fairlock:` and has a `{` behind that, as would be the name
 * `fairlock:history:B(name)` of the lock whose notes it would be (lock/FORMAT.md, Keys).
 */
#define _DEFAULT_SOURCE 1 /* what -std=c11 hides */

#include "record.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "command.h"
#include "text.h"

#define RECORD_MS   2000U        /* for the connection, the requests and the answers          */
#define TEXT_MAX    256U         /* bytes of a text                                           */
#define PATIENCE_MS 3000U        /* a resolver may take longer than that: it is left behind    */
#define TTL_MS      "2592000000" /* 30 days after the last entry                               */

bool record_default(const struct command_line *line, uint32_t *most)
{
  const char *given = from_environment("FAIRLOCK_HISTORY");
  *most = 0;
  return given == NULL ||
         parse_count(line, "FAIRLOCK_HISTORY", "a number", given, 0, RECORD_MOST_ENTRIES, most);
}

int record_prepare(struct record *record, struct session *session, const struct command_line *line)
{
  record->first = session;
  record->done = -1;
  record->query.session = &record->second;
  record->query.budget_ms = RECORD_MS;
  return record->most > 0 ? session_second(&record->second, session, line) : EXIT_DONE;
}

struct entry_words *record_next(struct record *record, const char *name)
{
  if (record->most == 0 || record->count == MOST_LOCKS) return NULL;
  struct entry_words *entry = &record->entries[record->count++];
  *entry = (struct entry_words){.name = name, .ms = -1};
  return entry;
}

static void add_word(struct entry_words *entry, const char *text, size_t size)
{
  if (entry->count < RECORD_MOST_WORDS) entry->words[entry->count++] = (struct word){text, size};
}

void record_text(struct entry_words *entry, const char *field, const char *text)
{
  size_t size = strlen(text);
  add_word(entry, field, strlen(field));
  add_word(entry, text, size < TEXT_MAX ? size : TEXT_MAX);
}

void record_number(struct entry_words *entry, const char *field, uint64_t number)
{
  char *text = entry->numbers[entry->number_count++];
  snprintf(text, sizeof entry->numbers[0], "%llu", (unsigned long long)number);
  record_text(entry, field, text);
}

void record_time(struct entry_words *entry, enum times_kind kind, int64_t ms)
{
  entry->kind = kind;
  entry->ms = ms;
}

static int ask_lasting(struct record *record, const struct word *key)
{
  const struct word words[] = {{"PEXPIRE", 7}, *key, {TTL_MS, strlen(TTL_MS)}};
  record->answers++;
  return query_ask(&record->query, words, 3);
}

static int ask_time(struct record *record, const struct entry_words *entry)
{
  char text[BESIDE_KEY_SIZE];
  const struct word key = {text, beside_key(text, TIMES_PREFIX, entry->name, strlen(entry->name))};
  record->answers += TIMES_REQUESTS;
  int status = times_ask(&record->query, &key, entry->kind, entry->ms);
  return status == FAIRLOCK_OK ? ask_lasting(record, &key) : status;
}

static int ask(struct record *record, const struct entry_words *entry)
{
  char key[BESIDE_KEY_SIZE], most[16];
  size_t size = beside_key(key, RECORD_PREFIX, entry->name, strlen(entry->name));
  struct word words[QUERY_WORDS_MAX] = {{"XADD", 4}, {key, size}};
  int count = 2;
  if (record->only_existing) {
    words[count++] = (struct word){"NOMKSTREAM", 10};
  } else {
    words[count++] = (struct word){"MAXLEN", 6};
    words[count++] = (struct word){"~", 1};
    words[count++] = (struct word){most, (size_t)snprintf(most, sizeof most, "%u", record->most)};
  }
  words[count++] = (struct word){"*", 1};
  memcpy(&words[count], entry->words, (size_t)entry->count * sizeof *words);
  count += entry->count;
  record->answers++;
  int status = query_ask(&record->query, words, count);
  if (status == FAIRLOCK_OK) status = ask_lasting(record, &words[1]);
  return status == FAIRLOCK_OK && entry->ms >= 0 ? ask_time(record, entry) : status;
}

/* Reads an answer, which has one value. Returns a status. */
static int take_answer(struct query *query)
{
  struct resp_event event;
  int status = query_event(query, &event);
  if (status == FAIRLOCK_OK && query_is_error(&event)) return query_refused(query, &event);
  return status == FAIRLOCK_OK && !event.last ? FAIRLOCK_PROTOCOL : status;
}

static int write_all(struct record *record)
{
  struct query *query = &record->query;
  int status = query_open(query, record->address);
  record->answers = 0;
  if (status != FAIRLOCK_OK) return status;
  for (size_t i = 0; i < record->count && status == FAIRLOCK_OK; i++)
    status = ask(record, &record->entries[i]);
  for (size_t i = 0; i < record->answers && status == FAIRLOCK_OK; i++)
    status = take_answer(query);
  query_close(query);
  return status;
}

static void tell(struct record *record, int status)
{
  struct query *query = &record->query;
  if (record->told || record->only_existing) return;
  if (status == FAIRLOCK_UNREACHABLE || status == FAIRLOCK_UNTRUSTED)
    session_reason(query->session, query->connected, query->error);
  char *place = session_place(record->first, record->address);
  char *words = session_words(query->error);
  complain("the history is not written: %s: %s%s", place, fairlock_status_text(status), words);
  free(words);
  free(place);
  record->told = true;
}

/* A server that refuses is asked once. One that is not reached now may be later. */
static void write_now(struct record *record)
{
  session_renew_password(record->first);
  int status = write_all(record);
  if (status != FAIRLOCK_OK) tell(record, status);
  if (status != FAIRLOCK_OK && status != FAIRLOCK_UNREACHABLE && status != FAIRLOCK_UNAVAILABLE)
    record->most = 0;
  record->count = 0;
}

/* False if there is nothing to write. */
static bool aim(struct record *record, const char *address)
{
  snprintf(record->address, sizeof record->address, "%s", address);
  return record->most > 0 && record->count > 0;
}

void record_write(struct record *record, const char *address)
{
  if (aim(record, address)) write_now(record);
}

static void *write_apart(void *context)
{
  struct record *record = context;
  write_now(record);
  (void)close(record->ends);
  return NULL;
}

/* The other thread handles all signals. */
static bool start_thread(struct record *record)
{
  sigset_t all, before;
  sigfillset(&all);
  (void)pthread_sigmask(SIG_SETMASK, &all, &before);
  bool started = pthread_create(&record->thread, NULL, write_apart, record) == 0;
  (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
  return started;
}

void record_start(struct record *record, const char *address)
{
  int ends[2];
  if (!aim(record, address) || pipe(ends) != 0) return;
  record->done = ends[0];
  record->ends = ends[1];
  if (start_thread(record)) return;
  (void)close(ends[0]);
  (void)close(ends[1]);
  record->done = -1;
}

bool record_finish(struct record *record)
{
  struct pollfd done = {.fd = record->done, .events = POLLIN};
  uint32_t began = port_clock_ms();
  int ready = 1;
  if (record->done < 0) return true;
  do {
    uint32_t waited = port_clock_ms() - began;
    ready = poll(&done, 1, waited < PATIENCE_MS ? (int)(PATIENCE_MS - waited) : 0);
  } while (ready < 0 && errno == EINTR);
  if (ready <= 0) {
    complain("the history is not written: resolving the server's name takes too long");
    return false;
  }
  (void)pthread_join(record->thread, NULL);
  (void)close(record->done);
  record->done = -1;
  return true;
}
