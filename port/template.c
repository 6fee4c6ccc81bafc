/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A port to copy: every function that a platform has to supply, with what matters about it.
 * Unchanged it compiles and does nothing: each function reports failure.
 *
 * How to use it:
 *   1. Copy this file, and template_types.h as port_types.h next to the copy (for one task: use
 *      port/single/ instead of the types, and delete the second half here).
 *   2. Fill in the functions. port.h is the contract; the comments here say where ports go wrong.
 *   3. Compile with -Iport -I<folder of your port_types.h>, and link exactly one of each function.
 *
 * Files that exist already can be linked instead, file by file: port/posix/threads.c, with
 * process.c, needs nothing but pthreads, port/posix/socket.c, with resolve.c and process.c, nothing
 * but BSD sockets, poll() and getaddrinfo(), and so on.
 *
 * A port must never call back into the client, hold a lock over a call that blocks, or guess: when
 * it does not know whether a byte was sent, the connection is PORT_CLOSED. The client sorts out
 * what that means.
 */
#include "port.h"

/*
 * TRANSPORT. One of these for each connection; the memory is the caller's.
 */
struct template_transport {
  struct port_transport transport;
  const char *address;
  /* -1: none */
  int socket;
  /*
   * with a stack of callbacks (lwIP's raw API and the like): a ring of received bytes, and
   * "connected", "closed" flags that the callbacks set and the functions below read
   */
};

/*
 * The client calls this again and again while it returns PORT_WOULD_BLOCK (or PORT_NEEDS_INPUT, in
 * a handshake that waits for the server), limits the time of all these calls together, and calls
 * close() when that is reached; so you need no time-out here.
 * Switch off Nagle's algorithm (TCP_NODELAY): a request must not wait for the acknowledgement of
 * the one before. A server that is full accepts, says so, and closes, perhaps before this looks: if
 * bytes have come, the connection was up.
 *
 * Over an API that only blocks (Arduino's Client, the driver of many a modem), connect in one call.
 * Nothing else of this client happens meanwhile, so a hold whose lease is shorter than that call is
 * lost if the connection breaks, and the client says so as soon as the call returns. Give such a
 * client a lease of a few times the longest call.
 */
static int template_connect(void *context, uint32_t timeout_ms)
{
  struct template_transport *template = context;
  (void)timeout_ms;
  template->socket = -1;
  return PORT_UNREACHABLE;
}

/*
 * Must not block: take what fits, return how much. When nothing fits, return PORT_WOULD_BLOCK
 * (never 0), and have recv() return as soon as something fits again. Another task may be inside
 * recv() at this moment. data is the client's and changes after the return: copy it, or pass it to
 * a stack that does.
 *
 * A stack that refuses may have taken a part of what it was given: NetX Duo's nx_tcp_socket_send()
 * does, and what has left the packet tells how much. If a stack says that it takes nothing, but
 * poll() finds room (NuttX with few buffers), wait some ms in recv(): else client and port spin. Do
 * not take the last buffers of a pool that receives from it, too: without one, the acknowledgement
 * that would free the others cannot come in.
 *
 * When the stack says that the connection is broken, return PORT_WOULD_BLOCK, and from then on have
 * recv() return what has come, without a wait, and then PORT_CLOSED. The client reads nothing after
 * PORT_CLOSED, so the server's last words would be lost.
 */
static int template_send(void *context, const void *data, size_t size)
{
  (void)context;
  (void)data;
  (void)size;
  return PORT_CLOSED;
}

/*
 * The one place where the client waits. Return as soon as there is a byte; do not try to fill the
 * buffer. If you can, sleep here rather than poll, and keep the wait within timeout_ms: leases are
 * renewed by the task that waits here. In ticks, a wait is one at least: with none, the client would
 * spin. PORT_CLOSED only after the last received byte has been returned.
 */
static int template_recv(void *context, void *data, size_t size, uint32_t timeout_ms)
{
  (void)context;
  (void)data;
  (void)size;
  (void)timeout_ms;
  return PORT_CLOSED;
}

/*
 * Called in any state, also twice. Afterwards nothing of the old connection may come out of recv():
 * with callbacks, remove them from the connection before you free it, and empty the ring.
 *
 * The peer has to notice: FreeRTOS_closesocket() alone sends nothing, so FreeRTOS_shutdown() comes
 * before it, and the socket is kept until the next connect() or close(), as the FIN goes out when
 * the peer has acknowledged what was sent. A stack that keeps the memory of closed connections for a while (NuttX) gives it back
 * at once after a reset: set SO_LINGER to {1, 0}.
 */
