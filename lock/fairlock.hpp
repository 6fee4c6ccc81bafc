/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The lock for C++11 and later: RAII, and the standard's Lockable and TimedLockable, so that
 * std::lock_guard, std::unique_lock and std::scoped_lock accept it. It is only a header, on top of
 * fairlock.h, whose rules hold here, too. Nothing here needs exceptions or RTTI, and nothing but a
 * destructor allocates: see that of fair::handle.
 *
 *     fair::client client(config, socket.transport);
 *     fair::handle door(client, "door:7");
 *
 *     fair::hold held(door, std::chrono::seconds(10));   waits in line for up to 10 s
 *     if (held) ...                                      has held.token(); released with its scope
 *     else ...                                           held.result() says why
 *
 *     std::lock_guard<fair::handle> guard(door);         the standard's way: lock() may throw
 *
 *     std::thread renews([&] { fairlock_run(client.native_handle()); });   without it a hold ends with
 *     ...                                                its lease, which unlock() cannot tell
 *     fairlock_stop(client.native_handle());
 *     renews.join();
 *
 *     fair::lock_all(door, gate);                        both, in one order for all: no deadlock
 *     std::scoped_lock both(std::adopt_lock, door, gate);
 *
 *     fair::shared_mutex valve(client, "valve:7");
 *     std::shared_lock<fair::shared_mutex> reads(valve);
 *     fair::semaphore downloads(client, "downloads", 10); at most ten, wherever they are, eight here
 *     fair::basic_semaphore<10> uploads(client, "uploads", 10);                      or all ten here
 *
 * Tasks. A fair::handle is one holder: threads that exclude each other need one each, with the same
 * name, and with the same client or different ones. The thread that holds may acquire again, as with
 * std::recursive_mutex. A fair::hold may be moved to another thread, which then releases. A
 * fair::shared_mutex and a fair::semaphore are one object for all threads.
 *
 * Times. A wait is rounded up to ms; one of 0 or less does not wait, and one of
 * FAIRLOCK_DURATION_MAX_MS (12.4 days) or more has no limit. A lease is rounded up, too; one that is out
 * of range, such as 0 or less, makes each acquire() end with FAIRLOCK_INVALID: only one that is left out
 * is renewed.
 * If the clock of an _until() is set during the wait, that is not noticed.
 *
 * Failures. status() says whether an object can be used. acquire() and release() return a status;
 * result() of a handle or a hold is the last one. try_lock() and its variants return false for any
 * reason, which result() of a handle tells. lock(), lock_shared(), lock_all() and acquire() of a
 * semaphore can only return with the lock; if they fail, they throw std::system_error with
 * fair::category(). Without exceptions they call std::abort(), unless you define a macro FAIRLOCK_LOCK_FAILED(status).
 * That must not return, and must be the same in all files of a program.
 *
 * The namespace is not called fairlock because C's struct fairlock is.
 */
#ifndef FAIRLOCK_HPP
#define FAIRLOCK_HPP

#include "fairlock.h"
#include "fairlock_abandon.h"
#include "fairlock_several.h"
#include "fairlock_share.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#ifdef __cpp_exceptions
#include <string>
#include <system_error>
#endif

#ifndef FAIRLOCK_LOCK_FAILED
#ifdef __cpp_exceptions
/* What lock() and the like do when they fail; see above. */
#define FAIRLOCK_LOCK_FAILED(status) throw std::system_error(status, fair::category())
#else
#define FAIRLOCK_LOCK_FAILED(status) std::abort()
#endif
#endif

/* As port.h says: objects that were compiled for different releases do not link. */
#define FAIRLOCK_INSIDE PORT_NAMED(inside)

