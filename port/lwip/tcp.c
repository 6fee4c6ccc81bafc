/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The transport over lwIP's raw API; see port_lwip.h.
 *
 * lwIP reports events by callbacks; they only note them in struct port_lwip, where the transport's
 * functions look. Two rules keep a callback from touching what is gone. A connection's callbacks
 * are removed before it is given up, so none can come late. And a callback that comes anyway,
 * for another connection than the one in `pcb`, frees what it was handed and aborts its connection.
 *
 * lwIP itself frees a connection that is reset or times out, and reports that by the error
 * callback, after which `pcb` is NULL. The transport's functions are never called from a callback,
 * so tcp_abort() is safe in them; a callback that calls tcp_abort() must return ERR_ABRT, and no
 * other may.
 */
#include "port_lwip.h"

#include "lwip/pbuf.h"
#include "lwip/tcp.h"

/* ENDED: recv() has yet to return what came before the end. OVER: it has said that it ended. */
enum state { IDLE, CONNECTING, CONNECTED, ENDED, OVER };

static void lock(const struct port_lwip *lwip)
{
  if (lwip->hooks->lock != NULL) lwip->hooks->lock();
}

static void unlock(const struct port_lwip *lwip)
{
  if (lwip->hooks->unlock != NULL) lwip->hooks->unlock();
}

/*
 * Services the network for a while, at least once. False when the time is up. Called with the lock,
 * which it releases meanwhile.
 */
static bool turn(const struct port_lwip *lwip, uint32_t began, uint32_t timeout_ms, unsigned *turns)
{
  uint32_t passed = port_clock_ms() - began;
  uint32_t left = passed < timeout_ms ? timeout_ms - passed : 0;
  if (left == 0 && *turns > 0) return false;
  (*turns)++;
  unlock(lwip);
  lwip->hooks->turn(left);
  lock(lwip);
  return true;
}

/* What lwIP tells */

static bool ours(const struct port_lwip *lwip, const struct tcp_pcb *pcb)
{
  return lwip != NULL && lwip->pcb == pcb;
}

static err_t on_connected(void *context, struct tcp_pcb *pcb, err_t error)
{
  struct port_lwip *lwip = context;
  (void)error; /* always ERR_OK: failures are reported to on_error() */
  if (!ours(lwip, pcb)) {
    tcp_abort(pcb);
    return ERR_ABRT;
  }
  lwip->state = CONNECTED;
  lwip->error = ERR_OK;
  return ERR_OK;
}

/* data NULL: the peer has closed its side. */
static err_t on_received(void *context, struct tcp_pcb *pcb, struct pbuf *data, err_t error)
{
  struct port_lwip *lwip = context;
  (void)error; /* always ERR_OK */
  if (!ours(lwip, pcb)) {
    if (data != NULL) pbuf_free(data);
    tcp_abort(pcb);
    return ERR_ABRT;
  }
  if (data == NULL) lwip->state = ENDED;
  else if (lwip->received == NULL) lwip->received = data;
  else pbuf_cat(lwip->received, data);
  return ERR_OK;
}

static err_t on_sent(void *context, struct tcp_pcb *pcb, u16_t size)
{
  struct port_lwip *lwip = context;
  (void)size;
  if (ours(lwip, pcb)) lwip->send_blocked = false;
  return ERR_OK;
}

/* Reset by the peer, or given up after too many retransmissions. The pcb is freed already. */
static void on_error(void *context, err_t error)
{
  struct port_lwip *lwip = context;
  if (lwip == NULL) return;
  lwip->error = error;
  lwip->pcb = NULL;
  lwip->state = ENDED;
}

/* What the client calls */

/* Drops the connection, whatever its state. Called with the lock. */
static void forget(struct port_lwip *lwip)
{
  struct tcp_pcb *pcb = lwip->pcb;
  struct pbuf *received = lwip->received;
  lwip->pcb = NULL;
  lwip->received = NULL;
  lwip->state = IDLE;
  lwip->send_blocked = false;
  if (received != NULL) pbuf_free(received);
  if (pcb == NULL) return;
  tcp_arg(pcb, NULL);
  tcp_recv(pcb, NULL);
  tcp_sent(pcb, NULL);
  tcp_err(pcb, NULL);
  /* not tcp_close(): that may fail for lack of memory, and leaves the pcb in use for minutes */
  tcp_abort(pcb);
}

/* Begins to connect, or returns why it cannot. Called with the lock. */
static err_t begin(struct port_lwip *lwip)
{
  struct tcp_pcb *pcb = tcp_new_ip_type(IP_GET_TYPE(&lwip->address));
  if (pcb == NULL) return ERR_MEM;
  lwip->pcb = pcb;
  lwip->state = CONNECTING;
  tcp_arg(pcb, lwip);
  tcp_recv(pcb, on_received);
  tcp_sent(pcb, on_sent);
  tcp_err(pcb, on_error);
  tcp_nagle_disable(pcb);    /* a request must not wait for the acknowledgement of the one before */
  lwip->error = ERR_TIMEOUT; /* until there is an answer */
  return tcp_connect(pcb, &lwip->address, lwip->port, on_connected);
}

