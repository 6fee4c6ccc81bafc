/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The transport over a modem: through a simulated one, on a terminal, against a real server, with
 * each thing that such a modem, its line or a reset of the device does wrong.
 */
#include "harness.h"
#include "rig.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#ifndef FAIRLOCK
#define FAIRLOCK "build/fairlock" /* the makefile says where it really is */
#endif

/* The transport, as the client uses it */

static int try_connect(uint32_t timeout_ms)
{
  return modem.transport.connect(modem.transport.context, timeout_ms);
}

static int try_send(const void *data, size_t size)
{
  return modem.transport.send(modem.transport.context, data, size);
}

static int try_recv(void *data, size_t size, uint32_t timeout_ms)
{
  return modem.transport.recv(modem.transport.context, data, size, timeout_ms);
}

static void hang_up(void)
{
  modem.transport.close(modem.transport.context);
}

/* Connects within that time, without a failure. */
static bool connects(int within_ms)
{
  int64_t until = now_ms() + within_ms;
  int status = PORT_WOULD_BLOCK;
  while ((status == PORT_WOULD_BLOCK || status == PORT_NEEDS_INPUT) && now_ms() < until)
    status = try_connect(100);
  return status == PORT_OK;
}

/* Sends all, and receives nothing meanwhile. */
static bool send_all(const char *data, size_t size)
{
  int64_t until = now_ms() + SOON;
  while (size > 0 && now_ms() < until) {
    int sent = try_send(data, size);
    if (sent == PORT_CLOSED) return false;
    if (sent < 0) {
      sleep_ms(1);
      continue;
    }
    data += sent;
    size -= (size_t)sent;
  }
  return size == 0;
}

/* Receives up to size bytes, and less only at the end. *status: what recv() said last. */
static size_t receive(char *data, size_t size, int *status)
{
  size_t got = 0;
  int64_t until = now_ms() + SOON;
  *status = PORT_WOULD_BLOCK;
  while (got < size && now_ms() < until) {
    *status = try_recv(data + got, size - got, 100);
    if (*status > 0) got += (size_t)*status;
    else if (*status != PORT_WOULD_BLOCK) break;
  }
  return got;
}

/* The server gives back text, in a frame. */
static bool echoes_text(const char *text, size_t size)
{
  static char request[6000], reply[6000];
  int status;
  int head = snprintf(request, sizeof request, "*2\r\n$4\r\nECHO\r\n$%zu\r\n", size);
  memcpy(request + head, text, size);
  request[(size_t)head + size] = '\r';
  request[(size_t)head + size + 1] = '\n';
  if (!send_all(request, (size_t)head + size + 2)) return false;
  const char *payload = strchr(request + 14, '$');
  size_t expected = size + 2 + (size_t)(request + head - payload);
  return receive(reply, expected, &status) == expected && memcmp(reply, payload, expected) == 0;
}

static bool echoes(void)
{
  return echoes_text("hello", 5);
}

/* Each byte there is, and what modems say, comes as it was sent, in many pieces. */
static bool echoes_all(void)
{
  static const char words[] =
      "\r\nOK\r\n+QIRD: 5\r\n\r\nERROR\r\n+QIURC: \"closed\",0\r\n+IPCLOSE: 0,1\r\nRDY\r\n> ";
  static char text[1200];
  for (size_t i = 0; i < sizeof text; i++)
    text[i] = i % 400 < sizeof words ? words[i % 400] : (char)i;
  return echoes_text(text, sizeof text);
}

static void begin_connected(void)
{
  begin();
  modem_start(server.port);
  CHECK(connects(SOON));
  CHECK(echoes());
}

/* The clients of the server but the one that looks at it. */
static int64_t connections(void)
{
  const char *list = raw_text(&redis, "CLIENT LIST");
  int64_t count = -1;
  for (; (list = strchr(list, '\n')) != NULL; list++)
    count++;
  return count;
}

/* So many: the server may notice the end of one a moment later. */
static bool has_connections(int64_t count)
{
  AWAIT(connections() == count, sleep_ms(5));
  return connections() == count;
}

/* Each family, and each way to open, send, receive and close */

