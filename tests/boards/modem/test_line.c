/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The transport over a modem on a line that says what the test wants, in virtual time: exchanges by
 * hand; one byte lost or added at each place of an answer; and any bytes, with which the transport stays within its
 * memory (the suite is built with sanitizers), does not read for ever, takes no longer than it was
 * asked, and returns nothing that port.h does not allow. Each such input is made from its number.
 */
#include "check.h"
#include "modem.h"

#include <stdio.h>
#include <string.h>

enum { INPUTS = 6000, CALLS = 80, MOST_READS_AT_ONCE = 600 };

static uint32_t now, random_state;
static unsigned reads, opened; /* in this call; in all inputs */
static struct modem modem;

/* What the line is about to say, and the last line that it was told. */
static const char *word = "";
static char told[64];
static size_t told_size;

uint32_t port_clock_ms(void)
{
  return now;
}

static uint32_t any(uint32_t below)
{
  random_state = random_state * 1664525U + 1013904223U;
  return (random_state >> 8) % (below > 0 ? below : 1);
}

/* What modems say, so that more than the first line of an exchange is reached. */
static const char *const words[] = {"\r\nOK\r\n",
                                    "\r\nERROR\r\n",
                                    "\r\n> ",
                                    "\r\nSEND OK\r\n",
                                    "\r\nSEND FAIL\r\n",
                                    "\r\n+QIOPEN: 0,0\r\n",
                                    "\r\n+QIOPEN: 0,566\r\n",
                                    "\r\n+QIURC: \"recv\",0\r\n",
                                    "\r\n+QIURC: \"closed\",0\r\n",
                                    "\r\n+QIRD: 5\r\nhello\r\n\r\nOK\r\n",
                                    "\r\n+QIRD: 128\r\n",
                                    "\r\n+QIRD: 129\r\n",
                                    "\r\n+QIRD: 99999999999999999999\r\n",
                                    "\r\n+QIRD: -1\r\n",
                                    "\r\n+QIRD: \r\n",
                                    "\r\n+QIRD: 0\r\n\r\nOK\r\n",
                                    "\r\n+CIPOPEN: 0,0\r\n",
                                    "\r\n+CIPSEND: 0,5,5\r\n",
                                    "\r\n+CIPRXGET: 2,0,5,0\r\nhello\r\nOK\r\n",
                                    "\r\n+CIPCLOSE: 0,0\r\n",
                                    "\r\nRDY\r\n",
                                    "AT+QIRD=0,128\r",
                                    "\r\n+CREG: 1\r\n"};

/* An answer that suits what the line was told last. */
static const char *answer(void)
{
  static const char *const pairs[][2] = {
      {"ATE0", "\r\nOK\r\n"},
      {"AT+QIOPEN", "\r\nOK\r\n\r\n+QIOPEN: 0,0\r\n"},
      {"AT+CIPOPEN", "\r\nOK\r\n\r\n+CIPOPEN: 0,0\r\n"},
      {"AT+QISEND", "\r\n> "},
      {"AT+CIPSEND", "\r\n> "},
      {"AT+QIRD", "\r\n+QIRD: 5\r\nhello\r\n\r\nOK\r\n"},
      {"AT+CIPRXGET=2", "\r\n+CIPRXGET: 2,0,5,0\r\nhello\r\nOK\r\n"},
      {"AT+CIPCLOSE", "\r\n+CIPCLOSE: 0,0\r\n"},
      {"AT", "\r\nOK\r\n"}};
  for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
    if (strncmp(told, pairs[i][0], strlen(pairs[i][0])) == 0) return pairs[i][1];
  }
  return any(2) == 0 ? "\r\nSEND OK\r\n" : "\r\n+CIPSEND: 0,5,5\r\n";
}

static size_t read_line(void *context, void *data, size_t size)
{
  static char noise[8];
  (void)context;
  reads++;
  if (*word == 0) {
    uint32_t choice = any(16);
    if (choice < 5) return 0;
    word = choice < 14 && told_size > 0 ? answer() : words[any(sizeof words / sizeof *words)];
    if (choice >= 14) told_size = 0;
    if (any(24) == 0) {
      for (size_t i = 0; i + 1 < sizeof noise; i++)
        noise[i] = (char)(1 + any(255));
      word = noise;
    }
  }
  size_t got = strlen(word);
  if (got > size) got = size;
  if (any(8) == 0) got = 1 + any((uint32_t)got);
  memcpy(data, word, got);
  word += got;
  if (*word == 0) told_size = 0;
  if (any(64) == 0) word += *word != 0; /* a byte is lost */
  return got;
}

