/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The transport itself, against a TLS server of the test's own, with faults between TLS and the
 * socket: at each record of the handshake, in the middle of records, in both directions.
 */
#include "check.h"
#include "faults.h"
#include "peer.h"
#include "support/clock.h"
#include "support/loopback.h"
#include "wrap.h"

#include <openssl/ssl.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* What OpenSSL's peer can do, and we can. */
#ifdef WITH_MBEDTLS
#define NEWEST TLS1_2_VERSION
#else
#define NEWEST TLS1_3_VERSION
#endif

static const struct wrap_config config = {.ca = "ca", .name = "localhost"};

static struct faults faults;
static struct wrap wrap;
static struct peer peer;

static void start_with(peer_part *part, int version, bool demanding, int connections)
{
  (void)alarm(120);
  peer_start(&peer, part, version, demanding, connections);
  faults_init(&faults, peer.port);
  wrap_init(&wrap, &config, &faults.transport);
}

static void start(peer_part *part, int version, int connections)
{
  start_with(part, version, false, connections);
}

static void end(void)
{
  wrap.tls.transport.close(&wrap.tls);
  peer_end(&peer);
  wrap_deinit(&wrap);
}

/* What was received and not compared yet. */
static char heard[1 << 16];
static size_t heard_size;

static int connects(void)
{
  int status = PORT_WOULD_BLOCK;
  heard_size = 0;
  AWAIT(status != PORT_WOULD_BLOCK && status != PORT_NEEDS_INPUT,
        status = wrap.tls.transport.connect(&wrap.tls, 100));
  return status;
}

/* Receives what there is; returns what recv() did. */
static int listens(uint32_t timeout_ms)
{
  int got =
      wrap.tls.transport.recv(&wrap.tls, heard + heard_size, sizeof heard - heard_size, timeout_ms);
  CHECK(got != 0);
  if (got > 0) heard_size += (size_t)got;
  return got;
}

/* Sends all of it; false: the connection broke. */
static bool says(const void *text, size_t size)
{
  const char *from = text;
  while (size > 0) {
    int sent = wrap.tls.transport.send(&wrap.tls, from, size);
    if (sent == PORT_WOULD_BLOCK) { /* recv() returns when it is worth another try, or an error */
      int got = listens(10);
      if (got < 0 && got != PORT_WOULD_BLOCK) return false;
      continue;
    }
    if (sent < 0) return false;
    CHECK(sent > 0 && (size_t)sent <= size);
    from += sent;
    size -= (size_t)sent;
  }
  return true;
}

/* Receives exactly this; otherwise returns what recv() has returned. */
static int hears(const char *text, size_t size)
{
  int got = PORT_WOULD_BLOCK;
  AWAIT(heard_size >= size || (got < 0 && got != PORT_WOULD_BLOCK), got = listens(100));
  if (heard_size < size) return got;
  CHECK_BYTES(heard, heard_size, text, size);
  heard_size = 0;
  return PORT_OK;
}

static bool echoes(const char *text)
{
  return says(text, strlen(text)) && hears(text, strlen(text)) == PORT_OK;
}

static void test_echo(void)
{
  for (int version = TLS1_2_VERSION; version <= NEWEST; version++) {
    start(peer_echo, version, 1);
    CHECK_EQUAL(connects(), PORT_OK);
    CHECK_EQUAL(connects(), PORT_OK); /* it is up */
    CHECK(echoes("hello"));
    char none[8];
    CHECK_EQUAL(wrap.tls.transport.recv(&wrap.tls, none, sizeof none, 0), PORT_WOULD_BLOCK);
    CHECK_EQUAL(wrap.tls.transport.recv(&wrap.tls, none, sizeof none, 10), PORT_WOULD_BLOCK);
    end();
    CHECK_EQUAL(peer.used, version);
    CHECK(peer.good_bye);
  }
}