static void test_bytes(void)
{
  for (modem_family_number = 0; modem_family_number < 2; modem_family_number++) {
    begin_connected();
    CHECK(echoes_all());
    hang_up();
    CHECK(connects(SOON));
    CHECK(echoes_all());
    CHECK(has_connections(1));
  }
  modem_family_number = 0;
}

/* What connect() says at last. */
static int connect_ends(void)
{
  int status = PORT_WOULD_BLOCK;
  AWAIT(status != PORT_WOULD_BLOCK && status != PORT_NEEDS_INPUT, status = try_connect(100));
  return status;
}

static void open_redis_again(void)
{
  raw_close(&redis);
  CHECK(raw_open(&redis, server.port));
}

/* The connection ends within SOON, after these bytes and no others. */
static void ends_after(const char *expected)
{
  char data[64];
  int status;
  size_t got = receive(data, sizeof data, &status);
  CHECK_BYTES(data, got, expected, strlen(expected));
  CHECK_EQUAL(status, PORT_CLOSED);
}

/* What the device has connected after this is new, and works. */
static void starts_anew(void)
{
  CHECK(connects(SOON));
  CHECK(echoes());
  CHECK(has_connections(1));
}

static void test_refused(void)
{
  begin_connected();
  server_kill(&server);
  ends_after("");
  hang_up();
  CHECK_EQUAL(connect_ends(), PORT_UNREACHABLE);
  hang_up();
  CHECK_EQUAL(connect_ends(), PORT_UNREACHABLE);
  server_restart(&server);
  open_redis_again();
  starts_anew();
}

static void test_configuration(void)
{
  static const char *const hosts[] = {"", "a b", "a\"b", "a\rb", "a\177", "\303\244"};
  static char long_host[MODEM_COMMAND_SIZE + 1];
  static const char *const long_setup[] = {"AT", long_host, NULL};
  struct modem_config config = modem_config;
  config.family = &modem_quectel;
  CHECK(modem_init(&modem, &config));
  for (size_t i = 1; i < sizeof hosts / sizeof *hosts; i++) {
    config.host = hosts[i];
    CHECK(!modem_init(&modem, &config));
  }
  memset(long_host, 'a', sizeof long_host - 1);
  config.host = long_host;
  CHECK(!modem_init(&modem, &config));
  config.host = "a";
  config.setup = long_setup;
  CHECK(!modem_init(&modem, &config));
  config.setup = NULL;
  CHECK(modem_init(&modem, &config));
}

/* Resets of the device */

/* The modem is still connected, and has bytes of that connection: the next one has none of them. */
static void test_still_connected(void)
{
  static const char confirmed[] = "*3\r\n$9\r\nsubscribe\r\n$4\r\nnews\r\n:1\r\n";
  char reply[sizeof confirmed - 1];
  int status;
  begin_connected();
  CHECK(send_all("SUBSCRIBE news\r\n", 16));
  CHECK_EQUAL(receive(reply, sizeof reply, &status), sizeof reply);
  CHECK_EQUAL(raw_number(&redis, "PUBLISH news flash"), 1);
  sleep_ms(200); /* for the modem to have it */
  modem_reset_device();
  CHECK(strcmp(modem_told("state"), "open") == 0);
  starts_anew();
}

/* The same between two lines of an answer, whose rest still comes, and while one is being read. */
static void test_reset_amid_answer(void)
{
  char byte;
  begin_connected();
  for (int i = 0; i < 3; i++) {
    CHECK(send_all("PING\r\n", 6));
    if (i > 0) (void)try_recv(&byte, 1, i == 1 ? 0 : 50);
    modem_reset_device();
    starts_anew();
  }
}

/*
 * The modem is inside a send: it waits for data, and takes commands for that. How much it waits for
 * is more or less than the commands, and than what fills it out.
 */
static void test_reset_inside_send(void)
{
  static const size_t missing[] = {1, 2, 4, 5, 6, 7, 200, MODEM_SEND_SIZE, 1460};
  static char text[64];
  modem_line.restart = NULL; /* which would end that, too */
  for (size_t i = 0; i < sizeof missing / sizeof *missing; i++) {
    begin_connected();
    int size = snprintf(text, sizeof text, "AT+QISEND=0,%zu\r", missing[i]);
    modem_write(text, (size_t)size);
    (void)snprintf(text, sizeof text, "inside %zu", missing[i]);
    AWAIT(strcmp(modem_told("state"), text) == 0, sleep_ms(5));
    modem_reset_device();
    starts_anew();
  }
  modem_line.restart = modem_restart;
}

