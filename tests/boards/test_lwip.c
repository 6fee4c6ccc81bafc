/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The transport over lwIP, against a server of lwIP's own in the same stack, on the host and in
 * virtual time: packets travel through a queue here, and can be lost. Every buffer and connection
 * is in memory of its own, and all is built with a sanitizer: a callback that uses freed memory
 * ends the program.
 */
#include "check.h"
#include "port_lwip.h"

#include "lwip/dns.h"
#include "lwip/init.h"
#include "lwip/ip.h"
#include "lwip/netif.h"
#include "lwip/priv/tcp_priv.h"
#include "lwip/sys.h"
#include "lwip/tcp.h"
#include "lwip/timeouts.h"
#include "lwip/udp.h"

#include <stdlib.h>
#include <string.h>

#define SERVER_PORT 6379

/* The platform */

static uint32_t clock_ms = UINT32_MAX - 5000; /* it wraps around on the way */
static bool cable = true;
static int locks;          /* how deep */
static int used;           /* pieces of memory in use */
static bool out_of_memory; /* nothing more is given */
static struct netif interface;
static struct pbuf *travelling[64];
static size_t first, count;

uint32_t port_clock_ms(void)
{
  return clock_ms;
}

uint32_t sys_now(void)
{
  return clock_ms;
}

uint32_t network_random(void)
{
  static uint32_t last;
  return last += 7919;
}

void *test_malloc(size_t size)
{
  if (out_of_memory) return NULL;
  used++;
  return malloc(size);
}

void *test_calloc(size_t number, size_t size)
{
  if (out_of_memory) return NULL;
  used++;
  return calloc(number, size);
}

void test_free(void *memory)
{
  if (memory != NULL) used--;
  free(memory);
}

static err_t output(struct netif *netif, struct pbuf *packet, const ip4_addr_t *to)
{
  (void)netif;
  (void)to;
  if (!cable || count == sizeof travelling / sizeof travelling[0]) return ERR_OK; /* lost */
  struct pbuf *copy = pbuf_clone(PBUF_RAW, PBUF_RAM, packet);
  if (copy == NULL) return ERR_OK;
  travelling[(first + count++) % (sizeof travelling / sizeof travelling[0])] = copy;
  return ERR_OK;
}

static err_t start(struct netif *netif)
{
  netif->mtu = 576;
  netif->flags = NETIF_FLAG_UP | NETIF_FLAG_LINK_UP;
  netif->output = output;
  return ERR_OK;
}

/* Delivers what is under way; when nothing is, time passes. */
static void turn(uint32_t timeout_ms)
{
  CHECK_EQUAL(locks, 0);
  if (count == 0 && timeout_ms > 0) clock_ms += timeout_ms < 10 ? timeout_ms : 10;
  for (size_t now = count; now > 0; now--) {
    struct pbuf *packet = travelling[first];
    first = (first + 1) % (sizeof travelling / sizeof travelling[0]);
    count--;
    if (!cable || ip_input(packet, &interface) != ERR_OK) pbuf_free(packet);
  }
  sys_check_timeouts();
}

static void lock(void)
{
  CHECK_EQUAL(locks++, 0);
}

static void unlock(void)
{
  CHECK_EQUAL(--locks, 0);
}

static const struct port_lwip_hooks hooks = {turn, lock, unlock};

static void pass(uint32_t ms)
{
  for (uint32_t began = clock_ms; clock_ms - began < ms;)
    turn(10);
}

/* The server */

static struct tcp_pcb *listener, *peer;
static uint32_t peer_received;
static bool peer_reads; /* or leaves the window as it is */
static bool peer_ended;

static err_t peer_on_received(void *context, struct tcp_pcb *pcb, struct pbuf *data, err_t error)
{
  (void)context;
  (void)error;
  if (data == NULL) {
    peer_ended = true;
    return ERR_OK;
  }
  peer_received += data->tot_len;
  if (peer_reads) tcp_recved(pcb, data->tot_len);
  pbuf_free(data);
  return ERR_OK;
}

