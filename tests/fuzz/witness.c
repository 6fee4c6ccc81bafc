/* SPDX-License-Identifier: Apache-2.0 */
/* Reads both directions of a connection and judges them; see witness.h. */
#include "witness.h"

#include <string.h>

#include "texts.h"

/* Nothing that is compared is longer: a clock may be 1 % fast or slow. */
#define DRIFT(interval) ((interval) / 100)

#define CHANNEL(braced) "redisson_lock__channel:" braced ":"
#define LOCK(name, braced)                                                                         \
  {                                                                                                \
    name, sizeof name - 1, CHANNEL(braced), sizeof CHANNEL(braced) - 1                             \
  }

const struct witness_lock witness_locks[WITNESS_LOCKS] = {LOCK("n", "{n}"), LOCK("a{b", "a{b"),
                                                          LOCK("\0\r\n", "{\0\r\n}")};

static uint64_t bit(uint32_t number)
{
  return (uint64_t)1 << number % 64;
}

static bool is(const struct witness_element *element, const char *text)
{
  return element->size == strlen(text) && element->size <= sizeof element->text &&
         memcmp(element->text, text, element->size) == 0;
}

static void note_element(struct witness_stream *stream, const struct resp_event *event)
{
  if (stream->count++ >= WITNESS_ELEMENTS) return;
  struct witness_element *element = &stream->elements[stream->count - 1];
  size_t kept = event->size < sizeof element->text ? event->size : sizeof element->text;
  if (kept > 0) memcpy(element->text, event->data, kept);
  element->size = event->size;
  element->number = event->integer;
  element->is_number = event->type == RESP_INTEGER;
  if (event->type == RESP_BULK_STRING && !event->cut) {
    element->is_number = resp_parse_number(event->data, event->size, &element->number);
  }
}

/* Calls take for each event of the bytes. False when take said so, or when they are no RESP. */
static bool read_stream(struct witness *witness, struct witness_stream *stream, const uint8_t *data,
                        size_t size, bool (*take)(struct witness *, const struct resp_event *))
{
  if (stream->used == 0 && !stream->open) stream->begun_at = witness->now;
  while (size > 0) {
    size_t room = sizeof stream->buffer - stream->used;
    size_t step = size < room ? size : room;
    memcpy(stream->buffer + stream->used, data, step);
    stream->used += step;
    data += step;
    size -= step;
    size_t start = 0;
    size_t used;
    struct resp_event event;
    int status;
    while ((status = resp_decode(&stream->decoder, stream->buffer + start, stream->used - start,
                                 &used, &event)) == RESP_EVENT) {
      start += used;
      stream->open = !event.last;
      if (event.depth == 0) {
        stream->type = event.type;
        stream->integer = event.integer;
        stream->count = 0;
      } else if (event.depth == 1) {
        note_element(stream, &event);
      }
      if (!take(witness, &event)) return false;
      if (event.last) stream->begun_at = witness->now;
    }
    if (status < 0) return false;
    start += used;
    memmove(stream->buffer, stream->buffer + start, stream->used - start);
    stream->used -= start;
  }
  return true;
}

static void open_stream(struct witness_stream *stream)
{
  resp_decoder_init(&stream->decoder, WITNESS_TEXT);
  stream->used = 0;
  stream->open = false;
}

void witness_init(struct witness *witness, uint32_t now)
{
  witness->start = now;
  witness->now = now;
  witness->scripts = 0;
  memset(witness->numbers, 0, sizeof witness->numbers);
  memset(witness->heirs, 0, sizeof witness->heirs);
  for (unsigned i = 0; i < WITNESS_LOCKS; i++) {
    witness->names[i] = i;
    witness->limits[i] = -1;
  }
  witness->id_size = 0;
  witness->offset = INT64_MIN;
  witness->replicas = 0;
  witness->sharded = false;
  witness->sentinel = false;
  witness->credentials = false;
  witness->late = false;
  witness->keeps = false;
  witness_connected(witness, 0);
  witness_step(witness);
}

