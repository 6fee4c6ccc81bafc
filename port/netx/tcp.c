/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The transport over NetX Duo's TCP; see port_netx.h. No call of NetX's waits here: recv() waits for
 * an event flag, which NetX's callbacks set. So a flag that send() sets in another thread can end
 * that wait, and the flags are all that two threads share.
 */
#include "port_netx.h"

#include <stddef.h>

#include "ticks.h"

enum state { IDLE, CONNECTING, CONNECTED };

/*
 * Flags. CAME: something was received, or the connection has ended. NO_ROOM: the last send() found
 * no room. ENDED: recv() has said that the connection has ended.
 */
#define CAME    1U
#define NO_ROOM 2U
#define ENDED   4U

/* How often to look for what NetX does not tell of, in ms. */
#define LOOK_MS 10U

/*
 * So many packets of the pool are left to what comes. If all of them wait for an acknowledgement,
 * none is there to receive it.
 */
#define SPARE 2U

/*
 * The wait for the end of a connection, in ticks. Without one, NetX resets it; or, if it is
 * configured not to, sends a FIN, and keeps the socket for as long as the server is silent. Only at
 * the end of a wait does it then give the socket back in any case.
 */
#ifdef NX_DISABLE_RESET_DISCONNECT
#define LEAVE_TICKS 1U
#else
#define LEAVE_TICKS NX_NO_WAIT
#endif

static uint32_t shorter(uint32_t timeout_ms)
{
  return timeout_ms < LOOK_MS ? timeout_ms : LOOK_MS;
}

/* Waits for one of the flags, which stay as they are. */
static void wait_for(struct port_netx *netx, ULONG flags, uint32_t timeout_ms)
{
  ULONG seen;
  (void)tx_event_flags_get(&netx->events, flags, TX_OR, &seen, ticks(timeout_ms));
}

/* Which of the flags are set. They are cleared. */
static ULONG take(struct port_netx *netx, ULONG flags)
{
  ULONG seen = 0;
  UINT status = tx_event_flags_get(&netx->events, flags, TX_OR_CLEAR, &seen, TX_NO_WAIT);
  return status == TX_SUCCESS ? seen & flags : 0;
}

static void set(struct port_netx *netx, ULONG flag)
{
  (void)tx_event_flags_set(&netx->events, flag, TX_OR);
}

/* Called by NetX, which knows only its socket. */
static void came(NX_TCP_SOCKET *socket)
{
  char *place = (char *)socket - offsetof(struct port_netx, socket);
  set((struct port_netx *)(void *)place, CAME);
}

static void forget_packet(struct port_netx *netx)
{
  if (netx->packet != NULL) (void)nx_packet_release(netx->packet);
  netx->packet = NULL;
}

/* The packet that is still held comes first: NetX may need it to tell the server. */
static void leave(struct port_netx *netx)
{
  forget_packet(netx);
  if (netx->state == IDLE) return;
  netx->state = IDLE;
  (void)nx_tcp_socket_disconnect(&netx->socket, LEAVE_TICKS);
  (void)nx_tcp_client_socket_unbind(&netx->socket);
  (void)nx_tcp_socket_delete(&netx->socket);
  (void)tx_event_flags_delete(&netx->events);
}

/* Makes a socket with its callbacks. */
static UINT make_socket(struct port_netx *netx)
{
  UINT status = tx_event_flags_create(&netx->events, "fairlock");
  if (status != TX_SUCCESS) return status;
  status = nx_tcp_socket_create(netx->ip, &netx->socket, "fairlock", NX_IP_NORMAL, NX_FRAGMENT_OKAY,
                                NX_IP_TIME_TO_LIVE, PORT_NETX_WINDOW, NX_NULL, came);
  if (status != NX_SUCCESS) {
    (void)tx_event_flags_delete(&netx->events);
    return status;
  }
  netx->state = CONNECTING;
  return nx_tcp_socket_receive_notify(&netx->socket, came);
}

