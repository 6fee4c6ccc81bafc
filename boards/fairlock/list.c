/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `fairlock list`: finds the locks that are held or waited for, by SCAN.
 *
 * A lock's own key is a hash named as the user likes, and cannot be told from other hashes. So we
 * look for two keys that come with it: the hash `fairlock:{NAME}`, which stays for a day or two
 * after the last release, and the queue, which exists while somebody waits. We get one page of
 * keys, read the locks that they belong to, as `fairlock status` does, and then get the next page.
 * Locks that are held or waited for stay in memory, without the ids of their waiters, and are
 * sorted and printed at the end. In a cluster we ask each master for its keys; if one does not
 * answer, we list those of the others. list_metrics.c prints metrics instead.
 */
#define _DEFAULT_SOURCE 1 /* what -std=c11 hides */

#include <fnmatch.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "exposition.h"
#include "inspection.h"
#include "list.h"
#include "query.h"
#include "record.h"
#include "text.h"

/* How many keys the server looks at for one page: the COUNT of SCAN. */
#define PAGE "1000"

/* How many locks get metrics of their own: by default, and at most. */
#define METRICS_LOCKS      100U
#define MOST_METRICS_LOCKS 999U

/* What a page may take, because a server may send keys without end: bytes. */
#define PAGE_MAX (16U << 20)

/* For how many candidates requests are sent at once. */
#define BATCH 256U

/* How the list is printed. */
enum form { TEXT, JSON, NAMES, METRICS };

/* A key that belongs to a lock. */
struct candidate {
  char *name; /* of the lock, allocated */
  size_t size;
  bool queue;  /* the key is the lock's queue; false: its hash of notes */
  bool braced; /* the lock whose name is "{name}" would have the same key */

  /* which of these exist: the other of the two keys, the lock, and the lock "{name}" */
  bool other, plain, in_braces;
};

struct list {
  struct session session; /* reads locks */
  struct session second;  /* finds them */
  struct query query;
  const char *pattern;      /* NULL: all */
  bool json, null, metrics; /* which of these the command line has */
  enum form form;
  const char *metrics_file; /* NULL: none */
  uint32_t metrics_locks;
  int status; /* the exit status so far */
  bool read;  /* at least one page of keys was read */
  struct nodes masters;
  struct nodes replicas; /* of those masters, if servers move */
  char cursor[32];
  struct candidate *page;
  size_t page_count, page_room, page_bytes;
  struct entry *entries;
  size_t entry_count, entry_room;
  struct recorded
      *recorded; /* of the keys up to here, those from recorded_read on are to be read */
  size_t recorded_count, recorded_room, recorded_read;
  int64_t server_ms; /* the server's time, as it was at asked_at */
  uint32_t asked_at; /* in port_clock_ms() */
};

static const struct option_row options[] = {
    {"json", 0, OPTION_FLAG, offsetof(struct list, json), NULL,
     .help = "print a JSON object for each lock, one per line"},
    {"null", '0', OPTION_FLAG, offsetof(struct list, null), NULL,
     .help = "print only the names, unchanged, a zero byte after each, as\nxargs -0 reads them"},
    {"metrics", 0, OPTION_FLAG, offsetof(struct list, metrics), NULL,
     .help =
         "print how many locks are held, how many wait, and for how long, in\nPrometheus's format"},
    {"metrics-file", 0, OPTION_TEXT, offsetof(struct list, metrics_file), "FILE",
     .help = "write that to FILE instead, also when no server can be reached"},
    {"metrics-locks", 0, OPTION_COUNT, offsetof(struct list, metrics_locks), "N",
     .help = "metrics by lock for at most N locks: those with most waiters.\nDefault: 100",
     .most = MOST_METRICS_LOCKS},
    {0},
};

static const struct command_line usage = {
    .command = "list",
    .usage = "fairlock list [--json|--null|--metrics] [OPTION]... [PATTERN]",
    .about =
        "\n"
        "Lists the locks that are held or waited for, sorted by name: who holds each of them, or\n"
        "how many share it, for how long so far, and how many wait. PATTERN is a shell pattern\n"
        "with *, ? and [...]: quote it. A lock that Redisson holds and nobody waits for is not\n"
        "found.\n",
    .statuses =
        "What cannot be read, a lock or a master of a cluster, is named on stderr; the rest is\n"
        "listed.\n\n"
        "Exit status: 0, also without any locks, or",
    .options = options,
};