/* A transport that keeps a copy of what is sent. */
static struct {
  struct port_transport transport;
  size_t size;
  char data[4096];
} tap;

static int tap_send(void *context, const void *data, size_t size)
{
  int sent = try_send(data, size);
  (void)context;
  if (sent > 0 && tap.size + (size_t)sent <= sizeof tap.data) {
    memcpy(tap.data + tap.size, data, (size_t)sent);
    tap.size += (size_t)sent;
  }
  return sent;
}

/* A device over the modem, as boards/common/link_modem.c makes it. */
static struct {
  struct fairlock_client client;
  struct fairlock_config config;
  int losses;
  uint8_t receive[512], send[256];
} device;
static struct fairlock door;

static void note_loss(struct fairlock *handle, const struct fairlock_loss *loss, void *context)
{
  (void)loss;
  (void)handle;
  (void)context;
  device.losses++;
}

static void start_client(void)
{
  memset(&device, 0, sizeof device);
  device.config = (struct fairlock_config){
      .receive_buffer = device.receive,
      .receive_size = sizeof device.receive,
      .send_buffer = device.send,
      .send_size = sizeof device.send,
      .lease_ms = 60000,
      .waiter_ms = 15000,
      .response_ms = 10000,
      .connect_ms = SOON,
      .offline_ms = FAIRLOCK_FOREVER,
      .lost = note_loss,
  };
  tap.size = 0;
  tap.transport = modem.transport;
  tap.transport.send = tap_send;
  CHECK_EQUAL(fairlock_client_init(&device.client, &device.config, &tap.transport), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_init(&door, &device.client, "door:7"), FAIRLOCK_OK);
}

static int result(int64_t within_ms)
{
  int64_t until = now_ms() + within_ms;
  while (fairlock_result(&door) == FAIRLOCK_PENDING && now_ms() < until)
    (void)fairlock_poll(&device.client, 20);
  return fairlock_result(&door);
}

/* Ends client and connection, as a program does before it switches the modem off. */
static void end_client(void)
{
  fairlock_client_deinit(&device.client);
  AWAIT(!modem_closing(&modem), sleep_ms(1));
  CHECK(has_connections(0));
}

/*
 * The device is reset in the middle of sending a request for the lock: what fills that out makes
 * nobody hold the lock or wait for it. If no more than the end of its last line is missing, the
 * request is whole, as it would be a moment later; which also shows that it is one.
 */
static void test_reset_inside_request(void)
{
  begin();
  modem_start(server.port);
  start_client();
  CHECK_EQUAL(fairlock_start_acquire(&door, FAIRLOCK_FOREVER, 60000), FAIRLOCK_PENDING);
  CHECK_EQUAL(result(SOON), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_start_release(&door), FAIRLOCK_PENDING);
  CHECK_EQUAL(result(SOON), FAIRLOCK_OK);
  tap.size = 0;
  CHECK_EQUAL(fairlock_start_acquire(&door, FAIRLOCK_FOREVER, 60000), FAIRLOCK_PENDING);
  CHECK_EQUAL(result(SOON), FAIRLOCK_OK);
  end_client();
  CHECK(tap.size > 100 && tap.size < sizeof tap.data);
  for (size_t missing = 0; missing < tap.size; missing += missing < 16 ? 1 : 37) {
    char text[64];
    CHECK(raw_run(&redis, "DEL door:7"));
    modem_reset_device();
    CHECK(connects(SOON));
    int size = snprintf(text, sizeof text, "AT+QISEND=0,%zu\r", tap.size);
    modem_write(text, (size_t)size);
    modem_write(tap.data, tap.size - missing);
    sleep_ms(20);
    modem_reset_device();
    CHECK(connects(SOON));
    CHECK(echoes());
    CHECK_EQUAL(raw_number(&redis, "EXISTS door:7"), missing <= 2);
    CHECK_EQUAL(queue_length(&redis, "door:7"), 0);
  }
}

