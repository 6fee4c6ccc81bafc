/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzzing of port/bearssl: a network that may do anything, and a server that is real or hostile.
 *
 * An input is a list of steps, a byte each with what follows it, that say what the program does
 * with the transport and what the network does to it. The server is that of tests/tls/bearssl_peer.h,
 * whose key is pinned; its bytes may be changed, and bytes of the input may come in their place.
 *
 * What has to hold: every status is one of the contract; connect() succeeds only when the server
 * has finished the handshake; what is received is, byte for byte, the beginning of what the
 * server's program sent since then, and what that received is the beginning of what was sent,
 * whatever was changed on the way; nothing goes below before connect() or after close(), and the
 * transport below is not closed behind the program's back while it says it is open.
 */
#include "bearssl_peer.h"
#include "port_bearssl.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size);

enum { MOST_STEPS = 200, MOST_CONNECTIONS = 6 };

static void require(bool condition, const char *what)
{
  if (condition) return;
  fprintf(stderr, "violated: %s\n", what);
  abort();
}

/* Nothing but the input is random: BearSSL's own seeder finds nothing. */
br_prng_seeder br_prng_seeder_system(const char **name)
{
  if (name != NULL) *name = "none";
  return 0;
}

/* Time passes with each look at the clock, or not at all. */
static uint32_t now_ms, look_ms;

uint32_t port_clock_ms(void)
{
  return now_ms += look_ms;
}

static bool entropy(void *data, size_t size)
{
  memset(data, 0x5a, size);
  return true;
}

static const uint8_t *input_at, *input_end;

static uint8_t next(void)
{
  return input_at < input_end ? *input_at++ : 0;
}

/* The network, and what it knows. */
static struct {
  struct port_transport transport;
  struct peer peer;
  bool open;

  /*
   * what the next calls return in place of doing anything; 0: nothing special. After PORT_CLOSED it
   * is that until close()
   */
  int send_status, recv_status, connect_status;
  unsigned send_count, recv_count;

  /* at most this many bytes a call; 0: as many as there are */
  size_t piece;

  /* the byte that comes after this many others is changed by `change`, unless that is 0 */
  size_t change_after;
  uint8_t change;

  /* bytes of the input that come in place of the server's */
  size_t forged;
} net;

static int net_connect(void *context, uint32_t timeout_ms)
{
  (void)context;
  require(timeout_ms <= PORT_WAIT_MAX_MS, "no wait is longer than it may be");
  require(!net.open, "a connection is opened once");
  int status = net.connect_status;
  net.connect_status = 0;
  if (status != 0) return status;
  net.open = net.peer.transport.connect(&net.peer, 0) == PORT_OK;
  return net.open ? PORT_OK : PORT_UNREACHABLE;
}

static size_t limited(size_t size)
{
  require(size > 0, "at least one byte is asked for, or sent");
  return net.piece > 0 && size > net.piece ? net.piece : size;
}

static int net_send(void *context, const void *data, size_t size)
{
  (void)context;
  require(net.open, "nothing is sent without a connection");
  if (net.send_count > 0) {
    if (net.send_status != PORT_CLOSED) net.send_count--;
    return net.send_status;
  }
  return net.peer.transport.send(&net.peer, data, limited(size));
}

static int forge(uint8_t *data, size_t size)
{
  if (size > net.forged) size = net.forged;
  net.forged -= size;
  for (size_t i = 0; i < size; i++)
    data[i] = next();
  return (int)size;
}

static int net_recv(void *context, void *data, size_t size, uint32_t timeout_ms)
{
  (void)context;
  require(timeout_ms <= PORT_WAIT_MAX_MS, "no wait is longer than it may be");
  require(net.open, "nothing is received without a connection");
  if (net.recv_count > 0) {
    if (net.recv_status != PORT_CLOSED) net.recv_count--;
    return net.recv_status;
  }
  size = limited(size);
  if (net.forged > 0) return forge(data, size);
  int got = net.peer.transport.recv(&net.peer, data, size, 0);
  for (int i = 0; i < got && net.change != 0; i++) {
    if (net.change_after-- > 0) continue;
    ((uint8_t *)data)[i] ^= net.change;
    net.change = 0;
  }
  return got;
}

static void net_close(void *context)
{
  (void)context;
  net.peer.transport.close(&net.peer);
  net.open = false;
  net.forged = 0;
  net.send_count = net.recv_count = 0;
}

static bool net_aim(void *context, const char *address)
{
  (void)context;
  return address != NULL && strchr(address, ':') != NULL;
}

/* The program, and what it knows of the connection that it believes in. */
static struct port_bearssl tls;
static bool up;
static size_t sent, received, heard_before;

/* Byte number `at` of what the program sends; the server sends it back. */
static uint8_t octet(size_t at)
{
  return (uint8_t)(at * 131 >> 3 ^ at);
}

static void do_connect(uint32_t timeout_ms)
{
  int status = tls.transport.connect(&tls, timeout_ms);
  require(status == PORT_OK || status == PORT_WOULD_BLOCK || status == PORT_NEEDS_INPUT ||
              status == PORT_UNREACHABLE || status == PORT_UNTRUSTED,
          "connect() returns what it may");
  if (status == PORT_UNREACHABLE || status == PORT_UNTRUSTED)
    require(!net.open, "what has failed is closed");
  require(status != PORT_UNTRUSTED || port_bearssl_error(&tls) != BR_ERR_OK,
          "mistrust has a reason");
  require(strlen(port_bearssl_error_text(port_bearssl_error(&tls))) > 0, "an error has a text");
  if (status != PORT_OK || up) return;
  require(net.open, "a connection stands on another");
  require(net.peer.shaken, "the server, too, has finished the handshake");
  up = true;
  sent = received = 0;
  heard_before = net.peer.received;
}