/* The same; what cannot begin has ended. Called with the lock. */
static void try_to_begin(struct port_lwip *lwip)
{
  err_t error = begin(lwip);
  if (error == ERR_OK) return;
  lwip->error = error;
  lwip->state = ENDED;
}

static int lwip_connect(void *context, uint32_t timeout_ms)
{
  struct port_lwip *lwip = context;
  uint32_t began = port_clock_ms();
  unsigned turns = 0;
  int status = PORT_WOULD_BLOCK;
  lock(lwip);
  if (lwip->state == IDLE) try_to_begin(lwip);
  while (lwip->state == CONNECTING && turn(lwip, began, timeout_ms, &turns))
    continue;
  /* a server that is full says so, and may have closed by now: recv() returns what it has said */
  if (lwip->state == CONNECTED || lwip->received != NULL) status = PORT_OK;
  else if (lwip->state != CONNECTING) {
    forget(lwip);
    status = PORT_UNREACHABLE;
  }
  unlock(lwip);
  return status;
}

/*
 * Gives lwIP as much as it takes now, and returns that; its memory may be shorter than its send
 * buffer. Called with the lock.
 */
static uint16_t give(struct tcp_pcb *pcb, const void *data, size_t size)
{
  uint16_t some = tcp_sndbuf(pcb);
  if (some > size) some = (uint16_t)size;
  while (some > 0 && tcp_write(pcb, data, some, TCP_WRITE_FLAG_COPY) != ERR_OK)
    some /= 2;
  return some;
}

static int lwip_send(void *context, const void *data, size_t size)
{
  struct port_lwip *lwip = context;
  int status = PORT_CLOSED;
  lock(lwip);
  if (lwip->state == CONNECTED && lwip->pcb != NULL) {
    uint16_t taken = give(lwip->pcb, data, size);
    lwip->send_blocked = taken == 0;
    status = taken > 0 ? taken : PORT_WOULD_BLOCK;
    tcp_output(lwip->pcb); /* lwIP's timer sends what this cannot */
  }
  if (lwip->state == ENDED) status = PORT_WOULD_BLOCK; /* recv() says what there is to say */
  unlock(lwip);
  return status;
}

/* Hands out what was received, and lets the peer send as much again. Called with the lock. */
static int read_received(struct port_lwip *lwip, void *data, size_t size)
{
  uint16_t most = size < INT16_MAX ? (uint16_t)size : INT16_MAX;
  uint16_t taken = pbuf_copy_partial(lwip->received, data, most, 0);
  lwip->received = pbuf_free_header(lwip->received, taken);
  if (lwip->pcb != NULL) tcp_recved(lwip->pcb, taken);
  return taken;
}

static int lwip_recv(void *context, void *data, size_t size, uint32_t timeout_ms)
{
  struct port_lwip *lwip = context;
  uint32_t began = port_clock_ms();
  unsigned turns = 0;
  int status = PORT_WOULD_BLOCK;
  lock(lwip);
  bool blocked = lwip->send_blocked;
  bool time_left = true;
  while (time_left && lwip->received == NULL && lwip->state == CONNECTED &&
         lwip->send_blocked == blocked)
    time_left = turn(lwip, began, timeout_ms, &turns);
  if (lwip->received != NULL) status = read_received(lwip, data, size);
  else if (lwip->state != CONNECTED) status = PORT_CLOSED;
  if (status == PORT_CLOSED && lwip->state == ENDED) lwip->state = OVER;
  unlock(lwip);
  return status;
}

static void lwip_close(void *context)
{
  struct port_lwip *lwip = context;
  lock(lwip);
  forget(lwip);
  unlock(lwip);
}

const char *port_lwip_error(const struct port_lwip *lwip)
{
  switch (lwip->error) {
  case ERR_OK:
    return "";
  case ERR_RTE:
    return "no route: no interface is up, or it has no address or gateway";
  case ERR_RST:
    return "refused or reset: nothing listens at that address and port, or it restarts";
  case ERR_ABRT:
  case ERR_TIMEOUT:
    return "no answer: a wrong address, a cable, a firewall";
  case ERR_MEM:
  case ERR_BUF:
    return "no memory for a connection: MEMP_NUM_TCP_PCB, MEM_SIZE";
  case ERR_VAL:
    return "the name of the host is not resolved";
  default:
    return "broken";
  }
}

void port_lwip_init(struct port_lwip *lwip, const struct port_lwip_hooks *hooks,
                    const ip_addr_t *address, uint16_t port)
{
  *lwip = (struct port_lwip){
      .transport = {lwip_connect, lwip_send, lwip_recv, lwip_close, lwip, NULL, NULL},
      .hooks = hooks,
      .address = *address,
      .port = port,
      .state = IDLE,
  };
}