/* A modem that hangs */

/* It goes wrong in the next send; the connection after that is a new one. */
static void check_hang(const char *how)
{
  begin_connected();
  CHECK(strcmp(modem_told(how), "done") == 0);
  CHECK(send_all("PING\r\n", 6));
  ends_after("");
  hang_up();
  starts_anew();
}

static void test_no_prompt(void)
{
  check_hang("no-prompt");
}

static void test_no_confirmation(void)
{
  check_hang("no-confirm");
}

/* It says nothing at all any more, until its reset pin is pulled. */
static void test_deaf(void)
{
  check_hang("deaf");
}

/* An answer that comes when it is not waited for any more is not taken for that to the next command. */
static void test_late_answer(void)
{
  begin();
  modem_start(server.port);
  CHECK(strcmp(modem_told("late"), "done") == 0);
  starts_anew();
}

/* It has been without power: it says so, or says nothing, and echoes. */
static void test_modem_restarts(void)
{
  begin_connected();
  CHECK(strcmp(modem_told("restart"), "done") == 0);
  ends_after("");
  hang_up();
  starts_anew();
  CHECK(strcmp(modem_told("echo"), "done") == 0);
  CHECK(echoes_all());
}

/* A line that loses or adds a byte: what arrives is right, or the connection ends. */

static const char reply_frame[] = "$35\r\n0123456789\r\n:1\r\n$5\r\n+OK\r\n0123456789\r\n";

/* The reply has lines that might be taken for the modem's. */
static void check_damage(const char *what, int place)
{
  static const char request[] = "*2\r\n$3\r\nGET\r\n$1\r\nk\r\n";
  char text[32], reply[sizeof reply_frame - 1];
  int status;
  begin_connected();
  CHECK(raw_run(&redis, "SET k %b", reply_frame + 5, (size_t)35));
  (void)snprintf(text, sizeof text, "%s %d", what, place);
  CHECK(strcmp(modem_told(text), "done") == 0);
  CHECK(send_all(request, sizeof request - 1));
  size_t got = receive(reply, sizeof reply, &status);
  CHECK_BYTES(reply, got, reply_frame, got);
  CHECK(got == sizeof reply || status == PORT_CLOSED);
  CHECK(strcmp(modem_told("well"), "done") == 0);
  hang_up();
  starts_anew();
}

/* Places in the modem's "+QIRD: 47", the data behind it, and the "OK" behind that. */
static void test_lost_bytes(void)
{
  for (int place = 36; place < 102; place += place < 50 ? 2 : 9)
    check_damage("lose", place);
}

static void test_added_bytes(void)
{
  for (int place = 38; place < 102; place += place < 50 ? 3 : 9)
    check_damage("add", place);
}

/* In commands, and in the data that follows. */
static void test_bytes_lost_to_modem(void)
{
  static const int places[] = {0, 13, 14, 20};
  for (size_t i = 0; i < sizeof places / sizeof *places; i++)
    check_damage("lose-in", places[i]);
}

/* What a modem says unasked */

static void test_unasked(void)
{
  for (modem_family_number = 0; modem_family_number < 2; modem_family_number++) {
    begin_connected();
    CHECK(strcmp(modem_told("unasked"), "done") == 0);
    CHECK(echoes_all());
    CHECK(strcmp(modem_told("echo"), "done") == 0);
    CHECK(echoes_all());
    hang_up();
    starts_anew();
  }
  modem_family_number = 0;
}

/* The line has lost that bytes have arrived: they are asked for all the same. */
static void test_quiet(void)
{
  begin_connected();
  CHECK(strcmp(modem_told("quiet"), "done") == 0);
  CHECK(echoes_all());
}

