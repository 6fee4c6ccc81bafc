/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What port/netx does beyond the contract of port.h, and what NetX Duo does that other stacks do not:
 * a packet that is sent in part and refused, a pool without packets, a connection that does not end.
 * ThreadX and NetX Duo are stand-ins (see the headers beside this). Each test ends with all packets
 * back in their pools, and nothing left that was made.
 */
#include "check.h"
#include "port_netx.h"
#include "port_netx_names.h"
#include "support/loopback.h"
#include "ticks.h"

#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* Those of a client and of its server; -1: none. */
static struct port_netx server;
static int listener = -1;
static int peer = -1;
static int port;

/* The pool of the stack, of packets with so many bytes each, and that of what is sent. */
static _Alignas(16) unsigned char memory[64 * 1664], sending_memory[16 * 256];
static NX_PACKET_POOL sending;

static ULONG available(NX_PACKET_POOL *pool)
{
  ULONG count = 0;
  (void)nx_packet_pool_info_get(pool, NX_NULL, &count, NX_NULL, NX_NULL, NX_NULL);
  return count;
}

static void set_up(ULONG payload)
{
  memset(&nx_ip, 0, sizeof nx_ip);
  tx_flags_status = TX_SUCCESS;
  CHECK_EQUAL(nx_packet_pool_create(&nx_pool, "packets", payload, memory, sizeof memory),
              NX_SUCCESS);
  CHECK_EQUAL(nx_packet_pool_create(&sending, "sending", NX_TCP_PACKET + 100, sending_memory,
                                    sizeof sending_memory),
              NX_SUCCESS);
}

static void aim(ULONG address)
{
  const NXD_ADDRESS there = {.nxd_ip_version = NX_IP_VERSION_V4, .nxd_ip_address.v4 = address};
  port_netx_init(&server, &nx_ip, &sending, &there, (UINT)port);
}

#define LINK (&server.transport)
#include "support/link.h"

/* Does it again until there is something to return, for ten seconds at most. */
static int connect_in_the_end(void)
{
  int status = PORT_WOULD_BLOCK;
  for (int i = 0; i < 100 && status == PORT_WOULD_BLOCK; i++)
    status = link_connect(100);
  return status;
}

static int recv_in_the_end(void *data, size_t size)
{
  int got = PORT_WOULD_BLOCK;
  for (int i = 0; i < 100 && got == PORT_WOULD_BLOCK; i++)
    got = link_recv(data, size, 100);
  return got;
}

/* A connection to a server of the host's. */
static void open_link(ULONG payload)
{
  set_up(payload);
  listener = listen_anywhere(&port);
  aim(IP_ADDRESS(127, 0, 0, 1));
  CHECK_EQUAL(connect_in_the_end(), PORT_OK);
  CHECK_EQUAL(port_netx_error(&server), NX_SUCCESS);
  peer = take_call(listener);
  CHECK(peer >= 0);
}

static void check_nothing_left(void)
{
  CHECK_EQUAL(tx_objects, 0);
  CHECK_EQUAL(nx_ip.sockets, 0);
  CHECK_EQUAL(available(&nx_pool), nx_pool.nx_packet_pool_total);
  CHECK_EQUAL(available(&sending), sending.nx_packet_pool_total);
}

static void close_link(void)
{
  link_close();
  if (peer >= 0) (void)close(peer);
  if (listener >= 0) (void)close(listener);
  peer = listener = -1;
  check_nothing_left();
}

/* What the peer has received, which is not more. */
static void check_peer_got(const void *data, size_t size)
{
  char got[2048];
  size_t so_far = 0;
  CHECK(size <= sizeof got);
  while (so_far < size) {
    ssize_t now = read(peer, got + so_far, size - so_far);
    if (!CHECK(now > 0)) return;
    so_far += (size_t)now;
  }
  CHECK_BYTES(got, so_far, data, size);
  CHECK_EQUAL(recv(peer, got, sizeof got, MSG_DONTWAIT), -1);
}

