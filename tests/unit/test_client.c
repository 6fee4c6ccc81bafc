/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The blocking layer with a transport that plays a server: what the simulator, which drives the
 * engine, does not reach.
 *
 * The transport connects at once, hands over what the test has put into `says`, and keeps count of
 * what it was given.
 */
#include "check.h"
#include "engine.h"
#include "fairlock.h"
#include "fairlock_abandon.h"
#include "fairlock_credentials.h"
#include "fairlock_follow.h"
#include "fairlock_keep.h"
#include "fairlock_log.h"
#include "fairlock_operate.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>
#include "support/counters.h"

#define GREETING "%1\r\n$2\r\nid\r\n:10\r\n*2\r\n$1\r\n1\r\n$1\r\n0\r\n"

/* The server confirms that the handle listens, or that it does not any more. */
#define SUBSCRIBED(word)                                                                           \
  ">3\r\n+" word "\r\n$43\r\nredisson_lock__channel:{door}:id.a.100001:1\r\n:1\r\n"

/* The script's answers: with this token, without a hold any more, and in the queue. */
#define ANSWER(state, value) "*3\r\n:" state "\r\n:" value "\r\n:1000\r\n"
#define HELD(token)          ANSWER("1", token)
#define RELEASED             ANSWER("1", "0")
#define QUEUED_UP            ANSWER("0", "-1")
#define BUSY                 ANSWER("0", "500")

static uint8_t receive_buffer[256];
static uint8_t send_buffer[1024];
static const struct fairlock_config config = {.receive_buffer = receive_buffer,
                                              .receive_size = sizeof receive_buffer,
                                              .send_buffer = send_buffer,
                                              .send_size = sizeof send_buffer,
                                              .client_id = "id"};
static struct fairlock_client client;
static struct fairlock handle;
static struct fairlock_rest rest;
static struct fairlock_target anyone = {.token = FAIRLOCK_ANY_TOKEN};
static const char *hello = GREETING; /* what the server says first */
static const char *says;             /* NULL: the connection is closed */
static size_t sent;
static bool reachable;
static int unreachable = PORT_UNREACHABLE; /* what connecting comes to then */
static unsigned connects;
static bool failed; /* and was not closed since */

static int connect_now(void *context, uint32_t timeout_ms)
{
  (void)context;
  (void)timeout_ms;
  says = hello;
  connects++;
  CHECK(!failed);
  failed = !reachable;
  return reachable ? PORT_OK : unreachable;
}

/* What a test does first, whenever the transport sends or receives; NULL: nothing. */
static int (*before_send)(const char *data);
static int (*before_recv)(uint32_t timeout_ms);

static int take(void *context, const void *data, size_t size)
{
  (void)context;
  int status = before_send != NULL ? before_send(data) : PORT_OK;
  if (status != PORT_OK) return status;
  sent += size;
  return (int)size;
}

static int say(void *context, void *data, size_t size, uint32_t timeout_ms)
{
  (void)context;
  int status = before_recv != NULL ? before_recv(timeout_ms) : PORT_OK;
  if (status != PORT_OK) return status;
  if (says == NULL) return PORT_CLOSED;
  size_t length = strlen(says);
  if (length == 0) return PORT_WOULD_BLOCK;
  if (length > size) length = size;
  memcpy(data, says, length);
  says += length;
  return (int)length;
}

static void close_now(void *context)
{
  (void)context;
  failed = false;
}

static struct port_transport transport;

static bool report(const struct fairlock_report *part, void *context)
{
  (void)part;
  (void)context;
  return true;
}

/* A client with these options, in place of the last test's, whose objects have to be there still. */
static void set_up_as(const struct fairlock_config *options)
{
  static bool initialised;
  if (initialised) fairlock_client_deinit(&client);
  initialised = true;
  transport = (struct port_transport){connect_now, take, say, close_now, NULL, NULL, NULL};
  before_send = NULL;
  before_recv = NULL;
  reachable = true;
  unreachable = PORT_UNREACHABLE;
  hello = GREETING;
  says = "";
  sent = 0;
  connects = 0;
  CHECK_EQUAL(fairlock_client_init(&client, options, &transport), FAIRLOCK_OK);
}

static void set_up(void)
{
  set_up_as(&config);
}

static void set_up_handle(void)
{
  set_up();
  CHECK_EQUAL(fairlock_init(&handle, &client, "door"), FAIRLOCK_OK);
}

static void set_up_connected(void)
{
  set_up_handle();
  CHECK_EQUAL(fairlock_connect(&client), FAIRLOCK_OK);
}

/* The handle holds, with token 5. */
static void hold(uint32_t lease_ms)
{
  says = HELD("5");
  CHECK_EQUAL(fairlock_try_acquire(&handle, lease_ms), FAIRLOCK_OK);
}

/* The answer to what has been begun. */
static void hear(const char *answer)
{
  says = answer;
  fairlock_poll(&client, 0);
}

static void test_bad_names(void)
{
  set_up();
  CHECK_EQUAL(fairlock_init(&handle, &client, NULL), FAIRLOCK_INVALID);
  CHECK_EQUAL(fairlock_force_release(&client, "", 0, FAIRLOCK_ANY_TOKEN), FAIRLOCK_INVALID);
  CHECK_EQUAL(fairlock_inspect(&client, "", 0, report, NULL), FAIRLOCK_INVALID);
  CHECK_EQUAL(fairlock_inspect(&client, "door", 4, NULL, NULL), FAIRLOCK_INVALID);
  CHECK_EQUAL(sent, 0);
}

static void test_nobody_there(void)
{
  set_up();
  reachable = false;
  CHECK_EQUAL(fairlock_server_status(&client), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_connect(&client), FAIRLOCK_UNREACHABLE);
  CHECK_EQUAL(fairlock_server_status(&client), FAIRLOCK_UNREACHABLE);
  CHECK_EQUAL(fairlock_force_release(&client, "door", 4, FAIRLOCK_ANY_TOKEN), FAIRLOCK_UNREACHABLE);
  CHECK_EQUAL(fairlock_ask_release(&client, "door", 4, FAIRLOCK_ANY_TOKEN), FAIRLOCK_UNREACHABLE);
  CHECK_EQUAL(sent, 0);
}

/*
 * A transport around another one may hand on whatever that one's connect() said. Between two
 * attempts comes a close(): connect_now() looks.
 */
static void test_closed_while_connecting(void)
{
  set_up();
  reachable = false;
  unreachable = PORT_CLOSED;
  CHECK_EQUAL(fairlock_connect(&client), FAIRLOCK_UNREACHABLE);
  CHECK_EQUAL(fairlock_connect(&client), FAIRLOCK_UNREACHABLE);
  CHECK_EQUAL(connects, 2);
  CHECK(!failed);
  reachable = true;
  unreachable = PORT_UNREACHABLE;
  CHECK_EQUAL(fairlock_connect(&client), FAIRLOCK_OK);
}

/* Waiting does not help here: every operation ends, and nothing connects again for it. */
static void test_untrusted(void)
{
  set_up();
  reachable = false;
  unreachable = PORT_UNTRUSTED;
  CHECK_EQUAL(fairlock_connect(&client), FAIRLOCK_UNTRUSTED);
  CHECK_EQUAL(fairlock_server_status(&client), FAIRLOCK_UNTRUSTED);
  CHECK_EQUAL(fairlock_init(&handle, &client, "door"), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_acquire(&handle, 10000, 1000), FAIRLOCK_UNTRUSTED);
  CHECK_EQUAL(fairlock_try_acquire(&handle, 1000), FAIRLOCK_UNTRUSTED);
  CHECK_EQUAL(connects, 3);
  for (int i = 0; i < 20; i++)
    fairlock_poll(&client, 10);
  CHECK_EQUAL(connects, 3);
  unreachable = PORT_UNREACHABLE;
  CHECK_EQUAL(fairlock_try_acquire(&handle, 1000), FAIRLOCK_UNREACHABLE);
  CHECK_EQUAL(sent, 0);
}