/* The server says why it closes, and more than fits in a piece. */
static void check_last_words(const char *how)
{
  static char text[300], reply[400];
  int status;
  begin_connected();
  if (*how != 0) CHECK(strcmp(modem_told(how), "done") == 0);
  memset(text, 'x', sizeof text);
  CHECK(send_all("ECHO ", 5));
  CHECK(send_all(text, sizeof text));
  CHECK(send_all("\r\nQUIT\r\n", 8));
  size_t got = receive(reply, sizeof reply, &status);
  CHECK_EQUAL(got, 6 + 302 + 5);
  if (got == 6 + 302 + 5) CHECK_BYTES(reply + 6 + 300, 7, "\r\n+OK\r\n", 7);
  CHECK_EQUAL(status, PORT_CLOSED);
  CHECK_EQUAL(try_recv(reply, sizeof reply, 0), PORT_CLOSED);
  CHECK(try_send("x", 1) < 0);
  hang_up();
  starts_anew();
}

static void test_last_words(void)
{
  for (modem_family_number = 0; modem_family_number < 2; modem_family_number++)
    check_last_words("");
  modem_family_number = 0;
  check_last_words("quiet");
}

/* The modem refuses to send, and has received bytes. */
static void check_refused_send(const char *how)
{
  char reply[16];
  int status;
  begin_connected();
  CHECK(send_all("PING\r\n", 6));
  CHECK_EQUAL(receive(reply, 1, &status), 1);
  CHECK(strcmp(modem_told(how), "done") == 0);
  CHECK(send_all("PING\r\n", 6));
  ends_after("PONG\r\n");
  hang_up();
  starts_anew();
}

static void test_refused_send(void)
{
  check_refused_send("refuse-send");
}

/* It has no room for a piece, and has taken nothing of it. */
static void test_full(void)
{
  for (modem_family_number = 0; modem_family_number < 2; modem_family_number++) {
    begin_connected();
    CHECK(strcmp(modem_told("full"), "done") == 0);
    CHECK(echoes_all());
  }
  modem_family_number = 0;
}

/* close() */

/* While the modem opens a connection, which takes long: the next one need not wait for that. */
static void test_close_while_opening(void)
{
  begin();
  modem_start(server.port);
  CHECK(strcmp(modem_told("slow-open"), "done") == 0);
  CHECK(!connects(1500));
  int64_t began = now_ms();
  hang_up();
  CHECK(now_ms() - began < 1000);
  starts_anew();
}

/* At each moment of a send and of receiving; the peer learns of it without a further connection. */
static void test_close_at_each_moment(void)
{
  char data[64];
  begin();
  modem_start(server.port);
  for (int turns = 0; turns < 14; turns++) {
    CHECK(connects(SOON));
    CHECK(send_all("PING\r\nPING\r\n", 12));
    for (int i = 0; i < turns; i++) {
      (void)try_recv(data, 1, 0);
      sleep_ms(2);
    }
    hang_up();
    hang_up();
    AWAIT(!modem_closing(&modem), sleep_ms(1));
    CHECK(has_connections(0));
  }
  starts_anew();
}

/* Locks */

static pid_t hold_on_host(const char *seconds)
{
  char url[40];
  (void)snprintf(url, sizeof url, "redis://127.0.0.1:%d", server.port);
  const char *const words[] = {FAIRLOCK, "--url", url,     "run", "door:7",
                               "--",     "sleep", seconds, NULL};
  return spawn_program(words, NULL, NULL);
}

/* The device waits behind the host, and takes over; the host waits behind the device. */
static void check_turns(int rounds)
{
  begin();
  modem_start(server.port);
  start_client();
  for (int i = 0; i < rounds; i++) {
    pid_t host = hold_on_host("1");
    AWAIT(raw_number(&redis, "EXISTS door:7") == 1, sleep_ms(10));
    CHECK_EQUAL(fairlock_start_acquire(&door, FAIRLOCK_FOREVER, FAIRLOCK_RENEW), FAIRLOCK_PENDING);
    AWAIT(queue_length(&redis, "door:7") == 1, (void)fairlock_poll(&device.client, 20));
    CHECK_EQUAL(fairlock_result(&door), FAIRLOCK_PENDING);
    CHECK_EQUAL(result(SOON), FAIRLOCK_OK);
    CHECK_EQUAL(reap(host), 0);
    host = hold_on_host("0");
    AWAIT(queue_length(&redis, "door:7") == 1, (void)fairlock_poll(&device.client, 20));
    CHECK(fairlock_remaining_ms(&door) > 0);
    CHECK_EQUAL(fairlock_start_release(&door), FAIRLOCK_PENDING);
    CHECK_EQUAL(result(SOON), FAIRLOCK_OK);
    CHECK_EQUAL(reap(host), 0);
  }
  CHECK_EQUAL(device.losses, 0);
  end_client();
  CHECK(nothing_left(&redis, "door:7"));
}

