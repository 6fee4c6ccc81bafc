/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The engine with servers that move: Sentinels, nodes of a cluster, replicas that are promoted, and
 * replicas that have to acknowledge. As in test_engine.c, the test plays the servers, and here the
 * transport's list of seeds, too.
 */
#include "follow_fixture.h"

#define WAIT_FOR_2 "*3\r\n$4\r\nWAIT\r\n$1\r\n2\r\n$3\r\n500\r\n"

/* One seed, and so many replicas that acknowledge. */
static void set_up_replicas(uint32_t count)
{
  set_up_seeds(1);
  topology.replicas = count;
  follow();
}

static void open_connection(void)
{
  CHECK_EQUAL(fairlock_engine_wants(&engine, now), FAIRLOCK_CONNECT);
  fairlock_engine_opening(&engine, now);
  fairlock_engine_opened(&engine, now);
  CHECK(sends("HELLO\r\n"));
}

static bool connects_at_once(void)
{
  return fairlock_engine_wants(&engine, now) == FAIRLOCK_CONNECT;
}

/* The answer to ROLE of a master that has got so far, with so many replicas. */
static void say_role(int64_t offset, unsigned replicas)
{
  uint8_t text[128];
  struct resp_writer writer;
  resp_writer_init(&writer, text, sizeof text - 1, 0);
  resp_write_header(&writer, RESP_ARRAY, 3);
  resp_write_bulk(&writer, "master", 6);
  resp_write_header(&writer, RESP_INTEGER, offset);
  resp_write_header(&writer, RESP_ARRAY, replicas);
  for (unsigned i = 0; i < replicas; i++) {
    resp_write_header(&writer, RESP_ARRAY, 3);
    resp_write_bulk(&writer, "127.0.0.1", 9);
    resp_write_bulk(&writer, "6380", 4);
    resp_write_bulk(&writer, "0", 1);
  }
  text[writer.used] = 0;
  feed((char *)text);
}

/* Connects, and hears who that is; the rest of the greeting is still to come. */
static void meet(const char *mode, const char *role)
{
  open_connection();
  say_hello("7.0.15", mode, role);
}

static void greet_as(const char *version, const char *mode, const char *role)
{
  open_connection();
  CHECK(strstr(output, "TIME") != NULL);
  say_hello(version, mode, role);
  if (strstr(output, "ROLE") != NULL) say_role(50, 0);
  tell_time(0);
  CHECK(fairlock_engine_ready(&engine));
}

static void greet_node(void)
{
  greet_as("7.0.15", "cluster", "master");
}

static void greet_master(void)
{
  greet_as("8.0.6", "standalone", "master");
}

static void try_a(void)
{
  CHECK_EQUAL(fairlock_engine_acquire(&a, 0, 1000, now), FAIRLOCK_PENDING);
}

static void wait_a(uint32_t lease_ms)
{
  CHECK_EQUAL(fairlock_engine_acquire(&a, FAIRLOCK_FOREVER, lease_ms, now), FAIRLOCK_PENDING);
}

/* MOVED, with the slot of this lock. */
static void say_moved(const char *name, const char *where)
{
  char text[128] = "-MOVED ";
  size_t size = 7;
  size += resp_format_number(text + size, fairlock_slot(name, strlen(name)));
  text[size++] = ' ';
  memcpy(text + size, where, strlen(where));
  size += strlen(where);
  memcpy(text + size, "\r\n", 3);
  feed(text);
}

/* A request for another slot than a's. */
static void make_b_another(const char *name)
{
  CHECK_EQUAL(fairlock_engine_remove(&b, now), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_engine_add(&engine, &b, name, strlen(name)), FAIRLOCK_OK);
}

/* Releases all that it holds. */
static void release(struct fairlock *handle)
{
  CHECK_EQUAL(fairlock_engine_release(handle, now), FAIRLOCK_PENDING);
  drain();
  answer(1, 0, 0);
}

/* Without a request, connected to a node. */
static void follow_to_node(void)
{
  follow();
  fairlock_engine_connect(&engine, now);
  greet_node();
}

static void connect_to_node(void)
{
  set_up_seeds(1);
  follow_to_node();
}

/* a's request is written to a node, or to a master with two replicas, and not answered. */
static void follow_with_try(void)
{
  follow();
  try_a();
  greet_node();
  CHECK(sends("EVALSHA"));
}

static void try_at_node(void)
{
  set_up_seeds(1);
  follow_with_try();
}

static void wait_at_node(uint32_t lease_ms)
{
  follow_seeds(1);
  wait_a(lease_ms);
  greet_node();
  CHECK(sends("SSUBSCRIBE\r\n"));
}

static void try_replicated(void)
{
  set_up_replicas(2);
  try_a();
  greet_master();
  CHECK(sends("EVALSHA"));
}

static void listen_at_master(void)
{
  greet_master();
  CHECK(sends("SUBSCRIBE\r\n"));
  push("subscribe", CHANNEL("1"), NULL);
}

static void wait_replicated(void)
{
  set_up_replicas(2);
  wait_a(FAIRLOCK_RENEW);
  listen_at_master();
}

/* The server's answer with a hold, or with a place in the queue, and its replicas'. */
static void acknowledge(int64_t token)
{
  answer(1, token, 0);
  feed(":2\r\n");
}

static void acknowledge_place(void)
{
  answer(0, -1, 0);
  feed(":2\r\n");
}

static void acknowledge_too_few(void)
{
  answer(1, 77, 0);
  feed(":1\r\n");
}

/* The slot has moved, and the client goes after it; move_door(): and asks there. */
static void move(const char *name, const char *where)
{
  say_moved(name, where);
  close_connection();
  CHECK(strcmp(place, where) == 0);
}

static void move_door(const char *where)
{
  move("door", where);
  greet_node();
  drain();
}

/* A Sentinel has been asked for the master of "doors". */
static void ask_sentinel(void)
{
  open_connection();
  CHECK(strstr(output, "TIME") == NULL);
  CHECK(
      strstr(output, "*3\r\n$8\r\nSENTINEL\r\n$23\r\nGET-MASTER-ADDR-BY-NAME\r\n$5\r\ndoors\r\n"));
  say_hello("7.0.15", "sentinel", "sentinel");
  CHECK(!fairlock_engine_ready(&engine));
}

/* A try with so many Sentinels. */
static void set_up_sentinels(unsigned count)
{
  set_up_seeds(count);
  topology.service = "doors";
  follow();
  try_a();
}

static void test_follow_refuses(void)
{
  set_up_seeds(1);
  topology.replicas_ms = 1001; /* of 2000 */
  CHECK_EQUAL(fairlock_engine_follow(&engine, &topology, aim, &seeds), FAIRLOCK_INVALID);
  topology.replicas_ms = 1000;
  topology.replicas = UINT32_MAX;
  CHECK_EQUAL(fairlock_engine_follow(&engine, &topology, aim, &seeds), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_engine_follow(&engine, &topology, aim, &seeds),
              FAIRLOCK_INVALID); /* twice */
  CHECK_EQUAL(fairlock_engine_init(&engine, &config), FAIRLOCK_OK);
  topology.service = "doors";
  CHECK_EQUAL(fairlock_engine_follow(&engine, &topology, NULL, NULL), FAIRLOCK_INVALID);
  topology.address_size = 1;
  CHECK_EQUAL(fairlock_engine_follow(&engine, &topology, aim, &seeds), FAIRLOCK_INVALID);
  topology.address_size = 2;
  CHECK_EQUAL(fairlock_engine_follow(&engine, &topology, aim, &seeds), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_engine_init(&engine, &config), FAIRLOCK_OK);
  topology.cluster = true;
  CHECK_EQUAL(fairlock_engine_follow(&engine, &topology, aim, &seeds), FAIRLOCK_INVALID);
  topology.cluster = false;
  topology.address = NULL;
  CHECK_EQUAL(fairlock_engine_follow(&engine, &topology, aim, &seeds), FAIRLOCK_INVALID);
  set_up_seeds(1);
  config.response_ms = 999;
  topology.replicas_ms = 500;
  CHECK_EQUAL(fairlock_engine_init(&engine, &config), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_engine_follow(&engine, &topology, aim, &seeds), FAIRLOCK_INVALID);
}

static void test_defaults(void)
{
  follow_seeds(1);
  CHECK_EQUAL(engine.connect_ms, 1000);
  CHECK_EQUAL(engine.offline_ms, 60000);
  CHECK(!engine.synced);
  config.connect_ms = 300;
  config.offline_ms = 400;
  CHECK_EQUAL(fairlock_engine_init(&engine, &config), FAIRLOCK_OK);
  follow();
  CHECK_EQUAL(engine.connect_ms, 300);
  CHECK_EQUAL(engine.offline_ms, 400);
}

/* Sentinel */

static void test_sentinel_greeting(void)
{
  set_up_seeds(1);
  config.user = "app";
  config.password = "secret";
  config.client_name = "gate";
  topology.service = "doors";
  topology.sentinel_user = "watcher";
  topology.sentinel_password = "other";
  follow();
  fairlock_engine_connect(&engine, now);
  open_connection();
  CHECK(strcmp(output,
               "*7\r\n$5\r\nHELLO\r\n$1\r\n3\r\n$4\r\nAUTH\r\n$7\r\nwatcher\r\n$5\r\nother"
               "\r\n$7\r\nSETNAME\r\n$4\r\ngate\r\n"
               "*3\r\n$8\r\nSENTINEL\r\n$23\r\nGET-MASTER-ADDR-BY-NAME\r\n$5\r\ndoors\r\n") == 0);
  say_hello("7.0.15", "sentinel", "sentinel");
  feed("*2\r\n$9\r\nlocalhost\r\n$4\r\n6380\r\n");
  close_connection();
  open_connection();
  CHECK(strstr(output, "$3\r\napp\r\n$6\r\nsecret\r\n") != NULL);
  CHECK(strstr(output, "SENTINEL") == NULL);
}

static void test_sentinel_without_password(void)
{
  set_up_sentinels(1);
  open_connection();
  CHECK(strncmp(output, "*2\r\n$5\r\nHELLO\r\n$1\r\n3\r\n*3\r\n$8\r\nSENTINEL", 38) == 0);
}

static void test_sentinel_redirects(void)
{
  set_up_sentinels(1);
  ask_sentinel();
  feed("*2\r\n$8\r\n10.0.0.2\r\n");
  CHECK_EQUAL(seed, 1);
  feed("$4\r\n6380\r\n");
  close_connection();
  CHECK(strcmp(place, "10.0.0.2:6380") == 0);
  CHECK_EQUAL(seed, 0);
  CHECK_EQUAL(a.result, FAIRLOCK_PENDING);
  greet_master();
  CHECK(sends("EVALSHA"));
  answer(1, 77, 0);
  CHECK_EQUAL(a.result, FAIRLOCK_OK);
}

/* A Sentinel sends us to a master. It does not change why there are no useful answers. */
static void be_sent_to_the_master(int status)
{
  ask_sentinel();
  CHECK_EQUAL(engine.last_error, status);
  feed("*2\r\n$8\r\n10.0.0.2\r\n$4\r\n6380\r\n");
  close_connection();
  CHECK_EQUAL(engine.last_error, status);
  now += engine.backoff_ms; /* after four in a row */
  open_connection();
  CHECK_EQUAL(engine.last_error, status);
}

