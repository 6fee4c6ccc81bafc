/*
 * The lock from C++11 on: RAII, and what the standard calls Lockable and TimedLockable, so that
 * std::lock_guard, std::unique_lock and std::scoped_lock take it. A header alone, over fairlock.h,
 * whose rules hold; nothing here allocates, or needs exceptions or RTTI.
 *
 *     fair::client client(config, socket.transport);
 *     fair::mutex door(client, "door:7");
 *
 *     fair::hold held(door, std::chrono::seconds(10));   waits in line for up to 10 s
 *     if (held) ...                                      has held.token(); released with its scope
 *     else ...                                           held.status() says why
 *
 *     std::lock_guard<fair::mutex> guard(door);          the standard's way: lock() may throw
 *
 * Tasks. Unlike a std::mutex, a fair::mutex is one holder: threads that exclude each other have one
 * each, of the same name, and the same client or different ones. The thread that holds re-enters,
 * as with std::recursive_mutex. A fair::hold may be moved to another thread, which then releases.
 *
 * Failures. acquire() and release() return a status, and a hold has one. try_lock() and its
 * variants return false whatever the reason is; status() tells it. lock() can only return with the
 * lock: it throws std::system_error, of fair::category(). Without exceptions it ends the program by
 * std::abort(), unless there is a macro FAIRLOCK_LOCK_FAILED(status), which must not return; it is
 * the same in all files of a program.
 *
 * The namespace is not called fairlock because C's struct fairlock is.
 */
#ifndef FAIRLOCK_HPP
#define FAIRLOCK_HPP

#include "fairlock.h"

#include <chrono>
#include <cstdint>
#include <cstdlib>

#ifdef __cpp_exceptions
#include <string>
#include <system_error>
#endif

#ifndef FAIRLOCK_LOCK_FAILED
#ifdef __cpp_exceptions
/* What lock() does when it cannot have the lock; see above. */
#define FAIRLOCK_LOCK_FAILED(status) throw std::system_error(status, fair::category())
#else
#define FAIRLOCK_LOCK_FAILED(status) std::abort()
#endif
#endif

/* The lock in C++. */
namespace fair
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

/*
 * A time in the library's milliseconds, rounded up. 0 for what is not above 0; FAIRLOCK_FOREVER for
 * FAIRLOCK_DURATION_MAX_MS (12.4 days) or more.
 */
template <class Rep, class Period>
std::uint32_t to_ms(const std::chrono::duration<Rep, Period> &time) noexcept
{
  /* as a double, because any other unit may overflow */
  const double ms = std::chrono::duration<double, std::milli>(time).count();
  if (!(ms > 0)) return 0; /* nor for one that is no number */
  if (ms >= FAIRLOCK_DURATION_MAX_MS) return FAIRLOCK_FOREVER;
  const std::uint32_t whole = static_cast<std::uint32_t>(ms);
  return whole + (whole < ms ? 1U : 0U);
}

/* A client: one connection to one server. Outlives its mutexes. */
class client
{
public:
  /* fairlock_client_init(): status() says what came of it. Both stay the caller's. */
  client(const fairlock_config &config, port_transport &transport) noexcept
      : client_(), status_(fairlock_client_init(&client_, &config, &transport))
  {
  }

  /* The configuration is kept by pointer. */
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

  /* For all functions of fairlock.h, if status() is FAIRLOCK_OK. */
  fairlock_client *native_handle() noexcept
  {
    return &client_;
  }

private:
  fairlock_client client_;
  int status_;
};

/* One holder's view of one named lock; see above for its threads. Neither copied nor moved. */
class mutex
{
public:
  /*
   * name stays the caller's. lease: how long a hold lasts by itself; none: FAIRLOCK_RENEW. What
   * fairlock_init() makes of it is in status(), and comes back from each acquire().
   */
  mutex(client &of, const char *name,
        std::chrono::milliseconds lease = std::chrono::milliseconds::zero()) noexcept
      : mutex(of.native_handle(), of.status(), name, lease)
  {
  }

