/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A modem as a transport; see modem.h. There are two states. `step` is what the modem is doing for
 * us, and only its answers, or their absence, move it on. `link` is what the client has, or wants.
 * After close() they disagree until the modem has been told.
 */
#include "modem.h"

#include <string.h>

#define ESC '\033'

enum link { DOWN, WANTED, UP, OVER };

/* Up to QUIET nothing is known of a connection in the modem but that ours, if any, is to be closed. */
enum step {
  LISTENING, /* until the line is quiet */
  CALLING,   /* ATE0 */
  FILLING,   /* a send that may be under way in the modem */
  PREPARING,
  CLEARING, /* closes what the modem may still have of before a reset */
  QUIET,    /* listens again, and then opens, once a connection is wanted */
  OPENING,
  RESTING,   /* the modem has a connection, and nothing to do */
  PROMPTED,  /* has been asked to send: it says '>' */
  SENDING,   /* when all is out, it is to say whether it has taken that */
  ASKING,    /* for received bytes: it says how many */
  RECEIVING, /* these */
  RECEIVED,  /* it is to say OK behind them */
  CLOSING
};

/* A full modem is offered the same again after this time, in ms. */
#define FULL_MS 100U

/* While the modem has something to do, the longest wait, in ms. */
#define TURN_MS 20U

/* No more bytes are read at a time, so that one call ends whatever the line does. */
#define MOST_READ 512U

static void go_to(struct modem *modem, enum step step)
{
  modem->step = (uint8_t)step;
  modem->since = port_clock_ms();
}

static bool is(const struct modem *modem, enum step step)
{
  return modem->step == step;
}

static bool passed(uint32_t since, uint32_t ms)
{
  return port_clock_ms() - since >= ms;
}

/* Texts */

static char *put_number(char *to, uint32_t number)
{
  char digits[10];
  size_t count = 0;
  do {
    digits[count++] = (char)('0' + number % 10);
    number /= 10;
  } while (number > 0);
  while (count > 0)
    *to++ = digits[--count];
  return to;
}

/* Writes text with what % stands for. Returns the size, or 0 if it does not fit. */
static size_t compose(const struct modem *modem, const char *text, char *to, size_t room)
{
  const struct modem_config *config = modem->config;
  char *at = to;
  for (; *text != 0; text++) {
    size_t needed = *text != '%' ? 1 : text[1] == 'h' ? strlen(config->host) : 10;
    if (needed > room - (size_t)(at - to)) return 0;
    if (*text != '%') {
      *at++ = *text;
    } else if (*++text == 'h') {
      memcpy(at, config->host, needed);
      at += needed;
    } else {
      at = put_number(at, *text == 'p' ? config->port : (uint32_t)modem->expected);
    }
  }
  return (size_t)(at - to);
}

/* The line that has come begins with this text. */
static bool says(const struct modem *modem, const char *text)
{
  char expected[MODEM_TEXT_SIZE + 16];
  size_t size = compose(modem, text, expected, sizeof expected);
  return size > 0 && size <= modem->text_size && memcmp(modem->text, expected, size) == 0;
}

static bool fails(const struct modem *modem)
{
  return says(modem, "ERROR") || says(modem, "+CME ERROR");
}

/* What goes out */

/* Writes what the line takes. True: all is out. */
static bool flush(struct modem *modem)
{
  const struct modem_line *line = modem->config->line;
  if (modem->left > 0) {
    size_t done = line->write(line->context, modem->out, modem->left);
    modem->out += done;
    modem->left -= done;
  }
  return modem->left == 0;
}

static void write_out(struct modem *modem, const char *data, size_t size, enum step step)
{
  modem->out = data;
  modem->left = size;
  go_to(modem, step);
  (void)flush(modem);
}

static void command(struct modem *modem, const char *text, enum step step)
{
  size_t size = compose(modem, text, modem->command, sizeof modem->command - 1);
  modem->command[size] = '\r';
  write_out(modem, modem->command, size + 1, step);
}

static bool sends(const struct modem *modem)
{
  return is(modem, PROMPTED) || is(modem, SENDING);
}

/* The end of a connection, or of an attempt at one. A command that is half out spoils the next. */
static void start_over(struct modem *modem)
{
  if (modem->link == UP) modem->link = OVER;
  modem->left = 0;
  modem->send_size = 0;
  go_to(modem, LISTENING);
}

/* The modem has closed, or had nothing to close. */
static void hear_closed(struct modem *modem)
{
  if (!says(modem, modem->config->family->closed) && !fails(modem)) return;
  modem->open = false;
  go_to(modem, is(modem, CLEARING) ? QUIET : LISTENING);
}