/* Why there are no useful answers stays known until there is one, however often we are sent on. */
static void test_sentinel_is_no_answer(void)
{
  set_up_sentinels(2);
  int status = FAIRLOCK_OK;
  for (int i = 0; i < 6; i++) {
    now += engine.backoff_ms;
    fairlock_engine_connect(&engine, now);
    be_sent_to_the_master(status);
    status = i < 4 ? FAIRLOCK_DENIED : FAIRLOCK_UNREACHABLE;
    if (i < 4) feed("-WRONGPASS no\r\n");
    else fairlock_engine_fail(&engine, FAIRLOCK_UNREACHABLE);
    close_connection();
    CHECK_EQUAL(engine.last_error, status);
  }
  now += engine.backoff_ms;
  try_a();
  be_sent_to_the_master(status);
  say_hello("7.0.15", "standalone", "master");
  tell_time(0);
  CHECK(sends("EVALSHA"));
  answer(1, 77, 0);
  CHECK_EQUAL(a.result, FAIRLOCK_OK);
  CHECK_EQUAL(engine.last_error, FAIRLOCK_OK);
}

/* The master that broke is not asked again: its Sentinel may know another one. */
static void test_sentinel_is_asked_again(void)
{
  set_up_sentinels(2);
  ask_sentinel();
  feed("*2\r\n$8\r\n10.0.0.2\r\n$4\r\n6380\r\n");
  close_connection();
  greet_master();
  drain();
  break_connection();
  CHECK_EQUAL(seed, 2);
  ask_sentinel();
}

static void test_sentinel_of_many_elements(void)
{
  set_up_sentinels(1);
  open_connection();
  feed("%0\r\n*2\r\n$8\r\n10.0.0.2\r\n$4\r\n6380\r\n");
  CHECK(strcmp(place, "10.0.0.2:6380") == 0);
}

static void test_sentinel_does_not_know(void)
{
  static const char *const nothing[] = {"_\r\n", "*-1\r\n", "$-1\r\n", "*2\r\n_\r\n"};
  for (size_t i = 0; i < sizeof nothing / sizeof *nothing; i++) {
    set_up_sentinels(1);
    ask_sentinel();
    feed(nothing[i]);
    CHECK_EQUAL(a.result, FAIRLOCK_REFUSED);
    CHECK(strcmp(engine.error, "unknown service") == 0);
    close_connection();
  }
}

/* Another Sentinel may know what this one does not. */
static void test_sentinel_next_knows(void)
{
  set_up_sentinels(2);
  ask_sentinel();
  feed("_\r\n");
  CHECK_EQUAL(a.result, FAIRLOCK_PENDING);
  close_connection();
  CHECK_EQUAL(seed, 2);
  ask_sentinel();
  feed("*2\r\n$8\r\n10.0.0.2\r\n$4\r\n6380\r\n");
  CHECK_EQUAL(seed, 0);
  close_connection();
  greet_master();
  CHECK(sends("EVALSHA"));
  CHECK_EQUAL(a.result, FAIRLOCK_PENDING);
}

static void test_sentinels_all_do_not_know(void)
{
  set_up_sentinels(2);
  ask_sentinel();
  feed("_\r\n");
  close_connection();
  ask_sentinel();
  feed("_\r\n");
  CHECK_EQUAL(a.result, FAIRLOCK_REFUSED);
}

static void test_sentinel_talks_nonsense(void)
{
  static char text[400];
  memset(text, 'x', sizeof text);
  memcpy(text, "*2\r\n$300\r\n", 10);
  memcpy(text + 10 + 300, "\r\n", 3);
  const char *const nonsense[] = {"+OK\r\n",
                                  ":2\r\n",
                                  "*3\r\n",
                                  "*0\r\n",
                                  "%2\r\n",
                                  "*2\r\n:1\r\n",
                                  "$4\r\n6380\r\n",
                                  "*2\r\n$1\r\nh\r\n:6380\r\n",
                                  "*2\r\n*1\r\n_\r\n",
                                  text};
  for (size_t i = 0; i < sizeof nonsense / sizeof *nonsense; i++) {
    set_up_sentinels(1);
    ask_sentinel();
    feed(nonsense[i]);
    close_connection();
    CHECK_EQUAL(a.result, FAIRLOCK_PROTOCOL);
    CHECK_EQUAL(seed, 1);
  }
}

/* The address has room for so many bytes. */
static void resolve_into(size_t size, int result)
{
  set_up_seeds(1);
  topology.service = "doors";
  topology.address_size = size;
  follow();
  try_a();
  ask_sentinel();
  feed("*2\r\n$9\r\nlocalhost\r\n$4\r\n6380\r\n");
  CHECK_EQUAL(a.result, result);
  for (size_t i = size; i < sizeof address; i++)
    CHECK_EQUAL(address[i], 'x');
}

static void test_sentinel_address_too_long(void)
{
  resolve_into(9, FAIRLOCK_TOO_LONG);
  resolve_into(10, FAIRLOCK_TOO_LONG);
  resolve_into(11, FAIRLOCK_TOO_LONG);
  resolve_into(14, FAIRLOCK_TOO_LONG);
  resolve_into(15, FAIRLOCK_PENDING);
}

static void test_sentinel_leads_nowhere(void)
{
  set_up_sentinels(1);
  goes_anywhere = false;
  ask_sentinel();
  feed("*2\r\n$9\r\nlocalhost\r\n$4\r\n6380\r\n");
  CHECK_EQUAL(a.result, FAIRLOCK_TOO_LONG);
}

static void test_sentinel_refuses(void)
{
  set_up_sentinels(2);
  open_connection();
  feed("-NOAUTH HELLO must be called\r\n");
  CHECK_EQUAL(a.result, FAIRLOCK_PENDING);
  close_connection();
  ask_sentinel();
  feed("-NOPERM this user has no permissions\r\n");
  CHECK_EQUAL(a.result, FAIRLOCK_DENIED);
  close_connection();
  CHECK_EQUAL(seed, 1);
}

static void test_sentinel_is_none(void)
{
  set_up_sentinels(1);
  open_connection();
  feed("*0\r\n");
  CHECK_EQUAL(a.result, FAIRLOCK_UNSUPPORTED);
}

/* MOVED */

static void test_moved_is_followed(void)
{
  try_at_node();
  say_moved("door", "10.0.0.7:7001");
  CHECK_EQUAL(a.result, FAIRLOCK_PENDING);
  CHECK_EQUAL(engine.error[0], 0);
  close_connection();
  CHECK(strcmp(place, "10.0.0.7:7001") == 0);
  greet_node();
  CHECK(sends("EVALSHA"));
  answer(1, 77, 0);
  CHECK_EQUAL(a.result, FAIRLOCK_OK);
}

/*
 * A waiter subscribes first, so its SUBSCRIBE is answered by MOVED. It goes on waiting where it is
 * redirected to.
 */
static void test_moved_waiter_waits_on(void)
{
  wait_at_node(FAIRLOCK_RENEW);
  move("door", "10.0.0.7:7001");
  greet_node();
  CHECK(sends("SSUBSCRIBE\r\n"));
  push("ssubscribe", CHANNEL("1"), NULL);
  answer(0, -1, 0);
  CHECK_EQUAL(a.result, FAIRLOCK_PENDING);
  CHECK_EQUAL(a.leave_result, 0);
  push("smessage", CHANNEL("1"), "0");
  CHECK(sends("EVALSHA"));
  answer(1, 77, 0);
  CHECK_EQUAL(a.result, FAIRLOCK_OK);
}

/* The server that it is redirected to does not answer: that ends the wait, not MOVED. */
static void test_moved_to_nobody(void)
{
  set_up_seeds(1);
  config.offline_ms = 500;
  CHECK_EQUAL(fairlock_engine_init(&engine, &config), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_engine_add(&engine, &a, "door", 4), FAIRLOCK_OK);
  follow();
  wait_a(FAIRLOCK_RENEW);
  greet_node();
  drain();
  move("door", "10.0.0.7:7001");
  fairlock_engine_opening(&engine, now);
  fairlock_engine_closed(&engine, FAIRLOCK_UNREACHABLE, now);
  pass(600);
  CHECK_EQUAL(a.result, FAIRLOCK_UNREACHABLE);
}

static void moved_from(const char *first, const char *then)
{
  try_at_node();
  if (first != NULL) {
    move_door(first);
  }
  say_moved("door", then);
  close_connection();
}

static void test_moved_to_another_port(void)
{
  moved_from(NULL, ":7002");
  CHECK(strcmp(place, ":7002") == 0);
  moved_from(NULL, "?:7002");
  CHECK(strcmp(place, ":7002") == 0);
  moved_from("10.0.0.7:7001", ":7002");
  CHECK(strcmp(place, "10.0.0.7:7002") == 0);
  moved_from("10.0.0.7:7001", "?:70022");
  CHECK(strcmp(place, "10.0.0.7:70022") == 0);
  moved_from("2001:db8::7:7001", ":7002");
  CHECK(strcmp(place, "2001:db8::7:7002") == 0);
  moved_from(":7001", ":7002");
  CHECK(strcmp(place, ":7002") == 0);
  moved_from("10.0.0.7:7001", "x:7002");
  CHECK(strcmp(place, "x:7002") == 0);
  moved_from("10.0.0.7:7001", "?x:7002");
  CHECK(strcmp(place, "?x:7002") == 0);
}

/* After a break, the connection is not to the address of the last redirection. */
static void test_moved_after_a_break(void)
{
  wait_at_node(1000);
  move("door", "10.0.0.7:7001");
  greet_node();
  break_connection();
  CHECK_EQUAL(seed, 1);
  pass(100);
  greet_node();
  drain();
  say_moved("door", ":7002");
  CHECK(strcmp(place, ":7002") == 0);
}

/* A redirection that is not followed ends the try. */
static void not_followed(const char *text)
{
  try_a();
  CHECK(sends("EVALSHA"));
  feed(text);
  CHECK_EQUAL(a.result, FAIRLOCK_WRONG_SHARD);
  CHECK_EQUAL(fairlock_engine_wants(&engine, now) & FAIRLOCK_CLOSE, 0);
  CHECK_EQUAL(place[0], 0);
}

static void test_moved_malformed(void)
{
  connect_to_node();
  CHECK_EQUAL(fairlock_slot("door", 4), 8632);
  not_followed("-MOVED\r\n");
  not_followed("-MOVED \r\n");
  not_followed("-MOVED 8632\r\n");
  not_followed("-MOVED 8632 \r\n");
  not_followed("-MOVED  10.0.0.7:7001\r\n");
  not_followed("-MOVED 8632 10.0.0.7\r\n");
  not_followed("-MOVED x 10.0.0.7:7001\r\n");
  not_followed("-MOVED 8632 7 10.0.0.7:7001\r\n");
  not_followed("-MOVED 8631 10.0.0.7:7001\r\n");
  CHECK_EQUAL(engine.counters.connections, 1);
}