  /* The same with a client of C's, which was made. */
  mutex(fairlock_client &of, const char *name,
        std::chrono::milliseconds lease = std::chrono::milliseconds::zero()) noexcept
      : mutex(&of, FAIRLOCK_OK, name, lease)
  {
  }

  mutex(const mutex &) = delete;
  mutex &operator=(const mutex &) = delete;

  /*
   * close(), as often as it takes: the server may have to be told first, and the memory is needed
   * until then. So this blocks for an answer, or, without one, until what was left on the server
   * has ended by itself: the lease, a waiter timeout and a response time-out at most (37 s by
   * default). Who cannot wait calls close() before.
   */
  ~mutex()
  {
    while (close() != FAIRLOCK_OK)
      (void)fairlock_poll(client_, 10);
  }

  /*
   * Releases what is held, by whichever thread it was acquired, and takes the mutex out of its
   * client, as fairlock_deinit() does. FAIRLOCK_OK: it can be destroyed at once, and be used for
   * nothing else. No other thread may use it meanwhile.
   */
  int close() noexcept
  {
    if (unusable_ != FAIRLOCK_OK) return FAIRLOCK_OK;
    (void)fairlock_take_over(&handle_);
    (void)fairlock_cancel(&handle_);
    while (fairlock_hold_count(&handle_) > 0 && fairlock_release(&handle_) == FAIRLOCK_OK)
      continue;
    status_ = fairlock_deinit(&handle_);
    if (status_ == FAIRLOCK_FORKED) status_ = FAIRLOCK_OK; /* in the child, the memory is free */
    if (status_ == FAIRLOCK_OK) unusable_ = FAIRLOCK_INVALID;
    return status_;
  }

  /* Waits in line without end. For failures see above. */
  void lock()
  {
    if (acquire() != FAIRLOCK_OK) FAIRLOCK_LOCK_FAILED(status_);
  }

  /* Only if it is free, and nobody is waiting for it. */
  bool try_lock() noexcept
  {
    return acquire_ms(0) == FAIRLOCK_OK;
  }

  /* Waits in line for so long: to_ms(wait). */
  template <class Rep, class Period>
  bool try_lock_for(const std::chrono::duration<Rep, Period> &wait) noexcept
  {
    return acquire(wait) == FAIRLOCK_OK;
  }

  /*
   * The same until then: without end if that is 12.4 days or more away, however far. A clock that is
   * set meanwhile is not looked at again.
   */
  template <class Clock, class Duration>
  bool try_lock_until(const std::chrono::time_point<Clock, Duration> &end)
  {
    typedef std::chrono::duration<double, std::milli> rough;
    const typename Clock::time_point now = Clock::now();
    const double left = (rough(end.time_since_epoch()) - rough(now.time_since_epoch())).count();
    /* times that are further apart may overflow, even when they are only compared */
    if (left >= FAIRLOCK_DURATION_MAX_MS) return acquire() == FAIRLOCK_OK;
    if (!(left > -1.0 * FAIRLOCK_DURATION_MAX_MS)) return try_lock();
    return end > now ? try_lock_for(end - now) : try_lock();
  }

  /* release(), whose result is in status() */
  void unlock() noexcept
  {
    (void)release();
  }

  /* fairlock_acquire(), without end */
  int acquire() noexcept
  {
    return acquire_ms(FAIRLOCK_FOREVER);
  }

  /* fairlock_acquire(), for up to to_ms(wait) */
  template <class Rep, class Period>
  int acquire(const std::chrono::duration<Rep, Period> &wait) noexcept
  {
    return acquire_ms(to_ms(wait));
  }

  /* fairlock_release() */
  int release() noexcept
  {
    return status_ = unusable_ != FAIRLOCK_OK ? FAIRLOCK_NOT_HELD : fairlock_release(&handle_);
  }

  /* fairlock_take_over() */
  int take_over() noexcept
  {
    return unusable_ != FAIRLOCK_OK ? FAIRLOCK_NOT_HELD : fairlock_take_over(&handle_);
  }