static void test_turns(void)
{
  check_turns(3);
  modem_family_number = 1;
  check_turns(1);
  modem_family_number = 0;
}

/*
 * At 9600 baud, the script included, which takes 5 s and more: the device waits behind the host, and
 * its hold is renewed for longer than its lease.
 */
static void test_slow_line(void)
{
  modem_baud = 9600;
  begin();
  modem_start(server.port);
  start_client();
  device.config.lease_ms = 15000;
  pid_t host = hold_on_host("8");
  AWAIT(raw_number(&redis, "EXISTS door:7") == 1, sleep_ms(10));
  CHECK_EQUAL(fairlock_start_acquire(&door, FAIRLOCK_FOREVER, FAIRLOCK_RENEW), FAIRLOCK_PENDING);
  AWAIT(queue_length(&redis, "door:7") == 1, (void)fairlock_poll(&device.client, 20));
  CHECK_EQUAL(result(2 * SOON), FAIRLOCK_OK);
  CHECK_EQUAL(reap(host), 0);
  int64_t renewed = scripts_run(&redis) + 3;
  AWAIT(scripts_run(&redis) >= renewed, (void)fairlock_poll(&device.client, 100));
  CHECK(fairlock_remaining_ms(&door) > 0);
  CHECK_EQUAL(device.losses, 0);
  CHECK_EQUAL(fairlock_start_release(&door), FAIRLOCK_PENDING);
  CHECK_EQUAL(result(SOON), FAIRLOCK_OK);
  end_client();
  modem_baud = 0;
}

/* The server goes away while the device waits, and comes back. */
static void test_server_restarts(void)
{
  begin();
  modem_start(server.port);
  start_client();
  CHECK_EQUAL(fairlock_start_acquire(&door, FAIRLOCK_FOREVER, FAIRLOCK_RENEW), FAIRLOCK_PENDING);
  CHECK_EQUAL(result(SOON), FAIRLOCK_OK);
  server_restart(&server);
  open_redis_again();
  CHECK_EQUAL(fairlock_start_release(&door), FAIRLOCK_PENDING);
  (void)result(SOON);
  CHECK_EQUAL(fairlock_start_acquire(&door, FAIRLOCK_FOREVER, FAIRLOCK_RENEW), FAIRLOCK_PENDING);
  CHECK_EQUAL(result(SOON), FAIRLOCK_OK);
  end_client();
}

const struct check_test check_tests[] = {
    {"modem: all bytes", test_bytes},
    {"modem: a server that is not there", test_refused},
    {"modem: its configuration", test_configuration},
    {"modem: still connected after a reset", test_still_connected},
    {"modem: a reset amid an answer", test_reset_amid_answer},
    {"modem: a reset inside a send", test_reset_inside_send},
    {"modem: a reset inside a request", test_reset_inside_request},
    {"modem: no prompt", test_no_prompt},
    {"modem: no confirmation", test_no_confirmation},
    {"modem: it is deaf", test_deaf},
    {"modem: a late answer", test_late_answer},
    {"modem: it restarts", test_modem_restarts},
    {"modem: bytes lost", test_lost_bytes},
    {"modem: bytes added", test_added_bytes},
    {"modem: bytes lost on the way to it", test_bytes_lost_to_modem},
    {"modem: what it says unasked", test_unasked},
    {"modem: bytes that it does not report", test_quiet},
    {"modem: the last words of a connection", test_last_words},
    {"modem: it refuses to send", test_refused_send},
    {"modem: it is full", test_full},
    {"modem: closed while it opens", test_close_while_opening},
    {"modem: closed at each moment", test_close_at_each_moment},
    {"modem: turns with a host", test_turns},
    {"modem: a slow line", test_slow_line},
    {"modem: a server that restarts", test_server_restarts},
    {0},
};