/* It is cut where the receive buffer ends: nobody knows which port that was. */
static void test_moved_too_long_to_receive(void)
{
  static char text[400];
  memset(text, 'h', sizeof text);
  memcpy(text, "-MOVED 8632 ", 12);
  text[270] = ':';
  memset(text + 271, '7', 50);
  memcpy(text + 321, "\r\n", 3);
  static char room[400];
  set_up_seeds(1);
  topology.address = room;
  topology.address_size = sizeof room;
  follow_to_node();
  not_followed(text);
}

static void test_moved_without_room(void)
{
  set_up_seeds(1);
  topology.address_size = 14;
  follow_to_node();
  try_a();
  drain();
  say_moved("door", "10.0.0.71:7001");
  CHECK_EQUAL(a.result, FAIRLOCK_WRONG_SHARD);
  CHECK_EQUAL(fairlock_engine_wants(&engine, now) & FAIRLOCK_CLOSE, 0);
  try_a();
  drain();
  say_moved("door", "10.0.0.7:7001");
  CHECK_EQUAL(a.result, FAIRLOCK_PENDING);
  close_connection();
}

/* Follows; a's try is sent to another node, and written there. */
static void try_a_elsewhere(void)
{
  follow_with_try();
  move_door("10.0.0.7:7001");
}

/* The host that answered is the same when a redirection from it was not followed. */
static void test_moved_to_another_port_later(void)
{
  static char room[16];
  set_up_seeds(1);
  memset(room, 'x', sizeof room);
  topology.address = room + 1;
  topology.address_size = 14;
  try_a_elsewhere();
  say_moved("door", "10.0.0.71:7001");
  CHECK_EQUAL(a.result, FAIRLOCK_WRONG_SHARD);
  try_a();
  drain();
  say_moved("door", ":7002");
  CHECK(strcmp(place, "10.0.0.7:7002") == 0);
  close_connection();
  CHECK_EQUAL(room[0], 'x');
  CHECK_EQUAL(room[15], 'x');
}

/*
 * An address that the transport refused is not that of the host that answers: a port of that host is
 * not looked for there.
 */
static void test_moved_to_another_port_of_nobody(void)
{
  set_up_seeds(1);
  try_a_elsewhere();
  goes_anywhere = false;
  say_moved("door", "unknown.example:7001");
  CHECK_EQUAL(a.result, FAIRLOCK_WRONG_SHARD);
  goes_anywhere = true;
  try_a();
  drain();
  say_moved("door", ":7002");
  CHECK(strcmp(place, "10.0.0.7:7001") == 0);
  CHECK_EQUAL(a.result, FAIRLOCK_WRONG_SHARD);
  try_a();
  drain();
  say_moved("door", "10.0.0.8:7003"); /* one that can be followed is */
  close_connection();
  CHECK(strcmp(place, "10.0.0.8:7003") == 0);
  greet_node();
  drain();
  say_moved("door", "?:7004");
  close_connection();
  CHECK(strcmp(place, "10.0.0.8:7004") == 0);
}

/* An address is a string: what follows a NUL would be lost. */
static void test_moved_to_a_nul(void)
{
  static const char text[] = "-MOVED 8632 10.0.0.7\0:7001\r\n";
  try_at_node();
  feed_bytes(text, sizeof text - 1);
  CHECK_EQUAL(a.result, FAIRLOCK_WRONG_SHARD);
  CHECK_EQUAL(place[0], 0);
}

static void test_moved_without_aim(void)
{
  set_up_seeds(1);
  CHECK_EQUAL(fairlock_engine_follow(&engine, &topology, NULL, NULL), FAIRLOCK_OK);
  fairlock_engine_connect(&engine, now);
  greet_node();
  not_followed("-MOVED 8632 10.0.0.7:7001\r\n");
  set_up_seeds(1);
  topology.address = NULL;
  follow_to_node();
  not_followed("-MOVED 8632 10.0.0.7:7001\r\n");
  follow_seeds(1);
  goes_anywhere = false;
  fairlock_engine_connect(&engine, now);
  greet_node();
  not_followed("-MOVED 8632 10.0.0.7:7001\r\n");
}

/* Without a topology it is an error as others are. */
static void test_moved_without_topology(void)
{
  set_up();
  greet();
  place[0] = 0;
  not_followed("-MOVED 8632 10.0.0.7:7001\r\n");
  CHECK(strcmp(engine.error, "MOVED 8632 10.0.0.7:7001") == 0);
}

/* The bulk kind of error is followed, too. */
static void test_moved_in_bulk(void)
{
  try_at_node();
  feed("!24\r\nMOVED 8632 10.0.0.7:7001\r\n");
  close_connection();
  CHECK(strcmp(place, "10.0.0.7:7001") == 0);
}

/* b holds `name`; a is told that its own lock is elsewhere. */
static void move_beside(const char *name)
{
  set_up_seeds(1);
  make_b_another(name);
  follow();
  CHECK_EQUAL(fairlock_engine_acquire(&b, 0, FAIRLOCK_RENEW, now), FAIRLOCK_PENDING);
  greet_node();
  drain();
  answer(1, 5, 0);
  CHECK_EQUAL(b.result, FAIRLOCK_OK);
  try_a();
  drain();
  say_moved("door", "10.0.0.7:7001");
}

static void test_moved_with_another_slot_in_use(void)
{
  move_beside("gate");
  CHECK_EQUAL(a.result, FAIRLOCK_WRONG_SHARD);
  CHECK_EQUAL(fairlock_engine_wants(&engine, now), FAIRLOCK_RECEIVE);
  CHECK(fairlock_engine_remaining_ms(&b, now) > 0);
  CHECK_EQUAL(engine.counters.connections, 1);
}

/* So does the SSUBSCRIBE of a waiter. */
static void test_moved_waiter_with_another_slot_in_use(void)
{
  move_beside("gate");
  wait_a(1000);
  CHECK(sends("SSUBSCRIBE"));
  say_moved("door", "10.0.0.7:7001");
  CHECK_EQUAL(a.result, FAIRLOCK_PENDING);
  say_moved("door", "10.0.0.7:7001");
  CHECK_EQUAL(a.result, FAIRLOCK_WRONG_SHARD);
  CHECK_EQUAL(fairlock_engine_wants(&engine, now), FAIRLOCK_RECEIVE);
}

static void test_moved_with_the_same_slot_in_use(void)
{
  move_beside("{door}7");
  CHECK_EQUAL(a.result, FAIRLOCK_PENDING);
  close_connection();
  CHECK(fairlock_engine_remaining_ms(&b, now) > 0);
  greet_node();
  CHECK(sends("EVALSHA"));
}

/*
 * Nor is one whose operation is over, and which leaves in the background: its acquire was under way
 * when the first connection was redirected.
 */
static void test_moved_with_another_slot_left(void)
{
  set_up_seeds(1);
  make_b_another("gate");
  follow();
  wait_a(1000);
  greet_node();
  CHECK(sends("SSUBSCRIBE"));
  say_moved("door", "10.0.0.7:7001"); /* the acquire behind it is in doubt */
  close_connection();
  greet_node();
  drain();
  push("ssubscribe", CHANNEL("1"), NULL);
  answer(1, 77, 0);
  CHECK_EQUAL(a.result, FAIRLOCK_OK);
  release(&a);
  CHECK_EQUAL(a.result, FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_engine_acquire(&b, 0, 1000, now), FAIRLOCK_PENDING);
  drain();
  say_moved("gate", "10.0.0.8:7001");
  CHECK_EQUAL(b.result, FAIRLOCK_PENDING);
  close_connection();
  CHECK(strcmp(place, "10.0.0.8:7001") == 0);
}

/* Two locks on one node: b holds `gate`, a holds `door`, whose slot moves away. */
static void hold_both(void)
{
  move_beside("gate");
  wait_a(FAIRLOCK_RENEW);
  CHECK(sends("SSUBSCRIBE"));
  push("ssubscribe", CHANNEL("1"), NULL);
  answer(1, 77, 0);
  CHECK_EQUAL(a.result, FAIRLOCK_OK);
}

/* What a has to give back is asked for again, not at once, and again it is elsewhere. */
static void meets_moved(const char *request)
{
  pass(499);
  CHECK(!sends(request));
  pass(1);
  CHECK(sends(request));
  say_moved("door", "10.0.0.7:7001");
  CHECK_EQUAL(fairlock_engine_wants(&engine, now), FAIRLOCK_RECEIVE);
}

/* b releases, and nothing keeps the client on this node any more. */
static void leave_with_b(const char *request)
{
  release(&b);
  pass(500);
  CHECK(sends(request));
  move("door", "10.0.0.7:7001");
  greet_node();
  CHECK(sends(request));
  answer(1, 0, 0);
  CHECK(sends_nothing());
  CHECK_EQUAL(fairlock_engine_remove(&b, now), FAIRLOCK_OK);
}

/* A release is not dropped: it goes to its node when that is possible. */
static void test_moved_release(void)
{
  hold_both();
  engine.error[0] = 0;
  CHECK_EQUAL(fairlock_engine_release(&a, now), FAIRLOCK_PENDING);
  CHECK(sends(" 0 0 77\r\n"));
  say_moved("door", "10.0.0.7:7001");
  CHECK_EQUAL(a.result, FAIRLOCK_WRONG_SHARD);
  CHECK(strncmp(engine.error, "MOVED", 5) == 0);
  CHECK_EQUAL(engine.last_error, FAIRLOCK_OK);
  for (int i = 0; i < 3; i++)
    meets_moved(" 0 0 77\r\n");
  leave_with_b(" 0 0 77\r\n");
  CHECK_EQUAL(losses, 0);
}

/* Nor is the leave of one that is taken out, if it has something there. */
static void test_moved_remove(void)
{
  hold_both();
  now += 60000; /* the hold is lost: nobody has renewed it */
  CHECK_EQUAL(fairlock_engine_release(&a, now), FAIRLOCK_LOST);
  CHECK_EQUAL(fairlock_engine_remove(&a, now), FAIRLOCK_PENDING);
  hold_both();
  CHECK_EQUAL(fairlock_engine_release(&a, now), FAIRLOCK_PENDING);
  CHECK(sends(" 0 0 77\r\n"));
  say_moved("door", "10.0.0.7:7001");
  CHECK_EQUAL(fairlock_engine_remove(&a, now), FAIRLOCK_PENDING);
  CHECK(sends("SUNSUBSCRIBE"));
  say_moved("door", "10.0.0.7:7001");
  say_moved("door", "10.0.0.7:7001");
  CHECK_EQUAL(a.result, FAIRLOCK_PENDING);
  meets_moved(" 0 0\r\n");
  CHECK_EQUAL(a.result, FAIRLOCK_PENDING);
  leave_with_b(" 0 0\r\n");
  CHECK_EQUAL(a.result, FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_engine_remove(&a, now), FAIRLOCK_OK);
}