/* ---- connecting ---- */

/* Each thing that can be lacking ends the attempt, is told, and leaves nothing; the next succeeds. */
static void test_what_connecting_lacks(void)
{
  UINT *const lacks[] = {&tx_flags_status, &nx_ip.create_status, &nx_ip.bind_status,
                         &nx_ip.connect_status};
  static const UINT status[] = {TX_NO_MEMORY, NX_NOT_ENABLED, NX_NO_FREE_PORTS,
                                NX_IP_ADDRESS_ERROR};
  set_up(1536);
  listener = listen_anywhere(&port);
  aim(IP_ADDRESS(127, 0, 0, 1));
  for (size_t i = 0; i < sizeof lacks / sizeof *lacks; i++) {
    *lacks[i] = status[i];
    CHECK_EQUAL(link_connect(1000), PORT_UNREACHABLE);
    CHECK_EQUAL(port_netx_error(&server), status[i]);
    check_nothing_left();
    link_close();
    *lacks[i] = NX_SUCCESS;
    CHECK_EQUAL(connect_in_the_end(), PORT_OK);
    CHECK_EQUAL(link_connect(1000), PORT_OK); /* and that it is connected, it says again */
    link_close();
    check_nothing_left();
  }
  close_link();
}

static void test_refused(void)
{
  set_up(1536);
  port = free_port();
  aim(IP_ADDRESS(127, 0, 0, 1));
  CHECK_EQUAL(connect_in_the_end(), PORT_UNREACHABLE);
  CHECK_EQUAL(port_netx_error(&server), NX_NOT_CONNECTED);
  close_link();
}

/* It looks now and then, for as long as it may; and does not sleep when it may not. */
static void test_silent(void)
{
  set_up(1536);
  nx_ip.silent = 1;
  listener = listen_anywhere(&port);
  aim(IP_ADDRESS(127, 0, 0, 1));
  tx_sleeps = 0;
  CHECK_EQUAL(link_connect(0), PORT_WOULD_BLOCK);
  CHECK_EQUAL(tx_sleeps, 0);
  uint32_t began = port_clock_ms();
  CHECK_EQUAL(link_connect(100), PORT_WOULD_BLOCK);
  CHECK(port_clock_ms() - began >= 100);
  CHECK(tx_sleeps > 0 && tx_sleeps <= 11);
  CHECK_EQUAL(nx_ip.sockets, 1); /* one attempt goes on */
  link_close();
  CHECK_EQUAL(port_netx_error(&server), NX_IN_PROGRESS);
  close_link();
}

static void test_ipv6(void)
{
  static const NXD_ADDRESS there = {.nxd_ip_version = NX_IP_VERSION_V6,
                                    .nxd_ip_address.v6 = {0, 0, 0, 1}};
  struct sockaddr_in6 own = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
  socklen_t size = sizeof own;
  set_up(1536);
  listener = socket(AF_INET6, SOCK_STREAM, 0);
  if (listener < 0 || bind(listener, (struct sockaddr *)&own, size) != 0) {
    check_skip("no IPv6 on this machine");
    return;
  }
  CHECK_EQUAL(listen(listener, 1), 0);
  CHECK_EQUAL(getsockname(listener, (struct sockaddr *)&own, &size), 0);
  port_netx_init(&server, &nx_ip, &sending, &there, ntohs(own.sin6_port));
  CHECK_EQUAL(connect_in_the_end(), PORT_OK);
  close_link();
}

