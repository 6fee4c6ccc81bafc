/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A stand-in for NetX Duo over the host's sockets. As in NetX, a connection lives by a thread of the
 * stack's, which receives into packets of the pool and calls back with the stack locked, and no call
 * of the program's waits. A window that is full, and a pool that is empty, stop it from receiving.
 */
#include "nx_api.h"
#include "nxd_dns.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define SEGMENT 1460UL /* the most that comes at once */

int tx_objects;
UINT tx_flags_status;
unsigned tx_sleeps;
NX_IP nx_ip;
NX_PACKET_POOL nx_pool;

/* The protection of the stack; and of all pools, as if interrupts were off. */
static pthread_mutex_t stack = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t pools = PTHREAD_MUTEX_INITIALIZER;

/* ---- packets ---- */

UINT nx_packet_pool_create(NX_PACKET_POOL *pool, const CHAR *name, ULONG payload, VOID *memory,
                           ULONG size)
{
  UCHAR *place = memory;
  ULONG each = (sizeof(NX_PACKET) + payload + 15UL) & ~15UL;
  tx_must(name != NULL && (uintptr_t)memory % sizeof(void *) == 0, "a pool");
  memset(pool, 0, sizeof *pool);
  for (; size >= each; size -= each, place += each) {
    NX_PACKET *packet = (NX_PACKET *)(void *)place;
    memset(packet, 0, sizeof *packet);
    packet->nx_packet_pool_owner = pool;
    packet->nx_packet_data_start = place + sizeof *packet;
    packet->nx_packet_data_end = packet->nx_packet_data_start + payload;
    packet->free = 1;
    packet->nx_packet_queue_next = pool->first_free;
    pool->first_free = packet;
    pool->nx_packet_pool_total++;
  }
  pool->nx_packet_pool_available = pool->nx_packet_pool_total;
  return pool->nx_packet_pool_total > 0 ? NX_SUCCESS : NX_SIZE_ERROR;
}

UINT nx_packet_pool_info_get(NX_PACKET_POOL *pool, ULONG *total, ULONG *available,
                             ULONG *empty_requests, ULONG *empty_suspensions,
                             ULONG *invalid_releases)
{
  tx_must(!total && !empty_requests && !empty_suspensions && !invalid_releases && available != NULL,
          "more than the packets that a pool has"); /* nothing asks for it */
  (void)pthread_mutex_lock(&pools);
  *available = pool->nx_packet_pool_available;
  (void)pthread_mutex_unlock(&pools);
  return NX_SUCCESS;
}

UINT nx_packet_allocate(NX_PACKET_POOL *pool, NX_PACKET **packet, ULONG type, ULONG wait)
{
  tx_must(wait == NX_NO_WAIT, "a wait for a packet"); /* nothing asks for it */
  *packet = NULL;
  (void)pthread_mutex_lock(&pools);
  NX_PACKET *got = pool->first_free;
  if (got == NULL) pool->nx_packet_pool_empty_requests++;
  else {
    pool->first_free = got->nx_packet_queue_next;
    pool->nx_packet_pool_available--;
    got->free = 0;
    got->nx_packet_next = got->nx_packet_queue_next = NULL;
    got->nx_packet_length = 0;
    got->nx_packet_prepend_ptr = got->nx_packet_append_ptr = got->nx_packet_data_start + type;
    if (got->nx_packet_append_ptr > got->nx_packet_data_end)
      got->nx_packet_append_ptr = got->nx_packet_data_end;
  }
  (void)pthread_mutex_unlock(&pools);
  *packet = got;
  return got != NULL ? NX_SUCCESS : NX_NO_PACKET;
}

UINT nx_packet_release(NX_PACKET *packet)
{
  (void)pthread_mutex_lock(&pools);
  while (packet != NULL) {
    NX_PACKET *next = packet->nx_packet_next;
    NX_PACKET_POOL *pool = packet->nx_packet_pool_owner;
    tx_must(!packet->free, "a packet is released twice");
    packet->free = 1;
    packet->nx_packet_queue_next = pool->first_free;
    pool->first_free = packet;
    pool->nx_packet_pool_available++;
    packet = next;
  }
  (void)pthread_mutex_unlock(&pools);
  return NX_SUCCESS;
}