static const char notes_prefix[] = "fairlock:";
static const char queue_prefix[] = "redisson_lock_queue:";

/* SCAN has one pattern and no "or". This one matches both prefixes and few other keys. */
static const char both_prefixes[] = "[fr][ae][id][ri][ls][os][co][kn][:_]*";

/* Candidates */

/* Takes the prefix off a key. Returns false if it has another one, or nothing behind that. */
static bool take_off(const char *prefix, const uint8_t **key, size_t *size)
{
  size_t length = strlen(prefix);
  if (*size <= length || memcmp(*key, prefix, length) != 0) return false;
  *key += length;
  *size -= length;
  return true;
}

/* Takes off the braces, between which the name of a lock stands if it has none. Returns false if it has. */
static bool take_braces(const uint8_t **name, size_t *size)
{
  const uint8_t *at = *name;
  bool braced =
      *size > 2 && *at == '{' && at[*size - 1] == '}' && memchr(at + 1, '{', *size - 1) == NULL;
  if (!braced) return false;
  *name += 1;
  *size -= 2;
  return true;
}

/* Finds the lock of a key. False: none, as of that of a history. */
static bool find_name(struct candidate *found, const uint8_t *key, size_t size)
{
  if (take_off(RECORD_PREFIX, &key, &size)) return false;
  found->queue = !take_off(notes_prefix, &key, &size);
  if (found->queue && !take_off(queue_prefix, &key, &size)) return false;
  if (memchr(key, '{', size) == NULL) return false;
  found->braced = take_braces(&key, &size);
  if (size > FAIRLOCK_NAME_MAX) return false;
  found->name = copied(key, size);
  found->size = size;
  return true;
}

/* Takes a key of histograms, which only metrics show. Returns false if it is none. */
static bool add_recorded(struct list *list, const uint8_t *key, size_t size)
{
  if (!take_off(TIMES_PREFIX, &key, &size)) return false;
  (void)take_braces(&key, &size);
  if (list->form != METRICS || size > FAIRLOCK_NAME_MAX) return true;
  struct recorded found = {.name = copied(key, size), .size = size};
  list->recorded =
      with_room(list->recorded, list->recorded_count, &list->recorded_room, sizeof found);
  list->recorded[list->recorded_count++] = found;
  list->page_bytes += sizeof found + found.size;
  return true;
}

static void add_candidate(struct list *list, const struct resp_event *event)
{
  struct candidate found = {0};
  if (event->type != RESP_BULK_STRING || event->cut) return;
  if (add_recorded(list, event->data, event->size)) return;
  if (!find_name(&found, event->data, event->size)) return;
  list->page = with_room(list->page, list->page_count, &list->page_room, sizeof *list->page);
  list->page[list->page_count++] = found;
  list->page_bytes += sizeof found + found.size;
}

static void forget_page(struct list *list)
{
  for (size_t i = 0; i < list->page_count; i++)
    free(list->page[i].name);
  list->page_count = 0;
  list->page_bytes = 0;
}

/* Reads the next page of keys, which is {cursor, {key, ...}}. Returns a status. */
static int read_page(struct list *list)
{
  struct query *query = &list->query;
  struct resp_event event;
  const struct word words[] = {{"SCAN", 4},  {list->cursor, strlen(list->cursor)},
                               {"MATCH", 5}, {both_prefixes, sizeof both_prefixes - 1},
                               {"COUNT", 5}, {PAGE, sizeof PAGE - 1}};
  int status = query_ask(query, words, 6);
  bool told = false;
  forget_page(list);
  while (status == FAIRLOCK_OK) {
    status = query_event(query, &event);
    if (status != FAIRLOCK_OK) break;
    if (query_is_error(&event)) return query_refused(query, &event);
    if (event.depth == 1 && event.type == RESP_BULK_STRING && !told && !event.cut &&
        event.size > 0 && event.size < sizeof list->cursor) {
      memcpy(list->cursor, event.data, event.size);
      list->cursor[event.size] = 0;
      told = true;
    }
    if (event.depth == 2) add_candidate(list, &event);
    if (list->page_bytes > PAGE_MAX) return FAIRLOCK_PROTOCOL;
    if (event.last) return told ? FAIRLOCK_OK : FAIRLOCK_PROTOCOL;
  }
  return status;
}