static void template_close(void *context)
{
  struct template_transport *template = context;
  template->socket = -1;
}

void template_transport_init(struct template_transport *template, const char *address);

void template_transport_init(struct template_transport *template, const char *address)
{
  template->transport.connect = template_connect;
  template->transport.send = template_send;
  template->transport.recv = template_recv;
  template->transport.close = template_close;
  template->transport.context = template;
  template->address = address;
  template->socket = -1;
}

/*
 * CLOCK. Read a counter that runs by itself; do not count timer interrupts, which get lost while
 * interrupts are off, and stop in deep sleep: a lock that is lost would then be believed to be
 * held. So it is not tx_time_get() of ThreadX or xTaskGetTickCount() of FreeRTOS, which count
 * interrupts, but a timer of the chip; on Zephyr k_uptime_get(), on RIOT ztimer_now(ZTIMER_MSEC), on
 * NuttX clock_gettime(CLOCK_MONOTONIC) with a tickless kernel or an RTC, on an ESP32
 * esp_timer_get_time(). millis() of an AVR counts interrupts, too: it will do as long as these are
 * never off for a millisecond, and the chip does not sleep. If the counter stops in deep sleep, add
 * the time slept (from the RTC) when waking, before any task runs. A counter of fewer than 32 bits,
 * or of microseconds, has to be extended so that the result wraps around at 2^32 milliseconds and
 * nowhere else.
 */
uint32_t port_clock_ms(void)
{
  return 0;
}

/*
 * IDLE. Only with port/single. Sleep until the next interrupt and return: a WFI, if a tick or a
 * timer ends it within ms. The client calls it again as long as it has to wait. If it does not
 * sleep, a program whose server is down spins.
 */
void port_idle(uint32_t ms)
{
  (void)ms;
}

/*
 * THREADS. Only where several tasks use one client.
 *
 * The handle of the running task will do for port_task_self(). The mutex is held for short times,
 * never across a wait; priority inheritance is welcome. Neither is used in interrupt handlers.
 *
 * The event is a binary semaphore: setting it twice is as setting it once; if it was set before the
 * wait, the wait ends at once.
 *
 * For FreeRTOS, Zephyr and ThreadX there is threads.c in port/freertos, port/zephyr and port/netx.
 */
uintptr_t port_task_self(void)
{
  return 1;
}

void port_mutex_init(struct port_mutex *mutex)
{
  (void)mutex;
}

void port_mutex_lock(struct port_mutex *mutex)
{
  (void)mutex;
}

void port_mutex_unlock(struct port_mutex *mutex)
{
  (void)mutex;
}

void port_mutex_destroy(struct port_mutex *mutex)
{
  (void)mutex;
}

void port_event_init(struct port_event *event)
{
  (void)event;
}

/*
 * Unlock the mutex, wait, lock it again. A semaphore remembers a set between the first two; a plain
 * event may lose it.
 */
void port_event_wait(struct port_event *event, struct port_mutex *mutex, uint32_t timeout_ms)
{
  (void)event;
  (void)mutex;
  (void)timeout_ms;
}

void port_event_set(struct port_event *event)
{
  (void)event;
}

void port_event_destroy(struct port_event *event)
{
  (void)event;
}

/*
 * A MODEM WITH AT COMMANDS: take boards/examples/modem, which has a table for each family. After a
 * reset of the device the modem may still be connected, or be waiting for the rest of a send; and
 * close() cannot wait for its answer.
 *
 * AN RTOS WITH SOCKETS. Try port/posix/socket.c and resolve.c first: lwIP's socket API
 * (LWIP_SOCKET, LWIP_SOCKET_POLL, LWIP_DNS, LWIP_SO_RCVTIMEO, LWIP_SO_SNDTIMEO), Zephyr
 * (CONFIG_POSIX_API) and NuttX have what it uses, and it does without what is missing, by macro
 * (SOCK_CLOEXEC, MSG_DONTWAIT, TCP_KEEPIDLE) or at run time (SO_RCVTIMEO). Where headers have other
 * names (<lwip/sockets.h>, <lwip/netdb.h>), headers in your folder that include those make a change
 * of the file unnecessary. Mind:
 *   - lwIP allows a socket in two tasks at a time only with LWIP_NETCONN_FULLDUPLEX; without it,
 *     keep the client to one task, or call send() and recv() under one mutex with recv()'s waits
 *     kept short.
 *   - without threads (PORT_POSIX_NO_THREADS) the resolver blocks for as long as its server does;
 *     give an address where the loop has a period to keep.
 *   - a socket of lwIP costs memory per connection; the client needs exactly one.
 */