/* A server that does not trust us says so after the handshake, in TLS 1.3. */
static int say_untrusted(uint32_t timeout_ms)
{
  (void)timeout_ms;
  return PORT_UNTRUSTED;
}

static void test_untrusted_by_the_server(void)
{
  set_up();
  before_recv = say_untrusted;
  CHECK_EQUAL(fairlock_init(&handle, &client, "door"), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_acquire(&handle, 10000, 1000), FAIRLOCK_UNTRUSTED);
  CHECK_EQUAL(connects, 1);
}

/* What a socket's call returns for any error. */
static int send_minus_one(const char *data)
{
  (void)data;
  return -1;
}

static int receive_minus_one(uint32_t timeout_ms)
{
  (void)timeout_ms;
  return -1;
}

/* A port that hands on what a socket's call returned does not wait for ever: it is closed. */
static void test_minus_one(void)
{
  for (int i = 0; i < 3; i++) {
    set_up();
    if (i == 0) reachable = false;
    unreachable = -1;
    if (i == 1) before_send = send_minus_one;
    if (i == 2) before_recv = receive_minus_one;
    CHECK_EQUAL(fairlock_connect(&client), FAIRLOCK_UNREACHABLE);
    CHECK_EQUAL(connects, 1);
  }
}

static void note(enum fairlock_log_event event, int status, const char *text, void *context)
{
  CHECK_EQUAL(event, FAIRLOCK_LOG_NOT_CONNECTED);
  CHECK(strcmp(text, fairlock_status_text(status)) == 0);
  *(int *)context += status;
}

/* Each attempt to connect is told, and why it failed. */
static void test_log(void)
{
  static int sum;
  static struct fairlock_log journal = {.function = note, .context = &sum};
  set_up();
  CHECK_EQUAL(fairlock_set_log(&client, &journal), FAIRLOCK_OK);
  reachable = false;
  CHECK_EQUAL(fairlock_connect(&client), FAIRLOCK_UNREACHABLE);
  CHECK_EQUAL(sum, FAIRLOCK_UNREACHABLE);
  unreachable = PORT_UNTRUSTED;
  CHECK_EQUAL(fairlock_connect(&client), FAIRLOCK_UNTRUSTED);
  CHECK_EQUAL(sum, FAIRLOCK_UNREACHABLE + FAIRLOCK_UNTRUSTED);
}

static bool give_none(struct fairlock_login *login, void *context)
{
  int *asked = context;
  (*asked)++;
  return login->password != NULL; /* there is none yet */
}

/* Whoever has no credentials at present is not let in. */
static void test_no_credentials(void)
{
  static int asked;
  static struct fairlock_credentials credentials = {.function = give_none, .context = &asked};
  set_up();
  CHECK_EQUAL(fairlock_use_credentials(&client, &credentials), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_connect(&client), FAIRLOCK_DENIED);
  CHECK_EQUAL(asked, 1);
}

static const char *aimed_at = "";

static bool aim(void *context, const char *address)
{
  (void)context;
  aimed_at = address;
  return false;
}

/* The transport has to be told where a Sentinel leads. */
static void test_follow(void)
{
  static struct fairlock_topology topology;
  static char address[22];
  set_up();
  CHECK_EQUAL(fairlock_follow(&client, &topology), FAIRLOCK_OK);
  set_up();
  topology.service = "doors";
  topology.address = address;
  topology.address_size = sizeof address;
  CHECK_EQUAL(fairlock_follow(&client, &topology), FAIRLOCK_INVALID);
  transport.aim = aim;
  CHECK_EQUAL(fairlock_follow(&client, &topology), FAIRLOCK_OK);
  CHECK(aimed_at == NULL); /* the first seed */
}

/* Without blocking, what costs nothing is over when the call that begins it has returned. */
static void test_keep(void)
{
  static struct fairlock_keeping keeper = {.keep_ms = 10000};
  static struct fairlock_keeping second = {.keep_ms = 10000};
  set_up();
  CHECK_EQUAL(fairlock_use_keeping(&client, &keeper), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_use_keeping(&client, &second), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_use_keeping(&client, &keeper), FAIRLOCK_OK);
  memset(&second, 0x5a, sizeof second); /* it is out again */
  static struct fairlock_keeping bad;
  CHECK_EQUAL(fairlock_use_keeping(&client, &bad), FAIRLOCK_INVALID);
  CHECK_EQUAL(fairlock_init(&handle, &client, "door"), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_start_acquire(&handle, 0, FAIRLOCK_RENEW), FAIRLOCK_PENDING);
  fairlock_poll(&client, 0);
  hear("+OK\r\n+OK\r\n:0\r\n" SUBSCRIBED("subscribe") HELD("5"));
  CHECK_EQUAL(fairlock_result(&handle), FAIRLOCK_OK);
  size_t before = sent;
  for (int i = 0; i < 100; i++) {
    CHECK_EQUAL(fairlock_start_release(&handle), FAIRLOCK_PENDING);
    CHECK_EQUAL(fairlock_result(&handle), FAIRLOCK_OK);
    CHECK_EQUAL(fairlock_token(&handle), 0);
    CHECK_EQUAL(fairlock_start_acquire(&handle, 0, FAIRLOCK_RENEW), FAIRLOCK_PENDING);
    fairlock_poll(&client, 0); /* receives, if nobody has for a while */
    CHECK_EQUAL(fairlock_result(&handle), FAIRLOCK_OK);
    CHECK_EQUAL(fairlock_token(&handle), 5);
    CHECK_EQUAL(fairlock_release(&handle), FAIRLOCK_OK);
    CHECK_EQUAL(fairlock_acquire(&handle, 1000, FAIRLOCK_RENEW), FAIRLOCK_OK);
  }
  CHECK_EQUAL(sent, before);
}

/*
 * Two tasks with one handle. This is the second: while the first is inside connect(), it cancels
 * the first's wait and wants the lock itself, before the first can see how its wait has ended.
 */
static int connect_beside_another_task(void *context, uint32_t timeout_ms)
{
  (void)context;
  (void)timeout_ms;
  CHECK_EQUAL(fairlock_cancel(&handle), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_result(&handle), FAIRLOCK_CANCELLED);
  CHECK_EQUAL(fairlock_start_acquire(&handle, 0, 1000), FAIRLOCK_IN_PROGRESS);
  CHECK_EQUAL(fairlock_start_release(&handle), FAIRLOCK_IN_PROGRESS);
  CHECK_EQUAL(fairlock_start_force_release(&handle, &anyone), FAIRLOCK_IN_PROGRESS);
  CHECK_EQUAL(fairlock_start_ask_release(&handle, &anyone), FAIRLOCK_IN_PROGRESS);
  CHECK_EQUAL(fairlock_start_inspect(&handle, report, NULL), FAIRLOCK_IN_PROGRESS);
  CHECK_EQUAL(fairlock_deinit(&handle), FAIRLOCK_IN_PROGRESS);
  CHECK_EQUAL(fairlock_start_deinit(&handle), FAIRLOCK_IN_PROGRESS);
  CHECK_EQUAL(fairlock_adopt(&handle), FAIRLOCK_IN_PROGRESS);
  CHECK_EQUAL(fairlock_wait(&handle, 1000), FAIRLOCK_IN_PROGRESS);
  CHECK_EQUAL(fairlock_abandon(&handle, &rest), FAIRLOCK_IN_PROGRESS);
  return PORT_WOULD_BLOCK;
}