static size_t write_line(void *context, const void *data, size_t size)
{
  (void)context;
  if (any(4) == 0) size = any((uint32_t)size + 1);
  const char *bytes = data;
  for (size_t i = 0; i < size; i++) {
    if (told_size == 0) memset(told, 0, sizeof told);
    if (told_size < sizeof told - 1) told[told_size++] = bytes[i];
  }
  return size;
}

static void wait_line(void *context, uint32_t timeout_ms)
{
  (void)context;
  CHECK(timeout_ms > 0);
  now += 1 + any(timeout_ms);
}

static void restart_modem(void *context)
{
  (void)context;
  word = "\r\nRDY\r\n";
}

static const struct modem_line line = {read_line, write_line, wait_line, restart_modem, NULL};

/* A line that says a word and nothing else, and takes all. */
static size_t read_word(void *context, void *data, size_t size)
{
  size_t got = strlen(word);
  (void)context;
  if (got > size) got = size;
  memcpy(data, word, got);
  word += got;
  return got;
}

static size_t write_all(void *context, const void *data, size_t size)
{
  (void)context;
  memcpy(told, data, size < sizeof told ? size : sizeof told);
  told_size = size;
  return size;
}

static const struct modem_line script = {read_word, write_all, wait_line, NULL, NULL};

/* A call that may wait for so long has ended, within its time. */
static void check_call(uint32_t began, uint32_t timeout_ms)
{
  CHECK(now - began <= timeout_ms);
  CHECK(reads <= (timeout_ms + 1) * MOST_READS_AT_ONCE);
  reads = 0;
}

static void call_connect(uint32_t timeout_ms)
{
  int status = modem.transport.connect(&modem, timeout_ms);
  CHECK(status == PORT_OK || status == PORT_WOULD_BLOCK || status == PORT_NEEDS_INPUT ||
        status == PORT_UNREACHABLE);
  opened += status == PORT_OK;
}

static void call_recv(uint32_t timeout_ms)
{
  char data[64];
  size_t size = 1 + any(sizeof data);
  int got = modem.transport.recv(&modem, data, size, timeout_ms);
  CHECK(got > 0 ? (size_t)got <= size : got == PORT_WOULD_BLOCK || got == PORT_CLOSED);
}

static void call_send(void)
{
  static const char data[400];
  size_t size = 1 + any(sizeof data - 1);
  int sent = modem.transport.send(&modem, data, size);
  CHECK(sent > 0 ? (size_t)sent <= size : sent == PORT_WOULD_BLOCK || sent == PORT_CLOSED);
}

static void call_one(void)
{
  uint32_t began = now;
  uint32_t timeout_ms = any(3) * any(300);
  uint32_t choice = any(20);
  if (modem.link < 2) call_connect(timeout_ms);
  else if (choice < 12) call_recv(timeout_ms);
  else if (choice < 19) call_send();
  else modem.transport.close(&modem);
  if (any(30) == 0) (void)modem_closing(&modem);
  check_call(began, timeout_ms);
  now += any(8) == 0 ? any(4000) : any(20);
}

static void test_any_bytes(void)
{
  static const struct modem_family *const families[] = {&modem_quectel, &modem_simcom};
  static const char *const setup[] = {"AT+QIACT=1", NULL};
  for (uint32_t input = 0; input < INPUTS; input++) {
    const struct modem_config config = {
        .family = families[input % 2], .line = &line, .setup = setup, .host = "h", .port = 1};
    random_state = input;
    now = any(UINT32_MAX);
    word = "";
    CHECK(modem_init(&modem, &config));
    for (int i = 0; i < CALLS; i++)
      call_one();
  }
  CHECK(opened > INPUTS / 2); /* it gets further than the first exchange */
}

/* What comes of before is not taken for answers: nothing is said before the line is quiet. */
static void test_listens_first(void)
{
  const struct modem_config config = {
      .family = &modem_quectel, .line = &script, .host = "h", .port = 1};
  told_size = 0;
  CHECK(modem_init(&modem, &config));
  for (int i = 0; i < 10; i++) {
    word = "\r\nOK\r\n";
    (void)modem.transport.connect(&modem, 0);
    CHECK_EQUAL(told_size, 0);
    now += MODEM_QUIET_MS - 1;
  }
  now += 1;
  (void)modem.transport.connect(&modem, 0);
  CHECK_BYTES(told, told_size, "ATE0\r", 5);
}