static void test_not_connected(void)
{
  char none[8];
  start(peer_echo, 0, 0);
  CHECK_EQUAL(wrap.tls.transport.send(&wrap.tls, "x", 1), PORT_CLOSED);
  CHECK_EQUAL(wrap.tls.transport.recv(&wrap.tls, none, sizeof none, 1000), PORT_CLOSED);
  wrap.tls.transport.close(&wrap.tls);
  peer_end(&peer);
  CHECK_EQUAL(connects(), PORT_UNREACHABLE); /* nobody listens */
  CHECK(wrap_failed_by(&wrap, NOTHING));
  wrap_deinit(&wrap);
}

/* More than a record, a byte at a time: records come in pieces. */
static void test_pieces(void)
{
  static char text[20000];
  for (size_t i = 0; i < sizeof text; i++)
    text[i] = (char)('a' + i % 23);
  start(peer_echo, 0, 1);
  CHECK_EQUAL(connects(), PORT_OK);
  CHECK(says(text, sizeof text));
  CHECK_EQUAL(hears(text, sizeof text), PORT_OK);
  faults.piece = 1;
  CHECK(says(text, 1000));
  CHECK_EQUAL(hears(text, 1000), PORT_OK);
  end();
  start(peer_echo, 0, 1);
  faults.piece = 1;
  CHECK_EQUAL(connects(), PORT_OK);
  CHECK(echoes("hello"));
  end();
}

/* What send() has taken is sent, though the transport below took none of it at first. */
static void test_blocked(void)
{
  start(peer_echo, 0, 1);
  CHECK_EQUAL(connects(), PORT_OK);
  atomic_store(&faults.blocked, 2);
  CHECK_EQUAL(wrap.tls.transport.send(&wrap.tls, "hello", 5), 5);
  CHECK_EQUAL(wrap.tls.transport.send(&wrap.tls, "more", 4), PORT_WOULD_BLOCK);
  CHECK_EQUAL(atomic_load(&faults.blocked), 0);
  CHECK_EQUAL(hears("hello", 5), PORT_OK);
  atomic_store(&faults.blocked, 3);
  CHECK(says("more", 4));
  CHECK_EQUAL(hears("more", 4), PORT_OK);
  end();
}

/* The transport below tells of no room once it has taken all, so recv() does not wait for that. */
static void test_finds_room(void)
{
  start(peer_echo, 0, 1);
  CHECK_EQUAL(connects(), PORT_OK);
  CHECK(echoes("hello"));
  atomic_store(&faults.blocked, 2);
  CHECK_EQUAL(wrap.tls.transport.send(&wrap.tls, "again", 5), 5);
  CHECK_EQUAL(wrap.tls.transport.send(&wrap.tls, "more", 4), PORT_WOULD_BLOCK);
  (void)listens(1000);
  CHECK_EQUAL(faults.wait_ms, 0);
  CHECK_EQUAL(hears("again", 5), PORT_OK);
  CHECK_EQUAL(listens(50), PORT_WOULD_BLOCK);
  CHECK(faults.wait_ms > 0);
  end();
}

/* The same, where part of a record comes before: the rest of it is not waited for. */
static void test_finds_room_later(void)
{
  char first;
  start(peer_echo, 0, 1);
  CHECK_EQUAL(connects(), PORT_OK);
  CHECK(echoes("hello"));
  CHECK(says("0123456789", 10));
  CHECK_EQUAL(recv(port_posix_fd(&faults.socket), &first, 1, MSG_PEEK), 1);
  faults.piece = 1;
  atomic_store(&faults.blocked, 3);
  CHECK_EQUAL(wrap.tls.transport.send(&wrap.tls, "again", 5), 5);
  CHECK_EQUAL(wrap.tls.transport.send(&wrap.tls, "more", 4), PORT_WOULD_BLOCK);
  (void)listens(1000);
  CHECK_EQUAL(faults.wait_ms, 0);
  end();
}

