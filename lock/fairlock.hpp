/*
 * The lock for C++11 and later: RAII, and the standard's Lockable and TimedLockable, so that
 * std::lock_guard, std::unique_lock and std::scoped_lock accept it. It is only a header, on top of
 * fairlock.h, whose rules hold here, too. Nothing here allocates, or needs exceptions or RTTI.
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
 * Tasks. Unlike a std::mutex, a fair::mutex is one holder. Threads that exclude each other need one
 * each, with the same name, and with the same client or different ones. The thread that holds may
 * acquire again, as with std::recursive_mutex. A fair::hold may be moved to another thread, which
 * then releases.
 *
 * Failures. acquire() and release() return a status, and a hold has one. try_lock() and its
 * variants return false for any reason, which status() tells. lock() can only return with the lock;
 * if it fails, it throws std::system_error with fair::category(). Without exceptions it calls
 * std::abort(), unless you define a macro FAIRLOCK_LOCK_FAILED(status). That must not return, and
 * must be the same in all files of a program.
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
/* What lock() does when it fails; see above. */
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

/* A client: one connection to one server. Outlives its mutexes. */
class client
{
public:
  /* Calls fairlock_client_init(), whose result is in status(). Both arguments stay the caller's. */
  client(const fairlock_config &config, port_transport &transport) noexcept
      : client_(), status_(fairlock_client_init(&client_, &config, &transport))
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
   * name stays the caller's. lease: the lease of each hold; if it is left out, FAIRLOCK_RENEW. If
   * fairlock_init() fails, status() and each acquire() return its status.
   */
  mutex(client &of, const char *name,
        std::chrono::milliseconds lease = std::chrono::milliseconds::zero()) noexcept
      : mutex(of.native_handle(), of.status(), name, lease)
  {
  }

  /* The same with a client of C, which was initialised. */
  mutex(fairlock_client &of, const char *name,
        std::chrono::milliseconds lease = std::chrono::milliseconds::zero()) noexcept
      : mutex(&of, FAIRLOCK_OK, name, lease)
  {
  }

  mutex(const mutex &) = delete;
  mutex &operator=(const mutex &) = delete;

  /*
   * Repeats close() until it succeeds, because the memory is needed until the server has been told.
   * So this blocks until there is an answer or, without one, until the place or hold on the server
   * has expired: after the lease, a waiter timeout and response_ms at most (37 s by default). If
   * you cannot wait, call close() before.
   */
  ~mutex()
  {
    while (close() != FAIRLOCK_OK)
      (void)fairlock_poll(client_, 10);
  }

  /*
   * Releases the lock if it is held, whichever thread has acquired it, and takes the mutex out of
   * its client, as fairlock_deinit() does. After FAIRLOCK_OK it can only be destroyed, which does
   * not block. No other thread may use it meanwhile.
   */
  int close() noexcept
  {
    if (unusable_ != FAIRLOCK_OK) return FAIRLOCK_OK;
    (void)fairlock_take_over(&handle_);
    (void)fairlock_cancel(&handle_);
    while (fairlock_hold_count(&handle_) > 0 && fairlock_release(&handle_) == FAIRLOCK_OK)
      continue;
    status_ = fairlock_deinit(&handle_);
    if (status_ == FAIRLOCK_FORKED)
      status_ = FAIRLOCK_OK; /* in a forked process, the memory is free */
    if (status_ == FAIRLOCK_OK) unusable_ = FAIRLOCK_INVALID;
    return status_;
  }

  /* Waits in line without a limit. For failures see above. */
  void lock()
  {
    if (acquire() != FAIRLOCK_OK) FAIRLOCK_LOCK_FAILED(status_);
  }

  /* Acquires only if the lock is free and nobody waits for it. */
  bool try_lock() noexcept
  {
    return acquire_ms(0) == FAIRLOCK_OK;
  }

  /* Waits in line for up to to_ms(wait). */
  template <class Rep, class Period>
  bool try_lock_for(const std::chrono::duration<Rep, Period> &wait) noexcept
  {
    return acquire(wait) == FAIRLOCK_OK;
  }

  /*
   * Waits in line until this time; without a limit if that is 12.4 days or more away. If the clock
   * is set during the wait, that is not noticed.
   */
  template <class Clock, class Duration>
  bool try_lock_until(const std::chrono::time_point<Clock, Duration> &end)
  {
    typedef std::chrono::duration<double, std::milli> rough;
    const typename Clock::time_point now = Clock::now();
    const double left = (rough(end.time_since_epoch()) - rough(now.time_since_epoch())).count();
    /* the difference of times that are far apart may overflow, even in a comparison */
    if (left >= FAIRLOCK_DURATION_MAX_MS) return acquire() == FAIRLOCK_OK;
    if (!(left > -1.0 * FAIRLOCK_DURATION_MAX_MS)) return try_lock();
    return end > now ? try_lock_for(end - now) : try_lock();
  }

  /* Calls release(), whose result is in status(). */
  void unlock() noexcept
  {
    (void)release();
  }

  /* fairlock_acquire(), without a limit */
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

  /* The result of the last of the calls above, except take_over() and cancel(). */
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

  /* For the other functions of fairlock.h, until close(). */
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
  int unusable_; /* why it cannot be used; FAIRLOCK_OK: it can */
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

  /* Waits in line without a limit. */
  explicit hold(mutex &of) noexcept : hold(of, of.acquire())
  {
  }

  /* Waits in line for up to to_ms(wait); 0: acquires only if the lock is free. */
  template <class Rep, class Period>
  hold(mutex &of, const std::chrono::duration<Rep, Period> &wait) noexcept
      : hold(of, of.acquire(wait))
  {
  }

  hold(const hold &) = delete;
  hold &operator=(const hold &) = delete;

  /* Takes the hold of the other one, which then holds nothing. */
  hold(hold &&other) noexcept : of_(other.of_), status_(other.status_), token_(other.token_)
  {
    other.forget();
  }

  /* The same, after a release() of its own hold. */
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

  /* True if it holds, and has to release. It may be lost meanwhile: see remaining(). */
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

  /* The result of acquiring; after release(), that of releasing. */
  int status() const noexcept
  {
    return status_;
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
