/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A fair distributed lock for Arduino sketches, over any Client: Ethernet, WiFi, GSM, one with TLS.
 * Whoever asks first is served first, on whichever board, computer or server it runs.
 *
 *     #include <Ethernet.h>
 *     #include <Fairlock.h>
 *
 *     EthernetClient net;
 *     FairlockClient locks;
 *     FairlockMutex door(locks, "door:7");
 *
 *     void setup() { ... locks.begin(net, IPAddress(192, 0, 2, 7), 6379); }
 *     void loop() { locks.poll(); ... }
 *
 * Calls that wait, for sketches that do one thing at a time: acquire(), release(), FairlockHold.
 * Without waiting: startAcquire(), startRelease(), and poll() in each loop(), which calls onGranted,
 * onFailed and onLost.
 *
 * Leases. A hold ends by itself when its lease (30 s) runs out, so that a board without power blocks
 * nobody for ever. The lease is renewed at each third of it, by poll() and by all calls that wait. A
 * loop() that takes longer than the other two thirds loses the lock. So ask remaining() before each
 * step that must not be done twice, and switch off what moves in onLost.
 *
 * What blocks. A Client has calls that return when they are done, or have failed: connect() takes up
 * to 10 s on many boards, up to 75 s by GSM, and when the cable is out, write() may take as long. While
 * one of them blocks, loop() does not run, nothing is renewed, and nobody can tell the sketch that its
 * hold has ended. So
 *   - connect() is only called when each hold of the sketch, by whichever FairlockClient, would still
 *     be valid if it took as long as it may: blocksFor(), 10 s if you do not say otherwise, or the
 *     longest that a call of this Client has taken. If it would not, loop() goes on without a
 *     connection: remaining() runs down, onLost is called in time, and then the Client connects;
 *   - a call that takes longer nevertheless is followed by onLost, and remaining() is 0: late, but true;
 *   - so a hold outlives a broken connection only if its lease is longer than blocksFor(). Three times
 *     as long leaves time for two attempts, and for a write(), which is not held back: it renews when a
 *     third of the lease is gone, and the rest outlasts it. Make the Client's own time-outs short (see
 *     README.md), say so by blocksFor(), and make config.lease_ms long enough;
 *   - while the server is away, poll() blocks for as long as connect() does, every 5 s. A host's name
 *     instead of an IPAddress adds the time of the DNS server.
 *
 * Memory. All of it is in the objects, which have to stay where they are, as globals do; the strings
 * that you pass are not copied. Nothing is allocated.
 *
 * Words. statusText() and errorText() return words for Serial.println(); on an AVR, where they come
 * from flash, until the next such call.
 *
 * Tasks. All objects belong to one task, that of loop(). Call nothing here from an interrupt, from a
 * timer, or from a second task of an RTOS.
 */
#ifndef FAIRLOCK_ARDUINO_H
#define FAIRLOCK_ARDUINO_H

#include <Arduino.h>
#include <Client.h>

#include "fairlock/fairlock.h"
#include "fairlock/fairlock_share.h"

/*
 * How long the name of a lock and config.client_id may be together, and how many bytes go to the
 * Client in one write() at most: a request has some 300. If you change them, then for the whole build
 * (build_flags of PlatformIO), because the library's own files need the same values.
 */
#ifndef FAIRLOCK_ARDUINO_NAME_SIZE
#define FAIRLOCK_ARDUINO_NAME_SIZE 64
#endif
#ifndef FAIRLOCK_ARDUINO_SEND_SIZE
#define FAIRLOCK_ARDUINO_SEND_SIZE 256
#endif

class FairlockHandle;

/* A function of the sketch that is called for a lock: see FairlockHandle. */
typedef void (*FairlockCallback)(FairlockHandle &lock);

/*
 * Adds time to the library's clock, which is millis(): for a board whose millis() stands still while
 * it sleeps, or loses time while interrupts are off (on an AVR after 1 ms: see README.md), in ms, after
 * each time. Rather say too much than too little: with too little, a sketch that holds a lock meanwhile
 * believes in it for too long.
 */
void fairlockSlept(uint32_t ms);

/* A connection to one server, for any number of locks. */
class FairlockClient
{
public:
  FairlockClient();

  /* end() */
  ~FairlockClient();

  FairlockClient(const FairlockClient &) = delete;
  FairlockClient &operator=(const FairlockClient &) = delete;