static void test_two_tasks_with_one_handle(void)
{
  set_up_handle();
  transport.connect = connect_beside_another_task;
  CHECK_EQUAL(fairlock_acquire(&handle, 1000, 1000), FAIRLOCK_CANCELLED);
  transport.connect = connect_now;
  CHECK_EQUAL(fairlock_deinit(&handle), FAIRLOCK_OK);
}

/* While a leave may still arrive late, nothing is sent that could begin another wait. */
static void test_acquire_waits_for_a_late_leave(void)
{
  set_up_connected();
  size_t greeting = sent;
  CHECK_EQUAL(fairlock_start_acquire(&handle, FAIRLOCK_FOREVER, FAIRLOCK_RENEW), FAIRLOCK_PENDING);
  hear(SUBSCRIBED("subscribe") QUEUED_UP);
  CHECK_EQUAL(strlen(says), 0);
  CHECK_EQUAL(fairlock_cancel(&handle), FAIRLOCK_OK);
  says = NULL;
  for (int i = 0; i < 10 && fairlock_result(&handle) == FAIRLOCK_PENDING; i++)
    fairlock_poll(&client, 0);
  CHECK_EQUAL(fairlock_result(&handle), FAIRLOCK_CANCELLED);
  sent = 0;
  CHECK_EQUAL(fairlock_start_acquire(&handle, FAIRLOCK_FOREVER, FAIRLOCK_RENEW), FAIRLOCK_PENDING);
  CHECK_EQUAL(fairlock_connect(&client), FAIRLOCK_OK);
  fairlock_poll(&client, 0);
  CHECK_EQUAL(sent, greeting);
  CHECK_EQUAL(fairlock_result(&handle), FAIRLOCK_PENDING);
}

/*
 * A message that grants the lock comes behind the end of the subscription: nobody listens, and the
 * handle is out.
 */
static void test_grant_while_taken_out(void)
{
  set_up_connected();
  CHECK_EQUAL(fairlock_start_acquire(&handle, FAIRLOCK_FOREVER, 1000), FAIRLOCK_PENDING);
  says = SUBSCRIBED("subscribe") HELD("7");
  for (int i = 0; i < 10 && fairlock_result(&handle) == FAIRLOCK_PENDING; i++)
    fairlock_poll(&client, 0);
  CHECK_EQUAL(fairlock_result(&handle), FAIRLOCK_OK);
  says = RELEASED;
  CHECK_EQUAL(fairlock_release(&handle), FAIRLOCK_OK);
  says = SUBSCRIBED("unsubscribe")
      ANSWER("0", "0") ">3\r\n$7\r\nmessage\r\n$43\r\nredisson_lock__channel:{door}:id."
                       "a.100001:1\r\n$"
                       "11\r\n9 1000 5000\r\n";
  CHECK_EQUAL(fairlock_deinit(&handle), FAIRLOCK_OK);
  CHECK_EQUAL(strlen(says), 0);
}

static void test_hold(void)
{
  set_up_connected();
  CHECK_EQUAL(fairlock_start_acquire(&handle, 0, 60000), FAIRLOCK_PENDING);
  hear(HELD("5"));
  CHECK_EQUAL(fairlock_result(&handle), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_hold_count(&handle), 1);
  CHECK_EQUAL(fairlock_token(&handle), 5);
  CHECK_EQUAL(fairlock_start_release(&handle), FAIRLOCK_PENDING);
  hear(RELEASED);
  CHECK_EQUAL(fairlock_result(&handle), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_hold_count(&handle), 0);
  /* somebody else's hold: it is ended, then one cannot be asked */
  CHECK_EQUAL(fairlock_start_force_release(&handle, &anyone), FAIRLOCK_PENDING);
  hear(RELEASED);
  CHECK_EQUAL(fairlock_result(&handle), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_start_ask_release(&handle, &anyone), FAIRLOCK_PENDING);
  hear(ANSWER("0", "1"));
  CHECK_EQUAL(fairlock_result(&handle), FAIRLOCK_NOT_LISTENING);
  CHECK_EQUAL(fairlock_deinit(&handle), FAIRLOCK_OK);
}

/* The lease is over, though nobody has serviced the client: there is no token to write with. */
static void test_lease_is_over(void)
{
  set_up_connected();
  CHECK_EQUAL(fairlock_start_acquire(&handle, 0, 60000), FAIRLOCK_PENDING);
  hear(HELD("5"));
  CHECK_EQUAL(fairlock_token(&handle), 5);
  handle.ends_at = port_clock_ms();
  CHECK_EQUAL(fairlock_token(&handle), 0);
  CHECK_EQUAL(fairlock_hold_count(&handle), 0);
}

/* The transport waits no longer than until the engine has to do something. */
static uint32_t asked_to_wait;

static int note_how_long(uint32_t timeout_ms)
{
  asked_to_wait = timeout_ms;
  return PORT_CLOSED;
}

static void test_waits_until_the_deadline(void)
{
  set_up_connected();
  before_recv = note_how_long;
  reachable = false;
  asked_to_wait = UINT32_MAX;
  CHECK(fairlock_acquire(&handle, 200, 1000) < 0);
  CHECK(asked_to_wait <= 200);
}

/* A request is sent, and then the transport waits for the reply: it is not asked without a wait. */
static unsigned asked_in_vain;

static int say_in_time(uint32_t timeout_ms)
{
  if (timeout_ms == 0) asked_in_vain++;
  return PORT_OK;
}

static void test_waits_at_once(void)
{
  set_up_connected();
  before_recv = say_in_time;
  asked_in_vain = 0;
  hold(1000);
  CHECK_EQUAL(asked_in_vain, 0);
}

/* A superloop takes its handle out: not while it waits, and when it does not, at once. */
static void test_take_out_without_blocking(void)
{
  static struct fairlock_client none;
  struct fairlock_config wrong = config;
  wrong.send_size = 1;
  set_up_connected();
  CHECK_EQUAL(fairlock_client_init(&none, &wrong, &transport), FAIRLOCK_TOO_LONG);
  CHECK_EQUAL(fairlock_start_acquire(&handle, 1000, 1000), FAIRLOCK_PENDING);
  CHECK_EQUAL(fairlock_start_deinit(&handle), FAIRLOCK_IN_PROGRESS);
  CHECK_EQUAL(fairlock_hold_count(&handle), 0);
  CHECK_EQUAL(fairlock_token(&handle), 0);
  CHECK_EQUAL(fairlock_cancel(&handle), FAIRLOCK_OK);
  hear(SUBSCRIBED("subscribe") QUEUED_UP RELEASED);
  CHECK_EQUAL(fairlock_result(&handle), FAIRLOCK_CANCELLED);
  CHECK_EQUAL(fairlock_start_deinit(&handle), FAIRLOCK_PENDING);
  CHECK_EQUAL(fairlock_start_deinit(&handle), FAIRLOCK_PENDING); /* the same operation */
  CHECK_EQUAL(client.engine.begun, 1);
  hear(SUBSCRIBED("unsubscribe") RELEASED);
  CHECK_EQUAL(fairlock_start_deinit(&handle), FAIRLOCK_OK);
}

/*
 * The id is made of what the server tells at the first greeting, with room for the longest there
 * can be.
 */
