/* SPDX-License-Identifier: Apache-2.0 */
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
 *   port/freertos_plus_tcp/                          a transport for FreeRTOS's own TCP/IP
 *   port/netx/       a transport over NetX Duo (IPv4, IPv6, names), threads for ThreadX
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

/* This release, as part of a name; with the version in fairlock.h. */
#define PORT_RELEASE 1_0_0_rc3

#ifndef PORT_THREADS
#error "port_types.h has to define PORT_THREADS, a name of the threads port's own"
#endif

/* For those below: join names, expanded before. */
#define PORT_JOIN(name, release)                    name##_##release
#define PORT_JOIN_THREADS(name, release, threads)   name##_##release##_##threads
#define PORT_EXPAND(name, release)                  PORT_JOIN(name, release)
#define PORT_EXPAND_THREADS(name, release, threads) PORT_JOIN_THREADS(name, release, threads)

/*
 * The sizes of the structs in a program's memory depend on the release, and those of a client on the
 * threads port, too. So that no object links with a library of other ones, the functions that are given
 * such memory bear the release in their names, and those that a client goes with also the port: the
 * linker then misses, for example, fairlock_init_1_0_0_port_freertos. port_types.h defines PORT_THREADS as
 * a name of its own.
 */
#define PORT_RELEASED(name) PORT_EXPAND(name, PORT_RELEASE)
#define PORT_NAMED(name)    PORT_EXPAND_THREADS(name, PORT_RELEASE, PORT_THREADS)

/*
 * The name of a function as the linker has it, a string, for dlsym(): a library of another release does
 * not have what the headers of this one name so.
 */
#define PORT_SYMBOL(name) PORT_TEXT(name)
#define PORT_TEXT(name)   #name