static void peer_on_error(void *context, err_t error)
{
  (void)context;
  (void)error;
  peer = NULL;
  peer_ended = true;
}

static err_t peer_accept(void *context, struct tcp_pcb *pcb, err_t error)
{
  (void)context;
  if (error != ERR_OK) return error;
  peer = pcb;
  tcp_recv(pcb, peer_on_received);
  tcp_err(pcb, peer_on_error);
  return ERR_OK;
}

static void listen_at(uint16_t port)
{
  struct tcp_pcb *pcb = tcp_new();
  CHECK_EQUAL(tcp_bind(pcb, IP_ADDR_ANY, port), ERR_OK);
  listener = tcp_listen(pcb);
  tcp_accept(listener, peer_accept);
}

static void end_peer(void)
{
  if (peer == NULL) return;
  tcp_arg(peer, NULL);
  tcp_err(peer, NULL);
  tcp_abort(peer);
  peer = NULL;
}

static void peer_send(const void *data, size_t size)
{
  CHECK_EQUAL(tcp_write(peer, data, (u16_t)size, TCP_WRITE_FLAG_COPY), ERR_OK);
  CHECK_EQUAL(tcp_output(peer), ERR_OK);
}

/* The transport */

static struct port_lwip link;

#define LINK (&link.transport)
#include "support/link.h"

static int memory_at_rest;

static void begin(void)
{
  static bool started;
  const ip4_addr_t address = {PP_HTONL(0x0a000001)}, mask = {PP_HTONL(0xff000000)};
  ip_addr_t server;
  if (!started) {
    lwip_init();
    CHECK(netif_add(&interface, &address, &mask, &address, NULL, start, ip_input) != NULL);
    netif_set_default(&interface);
    listen_at(SERVER_PORT);
    memory_at_rest = used;
  }
  started = true;
  cable = true;
  out_of_memory = false;
  peer_reads = true;
  peer_ended = false;
  peer_received = 0;
  IP_ADDR4(&server, 10, 0, 0, 1);
  port_lwip_init(&link, &hooks, &server, SERVER_PORT);
}

/* Whether the transport's text for what has gone wrong begins so; "": there is none. */
static bool error_begins(const struct port_lwip *lwip, const char *beginning)
{
  const char *text = port_lwip_error(lwip);
  return *beginning == 0 ? *text == 0 : strncmp(text, beginning, strlen(beginning)) == 0;
}

static void connect_both(void)
{
  begin();
  CHECK(error_begins(&link, ""));
  CHECK_EQUAL(link_connect(1000), PORT_OK);
  CHECK(error_begins(&link, ""));
  pass(100);
  CHECK(peer != NULL);
}

/* Closes both ends; nothing may be left of either. */
static void end(void)
{
  link_close();
  link_close();
  pass(100);
  end_peer();
  pass(1000);
  CHECK(tcp_active_pcbs == NULL);
  CHECK_EQUAL(used, memory_at_rest);
  CHECK_EQUAL(locks, 0);
}

static void test_both_ways(void)
{
  char data[16];
  connect_both();
  CHECK_EQUAL(link_send("request", 7), 7);
  pass(50);
  CHECK_EQUAL(peer_received, 7);
  CHECK_EQUAL(link_recv(data, sizeof data, 0), PORT_WOULD_BLOCK);
  CHECK_EQUAL(link_recv(data, sizeof data, 100), PORT_WOULD_BLOCK);
  peer_send("reply", 5);
  CHECK_EQUAL(link_recv(data, 2, 100), 2);
  CHECK_BYTES(data, 2, "re", 2);
  CHECK_EQUAL(link_recv(data, sizeof data, 0), 3);
  CHECK_BYTES(data, 3, "ply", 3);
  end();
}