static void test_id_before_and_after_the_greeting(void)
{
  static const char longest[] = "0123456789012345678901234567890123456789";
  struct fairlock_config wordy = config;
  char id[FAIRLOCK_HOLDER_ID_SIZE + 1];
  set_up_handle();
  memset(id, '#', sizeof id);
  fairlock_id(&handle, id, FAIRLOCK_HOLDER_ID_SIZE);
  CHECK(strcmp(id, "") == 0);
  CHECK_EQUAL(fairlock_connect(&client), FAIRLOCK_OK);
  fairlock_id(&handle, id, FAIRLOCK_HOLDER_ID_SIZE);
  CHECK(strcmp(id, "id.a.100001:1") == 0);
  memset(id, '#', sizeof id);
  fairlock_id(&handle, id, sizeof "id.a.100001:1" - 1);
  CHECK(strcmp(id, "") == 0 && id[1] == '#');
  fairlock_id(&handle, id, sizeof "id.a.100001:1");
  CHECK(strcmp(id, "id.a.100001:1") == 0);

  wordy.client_id = longest;
  CHECK_EQUAL(strlen(longest), FAIRLOCK_ID_MAX);
  set_up_as(&wordy);
  CHECK_EQUAL(fairlock_init(&handle, &client, "door"), FAIRLOCK_OK);
  handle.number = UINT32_MAX;
  hello = "%1\r\n$2\r\nid\r\n:4294967295\r\n*2\r\n$10\r\n4294967295\r\n$10\r\n4294967295\r\n";
  CHECK_EQUAL(fairlock_connect(&client), FAIRLOCK_OK);
  memset(id, '#', sizeof id);
  fairlock_id(&handle, id, FAIRLOCK_HOLDER_ID_SIZE);
  CHECK_EQUAL(strlen(id), FAIRLOCK_HOLDER_ID_SIZE - 1);
  CHECK_EQUAL(id[FAIRLOCK_HOLDER_ID_SIZE], '#');
  CHECK(strcmp(id, "0123456789012345678901234567890123456789.vvvvvv3.vvvvvv3vvvvvv3:4294967295") ==
        0);
}

/* The sizes are the program's, which may have been compiled for another release. */
static void test_room_of_the_program(void)
{
  char text[FAIRLOCK_ERROR_SIZE + 2];
  struct {
    struct fairlock_counters counters;
    uint32_t later[2];
  } more;
  set_up();
  memcpy(client.engine.error, "ERR not now", sizeof "ERR not now");
  client.engine.counters.losses = 7;
  client.engine.counters.acquisitions = 8;
  memset(text, '#', sizeof text);
  fairlock_error(&client, text, 1);
  CHECK(text[0] == 0 && text[1] == '#');
  fairlock_error(&client, text, 5);
  CHECK(strcmp(text, "ERR ") == 0 && text[5] == '#');
  fairlock_error(&client, text, sizeof text);
  CHECK(strcmp(text, "ERR not now") == 0 && text[FAIRLOCK_ERROR_SIZE] == '#');
  memset(&more, 0xff, sizeof more);
  fairlock_read_counters(&client, &more.counters, sizeof more);
  CHECK(more.counters.losses == 7 && more.counters.requests == 0);
  CHECK(more.later[0] == 0 && more.later[1] == 0);
  memset(&more, 0xff, sizeof more);
  fairlock_read_counters(&client, &more.counters, sizeof more.counters.acquisitions);
  CHECK(more.counters.acquisitions == 8 && more.counters.waits == UINT32_MAX);
}

/* One task is slow to send; meanwhile the one that receives sees the connection break. */
static atomic_bool receiving, sending, broken;
static atomic_int closed_too_soon;

static void let_pass(uint32_t ms)
{
  for (uint32_t began = port_clock_ms(); port_clock_ms() - began < ms;)
    continue;
}

static int receive_until_broken(uint32_t timeout_ms)
{
  (void)timeout_ms;
  atomic_store(&receiving, true);
  let_pass(1);
  return atomic_load(&broken) ? PORT_CLOSED : PORT_WOULD_BLOCK;
}

static int send_while_it_breaks(const char *data)
{
  (void)data;
  atomic_store(&sending, true);
  atomic_store(&broken, true);
  let_pass(50);
  atomic_store(&sending, false);
  return PORT_OK;
}

static void close_unless_sending(void *context)
{
  close_now(context);
  if (atomic_load(&sending)) (void)atomic_fetch_add(&closed_too_soon, 1);
}

static int say_nothing_and_close(uint32_t timeout_ms)
{
  let_pass(timeout_ms);
  return reachable ? PORT_WOULD_BLOCK : PORT_CLOSED;
}

static int break_at_the_end(const char *data)
{
  reachable = strstr(data, "SUBSCRIBE") != NULL; /* only the wait itself begins with that */
  return PORT_OK;
}

/*
 * The answer to the greeting comes while nobody reads. However long it lies there, it counts as no
 * long round trip, which would make the client wait longer for a server that is gone.
 */
static int say_after_a_while(uint32_t timeout_ms)
{
  (void)timeout_ms;
  let_pass(1); /* so that the wait for it is over */
  return PORT_OK;
}

static void test_greeting_that_lay_there(void)
{
  set_up_handle();
  hello = "";
  before_recv = say_after_a_while;
  CHECK_EQUAL(fairlock_acquire(&handle, 20, 1000), FAIRLOCK_UNREACHABLE);
  hello = GREETING;
  says = GREETING;
  let_pass(300);
  CHECK_EQUAL(fairlock_connect(&client), FAIRLOCK_OK);
  CHECK_EQUAL(connects, 1);
  CHECK_EQUAL(client.engine.round_trip_ms, 0);
}

/* Who asks why right after an operation has ended hears it, though the connection is not closed yet. */
static void test_status_of_a_refusal(void)
{
  set_up_handle();
  hello = "-WRONGPASS no\r\n";
  CHECK_EQUAL(fairlock_try_acquire(&handle, 1000), FAIRLOCK_DENIED);
  CHECK_EQUAL(fairlock_server_status(&client), FAIRLOCK_DENIED);
  fairlock_poll(&client, 0);
  CHECK_EQUAL(fairlock_server_status(&client), FAIRLOCK_DENIED);
  hello = GREETING;
  CHECK_EQUAL(fairlock_connect(&client), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_server_status(&client), FAIRLOCK_OK);
}

/* A wait that nobody answers is not told why an earlier connection failed. */
static void test_error_of_this_time(void)
{
  set_up_handle();
  hello = "-WRONGPASS no\r\n";
  CHECK_EQUAL(fairlock_connect(&client), FAIRLOCK_DENIED);
  hello = GREETING;
  CHECK_EQUAL(fairlock_connect(&client), FAIRLOCK_OK);
  before_recv = say_nothing_and_close;
  before_send = break_at_the_end;
  CHECK_EQUAL(fairlock_acquire(&handle, 50, 1000), FAIRLOCK_UNREACHABLE);
}

static void *acquire_in_vain(void *context)
{
  return fairlock_acquire(context, 1000, 1000) == FAIRLOCK_UNREACHABLE ? context : NULL;
}

static void test_close_waits_for_send(void)
{
  static struct fairlock other;
  pthread_t thread;
  void *result;
  set_up_handle();
  CHECK_EQUAL(fairlock_init(&other, &client, "gate"), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_connect(&client), FAIRLOCK_OK);
  before_recv = receive_until_broken;
  transport.close = close_unless_sending;
  reachable = false;
  CHECK_EQUAL(pthread_create(&thread, NULL, acquire_in_vain, &handle), 0);
  while (!atomic_load(&receiving))
    let_pass(1);
  before_send = send_while_it_breaks; /* the other task has sent what it had */
  (void)fairlock_start_acquire(&other, 1000, 1000);
  CHECK_EQUAL(pthread_join(thread, &result), 0);
  CHECK(result == &handle);
  CHECK(atomic_load(&broken));
  CHECK_EQUAL(atomic_load(&closed_too_soon), 0);
}

#define GIVES_UP_MS 10000 /* only when something is wrong */

void __real_port_event_wait(struct port_event *event, struct port_mutex *mutex,
                            uint32_t timeout_ms);
void __wrap_port_event_wait(struct port_event *event, struct port_mutex *mutex,
                            uint32_t timeout_ms);

static atomic_bool sleeps, returned, gave_up;
static atomic_bool until_woken; /* no task that sleeps ends that by itself */