/* A handshake that is cut anywhere ends in time, and leaves nothing for the next one. */
static void cut_at(size_t received, size_t sent)
{
  wrap_deinit(&wrap); /* a full handshake each: nothing is resumed */
  wrap_init(&wrap, &config, &faults.transport);
  faults.cut_received = received;
  faults.cut_sent = sent;
  int status = connects();
  /* the last bytes may come after the handshake */
  if (status == PORT_OK) status = echoes("hello") ? PORT_OK : PORT_UNREACHABLE;
  CHECK_EQUAL(status, PORT_UNREACHABLE);
  wrap.tls.transport.close(&wrap.tls);
  faults.cut_received = faults.cut_sent = 0;
  CHECK_EQUAL(connects(), PORT_OK);
  CHECK(echoes("hello"));
  wrap.tls.transport.close(&wrap.tls);
}

static void cut_handshakes(int version)
{
  start(peer_echo, version, 1);
  CHECK_EQUAL(connects(), PORT_OK);
  CHECK(echoes("hello"));
  struct faults seen = faults;
  end();
  CHECK(seen.records > 3 && seen.records < 32);
  int cuts = (int)(3 * seen.records + seen.sent / 50 + 1);
  start(peer_echo, version, 2 * cuts);
  for (size_t i = 0; i < seen.records; i++) {
    if (i > 0) cut_at(seen.record[i], 0);
    cut_at(seen.record[i] + 3, 0);
    cut_at(seen.record[i] + 7, 0);
  }
  for (size_t at = 1; at < seen.sent; at += 50)
    cut_at(0, at);
  end();
}

static void test_cut_handshakes(void)
{
  for (int version = TLS1_2_VERSION; version <= NEWEST; version++)
    cut_handshakes(version);
}

/* In the middle of a record that came, or went, when the connection was up. */
static void test_cut_records(void)
{
  start(peer_echo, 0, 2);
  CHECK_EQUAL(connects(), PORT_OK);
  CHECK(echoes("hello"));
  faults.cut_received = faults.received + 10;
  CHECK(says("hello", 5));
  CHECK_EQUAL(hears("hello", 5), PORT_CLOSED);
  wrap.tls.transport.close(&wrap.tls);
  faults.cut_received = 0;
  CHECK_EQUAL(connects(), PORT_OK);
  CHECK(echoes("hello"));
  faults.cut_sent = faults.sent + 10;
  CHECK_EQUAL(wrap.tls.transport.send(&wrap.tls, "hello", 5), 5);
  CHECK_EQUAL(wrap.tls.transport.send(&wrap.tls, "hello", 5), PORT_WOULD_BLOCK); /* recv() tells */
  CHECK_EQUAL(hears("hello", 5), PORT_CLOSED);
  end();
}

static void test_changed_byte(void)
{
  start(peer_echo, 0, 1);
  CHECK_EQUAL(connects(), PORT_OK);
  CHECK(echoes("hello"));
  faults.changed = faults.received + 15;
  CHECK(says("hello", 5));
  CHECK_EQUAL(hears("hello", 5), PORT_CLOSED);
  char none[8];
  CHECK_EQUAL(wrap.tls.transport.recv(&wrap.tls, none, sizeof none, 0), PORT_CLOSED);
  CHECK_EQUAL(wrap.tls.transport.send(&wrap.tls, "x", 1), PORT_WOULD_BLOCK);
  CHECK(wrap_failed_by(&wrap, CHANGED));
  end();
  CHECK(!peer.good_bye); /* an alert instead */
}

#if NEWEST > TLS1_2_VERSION
static void test_key_changes(void)
{
  start(peer_changes_keys, TLS1_3_VERSION, 1);
  CHECK_EQUAL(connects(), PORT_OK);
  for (int i = 0; i < 20; i++)
    CHECK(echoes("hello"));
  /* ours, when sending is blocked: they go out later */
  atomic_store(&faults.blocked, 1);
  CHECK(echoes("hello"));
  CHECK(echoes("hello"));
  end();
  CHECK(peer.good_bye);
}

#endif