  /*
   * Begins to use net for this server: nothing else may use it, and it stays where it is until end().
   * Connects to nothing yet: the first acquire does. host stays the caller's. Returns false after a
   * begin() without an end(), or, with status() FAIRLOCK_INVALID or _TOO_LONG, if config is out of its
   * range.
   */
  bool begin(Client &net, const char *host, uint16_t port = 6379);
  bool begin(Client &net, IPAddress at, uint16_t port = 6379);

  /* The same with a transport that is no Client, as port.h has it: see FairlockSerial.h. It is copied. */
  bool begin(const struct port_transport &transport);

  /*
   * Closes the connection. The locks can be used again after the next begin(). What is still held
   * ends with its lease, so release it before.
   */
  void end();

  /*
   * Sends, receives, renews leases and calls the callbacks. Call it in each loop(), and after
   * startAcquire() and the like. Returns in how many ms to call it again; so long a board may sleep,
   * if arriving bytes wake it. Blocks as long as the Client's calls do: see above.
   */
  uint32_t poll();

  /*
   * Tries once to connect, and to be accepted by the server: a check at the start. No other function
   * needs it. Blocks until there is an answer, or none. false: status() says why.
   */
  bool connect();

  /*
   * How long one call of the Client may block, in ms. 10000 at first. Raised by itself to the longest
   * that such a call has taken.
   */
  void blocksFor(uint32_t ms);
  uint32_t blocksFor() const;

  /* The result of the last begin() or connect(), an enum fairlock_status; and in words. */
  int status() const;
  const char *statusText() const;

  /* Why the server gives no useful answers at present; FAIRLOCK_OK: it does; and in words. */
  int error();
  const char *errorText();

  /*
   * What begin() uses, see fairlock.h: lease_ms, user, password, client_id, waiter_ms and so on. Fill
   * it in before begin(); buffers and functions are set there, and members that you leave alone are 0.
   */
  struct fairlock_config config;

  /* For the functions of fairlock.h, after begin(). */
  struct fairlock_client *native();

  /* The Client as port.h has it, after begin(): to put something around it, or to test it. */
  struct port_transport *transport();

private:
  friend class FairlockHandle;
  friend class FairlockShared;

  bool beginOver(Client &net, uint16_t port);
  bool enter();
  int leave(int status);
  bool mayBlock() const;
  void measure(uint32_t began);
  bool deliver();
  int connectNow(uint32_t timeout_ms);
  int sendSome(const uint8_t *data, size_t size);
  int receiveSome(uint8_t *data, size_t size);

  static int transportConnect(void *context, uint32_t timeout_ms);
  static int transportSend(void *context, const void *data, size_t size);
  static int transportReceive(void *context, void *data, size_t size, uint32_t timeout_ms);
  static void transportClose(void *context);
  static void onLost(struct fairlock *handle, const struct fairlock_loss *loss, void *context);
  static void onEnded(struct fairlock *handle, const struct fairlock_end *end, void *context);

  Client *net_;
  const char *host_; /* nullptr: the address */
  IPAddress address_;
  uint16_t port_;
  int status_;
  uint32_t blocks_ms_;
  bool begun_;
  bool inside_;     /* the library is at work: a callback cannot begin anything */
  bool lost_;       /* a hold has ended in the present call */
  bool tells_room_; /* availableForWrite() of the Client works */
  bool full_;       /* the last send would have blocked */
  bool broken_;     /* the last send has failed */
  struct port_transport transport_;
  struct fairlock_client client_;
  uint8_t received_[FAIRLOCK_RECEIVE_SIZE(FAIRLOCK_ARDUINO_NAME_SIZE, 0)];
  uint8_t sent_[FAIRLOCK_ARDUINO_SEND_SIZE];
};

/*
 * What FairlockMutex and FairlockShared have in common: one holder's view of one lock. The functions
 * that return a bool return false for any reason, which status() tells. Its FairlockClient must be
 * begun, and outlives it.
 *
 * The callbacks. onGranted, onFailed: what startAcquire() has begun has ended, with the lock or
 * without it. They are called by poll(), and may call everything. onLost: a hold has ended that nobody
 * has released. It is called at once, inside of whatever this library is doing, and may call remaining(),
 * token() and status(), but what begins or ends anything returns false there: switch off what moves,
 * set a flag, and go on in loop(). Each may be replaced at any time; nullptr: none.
 */
class FairlockHandle
{
public:
  FairlockHandle(const FairlockHandle &) = delete;
  FairlockHandle &operator=(const FairlockHandle &) = delete;

  /* Waits in line for up to wait_ms; FAIRLOCK_FOREVER: without a limit. Leases are renewed meanwhile. */
  bool acquire(uint32_t wait_ms);

  /* Acquires the lock only if it is free, and nobody waits for it. */
  bool tryAcquire();