/* The linker puts it between client.c and the port (--wrap). */
void __wrap_port_event_wait(struct port_event *event, struct port_mutex *mutex, uint32_t timeout_ms)
{
  if (timeout_ms > 0) atomic_store(&sleeps, true);
  __real_port_event_wait(event, mutex,
                         until_woken && timeout_ms > 0 ? 2 * GIVES_UP_MS : timeout_ms);
}

static bool comes(const atomic_bool *flag)
{
  uint32_t began = port_clock_ms();
  while (!atomic_load(flag) && port_clock_ms() - began < GIVES_UP_MS)
    let_pass(1);
  return atomic_load(flag);
}

static int receive_until_returned(uint32_t timeout_ms)
{
  (void)timeout_ms;
  atomic_store(&receiving, true);
  if (!comes(&returned)) atomic_store(&gave_up, true);
  return PORT_WOULD_BLOCK;
}

static int send_until_another_sleeps(const char *data)
{
  (void)data;
  atomic_store(&sending, true);
  CHECK(comes(&sleeps));
  return PORT_OK;
}

static void *run(void *context)
{
  return fairlock_run(context) == FAIRLOCK_OK ? context : NULL;
}

static void *acquire_while_another_sends(void *context)
{
  CHECK(comes(&sending));
  int status = fairlock_acquire(context, 1000, FAIRLOCK_RENEW);
  atomic_store(&returned, true);
  return status == FAIRLOCK_OK ? context : NULL;
}

/*
 * One task receives, a second one sends. A third one acquires what is kept: it sleeps, as the
 * second one would send for it, and that one then ends its operation, and has to wake it.
 */
static void test_keep_wakes(void)
{
  static struct fairlock_keeping keeper = {.keep_ms = 20000};
  static struct fairlock other;
  pthread_t runner, third;
  void *result;
  set_up();
  CHECK_EQUAL(fairlock_use_keeping(&client, &keeper), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_init(&handle, &client, "door"), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_init(&other, &client, "gate"), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_connect(&client), FAIRLOCK_OK);
  says = "+OK\r\n+OK\r\n:0\r\n" SUBSCRIBED("subscribe") HELD("5");
  CHECK_EQUAL(fairlock_try_acquire(&handle, FAIRLOCK_RENEW), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_release(&handle), FAIRLOCK_OK);
  atomic_store(&receiving, false);
  atomic_store(&sending, false);
  before_recv = receive_until_returned;
  before_send = send_until_another_sleeps;
  CHECK_EQUAL(pthread_create(&runner, NULL, run, &client), 0);
  CHECK(comes(&receiving));
  (void)alarm(60); /* for one who runs it, too */
  CHECK_EQUAL(fairlock_run(&client), FAIRLOCK_IN_PROGRESS);
  (void)alarm(0);
  atomic_store(&sleeps, false);
  until_woken = true;
  CHECK_EQUAL(pthread_create(&third, NULL, acquire_while_another_sends, &handle), 0);
  CHECK_EQUAL(fairlock_start_acquire(&other, 0, FAIRLOCK_RENEW), FAIRLOCK_PENDING);
  CHECK_EQUAL(pthread_join(third, &result), 0);
  CHECK(result == &handle);
  CHECK(!atomic_load(&gave_up));
  fairlock_stop(&client);
  CHECK_EQUAL(pthread_join(runner, &result), 0);
  CHECK(result == &client);
  CHECK_EQUAL(fairlock_token(&handle), 5);
  until_woken = false;
}

/* The first call waits until another task sleeps beside it; each brings one answer. */
static int answer_in_turn(uint32_t timeout_ms)
{
  (void)timeout_ms;
  if (!atomic_exchange(&receiving, true)) CHECK(comes(&sleeps));
  says = HELD("5");
  return PORT_OK;
}

static void *try_beside(void *context)
{
  CHECK(comes(&receiving));
  int status = fairlock_try_acquire(context, FAIRLOCK_RENEW);
  atomic_store(&returned, true);
  return status == FAIRLOCK_OK ? context : NULL;
}

/* A task that has its answer leaves, and the one that has slept beside it receives from then on. */
static void test_heir(void)
{
  static struct fairlock other;
  pthread_t second;
  void *result;
  set_up_handle();
  CHECK_EQUAL(fairlock_init(&other, &client, "gate"), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_connect(&client), FAIRLOCK_OK);
  atomic_store(&receiving, false);
  atomic_store(&sleeps, false);
  atomic_store(&returned, false);
  until_woken = true;
  before_recv = answer_in_turn;
  CHECK_EQUAL(pthread_create(&second, NULL, try_beside, &other), 0);
  CHECK_EQUAL(fairlock_try_acquire(&handle, FAIRLOCK_RENEW), FAIRLOCK_OK);
  CHECK(comes(&returned));
  CHECK_EQUAL(pthread_join(second, &result), 0);
  CHECK(result == &other);
  until_woken = false;
}

/*
 * One task is inside fairlock_run(). Another one begins an operation and polls: it is woken by the
 * answer. If that came before it polled, it does not sleep.
 */
static int answer_who_sleeps(uint32_t timeout_ms)
{
  (void)timeout_ms;
  atomic_store(&receiving, true);
  if (atomic_load(&sending)) {
    atomic_store(&sending, false);
    CHECK(comes(&returned));
  }
  let_pass(1);
  if (atomic_exchange(&sleeps, false)) says = QUEUED_UP;
  return PORT_OK;
}

static void test_poll_beside(void)
{
  pthread_t runner;
  set_up_connected();
  atomic_store(&receiving, false);
  atomic_store(&sending, false);
  atomic_store(&returned, false);
  atomic_store(&sleeps, false);
  before_recv = answer_who_sleeps;
  CHECK_EQUAL(pthread_create(&runner, NULL, run, &client), 0);
  CHECK(comes(&receiving));
  until_woken = true;
  uint32_t began = port_clock_ms();
  CHECK_EQUAL(fairlock_start_acquire(&handle, 0, 1000), FAIRLOCK_PENDING);
  while (fairlock_result(&handle) == FAIRLOCK_PENDING)
    fairlock_poll(&client, 1000);
  CHECK_EQUAL(fairlock_start_acquire(&handle, 0, 1000), FAIRLOCK_PENDING);
  atomic_store(&sleeps, true);
  while (fairlock_result(&handle) == FAIRLOCK_PENDING)
    let_pass(1);
  atomic_store(&sending, true);
  while (atomic_load(&sending)) /* until the other task waits for the server, in vain */
    let_pass(1);
  fairlock_poll(&client, 1000);
  atomic_store(&returned, true);
  CHECK(port_clock_ms() - began < GIVES_UP_MS);
  until_woken = false;
  fairlock_stop(&client);
  CHECK_EQUAL(pthread_join(runner, NULL), 0);
}

static atomic_bool woken;

static int receive_until_woken(uint32_t timeout_ms)
{
  (void)timeout_ms;
  atomic_store(&receiving, true);
  CHECK(comes(&woken));
  return PORT_WOULD_BLOCK;
}

static void wake_receiver(void *context)
{
  (void)context;
  atomic_store(&woken, true);
}

/* Whoever is inside fairlock_run() is woken where it is, if the transport can. */
static void test_stop_wakes(void)
{
  pthread_t runner;
  set_up();
  CHECK_EQUAL(fairlock_connect(&client), FAIRLOCK_OK);
  before_recv = receive_until_woken;
  transport.wake = wake_receiver;
  atomic_store(&receiving, false);
  fairlock_stop(&client); /* nobody is there to be woken */
  CHECK(!atomic_load(&woken));
  CHECK_EQUAL(fairlock_run(&client), FAIRLOCK_OK);
  CHECK_EQUAL(pthread_create(&runner, NULL, run, &client), 0);
  CHECK(comes(&receiving));
  fairlock_stop(&client);
  CHECK_EQUAL(pthread_join(runner, NULL), 0);
  CHECK(atomic_load(&woken));
}