void witness_connected(struct witness *witness, unsigned greetings)
{
  open_stream(&witness->sent);
  open_stream(&witness->received);
  witness->first = 0;
  witness->last = 0;
  witness->subscribing = false;
  witness->early = 0;
  witness->greetings = greetings;
  witness->greeted = 0;
  witness->greeting = false;
  witness->wait_due = false;
  witness->waits = false;
  witness->tracks = true;
  witness->arming = 0;
  memset(witness->armed, 0, sizeof witness->armed);
}

void witness_step(struct witness *witness)
{
  witness->allowed = 0;
  witness->answered = 0;
  witness->messages = 0;
  witness->repeats = 0;
  witness->refused = 0;
}

/* What the engine says */

void witness_knows(struct witness *witness, const char *id, size_t size)
{
  if (size == 0 || witness->id_size > 0 || size > sizeof witness->id) return;
  memcpy(witness->id, id, size);
  witness->id_size = size;
}

void witness_inherits(struct witness *witness, unsigned which, uint32_t from, uint64_t token,
                      uint64_t last)
{
  const struct witness_stream *sent = &witness->sent;
  struct witness_heir *heir = &witness->heirs[which];
  /* a request that is half written belongs to what the handle did before */
  bool under_way = sent->open || sent->used > 0 || witness->subscribing || witness->arming > 0;
  memset(heir, 0, sizeof *heir);
  heir->from = from;
  heir->token = token;
  /* from one of 2^53 or more nobody counts on */
  if (last > token && last < (uint64_t)1 << 53) heir->newer = last;
  heir->sent_before = witness->scripts + under_way;
}

size_t witness_channel(const struct witness *witness, unsigned lock, uint32_t number, char *channel)
{
  const struct witness_lock *name = &witness_locks[witness->names[lock]];
  size_t size = name->channel_size;
  memcpy(channel, name->channel, size);
  memcpy(channel + size, witness->id, witness->id_size);
  size += witness->id_size;
  channel[size++] = ':';
  return size + resp_format_number(channel + size, number);
}

/* The client's id and ":7" is 7. */
static bool take_id(const struct witness *witness, const uint8_t *text, size_t size,
                    uint32_t *number)
{
  int64_t value;
  size_t head = witness->id_size + 1;
  if (witness->id_size == 0 || size <= head || memcmp(text, witness->id, head - 1) != 0 ||
      text[head - 1] != ':')
    return false;
  if (!resp_parse_number(text + head, size - head, &value)) return false;
  *number = (uint32_t)value;
  return value > 0 && value <= UINT32_MAX;
}

/* Either the script's hash, or a text that is as long as the script. */
static char script_named(const struct witness_element *element)
{
  const struct fairlock_script *scripts[] = {&fairlock_lock_script, &fairlock_break_script,
                                             &fairlock_inspect_script, &fairlock_shared_script,
                                             &fairlock_downgrade_script};
  for (int i = 0; i < 5; i++) {
    if (is(element, scripts[i]->sha1)) return "abiSD"[i];
    if (element->size == scripts[i]->size) return "abiSD"[i];
  }
  return 0;
}

static bool good_acquire(const struct witness_request *request)
{
  return request->lease >= FAIRLOCK_LEASE_MIN_MS && request->lease <= FAIRLOCK_DURATION_MAX_MS &&
         request->mode >= -UINT16_MAX &&
         (request->mode <= 0 || request->mode >= FAIRLOCK_WAITER_MIN_MS) &&
         request->mode <= 3 * 60000 + 600000 && (request->mode >= 0 || request->token > 0);
}

/* A number as Redis takes it, too: without leading zeros, which the scripts do not look for. */
static bool take_number(const uint8_t *text, size_t size, int64_t *number)
{
  char again[RESP_NUMBER_SIZE];
  return resp_parse_number(text, size, number) && resp_format_number(again, *number) == size &&
         memcmp(text, again, size) == 0;
}

