/*
 * What the lock client needs of a platform: a way to carry bytes, a clock, and, where several tasks
 * share a client, a mutex and an event.
 *
 * A port contains no lock logic, and nothing in it knows RESP. The transport is a struct of
 * functions, so that TCP, TLS around TCP, a UART bridge and a simulator can be chosen at run time.
 * The rest are plain functions, chosen at link time: link exactly one of each.
 *
 *   port/posix/      sockets (IPv4, IPv6, Unix), clock, threads for any OS with BSD sockets and
 *                    pthreads
 *   port/single/     threads for a program with one task (a superloop), a header: they do nothing
 *                    but idle
 *   port/lwip/, port/uart/                           transports for devices
 *   port/openssl/, port/bearssl/, port/mbedtls/      TLS around any transport
 *   port/zephyr/     sockets (IPv4, IPv6, names, TLS), clock, threads for Zephyr
 *   port/freertos/, port/sockets/                    templates
 *   port/template.c  every function, commented, to copy for a new platform, with the types
 *                    of port/template_types.h
 *
 * port/README.md says what each supplies and needs.
 */
#ifndef FAIRLOCK_PORT_H
#define FAIRLOCK_PORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "port_types.h" /* of the threads port: struct port_mutex and struct port_event */

#ifdef __cplusplus
extern "C" {
#endif

/*
 * What the functions of a transport return when they did not do what they were asked. None of them
 * is 0, and 0 is never returned by send() and recv(): "nothing yet" and "closed" cannot be
 * confused.
 */
enum port_status {
  /* connect(): the connection is up */
  PORT_OK = 1,

  /* nothing can be done now: call again later */
  PORT_WOULD_BLOCK = -1,

  /* the peer closed or reset the connection, or it broke. From connect(): as PORT_UNREACHABLE */
  PORT_CLOSED = -2,

  /* connect(): no address of the server accepts a connection */
  PORT_UNREACHABLE = -3,

  /*
   * connect(), recv(): a transport with TLS does not trust the server's certificate or key, or the
   * server does not trust ours (TLS 1.3 says so after the handshake). A person has to look at it,
   * so the client ends its operations. The transport keeps the error.
   */
  PORT_UNTRUSTED = -4,

  /*
   * connect(): as PORT_WOULD_BLOCK, but only bytes from the other side bring it further, as in the
   * handshake of TLS. An event loop then waits until the connection is readable; after
   * PORT_WOULD_BLOCK, until it is writable, which it always is once it is connected
   */
  PORT_NEEDS_INPUT = -5
};

/*
 * The longest time-out, in ms, that the client hands to connect() and recv(), and so how often a
 * device wakes that has nothing to do. Nobody can wake a task that is inside recv(), so what other
 * tasks do meanwhile takes up to this much longer: to be heard by fairlock_stop(), and to give up a
 * server that does not answer them. A program with one task loses nothing by a longer one. For all
 * of the library: a compiler's -D, or a line of port_types.h.
 */
#ifndef PORT_WAIT_MAX_MS
#define PORT_WAIT_MAX_MS 1000U
#endif

/*
 * A byte stream to one server. All functions get `context`, which belongs to the transport and must
 * stay valid and in place as long as the client uses it. One task at a time is inside connect(),
 * recv() and close(), and one inside send(), which may be called while another task is inside
 * recv(), but not during connect() and close(). No function blocks, except connect() and recv() for
 * up to their time-out. The client calls close() and aim() with its mutex held, so neither may call
 * the client, nor wait for a task that does; the others without it.
 *
 * timeout_ms: 0 looks and returns at once. A function may return before the time is up. The client
 * never asks for more than PORT_WAIT_MAX_MS, so nothing has to wake it.
 */
struct port_transport {
  /*
   * Begins to connect; when called again, says how far that has got. PORT_OK: connected.
   * PORT_WOULD_BLOCK, PORT_NEEDS_INPUT: not yet, call again. PORT_UNREACHABLE, PORT_UNTRUSTED: given up; what was
   * opened is closed again, and the next call starts over. PORT_CLOSED is treated as
   * PORT_UNREACHABLE. The client calls close() after each of these three, and then pauses.
   */
  int (*connect)(void *context, uint32_t timeout_ms);

  /*
   * Sends up to size (1 to INT32_MAX) bytes. Returns how many were taken (> 0), PORT_WOULD_BLOCK
   * or PORT_CLOSED. What was not taken is offered again: at once, or, after PORT_WOULD_BLOCK, when
   * recv() has returned. After PORT_CLOSED the client reads nothing more: a transport that may
   * still have received something returns PORT_WOULD_BLOCK, and leaves it to recv() to return
   * PORT_CLOSED.
   */
  int (*send)(void *context, const void *data, size_t size);

  /*
   * Receives up to size (1 to INT32_MAX) bytes. Returns how many (> 0), as soon as there is one.
   * PORT_CLOSED, PORT_UNTRUSTED: only after all bytes that came before have been returned.
   * PORT_WOULD_BLOCK: nothing came in time, or the last send() would have blocked and is now worth
   * another try.
   */
  int (*recv)(void *context, void *data, size_t size, uint32_t timeout_ms);

  /*
   * Closes at once, losing what was not sent; nothing of this connection comes out of the next one.
   * Called after every failure of the others, when the client gives up a connection, even one that
   * is still being opened, and twice when the client ends: if an attempt to connect leaves
   * something for the next one, the second call frees that, too. Harmless when nothing is open. In
   * a process that was forked (see port_mutex_forked()) it closes this process's copy of the
   * connection, and the parent's stays open: it sends nothing, and waits for no lock.
   */
  void (*close)(void *context);

  /* passed to all of them */
  void *context;

  /*
   * Says where connections go from the next connect() on: to "host:port", a string that stays as it
   * is until the next call; ":port" is that port at the previous address. NULL: to the next of the
   * transport's own addresses; true then means that others follow before the list starts over.
   * False for an address: the transport cannot go there. Does no I/O, and may be called while the
   * connection is up. If the function itself is NULL, the transport has one address, and no client
   * can follow a server that moves.
   */
  bool (*aim)(void *context, const char *address);
};

/*
 * Milliseconds since any fixed moment, counting on while the device sleeps, never set back or
 * forward, wrapping around at 2^32 (after 49.7 days). It must not run more than 1 % slow or fast: a
 * hold's validity is measured with it. May be called from any task.
 */
uint32_t port_clock_ms(void);

/*
 * Sleeps for at most ms (> 0), or until an interrupt; may return early. Only port/single needs it:
 * a program with one task has nothing else to wait in while there is no connection. On a
 * microcontroller it is one instruction (WFI) with a tick to end it; a network stack that has no
 * task can be serviced here, too.
 */
void port_idle(uint32_t ms);

/*
 * The functions of a threads port: task, mutex and event. A port_types.h that defines PORT_ONE_TASK
 * as 1 says that the program has one task, and defines them itself, as inline functions; the library
 * then leaves out what it does for other tasks. port/single/ is that.
 */
#ifndef PORT_ONE_TASK
#define PORT_ONE_TASK 0

/*
 * A number for the calling task: different for each task, never 0. A new task may have that of one
 * that has ended, as where its memory is used again; the client takes it for the same task.
 */
uintptr_t port_task_self(void);

/* A non-recursive mutex. */
void port_mutex_init(struct port_mutex *mutex);
void port_mutex_lock(struct port_mutex *mutex);
void port_mutex_unlock(struct port_mutex *mutex);
void port_mutex_destroy(struct port_mutex *mutex);

/*
 * An event that one task waits for. If it is set before the wait, it is not lost. port_event_wait()
 * is called with the mutex locked, unlocks it while it waits for at most timeout_ms, and returns
 * with it locked again. It may return early. port_event_set() is called with the same mutex locked.
 *
 * Where a task can be ended from outside, as by pthread_cancel(), the port holds that off while the
 * task has the mutex, waits for an event, or is inside a function of the transport: otherwise nobody
 * would service the client any more.
 */
void port_event_init(struct port_event *event);
void port_event_wait(struct port_event *event, struct port_mutex *mutex, uint32_t timeout_ms);
void port_event_set(struct port_event *event);
void port_event_destroy(struct port_event *event);

#endif

/*
 * Whether this process was forked from the one that made the mutex. May be called at any time, with
 * the mutex locked or not, and touches nothing else. A mutex that another process has locked is
 * never unlocked here, so the client then neither locks it nor calls the transport, except for
 * close(). A port_types.h that defines PORT_PROCESSES says that the port has this function; without
 * it there are no processes.
 */
#ifdef PORT_PROCESSES
bool port_mutex_forked(const struct port_mutex *mutex);
#else
#define port_mutex_forked(mutex) ((void)(mutex), false)
#endif

#ifdef __cplusplus
}
#endif

#endif