static void test_renegotiation(void)
{
  start(peer_renegotiates, TLS1_2_VERSION, 1);
  CHECK_EQUAL(connects(), PORT_OK);
  for (int i = 0; i < 3 && echoes("hello"); i++) /* the peer may end when it is refused */
    continue;
  end();
  CHECK(!peer.renegotiated);
}

/* The peer sees it, too; a connection that was cut leaves no session. */
static void test_resumption(void)
{
  for (int version = TLS1_2_VERSION; version <= NEWEST; version++) {
    start(peer_echo, version, 5);
    for (int i = 0; i < 5; i++) {
      if (!CHECK(connects() == PORT_OK)) break;
      CHECK(echoes("hello"));
      CHECK(wrap_resumed(&wrap) == (i != 0 && i != 3));
      if (i == 2) {
        faults.changed = faults.received + 15;
        CHECK(says("hello", 5));
        CHECK_EQUAL(hears("hello", 5), PORT_CLOSED);
        faults.changed = 0;
      }
      if (i < 4) wrap.tls.transport.close(&wrap.tls);
    }
    end();
    CHECK(peer.resumed);
  }
}

static void test_good_bye(void)
{
  start(peer_says_good_bye, 0, 1);
  CHECK_EQUAL(connects(), PORT_OK);
  CHECK_EQUAL(hears("bye", 3), PORT_OK);
  char none[8];
  CHECK_EQUAL(wrap.tls.transport.recv(&wrap.tls, none, sizeof none, 20000), PORT_CLOSED);
  end();
}

/*
 * With TLS 1.2 the server says in the handshake that it does not trust us. With TLS 1.3 it says after the handshake that it does not trust us, and closes: what we
 * send meanwhile must not keep us from receiving that.
 */
static void test_not_trusted_by_the_server(void)
{
  start_with(peer_echo, TLS1_2_VERSION, true, 1);
  CHECK_EQUAL(connects(), PORT_UNTRUSTED);
  CHECK(wrap_failed_by(&wrap, NONE_OF_OURS));
  end();
#if NEWEST > TLS1_2_VERSION
  start_with(peer_echo, TLS1_3_VERSION, true, 1);
  CHECK_EQUAL(connects(), PORT_OK);
  for (int i = 0; i < 5; i++) {
    CHECK(wrap.tls.transport.send(&wrap.tls, "hello", 5) != PORT_CLOSED);
    sleep_ms(20);
  }
  int got = PORT_WOULD_BLOCK;
  AWAIT(got != PORT_WOULD_BLOCK, got = listens(1000));
  CHECK_EQUAL(got, PORT_UNTRUSTED);
  CHECK_EQUAL(listens(1000), PORT_CLOSED);
  end();
#endif
}

/* A server that is silent, or sends what is not TLS: connect() returns in time. */
static void test_no_tls(void)
{
  int port;
  int listener = listen_anywhere(&port);
  (void)alarm(120);
  faults_init(&faults, port);
  wrap_init(&wrap, &config, &faults.transport);
  CHECK_EQUAL(wrap.tls.transport.connect(&wrap.tls, 1000), PORT_NEEDS_INPUT);
  CHECK_EQUAL(wrap.tls.transport.connect(&wrap.tls, 0), PORT_NEEDS_INPUT);
  int socket = take_call(listener);
  CHECK_EQUAL(wrap.tls.transport.connect(&wrap.tls, 50), PORT_NEEDS_INPUT);
  wrap.tls.transport.close(&wrap.tls);
  CHECK(wrap_failed_by(&wrap, SILENT));
  (void)close(socket);
  CHECK_EQUAL(wrap.tls.transport.connect(&wrap.tls, 1000), PORT_NEEDS_INPUT);
  socket = take_call(listener);
  CHECK_EQUAL(send(socket, "-ERR unknown command\r\n", 22, 0), 22);
  CHECK_EQUAL(connects(), PORT_UNREACHABLE);
  CHECK(wrap_failed_by(&wrap, NOT_TLS));
  (void)close(socket);
  (void)close(listener);
  CHECK_EQUAL(connects(), PORT_UNREACHABLE);
  CHECK(wrap_failed_by(&wrap, NOTHING)); /* it was not TLS that failed */
  wrap_deinit(&wrap);
}