static int ask_exists(struct list *list, const char *prefix, const struct candidate *candidate,
                      bool braces)
{
  char key[sizeof queue_prefix + FAIRLOCK_NAME_MAX + 2];
  size_t size = strlen(prefix);
  memcpy(key, prefix, size);
  if (braces) key[size++] = '{';
  memcpy(key + size, candidate->name, candidate->size);
  size += candidate->size;
  if (braces) key[size++] = '}';
  const struct word words[] = {{"EXISTS", 6}, {key, size}};
  return query_ask(&list->query, words, 2);
}

/* Sends the requests that tell whether the candidate's other key and the lock exist. */
static int ask_about(struct list *list, const struct candidate *candidate)
{
  const char *other = candidate->queue ? notes_prefix : queue_prefix;
  int status = ask_exists(list, other, candidate, candidate->braced);
  return status == FAIRLOCK_OK ? ask_exists(list, "", candidate, false) : status;
}

/* Reads an answer to EXISTS; `otherwise` if it is refused: a moving slot, a missing right. */
static int read_exists(struct list *list, bool *exists, bool otherwise)
{
  struct resp_event event;
  int status = query_event(&list->query, &event);
  if (status != FAIRLOCK_OK) return status;
  if (query_is_error(&event)) {
    *exists = otherwise;
    status = query_refused(&list->query, &event);
    return status == FAIRLOCK_UNAVAILABLE ? status : FAIRLOCK_OK;
  }
  if (event.type != RESP_INTEGER || !event.last) return FAIRLOCK_PROTOCOL;
  *exists = event.integer > 0;
  return FAIRLOCK_OK;
}

static int read_about(struct list *list, struct candidate *candidate)
{
  int status = read_exists(list, &candidate->other, false);
  return status == FAIRLOCK_OK ? read_exists(list, &candidate->plain, true) : status;
}

/*
 * True if the key may belong to the lock "{name}". If `name` is held we do not ask, because our
 * user may have no right to "{name}", and the server logs each refusal.
 */
static bool may_be_in_braces(const struct candidate *candidate)
{
  return candidate->braced && !candidate->plain && candidate->size + 2 <= FAIRLOCK_NAME_MAX;
}

/* Finds out which of the candidates exist. Returns a status. */
static int look_at(struct list *list, struct candidate *first, size_t count)
{
  const struct word time[] = {{"TIME", 4}};
  int status = query_ask(&list->query, time, 1);
  for (size_t i = 0; i < count && status == FAIRLOCK_OK; i++)
    status = ask_about(list, &first[i]);
  if (status == FAIRLOCK_OK) status = query_time(&list->query, &list->server_ms);
  list->asked_at = port_clock_ms();
  for (size_t i = 0; i < count && status == FAIRLOCK_OK; i++)
    status = read_about(list, &first[i]);
  for (size_t i = 0; i < count && status == FAIRLOCK_OK; i++)
    if (may_be_in_braces(&first[i])) status = ask_exists(list, "", &first[i], true);
  for (size_t i = 0; i < count && status == FAIRLOCK_OK; i++)
    if (may_be_in_braces(&first[i])) status = read_exists(list, &first[i].in_braces, false);
  return status;
}

/* Locks */

/* The server's time now, in ms since 1970. */
static int64_t now_ms(const struct list *list)
{
  return list->server_ms + (int64_t)(uint32_t)(port_clock_ms() - list->asked_at);
}

/*
 * The longest that the first waiter may have waited, in ms: since its client connected, as its id
 * tells. Dead waiters, and ids without that time, are passed over. 0: nobody waits; -1: not known.
 */
static int64_t wait_ms(const struct list *list, const struct inspection *inspection)
{
  bool waited_for = false;
  for (size_t i = 0; i < inspection->waiter_count; i++) {
    const struct party *waiter = &inspection->waiters[i];
    if (!waiter->alive) continue;
    waited_for = true;
    int64_t since = party_client_since_ms(waiter);
    if (since < 0) continue;
    int64_t waited = now_ms(list) - since;
    return waited > 0 ? waited : 0;
  }
  return waited_for ? -1 : 0;
}

static int64_t longest_ms(const struct inspection *inspection, int64_t now)
{
  int64_t longest = -1;
  for (size_t i = 0; i < inspection->holder_count; i++) {
    int64_t age = holder_age_ms(&inspection->holders[i], now);
    if (age > longest) longest = age;
  }
  return longest;
}