/* A name is looked up for each attempt. */
static void test_names(void)
{
  static NX_DNS dns = {.name = "redis.example", .address = IP_ADDRESS(127, 0, 0, 1)};
  set_up(1536);
  listener = listen_anywhere(&port);
  port_netx_host(&server, &nx_ip, &sending, &dns, "none.example", (UINT)port);
  CHECK_EQUAL(link_connect(1000), PORT_UNREACHABLE);
  CHECK_EQUAL(port_netx_error(&server), NX_DNS_QUERY_FAILED);
  check_nothing_left();
  port_netx_host(&server, &nx_ip, &sending, &dns, "redis.example", (UINT)port);
  dns.lookups = 0;
  for (unsigned i = 1; i <= 2; i++) {
    CHECK_EQUAL(connect_in_the_end(), PORT_OK);
    CHECK_EQUAL(dns.lookups, i);
    CHECK_EQUAL(dns.wait, 100);
    link_close();
  }
  close_link();
}

/* ---- sending ---- */

/* NetX takes a part of a packet, and refuses the rest: not a byte is lost, or sent twice. */
static void test_refused_half_way(void)
{
  static const UINT status[] = {NX_WINDOW_OVERFLOW, NX_TX_QUEUE_DEPTH, NX_NO_PACKET};
  static const char text[] = "the first part, and the second";
  for (size_t i = 0; i < sizeof status / sizeof *status; i++) {
    open_link(1536);
    nx_ip.send_status = status[i];
    nx_ip.send_part = 16;
    CHECK_EQUAL(link_send(text, sizeof text), 16);
    CHECK_EQUAL(available(&sending), sending.nx_packet_pool_total);
    nx_ip.send_part = 0;
    CHECK_EQUAL(link_send(text + 16, sizeof text - 16), PORT_WOULD_BLOCK);
    CHECK_EQUAL(available(&sending), sending.nx_packet_pool_total);
    nx_ip.send_status = NX_SUCCESS;
    CHECK_EQUAL(link_send(text + 16, sizeof text - 16), sizeof text - 16);
    check_peer_got(text, sizeof text);
    close_link();
  }
}

/* One packet a call, and no more than fits into it: there may be no second one. */
static void test_packets_that_are_small(void)
{
  char data[250];
  for (size_t i = 0; i < sizeof data; i++)
    data[i] = (char)i;
  open_link(1536);
  CHECK_EQUAL(link_send(data, 250), 100);
  CHECK_EQUAL(link_send(data + 100, 150), 100);
  CHECK_EQUAL(link_send(data + 200, 50), 50);
  CHECK_EQUAL(nx_ip.sends, 3);
  check_peer_got(data, sizeof data);
  close_link();
}

static NX_PACKET *taken[128];

/* Takes packets until so many are left. */
static void take_but(NX_PACKET_POOL *pool, ULONG left)
{
  unsigned count = 0;
  while (available(pool) > left &&
         nx_packet_allocate(pool, &taken[count], 0, NX_NO_WAIT) == NX_SUCCESS)
    count++;
  taken[count] = NULL;
}

static void give_back(void)
{
  for (unsigned i = 0; taken[i] != NULL; i++)
    (void)nx_packet_release(taken[i]);
}

/*
 * Without a packet nothing is sent, and recv() waits only a moment, but it does wait: the client
 * would offer the same again without a pause.
 */
static void test_no_packets(void)
{
  char data[8];
  open_link(1536);
  take_but(&sending, 0);
  uint32_t began = port_clock_ms();
  for (int i = 0; i < 10; i++) {
    CHECK_EQUAL(link_send("x", 1), PORT_WOULD_BLOCK);
    CHECK_EQUAL(link_recv(data, sizeof data, 5000), PORT_WOULD_BLOCK);
  }
  uint32_t took = port_clock_ms() - began;
  CHECK(took >= 50);
  CHECK(took < 25000);
  CHECK_EQUAL(nx_ip.sends, 0);
  CHECK_EQUAL(link_send("x", 1), PORT_WOULD_BLOCK);
  CHECK_EQUAL(link_recv(data, sizeof data, 0), PORT_WOULD_BLOCK);
  give_back();
  CHECK_EQUAL(link_send("y", 1), 1);
  check_peer_got("y", 1);
  close_link();
}