/* Begins to connect. NX_IN_PROGRESS or NX_SUCCESS: it has; otherwise why it cannot. */
static UINT begin(struct port_netx *netx)
{
  UINT status = netx->resolve != NULL ? netx->resolve(netx) : NX_SUCCESS;
  if (status == NX_SUCCESS) status = make_socket(netx);
  if (status == NX_SUCCESS)
    status = nx_tcp_client_socket_bind(&netx->socket, NX_ANY_PORT, NX_NO_WAIT);
  if (status == NX_SUCCESS)
    status = nxd_tcp_client_socket_connect(&netx->socket, &netx->address, netx->port, NX_NO_WAIT);
  return status;
}

/* How far it is: NX_SUCCESS, NX_IN_PROGRESS, or NX_NOT_CONNECTED if it was refused. */
static UINT progress(struct port_netx *netx)
{
  ULONG state = NX_TCP_CLOSED;
  (void)nx_tcp_socket_info_get(&netx->socket, NX_NULL, NX_NULL, NX_NULL, NX_NULL, NX_NULL, NX_NULL,
                               NX_NULL, &state, NX_NULL, NX_NULL, NX_NULL);
  if (state == NX_TCP_ESTABLISHED || state == NX_TCP_CLOSE_WAIT) return NX_SUCCESS;
  return state == NX_TCP_CLOSED ? NX_NOT_CONNECTED : NX_IN_PROGRESS;
}

/* Does the next thing that connecting asks for. Returns what progress() does, or why it has failed. */
static UINT step(struct port_netx *netx)
{
  UINT status = NX_IN_PROGRESS;
  if (netx->state == IDLE) status = begin(netx);
  if (status != NX_SUCCESS && status != NX_IN_PROGRESS) return status;
  return progress(netx);
}

/* Goes on connecting for timeout_ms. Returns what step() does. */
static UINT go_on(struct port_netx *netx, uint32_t timeout_ms)
{
  uint32_t began = port_clock_ms();
  for (;;) {
    UINT status = step(netx);
    uint32_t spent = port_clock_ms() - began;
    if (status != NX_IN_PROGRESS || spent >= timeout_ms) return status;
    (void)tx_thread_sleep(ticks(shorter(timeout_ms - spent)));
  }
}

static int netx_connect(void *context, uint32_t timeout_ms)
{
  struct port_netx *netx = context;
  if (netx->state == CONNECTED) return PORT_OK;
  UINT status = go_on(netx, timeout_ms);
  if (status == NX_IN_PROGRESS) return PORT_WOULD_BLOCK;
  netx->error = status;
  if (status != NX_SUCCESS) {
    leave(netx);
    return PORT_UNREACHABLE;
  }
  netx->state = CONNECTED;
  return PORT_OK;
}

/* A packet with as many of the bytes as fit into it. NULL: the pool has none to spare. */
static NX_PACKET *pack(struct port_netx *netx, const void *data, size_t size)
{
  NX_PACKET *packet = NULL;
  ULONG available = 0;
  (void)nx_packet_pool_info_get(netx->pool, NX_NULL, &available, NX_NULL, NX_NULL, NX_NULL);
  if (available <= SPARE) return NULL;
  if (nx_packet_allocate(netx->pool, &packet, NX_TCP_PACKET, NX_NO_WAIT) != NX_SUCCESS) return NULL;
  size_t room = (size_t)(packet->nx_packet_data_end - packet->nx_packet_append_ptr);
  UINT status = nx_packet_data_append(packet, (VOID *)data, (ULONG)(size < room ? size : room),
                                      netx->pool, NX_NO_WAIT);
  if (status == NX_SUCCESS) return packet;
  (void)nx_packet_release(packet);
  return NULL;
}

/*
 * NetX sends as much of a packet as the window has room for, and refuses the rest: it leaves that in
 * the packet, which is then ours again. A connection that has ended is reported as one without
 * room: recv() still has to return what came before the end.
 */