static ULONG available(NX_PACKET_POOL *pool)
{
  ULONG count;
  (void)nx_packet_pool_info_get(pool, NX_NULL, &count, NX_NULL, NX_NULL, NX_NULL);
  return count;
}

/* How much fits into a packet that has no other behind it. */
static ULONG room(const NX_PACKET *packet)
{
  return (ULONG)(packet->nx_packet_data_end - packet->nx_packet_append_ptr);
}

/* Adds packets behind the last one, as long as the pool has some. */
UINT nx_packet_data_append(NX_PACKET *packet, VOID *data, ULONG size, NX_PACKET_POOL *pool,
                           ULONG wait)
{
  const UCHAR *from = data;
  NX_PACKET *last = packet;
  tx_must(!packet->free && wait == NX_NO_WAIT, "data for no packet");
  if (nx_ip.append_status != NX_SUCCESS) return nx_ip.append_status;
  if (size == 0) return NX_SIZE_ERROR;
  while (last->nx_packet_next != NULL)
    last = last->nx_packet_next;
  while (size > 0) {
    ULONG some = room(last) < size ? room(last) : size;
    memcpy(last->nx_packet_append_ptr, from, some);
    last->nx_packet_append_ptr += some;
    packet->nx_packet_length += some;
    from += some;
    size -= some;
    if (size > 0 && nx_packet_allocate(pool, &last->nx_packet_next, 0, wait) != NX_SUCCESS)
      return NX_NO_PACKET;
    if (size > 0) last = last->nx_packet_next;
  }
  return NX_SUCCESS;
}

UINT nx_packet_data_extract_offset(NX_PACKET *packet, ULONG offset, VOID *buffer, ULONG size,
                                   ULONG *copied)
{
  UCHAR *to = buffer;
  tx_must(!packet->free, "data of a packet that was released");
  *copied = 0;
  if (nx_ip.extract_status != NX_SUCCESS) return nx_ip.extract_status;
  if (offset >= packet->nx_packet_length) return NX_PACKET_OFFSET_ERROR;
  for (; packet != NULL && size > 0; packet = packet->nx_packet_next) {
    ULONG here = (ULONG)(packet->nx_packet_append_ptr - packet->nx_packet_prepend_ptr);
    ULONG skipped = offset < here ? offset : here;
    ULONG some = here - skipped < size ? here - skipped : size;
    memcpy(to, packet->nx_packet_prepend_ptr + skipped, some);
    offset -= skipped;
    to += some;
    *copied += some;
    size -= some;
  }
  return NX_SUCCESS;
}

/* ---- the thread of a connection; the stack is locked in all of these but run() ---- */

static void enqueue(NX_TCP_SOCKET *tcp, NX_PACKET *packet)
{
  packet->nx_packet_queue_next = NULL;
  if (tcp->tail != NULL) tcp->tail->nx_packet_queue_next = packet;
  else tcp->head = packet;
  tcp->tail = packet;
  tcp->queued += packet->nx_packet_length;
}

/* What was received stays. */
static void be_reset(NX_TCP_SOCKET *tcp)
{
  bool was_open = tcp->state == NX_TCP_ESTABLISHED;
  tcp->state = NX_TCP_CLOSED;
  if (was_open && tcp->disconnected != NULL) tcp->disconnected(tcp);
}

static void be_closed(NX_TCP_SOCKET *tcp)
{
  tcp->state = tcp->state == NX_TCP_ESTABLISHED ? NX_TCP_CLOSE_WAIT : NX_TCP_TIMED_WAIT;
  if (tcp->disconnected != NULL) tcp->disconnected(tcp);
}