static void test_refused(void)
{
  begin();
  link.port = 1;
  for (int i = 0; i < 3; i++)
    CHECK_EQUAL(link_connect(1000), PORT_UNREACHABLE);
  CHECK(error_begins(&link, "refused"));
  link.port = SERVER_PORT;
  CHECK_EQUAL(link_connect(1000), PORT_OK);
  CHECK(error_begins(&link, ""));
  end();
}

/* The caller gives up first, or lwIP does. */
static void test_no_answer(void)
{
  begin();
  cable = false;
  uint32_t began = clock_ms;
  CHECK_EQUAL(link_connect(0), PORT_WOULD_BLOCK);
  CHECK_EQUAL(link_connect(500), PORT_WOULD_BLOCK);
  CHECK(clock_ms - began < 600);
  link_close();
  CHECK(error_begins(&link, "no answer"));
  cable = true;
  CHECK_EQUAL(link_connect(1000), PORT_OK);
  link_close();
  pass(100);
  cable = false;
  int status = PORT_WOULD_BLOCK;
  for (int i = 0; i < 600 && status == PORT_WOULD_BLOCK; i++)
    status = link_connect(1000);
  CHECK_EQUAL(status, PORT_UNREACHABLE);
  CHECK(error_begins(&link, "no answer"));
  cable = true;
  end();
}

/* No route: told at once. */
static void test_no_route(void)
{
  begin();
  netif_set_link_down(&interface);
  CHECK_EQUAL(link_connect(1000), PORT_UNREACHABLE);
  CHECK(error_begins(&link, "no route"));
  netif_set_link_up(&interface);
  end();
}

/*
 * The peer does not read: send() takes what there is room for. When it reads on, recv() ends early,
 * for send().
 */
static void test_send_pressure(void)
{
  static uint8_t data[512];
  uint32_t sent = 0;
  int status = 0;
  connect_both();
  peer_reads = false;
  for (int i = 0; i < 100 && status != PORT_WOULD_BLOCK; i++) {
    status = link_send(data, sizeof data);
    if (status > 0) sent += (uint32_t)status;
    pass(20);
  }
  CHECK_EQUAL(status, PORT_WOULD_BLOCK);
  CHECK(sent >= TCP_WND && sent <= TCP_WND + TCP_SND_BUF);
  peer_reads = true;
  tcp_recved(peer, (u16_t)peer_received);
  uint32_t began = clock_ms;
  CHECK_EQUAL(link_recv(data, sizeof data, 30000), PORT_WOULD_BLOCK);
  CHECK(clock_ms - began < 30000);
  CHECK(link_send(data, sizeof data) > 0);
  pass(5000);
  CHECK(peer_received > sent);
  end();
}

/* The client does not read: the peer can send a window, and no more; then all comes, in order. */
static void test_receive_pressure(void)
{
  enum { TOTAL = 20000 };
  uint32_t written = 0, read = 0, mistakes = 0;
  connect_both();
  for (int i = 0; i < 20000 && (read < TOTAL || read < written); i++) {
    while (written < TOTAL && tcp_sndbuf(peer) > 0 && tcp_sndqueuelen(peer) < TCP_SND_QUEUELEN) {
      uint8_t byte[97];
      size_t size = tcp_sndbuf(peer) < sizeof byte ? tcp_sndbuf(peer) : sizeof byte;
      for (size_t at = 0; at < size; at++)
        byte[at] = (uint8_t)((written + at) * 31);
      if (tcp_write(peer, byte, (u16_t)size, TCP_WRITE_FLAG_COPY) != ERR_OK) break;
      written += (uint32_t)size;
    }
    tcp_output(peer);
    if (i < 200) {
      pass(10);
      CHECK(link.received == NULL || link.received->tot_len <= TCP_WND);
      continue;
    }
    uint8_t data[61];
    int got = link_recv(data, sizeof data, 10);
    for (int at = 0; at < got; at++) {
      if (data[at] != (uint8_t)((read + (uint32_t)at) * 31)) mistakes++;
    }
    if (got > 0) read += (uint32_t)got;
  }
  CHECK(read >= TOTAL);
  CHECK_EQUAL(read, written);
  CHECK_EQUAL(mistakes, 0);
  end();
}