/*
 * An event loop has to know whether to wait for room to send or for bytes: the socket of a handshake
 * has room all the time.
 */
static void test_says_what_it_waits_for(void)
{
  int port;
  int listener = listen_anywhere(&port);
  (void)alarm(120);
  faults_init(&faults, port);
  wrap_init(&wrap, &config, &faults.transport);
  atomic_store(&faults.blocked, 1000000);
  for (int i = 0; i < 5; i++)
    CHECK_EQUAL(wrap.tls.transport.connect(&wrap.tls, i > 0 ? 20 : 1000), PORT_WOULD_BLOCK);
  atomic_store(&faults.blocked, 0);
  for (int i = 0; i < 5; i++)
    CHECK_EQUAL(wrap.tls.transport.connect(&wrap.tls, 0), PORT_NEEDS_INPUT);
  wrap_deinit(&wrap);
  (void)close(listener);
}

/* One task sends while another receives, and keys change. */
#define PIECES 300
#define PIECE  5

/* A piece of this number, and its NUL. */
static void write_piece(char *text, int number)
{
  static const char digits[] = "0123456789";
  memcpy(text, "0000.", PIECE + 1);
  for (int i = 3; i >= 0; i--, number /= 10)
    text[i] = digits[number % 10];
}

static void *sends(void *context)
{
  for (int i = 0; i < PIECES; i++) {
    char text[PIECE + 1];
    write_piece(text, i);
    for (int sent = 0; sent < PIECE;) {
      int took = wrap.tls.transport.send(&wrap.tls, text + sent, (size_t)(PIECE - sent));
      if (took < 0 && took != PORT_WOULD_BLOCK) return NULL;
      if (took > 0) sent += took;
      else sleep_ms(1);
    }
  }
  return context;
}

static void full_duplex(peer_part *part, int version)
{
  static char expected[PIECE * PIECES + 1];
  pthread_t task;
  void *result;
  start(part, version, 1);
  CHECK_EQUAL(connects(), PORT_OK);
  for (int i = 0; i < PIECES; i++)
    write_piece(expected + PIECE * i, i);
  CHECK_EQUAL(pthread_create(&task, NULL, sends, &wrap.tls), 0);
  CHECK_EQUAL(hears(expected, PIECE * PIECES), PORT_OK);
  CHECK_EQUAL(pthread_join(task, &result), 0);
  CHECK(result == &wrap.tls);
  end();
}

static void test_full_duplex(void)
{
  full_duplex(peer_echo, TLS1_2_VERSION);
#if NEWEST > TLS1_2_VERSION
  full_duplex(peer_changes_keys, TLS1_3_VERSION);
#endif
}

const struct check_test check_tests[] = {
    {"tls: echo", test_echo},
    {"tls: not connected", test_not_connected},
    {"tls: records in pieces", test_pieces},
    {"tls: sending is blocked", test_blocked},
    {"tls: recv finds the room that send missed", test_finds_room},
    {"tls: recv finds it between the parts of a record", test_finds_room_later},
    {"tls: a cut in each record of the handshake", test_cut_handshakes},
    {"tls: a cut in a record", test_cut_records},
    {"tls: a changed byte", test_changed_byte},
#if NEWEST > TLS1_2_VERSION
    {"tls: keys change", test_key_changes},
#endif
    {"tls: renegotiation is refused", test_renegotiation},
    {"tls: sessions are resumed", test_resumption},
    {"tls: good-bye of the server", test_good_bye},
    {"tls: not trusted by the server", test_not_trusted_by_the_server},
    {"tls: no TLS at the other end", test_no_tls},
    {"tls: connecting says what it waits for", test_says_what_it_waits_for},
    {"tls: one task sends, one receives", test_full_duplex},
    {0}};