/* One that has nothing there, but its subscription, need not wait. */
static void test_moved_remove_of_nothing(void)
{
  hold_both();
  release(&a);
  CHECK_EQUAL(fairlock_engine_remove(&a, now), FAIRLOCK_PENDING);
  CHECK(sends("SUNSUBSCRIBE"));
  say_moved("door", "10.0.0.7:7001");
  say_moved("door", "10.0.0.7:7001");
  CHECK_EQUAL(a.result, FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_engine_remove(&a, now), FAIRLOCK_OK);
}

/* a gives back in the background, and is told to wait; then b asks, and a asks again. */
static void give_back_behind(uint32_t wait_ms, uint32_t lease_ms)
{
  set_up_seeds(1);
  config.offline_ms = 1000;
  CHECK_EQUAL(fairlock_engine_init(&engine, &config), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_engine_add(&engine, &a, "door", 4), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_engine_add(&engine, &b, "gate", 4), FAIRLOCK_OK);
  follow_with_try();
  answer(1, 77, 0);
  CHECK_EQUAL(fairlock_engine_release(&a, now), FAIRLOCK_PENDING);
  drain();
  break_connection();
  pass(1000);
  CHECK_EQUAL(a.result, FAIRLOCK_UNKNOWN);
  fairlock_engine_connect(&engine, now);
  greet_node();
  CHECK(sends(" 0 0 77\r\n"));
  feed("-TRYAGAIN\r\n");
  CHECK_EQUAL(fairlock_engine_acquire(&b, wait_ms, lease_ms, now), FAIRLOCK_PENDING);
  CHECK(sends("EVALSHA"));
  pass(500);
  CHECK(sends(" 0 0 77\r\n"));
}

/* What is being given back here is answered before the client goes elsewhere. */
static void test_moved_behind_a_release(void)
{
  give_back_behind(0, 1000);
  say_moved("gate", "10.0.0.8:7001");
  CHECK_EQUAL(fairlock_engine_wants(&engine, now) & FAIRLOCK_CLOSE, 0);
  CHECK_EQUAL(b.result, FAIRLOCK_PENDING);
  CHECK(sends("EVALSHA"));
  answer(1, 0, 0);
  move("gate", "10.0.0.8:7001");
  CHECK_EQUAL(b.result, FAIRLOCK_PENDING);
}

/* One that waits listens again, too. */
static void test_moved_waiter_behind_a_release(void)
{
  give_back_behind(FAIRLOCK_FOREVER, 1000);
  say_moved("gate", "10.0.0.8:7001");
  say_moved("gate", "10.0.0.8:7001");
  CHECK_EQUAL(fairlock_engine_wants(&engine, now) & FAIRLOCK_CLOSE, 0);
  CHECK(sends("SSUBSCRIBE"));
  feed("-TRYAGAIN\r\n"); /* a can be given back by nobody at present */
  move("gate", "10.0.0.8:7001");
  CHECK_EQUAL(b.result, FAIRLOCK_PENDING);
  greet_node();
  CHECK(sends("SSUBSCRIBE"));
  push("ssubscribe", "redisson_lock__channel:{gate}:" ID ".a2.08s7li100001:2", NULL);
  answer(0, -1, 0);
  CHECK_EQUAL(b.result, FAIRLOCK_PENDING);
  CHECK(sends_nothing()); /* it waits */
  pass(500);
  CHECK(sends(" 0 0 77\r\n")); /* and here */
}

/* Two that are given back at two nodes do not wait for each other. */
static void test_moved_two_releases(void)
{
  give_back_behind(0, 1000);
  say_moved("gate", "10.0.0.8:7001");
  drain();
  say_moved("door", "10.0.0.7:7001"); /* b is in use */
  CHECK_EQUAL(fairlock_engine_wants(&engine, now) & FAIRLOCK_CLOSE, 0);
  answer(1, 5, 0);
  CHECK_EQUAL(fairlock_engine_release(&b, now), FAIRLOCK_PENDING);
  pass(500);
  CHECK(sends(" 0 0 5\r\n"));
  CHECK(strstr(output, " 0 0 77\r\n") != NULL);
  bool a_first = strstr(output, " 0 0 77\r\n") < strstr(output, " 0 0 5\r\n");
  say_moved(a_first ? "door" : "gate", a_first ? "10.0.0.7:7001" : "10.0.0.8:7001");
  say_moved(a_first ? "gate" : "door", a_first ? "10.0.0.8:7001" : "10.0.0.7:7001");
  close_connection();
}

/* A handle that neither waits nor holds does not keep the client on its node. */
static void test_moved_with_another_slot_not_in_use(void)
{
  set_up_seeds(1);
  make_b_another("gate");
  follow_with_try();
  say_moved("door", "10.0.0.7:7001");
  CHECK_EQUAL(a.result, FAIRLOCK_PENDING);
  close_connection();
  CHECK(strcmp(place, "10.0.0.7:7001") == 0);
}

static void test_moved_round_in_circles(void)
{
  follow_seeds(1);
  try_a();
  greet_node();
  for (int i = 0; i < 4; i++) {
    drain();
    move("door", "10.0.0.7:7001");
    CHECK(connects_at_once());
    greet_node();
  }
  drain();
  move("door", "10.0.0.7:7001");
  CHECK(!connects_at_once());
  CHECK_EQUAL(a.result, FAIRLOCK_PENDING);
  pass(1000);
  greet_node();
  drain();
  answer(0, -1, 0); /* which is an end to the row */
  CHECK_EQUAL(a.result, FAIRLOCK_BUSY);
  try_a();
  drain();
  move("door", "10.0.0.7:7001");
  CHECK(connects_at_once());
}

/* Seeds */

static void test_seeds_in_turn(void)
{
  follow_seeds(3);
  try_a();
  fairlock_engine_connect(&engine, now);
  for (unsigned i = 1; i <= 3; i++) {
    CHECK_EQUAL(seed, i);
    CHECK_EQUAL(a.result, FAIRLOCK_PENDING);
    CHECK(engine.connect_requested);
    CHECK(connects_at_once());
    fairlock_engine_opening(&engine, now);
    fairlock_engine_closed(&engine, FAIRLOCK_UNREACHABLE, now);
  }
  CHECK_EQUAL(a.result, FAIRLOCK_UNREACHABLE);
  CHECK(!engine.connect_requested);
  CHECK_EQUAL(seed, 1);
}

/* One that is not trusted, too; with the last one, waiting ends. */
static void test_seeds_untrusted(void)
{
  follow_seeds(2);
  wait_a(1000);
  for (unsigned i = 1; i <= 2; i++) {
    CHECK_EQUAL(seed, i);
    CHECK_EQUAL(a.result, FAIRLOCK_PENDING);
    CHECK(connects_at_once());
    fairlock_engine_opening(&engine, now);
    fairlock_engine_fail(&engine, FAIRLOCK_UNTRUSTED);
    fairlock_engine_closed(&engine, FAIRLOCK_UNREACHABLE, now);
  }
  CHECK_EQUAL(a.result, FAIRLOCK_UNTRUSTED);
  pass(5000);
  CHECK_EQUAL(fairlock_engine_wants(&engine, now), 0);
}

/* A silent seed gives way to the next after connect_ms. */
static void test_seed_is_silent(void)
{
  follow_seeds(2);
  wait_a(1000);
  fairlock_engine_opening(&engine, now);
  pass(999);
  CHECK_EQUAL(fairlock_engine_wants(&engine, now), FAIRLOCK_CONNECT);
  pass(1);
  close_connection();
  CHECK_EQUAL(seed, 2);
  CHECK(connects_at_once());
}

static void test_pauses_are_short(void)
{
  follow_seeds(2);
  wait_a(1000);
  for (int i = 0; i < 20; i++) {
    CHECK(connects_at_once());
    fairlock_engine_opening(&engine, now);
    fairlock_engine_closed(&engine, FAIRLOCK_UNREACHABLE, now);
    CHECK(i % 2 == 0 ? connects_at_once() : !connects_at_once());
    CHECK(engine.backoff_ms <= 1000);
    if (i > 12 && i % 2 == 1) CHECK_EQUAL(engine.backoff_ms, 1000);
    pass(1000);
  }
  CHECK_EQUAL(a.result, FAIRLOCK_PENDING);
}

static void test_seed_refuses(void)
{
  follow_seeds(2);
  wait_a(1000);
  open_connection();
  feed("-NOAUTH HELLO must be called\r\n");
  close_connection();
  CHECK_EQUAL(a.result, FAIRLOCK_PENDING);
  open_connection();
  feed("-WRONGPASS no\r\n");
  CHECK_EQUAL(a.result, FAIRLOCK_DENIED);
}

/* HELLO */

static void test_seed_is_a_replica(void)
{
  follow_seeds(2);
  try_a();
  meet("standalone", "replica");
  CHECK_EQUAL(a.result, FAIRLOCK_PENDING);
  close_connection();
  meet("standalone", "replica");
  close_connection();
  CHECK_EQUAL(a.result, FAIRLOCK_READONLY);
  /* what was said before is forgotten */
  pass(1000);
  try_a();
  meet("standalone", "master");
  CHECK_EQUAL(fairlock_engine_wants(&engine, now), FAIRLOCK_RECEIVE);
}

static void seed_says(const char *mode, int64_t offset, unsigned replicas)
{
  open_connection();
  CHECK(strstr(output, "*1\r\n$4\r\nROLE\r\n*1\r\n$4\r\nTIME\r\n") != NULL);
  say_hello("7.0.15", mode, "master");
  say_role(offset, replicas);
}

/* Two clients that name two masters, which know nothing of each other, must not both hold. */
static void test_seeds_are_strangers(void)
{
  follow_seeds(2);
  try_a();
  CHECK_EQUAL(fairlock_engine_acquire(&b, FAIRLOCK_FOREVER, 1000, now), FAIRLOCK_PENDING);
  seed_says("standalone", 0, 0);
  close_connection();
  CHECK_EQUAL(a.result, FAIRLOCK_PENDING);
  seed_says("standalone", 0, 0);
  close_connection();
  CHECK_EQUAL(a.result, FAIRLOCK_UNAVAILABLE);
  CHECK(strstr(engine.error, "without replicas") != NULL);
  /* it may pass: a replica comes back */
  CHECK_EQUAL(b.result, FAIRLOCK_PENDING);
  pass(1000);
  seed_says("standalone", 0, 2);
  tell_time(0);
  CHECK(sends("EVALSHA"));
  break_connection();
  seed_says("standalone", 1, 0); /* promoted, or its replica has gone */
  tell_time(0);
  CHECK(sends("EVALSHA"));
}

/* The role is asked for before another database is selected. */
static void test_seeds_with_a_database(void)
{
  set_up_seeds(2);
  config.database = 3;
  follow();
  try_a();
  open_connection();
  CHECK(strstr(output, "$4\r\nROLE\r\n*2\r\n$6\r\nSELECT\r\n$1\r\n3\r\n*1\r\n$4\r\nTIME\r\n") !=
        NULL);
  say_hello("7.0.15", "standalone", "master");
  say_role(1, 0);
  feed("+OK\r\n");
  tell_time(0);
  CHECK(sends("EVALSHA"));
}