static void test_peer_closes(void)
{
  char data[16];
  connect_both();
  peer_send("last", 4);
  CHECK_EQUAL(tcp_close(peer), ERR_OK);
  peer = NULL;
  pass(100);
  CHECK_EQUAL(link_send("x", 1), PORT_WOULD_BLOCK);
  CHECK_EQUAL(link_recv(data, sizeof data, 100), 4);
  CHECK_EQUAL(link_send("x", 1), PORT_WOULD_BLOCK);
  CHECK_EQUAL(link_recv(data, sizeof data, 100), PORT_CLOSED);
  CHECK_EQUAL(link_send("x", 1), PORT_CLOSED);
  CHECK_EQUAL(link_recv(data, sizeof data, 100), PORT_CLOSED);
  link_close();
  CHECK_EQUAL(link_connect(1000), PORT_OK);
  pass(100);
  CHECK_EQUAL(link_recv(data, sizeof data, 0), PORT_WOULD_BLOCK);
  end();
}

static void test_peer_resets(void)
{
  char data[16];
  connect_both();
  peer_send("last", 4);
  pass(50);
  end_peer();
  pass(100);
  CHECK(link.pcb == NULL);
  CHECK_EQUAL(link_send("x", 1), PORT_WOULD_BLOCK);
  CHECK_EQUAL(link_recv(data, sizeof data, 100), 4);
  CHECK_EQUAL(link_recv(data, sizeof data, 100), PORT_CLOSED);
  CHECK_EQUAL(link_send("x", 1), PORT_CLOSED);
  end();
}

/* A server that is full accepts, says so and closes, all before the client looks whether it is up. */
static void test_closes_at_once(void)
{
  char data[16];
  for (int says = 0; says < 2; says++) {
    begin();
    CHECK_EQUAL(link_connect(0), PORT_WOULD_BLOCK);
    pass(100);
    CHECK(peer != NULL);
    if (says) peer_send("full", 4);
    CHECK_EQUAL(tcp_close(peer), ERR_OK);
    peer = NULL;
    pass(100);
    CHECK_EQUAL(link_connect(0), says ? PORT_OK : PORT_UNREACHABLE);
    CHECK_EQUAL(link_recv(data, sizeof data, 0), says ? 4 : PORT_CLOSED);
    CHECK_EQUAL(link_recv(data, sizeof data, 0), PORT_CLOSED);
    end();
  }
}

/* The reset comes while the client waits. */
static bool reset_soon;

static void turn_and_reset(uint32_t timeout_ms)
{
  if (reset_soon) end_peer();
  turn(timeout_ms);
}

static void test_reset_while_waiting(void)
{
  static const struct port_lwip_hooks rude = {turn_and_reset, lock, unlock};
  char data[16];
  connect_both();
  link.hooks = &rude;
  reset_soon = true;
  CHECK_EQUAL(link_recv(data, sizeof data, 1000), PORT_CLOSED);
  reset_soon = false;
  end();
}

/* The cable is pulled for good: lwIP gives up on what it could not send. */
static void test_gives_up(void)
{
  char data[16];
  int status = PORT_WOULD_BLOCK;
  connect_both();
  cable = false;
  CHECK_EQUAL(link_send("request", 7), 7);
  for (int i = 0; i < 3000 && status == PORT_WOULD_BLOCK; i++)
    status = link_recv(data, sizeof data, 1000);
  CHECK_EQUAL(status, PORT_CLOSED);
  CHECK(error_begins(&link, "no answer"));
  end_peer();
  cable = true;
  end();
}

/*
 * Whatever is under way when the client closes, in any state, is not seen by the next connection.
 */