/* Adds the lock to those that are printed at the end. Of its waiters it keeps only the number. */
static void add_entry(struct list *list, const char *name, size_t size,
                      struct inspection *inspection)
{
  char address[ADDRESS_SIZE];
  session_address(&list->session, FAIRLOCK_OK, address);
  const char *server = *address != 0 ? address : list->session.server.shown;
  list->entries =
      with_room(list->entries, list->entry_count, &list->entry_room, sizeof *list->entries);
  struct entry *entry = &list->entries[list->entry_count++];
  entry->name = copied(name, size);
  entry->size = size;
  entry->server = copied(server, strlen(server));
  entry->waiters = inspection_waiters(inspection);
  entry->read_ms = now_ms(list);
  entry->longest_ms = longest_ms(inspection, entry->read_ms);
  entry->wait_ms = wait_ms(list, inspection);
  inspection_forget_waiters(inspection);
  entry->inspection = *inspection;
  memset(inspection, 0, sizeof *inspection);
}

static void print_entry(const struct list *list, const struct entry *entry)
{
  if (list->form == JSON) {
    const struct inspected of = {entry->name, entry->size, entry->server, entry->read_ms,
                                 entry->waiters};
    inspection_print_json(stdout, &entry->inspection, &of);
    puts("}");
    return;
  }
  const struct inspection *inspection = &entry->inspection;
  inspection_print_name(stdout, entry->name, entry->size);
  if (inspection->shared || inspection->holder_count == 0) {
    inspection_print_holders(stdout, inspection, false);
  } else {
    holder_begin(stdout, inspection->holders);
    holder_print_heard(stdout, inspection->holders);
    putchar(')');
  }
  if (entry->longest_ms >= 0) {
    fputs(" for ", stdout);
    print_span(stdout, entry->longest_ms);
  }
  inspection_print_outdated(stdout, inspection);
  printf(", %zu waiting\n", entry->waiters);
}

/* Compares two names by their bytes. */
static int compare_names(const char *one, size_t one_size, const char *other, size_t other_size)
{
  int order = memcmp(one, other, one_size < other_size ? one_size : other_size);
  return order != 0 ? order : (one_size > other_size) - (one_size < other_size);
}

static int compare(const void *a, const void *b)
{
  const struct entry *one = a;
  const struct entry *other = b;
  return compare_names(one->name, one->size, other->name, other->size);
}

static int compare_recorded(const void *a, const void *b)
{
  const struct recorded *one = a;
  const struct recorded *other = b;
  return compare_names(one->name, one->size, other->name, other->size);
}

static void forget(struct entry *entry)
{
  inspection_clear(&entry->inspection);
  free(entry->name);
  free(entry->server);
}

/* Sorts by name, and removes duplicates, because SCAN may return a key twice. */
static void sort_entries(struct list *list)
{
  struct entry *entries = list->entries;
  size_t kept = 0;
  if (list->entry_count > 0) qsort(entries, list->entry_count, sizeof *entries, compare);
  for (size_t i = 0; i < list->entry_count; i++) {
    if (kept > 0 && compare(&entries[kept - 1], &entries[i]) == 0) forget(&entries[i]);
    else entries[kept++] = entries[i];
  }
  list->entry_count = kept;
}

/* True if a failure concerns one lock alone, such as a key of the wrong type. */
static bool concerns_lock(int status)
{
  return status == FAIRLOCK_REFUSED || status == FAIRLOCK_DENIED ||
         status == FAIRLOCK_WRONG_SHARD || status == FAIRLOCK_PROTOCOL;
}

static void complain_lock(struct list *list, const char *name, size_t size, int status,
                          const char *error)
{
  char *shown = printable(name, size);
  char *words = session_words(error);
  complain("%s cannot be read: %s%s", shown, fairlock_status_text(status), words);
  free(words);
  free(shown);
  if (list->status == EXIT_DONE) list->status = exit_status_of(status);
}

/* True if the name, in which a NUL counts as another byte, matches the pattern. */
static bool is_wanted(const struct list *list, const char *name, size_t size)
{
  if (list->pattern == NULL) return true;
  char *text = copied(name, size);
  for (char *at = text; (at = memchr(at, 0, size - (size_t)(at - text))) != NULL;)
    *at = 1;
  bool wanted = fnmatch(list->pattern, text, 0) == 0;
  free(text);
  return wanted;
}