static struct fairlock_shared heir;
static unsigned told;
static int told_status;

static void note_end(struct fairlock *which, const struct fairlock_end *end, void *context)
{
  CHECK((which == &handle || which == &heir.handle) && context == &told);
  told_status = end->status;
  told++;
}

/* A call that waits returns the result itself; what was only begun is told. */
static void test_told_of_what_nobody_waits_for(void)
{
  struct fairlock_config telling = config;
  telling.ended = note_end;
  telling.ended_context = &told;
  told = 0;
  set_up_as(&telling);
  CHECK_EQUAL(fairlock_init(&handle, &client, "door"), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_connect(&client), FAIRLOCK_OK);
  hold(60000);
  says = RELEASED;
  CHECK_EQUAL(fairlock_force_release(&client, "gate", 4, FAIRLOCK_ANY_TOKEN), FAIRLOCK_OK);
  CHECK_EQUAL(told, 0);
  CHECK_EQUAL(fairlock_start_release(&handle), FAIRLOCK_PENDING);
  hear(RELEASED);
  CHECK_EQUAL(told, 1);
  CHECK_EQUAL(told_status, FAIRLOCK_OK);
  says = BUSY;
  CHECK_EQUAL(fairlock_try_acquire(&handle, 60000), FAIRLOCK_BUSY);
  /* a wait in parts: only the part that brings the result tells it */
  CHECK_EQUAL(fairlock_start_acquire(&handle, 0, 60000), FAIRLOCK_PENDING);
  CHECK_EQUAL(fairlock_wait(&handle, 1), FAIRLOCK_PENDING);
  says = BUSY;
  CHECK_EQUAL(fairlock_wait(&handle, 1000), FAIRLOCK_BUSY);
  CHECK_EQUAL(told, 1);
  CHECK_EQUAL(fairlock_start_acquire(&handle, 0, 60000), FAIRLOCK_PENDING);
  CHECK_EQUAL(fairlock_wait(&handle, 0), FAIRLOCK_PENDING);
  hear(BUSY);
  CHECK_EQUAL(told, 2);
  CHECK_EQUAL(fairlock_wait(&handle, FAIRLOCK_FOREVER), FAIRLOCK_BUSY);
  CHECK_EQUAL(fairlock_start_acquire(&handle, 0, 60000), FAIRLOCK_PENDING);
  says = BUSY;
  CHECK_EQUAL(fairlock_wait(&handle, FAIRLOCK_FOREVER), FAIRLOCK_BUSY);
  /* prepared for a wait: nobody else need receive what comes */
  says = HELD("6");
  CHECK_EQUAL(fairlock_client_prepare_acquire(&handle, 0, 60000), FAIRLOCK_PENDING);
  CHECK_EQUAL(client.engine.begun, 0);
  CHECK_EQUAL(fairlock_wait(&handle, FAIRLOCK_FOREVER), FAIRLOCK_OK);
  says = RELEASED;
  CHECK_EQUAL(fairlock_client_prepare_release(&handle), FAIRLOCK_PENDING);
  CHECK_EQUAL(fairlock_wait(&handle, FAIRLOCK_FOREVER), FAIRLOCK_OK);
  /* begun, and taken out before the end: one operation that nobody may wait for */
  CHECK_EQUAL(fairlock_start_acquire(&handle, 0, 60000), FAIRLOCK_PENDING);
  CHECK_EQUAL(client.engine.begun, 1);
  CHECK_EQUAL(fairlock_abandon(&handle, &rest), FAIRLOCK_OK);
  CHECK_EQUAL(client.engine.begun, 0);
  CHECK_EQUAL(told, 2);
}

#define LISTENS_TOO                                                                                \
  ">3\r\n+subscribe\r\n$43\r\nredisson_lock__channel:{door}:id.a.100001:2\r\n:1\r\n"
#define DOWNGRADED LISTENS_TOO HELD("6")

static void *downgrade_elsewhere(void *context)
{
  (void)context;
  CHECK_EQUAL(fairlock_downgrade(&handle, &heir, 60000), FAIRLOCK_WRONG_TASK);
  CHECK_EQUAL(fairlock_start_downgrade(&handle, &heir, 60000), FAIRLOCK_WRONG_TASK);
  return NULL;
}

static void check_downgraded(void)
{
  CHECK_EQUAL(fairlock_hold_count(&handle), 0);
  CHECK_EQUAL(fairlock_hold_count(&heir.handle), 1);
  CHECK_EQUAL(fairlock_token(&heir.handle), 6);
  says = RELEASED;
  CHECK_EQUAL(fairlock_release(&heir.handle), FAIRLOCK_OK);
}

/* Both handles are of one client and one task, and none is inside a call. */
static void check_not_downgraded(void)
{
  static struct fairlock_downgrading downgrading;
  static struct fairlock_client other;
  static struct fairlock_shared stranger;
  pthread_t thread;
  CHECK_EQUAL(fairlock_client_init(&other, &config, &transport), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_use_downgrading(&other, &downgrading), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_init_shared(&stranger, &other, "door", 0), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_downgrade(&handle, &stranger, 60000), FAIRLOCK_INVALID);
  CHECK_EQUAL(fairlock_downgrade(&handle, &heir, 1), FAIRLOCK_INVALID);
  CHECK_EQUAL(pthread_create(&thread, NULL, downgrade_elsewhere, NULL), 0);
  CHECK_EQUAL(pthread_join(thread, NULL), 0);
  heir.handle.awaited = true;
  CHECK_EQUAL(fairlock_downgrade(&handle, &heir, 60000), FAIRLOCK_IN_PROGRESS);
  heir.handle.awaited = false;
  CHECK_EQUAL(fairlock_hold_count(&handle), 1);
}

/* From alone to shared: one call for both handles. */
static void test_downgrade(void)
{
  static struct fairlock_downgrading downgrading;
  struct fairlock_config telling = config;
  telling.ended = note_end;
  telling.ended_context = &told;
  told = 0;
  set_up_as(&telling);
  CHECK_EQUAL(fairlock_use_downgrading(&client, &downgrading), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_init(&handle, &client, "door"), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_init_shared(&heir, &client, "door", 0), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_connect(&client), FAIRLOCK_OK);
  hold(60000);
  check_not_downgraded();
  says = DOWNGRADED;
  CHECK_EQUAL(fairlock_downgrade(&handle, &heir, 60000), FAIRLOCK_OK);
  check_downgraded();
  CHECK_EQUAL(told, 0);
  /* without blocking */
  handle.token = heir.handle.token = 0; /* the server plays the same once more */
  hold(60000);
  CHECK_EQUAL(fairlock_start_downgrade(&handle, &heir, 60000), FAIRLOCK_PENDING);
  CHECK_EQUAL(fairlock_hold_count(&handle), 0);
  CHECK_EQUAL(fairlock_result(&heir.handle), FAIRLOCK_PENDING);
  CHECK_EQUAL(fairlock_adopt(&heir.handle), FAIRLOCK_IN_PROGRESS);
  says = HELD("6"); /* it listens already */
  fairlock_poll(&client, 0);
  CHECK_EQUAL(told, 2);
  CHECK_EQUAL(told_status, FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_result(&handle), FAIRLOCK_OK);
  check_downgraded();
}

/*
 * Other tasks beside a downgrade: one cancels it, and one wants to acquire with the shared handle as
 * soon as it has left the queue, while the release of the exclusive one is still to be answered.
 */