static void test_close_in_any_state(void)
{
  char data[16];
  for (int turns = 0; turns < 40; turns++) {
    begin();
    if (link_connect(0) == PORT_WOULD_BLOCK) {
      for (int i = 0; i < turns / 4; i++)
        turn(0);
    }
    if (link_connect(0) == PORT_OK) {
      (void)link_send("request", 7);
      for (int i = 0; i < turns % 4; i++)
        turn(10);
      if (peer != NULL) peer_send("old", 3);
      for (int i = 0; i < turns % 3; i++)
        turn(10);
    }
    link_close();
    CHECK_EQUAL(link_connect(1000), PORT_OK);
    pass(500);
    CHECK_EQUAL(link_recv(data, sizeof data, 0), PORT_WOULD_BLOCK);
    end();
  }
}

/*
 * Callbacks that lwIP should not make, for a connection that is not ours: not believed, freed,
 * aborted.
 */
static void test_late_callbacks(void)
{
  connect_both();
  tcp_recv_fn received = link.pcb->recv;
  tcp_connected_fn connected = link.pcb->connected;
  tcp_sent_fn sent = link.pcb->sent;
  for (int i = 0; i < 2; i++) { /* with our context, and with none */
    void *context = i == 0 ? &link : NULL;
    CHECK_EQUAL(sent(context, NULL, 1), ERR_OK);
    CHECK_EQUAL(received(context, tcp_new(), pbuf_alloc(PBUF_RAW, 8, PBUF_RAM), ERR_OK), ERR_ABRT);
    CHECK_EQUAL(received(context, tcp_new(), NULL, ERR_OK), ERR_ABRT);
    CHECK_EQUAL(connected(context, tcp_new(), ERR_OK), ERR_ABRT);
  }
  CHECK(link.received == NULL);
  CHECK_EQUAL(link_send("request", 7), 7);
  link.pcb->errf(NULL, ERR_RST);
  end();
}

static void test_out_of_memory(void)
{
  char data[16];
  begin();
  out_of_memory = true;
  CHECK_EQUAL(link_connect(100), PORT_UNREACHABLE);
  CHECK(error_begins(&link, "no memory"));
  out_of_memory = false;
  CHECK_EQUAL(link_connect(1000), PORT_OK);
  pass(100);
  out_of_memory = true;
  CHECK_EQUAL(link_send("request", 7), PORT_WOULD_BLOCK);
  CHECK_EQUAL(link_recv(data, sizeof data, 50), PORT_WOULD_BLOCK);
  out_of_memory = false;
  CHECK_EQUAL(link_send("request", 7), 7);
  pass(100);
  CHECK_EQUAL(peer_received, 7);
  end();
}

/* Several addresses, and a name service: at port 53 of the same host */

static struct udp_pcb *name_server;
static int questions;
static bool names_known;    /* or there is no such name */
static bool name_server_up; /* or it says nothing */

/* A question as it came, with the answer behind it: 10.0.0.1, of 60 s. */
static void answer_question(void *context, struct udp_pcb *pcb, struct pbuf *data,
                            const ip_addr_t *address, u16_t port)
{
  static const uint8_t record[16] = {0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4, 10, 0, 0, 1};
  (void)context;
  questions++;
  if (name_server_up) {
    struct pbuf *reply =
        pbuf_alloc(PBUF_TRANSPORT, (u16_t)(data->tot_len + sizeof record), PBUF_RAM);
    CHECK(reply != NULL);
    pbuf_copy(reply, data);
    pbuf_take_at(reply, record, sizeof record, data->tot_len);
    pbuf_put_at(reply, 2, 0x81);
    pbuf_put_at(reply, 3, names_known ? 0x80 : 0x83);
    pbuf_put_at(reply, 7, names_known);
    udp_sendto(pcb, reply, address, port);
    pbuf_free(reply);
  }
  pbuf_free(data);
}