/* Tells the modem to close, and before that lets it finish what it is doing. */
static void close_when_possible(struct modem *modem)
{
  if (is(modem, RESTING) || (is(modem, OPENING) && modem->accepted))
    command(modem, modem->config->family->close, CLOSING);
}

static void rest(struct modem *modem)
{
  go_to(modem, RESTING);
  if (modem->link != UP) close_when_possible(modem);
}

/* What comes in */

static void prepare_next(struct modem *modem)
{
  const struct modem_config *config = modem->config;
  size_t number = modem->prepared++;
  const char *const *text = config->family->prepare;
  for (; number > 0 && *text != NULL; text++)
    number--;
  if (*text == NULL && config->setup != NULL) text = config->setup + number;
  if (*text == NULL) command(modem, config->family->close, CLEARING);
  else command(modem, *text, PREPARING);
}

static void hear_open(struct modem *modem)
{
  const struct modem_family *family = modem->config->family;
  if (says(modem, "OK")) {
    modem->accepted = true;
    if (modem->link != WANTED) close_when_possible(modem);
  } else if (says(modem, family->opened)) {
    modem->arrived = modem->ended = modem->full = modem->received = false;
    modem->send_size = modem->receive_size = modem->taken = 0;
    modem->asked = port_clock_ms();
    if (modem->link == WANTED) modem->link = UP;
    rest(modem);
  } else if (fails(modem) || says(modem, family->refused)) {
    if (modem->link == WANTED) modem->link = OVER;
    go_to(modem, LISTENING);
  }
}

/* The modem refuses to send: there is no connection any more, but there may be bytes. */
static void lose_send(struct modem *modem)
{
  modem->send_size = 0;
  modem->ended = modem->arrived = true;
  rest(modem);
}

/* While not all is out, only a modem that takes no more says something: the rest would be commands. */
static void hear_sent(struct modem *modem)
{
  const struct modem_family *family = modem->config->family;
  if (modem->left > 0) {
    if (fails(modem)) start_over(modem);
  } else if (says(modem, family->sent)) {
    modem->send_size = 0;
    rest(modem);
  } else if (says(modem, family->full)) {
    modem->full = true;
    modem->refused = port_clock_ms();
    rest(modem);
  } else if (fails(modem)) {
    lose_send(modem);
  }
}

/* How many bytes follow. */
static void hear_count(struct modem *modem)
{
  size_t size = strlen(modem->config->family->received);
  size_t count = 0;
  bool good = false;
  for (; size < modem->text_size && modem->text[size] >= '0' && modem->text[size] <= '9'; size++) {
    count = count * 10 + (size_t)(modem->text[size] - '0');
    good = count <= sizeof modem->receive;
    if (!good) break;
  }
  good = good && (size == modem->text_size || modem->text[size] == ',');
  modem->expected = count;
  modem->come = 0;
  if (good) go_to(modem, count > 0 ? RECEIVING : RECEIVED);
  else start_over(modem);
}

/*
 * OK has come behind the bytes. If there were as many as asked for, there may be more; and after the
 * end, until there are none.
 */
static void keep_received(struct modem *modem)
{
  size_t size = modem->expected;
  modem->taken = 0;
  modem->receive_size = size;
  if (size == sizeof modem->receive || (modem->ended && size > 0)) modem->arrived = true;
  if (modem->link == UP && modem->ended && !modem->arrived) modem->link = OVER;
  rest(modem);
}

/* The line may be one that is said unasked, of the network and the like, or an echo. */
static bool is_harmless(const struct modem *modem)
{
  return says(modem, "AT") || (says(modem, "+") && memchr(modem->text, ':', modem->text_size));
}

/*
 * Any other line is one of the data: the line has lost a part of the count, or what showed it. ERROR
 * is said when there is no connection any more.
 */
static void hear_received(struct modem *modem)
{
  if (is(modem, ASKING) && says(modem, modem->config->family->received)) hear_count(modem);
  else if (is(modem, RECEIVED) && says(modem, "OK")) keep_received(modem);
  else if (fails(modem) || !is_harmless(modem)) start_over(modem);
}

/* What the modem says unasked. It may come between any two lines. */
static bool hear_unasked(struct modem *modem)
{
  const struct modem_family *family = modem->config->family;
  bool ended = says(modem, family->ended);
  if (!ended && !says(modem, family->arrived)) return false;
  modem->arrived = true;
  modem->ended = modem->ended || ended;
  return true;
}