/* The numbers of the argument, behind the id: see common.lua. */
static bool take_numbers(const struct witness_element *argument, struct witness_request *request)
{
  int64_t *const numbers[] = {&request->expires, &request->mode, &request->lease, &request->token};
  const uint8_t *text = argument->text;
  size_t size = argument->size;
  int count = 0;
  for (size_t at = 0; at < size; at++) {
    if (text[at] != ' ') continue;
    const uint8_t *number = text + at + 1;
    const uint8_t *end = memchr(number, ' ', size - at - 1);
    size_t length = end != NULL ? (size_t)(end - number) : size - at - 1;
    if (count == 2 && length > 0 && number[length - 1] == '+') length--; /* of the lease */
    if (count == 4 || !take_number(number, length, numbers[count++])) return false;
  }
  return count >= 3 && request->token >= 0;
}

/* "*", and no handle's number. */
static bool take_anyone(const uint8_t *text, size_t size)
{
  return size == 1 && *text == '*';
}

/* A release has no lease; one of somebody else's hold has a mode, too. */
static bool good_request(const struct witness_request *request)
{
  if (request->script == 'a') return good_acquire(request);
  bool breaks = request->script == 'b';
  return request->lease == 0 && request->mode <= -breaks && request->mode >= -2 * breaks;
}

/* It may begin or prolong a hold, which replicas have to acknowledge. */
static bool needs_wait(const struct witness *witness, const struct witness_request *request)
{
  return witness->replicas > 0 && request->script == 'a';
}

/* The handle with this number; WITNESS_LOCKS: it is gone by now. */
static unsigned handle_of(const struct witness *witness, uint32_t number)
{
  unsigned i = 0;
  while (i < WITNESS_LOCKS && witness->numbers[i] != number)
    i++;
  return i;
}

/* One that shares says its limit with each request, and the others none. */
static bool good_limit(const struct witness *witness, uint32_t number, bool shared)
{
  const struct witness_element *limit = &witness->sent.elements[8];
  unsigned which = handle_of(witness, number);
  if (which == WITNESS_LOCKS) return true;
  int own = witness->limits[which];
  return shared ? limit->is_number && limit->number == own : own < 0;
}

/* The request belongs to what the heir does now. */
static bool is_current(const struct witness_heir *heir, const struct witness_request *request)
{
  return request->order > heir->sent_before;
}

/* A downgrade names the hold that its handle is to get, and the handle's own last token if that is newer. */
static bool names_hold(const struct witness_heir *heir, const struct witness_request *request)
{
  if (heir->from == 0 || request->from != heir->from) return false;
  return (uint64_t)request->token == heir->token && request->newer == heir->newer;
}

/* To get the hold of another handle, one sends downgrades, and else none. */
static bool good_heir(struct witness *witness, const struct witness_request *request)
{
  unsigned which = handle_of(witness, request->number);
  if (which == WITNESS_LOCKS) return true;
  struct witness_heir *heir = &witness->heirs[which];
  if (!is_current(heir, request)) return true;
  if (request->from == 0) return heir->from == 0 || request->mode < 0;
  heir->doubted = true;
  return names_hold(heir, request);
}

/* Another handle waits for the hold that this request releases. */
static bool has_heir(const struct witness *witness, const struct witness_request *request)
{
  for (unsigned i = 0; i < WITNESS_LOCKS; i++) {
    const struct witness_heir *heir = &witness->heirs[i];
    bool its = heir->from != 0 && heir->from == request->number;
    if (its && heir->waits && heir->token == (uint64_t)request->token) return true;
  }
  return false;
}

/* An acquire, but for the handle's number in its mode, and a token, or 0, behind the limit. */
static bool take_downgrade(const struct witness *witness, struct witness_request *request)
{
  const struct witness_element *newer = &witness->sent.elements[9];
  if (request->mode >= 0 || request->lease == 0) return false;
  if (!newer->is_number || newer->number < 0) return false;
  request->script = 'a';
  request->from = (uint32_t)-request->mode;
  request->mode = 0;
  request->newer = (uint64_t)newer->number;
  return true;
}