static int answer_a_cancelled_downgrade(uint32_t timeout_ms)
{
  (void)timeout_ms;
  static size_t seen;
  if (handle.result != FAIRLOCK_PENDING) return PORT_WOULD_BLOCK;
  if (fairlock_cancel(&heir.handle) == FAIRLOCK_OK) {
    seen = sent;
    says = LISTENS_TOO QUEUED_UP RELEASED; /* waits, left */
  } else {
    int status = fairlock_start_acquire(&heir.handle, FAIRLOCK_FOREVER, 1000);
    CHECK_EQUAL(status, FAIRLOCK_IN_PROGRESS);
    if (sent > seen) says = RELEASED; /* released */
  }
  if (*says == 0) let_pass(1);
  return PORT_OK;
}

static void test_downgrade_cancelled(void)
{
  static struct fairlock_downgrading downgrading;
  set_up();
  CHECK_EQUAL(fairlock_use_downgrading(&client, &downgrading), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_init(&handle, &client, "door"), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_init_shared(&heir, &client, "door", 0), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_connect(&client), FAIRLOCK_OK);
  hold(60000);
  before_recv = answer_a_cancelled_downgrade;
  CHECK_EQUAL(fairlock_downgrade(&handle, &heir, 60000), FAIRLOCK_CANCELLED);
  before_recv = NULL;
  CHECK_EQUAL(fairlock_hold_count(&handle), 0);
  CHECK_EQUAL(fairlock_hold_count(&heir.handle), 0);
  CHECK_EQUAL(fairlock_result(&handle), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_deinit(&handle), FAIRLOCK_OK);
}

static unsigned losses;

static void note_loss(struct fairlock *which, const struct fairlock_loss *loss, void *context)
{
  (void)loss;
  CHECK(which == &handle && context == &losses);
  losses++;
}

/* The task is frozen while it sends, until the lease is over. */
static int send_until_the_lease_is_over(const char *data)
{
  (void)data;
  handle.ends_at = port_clock_ms();
  return PORT_OK;
}

static int send_later(const char *data)
{
  (void)data;
  return PORT_WOULD_BLOCK;
}

/* An answer, with which the client also has something to send, for another handle. */
static struct fairlock neighbour;

static int answer_and_have_more_to_send(uint32_t timeout_ms)
{
  (void)timeout_ms;
  before_send = send_later;
  CHECK_EQUAL(fairlock_start_acquire(&neighbour, 0, 1000), FAIRLOCK_PENDING);
  before_send = send_until_the_lease_is_over;
  before_recv = NULL;
  return PORT_OK;
}

static int acquire_frozen(void)
{
  before_recv = answer_and_have_more_to_send;
  int status = fairlock_try_acquire(&handle, FAIRLOCK_RENEW);
  before_send = NULL;
  return status;
}

/*
 * The hold is lost before the task that has acquired it runs again: `lost` was called, and so the
 * acquire does not say that the task holds. What it has not got it does not release.
 */
static void test_lost_before_acquire_returns(void)
{
  struct fairlock_config telling = config;
  telling.lost = note_loss;
  telling.lost_context = &losses;
  losses = 0;
  set_up_as(&telling);
  CHECK_EQUAL(fairlock_init(&handle, &client, "door"), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_init(&neighbour, &client, "gate"), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_connect(&client), FAIRLOCK_OK);
  says = HELD("5");
  CHECK_EQUAL(acquire_frozen(), FAIRLOCK_LOST);
  CHECK_EQUAL(losses, 1);
  CHECK_EQUAL(fairlock_release(&handle), FAIRLOCK_NOT_HELD);
  CHECK_EQUAL(fairlock_result(&neighbour), FAIRLOCK_PENDING);
  fairlock_poll(&client, 0);
  says = QUEUED_UP RELEASED; /* busy, left */
  fairlock_poll(&client, 0);
  CHECK_EQUAL(fairlock_result(&neighbour), FAIRLOCK_BUSY);
  /* of a re-entry, only the hold before it is left to release */
  says = HELD("6");
  CHECK_EQUAL(fairlock_try_acquire(&handle, FAIRLOCK_RENEW), FAIRLOCK_OK);
  says = HELD("6");
  CHECK_EQUAL(acquire_frozen(), FAIRLOCK_LOST);
  CHECK_EQUAL(losses, 2);
  CHECK_EQUAL(fairlock_release(&handle), FAIRLOCK_LOST);
  CHECK_EQUAL(fairlock_release(&handle), FAIRLOCK_NOT_HELD);
}

/* Another task: its calls with the handle. */
static void *be_another_task(void *context)
{
  (void)context;
  CHECK_EQUAL(fairlock_release(&handle), FAIRLOCK_WRONG_TASK);
  CHECK_EQUAL(fairlock_adopt(&handle), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_start_release(&handle), FAIRLOCK_PENDING);
  CHECK_EQUAL(fairlock_adopt(&handle), FAIRLOCK_IN_PROGRESS);
  return NULL;
}

static void test_adopt(void)
{
  pthread_t thread;
  set_up_handle();
  CHECK_EQUAL(fairlock_adopt(&handle), FAIRLOCK_NOT_HELD);
  CHECK_EQUAL(fairlock_connect(&client), FAIRLOCK_OK);
  hold(60000);
  CHECK_EQUAL(pthread_create(&thread, NULL, be_another_task, NULL), 0);
  CHECK_EQUAL(pthread_join(thread, NULL), 0);
  CHECK_EQUAL(fairlock_token(&handle), 0);
  hear(RELEASED);
  CHECK_EQUAL(fairlock_result(&handle), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_adopt(&handle), FAIRLOCK_NOT_HELD);
  CHECK_EQUAL(fairlock_deinit(&handle), FAIRLOCK_OK);
}

/* A hold that was lost has to be released, too, and that is then the other task's to do. */
static void *adopt_a_loss(void *context)
{
  (void)context;
  CHECK_EQUAL(fairlock_adopt(&handle), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_release(&handle), FAIRLOCK_LOST);
  return NULL;
}

static void test_adopt_a_loss(void)
{
  pthread_t thread;
  set_up_connected();
  hold(60000);
  handle.ends_at = port_clock_ms();
  fairlock_poll(&client, 0);
  CHECK_EQUAL(pthread_create(&thread, NULL, adopt_a_loss, NULL), 0);
  CHECK_EQUAL(pthread_join(thread, NULL), 0);
}

/* A handle that shares is one like any other to whoever blocks, or does not. */
static void test_share(void)
{
  static struct fairlock_shared shared;
  set_up();
  CHECK_EQUAL(fairlock_init_shared(&shared, &client, "door", FAIRLOCK_LIMIT_MAX + 1),
              FAIRLOCK_INVALID);
  CHECK_EQUAL(fairlock_init_shared(&shared, &client, NULL, 2), FAIRLOCK_INVALID);
  CHECK_EQUAL(fairlock_init_shared_bytes(&shared, &client, "door", 0, 2), FAIRLOCK_INVALID);
  CHECK_EQUAL(fairlock_init_shared(&shared, &client, "door", 2), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_start_acquire(&shared.handle, 0, 1000), FAIRLOCK_PENDING);
  fairlock_poll(&client, 0);
  says = HELD("5"); /* held, token 5 */
  fairlock_poll(&client, 0);
  CHECK_EQUAL(fairlock_result(&shared.handle), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_token(&shared.handle), 5);
  CHECK_EQUAL(fairlock_hold_count(&shared.handle), 1);
  CHECK(fairlock_remaining_ms(&shared.handle) > 0);
  CHECK_EQUAL(fairlock_adopt(&shared.handle), FAIRLOCK_OK);
}

/*
 * A forked process can do nothing with the client, and neither locks its mutex nor uses its
 * transport. tests/server/test_fork.c forks; here the process only takes itself for another one.
 */