static void do_send(size_t size)
{
  uint8_t data[256];
  for (size_t i = 0; i < size; i++)
    data[i] = octet(sent + i);
  int status = tls.transport.send(&tls, data, size);
  require(status != 0 && status <= (int)size, "send() takes no more than there is");
  require(up || status == PORT_CLOSED, "nothing is sent without a connection");
  require(status > 0 || status == PORT_WOULD_BLOCK || status == PORT_CLOSED,
          "send() returns what it may");
  if (status > 0) sent += (size_t)status;
  require(!up || net.peer.received - heard_before <= sent, "the server hears what was sent");
}

static void do_recv(size_t size, uint32_t timeout_ms)
{
  uint8_t *data = malloc(size);
  require(data != NULL, "there is memory");
  int status = tls.transport.recv(&tls, data, size, timeout_ms);
  require(status != 0 && status <= (int)size, "recv() gives no more than was asked for");
  require(up || status == PORT_CLOSED, "nothing is received without a connection");
  require(status > 0 || status == PORT_WOULD_BLOCK || status == PORT_CLOSED,
          "recv() returns what it may");
  for (int i = 0; i < status; i++)
    require(data[i] == octet(received + (size_t)i), "what is received was said");
  if (status > 0) received += (size_t)status;
  require(received <= sent, "no more comes back than was sent");
  free(data);
}

static void do_close(void)
{
  tls.transport.close(&tls);
  require(!net.open, "what is closed is closed");
  up = false;
}

static void do_aim(void)
{
  static char address[2][300]; /* one may be in use */
  static unsigned turn;
  char *to = address[turn++ % 2];
  size_t size = next();
  for (size_t i = 0; i < size; i++) {
    to[i] = (char)next();
    if (to[i] == 0) to[i] = '.';
  }
  to[size] = 0;
  (void)tls.transport.aim(&tls, size > 0 ? to : NULL);
}

/* What the network, or the server, does from now on. */
static void disturb(uint8_t what)
{
  static const int broken[] = {PORT_CLOSED, PORT_WOULD_BLOCK};
  static const int refused[] = {PORT_UNREACHABLE, PORT_WOULD_BLOCK};
  switch (what % 8) {
  case 0:
    net.piece = next();
    break;
  case 1:
    net.change_after = next() * 5U;
    net.change = next();
    break;
  case 2:
    net.forged = next();
    break;
  case 3:
    if (net.send_count > 0 && net.send_status == PORT_CLOSED) break;
    net.send_status = broken[next() % 2];
    net.send_count = next() % 32;
    break;
  case 4:
    if (net.recv_count > 0 && net.recv_status == PORT_CLOSED) break;
    net.recv_status = broken[next() % 2];
    net.recv_count = next() % 32;
    break;
  case 5:
    net.connect_status = refused[next() % 2];
    break;
  case 6:
    net.peer.fragment = next() % 2 == 0 ? 4096 : 0;
    break;
  default:
    if (!net.open) break;
    if (next() % 2 == 0) peer_close(&net.peer);
    else peer_renegotiate(&net.peer);
    break;
  }
}

static void step(unsigned *connections)
{
  uint8_t what = next();
  switch (what % 8) {
  case 0:
    if (up || (*connections)++ < MOST_CONNECTIONS) do_connect(what / 8 * 4U);
    break;
  case 1: /* connect, and go on connecting */
    if (!up && (*connections)++ < MOST_CONNECTIONS) {
      for (int i = 0; i < 8 + what / 8 && !up; i++)
        do_connect(0);
    }
    break;
  case 2:
    do_send(next() % 255U + 1);
    break;
  case 3:
  case 4:
    do_recv(next() % 255U * 4 + 1, 0);
    break;
  case 5:
    if (what / 8 == 0) do_close();
    else do_recv(1, 0);
    break;
  case 6:
    disturb(what / 8);
    break;
  default:
    if (what / 8 == 1) do_aim();
    else do_send(255);
    break;
  }
}

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size)
{
  struct port_bearssl_config config = {
      .entropy = entropy,
      .receive_size = PORT_BEARSSL_RECEIVE_SIZE(512),
      .send_size = PORT_BEARSSL_SEND_SIZE(512),
      .cipher = port_bearssl_chacha20,
      .keys = port_bearssl_ec_and_rsa,
      .trust = port_bearssl_pinned,
      .pinned = peer_key(),
      .names_of_nodes = true,
  };
  unsigned connections = 0;
  input_at = input;
  input_end = input + size;
  uint8_t options = next();
  if (options & 1) config.cipher = port_bearssl_aes_gcm;
  if (options & 2) config.receive_size = PORT_BEARSSL_RECEIVE_SIZE(16384);
  look_ms = options >> 3 & 1;
  if (options & 4) config.name = "redis.example";
  config.receive_buffer = malloc(config.receive_size);
  config.send_buffer = malloc(config.send_size);
  require(config.receive_buffer != NULL && config.send_buffer != NULL, "there is memory");
  memset(&net, 0, sizeof net);
  peer_init(&net.peer);
  net.transport =
      (struct port_transport){net_connect, net_send, net_recv, net_close, NULL, net_aim, NULL};
  require(port_bearssl_init(&tls, &net.transport, &config), "the configuration is good");
  up = false;
  sent = received = 0;
  for (unsigned steps = 0; input_at < input_end && steps < MOST_STEPS; steps++)
    step(&connections);
  do_close();
  port_bearssl_deinit(&tls);
  free(config.receive_buffer);
  free(config.send_buffer);
  return 0;
}