static bool take_argument(const struct witness *witness, struct witness_request *request)
{
  const struct witness_element *argument = &witness->sent.elements[7];
  if (argument->size > sizeof argument->text) return false;
  const uint8_t *space = memchr(argument->text, ' ', argument->size);
  if (space == NULL) return false;
  size_t size = (size_t)(space - argument->text);
  bool good_id = request->script == 'b' ? take_anyone(argument->text, size)
                                        : take_id(witness, argument->text, size, &request->number);
  return good_id && take_numbers(argument, request);
}

/* The handles of the lock that the script is for. */
static uint64_t handles_of(const struct witness *witness, const struct witness_element *key)
{
  uint64_t handles = 0;
  for (unsigned i = 0; i < WITNESS_LOCKS; i++) {
    const struct witness_lock *lock = &witness_locks[witness->names[i]];
    bool its = key->size == lock->size && memcmp(key->text, lock->name, lock->size) == 0;
    if (its && witness->numbers[i] != 0) handles |= bit(witness->numbers[i]);
  }
  return handles;
}

/*
 * EVALSHA script 4 lock queue timeout ours [argument [limit [newer token or 0]]]. A break has an argument, and
 * one of no bytes.
 */
static bool take_script(struct witness *witness)
{
  const struct witness_element *elements = witness->sent.elements;
  struct witness_request *request = &witness->requests[witness->last];
  memset(request, 0, sizeof *request);
  request->script = script_named(&elements[1]);
  request->seen_at = witness->subscribing ? witness->subscribed_at : witness->sent.begun_at;
  witness->subscribing = false;
  request->order = ++witness->scripts;
  if (witness->last + 1 < WITNESS_REQUESTS) witness->last++;
  if (request->script == 0 || !is(&elements[2], "4") || witness->greeted < witness->greetings)
    return false;
  request->senders = handles_of(witness, &elements[3]);
  if (request->script == 'i') return witness->sent.count == 7;
  bool downgrades = request->script == 'D';
  bool shared = request->script == 'S' || downgrades;
  bool breaks = request->script == 'b';
  if (witness->sent.count != 8U + shared + downgrades + breaks) return false;
  if (breaks && elements[8].size != 0) return false; /* nobody says who breaks */
  if (!take_argument(witness, request)) return false;
  if (request->number != 0) request->senders = bit(request->number);
  if (downgrades && !take_downgrade(witness, request)) return false;
  if (shared) request->script = 'a'; /* it is what that is */
  if (request->script == 'a' && !good_limit(witness, request->number, shared)) return false;
  if (request->script == 'a' && request->lease == 0) request->script = 'r'; /* the same script */
  if (!good_request(request)) return false;
  if (request->script == 'a' ? !good_heir(witness, request) : has_heir(witness, request))
    return false;
  witness->wait_due = needs_wait(witness, request);
  return true;
}

/* The lock whose queue this key is: 1 to WITNESS_LOCKS. */
static bool take_queue(const struct witness_element *key, uint32_t *which)
{
  static const char channel[] = "redisson_lock__channel:";
  static const char queue[] = "redisson_lock_queue:";
  for (uint32_t i = 0; i < WITNESS_LOCKS; i++) {
    const struct witness_lock *lock = &witness_locks[i];
    const char *name = lock->channel + sizeof channel - 1;
    size_t size = lock->channel_size - sizeof channel; /* less the colon behind it */
    if (key->size != sizeof queue - 1 + size || memcmp(key->text, queue, sizeof queue - 1) != 0)
      continue;
    if (memcmp(key->text + sizeof queue - 1, name, size) != 0) continue;
    *which = i + 1;
    return true;
  }
  return false;
}