/* Reads the lock, and adds it to the list. Returns false if this server cannot be read any more. */
static bool show_lock(struct list *list, const char *name, size_t size)
{
  struct inspection inspection = {0};
  if (!is_wanted(list, name, size)) return true;
  int status = inspection_read(&inspection, &list->session, name, size);
  if (status == FAIRLOCK_OK) {
    if (inspection.holder_count + inspection_waiters(&inspection) > 0)
      add_entry(list, name, size, &inspection);
  } else if (concerns_lock(status)) {
    char error[FAIRLOCK_ERROR_SIZE];
    session_error(&list->session, status, error);
    complain_lock(list, name, size, status, error);
  } else {
    list->status = session_complain(&list->session, status);
  }
  inspection_clear(&inspection);
  return status == FAIRLOCK_OK || concerns_lock(status);
}

/* Takes one event of HGETALL's answer: the holder's id, and then its hold count. */
static void take_hold(struct holder *holder, const struct resp_event *event)
{
  if (event->type != RESP_BULK_STRING || event->depth != 1 || event->cut) return;
  if (holder->party.id == NULL) {
    holder->party.id = copied(event->data, event->size);
    holder->party.id_size = event->size;
  } else if (holder->hold_count == 0) {
    (void)resp_parse_number(event->data, event->size, &holder->hold_count);
  }
}

/* Reads the hold from the hash called name, without the queue. Returns a status of the query. */
static int read_hold(struct query *query, const char *name, size_t size, struct holder *holder)
{
  const struct word hold[] = {{"HGETALL", 7}, {name, size}};
  const struct word left[] = {{"PTTL", 4}, {name, size}};
  struct resp_event event;
  int status = query_ask(query, hold, 2);
  if (status == FAIRLOCK_OK) status = query_ask(query, left, 2);
  int failed = FAIRLOCK_OK;
  for (int answers = 0; answers < 2 && status == FAIRLOCK_OK;) {
    status = query_event(query, &event);
    if (status != FAIRLOCK_OK) break;
    if (query_is_error(&event)) failed = query_refused(query, &event);
    if (answers == 0) take_hold(holder, &event);
    else if (event.type == RESP_INTEGER) holder->ttl_ms = event.integer;
    if (event.last) answers++;
  }
  return status == FAIRLOCK_OK ? failed : status;
}

/*
 * Lists Redisson's lock "{x}", which the library cannot read. Its queue is that of "x", and its
 * waiters are listed there. Returns a status of the query.
 */
static int show_in_braces(struct list *list, const struct candidate *candidate)
{
  struct inspection inspection = {.holders = grown(NULL, sizeof *inspection.holders)};
  struct holder *holder = inspection.holders;
  size_t size = candidate->size + 2;
  char *name = grown(NULL, size);
  name[0] = '{';
  memcpy(name + 1, candidate->name, candidate->size);
  name[size - 1] = '}';
  *holder = (struct holder){.unheard_ms = -1, .ttl_ms = -1};
  int status = FAIRLOCK_OK;
  if (is_wanted(list, name, size)) {
    status = read_hold(&list->query, name, size, holder);
    inspection.holder_count = holder->party.id != NULL;
    if (inspection.holder_count > 0) add_entry(list, name, size, &inspection);
  }
  if (status != FAIRLOCK_OK && concerns_lock(status)) {
    complain_lock(list, name, size, status, list->query.error);
    status = FAIRLOCK_OK;
  }
  inspection_clear(&inspection);
  free(name);
  return status;
}

/* Reads the histograms whose keys were found. Returns a status of the query. */
static int read_recorded(struct list *list)
{
  int status = FAIRLOCK_OK;
  for (; list->recorded_read < list->recorded_count && status == FAIRLOCK_OK;
       list->recorded_read++) {
    struct recorded *recorded = &list->recorded[list->recorded_read];
    if (!is_wanted(list, recorded->name, recorded->size)) continue;
    status = times_read(&list->query, recorded->name, recorded->size, &recorded->times);
    if (!concerns_lock(status)) continue;
    complain_lock(list, recorded->name, recorded->size, status, list->query.error);
    status = FAIRLOCK_OK;
  }
  return status;
}

/* Lists the candidate's locks. Returns false if this server cannot be read any more. */
static bool show(struct list *list, const struct candidate *candidate, int *status)
{
  /* its notes exist, too: the lock is listed when SCAN returns those */
  if (candidate->queue && candidate->other) return true;
  if (candidate->in_braces) *status = show_in_braces(list, candidate);
  if (!candidate->queue && !candidate->other && !candidate->plain) return true;
  return *status != FAIRLOCK_OK || show_lock(list, candidate->name, candidate->size);
}