/* The last two packets are left to the stack, which needs one to receive an acknowledgement. */
static void test_packets_to_spare(void)
{
  open_link(1536);
  take_but(&sending, 2);
  CHECK_EQUAL(link_send("x", 1), PORT_WOULD_BLOCK);
  CHECK_EQUAL(available(&sending), 2);
  give_back();
  take_but(&sending, 3);
  CHECK_EQUAL(link_send("y", 1), 1);
  give_back();
  check_peer_got("y", 1);
  close_link();
}

/* A packet that cannot be filled goes back. */
static void test_packet_that_takes_nothing(void)
{
  open_link(1536);
  nx_ip.append_status = NX_INVALID_PARAMETERS;
  CHECK_EQUAL(link_send("x", 1), PORT_WOULD_BLOCK);
  CHECK_EQUAL(available(&sending), sending.nx_packet_pool_total);
  CHECK_EQUAL(nx_ip.sends, 0);
  nx_ip.append_status = NX_SUCCESS;
  close_link();
}

/* A task that waits in recv(), once, for a long time. */
static void *wait_in_recv(void *context)
{
  char data[8];
  int *got = context;
  *got = link_recv(data, sizeof data, 30000);
  return NULL;
}

/* When it has looked, it waits, or soon will. */
static void start_waiting(pthread_t *waiter, int *got)
{
  nx_ip.receives = 0;
  CHECK_EQUAL(pthread_create(waiter, NULL, wait_in_recv, got), 0);
  while (__atomic_load_n(&nx_ip.receives, __ATOMIC_RELAXED) == 0)
    (void)tx_thread_sleep(1);
  (void)tx_thread_sleep(2);
}

/* It returns when another one's send() finds no room, though nothing comes. */
static void test_send_wakes_recv(void)
{
  pthread_t waiter;
  int got = 0;
  open_link(1536);
  uint32_t began = port_clock_ms();
  start_waiting(&waiter, &got);
  nx_ip.send_status = NX_WINDOW_OVERFLOW;
  CHECK_EQUAL(link_send("x", 1), PORT_WOULD_BLOCK);
  CHECK_EQUAL(pthread_join(waiter, NULL), 0);
  CHECK_EQUAL(got, PORT_WOULD_BLOCK);
  CHECK(port_clock_ms() - began < 20000);
  nx_ip.send_status = NX_SUCCESS;
  CHECK_EQUAL(link_send("y", 1), 1);
  check_peer_got("y", 1);
  close_link();
}

/* ---- receiving ---- */

/* What ends the wait is returned at once. */
static void test_byte_wakes_recv(void)
{
  pthread_t waiter;
  int got = 0;
  open_link(1536);
  uint32_t began = port_clock_ms();
  start_waiting(&waiter, &got);
  CHECK_EQUAL(write(peer, "ab", 2), 2);
  CHECK_EQUAL(pthread_join(waiter, NULL), 0);
  CHECK_EQUAL(got, 2);
  start_waiting(&waiter, &got);
  (void)close(peer);
  peer = -1;
  CHECK_EQUAL(pthread_join(waiter, NULL), 0);
  CHECK_EQUAL(got, PORT_CLOSED);
  CHECK(port_clock_ms() - began < 20000);
  close_link();
}

/* Messages of several packets, each of which is handed out in pieces; one without a byte before them. */
static void test_chains_in_pieces(void)
{
  char data[700], got[sizeof data];
  size_t so_far = 0;
  for (size_t i = 0; i < sizeof data; i++)
    data[i] = (char)(i * 7);
  open_link(64);
  __atomic_store_n(&nx_ip.empty_packet, 1, __ATOMIC_RELAXED);
  CHECK_EQUAL(write(peer, data, sizeof data), sizeof data);
  while (so_far < sizeof data) {
    size_t most = so_far % 90 + 1;
    int now =
        recv_in_the_end(got + so_far, sizeof got - so_far < most ? sizeof got - so_far : most);
    if (!CHECK(now > 0)) break;
    so_far += (size_t)now;
  }
  CHECK_BYTES(got, so_far, data, sizeof data);
  CHECK_EQUAL(nx_ip.empty_packet, 0);
  CHECK_EQUAL(available(&nx_pool), nx_pool.nx_packet_pool_total);
  close_link();
}