static struct port_lwip_seeds seeds;

static bool aim(const char *address)
{
  return seeds.lwip.transport.aim(seeds.lwip.transport.context, address);
}

static int seeds_connect(uint32_t timeout_ms)
{
  return seeds.lwip.transport.connect(seeds.lwip.transport.context, timeout_ms);
}

/* As the client does: until it is decided. */
static int seeds_reach(void)
{
  int status = PORT_WOULD_BLOCK;
  for (int i = 0; i < 100 && status == PORT_WOULD_BLOCK; i++)
    status = seeds_connect(100);
  return status;
}

static void seeds_close(void)
{
  seeds.lwip.transport.close(seeds.lwip.transport.context);
}

static void begin_seeds(const char *list)
{
  ip_addr_t address;
  begin();
  IP_ADDR4(&address, 10, 0, 0, 1);
  if (name_server == NULL) {
    name_server = udp_new();
    CHECK_EQUAL(udp_bind(name_server, IP_ADDR_ANY, 53), ERR_OK);
    udp_recv(name_server, answer_question, NULL);
    memory_at_rest = used;
  }
  dns_setserver(0, &address);
  name_server_up = true;
  names_known = true;
  questions = 0;
  CHECK(port_lwip_init_seeds(&seeds, &hooks, list));
}

static void end_seeds(void)
{
  seeds_close();
  end();
}

/* In turn, and from the first again. */
static void test_seeds(void)
{
  begin_seeds("10.0.0.1:1,[10.0.0.1]:6379,10.0.0.1:2");
  CHECK(aim(NULL));
  CHECK_EQUAL(seeds_reach(), PORT_UNREACHABLE);
  CHECK(aim(NULL));
  CHECK_EQUAL(seeds_reach(), PORT_OK);
  seeds_close();
  CHECK(!aim(NULL)); /* the last */
  CHECK_EQUAL(seeds_reach(), PORT_UNREACHABLE);
  CHECK(aim(NULL));
  CHECK_EQUAL(seeds_reach(), PORT_UNREACHABLE);
  CHECK(aim(NULL));
  CHECK_EQUAL(seeds_reach(), PORT_OK);
  CHECK_EQUAL(questions, 0);
  end_seeds();
}

static void test_seeds_refused(void)
{
  static const char *const bad[] = {"",
                                    "10.0.0.1",
                                    "10.0.0.1:",
                                    ":6379",
                                    "10.0.0.1:0",
                                    "10.0.0.1:65536",
                                    "10.0.0.1:63a79",
                                    "10.0.0.1:1,",
                                    "a:1,:2",
                                    "10.0.0.1:99999999999"};
  static char long_name[DNS_MAX_NAME_LENGTH + 3];
  begin();
  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
    CHECK(!port_lwip_init_seeds(&seeds, &hooks, bad[i]));
  memset(long_name, 'n', sizeof long_name);
  memcpy(long_name + sizeof long_name - 3, ":1", 3);
  CHECK(!port_lwip_init_seeds(&seeds, &hooks, long_name));
  CHECK(port_lwip_init_seeds(&seeds, &hooks, long_name + 1));
  CHECK(port_lwip_init_seeds(&seeds, &hooks, "10.0.0.1:65535,node-2:1"));
  end();
}

/* Elsewhere, to another port there, and back to the seeds; what is no address changes nothing. */
static void test_redirected(void)
{
  begin_seeds("10.0.0.1:1");
  CHECK(!aim(NULL));
  CHECK(aim("10.0.0.1:6379"));
  CHECK_EQUAL(seeds_reach(), PORT_OK);
  CHECK(aim("10.0.0.1:2")); /* for the next connection */
  CHECK(!aim("10.0.0.1:x"));
  pass(100);
  CHECK_EQUAL(seeds_connect(0), PORT_OK);
  seeds_close();
  CHECK_EQUAL(seeds_reach(), PORT_UNREACHABLE);
  CHECK(aim(":6379"));
  CHECK_EQUAL(seeds_reach(), PORT_OK);
  seeds_close();
  CHECK(!aim(NULL));
  CHECK_EQUAL(seeds_reach(), PORT_UNREACHABLE);
  end_seeds();
}