/* WAIT replicas milliseconds, behind each script that needs one and nowhere else. */
static bool take_wait(struct witness *witness)
{
  const struct witness_element *elements = witness->sent.elements;
  struct witness_request *request = &witness->requests[witness->last];
  memset(request, 0, sizeof *request);
  request->script = 'w';
  if (witness->last + 1 < WITNESS_REQUESTS) witness->last++;
  if (!witness->wait_due || witness->sent.count != 3) return false;
  witness->wait_due = false;
  return elements[1].is_number && elements[1].number == witness->replicas &&
         elements[2].is_number && elements[2].number > 0;
}

/*
 * In front of a request: perhaps CLIENT TRACKING ON OPTIN, once on a connection, then CLIENT CACHING
 * YES and EXISTS with the queue of a lock.
 */
static bool take_arming(struct witness *witness)
{
  const struct witness_element *elements = witness->sent.elements;
  struct witness_request *request = &witness->requests[witness->last];
  bool asks = is(&elements[1], "TRACKING");
  memset(request, 0, sizeof *request);
  request->script = is(&elements[0], "EXISTS") ? 'e' : 'c';
  if (witness->last + 1 < WITNESS_REQUESTS) witness->last++;
  if (!witness->keeps || witness->subscribing || witness->greeted < witness->greetings)
    return false;
  if (request->script == 'c') {
    bool good =
        asks ? witness->sent.count == 4 && is(&elements[2], "ON") && is(&elements[3], "OPTIN")
             : witness->sent.count == 3 && is(&elements[1], "CACHING") && is(&elements[2], "YES");
    if (witness->arming != 0) return false;
    witness->arming = !asks;
    return good;
  }
  if (witness->arming != 1 || witness->sent.count != 2) return false;
  witness->arming = 2;
  return take_queue(&elements[1], &request->number);
}

/* AUTH user password, between requests. */
static bool take_auth(struct witness *witness)
{
  struct witness_request *request = &witness->requests[witness->last];
  memset(request, 0, sizeof *request);
  request->script = 'A';
  if (witness->last + 1 < WITNESS_REQUESTS) witness->last++;
  return witness->credentials && !witness->subscribing && witness->sent.count == 3 &&
         witness->greeted == witness->greetings;
}

/*
 * The handle whose channel this is; 0: none of ours. Names of one size are not told apart: none was
 * asked for.
 */
static uint32_t number_of(const struct witness *witness, const struct witness_element *channel)
{
  char own[256];
  for (unsigned i = 0; i < WITNESS_LOCKS; i++) {
    if (witness->numbers[i] == 0) continue;
    size_t size = witness_channel(witness, i, witness->numbers[i], own);
    size_t tail = size;
    while (own[tail - 1] != ':')
      tail--;
    if (channel->size == size &&
        memcmp(channel->text + tail - 1, own + tail - 1, size - tail + 1) == 0)
      return witness->numbers[i];
  }
  return 0;
}

static bool take_subscription(struct witness *witness, bool on)
{
  struct witness_request *request = &witness->requests[witness->last];
  bool alone = !witness->subscribing;
  memset(request, 0, sizeof *request);
  request->script = on ? 's' : 'u';
  request->number = number_of(witness, &witness->sent.elements[1]);
  request->seen_at = witness->sent.begun_at;
  witness->subscribing = true;
  witness->subscribed_at = witness->sent.begun_at;
  /* is answered */
  if (request->number != 0 && witness->early == request->number) witness->early = 0;
  else if (witness->last + 1 < WITNESS_REQUESTS) witness->last++;
  return alone && witness->sent.count == 2 && request->number != 0;
}