/* What has been taken long ago does not end the next wait. */
static void test_waits_after_bytes(void)
{
  char data[8];
  open_link(1536);
  CHECK_EQUAL(write(peer, "ab", 2), 2);
  CHECK_EQUAL(recv_in_the_end(data, sizeof data), 2);
  uint32_t began = port_clock_ms();
  CHECK_EQUAL(link_recv(data, sizeof data, 100), PORT_WOULD_BLOCK);
  CHECK(port_clock_ms() - began >= 90);
  close_link();
}

/* While the pool is empty nothing comes, and nothing is lost. */
static void test_no_packets_to_receive(void)
{
  char data[8];
  open_link(1536);
  take_but(&nx_pool, 0);
  CHECK_EQUAL(write(peer, "late", 4), 4);
  CHECK_EQUAL(link_recv(data, sizeof data, 50), PORT_WOULD_BLOCK);
  give_back();
  CHECK_EQUAL(recv_in_the_end(data, sizeof data), 4);
  CHECK_BYTES(data, 4, "late", 4);
  close_link();
}

/* A packet that cannot be read: what was in it is unknown, so the connection ends. */
static void test_packet_that_cannot_be_read(void)
{
  char data[8];
  open_link(1536);
  nx_ip.extract_status = NX_PACKET_OFFSET_ERROR;
  CHECK_EQUAL(write(peer, "ab", 2), 2);
  CHECK_EQUAL(recv_in_the_end(data, sizeof data), PORT_CLOSED);
  close_link();
}

/* ---- the end of a connection ---- */