/* Answers until there is a connection. */
static void go_on_by_hand(void)
{
  int status = PORT_WOULD_BLOCK;
  for (int i = 0; i < 50 && status != PORT_OK; i++) {
    word = told_size > 0 ? answer() : "";
    told_size = 0;
    status = modem.transport.connect(&modem, 0);
    now += MODEM_QUIET_MS;
  }
  CHECK_EQUAL(status, PORT_OK);
}

static void connect_by_hand(void)
{
  static const struct modem_config config = {
      .family = &modem_quectel, .line = &script, .host = "h", .port = 1};
  CHECK(modem_init(&modem, &config));
  told_size = 0;
  go_on_by_hand();
}

/*
 * The modem has bytes, and its answer with them has one byte lost or twice at that place: they come
 * as they were, or the connection ends without them.
 */
static void check_damage(const char *payload, size_t place, bool twice)
{
  char stream[200], data[200];
  size_t size = strlen(payload);
  size_t got = 0;
  int status = PORT_WOULD_BLOCK;
  int length = snprintf(stream, sizeof stream, "\r\n+QIRD: %zu\r\n%s\r\n\r\nOK\r\n", size, payload);
  if (place >= (size_t)length) return;
  memmove(stream + place + twice, stream + place + !twice, (size_t)length - place);
  stream[length + (twice ? 1 : -1)] = 0;
  connect_by_hand();
  word = "\r\n+QIURC: \"recv\",0\r\n";
  CHECK_EQUAL(modem.transport.recv(&modem, data, sizeof data, 0), PORT_WOULD_BLOCK);
  CHECK_BYTES(told, 7, "AT+QIRD", 7);
  word = stream;
  for (int i = 0; i < 20 && status != PORT_CLOSED; i++) {
    status = modem.transport.recv(&modem, data + got, sizeof data - got, 0);
    if (status > 0) got += (size_t)status;
    now += 300;
  }
  if (got > 0) CHECK_BYTES(data, got, payload, size);
  if (got == 0) CHECK_EQUAL(status, PORT_CLOSED);
}

/* What is left of a count is one, too, and ends at the end of a line of the data. */
static void test_each_byte(void)
{
  static const char *const payloads[] = {":1\r\n:123\r\n$13\r\n\r\nERROR\r\nOK\r\n\r\n", "+OK\r\n",
                                         "$24\r\nwithout an end of a line:\r\n",
                                         "no end of a line at all 30 long", "1234567890"};
  for (size_t i = 0; i < sizeof payloads / sizeof *payloads; i++) {
    for (size_t place = 0; place < 200; place++) {
      check_damage(payloads[i], place, false);
      check_damage(payloads[i], place, true);
    }
  }
}

/* One exchange: the modem says that, and the device what is in `told` afterwards. Returns recv(). */
static int exchange(const char *says, char *data)
{
  word = says;
  told_size = 0;
  memset(told, 0, sizeof told);
  return modem.transport.recv(&modem, data, 200, 0);
}

static void heard(const char *text)
{
  CHECK_BYTES(told, told_size, text, strlen(text));
}

#define ASKS    "AT+QIRD=0,128\r"
#define ARRIVED "\r\n+QIURC: \"recv\",0\r\n"
#define ENDED   "\r\n+QIURC: \"closed\",0\r\n"
#define NOTHING "\r\n+QIRD: 0\r\n"
#define THREE   "\r\n+QIRD: 3\r\nabc\r\n"
#define FINE    "\r\nOK\r\n"
#define FULL_ONE                                                                                   \
  "\r\n+QIRD: 128\r\n" SIXTEEN SIXTEEN SIXTEEN SIXTEEN SIXTEEN SIXTEEN SIXTEEN SIXTEEN "\r\n"
#define SIXTEEN "0123456789abcdef"

/* What it says unasked in the middle of an answer counts. */
static void test_unasked_inside(void)
{
  char data[200];
  connect_by_hand();
  CHECK_EQUAL(exchange(ARRIVED, data), PORT_WOULD_BLOCK);
  heard(ASKS);
  CHECK_EQUAL(exchange(NOTHING ARRIVED FINE, data), PORT_WOULD_BLOCK);
  heard(ASKS);
  CHECK_EQUAL(exchange(NOTHING ENDED FINE, data), PORT_WOULD_BLOCK);
  heard(ASKS);
  CHECK_EQUAL(exchange(THREE FINE, data), 3);
  CHECK_EQUAL(exchange("", data), PORT_WOULD_BLOCK);
  heard(ASKS);
  CHECK_EQUAL(exchange(NOTHING FINE, data), PORT_CLOSED);
}