static bool take_command(struct witness *witness)
{
  const struct witness_element *name = &witness->sent.elements[0];
  if (is(name, "HELLO") || is(name, "ROLE") || is(name, "SELECT") || is(name, "TIME")) {
    witness->greeting = true;
    return witness->last == 0;
  }
  if (is(name, "SENTINEL")) return witness->sentinel && witness->last == 0;
  if (is(name, "WAIT")) return take_wait(witness);
  if (witness->wait_due) return false;
  if (is(name, "CLIENT") || is(name, "EXISTS")) return take_arming(witness);
  if (witness->arming == 1) return false;
  if (is(name, "AUTH")) return witness->arming == 0 && take_auth(witness);
  witness->arming = 0;
  const char *on = witness->sharded ? "SSUBSCRIBE" : "SUBSCRIBE";
  if (is(name, on) || is(name, witness->sharded ? "SUNSUBSCRIBE" : "UNSUBSCRIBE"))
    return take_subscription(witness, is(name, on));
  witness->early = 0;
  return (is(name, "EVAL") || is(name, "EVALSHA")) && witness->sent.count >= 7 &&
         take_script(witness);
}

static bool take_sent(struct witness *witness, const struct resp_event *event)
{
  if (event->depth == 0)
    return event->type == RESP_ARRAY && event->integer > 0 && event->integer <= WITNESS_ELEMENTS;
  if (event->depth > 1 || event->type != RESP_BULK_STRING || event->cut) return false;
  return !event->last || take_command(witness);
}

bool witness_sent(struct witness *witness, const uint8_t *data, size_t size, uint32_t now)
{
  witness->now = now;
  if (witness->greeted < witness->greetings) witness->greeting_at = now;
  return read_stream(witness, &witness->sent, data, size, take_sent);
}

/* What the server says */

static void allow(struct witness *witness, uint32_t number, int64_t token, uint32_t until)
{
  if (token < 0 || witness->allowed == WITNESS_HOLDS) return;
  witness->holds[witness->allowed++] = (struct witness_hold){number, (uint64_t)token, until};
}

/* The server's time was server_now when, or after, it was asked. */
static void take_time(struct witness *witness, int64_t server_now, uint32_t asked_at)
{
  if (server_now < -2 || server_now > (int64_t)1 << 53) return;
  int64_t offset = (int64_t)(asked_at - witness->start) - server_now;
  if (offset > witness->offset) witness->offset = offset;
}

/* What answers a greeting that was not sent tells no time; then a grant is as new as it says. */
static void take_greeting(struct witness *witness)
{
  const struct witness_element *elements = witness->received.elements;
  witness->greeted++;
  if (witness->greeted < witness->greetings || witness->received.count < 2) return;
  if (witness->greeting)
    take_time(witness, elements[0].number * 1000 + elements[1].number / 1000, witness->greeting_at);
  else witness->offset = INT64_MIN;
}

static bool asks_the_same(const struct witness_request *a, const struct witness_request *b)
{
  bool same_mode = a->mode == b->mode || (a->mode > 0 && b->mode > 0);
  return a->script == b->script && a->from == b->from && same_mode;
}

/*
 * Whether a newer request of the same handle waits for an answer, too, and is not a repetition of
 * this one.
 */
static bool superseded(const struct witness *witness, const struct witness_request *request)
{
  for (size_t i = witness->first; i < witness->last; i++) {
    const struct witness_request *newer = &witness->requests[i];
    bool script = newer->script == 'a' || newer->script == 'r';
    if (script && newer->number == request->number && !asks_the_same(newer, request)) return true;
  }
  return false;
}

/* Who waits for this lock, the server does not say any more. which: 0 for all. */
static void disarm(struct witness *witness, uint32_t which)
{
  for (uint32_t i = 0; i < WITNESS_LOCKS; i++)
    if (which == 0 || which == i + 1) witness->armed[i] = false;
}

/* The next answer is to a SUBSCRIBE or an UNSUBSCRIBE. */
static bool subscription_next(const struct witness *witness)
{
  if (witness->first == witness->last) return false;
  char script = witness->requests[witness->first].script;
  return script == 's' || script == 'u';
}

/* What the answer to the request allows: a hold with the token, or, with -1, to go on with one. */
static void believe(struct witness *witness, const struct witness_request *request, int64_t token)
{
  uint32_t until = request->seen_at + (uint32_t)request->lease - DRIFT((uint32_t)request->lease);
  witness->answered |= bit(request->number);
  allow(witness, request->number, 0, until);
  allow(witness, request->number, token, until);
}