/* A line is complete, and is not empty. Those that nothing here waits for are passed over. */
static void hear(struct modem *modem)
{
  if (hear_unasked(modem)) return;
  switch (modem->step) {
  case CALLING:
    if (!says(modem, "OK")) break;
    modem->calls = modem->prepared = 0;
    prepare_next(modem);
    break;
  case PREPARING:
    if (says(modem, "OK") || fails(modem)) prepare_next(modem);
    break;
  case CLEARING:
  case CLOSING:
    hear_closed(modem);
    break;
  case OPENING:
    hear_open(modem);
    break;
  case PROMPTED:
    if (fails(modem)) lose_send(modem);
    break;
  case RESTING: /* it has taken for commands what was none: the line has lost a part of one */
    if (fails(modem)) start_over(modem);
    break;
  case SENDING:
    hear_sent(modem);
    break;
  case ASKING:
  case RECEIVED:
    hear_received(modem);
    break;
  default:
    break;
  }
}

/*
 * One of the bytes that follow the count, after the end of its line and before that of their own.
 * Another byte in the place of that shows that the line has lost or added some.
 */
static void take_received(struct modem *modem, char byte)
{
  size_t place = modem->come++;
  size_t size = modem->expected;
  if (place > size && byte != "\r\n"[place - size - 1]) start_over(modem);
  else if (place > size + 1) go_to(modem, RECEIVED);
  else if (place > 0 && place <= size) modem->receive[place - 1] = byte;
}

static void take(struct modem *modem, char byte)
{
  if (is(modem, LISTENING) || is(modem, QUIET)) {
    modem->since = port_clock_ms();
  } else if (is(modem, RECEIVING)) {
    take_received(modem, byte);
  } else if (byte == '>' && is(modem, PROMPTED) && modem->text_size == 0 && modem->left == 0) {
    write_out(modem, modem->send, modem->send_size, SENDING);
  } else if (byte == '\r' || byte == '\n') {
    if (modem->text_size > 0) hear(modem);
    modem->text_size = 0;
  } else if (modem->text_size < sizeof modem->text && (byte != ' ' || modem->text_size > 0)) {
    modem->text[modem->text_size++] = byte;
  }
}

static void read_line(struct modem *modem)
{
  const struct modem_line *line = modem->config->line;
  char bytes[32];
  size_t got;
  for (size_t total = 0; total < MOST_READ; total += got) {
    got = line->read(line->context, bytes, sizeof bytes);
    if (got == 0) return;
    for (size_t i = 0; i < got; i++)
      take(modem, bytes[i]);
  }
}

/* What is to be done next */

/* ATE0 was not answered. */
static void call_louder(struct modem *modem)
{
  const struct modem_line *line = modem->config->line;
  if (++modem->calls >= MODEM_CALLS && line->restart != NULL) {
    modem->calls = 0;
    line->restart(line->context);
  }
  memset(modem->send, ESC, sizeof modem->send - 1);
  modem->send[sizeof modem->send - 1] = '\r';
  write_out(modem, modem->send, sizeof modem->send, FILLING);
}

/* How long the modem may take; 0: as long as the client waits. */
static uint32_t limit(const struct modem *modem)
{
  switch (modem->step) {
  case LISTENING:
  case QUIET:
  case RESTING:
    return 0;
  case CALLING:
    return MODEM_CALL_MS;
  case PREPARING:
    return modem->config->family->prepare_ms;
  case CLEARING:
  case CLOSING:
    return modem->config->family->close_ms;
  case OPENING:
    return modem->link == WANTED ? 0 : MODEM_ANSWER_MS;
  default:
    return MODEM_ANSWER_MS;
  }
}

static void look_at_time(struct modem *modem)
{
  uint32_t ms = limit(modem);
  if (ms == 0 || !passed(modem->since, ms)) return;
  if (is(modem, CALLING)) call_louder(modem);
  else start_over(modem);
}

static bool has_received(const struct modem *modem)
{
  return modem->taken < modem->receive_size;
}

/* The modem rests: receives and sends in turns. */
static void serve(struct modem *modem)
{
  const struct modem_family *family = modem->config->family;
  bool offers =
      modem->send_size > 0 && !modem->ended && (!modem->full || passed(modem->refused, FULL_MS));
  bool asks = !has_received(modem) && (modem->arrived || passed(modem->asked, family->poll_ms));
  if (asks && !(offers && modem->received)) {
    modem->received = true;
    modem->arrived = false;
    modem->asked = port_clock_ms();
    modem->expected = sizeof modem->receive;
    command(modem, family->receive, ASKING);
  } else if (offers) {
    modem->received = modem->full = false;
    modem->expected = modem->send_size;
    command(modem, family->send, PROMPTED);
  }
}