  /* fairlock_cancel(): from any thread */
  int cancel() noexcept
  {
    return unusable_ != FAIRLOCK_OK ? FAIRLOCK_NOT_HELD : fairlock_cancel(&handle_);
  }

  /* What the last of the calls above came to, but take_over() and cancel(). */
  int status() const noexcept
  {
    return status_;
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

  /* For the other functions of fairlock.h, until it is closed. */
  fairlock *native_handle() noexcept
  {
    return &handle_;
  }

private:
  mutex(fairlock_client *of, int usable, const char *name, std::chrono::milliseconds lease) noexcept
      : handle_(), client_(of), lease_ms_(to_ms(lease)),
        unusable_(usable != FAIRLOCK_OK ? usable : fairlock_init(&handle_, of, name)),
        status_(unusable_)
  {
  }

  int acquire_ms(std::uint32_t wait_ms) noexcept
  {
    return status_ = unusable_ != FAIRLOCK_OK ? unusable_
                                              : fairlock_acquire(&handle_, wait_ms, lease_ms_);
  }

  fairlock handle_;
  fairlock_client *client_;
  std::uint32_t lease_ms_;
  int unusable_; /* FAIRLOCK_OK: it is open */
  int status_;
};

/*
 * A hold that ends with its scope: one level of re-entry. Movable, also to another thread, which
 * takes the hold over when it releases; only one thread at a time uses the hold and its mutex.
 */
class hold
{
public:
  /* Holds nothing: FAIRLOCK_NOT_HELD. */
  hold() noexcept : of_(nullptr), status_(FAIRLOCK_NOT_HELD), token_(0)
  {
  }

  /* Waits in line without end. */
  explicit hold(mutex &of) noexcept : hold(of, of.acquire())
  {
  }

  /* Waits in line for up to to_ms(wait); 0: only if it is free. */
  template <class Rep, class Period>
  hold(mutex &of, const std::chrono::duration<Rep, Period> &wait) noexcept
      : hold(of, of.acquire(wait))
  {
  }

  hold(const hold &) = delete;
  hold &operator=(const hold &) = delete;

  /* What was held is held by this one, and the other has nothing. */
  hold(hold &&other) noexcept : of_(other.of_), status_(other.status_), token_(other.token_)
  {
    other.forget();
  }

  /* The same, after release(). */
  hold &operator=(hold &&other) noexcept
  {
    if (this == &other) return *this;
    (void)release();
    of_ = other.of_;
    status_ = other.status_;
    token_ = other.token_;
    other.forget();
    return *this;
  }

  /* release() */
  ~hold()
  {
    (void)release();
  }

  /* It was acquired, and is this one's to release. Whether it has been lost, remaining() tells. */
  explicit operator bool() const noexcept
  {
    return of_ != nullptr;
  }

  /* Releases now: fairlock_release(); FAIRLOCK_NOT_HELD if there is nothing to release. */
  int release() noexcept
  {
    mutex *of = of_;
    if (of == nullptr) return FAIRLOCK_NOT_HELD;
    forget();
    (void)of->take_over();
    return status_ = of->release();
  }

  /* What acquiring came to, then what releasing came to. */
  int status() const noexcept
  {
    return status_;
  }

  /* The fencing token that it was given; 0: it holds nothing. */
  std::uint64_t token() const noexcept
  {
    return token_;
  }

  /* How long it is still safe to act as the holder; 0: it is not. */
  std::chrono::milliseconds remaining() const noexcept
  {
    return of_ != nullptr ? of_->remaining() : std::chrono::milliseconds::zero();
  }

private:
  hold(mutex &of, int status) noexcept
      : of_(status == FAIRLOCK_OK ? &of : nullptr), status_(status),
        token_(status == FAIRLOCK_OK ? of.token() : 0)
  {
  }

  void forget() noexcept
  {
    of_ = nullptr;
    status_ = FAIRLOCK_NOT_HELD;
    token_ = 0;
  }

  mutex *of_;
  int status_;
  std::uint64_t token_;
};

} // namespace fair

#endif