static void send_nothing_first(NX_TCP_SOCKET *tcp)
{
  NX_PACKET *packet;
  if (__atomic_exchange_n(&nx_ip.empty_packet, 0, __ATOMIC_RELAXED) == 0) return;
  if (nx_packet_allocate(tcp->pool, &packet, 0, NX_NO_WAIT) == NX_SUCCESS) enqueue(tcp, packet);
}

/* Receives one message, of as many packets as it takes, or as there are. */
static void receive(NX_TCP_SOCKET *tcp)
{
  UCHAR data[SEGMENT];
  NX_PACKET *packet;
  send_nothing_first(tcp);
  if (nx_packet_allocate(tcp->pool, &packet, 0, NX_NO_WAIT) != NX_SUCCESS) return;
  ULONG fits = room(packet) * (1UL + available(tcp->pool));
  if (fits > SEGMENT) fits = SEGMENT;
  if (fits > tcp->window - tcp->queued) fits = tcp->window - tcp->queued;
  ssize_t got = recv(tcp->fd, data, fits, MSG_DONTWAIT | MSG_PEEK);
  if (got > 0 &&
      nx_packet_data_append(packet, data, (ULONG)got, tcp->pool, NX_NO_WAIT) == NX_SUCCESS) {
    (void)recv(tcp->fd, data, (size_t)got, MSG_DONTWAIT);
    enqueue(tcp, packet);
    if (tcp->received != NULL) tcp->received(tcp);
    return;
  }
  (void)nx_packet_release(packet);
  if (got == 0) be_closed(tcp);
  else if (got < 0 && errno != EAGAIN) be_reset(tcp);
}

static bool receives(const NX_TCP_SOCKET *tcp)
{
  return tcp->state == NX_TCP_ESTABLISHED || tcp->state == NX_TCP_FIN_WAIT_1;
}

static int error_of(int fd)
{
  int error = 0;
  socklen_t size = sizeof error;
  (void)getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size);
  return error;
}

static void look(NX_TCP_SOCKET *tcp, int came)
{
  if (tcp->state == NX_TCP_SYN_SENT && came != 0)
    tcp->state = error_of(tcp->fd) == 0 ? NX_TCP_ESTABLISHED : NX_TCP_CLOSED;
  else if (receives(tcp) && (came & POLLIN)) receive(tcp);
  else if (receives(tcp) && (came & (POLLERR | POLLHUP))) be_reset(tcp);
}

/* Waits for what the connection waits for, or for a byte of the pair. */
static void *run(void *context)
{
  NX_TCP_SOCKET *tcp = context;
  (void)pthread_mutex_lock(&stack);
  while (tcp->thread_runs) {
    bool full = tcp->queued >= tcp->window || available(tcp->pool) == 0;
    struct pollfd wanted[2] = {{.fd = -1}, {.fd = tcp->wake[0], .events = POLLIN}};
    bool connects = tcp->state == NX_TCP_SYN_SENT && !tcp->ip->silent;
    if (connects || receives(tcp)) wanted[0].fd = tcp->fd;
    if (tcp->state == NX_TCP_SYN_SENT) wanted[0].events = POLLOUT;
    else if (!full) wanted[0].events = POLLIN;
    (void)pthread_mutex_unlock(&stack);
    (void)poll(wanted, 2, full ? 10 : -1);
    char bytes[16];
    if (wanted[1].revents != 0) (void)!read(tcp->wake[0], bytes, sizeof bytes);
    (void)pthread_mutex_lock(&stack);
    if (tcp->thread_runs) look(tcp, wanted[0].revents);
  }
  (void)pthread_mutex_unlock(&stack);
  return NULL;
}

/* ---- what the program calls ---- */

/* Ends the thread and the host's connection. Called without the lock. */
static void halt(NX_TCP_SOCKET *tcp)
{
  if (tcp->fd < 0) return;
  (void)pthread_mutex_lock(&stack);
  tcp->thread_runs = 0;
  (void)pthread_mutex_unlock(&stack);
  (void)!write(tcp->wake[1], "", 1);
  (void)pthread_join(tcp->thread, NULL);
  (void)close(tcp->fd);
  (void)close(tcp->wake[0]);
  (void)close(tcp->wake[1]);
  tcp->fd = -1;
}