static void go_on(struct modem *modem)
{
  switch (modem->step) {
  case LISTENING:
    modem->text_size = 0;
    if (passed(modem->since, MODEM_QUIET_MS)) command(modem, "ATE0", CALLING);
    break;
  case FILLING:
    go_to(modem, LISTENING);
    break;
  case QUIET:
    if (modem->link != WANTED || !passed(modem->since, MODEM_QUIET_MS)) break;
    modem->accepted = false;
    modem->open = true;
    command(modem, modem->config->family->open, OPENING);
    break;
  case RESTING:
    serve(modem);
    break;
  default:
    break;
  }
}

static void turn(struct modem *modem)
{
  (void)flush(modem);
  read_line(modem);
  look_at_time(modem);
  if (flush(modem)) go_on(modem);
}

/* The transport */

static bool sleeps(const struct modem *modem)
{
  return is(modem, RESTING) && !modem->arrived && modem->send_size == 0;
}

/* Waits, if there is time left. False: there is no time left. */
static bool wait(const struct modem *modem, uint32_t began, uint32_t timeout_ms)
{
  const struct modem_line *line = modem->config->line;
  uint32_t spent = port_clock_ms() - began;
  if (spent >= timeout_ms) return false;
  uint32_t ms = timeout_ms - spent;
  line->wait(line->context, ms > TURN_MS && !sleeps(modem) ? TURN_MS : ms);
  return true;
}

static int modem_connect(void *context, uint32_t timeout_ms)
{
  struct modem *modem = context;
  uint32_t began = port_clock_ms();
  if (modem->link == DOWN) modem->link = WANTED;
  do {
    turn(modem);
  } while (modem->link == WANTED && wait(modem, began, timeout_ms));
  if (modem->link == UP) return PORT_OK;
  if (modem->link == WANTED) return modem->left == 0 ? PORT_NEEDS_INPUT : PORT_WOULD_BLOCK;
  modem->link = DOWN;
  return PORT_UNREACHABLE;
}

static bool may_send(const struct modem *modem)
{
  return modem->link == UP && !modem->ended && modem->send_size < sizeof modem->send &&
         !sends(modem);
}

static int modem_send(void *context, const void *data, size_t size)
{
  struct modem *modem = context;
  if (modem->link == DOWN || modem->link == WANTED) return PORT_CLOSED;
  if (!may_send(modem)) turn(modem);
  modem->send_blocked = !may_send(modem);
  if (modem->send_blocked) return PORT_WOULD_BLOCK;
  size_t room = sizeof modem->send - modem->send_size;
  if (size > room) size = room;
  memcpy(modem->send + modem->send_size, data, size);
  modem->send_size += size;
  return (int)size;
}

static int hand_on(struct modem *modem, void *data, size_t size)
{
  size_t there = modem->receive_size - modem->taken;
  if (size > there) size = there;
  memcpy(data, modem->receive + modem->taken, size);
  modem->taken += size;
  return (int)size;
}

static int modem_recv(void *context, void *data, size_t size, uint32_t timeout_ms)
{
  struct modem *modem = context;
  uint32_t began = port_clock_ms();
  do {
    turn(modem);
    if (has_received(modem)) return hand_on(modem, data, size);
    if (modem->link != UP) return PORT_CLOSED;
  } while (!(modem->send_blocked && may_send(modem)) && wait(modem, began, timeout_ms));
  return PORT_WOULD_BLOCK;
}

static void modem_close(void *context)
{
  struct modem *modem = context;
  modem->link = DOWN;
  modem->send_blocked = false;
  if (!sends(modem)) modem->send_size = 0;
  close_when_possible(modem);
  turn(modem);
}

bool modem_closing(struct modem *modem)
{
  turn(modem);
  return modem->open;
}

static bool fits(struct modem *modem, const char *text)
{
  return compose(modem, text, modem->command, sizeof modem->command - 1) > 0;
}

static bool all_fit(struct modem *modem, const char *const *texts)
{
  while (texts != NULL && *texts != NULL) {
    if (!fits(modem, *texts++)) return false;
  }
  return true;
}

bool modem_init(struct modem *modem, const struct modem_config *config)
{
  *modem = (struct modem){
      .transport = {modem_connect, modem_send, modem_recv, modem_close, modem, NULL, NULL},
      .config = config,
      .step = LISTENING,
      .since = port_clock_ms(),
      .link = DOWN,
  };
  for (const char *at = config->host; *at != 0; at++) {
    if (*at <= ' ' || *at > '~' || *at == '"') return false;
  }
  return fits(modem, config->family->open) && all_fit(modem, config->family->prepare) &&
         all_fit(modem, config->setup);
}