/* Enough replicas have acknowledged what the script before it did, or not. */
static void take_waited(struct witness *witness)
{
  bool enough = witness->received.type == RESP_INTEGER &&
                witness->received.integer >= (int64_t)witness->replicas;
  if (witness->waits && enough && !superseded(witness, &witness->waiter))
    believe(witness, &witness->waiter, witness->granted);
  witness->waits = false;
}

/* The answer to a downgrade: while the heir waits, it leaves no doubt. gone: so is the hold. */
static void take_downgraded(struct witness *witness, const struct witness_request *request,
                            bool gone)
{
  unsigned which = handle_of(witness, request->number);
  if (request->from == 0 || which == WITNESS_LOCKS) return;
  struct witness_heir *heir = &witness->heirs[which];
  if (!heir->waits || !is_current(heir, request)) return;
  heir->doubted = false;
  if (gone) witness->refused |= bit(request->number);
}

/* The request was answered, but perhaps not carried out, and then has to be sent again. */
static void take_repeat(struct witness *witness, const struct witness_request *request)
{
  if (request->script == 'w' && witness->waits) request = &witness->waiter;
  if (witness->late && !superseded(witness, request)) witness->repeats |= request->senders;
}

static void take_answer(struct witness *witness)
{
  const struct witness_element *elements = witness->received.elements;
  if (witness->first == witness->last || subscription_next(witness)) return;
  const struct witness_request *request = &witness->requests[witness->first++];
  if (request->script == 'w') {
    take_waited(witness);
    return;
  }
  if (request->script == 'e')
    witness->armed[request->number - 1] =
        witness->tracks && witness->received.type == RESP_INTEGER && witness->received.integer == 0;
  if (strchr("iAce", request->script) != NULL || superseded(witness, request)) return;
  if (witness->received.type != RESP_ARRAY || witness->received.count != 3) return;
  take_time(witness, elements[2].number, request->seen_at);
  if (elements[0].number == -2) take_repeat(witness, request);
  if (request->script == 'b') return;
  take_downgraded(witness, request, elements[0].number == -1);
  bool holds = elements[0].number == 1 && request->lease > 0;
  bool waits = holds && needs_wait(witness, request);
  if (elements[0].number != -2 && !waits) witness->answered |= bit(request->number);
  if (!holds) return;
  bool begins = request->mode >= 0;
  witness->waits = waits;
  witness->waiter = *request;
  witness->granted = begins ? elements[1].number : -1;
  if (!waits) believe(witness, request, witness->granted);
}

/* An error takes the place of an answer, also of one to a SUBSCRIBE. */
static void take_error(struct witness *witness)
{
  if (witness->first == witness->last) return;
  const struct witness_request *request = &witness->requests[witness->first++];
  char script = request->script;
  take_repeat(witness, request);
  take_downgraded(witness, request, false);
  if (script == 'w') witness->waits = false;
  if (script == 'c') witness->tracks = false;
}

/*
 * A grant may be believed in for the time that it states, from when the server gave it, and for no
 * longer than that from now.
 */
static void take_grant(struct witness *witness, uint32_t number, const struct witness_element *text)
{
  const int64_t elapsed = witness->now - witness->start;
  /* token, time, claim: a message without a time counts as one from long ago */
  int64_t numbers[3] = {0, 0, 0};
  size_t start = 0;
  if (text->size > sizeof text->text) return;
  for (int i = 0; i < 3 && start <= text->size; i++) {
    const uint8_t *blank = memchr(text->text + start, ' ', text->size - start);
    size_t end = blank != NULL ? (size_t)(blank - text->text) : text->size;
    if (!resp_parse_number(text->text + start, end - start, &numbers[i])) return;
    start = end + 1;
  }
  const int64_t token = numbers[0], at = numbers[1];
  const int64_t claim = numbers[2] < FAIRLOCK_WAITER_MAX_MS ? numbers[2] : FAIRLOCK_WAITER_MAX_MS;
  if (at < 0 || at > (int64_t)1 << 53 || claim < 0) return;
  const int64_t window = claim - DRIFT(claim);
  int64_t given = witness->offset == INT64_MIN ? elapsed : at + witness->offset;
  if (given > elapsed) given = elapsed;
  if (token > 0 && given + window > 0)
    allow(witness, number, token, witness->start + (uint32_t)(given + window));
}