/* A user who may not ask for the role, at a server on its own and in a cluster. */
static void test_seeds_refuse_the_role(void)
{
  static const char refusal[] = "-NOPERM User x has no permissions to run the 'role' command\r\n";
  follow_seeds(2);
  try_a();
  meet("standalone", "master");
  feed(refusal);
  close_connection();
  meet("standalone", "master");
  feed(refusal);
  CHECK_EQUAL(a.result, FAIRLOCK_DENIED);
  close_connection();
  pass(1000);
  try_a();
  meet("cluster", "master");
  feed(refusal);
  tell_time(0);
  CHECK(sends("EVALSHA"));
}

/* Nodes of a cluster need no replicas. */
static void test_nodes_without_replicas(void)
{
  follow_seeds(2);
  try_a();
  seed_says("cluster", 0, 0);
  tell_time(0);
  CHECK(sends("EVALSHA"));
}

/* The answer to ROLE is none. */
static void test_role_is_nonsense(void)
{
  static const char *const answers[] = {"+OK\r\n",
                                        ":-1\r\n",
                                        "*0\r\n",
                                        "*2\r\n:-1\r\n*0\r\n",
                                        "*1\r\n$1\r\n1\r\n",
                                        "%1\r\n+a\r\n+b\r\n",
                                        "_\r\n"};
  for (size_t i = 0; i < sizeof answers / sizeof *answers; i++) {
    follow_seeds(2);
    wait_a(1000);
    meet("standalone", "master");
    feed(answers[i]);
    close_connection();
  }
}

static void set_up_cluster(unsigned count)
{
  set_up_seeds(count);
  topology.cluster = true;
  follow();
}

/* What is declared to be a cluster is one, or nobody holds anything there. */
static void test_seed_is_no_node(void)
{
  set_up_cluster(2);
  wait_a(1000);
  open_connection();
  CHECK(strstr(output, "ROLE") == NULL);
  say_hello("7.0.15", "standalone", "master");
  CHECK_EQUAL(a.result, FAIRLOCK_PENDING);
  close_connection();
  meet("standalone", "master");
  CHECK_EQUAL(a.result, FAIRLOCK_REFUSED);
  CHECK(strcmp(engine.error, "not a node of a cluster") == 0);
  close_connection();
  pass(1000);
  wait_a(1000);
  greet_node();
  CHECK(sends("EVALSHA"));
}

/* Nor is a server to which a node sends us. */
static void test_moved_to_no_node(void)
{
  set_up_cluster(1);
  try_a();
  greet_node();
  drain();
  move("door", "10.0.0.7:7001");
  meet("standalone", "master");
  CHECK_EQUAL(a.result, FAIRLOCK_REFUSED);
}

/* A replica in a cluster knows where the slot is. */
static void test_replica_in_a_cluster(void)
{
  follow_seeds(1);
  try_a();
  greet_as("7.0.15", "cluster", "replica");
  drain();
  move("door", "10.0.0.7:7001");
}

/* What a waiter says and hears in such a cluster. */
static void subscribes(const char *version, const char *mode, bool sharded)
{
  follow_seeds(1);
  wait_a(1000);
  greet_as(version, mode, "master");
  CHECK_EQUAL(sends("*2\r\n$10\r\nSSUBSCRIBE\r\n"), sharded);
  CHECK_EQUAL(strstr(output, "*2\r\n$9\r\nSUBSCRIBE\r\n") != NULL, !sharded);
}

static void test_versions(void)
{
  subscribes("6.2.5", "cluster", false);
  subscribes("7.0.15", "cluster", true);
  subscribes("6.10.2", "cluster", false);
  subscribes("7", "cluster", false);
  subscribes("8.1.1", "cluster", true);
  subscribes("10.0.0", "cluster", true);
  subscribes("8.0.6", "standalone", false);
  subscribes("", "cluster", false);
}

/* A version that nobody can read: it is cut, or no text. */
static void test_version_is_none(void)
{
  static char text[500];
  static const char end[] = "\r\n$4\r\nmode\r\n$7\r\ncluster\r\n";
  memset(text, '9', sizeof text);
  memcpy(text, "%2\r\n$7\r\nversion\r\n$400\r\n", 23);
  memcpy(text + 23 + 400, end, sizeof end);
  follow_seeds(1);
  wait_a(1000);
  open_connection();
  feed(text);
  tell_time(0);
  CHECK(fairlock_engine_ready(&engine));
  CHECK(sends("$9\r\nSUBSCRIBE"));
  break_connection();
  pass(1000);
  open_connection();
  feed("%2\r\n$7\r\nversion\r\n:9\r\n$4\r\nmode\r\n$7\r\ncluster\r\n");
  tell_time(0);
  CHECK(sends("$9\r\nSUBSCRIBE"));
}

/* Shards */

static void queue_in_shard(void)
{
  wait_at_node(FAIRLOCK_RENEW);
  push("ssubscribe", CHANNEL("1"), NULL);
  answer(0, -1, 0);
  CHECK_EQUAL(a.result, FAIRLOCK_PENDING);
  CHECK(sends_nothing());
}

static void test_shard_messages(void)
{
  queue_in_shard();
  push("smessage", CHANNEL("1"), "0");
  CHECK(sends("EVALSHA"));
  answer(0, -1, 0);
}

static void test_shard_grant(void)
{
  queue_in_shard();
  push("smessage", CHANNEL("1"), "99 1700000000000 5000");
  CHECK_EQUAL(a.result, FAIRLOCK_OK);
  CHECK_EQUAL(a.token, 99);
}

/* Words that are not among them, elements that are none, and plain words. */
static void test_shard_oddities(void)
{
  queue_in_shard();
  feed(">3\r\n$0\r\n\r\n$1\r\nx\r\n$1\r\n0\r\n");
  feed(">3\r\n:1\r\n:2\r\n:3\r\n");
  feed(">2\r\n*1\r\n$8\r\nsmessage\r\n$1\r\nx\r\n");
  feed(">1\r\n$1\r\ns\r\n");
  push("spmessage", CHANNEL("1"), "0");
  push("ssmessage", CHANNEL("1"), "0");
  push("sub", CHANNEL("1"), "0");
  push("message", CHANNEL("1"), "0");
  push("subscribe", CHANNEL("1"), NULL);
  CHECK_EQUAL(fairlock_engine_wants(&engine, now), FAIRLOCK_RECEIVE);
  CHECK(sends_nothing());
}

static void test_shard_unsubscribes(void)
{
  queue_in_shard();
  CHECK_EQUAL(fairlock_engine_cancel(&a, now), FAIRLOCK_OK);
  drain();
  answer(1, 0, 0);
  CHECK_EQUAL(a.result, FAIRLOCK_CANCELLED);
  CHECK_EQUAL(fairlock_engine_remove(&a, now), FAIRLOCK_PENDING);
  CHECK(sends("*2\r\n$12\r\nSUNSUBSCRIBE\r\n"));
  push("sunsubscribe", CHANNEL("1"), NULL);
  CHECK_EQUAL(fairlock_engine_wants(&engine, now), FAIRLOCK_RECEIVE);
  answer(1, 0, 0);
  CHECK_EQUAL(a.result, FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_engine_remove(&a, now), FAIRLOCK_OK);
}

/* The slot has gone to another node: the waiter listens anew, wherever it is then. */
static void leave_shard(void)
{
  push("sunsubscribe", CHANNEL("1"), NULL);
  close_connection();
  CHECK_EQUAL(a.result, FAIRLOCK_PENDING);
  pass(50);
  greet_node();
  CHECK(sends("SSUBSCRIBE"));
}

static void test_shard_is_gone(void)
{
  queue_in_shard();
  leave_shard();
}

/* The same while somebody else begins to listen, whose answer is not the next one. */
static void test_shard_is_gone_while_another_subscribes(void)
{
  queue_in_shard();
  pass(2000);
  drain(); /* a heartbeat, which is not answered yet */
  CHECK_EQUAL(fairlock_engine_acquire(&b, 60000, FAIRLOCK_RENEW, now), FAIRLOCK_PENDING);
  CHECK(sends("SSUBSCRIBE"));
  leave_shard();
}

/* The same when the answer to somebody else's SSUBSCRIBE is the next one. */
static void test_shard_is_gone_before_the_next_answer(void)
{
  queue_in_shard();
  CHECK_EQUAL(fairlock_engine_acquire(&b, 60000, FAIRLOCK_RENEW, now), FAIRLOCK_PENDING);
  CHECK(sends("SSUBSCRIBE"));
  leave_shard();
  push("sunsubscribe", "", NULL);
  close_connection();
}

/* Without shards nobody says that, and it is ignored. */
static void test_unsubscribe_without_shards(void)
{
  follow_seeds(1);
  wait_a(FAIRLOCK_RENEW);
  listen_at_master();
  answer(0, -1, 0);
  push("unsubscribe", CHANNEL("1"), NULL);
  CHECK_EQUAL(fairlock_engine_wants(&engine, now), FAIRLOCK_RECEIVE);
}

/* Errors that pass, and masters that are none any more */

static void test_migrating_slot_unasked(void)
{
  try_at_node();
  feed("-TRYAGAIN Multiple keys\r\n");
  CHECK_EQUAL(a.result, FAIRLOCK_UNAVAILABLE);
  feed("-TRYAGAIN Multiple keys\r\n");
  CHECK_EQUAL(fairlock_engine_wants(&engine, now), FAIRLOCK_CLOSE);
}

static void test_migrating_slot(void)
{
  static const char *const errors[] = {
      "-ASK 8632 10.0.0.7:7001\r\n", "-TRYAGAIN Multiple keys\r\n", "-CLUSTERDOWN Hash slot\r\n",
      "-MASTERDOWN Link\r\n",
      /* a script has removed a key: Redis 7, Valkey 9, Redis 6.2 */
      "-ERR Script attempted to access a non local key in a "
      "cluster node script: 0123, on @user_script:5.\r\n",
      "-ERR Attempted to access a non local key in a cluster node "
      "script: on @user_script:5.\r\n",
      "-ERR Error running script (call to f_0123): "
      "@user_script:7: @user_script: 7: Lua script attempted to "
      "access a non local key in a cluster node\r\n"};
  for (size_t i = 0; i < sizeof errors / sizeof *errors; i++) {
    try_at_node();
    feed(errors[i]);
    CHECK_EQUAL(a.result, FAIRLOCK_UNAVAILABLE);
    wait_a(1000);
    drain();
    push("ssubscribe", CHANNEL("1"), NULL);
    feed(errors[i]);
    CHECK_EQUAL(a.result, FAIRLOCK_PENDING);
    CHECK_EQUAL(place[0], 0);
    CHECK_EQUAL(fairlock_engine_wants(&engine, now), FAIRLOCK_RECEIVE);
    pass(499);
    CHECK(sends_nothing());
    pass(1);
    CHECK(sends("EVALSHA"));
  }
}