/* Reads the locks of the page. Returns the query's status; other failures are in the list's. */
static int show_page(struct list *list, bool *goes_on)
{
  int status = FAIRLOCK_OK;
  for (size_t first = 0; first < list->page_count && status == FAIRLOCK_OK; first += BATCH) {
    size_t count = list->page_count - first < BATCH ? list->page_count - first : BATCH;
    status = look_at(list, &list->page[first], count);
    for (size_t i = 0; i < count && status == FAIRLOCK_OK && *goes_on; i++)
      *goes_on = show(list, &list->page[first + i], &status);
    if (!*goes_on) break;
  }
  return status;
}

/* Servers */

/* Complains that the server could not be listed, or not completely. */
static void server_failed(struct list *list, int status, bool beside)
{
  list->status = query_failed(&list->query, &list->session, status, beside);
}

/* Lists the locks of the connected server. Returns a status of the query. */
static int scan(struct list *list)
{
  bool goes_on = true;
  int status = FAIRLOCK_OK;
  memcpy(list->cursor, "0", 2);
  do {
    status = read_page(list);
    if (status == FAIRLOCK_OK) list->read = true;
    if (status == FAIRLOCK_OK) status = show_page(list, &goes_on);
    if (status == FAIRLOCK_OK) status = read_recorded(list);
  } while (status == FAIRLOCK_OK && goes_on && strcmp(list->cursor, "0") != 0);
  if (status != FAIRLOCK_OK) server_failed(list, status, false);
  return goes_on ? status : FAIRLOCK_UNAVAILABLE;
}

/* Lists the locks of one master. If that fails, the list goes on with the next master. */
static void list_master(struct list *list, const char *address)
{
  int status = query_open(&list->query, address);
  if (status == FAIRLOCK_OK) {
    status = scan(list);
    query_close(&list->query);
  } else {
    server_failed(list, status, true);
  }
  if (status == FAIRLOCK_OK) return;
  char *shown = printable(address, strlen(address));
  complain("some or all locks of %s are missing from the list", shown);
  free(shown);
}

static void list_cluster(struct list *list)
{
  int status = nodes_of_cluster(&list->masters, &list->query, MASTERS);
  if (status != FAIRLOCK_OK) server_failed(list, status, false);
  else (void)nodes_of_cluster(&list->replicas, &list->query, REPLICAS);
  query_close(&list->query);
  for (size_t i = 0; i < list->masters.count && status == FAIRLOCK_OK; i++)
    list_master(list, list->masters.address[i]);
  nodes_forget(&list->masters);
}

/*
 * Says which replicas refuse us, and so would after a fail-over. Other failures do not concern the
 * list. It comes last, because a replica may not answer for long.
 */
static void check_replicas(struct list *list)
{
  struct query *query = &list->query;
  for (size_t i = 0; i < list->replicas.count; i++) {
    int status = query_open(query, list->replicas.address[i]);
    if (status == FAIRLOCK_OK) query_close(query);
    if (status == FAIRLOCK_DENIED)
      (void)session_other_failed(&list->session, status, query->address, query->error);
  }
  nodes_forget(&list->replicas);
}

/* Reads the locks of all servers into list->entries, and sets list->status. */
static void read_servers(struct list *list)
{
  char address[ADDRESS_SIZE];
  session_address(&list->session, FAIRLOCK_OK, address);
  list->query.session = &list->second;
  int status = query_open(&list->query, address);
  if (status != FAIRLOCK_OK) {
    server_failed(list, status, false);
  } else if (list->query.cluster) {
    list_cluster(list);
  } else {
    if (scan(list) == FAIRLOCK_OK && list->session.server.service != NULL)
      (void)nodes_of_master(&list->replicas, &list->query);
    query_close(&list->query);
  }
  forget_page(list);
  free(list->page);
}

/* Output */

/* Prints a name and a zero byte, for --null. A name that has a zero byte itself is left out. */
static void print_bytes(const struct entry *entry)
{
  if (memchr(entry->name, 0, entry->size) == NULL) {
    fwrite(entry->name, 1, entry->size, stdout);
    putchar(0);
    return;
  }
  char *shown = printable(entry->name, entry->size);
  complain("%s has a zero byte in its name, and is left out", shown);
  free(shown);
}