#ifdef __cplusplus
extern "C" {
#endif

/*
 * What the functions of a transport return when they did not do what they were asked. None of them
 * is 0, and 0 is never returned by send() and recv(): "nothing yet" and "closed" cannot be
 * confused. Nor is one of them -1, which a system's own calls return for any error: a port that
 * hands that on has its connection closed, as by PORT_CLOSED, and does not wait for ever.
 */
enum port_status {
  /* connect(): the connection is up */
  PORT_OK = 1,

  /* nothing can be done now: call again later */
  PORT_WOULD_BLOCK = -2,

  /* the peer closed or reset the connection, or it broke. From connect(): as PORT_UNREACHABLE */
  PORT_CLOSED = -3,

  /* connect(): no address of the server accepts a connection */
  PORT_UNREACHABLE = -4,

  /*
   * connect(), recv(): a transport with TLS does not trust the server's certificate or key, or the
   * server does not trust ours (TLS 1.3 says so after the handshake). A person has to look at it,
   * so the client ends its operations. The transport keeps the error.
   */
  PORT_UNTRUSTED = -5,

  /*
   * connect(): as PORT_WOULD_BLOCK, but it waits for bytes from the other side, as the handshake of
   * TLS does. An event loop then waits until the connection is readable. (After PORT_WOULD_BLOCK
   * from connect() it waits until the connection is writable, which it always is once it is
   * connected.)
   */
  PORT_NEEDS_INPUT = -6
};

/*
 * The longest timeout, in ms, that the client passes to connect() and recv(). A device that has
 * nothing to do wakes so often. A task that is inside recv() is woken only by fairlock_stop(), and only
 * if the transport can, so two things may take so much longer: fairlock_stop() without that, and giving
 * up a server that does not answer another task. A
 * program with one task may use a longer one at no cost. Set it for the whole library, by -D or in
 * port_types.h.
 */
#ifndef PORT_WAIT_MAX_MS
#define PORT_WAIT_MAX_MS 1000U
#endif

/*
 * A byte stream to one server. All functions get `context`, which belongs to the transport and must
 * stay valid and in place as long as the client uses it. The client has at most one task inside
 * connect(), recv() or close(). At most one other task is inside send() at the same time, while the
 * first is inside recv(), but never during connect() or close(). Only connect() and recv() may
 * block, for up to their timeout. The client calls close() and aim() with its mutex locked, so
 * these two must not call the client, nor wait for a task that does. It calls the others with its
 * mutex unlocked.
 *
 * timeout_ms: 0 means to look and return at once. A function may return early. The client never
 * asks for more than PORT_WAIT_MAX_MS.
 */
struct port_transport {
  /*
   * Begins to connect; later calls go on with that. PORT_OK: connected. PORT_WOULD_BLOCK,
   * PORT_NEEDS_INPUT: not yet, call again. PORT_UNREACHABLE, PORT_UNTRUSTED: it has failed; what
   * was opened is closed again, and the next call starts over. PORT_CLOSED is treated as
   * PORT_UNREACHABLE. The client calls close() after each of these three, and then pauses.
   */
  int (*connect)(void *context, uint32_t timeout_ms);

  /*
   * Sends up to size (1 to INT32_MAX) bytes, and no more than an int can count: it has 16 bits on an
   * AVR. Returns how many were taken (> 0), PORT_WOULD_BLOCK:
   * none, or PORT_CLOSED. If the stack has refused, and may have taken some, count these; if that
   * cannot be known, PORT_CLOSED. The client offers the rest again: at once, or, after
   * PORT_WOULD_BLOCK, when recv() has returned. After PORT_CLOSED it reads nothing more. So a
   * transport that may still have received bytes returns PORT_WOULD_BLOCK here, and later
   * PORT_CLOSED from recv().
   */
  int (*send)(void *context, const void *data, size_t size);

  /*
   * Receives up to size (1 to INT32_MAX) bytes, and no more than an int can count. Returns how many (> 0), as soon as there is one.
   * Returns PORT_CLOSED and PORT_UNTRUSTED only after all bytes that came before. PORT_WOULD_BLOCK:
   * nothing came in time; or the last send() would have blocked, and can now be tried again.
   */
  int (*recv)(void *context, void *data, size_t size, uint32_t timeout_ms);

  /*
   * Closes at once, and lets the peer know, by a FIN or a reset: a server that does not know takes
   * the client for one that listens, and hands it locks. Bytes that were not sent are lost, and
   * recv() on the next connection returns no byte of this one. The client calls it after every
   * failure of the others; when it gives up a connection, even one that is still being opened; and
   * twice when the client ends, so that the second call can free what an attempt to connect has
   * left for the next attempt. It must do no harm when nothing is open. In a forked process (see
   * port_mutex_forked()) it closes this process's copy of the connection, and the parent's stays
   * open: it sends nothing, and waits for no lock.
   */
  void (*close)(void *context);

  /* passed to all of them */
  void *context;

  /*
   * Sets the address for the next connect() and those after it: "host:port", a string that stays
   * unchanged until the next call, or ":port" for another port of the previous host. Returns false
   * if the transport cannot connect to it. NULL: the next of the transport's own addresses; returns
   * true if there are more before the list starts over. Does no I/O, and may be called while there
   * is a connection. If this function pointer is NULL, the transport has one address, and the
   * client cannot follow servers that move.
   */
  bool (*aim)(void *context, const char *address);

  /*
   * Makes the connect() or recv() in which another task waits return soon, as when its time is over; if
   * none waits, the next one that would. So fairlock_stop() need not wait for it. Does not wait, and
   * may be called at any time, with the client's mutex locked, so never during close(). If this function
   * pointer is NULL, or it cannot do that at present, the end of the timeout has to come.
   */
  void (*wake)(void *context);
};

/*
 * Milliseconds since any fixed moment. It wraps around at 2^32 (after 49.7 days), goes on while the
 * device sleeps, and is never set back or forward. It must not run more than 1 % slow or fast,
 * because the client measures with it how long a hold is valid. May be called from any task.
 */
uint32_t port_clock_ms(void);

/*
 * Sleeps for at most ms (> 0), or until an interrupt; may return early. Only port/single needs it,
 * to wait while there is no connection. On a microcontroller it is one instruction (WFI), which a
 * tick ends. It may also service a network stack that has no task of its own.
 */
void port_idle(uint32_t ms);

/*
 * The functions of a threads port: task, mutex and event. If port_types.h defines PORT_ONE_TASK as
 * 1, the program has one task: port_types.h then has these functions inline, and the library leaves
 * out the code for other tasks. port/single/ does that.
 */
#ifndef PORT_ONE_TASK
#define PORT_ONE_TASK 0

/*
 * A number for the calling task: different for each task, never 0. If a new task gets the number of
 * one that has ended, for instance because it uses the same memory, the client takes both for one
 * task.
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
 * If a task can be ended from outside, as by pthread_cancel(), the port has to delay that while the
 * task has the mutex, waits for an event, or is inside a function of the transport. Otherwise
 * nobody would service the client any more.
 */
void port_event_init(struct port_event *event);
void port_event_wait(struct port_event *event, struct port_mutex *mutex, uint32_t timeout_ms);
void port_event_set(struct port_event *event);
void port_event_destroy(struct port_event *event);

#endif

/*
 * A port to a system with signals has these two, and its port_types.h defines PORT_SIGNALS:
 * port_event_expect_signals(), called after port_event_init(), lets a signal that the task handles end
 * its wait for the event. port_task_interrupted() returns whether one has ended such a wait, or one in a
 * function of the transport, in the calling task and since its last call.
 */
#ifdef PORT_SIGNALS
void port_event_expect_signals(struct port_event *event);
bool port_task_interrupted(void);
#else
/* Where there are no signals, both do nothing. */
#define port_event_expect_signals(event) ((void)(event))

/* No signal ends a wait. */
#define port_task_interrupted()          false
#endif

/*
 * Returns true if this process was forked from the one that made the mutex. May be called at any
 * time, with the mutex locked or not. In such a process the mutex may be locked for ever, so the
 * client does not lock it, and calls no function of the transport but close(). A port has this
 * function if its port_types.h defines PORT_PROCESSES; others are for systems without fork().
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