static void test_forked(void)
{
  static struct fairlock other;
  static struct fairlock_topology topology;
  static struct fairlock_keeping keeper = {.keep_ms = 1000};
  static struct fairlock_downgrading downgrading;
  static struct fairlock_log journal = {.function = note};
  static struct fairlock_credentials credentials = {.function = give_none};
  static struct fairlock_shared shared;
  char text[FAIRLOCK_ERROR_SIZE + FAIRLOCK_HOLDER_ID_SIZE];
  set_up_handle();
  CHECK_EQUAL(fairlock_start_acquire(&handle, 0, 1000), FAIRLOCK_PENDING);
  fairlock_poll(&client, 0);
  says = HELD("5"); /* held, token 5 */
  fairlock_poll(&client, 0);
  CHECK_EQUAL(fairlock_result(&handle), FAIRLOCK_OK);
  size_t before = sent;
  (void)alarm(60); /* for one who waits for the mutex */
  port_mutex_lock(&client.mutex);
  client.mutex.process++;
  CHECK_EQUAL(fairlock_remaining_ms(&handle), 0);
  CHECK_EQUAL(fairlock_token(&handle), 0);
  CHECK_EQUAL(fairlock_hold_count(&handle), 0);
  CHECK_EQUAL(fairlock_result(&handle), FAIRLOCK_FORKED);
  CHECK_EQUAL(fairlock_acquire(&handle, 10000, 1000), FAIRLOCK_FORKED);
  CHECK_EQUAL(fairlock_try_acquire(&handle, 1000), FAIRLOCK_FORKED);
  CHECK_EQUAL(fairlock_start_acquire(&handle, 0, 1000), FAIRLOCK_FORKED);
  CHECK_EQUAL(fairlock_client_prepare_acquire(&handle, 0, 1000), FAIRLOCK_FORKED);
  CHECK_EQUAL(fairlock_cancel(&handle), FAIRLOCK_FORKED);
  CHECK_EQUAL(fairlock_release(&handle), FAIRLOCK_FORKED);
  CHECK_EQUAL(fairlock_start_release(&handle), FAIRLOCK_FORKED);
  CHECK_EQUAL(fairlock_client_prepare_release(&handle), FAIRLOCK_FORKED);
  CHECK_EQUAL(fairlock_start_force_release(&handle, &anyone), FAIRLOCK_FORKED);
  CHECK_EQUAL(fairlock_start_ask_release(&handle, &anyone), FAIRLOCK_FORKED);
  CHECK_EQUAL(fairlock_start_inspect(&handle, report, NULL), FAIRLOCK_FORKED);
  CHECK_EQUAL(fairlock_downgrade(&handle, &heir, 1000), FAIRLOCK_FORKED);
  CHECK_EQUAL(fairlock_start_downgrade(&handle, &heir, 1000), FAIRLOCK_FORKED);
  CHECK_EQUAL(fairlock_abandon(&handle, &rest), FAIRLOCK_FORKED);
  CHECK_EQUAL(fairlock_wait(&handle, 1000), FAIRLOCK_FORKED);
  CHECK_EQUAL(fairlock_start_deinit(&handle), FAIRLOCK_FORKED);
  CHECK_EQUAL(fairlock_deinit(&handle), FAIRLOCK_FORKED);
  CHECK_EQUAL(fairlock_adopt(&handle), FAIRLOCK_FORKED);
  CHECK_EQUAL(fairlock_connect(&client), FAIRLOCK_FORKED);
  CHECK_EQUAL(fairlock_follow(&client, &topology), FAIRLOCK_FORKED);
  CHECK_EQUAL(fairlock_use_keeping(&client, &keeper), FAIRLOCK_FORKED);
  CHECK_EQUAL(fairlock_set_log(&client, &journal), FAIRLOCK_FORKED);
  CHECK_EQUAL(fairlock_use_downgrading(&client, &downgrading), FAIRLOCK_FORKED);
  CHECK_EQUAL(fairlock_use_credentials(&client, &credentials), FAIRLOCK_FORKED);
  CHECK_EQUAL(fairlock_init(&other, &client, "door"), FAIRLOCK_FORKED);
  CHECK_EQUAL(fairlock_init_shared(&shared, &client, "door", 0), FAIRLOCK_FORKED);
  CHECK_EQUAL(fairlock_init_shared_bytes(&shared, &client, "door", 4, 0), FAIRLOCK_FORKED);
  CHECK_EQUAL(fairlock_force_release(&client, "door", 4, FAIRLOCK_ANY_TOKEN), FAIRLOCK_FORKED);
  CHECK_EQUAL(fairlock_ask_release(&client, "door", 4, FAIRLOCK_ANY_TOKEN), FAIRLOCK_FORKED);
  CHECK_EQUAL(fairlock_inspect(&client, "door", 4, report, NULL), FAIRLOCK_FORKED);
  CHECK_EQUAL(fairlock_server_status(&client), FAIRLOCK_FORKED);
  CHECK(fairlock_poll(&client, 1000) > 60000);
  CHECK_EQUAL(fairlock_wants(&client), 0);
  fairlock_stop(&client);
  CHECK_EQUAL(fairlock_run(&client), FAIRLOCK_FORKED);
  fairlock_error(&client, text, FAIRLOCK_ERROR_SIZE);
  CHECK_EQUAL(text[0], 0);
  fairlock_id(&handle, text, FAIRLOCK_HOLDER_ID_SIZE);
  CHECK_EQUAL(text[0], 0);
  CHECK_EQUAL(counters_of(&client).requests, 0);
  client.mutex.process--;
  port_mutex_unlock(&client.mutex);
  (void)alarm(0);
  CHECK_EQUAL(sent, before);
  CHECK(fairlock_remaining_ms(&handle) > 0);
  client.mutex.process++;
}

const struct check_test check_tests[] = {
    {"client bad names", test_bad_names},
    {"client nobody there", test_nobody_there},
    {"client closed while connecting", test_closed_while_connecting},
    {"client untrusted", test_untrusted},
    {"client untrusted by the server", test_untrusted_by_the_server},
    {"client: a port that returns -1", test_minus_one},
    {"client log", test_log},
    {"credentials: none at present", test_no_credentials},
    {"client forked", test_forked},
    {"client follow", test_follow},
    {"client keep", test_keep},
    {"client share", test_share},
    {"a grant while the handle is taken out", test_grant_while_taken_out},
    {"client hold", test_hold},
    {"client lease is over", test_lease_is_over},
    {"client: a greeting that lay there is no long round trip", test_greeting_that_lay_there},
    {"client says why right after a refusal", test_status_of_a_refusal},
    {"client error of this time", test_error_of_this_time},
    {"client waits until the deadline", test_waits_until_the_deadline},
    {"client waits for the reply at once", test_waits_at_once},
    {"client take out without blocking", test_take_out_without_blocking},
    {"client id before and after the greeting", test_id_before_and_after_the_greeting},
    {"client: room of the program", test_room_of_the_program},
    {"client acquire waits for a late leave", test_acquire_waits_for_a_late_leave},
    {"client two tasks with one handle", test_two_tasks_with_one_handle},
    {"client tells of what nobody waits for", test_told_of_what_nobody_waits_for},
    {"client from alone to shared", test_downgrade},
    {"client from alone to shared: nobody gets in while it is cancelled", test_downgrade_cancelled},
    {"client lost before acquire returns", test_lost_before_acquire_returns},
    {"client hold adopted", test_adopt},
    {"client lost hold adopted", test_adopt_a_loss},
    {"client close waits for send", test_close_waits_for_send},
    {"client keep wakes who sleeps", test_keep_wakes},
    {"client who leaves wakes another one", test_heir},
    {"client stop wakes who receives", test_stop_wakes},
    {"client who polls is woken, too", test_poll_beside},
    {0}};