/* The lock in C++. */
namespace fair
{
inline namespace FAIRLOCK_INSIDE
{

#ifdef __cpp_exceptions
/* The statuses as the standard's error codes. */
class status_category : public std::error_category
{
public:
  /* "fairlock" */
  const char *name() const noexcept override
  {
    return "fairlock";
  }

  /* fairlock_status_text() */
  std::string message(int status) const override
  {
    return fairlock_status_text(status);
  }
};

/* The only one of its kind. */
inline const std::error_category &category() noexcept
{
  static const status_category statuses;
  return statuses;
}
#endif

/* What is not for programs, and may change. */
namespace detail
{

/*
 * Converts a time to the library's milliseconds, rounded up: 0 if it is not above 0,
 * FAIRLOCK_FOREVER if it is FAIRLOCK_DURATION_MAX_MS (12.4 days) or more.
 */
template <class Rep, class Period>
std::uint32_t to_ms(const std::chrono::duration<Rep, Period> &time) noexcept
{
  /* as a double, because any other unit may overflow */
  const double ms = std::chrono::duration<double, std::milli>(time).count();
  if (!(ms > 0)) return 0; /* also for NaN */
  if (ms >= FAIRLOCK_DURATION_MAX_MS) return FAIRLOCK_FOREVER;
  const std::uint32_t whole = static_cast<std::uint32_t>(ms);
  return whole + (whole < ms ? 1U : 0U);
}

/*
 * What to_ms() makes of the time that is left until this one: 0 if it has passed. If the clock is set
 * afterwards, that is not noticed.
 */
template <class Clock, class Duration>
std::uint32_t until_ms(const std::chrono::time_point<Clock, Duration> &end)
{
  typedef std::chrono::duration<double, std::milli> rough;
  const typename Clock::time_point now = Clock::now();
  const double left = (rough(end.time_since_epoch()) - rough(now.time_since_epoch())).count();
  /* the difference of times that are far apart may overflow, even in a comparison */
  if (left >= FAIRLOCK_DURATION_MAX_MS) return FAIRLOCK_FOREVER;
  if (!(left > -1.0 * FAIRLOCK_DURATION_MAX_MS)) return 0;
  return end > now ? to_ms(end - now) : 0;
}

/* A lease for the library: a time, or one that is renewed, which no time becomes. */
struct lease {
  /* That of a time. One that is out of range is so for the library, too. */
  template <class Rep, class Period>
  lease(const std::chrono::duration<Rep, Period> &time) noexcept : ms(to_ms(time))
  {
    static_assert(FAIRLOCK_RENEW != FAIRLOCK_FOREVER && FAIRLOCK_RENEW > FAIRLOCK_DURATION_MAX_MS,
                  "to_ms() does not return FAIRLOCK_RENEW");
  }

  /* The lease of the configuration, renewed. */
  static lease renewed() noexcept
  {
    lease that(std::chrono::milliseconds(0));
    that.ms = FAIRLOCK_RENEW;
    return that;
  }

  std::uint32_t ms; /* as lease_ms of fairlock_acquire() */
};

/*
 * Releases handle if it is held, whichever thread has acquired it, and takes it out of its client:
 * fairlock_deinit(). In a forked process, its memory is free: FAIRLOCK_OK.
 */
inline int take_out(fairlock &handle) noexcept
{
  (void)fairlock_adopt(&handle);
  (void)fairlock_cancel(&handle);
  while (fairlock_hold_count(&handle) > 0 && fairlock_release(&handle) == FAIRLOCK_OK)
    continue;
  const int status = fairlock_deinit(&handle);
  return status == FAIRLOCK_FORKED ? FAIRLOCK_OK : status;
}

/* What is left of a handle, on the heap until the server has been told. */
struct remains {
  fairlock_rest rest; /* what the library needs of it */
  char name[1];       /* the name's first byte; the others are behind it */
};

/* Of a struct remains: its memory is free. */
inline void free_remains(fairlock_rest *, void *block) noexcept
{
  std::free(block);
}

/*
 * Gives handle up, whatever it is doing, and takes it out of its client, without waiting. Returns false,
 * and does nothing, if there is no memory for what is left of it, or a thread is inside a call that waits.
 */
inline bool give_up(fairlock &handle) noexcept
{
  const int status = fairlock_start_deinit(&handle); /* mostly nothing is left */
  if (status == FAIRLOCK_OK || status == FAIRLOCK_FORKED) return true;
  const std::size_t size = handle.name_size;
  remains *block = static_cast<remains *>(std::calloc(1, sizeof(remains) + size));
  if (block == nullptr) return false;
  block->rest.freed = free_remains;
  block->rest.context = block;
  block->rest.name = block->name;
  block->rest.name_size = size;
  const bool done = fairlock_abandon(&handle, &block->rest) == FAIRLOCK_OK;
  if (!done) std::free(block);
  return done;
}

/*
 * The threads that wait until one of an object's seats is theirs, first come, first served. The
 * object's mutex is locked when its functions are called, and when they return.
 */
template <class Seat> class waiting_room
{
public:
  waiting_room() noexcept : first_(nullptr)
  {
  }

  /*
   * Waits for up to wait_ms, which it reduces to what is left of it, at least 1. FAIRLOCK_OK: *seat is
   * the calling thread's. FAIRLOCK_BUSY: wait_ms is 0; FAIRLOCK_TIMEOUT; FAIRLOCK_CANCELLED;
   * FAIRLOCK_IN_PROGRESS: there is no other thread, so this one would wait for itself.
   */
  int wait(port_mutex &guard, std::uint32_t &wait_ms, Seat *&seat) noexcept
  {
    if (wait_ms == 0) return FAIRLOCK_BUSY;
    if (PORT_ONE_TASK) return FAIRLOCK_IN_PROGRESS;
    const std::uint32_t began = port_clock_ms();
    const std::uint32_t given_ms = wait_ms;
    waiter self = {};
    self.task = port_task_self();
    self.result = FAIRLOCK_PENDING;
    port_event_init(&self.event);
    append(self);
    while (self.result == FAIRLOCK_PENDING && wait_ms > 0) {
      port_event_wait(&self.event, &guard, wait_ms < PORT_WAIT_MAX_MS ? wait_ms : PORT_WAIT_MAX_MS);
      const std::uint32_t passed = port_clock_ms() - began;
      if (given_ms != FAIRLOCK_FOREVER) wait_ms = passed < given_ms ? given_ms - passed : 0;
    }
    if (self.result == FAIRLOCK_PENDING) {
      remove(self);
      self.result = FAIRLOCK_TIMEOUT;
    }
    port_event_destroy(&self.event);
    if (wait_ms == 0) wait_ms = 1;
    seat = self.seat;
    return self.result;
  }

  /* Gives a seat that nobody has to the first who waits. Returns that task; 0: nobody waits. */
  std::uintptr_t give(Seat &seat) noexcept
  {
    if (first_ == nullptr) return 0;
    first_->seat = &seat;
    return end_first(FAIRLOCK_OK);
  }

  /* Ends the waits of all with FAIRLOCK_CANCELLED. FAIRLOCK_NOT_HELD: nobody waits. */
  int cancel() noexcept
  {
    if (first_ == nullptr) return FAIRLOCK_NOT_HELD;
    while (first_ != nullptr)
      (void)end_first(FAIRLOCK_CANCELLED);
    return FAIRLOCK_OK;
  }

private:
  /* On the stack of the thread that waits. */
  struct waiter {
    port_event event;
    waiter *next;
    std::uintptr_t task;
    Seat *seat;
    int result; /* FAIRLOCK_PENDING: it is in the list */
  };

  void append(waiter &last) noexcept
  {
    waiter **link = &first_;
    while (*link != nullptr)
      link = &(*link)->next;
    *link = &last;
  }

  void remove(waiter &one) noexcept
  {
    waiter **link = &first_;
    while (*link != &one)
      link = &(*link)->next;
    *link = one.next;
  }

  std::uintptr_t end_first(int result) noexcept
  {
    waiter &ended = *first_;
    first_ = ended.next;
    ended.result = result;
    port_event_set(&ended.event);
    return ended.task;
  }

  waiter *first_;
};

/* What looks into handles for acquire_all(). */
struct all {
  /* fairlock_acquire_all(), with the lease of the first */
  template <class... Handles>
  static int acquire(std::uint32_t wait_ms, Handles &...handles) noexcept;
};

} // namespace detail

/* A client: one connection to one server. Outlives its handles, mutexes and semaphores. */
class client
{
public:
  /* Calls fairlock_client_init(), whose result is in status(). Both arguments stay the caller's. */
  client(const fairlock_config &config, port_transport &transport) noexcept
      : client_(), downgrading_(), status_(fairlock_client_init(&client_, &config, &transport))
  {
  }

  /* A temporary configuration is refused, because the client keeps a pointer to it. */
  client(const fairlock_config &&config, port_transport &transport) = delete;

  client(const client &) = delete;
  client &operator=(const client &) = delete;

  /* fairlock_client_deinit() */
  ~client()
  {
    if (status_ == FAIRLOCK_OK) fairlock_client_deinit(&client_);
  }

  /* FAIRLOCK_OK, or why there is no client: _INVALID or _TOO_LONG. */
  int status() const noexcept
  {
    return status_;
  }

  /*
   * fairlock_use_downgrading(), for basic_shared_mutex::downgrade(), and its status, or status(). Call
   * it before anything is acquired.
   */
  int use_downgrading() noexcept
  {
    return status_ == FAIRLOCK_OK ? fairlock_use_downgrading(&client_, &downgrading_) : status_;
  }

  /* For all functions of fairlock.h, if status() is FAIRLOCK_OK. */
  fairlock_client *native_handle() noexcept
  {
    return &client_;
  }

private:
  fairlock_client client_;
  fairlock_downgrading downgrading_;
  int status_;
};

/* One holder's view of one named lock; see above for its threads. Neither copied nor moved. */
class handle
{
public:
  /*
   * name stays the caller's. lease: the lease of each hold; if it is left out, FAIRLOCK_RENEW. If
   * fairlock_init() fails, status() and each acquire() return its status.
   */
  handle(client &of, const char *name, detail::lease lease = detail::lease::renewed()) noexcept
      : handle(of.native_handle(), of.status(), name, lease)
  {
  }

  /* The same with a client of C, which was initialised. */
  handle(fairlock_client &of, const char *name,
         detail::lease lease = detail::lease::renewed()) noexcept
      : handle(&of, FAIRLOCK_OK, name, lease)
  {
  }

  handle(const handle &) = delete;
  handle &operator=(const handle &) = delete;

  /*
   * Does not block: what the server has of it is ended in the background, while some thread services the
   * client, by fairlock_abandon(), for which it takes memory from the heap if the server has to be told
   * anything. Who wants to be sure that it was told calls close() before. Without memory, it repeats
   * close() until that succeeds.
   */
  ~handle()
  {
    if (unusable_ == FAIRLOCK_OK && detail::give_up(handle_)) unusable_ = FAIRLOCK_INVALID;
    while (close() != FAIRLOCK_OK)
      (void)fairlock_poll(client_, 10);
  }

  /*
   * Releases the lock if it is held, whichever thread has acquired it, and takes the handle out of
   * its client, as fairlock_deinit() does. After FAIRLOCK_OK it can only be destroyed, which does
   * not block. No other thread may use it meanwhile.
   */
  int close() noexcept
  {
    if (unusable_ != FAIRLOCK_OK) return FAIRLOCK_OK;
    result_ = detail::take_out(handle_);
    if (result_ == FAIRLOCK_OK) unusable_ = FAIRLOCK_INVALID;
    return result_;
  }

  /* Waits in line without a limit. For failures see above. */
  void lock()
  {
    if (acquire() != FAIRLOCK_OK) FAIRLOCK_LOCK_FAILED(result_);
  }

  /* Acquires only if the lock is free and nobody waits for it. */
  bool try_lock() noexcept
  {
    return acquire_ms(0) == FAIRLOCK_OK;
  }

  /* Waits in line for up to wait. */
  template <class Rep, class Period>
  bool try_lock_for(const std::chrono::duration<Rep, Period> &wait) noexcept
  {
    return acquire_for(wait) == FAIRLOCK_OK;
  }

  /* Waits in line until end. */
  template <class Clock, class Duration>
  bool try_lock_until(const std::chrono::time_point<Clock, Duration> &end)
  {
    return acquire_ms(detail::until_ms(end)) == FAIRLOCK_OK;
  }

  /* Calls release(), whose status is in result(). */
  void unlock() noexcept
  {
    (void)release();
  }

  /* fairlock_acquire(), without a limit */
  int acquire() noexcept
  {
    return acquire_ms(FAIRLOCK_FOREVER);
  }

  /* fairlock_acquire(), for up to wait */
  template <class Rep, class Period>
  int acquire_for(const std::chrono::duration<Rep, Period> &wait) noexcept
  {
    return acquire_ms(detail::to_ms(wait));
  }

  /* fairlock_release() */
  int release() noexcept
  {
    return result_ = unusable_ != FAIRLOCK_OK ? FAIRLOCK_NOT_HELD : fairlock_release(&handle_);
  }

  /* fairlock_adopt() */
  int adopt() noexcept
  {
    return unusable_ != FAIRLOCK_OK ? FAIRLOCK_NOT_HELD : fairlock_adopt(&handle_);
  }

  /* fairlock_cancel(): from any thread */
  int cancel() noexcept
  {
    return unusable_ != FAIRLOCK_OK ? FAIRLOCK_NOT_HELD : fairlock_cancel(&handle_);
  }

  /* FAIRLOCK_OK, or why it cannot be used. */
  int status() const noexcept
  {
    return unusable_;
  }

  /* The result of the last of the calls above, except adopt(), cancel() and status(). */
  int result() const noexcept
  {
    return result_;
  }

  /* fairlock_token() */
  std::uint64_t token() noexcept
  {
    return unusable_ != FAIRLOCK_OK ? 0 : fairlock_token(&handle_);
  }

  /* fairlock_remaining_ms() */
  std::chrono::milliseconds remaining() noexcept
  {
    return std::chrono::milliseconds(unusable_ != FAIRLOCK_OK ? 0
                                                              : fairlock_remaining_ms(&handle_));
  }

  /* For the other functions of fairlock.h, until close(). */
  fairlock *native_handle() noexcept
  {
    return &handle_;
  }

private:
  friend struct detail::all;

  handle(fairlock_client *of, int usable, const char *name, detail::lease lease) noexcept
      : handle_(), client_(of), lease_ms_(lease.ms),
        unusable_(usable != FAIRLOCK_OK ? usable : fairlock_init(&handle_, of, name)),
        result_(unusable_)
  {
  }

  int acquire_ms(std::uint32_t wait_ms) noexcept
  {
    return result_ = unusable_ != FAIRLOCK_OK ? unusable_
                                              : fairlock_acquire(&handle_, wait_ms, lease_ms_);
  }

  fairlock handle_;
  fairlock_client *client_;
  std::uint32_t lease_ms_;
  int unusable_; /* why it cannot be used; FAIRLOCK_OK: it can */
  int result_;
};

template <class... Handles>
int detail::all::acquire(std::uint32_t wait_ms, Handles &...handles) noexcept
{
  handle *const given[] = {&handles...};
  fairlock *natives[sizeof...(handles)];
  for (std::size_t i = 0; i < sizeof...(handles); i++) {
    if (given[i]->unusable_ != FAIRLOCK_OK) return given[i]->unusable_;
    natives[i] = &given[i]->handle_;
  }
  return fairlock_acquire_all(natives, sizeof...(handles), wait_ms, given[0]->lease_ms_);
}

/*
 * fairlock_acquire_all(), without a limit: all of these handles or none, with the lease of the first.
 * Each is released by itself: std::lock_guard and std::scoped_lock take them over (std::adopt_lock).
 * std::lock() and std::scoped_lock alone give up their places in the queues again and again.
 */
template <class... Handles> int acquire_all(handle &first, Handles &...others) noexcept
{
  return detail::all::acquire(FAIRLOCK_FOREVER, first, others...);
}

/* The same, for up to wait. */
template <class Rep, class Period, class... Handles>
int acquire_all_for(const std::chrono::duration<Rep, Period> &wait, handle &first,
                    Handles &...others) noexcept
{
  return detail::all::acquire(detail::to_ms(wait), first, others...);
}

/* acquire_all(). For failures see above. */
template <class... Handles> void lock_all(handle &first, Handles &...others)
{
  const int status = acquire_all(first, others...);
  if (status != FAIRLOCK_OK) FAIRLOCK_LOCK_FAILED(status);
}

/*
 * A hold that ends with its scope: one level of re-entry. Movable, also to another thread, which
 * takes the hold over when it releases; only one thread at a time uses the hold and its handle.
 */
class hold
{
public:
  /* Holds nothing: FAIRLOCK_NOT_HELD. */
  hold() noexcept : of_(nullptr), result_(FAIRLOCK_NOT_HELD), token_(0)
  {
  }

  /* Waits in line without a limit. */
  explicit hold(handle &of) noexcept : hold(of, of.acquire())
  {
  }

  /* Waits in line for up to wait; 0: acquires only if the lock is free. */
  template <class Rep, class Period>
  hold(handle &of, const std::chrono::duration<Rep, Period> &wait) noexcept
      : hold(of, of.acquire_for(wait))
  {
  }

  hold(const hold &) = delete;
  hold &operator=(const hold &) = delete;

  /* Takes the hold of the other one, which then holds nothing. */
  hold(hold &&other) noexcept : of_(other.of_), result_(other.result_), token_(other.token_)
  {
    other.forget();
  }

  /* The same, after a release() of its own hold. */
  hold &operator=(hold &&other) noexcept
  {
    if (this == &other) return *this;
    (void)release();
    of_ = other.of_;
    result_ = other.result_;
    token_ = other.token_;
    other.forget();
    return *this;
  }

  /* release() */
  ~hold()
  {
    (void)release();
  }

  /* True if it holds, and has to release. It may be lost meanwhile: see remaining(). */
  explicit operator bool() const noexcept
  {
    return of_ != nullptr;
  }

  /* Releases now: fairlock_release(); FAIRLOCK_NOT_HELD if there is nothing to release. */
  int release() noexcept
  {
    handle *of = of_;
    if (of == nullptr) return FAIRLOCK_NOT_HELD;
    forget();
    (void)of->adopt();
    return result_ = of->release();
  }

  /* The result of acquiring; after release(), that of releasing. */
  int result() const noexcept
  {
    return result_;
  }

  /* The fencing token of the hold; 0: it holds nothing. */
  std::uint64_t token() const noexcept
  {
    return token_;
  }

  /* For how long it is still safe to act as the holder; 0: it is not. */
  std::chrono::milliseconds remaining() const noexcept
  {
    return of_ != nullptr ? of_->remaining() : std::chrono::milliseconds::zero();
  }

private:
  hold(handle &of, int result) noexcept
      : of_(result == FAIRLOCK_OK ? &of : nullptr), result_(result),
        token_(result == FAIRLOCK_OK ? of.token() : 0)
  {
  }

  void forget() noexcept
  {
    of_ = nullptr;
    result_ = FAIRLOCK_NOT_HELD;
    token_ = 0;
  }

  handle *of_;
  int result_;
  std::uint64_t token_;
};

/*
 * A lock that the threads of this program and others, wherever they are, hold exclusively or share;
 * all of them wait in one queue, first come, first served. It satisfies SharedTimedLockable, for
 * std::shared_lock and std::unique_lock, and is neither copied nor moved.
 *
 * As with std::shared_mutex, the thread that has locked unlocks, and does not lock both ways: where
 * it would wait for itself, it gets FAIRLOCK_IN_PROGRESS at once. It may acquire again as it has
 * before, and then releases as often. To go from shared to exclusive, release, acquire, and look
 * again at what was read; for the reverse there is downgrade().
 *
 * Threads: so many may hold, or wait in line, by this object at a time. Others first wait, in the order
 * in which they came, until one of these unlocks; so whoever holds must not wait for them. For each, the
 * object has a fairlock and a fairlock_shared, whose memory a thread uses from its lock to its unlock.
 */
template <unsigned Threads> class basic_shared_mutex
{
public:
  /* As for a handle. */
  basic_shared_mutex(client &of, const char *name,
                     detail::lease lease = detail::lease::renewed()) noexcept
      : seats_(), room_(), guard_(), client_(of.native_handle()), lease_ms_(lease.ms), open_(0),
        status_(of.status())
  {
    port_mutex_init(&guard_);
    while (status_ == FAIRLOCK_OK && open_ < 2 * Threads) {
      seat &next = seats_[open_ / 2];
      status_ = open_ % 2 == 0 ? fairlock_init(&next.exclusive, client_, name)
                               : fairlock_init_shared(&next.shared, client_, name, 0);
      if (status_ == FAIRLOCK_OK) open_++;
    }
  }

  basic_shared_mutex(const basic_shared_mutex &) = delete;
  basic_shared_mutex &operator=(const basic_shared_mutex &) = delete;

  /* As that of a handle. */
  ~basic_shared_mutex()
  {
    for (; open_ > 0; open_--) {
      seat &last = seats_[(open_ - 1) / 2];
      if (!detail::give_up(open_ % 2 == 0 ? last.shared.handle : last.exclusive)) break;
    }
    while (close() != FAIRLOCK_OK)
      (void)fairlock_poll(client_, 10);
    port_mutex_destroy(&guard_);
  }

  /*
   * Releases what any thread holds, and takes the object out of its client. After FAIRLOCK_OK it can
   * only be destroyed, which does not block. No other thread may use it meanwhile.
   */
  int close() noexcept
  {
    while (open_ > 0) {
      seat &last = seats_[(open_ - 1) / 2];
      const int status = detail::take_out(open_ % 2 == 0 ? last.shared.handle : last.exclusive);
      if (status != FAIRLOCK_OK) return status;
      open_--;
    }
    status_ = FAIRLOCK_INVALID;
    return FAIRLOCK_OK;
  }

  /* Waits in line, to have it exclusively. For failures see above. */
  void lock()
  {
    const int status = acquire();
    if (status != FAIRLOCK_OK) FAIRLOCK_LOCK_FAILED(status);
  }

  /* Has it exclusively only if it is free and nobody waits for it. */
  bool try_lock() noexcept
  {
    return acquire_ms(0, true) == FAIRLOCK_OK;
  }

  /* Waits in line for up to wait, to have it exclusively. */
  template <class Rep, class Period>
  bool try_lock_for(const std::chrono::duration<Rep, Period> &wait) noexcept
  {
    return acquire_for(wait) == FAIRLOCK_OK;
  }

  /* Waits in line until end, to have it exclusively. */
  template <class Clock, class Duration>
  bool try_lock_until(const std::chrono::time_point<Clock, Duration> &end)
  {
    return acquire_ms(detail::until_ms(end), true) == FAIRLOCK_OK;
  }

  /* release() */
  void unlock() noexcept
  {
    (void)release();
  }

  /* Waits in line, to share it. For failures see above. */
  void lock_shared()
  {
    const int status = acquire_shared();
    if (status != FAIRLOCK_OK) FAIRLOCK_LOCK_FAILED(status);
  }

  /* Shares it only if nobody has it exclusively, or waits for it. */
  bool try_lock_shared() noexcept
  {
    return acquire_ms(0, false) == FAIRLOCK_OK;
  }

  /* Waits in line for up to wait, to share it. */
  template <class Rep, class Period>
  bool try_lock_shared_for(const std::chrono::duration<Rep, Period> &wait) noexcept
  {
    return acquire_shared_for(wait) == FAIRLOCK_OK;
  }

  /* Waits in line until end, to share it. */
  template <class Clock, class Duration>
  bool try_lock_shared_until(const std::chrono::time_point<Clock, Duration> &end)
  {
    return acquire_ms(detail::until_ms(end), false) == FAIRLOCK_OK;
  }

  /* release_shared() */
  void unlock_shared() noexcept
  {
    (void)release_shared();
  }

  /* fairlock_acquire(), without a limit, to have it exclusively */
  int acquire() noexcept
  {
    return acquire_ms(FAIRLOCK_FOREVER, true);
  }

  /* fairlock_acquire(), for up to wait, to have it exclusively */
  template <class Rep, class Period>
  int acquire_for(const std::chrono::duration<Rep, Period> &wait) noexcept
  {
    return acquire_ms(detail::to_ms(wait), true);
  }

  /* fairlock_acquire(), without a limit, to share it */
  int acquire_shared() noexcept
  {
    return acquire_ms(FAIRLOCK_FOREVER, false);
  }

  /* fairlock_acquire(), for up to wait, to share it */
  template <class Rep, class Period>
  int acquire_shared_for(const std::chrono::duration<Rep, Period> &wait) noexcept
  {
    return acquire_ms(detail::to_ms(wait), false);
  }

  /* fairlock_release(), by the thread that has it exclusively */
  int release() noexcept
  {
    return release(true);
  }

  /* fairlock_release(), by a thread that shares it */
  int release_shared() noexcept
  {
    return release(false);
  }

  /*
   * fairlock_downgrade(): the calling thread, which has it exclusively, shares it after FAIRLOCK_OK,
   * and unlocks that. With std::unique_lock, release() that, and give the lock to a std::shared_lock
   * by std::adopt_lock. If the client did not use_downgrading(): FAIRLOCK_INVALID.
   */
  int downgrade() noexcept
  {
    seat *own = find();
    if (own == nullptr || !own->held_exclusively) return FAIRLOCK_NOT_HELD;
    (void)fairlock_adopt(&own->shared.handle);
    const int status = fairlock_downgrade(&own->exclusive, &own->shared, lease_ms_);
    if (refused(status)) return status;
    own->held = status == FAIRLOCK_OK ? 1 : 0;
    own->held_exclusively = false;
    if (own->held == 0) leave(*own);
    return status;
  }

  /* fairlock_cancel(), of all threads that wait. FAIRLOCK_NOT_HELD: none does. */
  int cancel() noexcept
  {
    if (port_mutex_forked(&guard_)) return FAIRLOCK_FORKED;
    port_mutex_lock(&guard_);
    int status = room_.cancel();
    port_mutex_unlock(&guard_);
    for (unsigned i = 0; i < open_; i++) {
      if (fairlock_cancel(i % 2 == 0 ? &seats_[i / 2].exclusive : &seats_[i / 2].shared.handle) ==
          FAIRLOCK_OK)
        status = FAIRLOCK_OK;
    }
    return status;
  }

  /* FAIRLOCK_OK, or why it cannot be used. */
  int status() const noexcept
  {
    return status_;
  }

  /* fairlock_token() of the calling thread's hold */
  std::uint64_t token() noexcept
  {
    seat *own = find();
    return own != nullptr ? fairlock_token(handle_of(*own)) : 0;
  }

  /* fairlock_remaining_ms() of the calling thread's hold */
  std::chrono::milliseconds remaining() noexcept
  {
    seat *own = find();
    return std::chrono::milliseconds(own != nullptr ? fairlock_remaining_ms(handle_of(*own)) : 0);
  }

private:
  static_assert(Threads > 0, "somebody has to hold it");

  /* What a thread uses while it waits or holds. Only that thread looks at more than `task`. */
  struct seat {
    fairlock exclusive;
    fairlock_shared shared;
    std::uintptr_t task;   /* 0: nobody's; guarded by guard_ */
    unsigned held;         /* how many times */
    bool held_exclusively; /* that is: exclusive */
  };

  /* True if fairlock_downgrade() has done nothing. */
  static bool refused(int status) noexcept
  {
    return status == FAIRLOCK_INVALID || status == FAIRLOCK_NOT_HELD ||
           status == FAIRLOCK_WRONG_TASK || status == FAIRLOCK_IN_PROGRESS ||
           status == FAIRLOCK_FORKED;
  }

  static fairlock *handle_of(seat &of) noexcept
  {
    return of.held_exclusively ? &of.exclusive : &of.shared.handle;
  }

  /* The seat of this task, 0: one that nobody has; nullptr: there is none. */
  seat *find_of(std::uintptr_t task) noexcept
  {
    for (seat &each : seats_)
      if (each.task == task) return &each;
    return nullptr;
  }

  /* The calling thread's seat. */
  seat *find() noexcept
  {
    if (status_ != FAIRLOCK_OK || port_mutex_forked(&guard_)) return nullptr;
    port_mutex_lock(&guard_);
    seat *own = find_of(port_task_self());
    port_mutex_unlock(&guard_);
    return own;
  }

  /* The same; if it has none, it takes one, for which it waits as a waiting room's wait() does. */
  int sit(std::uint32_t &wait_ms, seat *&own) noexcept
  {
    int status = FAIRLOCK_OK;
    port_mutex_lock(&guard_);
    own = find_of(port_task_self());
    if (own == nullptr) {
      own = find_of(0);
      if (own == nullptr) status = room_.wait(guard_, wait_ms, own);
      if (status == FAIRLOCK_OK) {
        own->task = port_task_self();
        own->held = 0;
      }
    }
    port_mutex_unlock(&guard_);
    return status;
  }

  void leave(seat &own) noexcept
  {
    port_mutex_lock(&guard_);
    own.task = room_.give(own);
    port_mutex_unlock(&guard_);
  }

  int acquire_ms(std::uint32_t wait_ms, bool exclusive) noexcept
  {
    seat *own;
    if (status_ != FAIRLOCK_OK) return status_;
    if (port_mutex_forked(&guard_)) return FAIRLOCK_FORKED;
    const int seated = sit(wait_ms, own);
    if (seated != FAIRLOCK_OK) return seated;
    if (own->held > 0 && own->held_exclusively != exclusive) return FAIRLOCK_IN_PROGRESS;
    own->held_exclusively = exclusive;
    /* what another thread has released may still be on its way */
    if (own->held == 0) (void)fairlock_adopt(handle_of(*own));
    const int status = fairlock_acquire(handle_of(*own), wait_ms, lease_ms_);
    if (status == FAIRLOCK_OK) own->held++;
    else if (own->held == 0) leave(*own);
    return status;
  }

  int release(bool exclusive) noexcept
  {
    if (port_mutex_forked(&guard_)) return FAIRLOCK_FORKED;
    seat *own = find();
    if (own == nullptr || own->held_exclusively != exclusive) return FAIRLOCK_NOT_HELD;
    const int status = fairlock_release(handle_of(*own));
    if (--own->held == 0) leave(*own);
    return status;
  }

  seat seats_[Threads];
  detail::waiting_room<seat> room_;
  port_mutex guard_;
  fairlock_client *client_;
  std::uint32_t lease_ms_;
  unsigned open_; /* how many handles are in the client */
  int status_;
};

/* Up to eight threads of this program hold, or wait in line, at a time. */
typedef basic_shared_mutex<8> shared_mutex;

/*
 * A semaphore: at most `limit` permits are out at a time, in this program and others, wherever they
 * are; who waits for one gets it in its turn, in one queue. As with std::counting_semaphore, any
 * thread releases, and a thread may have several. Unlike there, a permit ends with its lease, and
 * nobody releases what nobody has acquired. Neither copied nor moved.
 *
 * Permits: this object has so many, or waits in line for them, at a time, whatever the limit is. Other
 * threads first wait, in the order in which they came, until one of these is released; without waiting
 * they get none. For each the object has a fairlock_shared. Whoever needs the fencing token of each takes
 * fairlock_init_shared() instead: here nothing says which permit a thread has.
 */
template <unsigned Permits> class basic_semaphore
{
public:
  /*
   * limit: 1 to FAIRLOCK_LIMIT_MAX; the smallest in use binds, see fairlock_init_shared().
   * The rest as for a handle.
   */
  basic_semaphore(client &of, const char *name, std::uint32_t limit,
                  detail::lease lease = detail::lease::renewed()) noexcept
      : permits_(), room_(), guard_(), client_(of.native_handle()), lease_ms_(lease.ms), open_(0),
        status_(of.status() == FAIRLOCK_OK && limit == 0 ? FAIRLOCK_INVALID : of.status())
  {
    port_mutex_init(&guard_);
    while (status_ == FAIRLOCK_OK && open_ < Permits) {
      status_ = fairlock_init_shared(&permits_[open_].shared, client_, name, limit);
      if (status_ == FAIRLOCK_OK) open_++;
    }
  }

  basic_semaphore(const basic_semaphore &) = delete;
  basic_semaphore &operator=(const basic_semaphore &) = delete;

  /* As that of a handle. */
  ~basic_semaphore()
  {
    while (open_ > 0 && detail::give_up(permits_[open_ - 1].shared.handle))
      open_--;
    while (close() != FAIRLOCK_OK)
      (void)fairlock_poll(client_, 10);
    port_mutex_destroy(&guard_);
  }

  /*
   * Releases all permits, and takes the object out of its client. After FAIRLOCK_OK it can only be
   * destroyed, which does not block. No other thread may use it meanwhile.
   */
  int close() noexcept
  {
    while (open_ > 0) {
      const int status = detail::take_out(permits_[open_ - 1].shared.handle);
      if (status != FAIRLOCK_OK) return status;
      open_--;
    }
    status_ = FAIRLOCK_INVALID;
    return FAIRLOCK_OK;
  }

  /* Waits in line for a permit. For failures see above. */
  void acquire()
  {
    const int status = acquire_ms(FAIRLOCK_FOREVER);
    if (status != FAIRLOCK_OK) FAIRLOCK_LOCK_FAILED(status);
  }

  /* fairlock_acquire(), for up to wait; its status */
  template <class Rep, class Period>
  int acquire_for(const std::chrono::duration<Rep, Period> &wait) noexcept
  {
    return acquire_ms(detail::to_ms(wait));
  }

  /* Acquires a permit only if there is one, and nobody waits for it. */
  bool try_acquire() noexcept
  {
    return acquire_ms(0) == FAIRLOCK_OK;
  }

  /* Waits in line for up to wait. */
  template <class Rep, class Period>
  bool try_acquire_for(const std::chrono::duration<Rep, Period> &wait) noexcept
  {
    return acquire_ms(detail::to_ms(wait)) == FAIRLOCK_OK;
  }

  /* Waits in line until end. */
  template <class Clock, class Duration>
  bool try_acquire_until(const std::chrono::time_point<Clock, Duration> &end)
  {
    return acquire_ms(detail::until_ms(end)) == FAIRLOCK_OK;
  }

  /*
   * Releases so many permits of this object, those of the calling thread first. Returns FAIRLOCK_OK,
   * or the first other status: FAIRLOCK_LOST, FAIRLOCK_NOT_HELD if it has fewer, and so on.
   */
  int release(std::ptrdiff_t update = 1) noexcept
  {
    int status = FAIRLOCK_OK;
    for (; update > 0; update--) {
      const int one = release_one();
      if (status == FAIRLOCK_OK) status = one;
      if (one == FAIRLOCK_NOT_HELD) break;
    }
    return status;
  }

  /* fairlock_cancel(), of all threads that wait. FAIRLOCK_NOT_HELD: none does. */
  int cancel() noexcept
  {
    if (port_mutex_forked(&guard_)) return FAIRLOCK_FORKED;
    port_mutex_lock(&guard_);
    int status = room_.cancel();
    port_mutex_unlock(&guard_);
    for (unsigned i = 0; i < open_; i++)
      if (fairlock_cancel(&permits_[i].shared.handle) == FAIRLOCK_OK) status = FAIRLOCK_OK;
    return status;
  }

  /* FAIRLOCK_OK, or why it cannot be used. */
  int status() const noexcept
  {
    return status_;
  }

  /*
   * For how long it is still safe to act with each permit that the calling thread has acquired and
   * nobody has released; 0: for one of them it is not, or it has none.
   */
  std::chrono::milliseconds remaining() noexcept
  {
    std::uint32_t least = FAIRLOCK_FOREVER;
    if (status_ != FAIRLOCK_OK || port_mutex_forked(&guard_)) return std::chrono::milliseconds(0);
    port_mutex_lock(&guard_);
    for (permit &each : permits_) {
      if (each.is != HELD || each.task != port_task_self()) continue;
      const std::uint32_t left = fairlock_remaining_ms(&each.shared.handle);
      if (left < least) least = left;
    }
    port_mutex_unlock(&guard_);
    return std::chrono::milliseconds(least != FAIRLOCK_FOREVER ? least : 0);
  }

private:
  static_assert(Permits > 0, "somebody has to acquire it");

  enum state { VACANT, CLAIMED, HELD };

  /* `is` and `task` are guarded by guard_; the handle is that of the thread that made it CLAIMED. */
  struct permit {
    fairlock_shared shared;
    std::uintptr_t task; /* which has acquired it */
    state is;
  };

  /*
   * Makes one of this state CLAIMED, if possible one of this task. nullptr: there is none. guard_ is
   * locked.
   */
  permit *claim(state from) noexcept
  {
    permit *found = nullptr;
    for (permit &each : permits_) {
      if (each.is != from) continue;
      if (found == nullptr || (each.task == port_task_self() && found->task != each.task))
        found = &each;
    }
    if (found != nullptr) found->is = CLAIMED;
    return found;
  }

  /* Claims a vacant one, for which it waits as a waiting room's wait() does. */
  int sit(std::uint32_t &wait_ms, permit *&one) noexcept
  {
    port_mutex_lock(&guard_);
    one = claim(VACANT);
    const int status = one != nullptr ? FAIRLOCK_OK : room_.wait(guard_, wait_ms, one);
    port_mutex_unlock(&guard_);
    return status;
  }

  void set(permit &of, state to) noexcept
  {
    port_mutex_lock(&guard_);
    of.task = port_task_self();
    /* one that was waited for stays claimed, by another thread */
    of.is = to == VACANT && room_.give(of) != 0 ? CLAIMED : to;
    port_mutex_unlock(&guard_);
  }

  int acquire_ms(std::uint32_t wait_ms) noexcept
  {
    permit *one;
    if (status_ != FAIRLOCK_OK) return status_;
    if (port_mutex_forked(&guard_)) return FAIRLOCK_FORKED;
    const int seated = sit(wait_ms, one);
    if (seated != FAIRLOCK_OK) return seated;
    /* what another thread has released may still be on its way */
    (void)fairlock_adopt(&one->shared.handle);
    const int status = fairlock_acquire(&one->shared.handle, wait_ms, lease_ms_);
    set(*one, status == FAIRLOCK_OK ? HELD : VACANT);
    return status;
  }

  int release_one() noexcept
  {
    if (status_ != FAIRLOCK_OK) return FAIRLOCK_NOT_HELD;
    if (port_mutex_forked(&guard_)) return FAIRLOCK_FORKED;
    port_mutex_lock(&guard_);
    permit *one = claim(HELD);
    port_mutex_unlock(&guard_);
    if (one == nullptr) return FAIRLOCK_NOT_HELD;
    (void)fairlock_adopt(&one->shared.handle);
    const int status = fairlock_release(&one->shared.handle);
    set(*one, VACANT);
    return status;
  }

  permit permits_[Permits];
  detail::waiting_room<permit> room_;
  port_mutex guard_;
  fairlock_client *client_;
  std::uint32_t lease_ms_;
  unsigned open_; /* how many handles are in the client */
  int status_;
};

/* Up to eight permits at a time by this object: basic_semaphore<10> for ten. */
typedef basic_semaphore<8> semaphore;

} // namespace FAIRLOCK_INSIDE
} // namespace fair

#endif