static int netx_send(void *context, const void *data, size_t size)
{
  struct port_netx *netx = context;
  ULONG seen;
  if (netx->state != CONNECTED) return PORT_CLOSED;
  if (tx_event_flags_get(&netx->events, ENDED, TX_OR, &seen, TX_NO_WAIT) == TX_SUCCESS)
    return PORT_CLOSED;
  NX_PACKET *packet = pack(netx, data, size);
  ULONG sent = 0;
  if (packet != NULL) {
    ULONG packed = packet->nx_packet_length;
    if (nx_tcp_socket_send(&netx->socket, packet, NX_NO_WAIT) == NX_SUCCESS) return (int)packed;
    sent = packed - packet->nx_packet_length;
    (void)nx_packet_release(packet);
  }
  if (sent > 0) return (int)sent;
  set(netx, NO_ROOM);
  return PORT_WOULD_BLOCK;
}

/* Gets the next packet, if there is none. False: there is none, and, if *ended, will be none. */
static bool get_packet(struct port_netx *netx, bool *ended)
{
  while (netx->packet == NULL) {
    UINT status = nx_tcp_socket_receive(&netx->socket, &netx->packet, NX_NO_WAIT);
    *ended = status != NX_SUCCESS && status != NX_NO_PACKET;
    if (status != NX_SUCCESS) {
      netx->packet = NULL;
      return false;
    }
    netx->taken = 0;
    if (netx->packet->nx_packet_length == 0) forget_packet(netx);
  }
  return true;
}

/* Hands out bytes of the packet, and gives it back with its last one. */
static int read_packet(struct port_netx *netx, void *data, size_t size)
{
  ULONG got = 0;
  ULONG most = size < INT16_MAX ? (ULONG)size : INT16_MAX;
  (void)nx_packet_data_extract_offset(netx->packet, netx->taken, data, most, &got);
  netx->taken += got;
  if (got == 0) return PORT_CLOSED; /* what it was cannot be known any more */
  if (netx->taken >= netx->packet->nx_packet_length) forget_packet(netx);
  return (int)got;
}

/*
 * CAME may be of what was taken long ago, so it is cleared before the first look, and what comes
 * after that sets it again. Without room, there is only time for a look: nothing tells of room.
 */
static int netx_recv(void *context, void *data, size_t size, uint32_t timeout_ms)
{
  struct port_netx *netx = context;
  bool ended = false;
  if (netx->state != CONNECTED) return PORT_CLOSED;
  bool no_room = take(netx, CAME | NO_ROOM) & NO_ROOM;
  if (!get_packet(netx, &ended) && !ended && timeout_ms > 0) {
    if (no_room) wait_for(netx, CAME, shorter(timeout_ms));
    else wait_for(netx, CAME | NO_ROOM, timeout_ms);
    (void)get_packet(netx, &ended);
  }
  if (netx->packet != NULL) return read_packet(netx, data, size);
  if (!ended) return PORT_WOULD_BLOCK;
  set(netx, ENDED);
  return PORT_CLOSED;
}

/* An attempt that is given up has failed, too. */
static void netx_close(void *context)
{
  struct port_netx *netx = context;
  if (netx->state == CONNECTING) netx->error = NX_IN_PROGRESS;
  leave(netx);
}

void port_netx_init(struct port_netx *netx, NX_IP *ip, NX_PACKET_POOL *pool,
                    const NXD_ADDRESS *address, UINT port)
{
  netx->transport =
      (struct port_transport){netx_connect, netx_send, netx_recv, netx_close, netx, NULL, NULL};
  netx->ip = ip;
  netx->pool = pool;
  netx->address = *address;
  netx->port = port;
  netx->resolve = NULL;
  netx->state = IDLE;
  netx->error = NX_SUCCESS;
  netx->packet = NULL;
}

UINT port_netx_error(const struct port_netx *netx)
{
  return netx->error;
}