/* It refuses to send: what it has received comes before the end. */
static void test_refused_send(void)
{
  char data[200];
  connect_by_hand();
  CHECK_EQUAL(modem.transport.send(&modem, "x", 1), 1);
  CHECK_EQUAL(exchange("", data), PORT_WOULD_BLOCK);
  heard("AT+QISEND=0,1\r");
  CHECK_EQUAL(exchange("\r\n+CME ERROR: 565\r\n", data), PORT_WOULD_BLOCK);
  heard(ASKS);
  CHECK_EQUAL(exchange(THREE FINE, data), 3);
  CHECK_EQUAL(exchange("", data), PORT_WOULD_BLOCK);
  CHECK_EQUAL(exchange(NOTHING FINE, data), PORT_CLOSED);
}

/* A prompt stands at the beginning of a line. What is sent goes out behind it, also after close(). */
static void test_prompt(void)
{
  char data[200];
  connect_by_hand();
  CHECK_EQUAL(modem.transport.send(&modem, "data", 4), 4);
  CHECK_EQUAL(exchange("", data), PORT_WOULD_BLOCK);
  CHECK_EQUAL(exchange("\r\n+X: a > b\r\n", data), PORT_WOULD_BLOCK);
  heard("");
  modem.transport.close(&modem);
  word = "\r\n> ";
  CHECK(modem_closing(&modem));
  heard("data");
  word = "\r\nSEND OK\r\n";
  CHECK(modem_closing(&modem));
  heard("AT+QICLOSE=0\r");
  word = FINE;
  CHECK(!modem_closing(&modem));
}

/* A modem that is quicker than this end: its confirmation comes in the same moment as the prompt. */
static void test_quick_modem(void)
{
  char data[200];
  connect_by_hand();
  CHECK_EQUAL(modem.transport.send(&modem, "data", 4), 4);
  CHECK_EQUAL(exchange("", data), PORT_WOULD_BLOCK);
  CHECK_EQUAL(exchange("\r\n> \r\nSEND OK\r\n" ARRIVED, data), PORT_WOULD_BLOCK);
  heard(ASKS);
}

/* close() tells the modem at once; what was not taken of the old connection does not come later. */
static void test_close(void)
{
  char data[200];
  connect_by_hand();
  (void)exchange(ARRIVED, data);
  word = THREE FINE;
  CHECK_EQUAL(modem.transport.recv(&modem, data, 1, 0), 1);
  told_size = 0;
  modem.transport.close(&modem);
  heard("AT+QICLOSE=0\r");
  go_on_by_hand();
  CHECK_EQUAL(exchange("", data), PORT_WOULD_BLOCK);
}

/* It has no room: it is asked again after a while. While bytes keep coming, sending has its turn. */
static void test_turns(void)
{
  char data[200];
  connect_by_hand();
  CHECK_EQUAL(modem.transport.send(&modem, "x", 1), 1);
  (void)exchange("", data);
  (void)exchange("\r\n> ", data);
  (void)exchange("\r\nSEND FAIL\r\n", data);
  heard("");
  now += 99;
  (void)exchange("", data);
  heard("");
  now += 1;
  (void)exchange(ARRIVED, data);
  heard(ASKS);
  now += 100;
  CHECK_EQUAL(exchange(FULL_ONE FINE, data), 128);
  heard("AT+QISEND=0,1\r");
}

/* A line that never stops. */
static size_t read_noise(void *context, void *data, size_t size)
{
  (void)context;
  reads++;
  memset(data, 'x', size);
  return size;
}

static void test_noise(void)
{
  static const struct modem_line noisy = {read_noise, write_all, wait_line, NULL, NULL};
  const struct modem_config config = {
      .family = &modem_quectel, .line = &noisy, .host = "h", .port = 1};
  CHECK(modem_init(&modem, &config));
  reads = 0;
  CHECK_EQUAL(modem.transport.connect(&modem, 0), PORT_NEEDS_INPUT);
  modem.transport.close(&modem);
  check_call(now, 1);
}

const struct check_test check_tests[] = {
    {"modem: said unasked inside an answer", test_unasked_inside},
    {"modem: it refuses to send, and has bytes", test_refused_send},
    {"modem: prompts", test_prompt},
    {"modem: it is quick", test_quick_modem},
    {"modem: close", test_close},
    {"modem: turns, and no room", test_turns},
    {"modem: a line that never stops", test_noise},
    {"modem: each byte of an answer lost, or twice", test_each_byte},
    {"modem: listens before it speaks", test_listens_first},
    {"modem: any bytes from the line", test_any_bytes},
    {0},
};