/* A subscription was confirmed; perhaps one that is still being written. */
static void settle(struct witness *witness, uint32_t number)
{
  bool writing = witness->sent.open || witness->sent.used > 0;
  if (subscription_next(witness) && witness->requests[witness->first].number == number)
    witness->first++;
  else if (witness->first == witness->last && writing && !witness->subscribing)
    witness->early = number;
}

static void take_push(struct witness *witness)
{
  const struct witness_element *elements = witness->received.elements;
  if (witness->received.count < 2) return;
  uint32_t number = number_of(witness, &elements[1]);
  if (number == 0) return;
  struct witness_element kind = elements[0];
  if (witness->sharded && kind.size > 0) {
    kind.size--;
    memmove(kind.text, kind.text + 1, sizeof kind.text - 1);
  }
  bool subscription = is(&kind, "subscribe") || is(&kind, "unsubscribe");
  if (subscription && witness->received.count == 2) settle(witness, number);
  bool message = is(&kind, "message") && witness->received.count >= 3;
  if (message) witness->messages |= bit(number);
  /* one that waits for replicas asks first */
  if (message && witness->replicas == 0) take_grant(witness, number, &elements[2]);
}

/* invalidate, and keys, or null; a key that is not known, or too long to be, may be any. */
static void take_invalidation(struct witness *witness, const struct resp_event *event)
{
  struct witness_element key;
  uint32_t which;
  if (event->depth == 1 && witness->received.count == 1)
    witness->invalidates = is(&witness->received.elements[0], "invalidate");
  if (event->depth == 0 || !witness->invalidates || witness->received.count < 2) return;
  if (event->type == RESP_NULL) disarm(witness, 0);
  if (event->depth == 1 || event->size > sizeof key.text) return;
  key.size = event->size;
  if (event->size > 0) memcpy(key.text, event->data, event->size);
  if (take_queue(&key, &which)) disarm(witness, which);
}

static bool take_received(struct witness *witness, const struct resp_event *event)
{
  bool error = event->type == RESP_SIMPLE_ERROR || event->type == RESP_BULK_ERROR;
  /*
   * The third element tells, whatever follows; and a subscription is settled as soon as it is
   * named.
   */
  if (witness->received.type == RESP_PUSH) {
    take_invalidation(witness, event);
    if (event->depth == 1 && (witness->received.count == 2 || witness->received.count == 3))
      take_push(witness);
    return true;
  }
  if (!event->last) return true;
  if (witness->greeted < witness->greetings) take_greeting(witness);
  else if (error && event->depth == 0) take_error(witness);
  else take_answer(witness);
  return true;
}

void witness_received(struct witness *witness, const uint8_t *data, size_t size, uint32_t now)
{
  witness->now = now;
  (void)read_stream(witness, &witness->received, data, size, take_received);
  /* an error that is longer than the engine's buffer counts for the engine before its end is here */
  bool more = witness->received.used > 0 && witness->first < witness->last;
  if (more) take_repeat(witness, &witness->requests[witness->first]);
}

bool witness_allows(const struct witness *witness, uint32_t number, uint64_t token, uint32_t *until)
{
  bool found = false;
  for (unsigned i = 0; i < witness->allowed; i++) {
    const struct witness_hold *hold = &witness->holds[i];
    if (hold->number != number || hold->token != token) continue;
    if (!found || (int32_t)(hold->until - *until) > 0) *until = hold->until;
    found = true;
  }
  return found;
}