/* A server that refuses says why, and resets: sending does not hide it. */
static void test_last_words(void)
{
  static const struct linger at_once = {.l_onoff = 1, .l_linger = 0};
  char data[8];
  open_link(1536);
  CHECK_EQUAL(write(peer, "-ERR", 4), 4);
  while (available(&nx_pool) == nx_pool.nx_packet_pool_total)
    (void)tx_thread_sleep(1);
  (void)setsockopt(peer, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
  (void)close(peer);
  peer = -1;
  int sent = 1;
  for (int i = 0; i < 1000 && sent > 0; i++) {
    sent = link_send("x", 1);
    if (sent > 0) (void)tx_thread_sleep(1);
  }
  CHECK_EQUAL(sent, PORT_WOULD_BLOCK);
  CHECK_EQUAL(recv_in_the_end(data, sizeof data), 4);
  CHECK_EQUAL(link_send("x", 1), PORT_WOULD_BLOCK);
  CHECK_EQUAL(recv_in_the_end(data, sizeof data), PORT_CLOSED);
  CHECK_EQUAL(link_send("x", 1), PORT_CLOSED);
  CHECK_EQUAL(link_recv(data, sizeof data, 1000), PORT_CLOSED);
  close_link();
}

static ULONG state_of_socket(void)
{
  ULONG state = 0;
  (void)nx_tcp_socket_info_get(&server.socket, NX_NULL, NX_NULL, NX_NULL, NX_NULL, NX_NULL, NX_NULL,
                               NX_NULL, &state, NX_NULL, NX_NULL, NX_NULL);
  return state;
}

/* So does one that has closed before connect() looked. */
static void test_closed_while_connecting(void)
{
  char data[8];
  set_up(1536);
  listener = listen_anywhere(&port);
  aim(IP_ADDRESS(127, 0, 0, 1));
  (void)link_connect(0);
  peer = take_call(listener);
  CHECK_EQUAL(write(peer, "-ERR", 4), 4);
  (void)close(peer);
  peer = -1;
  for (int i = 0; i < 1000 && state_of_socket() != NX_TCP_CLOSE_WAIT; i++)
    (void)tx_thread_sleep(1);
  CHECK_EQUAL(link_connect(0), PORT_OK);
  CHECK_EQUAL(recv_in_the_end(data, sizeof data), 4);
  CHECK_EQUAL(recv_in_the_end(data, sizeof data), PORT_CLOSED);
  close_link();
}

/* The peer is told at once, and what was received and not taken goes back to the pool. */
static void test_close_tells(void)
{
  char data[8];
  open_link(1536);
  CHECK_EQUAL(write(peer, "abc", 3), 3);
  CHECK_EQUAL(recv_in_the_end(data, 1), 1);
  CHECK_EQUAL(write(peer, "def", 3), 3);
  while (nx_pool.nx_packet_pool_total - available(&nx_pool) < 2)
    (void)tx_thread_sleep(1);
  link_close();
  check_nothing_left();
#ifdef NX_DISABLE_RESET_DISCONNECT
  CHECK_EQUAL(read(peer, data, sizeof data), 0);
#else
  CHECK_EQUAL(read(peer, data, sizeof data), -1);
  CHECK_EQUAL(errno, ECONNRESET);
#endif
  link_close();
  CHECK_EQUAL(link_send("x", 1), PORT_CLOSED);
  CHECK_EQUAL(link_recv(data, sizeof data, 1000), PORT_CLOSED);
  close_link();
}

/* A server that does not close its side keeps nobody from the next connection, nor from the end. */
static void test_close_beside_a_silent_server(void)
{
  int silent[3];
  open_link(1536);
  for (int i = 0; i < 3; i++) {
    link_close();
    check_nothing_left();
    silent[i] = peer;
    CHECK_EQUAL(connect_in_the_end(), PORT_OK);
    peer = take_call(listener);
  }
  CHECK_EQUAL(link_send("x", 1), 1);
  check_peer_got("x", 1);
  close_link();
  for (int i = 0; i < 3; i++)
    (void)close(silent[i]);
}

/* ---- times ---- */

static void test_ticks(void)
{
  CHECK_EQUAL(ticks(0), TX_NO_WAIT);
  CHECK_EQUAL(ticks(1), 1);
  CHECK_EQUAL(ticks(10), 1);
  CHECK_EQUAL(ticks(11), 2);
  CHECK_EQUAL(ticks(60000), 6000);
  CHECK_EQUAL(ticks(UINT32_MAX), 6000);
}

const struct check_test check_tests[] = {
    {"netx: what connecting lacks", test_what_connecting_lacks},
    {"netx: refused", test_refused},
    {"netx: silent", test_silent},
    {"netx: IPv6", test_ipv6},
    {"netx: names", test_names},
    {"netx: refused half-way", test_refused_half_way},
    {"netx: packets that are small", test_packets_that_are_small},
    {"netx: no packets", test_no_packets},
    {"netx: packets to spare", test_packets_to_spare},
    {"netx: packet that takes nothing", test_packet_that_takes_nothing},
    {"netx: send wakes recv", test_send_wakes_recv},
    {"netx: byte wakes recv", test_byte_wakes_recv},
    {"netx: chains in pieces", test_chains_in_pieces},
    {"netx: waits after bytes", test_waits_after_bytes},
    {"netx: no packets to receive", test_no_packets_to_receive},
    {"netx: packet that cannot be read", test_packet_that_cannot_be_read},
    {"netx: last words", test_last_words},
    {"netx: closed while connecting", test_closed_while_connecting},
    {"netx: close tells", test_close_tells},
    {"netx: close beside a silent server", test_close_beside_a_silent_server},
    {"netx: ticks", test_ticks},
    {0}};