static bool is_empty(const struct times *times)
{
  return times_count(times, WAIT_TIMES) + times_count(times, HOLD_TIMES) == 0;
}

/* Sorts the histograms by name, each once, and leaves out those that are empty. */
static void sort_recorded(struct list *list)
{
  struct recorded *all = list->recorded;
  size_t kept = 0;
  if (list->recorded_count > 0) qsort(all, list->recorded_count, sizeof *all, compare_recorded);
  for (size_t i = 0; i < list->recorded_count; i++) {
    bool twice = kept > 0 && compare_recorded(&all[kept - 1], &all[i]) == 0;
    if (twice || is_empty(&all[i].times)) free(all[i].name);
    else all[kept++] = all[i];
  }
  list->recorded_count = kept;
}

static void put_metrics(struct list *list, int64_t took_ms)
{
  const char *wanted = list->pattern;
  sort_recorded(list);
  char *url = session_url(&list->session);
  char *pattern = wanted != NULL ? printable(wanted, strlen(wanted)) : NULL;
  const struct list_metrics metrics = {.labels = {.url = url, .pattern = pattern},
                                       .entries = list->entries,
                                       .recorded = list->recorded,
                                       .count = list->entry_count,
                                       .recorded_count = list->recorded_count,
                                       .most = list->metrics_locks,
                                       .read = list->read,
                                       .whole = list->status == EXIT_DONE,
                                       .took_ms = took_ms};
  if (list->metrics_file != NULL) {
    const char *why = exposition_replace(list->metrics_file, list_metrics_write, &metrics);
    if (why != NULL) {
      complain("cannot write metrics to %s: %s", list->metrics_file, why);
      list->status = EXIT_SYSTEM;
    }
  } else {
    list_metrics_write(stdout, &metrics);
  }
  for (size_t i = 0; i < list->recorded_count; i++)
    free(list->recorded[i].name);
  free(list->recorded);
  free(pattern);
  free(url);
}

static int list_locks(struct list *list)
{
  uint32_t began = port_clock_ms();
  list->status = session_connect(&list->session);
  if (list->status == EXIT_DONE) {
    read_servers(list);
    fairlock_client_deinit(&list->session.client);
  }
  sort_entries(list);
  if (list->form == METRICS) put_metrics(list, port_clock_ms() - began);
  for (size_t i = 0; i < list->entry_count; i++) {
    if (list->form == NAMES) print_bytes(&list->entries[i]);
    else if (list->form != METRICS) print_entry(list, &list->entries[i]);
    forget(&list->entries[i]);
  }
  free(list->entries);
  list->status = end_output(list->status);
  if (list->form != NAMES) check_replicas(list);
  return list->status;
}

/* The command line */

/* With such a name `fairlock run` writes JSON, and the metrics of a server have no form in JSON. */
static bool good_metrics_file(const struct command_line *line, const char *path)
{
  if (path == NULL) return true;
  if (*path == 0) misused(line, "--metrics-file needs the name of a file");
  else if (exposition_is_json(path))
    misused(line,
            "--metrics-file writes Prometheus's format, not JSON as the name %s promises: "
            "see --json",
            path);
  else return true;
  return false;
}

static int settle(struct list *list, const struct command_line *line)
{
  bool metrics = list->metrics || list->metrics_file != NULL || list->metrics_locks != NOT_GIVEN;
  if (!good_metrics_file(line, list->metrics_file)) return EXIT_USAGE;
  if (list->json + list->null + metrics > 1)
    return misused(line, "give one of --json, --null and --metrics");
  list->form = list->json ? JSON : list->null ? NAMES : metrics ? METRICS : TEXT;
  if (list->metrics_locks == NOT_GIVEN) list->metrics_locks = METRICS_LOCKS;
  if (line->count > 1)
    return misused(line, "one PATTERN at a time: '%s' is one too many (quote it)",
                   line->arguments[1]);
  list->pattern = line->arguments[0];
  return EXIT_DONE;
}

int list_command(int argc, char **argv)
{
  static struct list list = {.metrics_locks = NOT_GIVEN};
  struct command_line line = usage;
  int status = parse_options(&line, &list, argc, argv);
  if (status == EXIT_DONE) status = settle(&list, &line);
  if (status == EXIT_DONE) status = session_prepare(&list.session, &line);
  if (status == EXIT_DONE) status = session_second(&list.second, &list.session, &line);
  if (status == EXIT_DONE) status = list_locks(&list);
  free(line.url);
  return status;
}