/* The error ends the connection, and a try with it; a waiter and a holder go on elsewhere. */
static void test_readonly(void)
{
  follow_seeds(2);
  try_a();
  greet_master();
  drain();
  feed("-READONLY You can't write against a read only replica.\r\n");
  CHECK_EQUAL(a.result, FAIRLOCK_READONLY);
  close_connection();
  CHECK_EQUAL(seed, 2);
  wait_a(FAIRLOCK_RENEW);
  listen_at_master();
  feed("-READONLY You can't write against a read only replica.\r\n");
  CHECK_EQUAL(a.result, FAIRLOCK_PENDING);
  close_connection();
  pass(1000);
  listen_at_master();
  answer(1, 77, 0);
  CHECK_EQUAL(a.result, FAIRLOCK_OK);
  pass(10000);
  CHECK(sends("EVALSHA"));
  feed("-READONLY You can't write against a read only replica.\r\n");
  CHECK(fairlock_engine_remaining_ms(&a, now) > 0);
  close_connection();
  CHECK_EQUAL(losses, 0);
}

/* Replicas */

static void test_wait_for_replicas(void)
{
  set_up_replicas(2);
  CHECK(engine.synced);
  CHECK_EQUAL(fairlock_engine_acquire(&a, 0, FAIRLOCK_RENEW, now), FAIRLOCK_PENDING);
  greet_master();
  CHECK(sends(WAIT_FOR_2));
  CHECK(output_size > sizeof WAIT_FOR_2 && strncmp(output, "*8\r\n$7\r\nEVALSHA", 15) == 0);
  answer(1, 77, 0);
  CHECK_EQUAL(a.result, FAIRLOCK_PENDING);
  CHECK_EQUAL(fairlock_engine_remaining_ms(&a, now), 0);
  pass(300);
  feed(":2\r\n");
  CHECK_EQUAL(a.result, FAIRLOCK_OK);
  CHECK_EQUAL(a.token, 77);
  /* 30 s since it was sent */
  CHECK(fairlock_engine_remaining_ms(&a, now) <= 29700);
  CHECK(fairlock_engine_remaining_ms(&a, now) > 29000);
  /* re-entry */
  CHECK_EQUAL(fairlock_engine_acquire(&a, 0, FAIRLOCK_RENEW, now), FAIRLOCK_PENDING);
  CHECK(sends(WAIT_FOR_2));
  answer(1, 77, 0);
  CHECK_EQUAL(a.holds, 1);
  feed(":3\r\n");
  CHECK_EQUAL(a.result, FAIRLOCK_OK);
  CHECK_EQUAL(a.holds, 2);
  /* renewal */
  pass(10000);
  CHECK(sends(WAIT_FOR_2));
  answer(1, 77, 0);
  CHECK(fairlock_engine_remaining_ms(&a, now) < 20000);
  feed(":2\r\n");
  CHECK(fairlock_engine_remaining_ms(&a, now) > 29000);
}

/* a has two holds with replicas, and releases one. */
static void release_one_of_two(void)
{
  try_replicated();
  acknowledge(77);
  CHECK_EQUAL(fairlock_engine_acquire(&a, 0, 20000, now), FAIRLOCK_PENDING);
  drain();
  acknowledge(77);
  pass(10000);
  CHECK_EQUAL(fairlock_engine_release(&a, now), FAIRLOCK_PENDING);
}

/* Which sets the lease anew, as a re-entry does; the last release sets none. */
static void test_wait_for_a_partial_release(void)
{
  release_one_of_two();
  CHECK(sends(WAIT_FOR_2));
  answer(1, 77, 0);
  CHECK_EQUAL(a.result, FAIRLOCK_PENDING);
  CHECK(fairlock_engine_remaining_ms(&a, now) < 10000);
  feed(":2\r\n");
  CHECK_EQUAL(a.result, FAIRLOCK_OK);
  CHECK(fairlock_engine_remaining_ms(&a, now) > 19000);
  CHECK_EQUAL(fairlock_engine_release(&a, now), FAIRLOCK_PENDING);
  CHECK(sends("EVALSHA") && strstr(output, "WAIT") == NULL);
  answer(1, 0, 0);
  CHECK_EQUAL(a.result, FAIRLOCK_OK);
}

/* One that too few replicas have acknowledged extends nothing, and comes again. */
static void test_unsynced_partial_release(void)
{
  release_one_of_two();
  drain();
  acknowledge_too_few();
  CHECK_EQUAL(a.result, FAIRLOCK_PENDING);
  CHECK(fairlock_engine_remaining_ms(&a, now) < 10000);
  pass(500);
  CHECK(sends(WAIT_FOR_2));
  acknowledge(77);
  CHECK_EQUAL(a.result, FAIRLOCK_OK);
  CHECK_EQUAL(a.holds, 1);
}

/*
 * Too few of them until the patience ends: what the server has of it is given back before the
 * caller is told, who may end the program then.
 */
static void test_too_few_for_too_long(void)
{
  int rounds = 0;
  set_up_replicas(2);
  CHECK_EQUAL(fairlock_engine_acquire(&a, FAIRLOCK_FOREVER, 30000, now), FAIRLOCK_PENDING);
  listen_at_master();
  do {
    acknowledge_too_few();
    CHECK_EQUAL(a.result, FAIRLOCK_PENDING);
    pass(500);
    CHECK(sends("EVALSHA"));
    rounds++;
  } while (strstr(output, "WAIT") != NULL && rounds < 200);
  CHECK(rounds >= 119 && rounds <= 121); /* a minute */
  CHECK_EQUAL(a.result, FAIRLOCK_PENDING);
  answer(1, 0, 0);
  CHECK_EQUAL(a.result, FAIRLOCK_UNSYNCED);
}

/* Follows with these time-outs, and waits for replicas for replicas_ms, a text, if not told else. */
static void check_default(uint32_t waiter_ms, uint32_t response_ms, const char *replicas_ms)
{
  set_up_seeds(1);
  config.waiter_ms = waiter_ms;
  config.response_ms = response_ms;
  topology.replicas = 2;
  CHECK_EQUAL(fairlock_engine_init(&engine, &config), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_engine_add(&engine, &a, "door", 4), FAIRLOCK_OK);
  follow();
  try_a();
  greet_master();
  CHECK(sends("WAIT\r\n$1\r\n2\r\n"));
  CHECK(strstr(output, replicas_ms) != NULL);
}

/* The default fits any time for an answer. A WAIT of 0 would never end. */
static void test_default_replicas_ms(void)
{
  check_default(FAIRLOCK_WAITER_MIN_MS, 0, "2\r\n$3\r\n400\r\n");
  check_default(2500, 0, "2\r\n$3\r\n500\r\n");
  check_default(FAIRLOCK_WAITER_MAX_MS, 0, "2\r\n$3\r\n500\r\n");
  check_default(5000, 998, "2\r\n$3\r\n499\r\n");
  check_default(5000, 1, "2\r\n$1\r\n1\r\n");
}

static void test_wait_in_the_queue(void)
{
  set_up_seeds(1);
  topology.replicas = 2;
  topology.replicas_ms = 70;
  follow();
  wait_a(FAIRLOCK_RENEW);
  greet_master();
  CHECK(sends("SUBSCRIBE"));
  CHECK(strstr(output, "WAIT\r\n$1\r\n2\r\n$2\r\n70\r\n") != NULL);
  push("subscribe", CHANNEL("1"), NULL);
  answer(0, -1, 0); /* no hold: it counts at once */
  pass(1);
  push("message", CHANNEL("1"), "0");
  CHECK(sends_nothing());
  feed(":0\r\n");
  CHECK(sends("EVALSHA"));
  acknowledge(77);
  CHECK_EQUAL(a.result, FAIRLOCK_OK);
  CHECK_EQUAL(engine.counters.polled, 1);
}

/* A cancelled wait is left without a WAIT. */
static void test_leave_without_wait(void)
{
  wait_replicated();
  acknowledge_place();
  CHECK_EQUAL(fairlock_engine_cancel(&a, now), FAIRLOCK_OK);
  CHECK(sends("EVALSHA") && strstr(output, "WAIT") == NULL);
  answer(1, 0, 0);
  CHECK_EQUAL(a.result, FAIRLOCK_CANCELLED);
  CHECK_EQUAL(fairlock_engine_force(&a, &anyone, now), FAIRLOCK_PENDING);
  CHECK(sends("EVALSHA") && strstr(output, "WAIT") == NULL);
  answer(0, 0, 0);
  CHECK_EQUAL(a.result, FAIRLOCK_NOT_HELD);
}

/* Too few replicas: the hold that is there all the same is ended. */
static void test_too_few_on_a_try(void)
{
  try_replicated();
  acknowledge_too_few();
  CHECK_EQUAL(a.result, FAIRLOCK_PENDING);
  CHECK_EQUAL(fairlock_engine_remaining_ms(&a, now), 0);
  CHECK(sends("EVALSHA"));
  CHECK(strstr(output, " 0 0\r\n") != NULL && strstr(output, "WAIT") == NULL);
  answer(1, 0, 0);
  CHECK_EQUAL(a.result, FAIRLOCK_UNSYNCED);
  CHECK(sends_nothing());
}

static void test_too_few_on_a_wait(void)
{
  set_up_replicas(2);
  CHECK_EQUAL(fairlock_engine_acquire(&a, 3000, 1000, now), FAIRLOCK_PENDING);
  listen_at_master();
  for (int i = 0; i < 6; i++) {
    acknowledge_too_few();
    CHECK_EQUAL(a.result, FAIRLOCK_PENDING);
    CHECK(sends_nothing());
    pass(500);
    CHECK(sends("EVALSHA"));
  }
  CHECK(strstr(output, "WAIT") == NULL); /* time is over: it leaves */
  answer(1, 0, 0);
  CHECK_EQUAL(a.result, FAIRLOCK_UNSYNCED);
}

static void test_too_few_at_first(void)
{
  wait_replicated();
  acknowledge_too_few();
  pass(500);
  CHECK(sends(WAIT_FOR_2));
  acknowledge(77);
  CHECK_EQUAL(a.result, FAIRLOCK_OK);
}

/* a holds with two replicas, and its lease is renewed. */
static void hold_a(void)
{
  set_up_replicas(2);
  CHECK_EQUAL(fairlock_engine_acquire(&a, 0, FAIRLOCK_RENEW, now), FAIRLOCK_PENDING);
  greet_master();
  drain();
  acknowledge(77);
  CHECK_EQUAL(a.result, FAIRLOCK_OK);
}

/* The first renewal is sent. Returns when the lease ends without it. */
static uint32_t renew_a(void)
{
  hold_a();
  uint32_t end = now + fairlock_engine_remaining_ms(&a, now);
  pass(10000);
  CHECK(sends(WAIT_FOR_2));
  return end;
}

static void test_too_few_on_a_renewal(void)
{
  uint32_t end = renew_a();
  while ((int32_t)(end - now) > 500) {
    acknowledge_too_few();
    CHECK_EQUAL(fairlock_engine_remaining_ms(&a, now), end - now);
    pass(500);
    CHECK(sends(WAIT_FOR_2));
  }
  CHECK_EQUAL(losses, 0);
  pass(end - now);
  CHECK_EQUAL(losses, 1);
  CHECK_EQUAL(fairlock_engine_release(&a, now), FAIRLOCK_LOST);
}

static void test_too_few_on_a_renewal_at_first(void)
{
  (void)renew_a();
  answer(1, 77, 0);
  feed(":0\r\n");
  pass(500);
  drain();
  acknowledge(77);
  CHECK(fairlock_engine_remaining_ms(&a, now) > 29000);
}