UINT nx_tcp_socket_create(NX_IP *ip, NX_TCP_SOCKET *tcp, const CHAR *name, ULONG service,
                          ULONG fragment, UINT time_to_live, ULONG window,
                          VOID (*urgent)(NX_TCP_SOCKET *tcp),
                          VOID (*disconnected)(NX_TCP_SOCKET *tcp))
{
  tx_must(name != NULL && service == NX_IP_NORMAL && fragment == NX_FRAGMENT_OKAY &&
              time_to_live == NX_IP_TIME_TO_LIVE && urgent == NULL,
          "a socket");
  if (ip->create_status != NX_SUCCESS) return ip->create_status;
  memset(tcp, 0, sizeof *tcp);
  tcp->ip = ip;
  tcp->pool = &nx_pool;
  tcp->window = window;
  tcp->disconnected = disconnected;
  tcp->state = NX_TCP_CLOSED;
  tcp->fd = -1;
  ip->sockets++;
  return NX_SUCCESS;
}

UINT nx_tcp_socket_receive_notify(NX_TCP_SOCKET *tcp, VOID (*received)(NX_TCP_SOCKET *tcp))
{
  tcp->received = received;
  return NX_SUCCESS;
}

UINT nx_tcp_client_socket_bind(NX_TCP_SOCKET *tcp, UINT port, ULONG wait)
{
  tx_must(!tcp->bound && port == NX_ANY_PORT && wait == NX_NO_WAIT, "a port to bind to");
  if (tcp->ip->bind_status != NX_SUCCESS) return tcp->ip->bind_status;
  tcp->bound = 1;
  return NX_SUCCESS;
}

static socklen_t host_address(const NXD_ADDRESS *from, UINT port, struct sockaddr_storage *to)
{
  struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
  struct sockaddr_in6 v6 = {.sin6_family = AF_INET6, .sin6_port = htons((uint16_t)port)};
  memset(to, 0, sizeof *to);
  if (from->nxd_ip_version == NX_IP_VERSION_V4) {
    v4.sin_addr.s_addr = htonl((uint32_t)from->nxd_ip_address.v4);
    memcpy(to, &v4, sizeof v4);
    return sizeof v4;
  }
  for (int i = 0; i < 4; i++) {
    uint32_t word = htonl((uint32_t)from->nxd_ip_address.v6[i]);
    memcpy(&v6.sin6_addr.s6_addr[i * 4], &word, 4);
  }
  memcpy(to, &v6, sizeof v6);
  return sizeof v6;
}