  /*
   * Releases the lock: it goes to the next in line. A holder that has acquired it twice has to release
   * it twice. After a hold was lost it is called, too, and returns false, with FAIRLOCK_LOST.
   */
  bool release();

  /* The same without waiting: true if it was begun. pending() until it has ended. */
  bool startAcquire(uint32_t wait_ms = FAIRLOCK_FOREVER);
  bool startRelease();
  bool pending();

  /* Ends the wait that startAcquire() has begun: it fails with FAIRLOCK_CANCELLED. */
  bool cancel();

  /* For how long it is still safe to act as the holder, in ms; 0: not held. */
  uint32_t remaining();
  bool held();

  /*
   * The fencing token of the hold: larger than that of each hold before it; 0: not held. Send it to
   * what the lock protects. Print knows no numbers of 64 bits: printToken() prints it.
   */
  uint64_t token();
  size_t printToken(Print &to);

  /* The result of the last of these calls, an enum fairlock_status; and in words. */
  int status();
  const char *statusText();

  /* A lease that is not renewed, in ms, for the next acquire. FAIRLOCK_RENEW: it is again. */
  void fixedLease(uint32_t lease_ms);

  void onGranted(FairlockCallback function);
  void onFailed(FairlockCallback function);
  void onLost(FairlockCallback function);

  /* For sketches with several locks: the name that it was made with. */
  const char *name() const;

  /* For the functions of fairlock.h, after begin() of the client. */
  struct fairlock *native();

protected:
  FairlockHandle(FairlockClient &client, const char *name, struct fairlock *handle,
                 int (*attacher)(FairlockClient &, FairlockHandle &));
  ~FairlockHandle();

  void attachLate();
  void takeOut();

  FairlockClient &client_;
  const char *name_;

private:
  friend class FairlockClient;

  enum Doing : uint8_t { Resting, Acquiring, Releasing };

  void attach();
  void detach();
  bool ready();
  bool began(int status);
  void tell();
  static FairlockHandle *find(const struct fairlock *handle);

  static FairlockHandle *first_; /* all handles of the sketch */
  FairlockHandle *next_;
  struct fairlock *handle_;
  int (*attach_)(FairlockClient &, FairlockHandle &);
  FairlockCallback granted_, failed_, lost_;
  uint32_t lease_ms_;
  int status_;
  bool attached_;
  bool ended_; /* what was begun has ended, and poll() has not told the sketch */
  Doing doing_;
};

/* A lock that one holder has at a time. */
class FairlockMutex : public FairlockHandle
{
public:
  /* name stays the caller's. */
  FairlockMutex(FairlockClient &client, const char *name);

  /* Releases the lock, and waits until the server has been told, or the hold has expired there. */
  ~FairlockMutex();

private:
  static int attachTo(FairlockClient &client, FairlockHandle &self);

  struct fairlock memory_;
};

/*
 * A lock that up to `limit` holders share, 1 to 1000, wherever they are: at most so many download at
 * a time. 0: any number, as readers do, beside one FairlockMutex that writes. The smallest limit in
 * use binds all who share a lock. At least one has to be made before begin() of its client, as a global is.
 */
class FairlockShared : public FairlockHandle
{
public:
  /* name stays the caller's. */
  FairlockShared(FairlockClient &client, const char *name, uint16_t limit);

  /* As that of FairlockMutex. */
  ~FairlockShared();

private:
  static int attachTo(FairlockClient &client, FairlockHandle &self);

  uint16_t limit_;
  struct fairlock_shared memory_;
};

/*
 * Holds a lock for as long as it is in scope:
 *
 *     FairlockHold hold(door, 10000);     waits in line for up to 10 s
 *     if (hold) open();
 *     else Serial.println(door.statusText());
 */
class FairlockHold
{
public:
  explicit FairlockHold(FairlockHandle &lock, uint32_t wait_ms = FAIRLOCK_FOREVER)
      : lock_(lock), acquired_(lock.acquire(wait_ms))
  {
  }

  /* release() */
  ~FairlockHold()
  {
    release();
  }

  FairlockHold(const FairlockHold &) = delete;
  FairlockHold &operator=(const FairlockHold &) = delete;

  /* True as long as it is safe to act as the holder. */
  explicit operator bool()
  {
    return acquired_ && lock_.held();
  }

  /* Releases before the end of the scope. False: there is no hold any more, or it cannot be told. */
  bool release()
  {
    bool acquired = acquired_;
    acquired_ = false;
    return acquired && lock_.release();
  }

private:
  FairlockHandle &lock_;
  bool acquired_;
};

#endif