static void test_too_few_on_a_reentry(void)
{
  hold_a();
  CHECK_EQUAL(fairlock_engine_acquire(&a, 0, FAIRLOCK_RENEW, now), FAIRLOCK_PENDING);
  drain();
  acknowledge_too_few();
  CHECK_EQUAL(a.result, FAIRLOCK_PENDING);
  CHECK_EQUAL(a.holds, 1);
  pass(500);
  CHECK(sends(" -2 "));
  acknowledge(77);
  CHECK_EQUAL(a.holds, 2);
}

/* The hold was ended meanwhile, by the server's word. */
static void test_renewal_finds_nothing(void)
{
  (void)renew_a();
  answer(0, 0, 0);
  CHECK_EQUAL(losses, 1);
  feed(":2\r\n");
  CHECK_EQUAL(fairlock_engine_wants(&engine, now), FAIRLOCK_RECEIVE);
}

/* An error is as good as too few. */
static void test_wait_is_refused(void)
{
  try_replicated();
  answer(1, 77, 0);
  feed("-NOPERM this user has no permissions to run 'wait'\r\n"); /* the script was carried out */
  CHECK_EQUAL(a.result, FAIRLOCK_PENDING);
  CHECK(sends(" 0 0\r\n"));
  answer(1, 0, 0);
  CHECK_EQUAL(a.result, FAIRLOCK_DENIED);
  CHECK(strcmp(engine.error, "NOPERM this user has no permissions to run 'wait'") == 0);
}

static void test_wait_is_refused_to_a_holder(void)
{
  uint32_t end = renew_a();
  answer(1, 77, 0);
  feed("-LOADING\r\n");
  CHECK_EQUAL(fairlock_engine_remaining_ms(&a, now), end - now);
  pass(500);
  CHECK(sends(WAIT_FOR_2));
}

static void test_wait_is_answered_with_nonsense(void)
{
  static const char *const nonsense[] = {"+OK\r\n", "$1\r\n2\r\n", "*2\r\n:2\r\n:2\r\n", "_\r\n",
                                         "*3\r\n"};
  for (size_t i = 0; i < sizeof nonsense / sizeof *nonsense; i++) {
    try_replicated();
    answer(1, 77, 0);
    feed(nonsense[i]);
    CHECK_EQUAL(fairlock_engine_remaining_ms(&a, now), 0);
    close_connection();
    pass(50);
    greet_master();
    CHECK(sends("EVALSHA")); /* it tries again */
    acknowledge(78);
    CHECK_EQUAL(a.result, FAIRLOCK_OK);
  }
}

static void test_wait_is_unblocked(void)
{
  wait_replicated();
  answer(1, 77, 0);
  feed("-UNBLOCKED force unblock from blocking operation, instance state changed\r\n");
  CHECK_EQUAL(a.result, FAIRLOCK_PENDING);
  close_connection();
  pass(1000);
  greet_master();
  CHECK(sends(WAIT_FOR_2));
  push("subscribe", CHANNEL("1"), NULL);
  acknowledge(80);
  CHECK_EQUAL(a.result, FAIRLOCK_OK);
}

static void test_renewal_is_unblocked(void)
{
  uint32_t end = renew_a();
  answer(1, 77, 0);
  feed("-UNBLOCKED force unblock from blocking operation, instance state changed\r\n");
  close_connection();
  CHECK_EQUAL(fairlock_engine_remaining_ms(&a, now), end - now);
  CHECK_EQUAL(losses, 0);
}

/* Scripts that are no arrays of three numbers break the connection here, too. */
static void test_answers_that_are_none(void)
{
  static const char *const nonsense[] = {"*3\r\n:1\r\n:77\r\n$1\r\nx\r\n",
                                         "~3\r\n:1\r\n:77\r\n:5\r\n",
                                         "*2\r\n:1\r\n:77\r\n",
                                         "*4\r\n:1\r\n:77\r\n:5\r\n:5\r\n",
                                         "*3\r\nx\r\n",
                                         ":1\r\n",
                                         "*3\r\n_\r\n:77\r\n:5\r\n",
                                         "*3\r\n:1\r\n:7\r\n*1\r\n:1\r\n"};
  for (size_t i = 0; i < sizeof nonsense / sizeof *nonsense; i++) {
    (void)renew_a();
    feed(nonsense[i]);
    CHECK(fairlock_engine_remaining_ms(&a, now) < 20000);
    close_connection();
  }
}

static void test_nothing_is_sent_during_a_wait(void)
{
  (void)renew_a();
  CHECK_EQUAL(fairlock_engine_acquire(&b, 0, 1000, now), FAIRLOCK_PENDING);
  CHECK(sends_nothing());
  CHECK_EQUAL(fairlock_engine_wants(&engine, now), FAIRLOCK_RECEIVE); /* or a loop would spin */
  answer(1, 77, 0);
  CHECK(sends_nothing());
  CHECK_EQUAL(fairlock_engine_wants(&engine, now), FAIRLOCK_RECEIVE);
  feed(":2\r\n");
  CHECK_EQUAL(fairlock_engine_wants(&engine, now), FAIRLOCK_RECEIVE | FAIRLOCK_SEND);
  CHECK(sends(WAIT_FOR_2));
  answer(0, 500, 0);
  CHECK_EQUAL(b.result, FAIRLOCK_BUSY);
  CHECK_EQUAL(fairlock_engine_release(&a, now), FAIRLOCK_PENDING);
  CHECK(sends_nothing()); /* b's WAIT is not answered */
  feed(":0\r\n");
  CHECK(sends("EVALSHA"));
}

/* It has left nothing, so there is nothing to end. */
static void test_busy_with_replicas(void)
{
  try_replicated();
  answer(0, 500, 0);
  CHECK_EQUAL(a.result, FAIRLOCK_BUSY);
  feed(":0\r\n");
  CHECK(sends_nothing());
}

/* A script that is not known: its WAIT is answered all the same. */
static void test_noscript_and_wait(void)
{
  try_replicated();
  feed("-NOSCRIPT No matching script.\r\n");
  CHECK(sends_nothing());
  feed(":2\r\n");
  CHECK_EQUAL(a.result, FAIRLOCK_PENDING);
  CHECK(sends("EVAL\r\n"));
  CHECK(strstr(output, WAIT_FOR_2) != NULL);
  acknowledge(77);
  CHECK_EQUAL(a.result, FAIRLOCK_OK);
}

static void test_grant_makes_ask(void)
{
  wait_replicated();
  acknowledge_place();
  grant(CHANNEL("2"), "99", 0); /* nobody's */
  CHECK(sends_nothing());
  grant(CHANNEL("1"), "99", 0);
  CHECK_EQUAL(a.result, FAIRLOCK_PENDING);
  CHECK(sends(WAIT_FOR_2));
  answer(1, 99, 0);
  CHECK_EQUAL(a.result, FAIRLOCK_PENDING);
  feed(":2\r\n");
  CHECK_EQUAL(a.result, FAIRLOCK_OK);
  CHECK_EQUAL(engine.counters.granted, 0);
}

/* One that comes for an idle handle is given back as it is without replicas. */
static void test_grant_to_an_idle_handle(void)
{
  wait_replicated();
  acknowledge_place();
  CHECK_EQUAL(fairlock_engine_cancel(&a, now), FAIRLOCK_OK);
  drain();
  answer(1, 0, 0);
  grant(CHANNEL("1"), "99", 0);
  CHECK(sends("EVALSHA") && strstr(output, "WAIT") == NULL);
}

static void test_cancelled_between_the_answers(void)
{
  wait_replicated();
  answer(1, 77, 0);
  CHECK_EQUAL(fairlock_engine_cancel(&a, now), FAIRLOCK_OK);
  CHECK(sends_nothing());
  CHECK_EQUAL(a.result, FAIRLOCK_PENDING);
  feed(":2\r\n");
  CHECK_EQUAL(a.result, FAIRLOCK_PENDING);
  CHECK(sends(" 0 0\r\n")); /* the hold has to be ended */
  answer(1, 0, 0);
  CHECK_EQUAL(a.result, FAIRLOCK_CANCELLED);
}

static void test_cancelled_before_an_error(void)
{
  wait_replicated();
  answer(1, 77, 0);
  CHECK_EQUAL(fairlock_engine_cancel(&a, now), FAIRLOCK_OK);
  feed("-ERR no\r\n");
  CHECK(sends(" 0 0\r\n"));
  answer(1, 0, 0);
  CHECK_EQUAL(a.result, FAIRLOCK_CANCELLED);
}

static void test_messages_between_the_answers(void)
{
  wait_replicated();
  answer(1, 77, 0);
  push("message", CHANNEL("1"), "5 6 7");
  feed(":2\r\n");
  CHECK_EQUAL(a.result, FAIRLOCK_OK);
  CHECK_EQUAL(a.token, 77);
}

static void test_broken_between_the_answers(void)
{
  wait_replicated();
  answer(1, 77, 0);
  break_connection();
  CHECK_EQUAL(a.result, FAIRLOCK_PENDING);
  pass(1000);
  greet_master();
  CHECK(sends(WAIT_FOR_2));
  push("subscribe", CHANNEL("1"), NULL);
  feed(":2\r\n"); /* which is not the answer to a WAIT on this connection */
  CHECK_EQUAL(a.result, FAIRLOCK_PENDING);
  close_connection();
}

/* No answer to a WAIT means that the connection is dead. */
static void test_wait_without_an_answer(void)
{
  (void)renew_a();
  answer(1, 77, 0);
  pass(1999);
  CHECK_EQUAL(fairlock_engine_wants(&engine, now) & FAIRLOCK_CLOSE, 0);
  pass(1);
  close_connection();
}

/*
 * Nor does one to a request that nobody cares about any more: nothing else is sent before, so the
 * leave would wait for ever.
 */
static void test_given_up_without_an_answer(void)
{
  set_up_replicas(2);
  wait_a(FAIRLOCK_RENEW);
  greet_master();
  drain();
  pass(500);
  CHECK_EQUAL(fairlock_engine_cancel(&a, now), FAIRLOCK_OK);
  CHECK(sends_nothing());
  pass(1499);
  CHECK_EQUAL(fairlock_engine_wants(&engine, now) & FAIRLOCK_CLOSE, 0);
  CHECK_EQUAL(fairlock_engine_deadline(&engine, now), 1);
  pass(1);
  close_connection();
  CHECK_EQUAL(a.result, FAIRLOCK_CANCELLED);
}