/* A socket of the host's that connects without blocking. -1: it cannot. */
static int dial(const NXD_ADDRESS *address, UINT port)
{
  struct sockaddr_storage to;
  socklen_t size = host_address(address, port, &to);
  const int on = 1;
  int fd = socket(to.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  tx_must(fd >= 0, "no socket on this host");
  (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  if (connect(fd, (struct sockaddr *)&to, size) == 0 || errno == EINPROGRESS) return fd;
  (void)close(fd);
  return -1;
}

UINT nxd_tcp_client_socket_connect(NX_TCP_SOCKET *tcp, NXD_ADDRESS *address, UINT port, ULONG wait)
{
  tx_must(tcp->state == NX_TCP_CLOSED && tcp->fd < 0 && wait == NX_NO_WAIT,
          "a connection while there is one");
  if (!tcp->bound) return NX_NOT_BOUND;
  if (tcp->ip->connect_status != NX_SUCCESS) return tcp->ip->connect_status;
  tcp->fd = dial(address, port);
  if (tcp->fd < 0) return NX_IP_ADDRESS_ERROR;
  tcp->state = NX_TCP_SYN_SENT;
  tcp->thread_runs = 1;
  tx_must(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, tcp->wake) == 0 &&
              pthread_create(&tcp->thread, NULL, run, tcp) == 0,
          "no thread on this host");
  return NX_IN_PROGRESS;
}

UINT nx_tcp_socket_info_get(NX_TCP_SOCKET *tcp, ULONG *packets_sent, ULONG *bytes_sent,
                            ULONG *packets_received, ULONG *bytes_received,
                            ULONG *packets_sent_again, ULONG *packets_queued,
                            ULONG *checksum_errors, ULONG *state, ULONG *queue_depth,
                            ULONG *transmit_window, ULONG *receive_window)
{
  tx_must(!packets_sent && !bytes_sent && !packets_received && !bytes_received &&
              !packets_sent_again && !packets_queued && !checksum_errors && !queue_depth &&
              !transmit_window && !receive_window && state != NULL,
          "more than the state of a socket"); /* nothing asks for it */
  (void)pthread_mutex_lock(&stack);
  *state = tcp->state;
  (void)pthread_mutex_unlock(&stack);
  return NX_SUCCESS;
}

/* Sends what it may of a packet, and takes that off it. */
static UINT push(NX_TCP_SOCKET *tcp, NX_PACKET *packet)
{
  size_t size = packet->nx_packet_length;
  tx_must(packet->nx_packet_next == NULL, "a chain of packets is sent"); /* nothing does */
  if (tcp->ip->send_status != NX_SUCCESS && size > tcp->ip->send_part) size = tcp->ip->send_part;
  ssize_t sent = 0;
  if (size > 0) sent = send(tcp->fd, packet->nx_packet_prepend_ptr, size, MSG_NOSIGNAL);
  if (sent < 0 && errno != EAGAIN) return NX_NOT_CONNECTED;
  if (sent < 0) sent = 0;
  packet->nx_packet_prepend_ptr += sent;
  packet->nx_packet_length -= (ULONG)sent;
  if (packet->nx_packet_length == 0) return NX_SUCCESS;
  return tcp->ip->send_status != NX_SUCCESS ? tcp->ip->send_status : NX_WINDOW_OVERFLOW;
}

/* The packet is the stack's when all of it was taken, and only then. */
UINT nx_tcp_socket_send(NX_TCP_SOCKET *tcp, NX_PACKET *packet, ULONG wait)
{
  UINT status = NX_NOT_CONNECTED;
  tx_must(!packet->free && packet->nx_packet_length > 0 && wait == NX_NO_WAIT, "nothing is sent");
  tx_must(packet->nx_packet_prepend_ptr >= packet->nx_packet_data_start + NX_TCP_PACKET,
          "no room for headers");
  if (!tcp->bound) return NX_NOT_BOUND;
  (void)pthread_mutex_lock(&stack);
  tcp->ip->sends++;
  if (tcp->state == NX_TCP_ESTABLISHED || tcp->state == NX_TCP_CLOSE_WAIT)
    status = push(tcp, packet);
  (void)pthread_mutex_unlock(&stack);
  if (status == NX_SUCCESS) (void)nx_packet_release(packet);
  return status;
}

/* What came is returned also when the connection has ended. */
UINT nx_tcp_socket_receive(NX_TCP_SOCKET *tcp, NX_PACKET **packet, ULONG wait)
{
  tx_must(wait == NX_NO_WAIT, "a wait for what comes"); /* nothing asks for it */
  *packet = NULL;
  if (!tcp->bound) return NX_NOT_BOUND;
  (void)pthread_mutex_lock(&stack);
  (void)__atomic_add_fetch(&tcp->ip->receives, 1, __ATOMIC_RELAXED);
  UINT status = receives(tcp) || tcp->state == NX_TCP_SYN_SENT ? NX_NO_PACKET : NX_NOT_CONNECTED;
  NX_PACKET *first = tcp->head;
  if (first != NULL) {
    tcp->head = first->nx_packet_queue_next;
    if (tcp->head == NULL) tcp->tail = NULL;
    tcp->queued -= first->nx_packet_length;
    *packet = first;
    status = NX_SUCCESS;
  }
  (void)pthread_mutex_unlock(&stack);
  if (status == NX_SUCCESS) (void)!write(tcp->wake[1], "", 1);
  return status;
}

/* Ends an open connection, with the lock. */
static void end(NX_TCP_SOCKET *tcp, ULONG wait)
{
  const struct linger at_once = {.l_onoff = 1, .l_linger = 0};
#ifdef NX_DISABLE_RESET_DISCONNECT
  bool resets = false;
#else
  bool resets = wait == NX_NO_WAIT;
#endif
  if (resets) {
    (void)setsockopt(tcp->fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    tcp->state = NX_TCP_CLOSED;
    return;
  }
  (void)shutdown(tcp->fd, SHUT_WR);
  tcp->state = tcp->state == NX_TCP_ESTABLISHED ? NX_TCP_FIN_WAIT_1 : NX_TCP_TIMED_WAIT;
  for (; tcp->state == NX_TCP_FIN_WAIT_1 && wait > 0; wait--) {
    (void)pthread_mutex_unlock(&stack);
    (void)tx_thread_sleep(1);
    (void)pthread_mutex_lock(&stack);
    if (wait == 1) tcp->state = NX_TCP_CLOSED;
  }
}

/*
 * Without a wait, a connection is reset; or, if NetX is configured so, ended by a FIN: then the
 * socket is in use until the other side has closed, too. With a wait, until that is over.
 */
UINT nx_tcp_socket_disconnect(NX_TCP_SOCKET *tcp, ULONG wait)
{
  UINT status = NX_NOT_CONNECTED;
  (void)pthread_mutex_lock(&stack);
  if (tcp->state == NX_TCP_ESTABLISHED || tcp->state == NX_TCP_CLOSE_WAIT) {
    end(tcp, wait);
    status = wait == NX_NO_WAIT            ? NX_IN_PROGRESS
             : tcp->state == NX_TCP_CLOSED ? NX_DISCONNECT_FAILED
                                           : NX_SUCCESS;
  } else if (tcp->state == NX_TCP_SYN_SENT) {
    tcp->state = NX_TCP_CLOSED;
    status = NX_SUCCESS;
  }
  (void)pthread_mutex_unlock(&stack);
  return status;
}

UINT nx_tcp_client_socket_unbind(NX_TCP_SOCKET *tcp)
{
  (void)pthread_mutex_lock(&stack);
  if (tcp->state == NX_TCP_TIMED_WAIT) tcp->state = NX_TCP_CLOSED;
  UINT state = tcp->state;
  (void)pthread_mutex_unlock(&stack);
  if (state != NX_TCP_CLOSED) return NX_NOT_CLOSED;
  halt(tcp);
  if (!tcp->bound) return NX_NOT_BOUND;
  tcp->bound = 0;
  while (tcp->head != NULL) {
    NX_PACKET *next = tcp->head->nx_packet_queue_next;
    (void)nx_packet_release(tcp->head);
    tcp->head = next;
  }
  return NX_SUCCESS;
}

UINT nx_tcp_socket_delete(NX_TCP_SOCKET *tcp)
{
  if (tcp->bound) return NX_STILL_BOUND;
  tx_must(tcp->fd < 0 && tcp->ip->sockets > 0, "a socket is deleted twice");
  tcp->ip->sockets--;
  return NX_SUCCESS;
}

UINT nxd_dns_host_by_name_get(NX_DNS *dns, UCHAR *name, NXD_ADDRESS *address, ULONG wait, UINT type)
{
  tx_must(type == NX_IP_VERSION_V4, "a name of another kind");
  dns->lookups++;
  dns->wait = wait;
  if (strcmp(dns->name, (const char *)name) != 0) return NX_DNS_QUERY_FAILED;
  address->nxd_ip_version = NX_IP_VERSION_V4;
  address->nxd_ip_address.v4 = dns->address;
  return NX_SUCCESS;
}
