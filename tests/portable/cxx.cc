/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fairlock.hpp against a server: cxx PORT. Compiled by each compiler as each standard, with
 * and without exceptions and RTTI. The exit status is 0, or the line of the first check that failed,
 * cut to a byte.
 */
#include <cstdio>
#include <cstdlib>

#ifndef __cpp_exceptions
/* What a program without exceptions may do when lock() fails. */
[[noreturn]] static void lock_failed(int status);
#define FAIRLOCK_LOCK_FAILED(status) lock_failed(status)
#endif

#include <fairlock/fairlock.hpp>
#include <fairlock/fairlock_operate.h>
#include <fairlock/port_posix.h>

#include <atomic>
#include <cmath>
#include <cstring>
#include <limits>
#include <mutex>
#include <string>
#if __cplusplus >= 201402L
#include <shared_mutex>
#endif
#include <thread>
#include <type_traits>
#include <utility>

#define CHECK(condition)                                                                           \
  do {                                                                                             \
    if (!(condition)) {                                                                            \
      std::fprintf(stderr, "line %d: %s\n", __LINE__, #condition);                                 \
      std::exit(__LINE__ % 255 + 1);                                                               \
    }                                                                                              \
  } while (0)

using std::chrono::milliseconds;

static_assert(!std::is_copy_constructible<fair::client>::value, "");
static_assert(!std::is_copy_constructible<fair::handle>::value, "");
static_assert(!std::is_move_constructible<fair::handle>::value, "");
static_assert(!std::is_copy_constructible<fair::hold>::value, "");
static_assert(std::is_nothrow_move_constructible<fair::hold>::value, "");
static_assert(std::is_nothrow_move_assignable<fair::hold>::value, "");
static_assert(!std::is_convertible<fair::hold, bool>::value, "only where a condition stands");
static_assert(!std::is_constructible<fair::hold, fair::handle &, int>::value, "a wait has a unit");
static_assert(!std::is_constructible<fair::client, fairlock_config, port_transport &>::value,
              "a configuration has to stay");

static_assert(!std::is_copy_constructible<fair::shared_mutex>::value, "");
static_assert(!std::is_move_constructible<fair::shared_mutex>::value, "");
static_assert(!std::is_copy_constructible<fair::semaphore>::value, "");
static_assert(!std::is_move_constructible<fair::semaphore>::value, "");
static_assert(std::is_same<bool, decltype(std::declval<fair::semaphore &>().try_acquire())>::value,
              "as std::counting_semaphore");
static_assert(std::is_same<void, decltype(std::declval<fair::semaphore &>().acquire())>::value, "");

/* All that the standard's locks call. */
template class std::unique_lock<fair::shared_mutex>;
#if __cplusplus >= 201402L
template class std::shared_lock<fair::shared_mutex>;
#endif
template class fair::basic_shared_mutex<1>;
template class fair::basic_semaphore<1>;

static unsigned char received[512], sent[1024];

static fairlock_config configure()
{
  fairlock_config config = fairlock_config();
  config.receive_buffer = received;
  config.receive_size = sizeof received;
  config.send_buffer = sent;
  config.send_size = sizeof sent;
  return config;
}

#ifndef __cpp_exceptions
static void lock_failed(int status)
{
  CHECK(status == FAIRLOCK_INVALID);
  std::exit(0); /* of refusals(), which comes last */
}
#endif

static void durations()
{
  using namespace std::chrono;
  typedef duration<double> seconds_of_any_kind;
  const std::uint32_t most = FAIRLOCK_DURATION_MAX_MS;
  CHECK(fair::detail::to_ms(milliseconds(0)) == 0);
  CHECK(fair::detail::to_ms(milliseconds(-1)) == 0 && fair::detail::to_ms(hours::min()) == 0);
  CHECK(fair::detail::to_ms(milliseconds(7)) == 7);
  CHECK(fair::detail::to_ms(nanoseconds(1)) == 1 && fair::detail::to_ms(nanoseconds(1000001)) == 2);
  CHECK(fair::detail::to_ms(nanoseconds(1000000)) == 1);
  CHECK(fair::detail::to_ms(duration<int, std::ratio<1, 60>>(1)) == 17);
  CHECK(fair::detail::to_ms(duration<unsigned>(3)) == 3000);
  CHECK(fair::detail::to_ms(hours(24)) == 86400000);
  CHECK(fair::detail::to_ms(milliseconds(most - 1)) == most - 1);
  CHECK(fair::detail::to_ms(microseconds(1000 * std::int64_t(most) - 1)) == most);
  CHECK(fair::detail::to_ms(milliseconds(most)) == FAIRLOCK_FOREVER);
  CHECK(fair::detail::to_ms(hours::max()) == FAIRLOCK_FOREVER);
  CHECK(fair::detail::to_ms(nanoseconds::max()) == FAIRLOCK_FOREVER);
  CHECK(fair::detail::to_ms(duration<std::int64_t, std::atto>::max()) == 9224);
  CHECK(fair::detail::to_ms(duration<std::int64_t, std::peta>::max()) == FAIRLOCK_FOREVER);
  CHECK(fair::detail::to_ms(duration<std::int64_t, std::peta>::min()) == 0);
  typedef duration<std::int64_t, std::ratio<999999937, 1000000000000000>> odd;
  CHECK(fair::detail::to_ms(odd(1000000000000)) - 999999937 <= 1);
  CHECK(fair::detail::to_ms(seconds_of_any_kind(0.0101)) == 11);
  CHECK(fair::detail::to_ms(seconds_of_any_kind(std::numeric_limits<double>::infinity())) ==
        FAIRLOCK_FOREVER);
  CHECK(fair::detail::to_ms(seconds_of_any_kind(std::numeric_limits<double>::quiet_NaN())) == 0);
}

/* It waits, for as long as another holds, and is not over at once. */
template <class Clock, class Duration>
static void waits_until(fair::handle &door, fair::handle &other,
                        std::chrono::time_point<Clock, Duration> end)
{
  CHECK(door.try_lock());
  CHECK(other.try_lock_until(end));
  CHECK(door.release() == FAIRLOCK_LOST); /* its lease had to end */
  other.unlock();
}

template <class Clock, class Duration>
static void is_over_at(fair::handle &other, std::chrono::time_point<Clock, Duration> end)
{
  CHECK(!other.try_lock_until(end) && other.result() == FAIRLOCK_BUSY);
}

/* Times that the clock's own unit cannot count to. */
static void ends_of_time(fair::client &client)
{
  using namespace std::chrono;
  typedef time_point<steady_clock, hours> in_hours;
  typedef time_point<system_clock, seconds> in_seconds;
  typedef time_point<system_clock, duration<int, std::ratio<86400>>> in_days;
  typedef time_point<steady_clock, duration<double>> in_any_seconds;
  const duration<double> infinity(std::numeric_limits<double>::infinity());
  fair::handle door(client, "door", milliseconds(300)), other(client, "door", seconds(30));
  waits_until(door, other, in_hours::max());
  waits_until(door, other, in_seconds::max());
  waits_until(door, other, in_seconds(hours(24 * 365 * 400))); /* of the year 2369 */
  waits_until(door, other, in_days::max());
  waits_until(door, other, in_any_seconds(infinity));
  waits_until(door, other, steady_clock::time_point::max());
  waits_until(door, other, system_clock::now() + hours(24 * 13));
  fair::handle long_held(client, "door", seconds(30));
  CHECK(long_held.try_lock());
  is_over_at(other, in_hours::min());
  is_over_at(other, in_seconds::min());
  is_over_at(other, in_days::min());
  is_over_at(other, in_any_seconds(-infinity));
  is_over_at(other, steady_clock::time_point::min());
  CHECK(!other.try_lock_for(hours::min()) && other.result() == FAIRLOCK_BUSY);
  CHECK(!other.try_lock_for(nanoseconds(1)) && other.result() == FAIRLOCK_TIMEOUT);
  long_held.unlock();
  CHECK(door.try_lock());
  CHECK(other.try_lock_for(hours::max()));
  other.unlock();
}

/* A lease that was computed is never one that has no end. */
static void computed_leases(fair::client &client)
{
  using namespace std::chrono;
  const milliseconds::rep out_of_range[] = {0, -5, 99, 13LL * 86400000, FAIRLOCK_RENEW, UINT32_MAX, INT64_MIN, INT64_MAX};
  for (const milliseconds::rep ms : out_of_range) {
    fair::handle computed(client, "computed", milliseconds(ms));
    CHECK(computed.status() == FAIRLOCK_OK && !computed.try_lock());
    CHECK(computed.result() == FAIRLOCK_INVALID && computed.token() == 0);
    fair::semaphore permit(client, "computed permits", 1, milliseconds(ms));
    CHECK(permit.try_acquire_for(seconds(1)) == false);
    fair::shared_mutex shared(client, "computed shared", milliseconds(ms));
    CHECK(!shared.try_lock() && !shared.try_lock_shared());
  }
  fair::handle shortest(client, "computed", duration<double, std::micro>(99000.5));
  CHECK(shortest.try_lock() && shortest.remaining() <= milliseconds(FAIRLOCK_LEASE_MIN_MS));
  CHECK(shortest.release() == FAIRLOCK_OK);
  fair::handle longest(client, "computed", milliseconds(FAIRLOCK_DURATION_MAX_MS - 1));
  CHECK(longest.try_lock() && longest.remaining() > hours(24 * 12));
  CHECK(longest.release() == FAIRLOCK_OK);
}

/* The standard's own ways to lock. */
static void standard_locks(fair::client &client)
{
  fair::handle door(client, "door"), gate(client, "gate");
  {
    std::lock_guard<fair::handle> guard(door);
    CHECK(door.result() == FAIRLOCK_OK && door.token() > 0 && door.remaining() > milliseconds(0));
    std::lock_guard<fair::handle> again(door);
    CHECK(fairlock_hold_count(door.native_handle()) == 2);
  }
  CHECK(door.result() == FAIRLOCK_OK && door.token() == 0 && door.remaining() == milliseconds(0));

  fair::handle other(client, "door");
  std::unique_lock<fair::handle> unique(door);
  CHECK(unique.owns_lock());
  CHECK(!other.try_lock() && other.result() == FAIRLOCK_BUSY && other.status() == FAIRLOCK_OK);
  const auto began = std::chrono::steady_clock::now();
  std::unique_lock<fair::handle> late(other, std::chrono::microseconds(50001));
  CHECK(!late.owns_lock() && other.result() == FAIRLOCK_TIMEOUT);
  CHECK(!other.try_lock_until(std::chrono::steady_clock::now() + milliseconds(50)));
  CHECK(std::chrono::steady_clock::now() - began >= milliseconds(100));
  CHECK(!other.try_lock_until(began) && other.result() == FAIRLOCK_BUSY); /* it is over */
  unique.unlock();
  CHECK(other.try_lock_until(std::chrono::system_clock::now() + std::chrono::minutes(1)));
  CHECK(!door.try_lock());
  other.unlock();
  other.unlock();
  CHECK(other.result() == FAIRLOCK_NOT_HELD);

  std::lock(door, gate);
  CHECK(door.token() > 0 && gate.token() > 0);
  door.unlock();
  gate.unlock();
#if __cplusplus >= 201703L
  {
    std::scoped_lock both(gate, door);
    CHECK(door.token() > 0 && gate.token() > 0);
  }
  CHECK(door.token() == 0 && gate.token() == 0);
#endif
}

/* All of several handles, or none. */
static void several(fair::client &client)
{
  fair::handle door(client, "door", std::chrono::seconds(5)), gate(client, "gate"), nameless(client, "");
  fair::handle other(client, "gate");
  fair::lock_all(gate, door);
  CHECK(door.token() > 0 && gate.token() > 0 && gate.remaining() > std::chrono::seconds(6));
  gate.unlock();
  door.unlock();
  {
    CHECK(fair::acquire_all(door) == FAIRLOCK_OK);
    std::lock_guard<fair::handle> guard(door, std::adopt_lock);
    CHECK(other.try_lock());
    CHECK(fair::acquire_all_for(milliseconds(20), gate, door) == FAIRLOCK_TIMEOUT);
    CHECK(fairlock_hold_count(door.native_handle()) == 1 && gate.token() == 0);
    CHECK(fair::acquire_all(door, nameless) == nameless.status());
    CHECK(fair::acquire_all(door, other, gate) == FAIRLOCK_INVALID);
    other.unlock();
  }
  CHECK(door.token() == 0);
#if __cplusplus >= 201703L
  {
    fair::lock_all(door, gate);
    std::scoped_lock both(std::adopt_lock, door, gate);
  }
  CHECK(door.token() == 0 && gate.token() == 0);
#endif
}

static void holds(fair::client &client)
{
  fair::handle door(client, "door", std::chrono::seconds(5));
  fair::handle other(*client.native_handle(), "door");
  fair::hold none;
  CHECK(!none && none.result() == FAIRLOCK_NOT_HELD && none.token() == 0);
  CHECK(none.release() == FAIRLOCK_NOT_HELD && none.remaining() == milliseconds(0));
  std::uint64_t token;
  {
    fair::hold held(door);
    CHECK(held && held.result() == FAIRLOCK_OK && held.token() > 0);
    CHECK(held.remaining() > milliseconds(0) && held.remaining() <= std::chrono::seconds(5));
    token = held.token();
    fair::hold refused(other, milliseconds(0));
    CHECK(!refused && refused.result() == FAIRLOCK_BUSY && refused.token() == 0);
    none = std::move(held);
    CHECK(none && none.token() == token && !held && held.token() == 0);
  }
  CHECK(none.remaining() > milliseconds(0));
  fair::hold &self = none;
  none = std::move(self);
  CHECK(none.token() == token);
  fair::hold moved(std::move(none));
  CHECK(moved && moved.release() == FAIRLOCK_OK && !moved && moved.result() == FAIRLOCK_OK);
  CHECK(moved.token() == 0);
  moved = fair::hold(other, std::chrono::seconds(5));
  CHECK(moved.token() > token);
  moved = fair::hold(); /* releases */
  CHECK(other.token() == 0);

  fair::hold lost(door);
  CHECK(fairlock_force_release(client.native_handle(), "door", 4, FAIRLOCK_ANY_TOKEN) ==
        FAIRLOCK_OK);
  CHECK(lost && lost.release() == FAIRLOCK_LOST && lost.result() == FAIRLOCK_LOST);
}

/* A hold goes to another thread with the object; what a handle holds has to be adopted. */
static void threads(fair::client &client)
{
  fair::handle door(client, "door"), other(client, "door");
  fair::hold held(door);
  std::thread([&held] { fair::hold mine(std::move(held)); }).join();
  CHECK(door.result() == FAIRLOCK_OK && other.try_lock());
  int wrong = 0, right = 1;
  std::thread([&] {
    wrong = other.release();
    CHECK(other.adopt() == FAIRLOCK_OK);
    right = other.release();
  }).join();
  CHECK(wrong == FAIRLOCK_WRONG_TASK && right == FAIRLOCK_OK);
  CHECK(other.adopt() == FAIRLOCK_NOT_HELD);

  held = fair::hold(door);
  std::thread waiter([&other] { CHECK(other.acquire() == FAIRLOCK_CANCELLED); });
  while (other.cancel() != FAIRLOCK_OK)
    (void)fairlock_poll(client.native_handle(), 10);
  waiter.join();
}

/* What is destroyed while it holds, waits or has begun something leaves nothing. */
static void destroyed(fair::client &client)
{
  fair::handle door(client, "door");
  {
    fair::handle short_lived(client, "door");
    CHECK(short_lived.try_lock() && short_lived.try_lock());
    std::thread([&client] {
      fair::handle waits(client, "door");
      CHECK(fairlock_start_acquire(waits.native_handle(), FAIRLOCK_FOREVER, FAIRLOCK_RENEW) ==
            FAIRLOCK_PENDING);
    }).join();
    fairlock_poll(client.native_handle(), 100);
    CHECK(!door.try_lock());
  }
  CHECK(door.try_lock());
  CHECK(door.close() == FAIRLOCK_OK && door.close() == FAIRLOCK_OK);
  CHECK(door.status() == FAIRLOCK_INVALID);
  CHECK(door.acquire() == FAIRLOCK_INVALID && door.release() == FAIRLOCK_NOT_HELD);
  CHECK(door.token() == 0 && door.remaining() == milliseconds(0));
  CHECK(door.cancel() == FAIRLOCK_NOT_HELD && door.adopt() == FAIRLOCK_NOT_HELD);
}

/* As many threads as there may be, by one object: all share it at once, and each has it alone. */
static void shared_by_threads(fair::client &client)
{
  const int threads = 4;
  fair::basic_shared_mutex<4> valve(client, "valve");
  std::atomic<int> inside(0), met(0);
  int written = 0; /* by who has it alone */
  std::thread all[threads];
  for (std::thread &one : all) {
    one = std::thread([&] {
      valve.lock_shared();
      met++;
      while (met < threads)
        (void)fairlock_poll(client.native_handle(), 10);
      CHECK(valve.token() > 0 && valve.remaining() > milliseconds(0));
      valve.unlock_shared();
      for (int i = 0; i < 5; i++) {
        {
          std::lock_guard<fair::basic_shared_mutex<4>> alone(valve);
          CHECK(inside == 0);
          written++;
        }
        valve.lock_shared();
        inside++;
        CHECK(valve.token() > 0);
        inside--;
        valve.unlock_shared();
      }
    });
  }
  for (std::thread &one : all)
    one.join();
  CHECK(written == 5 * threads);
  CHECK(valve.token() == 0 && valve.remaining() == milliseconds(0));
}

/* One thread: what it may and may not do by one object, and what others see of it. */
static void shared_mutexes(fair::client &client)
{
  fair::shared_mutex valve(client, "valve"), other(client, "valve");
  fair::handle door(client, "valve");
  CHECK(valve.status() == FAIRLOCK_OK);
  CHECK(valve.release() == FAIRLOCK_NOT_HELD && valve.release_shared() == FAIRLOCK_NOT_HELD);
  CHECK(valve.downgrade() == FAIRLOCK_NOT_HELD && valve.cancel() == FAIRLOCK_NOT_HELD);
  CHECK(valve.try_lock_shared() && other.try_lock_shared());
  CHECK(!door.try_lock() && door.result() == FAIRLOCK_BUSY);
  CHECK(valve.acquire() == FAIRLOCK_IN_PROGRESS && valve.release() == FAIRLOCK_NOT_HELD);
  CHECK(valve.downgrade() == FAIRLOCK_NOT_HELD);
  CHECK(valve.acquire_shared() == FAIRLOCK_OK); /* once more */
  CHECK(valve.release_shared() == FAIRLOCK_OK && valve.token() > 0);
  valve.unlock_shared();
  CHECK(valve.token() == 0 && !door.try_lock());
  CHECK(!valve.try_lock_for(milliseconds(1)) && !valve.try_lock() &&
        !valve.try_lock_until(std::chrono::steady_clock::now() + milliseconds(1)));
  other.unlock_shared();

  std::unique_lock<fair::shared_mutex> alone(valve);
  CHECK(valve.acquire_shared() == FAIRLOCK_IN_PROGRESS);
  CHECK(!other.try_lock_shared() && !other.try_lock_shared_for(milliseconds(1)) &&
        !other.try_lock_shared_until(std::chrono::steady_clock::now() + milliseconds(1)));
  CHECK(valve.acquire_for(milliseconds(0)) == FAIRLOCK_OK);
  CHECK(valve.downgrade() == FAIRLOCK_INVALID && valve.release() == FAIRLOCK_OK);
  const std::uint64_t token = valve.token();
  CHECK(valve.downgrade() == FAIRLOCK_OK && valve.token() > token);
  alone.release();
  CHECK(other.try_lock_shared() && !door.try_lock());
  other.unlock_shared();
#if __cplusplus >= 201402L
  {
    std::shared_lock<fair::shared_mutex> adopted(valve, std::adopt_lock);
    std::shared_lock<fair::shared_mutex> beside(other, std::chrono::seconds(5));
    CHECK(adopted.owns_lock() && beside.owns_lock());
  }
#else
  valve.unlock_shared();
#endif
  CHECK(valve.try_lock());
  CHECK(fairlock_force_release(client.native_handle(), "valve", 5, FAIRLOCK_ANY_TOKEN) ==
        FAIRLOCK_OK);
  CHECK(valve.downgrade() == FAIRLOCK_LOST && valve.token() == 0);
  CHECK(valve.try_lock_shared());
  CHECK(fairlock_force_release(client.native_handle(), "valve", 5, FAIRLOCK_ANY_TOKEN) ==
        FAIRLOCK_OK);
  CHECK(valve.release_shared() == FAIRLOCK_LOST && valve.release_shared() == FAIRLOCK_NOT_HELD);
  CHECK(door.try_lock());
}

/* Too many threads, a wait that is given up, and the end. */
static void shared_mutexes_end(fair::client &client)
{
  fair::handle door(client, "valve");
  fair::basic_shared_mutex<1> narrow(client, "valve");
  CHECK(narrow.try_lock_shared());
  std::thread([&narrow] {
    CHECK(!narrow.try_lock_shared() && !narrow.try_lock() && !narrow.try_lock_for(milliseconds(1)));
    CHECK(narrow.acquire_shared_for(milliseconds(0)) == FAIRLOCK_BUSY);
    CHECK(narrow.acquire_shared_for(milliseconds(1)) == FAIRLOCK_TIMEOUT);
    CHECK(narrow.release_shared() == FAIRLOCK_NOT_HELD && narrow.token() == 0);
  }).join();
  std::thread unseated([&narrow] { CHECK(narrow.acquire() == FAIRLOCK_CANCELLED); });
  while (narrow.cancel() != FAIRLOCK_OK)
    (void)fairlock_poll(client.native_handle(), 10);
  unseated.join();
  narrow.unlock_shared();
  CHECK(door.try_lock());
  std::thread waiter([&narrow] { CHECK(narrow.acquire_shared() == FAIRLOCK_CANCELLED); });
  while (narrow.cancel() != FAIRLOCK_OK)
    (void)fairlock_poll(client.native_handle(), 10);
  waiter.join();
  door.unlock();
  CHECK(narrow.try_lock());
  CHECK(!door.try_lock());
  CHECK(narrow.close() == FAIRLOCK_OK && narrow.close() == FAIRLOCK_OK); /* releases */
  CHECK(narrow.acquire() == FAIRLOCK_INVALID && narrow.release() == FAIRLOCK_NOT_HELD);
  CHECK(narrow.token() == 0 && narrow.downgrade() == FAIRLOCK_NOT_HELD);
  CHECK(door.try_lock());
}

static void semaphores(fair::client &client)
{
  fair::semaphore slots(client, "slots", 2, std::chrono::seconds(30));
  fair::basic_semaphore<1> other(client, "slots", 2);
  CHECK(slots.release() == FAIRLOCK_NOT_HELD && slots.remaining() == milliseconds(0));
  slots.acquire();
  CHECK(slots.try_acquire() && !slots.try_acquire() && !other.try_acquire());
  CHECK(slots.remaining() > milliseconds(0) && slots.remaining() <= std::chrono::seconds(30));
  CHECK(!other.try_acquire_for(milliseconds(1)) &&
        !other.try_acquire_until(std::chrono::steady_clock::now() + milliseconds(1)));
  CHECK(other.acquire_for(milliseconds(1)) == FAIRLOCK_TIMEOUT);
  std::thread([&slots] {
    CHECK(slots.remaining() == milliseconds(0));
    CHECK(slots.release() == FAIRLOCK_OK); /* of another thread */
  }).join();
  CHECK(other.try_acquire_for(std::chrono::seconds(5)) && !slots.try_acquire());
  CHECK(!other.try_acquire() && other.acquire_for(milliseconds(1)) == FAIRLOCK_TIMEOUT);
  CHECK(other.acquire_for(milliseconds(0)) == FAIRLOCK_BUSY);
  std::thread unseated([&other] { CHECK(other.acquire_for(std::chrono::hours(1)) == FAIRLOCK_CANCELLED); });
  while (other.cancel() != FAIRLOCK_OK)
    (void)fairlock_poll(client.native_handle(), 10);
  unseated.join();
  std::thread waiter(
      [&slots] { CHECK(slots.acquire_for(std::chrono::hours(1)) == FAIRLOCK_CANCELLED); });
  while (slots.cancel() != FAIRLOCK_OK)
    (void)fairlock_poll(client.native_handle(), 10);
  waiter.join();
  CHECK(other.release() == FAIRLOCK_OK && slots.try_acquire());
  CHECK(slots.release(3) == FAIRLOCK_NOT_HELD); /* it had two */
  CHECK(other.try_acquire() && slots.try_acquire());
  CHECK(fairlock_force_release(client.native_handle(), "slots", 5, FAIRLOCK_ANY_TOKEN) ==
        FAIRLOCK_OK);
  CHECK(slots.release() == FAIRLOCK_LOST && other.release() == FAIRLOCK_LOST);

  fair::semaphore many(client, "slots", 5);
  CHECK(slots.try_acquire() && slots.try_acquire());
  CHECK(many.acquire_for(milliseconds(0)) == FAIRLOCK_BUSY); /* the smaller limit binds */
  CHECK(slots.close() == FAIRLOCK_OK && slots.close() == FAIRLOCK_OK);
  CHECK(!slots.try_acquire() && slots.release() == FAIRLOCK_NOT_HELD);
  CHECK(slots.remaining() == milliseconds(0) && slots.status() == FAIRLOCK_INVALID);
  CHECK(many.try_acquire());
}

/* Two threads, each of which releases what it has itself acquired, if there is one. */
static void semaphore_of_threads(fair::client &client)
{
  fair::basic_semaphore<3> slots(client, "slots", 3, std::chrono::seconds(30));
  CHECK(slots.try_acquire() && slots.try_acquire());
  std::thread([&slots] {
    CHECK(slots.try_acquire() && slots.remaining() > milliseconds(0));
    CHECK(slots.release() == FAIRLOCK_OK && slots.remaining() == milliseconds(0));
  }).join();
  CHECK(slots.release(2) == FAIRLOCK_OK && slots.release() == FAIRLOCK_NOT_HELD);
}

/* Notes how many are in at a time. */
struct crowd {
  std::atomic<int> in, most;

  void enter()
  {
    const int now = ++in;
    int before = most;
    while (now > before && !most.compare_exchange_weak(before, now))
      continue;
  }
};

/* More threads than an object has seats: all get in, in the end, and so many at a time. */
static void more_threads_than_seats(fair::client &client)
{
  const int threads = 12;
  fair::semaphore slots(client, "slots", 10);
  fair::basic_semaphore<10> ten(client, "ten", 10);
  fair::shared_mutex valve(client, "valve");
  crowd slotted = {}, tenth = {}, shared = {};
  int alone = 0;
  std::thread all[threads];
  for (std::thread &one : all) {
    one = std::thread([&] {
      slots.acquire();
      slotted.enter();
      while (slotted.most < 8)
        (void)fairlock_poll(client.native_handle(), 10);
      slotted.in--;
      CHECK(slots.release() == FAIRLOCK_OK);
      ten.acquire();
      tenth.enter();
      while (tenth.most < 10)
        (void)fairlock_poll(client.native_handle(), 10);
      tenth.in--;
      CHECK(ten.release() == FAIRLOCK_OK);
      valve.lock_shared();
      shared.enter();
      while (shared.most < 8)
        (void)fairlock_poll(client.native_handle(), 10);
      shared.in--;
      valve.unlock_shared();
      CHECK(valve.try_lock_for(std::chrono::minutes(1)));
      alone++;
      valve.unlock();
    });
  }
  for (std::thread &one : all)
    one.join();
  CHECK(slotted.most == 8 && tenth.most == 10 && shared.most == 8 && alone == threads);
  CHECK(slots.release() == FAIRLOCK_NOT_HELD && ten.release() == FAIRLOCK_NOT_HELD);
}

/* Threads without a seat get one in the order in which they came. */
static void seats_in_order()
{
  const int threads = 4;
  fair::detail::waiting_room<int> room;
  port_mutex guard;
  int came = 0, seats[threads] = {}, got[threads];
  std::thread all[threads];
  port_mutex_init(&guard);
  for (std::thread &one : all) {
    one = std::thread([&] {
      port_mutex_lock(&guard);
      const int place = came++; /* it has the mutex until it is in line */
      std::uint32_t wait_ms = FAIRLOCK_FOREVER;
      int *seat = nullptr;
      CHECK(room.wait(guard, wait_ms, seat) == FAIRLOCK_OK && wait_ms == FAIRLOCK_FOREVER);
      got[place] = static_cast<int>(seat - seats);
      port_mutex_unlock(&guard);
    });
  }
  for (int given = 0; given < threads;) {
    port_mutex_lock(&guard);
    if (came == threads && room.give(seats[given]) != 0) given++;
    port_mutex_unlock(&guard);
  }
  for (std::thread &one : all)
    one.join();
  for (int place = 0; place < threads; place++)
    CHECK(got[place] == place);
  CHECK(room.give(seats[0]) == 0 && room.cancel() == FAIRLOCK_NOT_HELD);
  port_mutex_destroy(&guard);
}

/* Without use_downgrading(), and with what no lock can have. */
static void shared_refusals(fair::client &client, port_transport &transport)
{
  const fairlock_config config = configure();
  fair::client alone(config, transport);
  fair::shared_mutex valve(alone, "valve");
  CHECK(valve.status() == FAIRLOCK_OK && valve.downgrade() == FAIRLOCK_NOT_HELD);
  fair::semaphore any_number(client, "slots", 0), too_many(client, "slots", 1001);
  CHECK(any_number.status() == FAIRLOCK_INVALID && too_many.status() == FAIRLOCK_INVALID);
  fair::shared_mutex nameless(client, nullptr);
  CHECK(nameless.status() == FAIRLOCK_INVALID && !nameless.try_lock_shared());
#ifdef __cpp_exceptions
  int caught = 0;
  try {
    nameless.lock_shared();
  } catch (const std::system_error &error) {
    caught = error.code().value();
  }
  CHECK(caught == FAIRLOCK_INVALID);
  try {
    any_number.acquire();
  } catch (const std::system_error &) {
    caught = 1;
  }
  CHECK(caught == 1);
  try {
    std::lock_guard<fair::shared_mutex> guard(nameless);
  } catch (const std::system_error &) {
    caught = 2;
  }
  CHECK(caught == 2);
#endif
}

static void refusals(fair::client &client, port_transport &transport)
{
  fairlock_config config = configure();
  config.send_size = 1;
  fair::client broken(config, transport);
  CHECK(broken.status() == FAIRLOCK_TOO_LONG);
  fair::handle nothing(broken, "door");
  CHECK(nothing.status() == FAIRLOCK_TOO_LONG && !nothing.try_lock());
  CHECK(nothing.result() == FAIRLOCK_TOO_LONG);

  fair::handle nameless(client, "");
  CHECK(nameless.status() == FAIRLOCK_INVALID);
  fair::handle too_short(client, "door", milliseconds(1));
  CHECK(too_short.status() == FAIRLOCK_OK && !too_short.try_lock());
  CHECK(too_short.status() == FAIRLOCK_OK && too_short.result() == FAIRLOCK_INVALID);
#ifdef __cpp_exceptions
  CHECK(std::strcmp(fair::category().name(), "fairlock") == 0);
  int caught = 0;
  try {
    std::lock_guard<fair::handle> guard(nameless);
  } catch (const std::system_error &error) {
    caught = error.code().value();
    CHECK(error.code().category() == fair::category());
    CHECK(error.code().message() == fairlock_status_text(FAIRLOCK_INVALID));
  }
  CHECK(caught == FAIRLOCK_INVALID);
#else
  nameless.lock();
  std::exit(1); /* it came back without the lock */
#endif
}

/* A transport that has lost the server, or whose server is silent. */
static int refuse(void *, std::uint32_t)
{
  return PORT_UNREACHABLE;
}

static int end_of_stream(void *, void *, std::size_t, std::uint32_t)
{
  return PORT_CLOSED;
}

static int silence(void *, void *, std::size_t, std::uint32_t timeout_ms)
{
  std::this_thread::sleep_for(milliseconds(timeout_ms));
  return PORT_WOULD_BLOCK;
}

/*
 * Without a server, or without a word from it, destructors do not wait: what is left of each handle is
 * on the heap, until that of the client.
 */
static void destroyed_without_answers(port_transport transport, bool lost)
{
  std::chrono::steady_clock::time_point began;
  {
    const fairlock_config config = configure();
    fair::client client(config, transport);
    client.use_downgrading();
    {
      std::string name("unanswered");
      fair::handle door(client, name.c_str());
      fair::shared_mutex valve(client, "unanswered valve");
      fair::semaphore permits(client, "unanswered permits", 2);
      CHECK(door.try_lock() && valve.try_lock_shared() && permits.try_acquire());
      transport.recv = lost ? end_of_stream : silence;
      if (lost) transport.connect = refuse;
      began = std::chrono::steady_clock::now();
    }
    (void)fairlock_poll(client.native_handle(), 10); /* and the name is gone */
  }
  CHECK(std::chrono::steady_clock::now() - began < std::chrono::seconds(5));
}

int main(int argc, char **argv)
{
  const fairlock_config config = configure();
  port_posix socket;
  if (argc < 2) return 2;
  durations();
  port_posix_tcp(&socket, "127.0.0.1", argv[1]);
  fair::client client(config, socket.transport);
  CHECK(client.status() == FAIRLOCK_OK);
  client.use_downgrading();
  standard_locks(client);
  several(client);
  ends_of_time(client);
  computed_leases(client);
  holds(client);
  threads(client);
  destroyed(client);
  shared_mutexes(client);
  shared_mutexes_end(client);
  shared_by_threads(client);
  semaphores(client);
  semaphore_of_threads(client);
  more_threads_than_seats(client);
  seats_in_order();
  shared_refusals(client, socket.transport);
  destroyed_without_answers(socket.transport, true);
  destroyed_without_answers(socket.transport, false);
  refusals(client, socket.transport);
  return 0;
}