/* Looked up, by a name service that answers, that knows no such name, and that is silent. */
static void test_names(void)
{
  begin_seeds("one:6379,two:6379");
  CHECK(aim(NULL));
  CHECK_EQUAL(seeds_connect(0), PORT_WOULD_BLOCK);
  CHECK_EQUAL(seeds_reach(), PORT_OK);
  CHECK_EQUAL(questions, 1);
  seeds_close();
  names_known = false;
  CHECK(!aim(NULL));
  CHECK_EQUAL(seeds_reach(), PORT_UNREACHABLE);
  CHECK_EQUAL(questions, 2);
  CHECK(error_begins(&seeds.lwip, "the name"));
  CHECK_EQUAL(seeds_connect(0), PORT_WOULD_BLOCK); /* asked anew */
  CHECK_EQUAL(seeds_reach(), PORT_UNREACHABLE);
  name_server_up = false;
  CHECK(aim("three:6379"));
  CHECK_EQUAL(seeds_connect(500), PORT_WOULD_BLOCK);
  CHECK_EQUAL(seeds_connect(500), PORT_WOULD_BLOCK);
  seeds_close();
  CHECK(aim("10.0.0.1:6379"));
  CHECK_EQUAL(seeds_reach(), PORT_OK);
  pass(30000); /* lwIP gives up on its question */
  end_seeds();
}

/* The answer to an earlier question must not lead to an address that is no longer wanted. */
static void test_late_name(void)
{
  begin_seeds("late:6379");
  (void)aim(NULL);
  name_server_up = false;
  CHECK_EQUAL(seeds_connect(0), PORT_WOULD_BLOCK);
  pass(50);
  seeds_close();
  CHECK(aim("10.0.0.2:6379"));
  CHECK_EQUAL(seeds_connect(0), PORT_WOULD_BLOCK);
  name_server_up = true;
  pass(5000); /* asked once more, and answered */
  CHECK(questions > 1);
  CHECK_EQUAL(ip4_addr4(&seeds.lwip.address), 2);
  seeds_close();
  name_server_up = false;
  CHECK(aim("later:6379"));
  CHECK_EQUAL(seeds_connect(0), PORT_WOULD_BLOCK);
  CHECK(aim("other:6379"));
  CHECK_EQUAL(seeds_connect(0), PORT_WOULD_BLOCK);
  pass(50);
  CHECK_EQUAL(seeds_connect(0), PORT_WOULD_BLOCK);
  name_server_up = true;
  CHECK_EQUAL(seeds_reach(), PORT_OK);
  end_seeds();
}

const struct check_test check_tests[] = {
    {"lwip_both_ways", test_both_ways},
    {"lwip_refused", test_refused},
    {"lwip_no_answer", test_no_answer},
    {"lwip_no_route", test_no_route},
    {"lwip_send_pressure", test_send_pressure},
    {"lwip_receive_pressure", test_receive_pressure},
    {"lwip_peer_closes", test_peer_closes},
    {"lwip_peer_resets", test_peer_resets},
    {"lwip_closes_at_once", test_closes_at_once},
    {"lwip_reset_while_waiting", test_reset_while_waiting},
    {"lwip_gives_up", test_gives_up},
    {"lwip_close_in_any_state", test_close_in_any_state},
    {"lwip_late_callbacks", test_late_callbacks},
    {"lwip_out_of_memory", test_out_of_memory},
    {"lwip_seeds", test_seeds},
    {"lwip_seeds_refused", test_seeds_refused},
    {"lwip_redirected", test_redirected},
    {"lwip_names", test_names},
    {"lwip_late_name", test_late_name},
    {0},
};