static void test_wait_in_a_small_buffer(void)
{
  size_t size;
  set_up_seeds(1);
  config.send_size = FAIRLOCK_SEND_MIN;
  topology.replicas = 2;
  follow();
  try_a();
  greet_master();
  CHECK(sends(WAIT_FOR_2));
  size_t all = output_size + 3; /* the next one names a token of two digits */
  acknowledge(77);
  CHECK_EQUAL(a.result, FAIRLOCK_OK);
  release(&a);
  /* the script is answered before the last of the WAIT is sent */
  try_a();
  for (size_t done = 0; done < all - 1; done += size) {
    (void)fairlock_engine_output(&engine, &size, now);
    if (done + size == all) size--;
    fairlock_engine_sent(&engine, size);
  }
  answer(1, 78, 0);
  CHECK_EQUAL(a.result, FAIRLOCK_PENDING);
  CHECK_EQUAL(fairlock_engine_wants(&engine, now) & FAIRLOCK_CLOSE, 0);
  drain();
  CHECK_EQUAL(output_size, 1);
  feed(":2\r\n");
  CHECK_EQUAL(a.result, FAIRLOCK_OK);
  CHECK_EQUAL(a.token, 78);
}

/* Sends what is in the send buffer. Returns false if nothing was. */
static bool sends_a_piece(void)
{
  size_t size;
  const uint8_t *bytes = fairlock_engine_output(&engine, &size, now);
  CHECK(size <= sizeof output - 1 - output_size);
  memcpy(output + output_size, bytes, size);
  output_size += size;
  output[output_size] = 0;
  fairlock_engine_sent(&engine, size);
  return size > 0;
}

/*
 * The script is answered before its WAIT is written to the end, and so late that response_ms grows:
 * what remains of the WAIT still belongs to what was sent of it.
 */
static void test_wait_does_not_change(void)
{
  static const char wait[] = "*3\r\n$4\r\nWAIT\r\n$1\r\n2\r\n$2\r\n95\r\n";
  size_t script = 0;
  for (size_t size = sizeof send_buffer; size >= FAIRLOCK_SEND_MIN; size--) {
    set_up_seeds(1);
    config.response_ms = 190;
    config.send_size = size;
    CHECK_EQUAL(fairlock_engine_init(&engine, &config), FAIRLOCK_OK);
    CHECK_EQUAL(fairlock_engine_add(&engine, &a, "door", 4), FAIRLOCK_OK);
    topology.replicas = 2;
    follow();
    fairlock_engine_connect(&engine, now);
    greet_master();
    fairlock_engine_tick(&engine, now);
    try_a();
    output_size = 0;
    do {
      CHECK(sends_a_piece());
    } while (output_size < script);
    if (script == 0) script = output_size - (sizeof wait - 1);
    now += 100;
    answer(0, 500, 0);
    CHECK(engine.response_ms > 200);
    while (engine.writing)
      CHECK(sends_a_piece());
    CHECK(strncmp(output + script, wait, sizeof wait - 1) == 0);
  }
}

/* Nobody has answered a WAIT that is not written to its end. */
static void test_wait_is_answered_too_soon(void)
{
  size_t size;
  set_up_seeds(1);
  config.send_size = FAIRLOCK_SEND_MIN;
  topology.replicas = 2;
  follow();
  fairlock_engine_connect(&engine, now);
  greet_master();
  try_a();
  (void)fairlock_engine_output(&engine, &size, now);
  fairlock_engine_sent(&engine, size);
  acknowledge(78);
  CHECK_EQUAL(a.result, FAIRLOCK_PENDING);
  close_connection();
}

static void check_slot(const char *name, unsigned slot)
{
  CHECK_EQUAL(fairlock_slot(name, strlen(name)), slot);
}

static void test_slot(void)
{
  check_slot("123456789", 12739);
  check_slot("", 0);
  check_slot("foo", 12182);
  check_slot("bar", 5061);
  check_slot("{foo}", 12182);
  check_slot("{foo}bar", 12182);
  check_slot("bar{foo}", 12182);
  check_slot("x{foo}{bar}", 12182);
  check_slot("{123456789}", 12739);
  CHECK_EQUAL(fairlock_slot("foo{", 3), 12182);
  /* a tag that is empty, or has no end, is none: then all of the name counts */
  CHECK(fairlock_slot("{}foo", 5) != fairlock_slot("", 0));
  CHECK(fairlock_slot("{}{foo}", 7) != 12182);
  CHECK(fairlock_slot("{foo", 4) != 12182);
  CHECK(fairlock_slot("{foo", 4) != fairlock_slot("{fox", 4));
  CHECK(fairlock_slot("}foo", 4) != 12182);
  CHECK(fairlock_slot("\0a", 2) != fairlock_slot("\0b", 2));
}

const struct check_test check_tests[] = {
    {"topology: follow refuses", test_follow_refuses},
    {"topology: default of replicas_ms", test_default_replicas_ms},
    {"topology: defaults", test_defaults},
    {"topology: sentinel greeting", test_sentinel_greeting},
    {"topology: sentinel without password", test_sentinel_without_password},
    {"topology: sentinel redirects", test_sentinel_redirects},
    {"topology: sentinel is no answer", test_sentinel_is_no_answer},
    {"topology: sentinel is asked again", test_sentinel_is_asked_again},
    {"topology: sentinel of many elements", test_sentinel_of_many_elements},
    {"topology: sentinel does not know", test_sentinel_does_not_know},
    {"topology: sentinel next knows", test_sentinel_next_knows},
    {"topology: sentinels all do not know", test_sentinels_all_do_not_know},
    {"topology: sentinel talks nonsense", test_sentinel_talks_nonsense},
    {"topology: sentinel address too long", test_sentinel_address_too_long},
    {"topology: sentinel leads nowhere", test_sentinel_leads_nowhere},
    {"topology: sentinel refuses", test_sentinel_refuses},
    {"topology: sentinel is none", test_sentinel_is_none},
    {"topology: moved is followed", test_moved_is_followed},
    {"topology: moved waiter waits on", test_moved_waiter_waits_on},
    {"topology: moved to nobody", test_moved_to_nobody},
    {"topology: moved to another port", test_moved_to_another_port},
    {"topology: moved after a break", test_moved_after_a_break},
    {"topology: moved malformed", test_moved_malformed},
    {"topology: moved too long to receive", test_moved_too_long_to_receive},
    {"topology: moved without room", test_moved_without_room},
    {"topology: moved to another port later", test_moved_to_another_port_later},
    {"topology: moved to another port of nobody", test_moved_to_another_port_of_nobody},
    {"topology: moved to a NUL", test_moved_to_a_nul},
    {"topology: moved without aim", test_moved_without_aim},
    {"topology: moved without topology", test_moved_without_topology},
    {"topology: moved in bulk", test_moved_in_bulk},
    {"topology: moved with another slot in use", test_moved_with_another_slot_in_use},
    {"topology: moved waiter with another slot in use", test_moved_waiter_with_another_slot_in_use},
    {"topology: moved with the same slot in use", test_moved_with_the_same_slot_in_use},
    {"topology: moved with another slot not in use", test_moved_with_another_slot_not_in_use},
    {"topology: moved with another slot left", test_moved_with_another_slot_left},
    {"topology: moved, and a release is not dropped", test_moved_release},
    {"topology: moved, and a handle that is taken out", test_moved_remove},
    {"topology: moved, and one with nothing there", test_moved_remove_of_nothing},
    {"topology: moved behind a release", test_moved_behind_a_release},
    {"topology: moved waiter behind a release", test_moved_waiter_behind_a_release},
    {"topology: moved, and two releases", test_moved_two_releases},
    {"topology: moved round in circles", test_moved_round_in_circles},
    {"topology: seeds in turn", test_seeds_in_turn},
    {"a seed that is not trusted gives way to the next", test_seeds_untrusted},
    {"topology: seed is silent", test_seed_is_silent},
    {"topology: pauses are short", test_pauses_are_short},
    {"topology: seed refuses", test_seed_refuses},
    {"topology: seed is a replica", test_seed_is_a_replica},
    {"topology: seeds are strangers", test_seeds_are_strangers},
    {"topology: seeds with a database", test_seeds_with_a_database},
    {"topology: seeds refuse the role", test_seeds_refuse_the_role},
    {"topology: nodes without replicas", test_nodes_without_replicas},
    {"topology: role is nonsense", test_role_is_nonsense},
    {"topology: seed is no node", test_seed_is_no_node},
    {"topology: moved to no node", test_moved_to_no_node},
    {"topology: replica in a cluster", test_replica_in_a_cluster},
    {"topology: versions", test_versions},
    {"topology: version is none", test_version_is_none},
    {"topology: shard messages", test_shard_messages},
    {"topology: shard grant", test_shard_grant},
    {"topology: shard oddities", test_shard_oddities},
    {"topology: shard unsubscribes", test_shard_unsubscribes},
    {"topology: shard is gone", test_shard_is_gone},
    {"topology: shard is gone while another subscribes",
     test_shard_is_gone_while_another_subscribes},
    {"topology: slot has gone before the next subscription is answered",
     test_shard_is_gone_before_the_next_answer},
    {"topology: unsubscribe without shards", test_unsubscribe_without_shards},
    {"topology: migrating slot", test_migrating_slot},
    {"topology: migrating slot of which nobody asked", test_migrating_slot_unasked},
    {"topology: readonly", test_readonly},
    {"topology: wait for replicas", test_wait_for_replicas},
    {"topology: wait for a partial release", test_wait_for_a_partial_release},
    {"topology: unsynced partial release", test_unsynced_partial_release},
    {"topology: too few for too long", test_too_few_for_too_long},
    {"topology: wait in the queue", test_wait_in_the_queue},
    {"topology: leave without wait", test_leave_without_wait},
    {"topology: too few on a try", test_too_few_on_a_try},
    {"topology: too few on a wait", test_too_few_on_a_wait},
    {"topology: too few at first", test_too_few_at_first},
    {"topology: too few on a renewal", test_too_few_on_a_renewal},
    {"topology: too few on a renewal at first", test_too_few_on_a_renewal_at_first},
    {"topology: too few on a reentry", test_too_few_on_a_reentry},
    {"topology: renewal finds nothing", test_renewal_finds_nothing},
    {"topology: wait is refused", test_wait_is_refused},
    {"topology: wait is refused to a holder", test_wait_is_refused_to_a_holder},
    {"topology: wait is answered with nonsense", test_wait_is_answered_with_nonsense},
    {"topology: wait is unblocked", test_wait_is_unblocked},
    {"topology: renewal is unblocked", test_renewal_is_unblocked},
    {"topology: answers that are none", test_answers_that_are_none},
    {"topology: nothing is sent during a wait", test_nothing_is_sent_during_a_wait},
    {"topology: busy with replicas", test_busy_with_replicas},
    {"topology: noscript and wait", test_noscript_and_wait},
    {"topology: grant makes ask", test_grant_makes_ask},
    {"topology: grant to an idle handle", test_grant_to_an_idle_handle},
    {"topology: cancelled between the answers", test_cancelled_between_the_answers},
    {"topology: cancelled before an error", test_cancelled_before_an_error},
    {"topology: messages between the answers", test_messages_between_the_answers},
    {"topology: broken between the answers", test_broken_between_the_answers},
    {"topology: wait without an answer", test_wait_without_an_answer},
    {"topology: wait given up without an answer", test_given_up_without_an_answer},
    {"topology: wait does not change while it is written", test_wait_does_not_change},
    {"topology: wait in a small buffer", test_wait_in_a_small_buffer},
    {"topology: wait is answered too soon", test_wait_is_answered_too_soon},
    {"topology: slot", test_slot},
    {NULL, NULL},
};
