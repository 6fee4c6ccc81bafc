/*
 * fairlock.hpp against a server: cxx PORT [slow]. Compiled by each compiler as each standard, with
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
#include <fairlock/port_posix.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <mutex>
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
static_assert(!std::is_copy_constructible<fair::mutex>::value, "");
static_assert(!std::is_move_constructible<fair::mutex>::value, "");
static_assert(!std::is_copy_constructible<fair::hold>::value, "");
static_assert(std::is_nothrow_move_constructible<fair::hold>::value, "");
static_assert(std::is_nothrow_move_assignable<fair::hold>::value, "");
static_assert(!std::is_convertible<fair::hold, bool>::value, "only where a condition stands");
static_assert(!std::is_constructible<fair::hold, fair::mutex &, int>::value, "a wait has a unit");
static_assert(!std::is_constructible<fair::client, fairlock_config, port_transport &>::value,
              "a configuration has to stay");

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
  CHECK(fair::to_ms(milliseconds(0)) == 0);
  CHECK(fair::to_ms(milliseconds(-1)) == 0 && fair::to_ms(hours::min()) == 0);
  CHECK(fair::to_ms(milliseconds(7)) == 7);
  CHECK(fair::to_ms(nanoseconds(1)) == 1 && fair::to_ms(nanoseconds(1000001)) == 2);
  CHECK(fair::to_ms(nanoseconds(1000000)) == 1);
  CHECK(fair::to_ms(duration<int, std::ratio<1, 60>>(1)) == 17);
  CHECK(fair::to_ms(duration<unsigned>(3)) == 3000);
  CHECK(fair::to_ms(hours(24)) == 86400000);
  CHECK(fair::to_ms(milliseconds(most - 1)) == most - 1);
  CHECK(fair::to_ms(microseconds(1000 * std::int64_t(most) - 1)) == most);
  CHECK(fair::to_ms(milliseconds(most)) == FAIRLOCK_FOREVER);
  CHECK(fair::to_ms(hours::max()) == FAIRLOCK_FOREVER);
  CHECK(fair::to_ms(nanoseconds::max()) == FAIRLOCK_FOREVER);
  CHECK(fair::to_ms(duration<std::int64_t, std::atto>::max()) == 9224);
  CHECK(fair::to_ms(duration<std::int64_t, std::peta>::max()) == FAIRLOCK_FOREVER);
  CHECK(fair::to_ms(duration<std::int64_t, std::peta>::min()) == 0);
  typedef duration<std::int64_t, std::ratio<999999937, 1000000000000000>> odd;
  CHECK(fair::to_ms(odd(1000000000000)) - 999999937 <= 1);
  CHECK(fair::to_ms(seconds_of_any_kind(0.0101)) == 11);
  CHECK(fair::to_ms(seconds_of_any_kind(std::numeric_limits<double>::infinity())) ==
        FAIRLOCK_FOREVER);
  CHECK(fair::to_ms(seconds_of_any_kind(std::numeric_limits<double>::quiet_NaN())) == 0);
}

/* It waits, for as long as another holds, and is not over at once. */
template <class Clock, class Duration>
static void waits_until(fair::mutex &door, fair::mutex &other,
                        std::chrono::time_point<Clock, Duration> end)
{
  CHECK(door.try_lock());
  CHECK(other.try_lock_until(end));
  CHECK(door.release() == FAIRLOCK_LOST); /* its lease had to end */
  other.unlock();
}

template <class Clock, class Duration>
static void is_over_at(fair::mutex &other, std::chrono::time_point<Clock, Duration> end)
{
  CHECK(!other.try_lock_until(end) && other.status() == FAIRLOCK_BUSY);
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
  fair::mutex door(client, "door", milliseconds(300)), other(client, "door", seconds(30));
  waits_until(door, other, in_hours::max());
  waits_until(door, other, in_seconds::max());
  waits_until(door, other, in_seconds(hours(24 * 365 * 400))); /* of the year 2369 */
  waits_until(door, other, in_days::max());
  waits_until(door, other, in_any_seconds(infinity));
  waits_until(door, other, steady_clock::time_point::max());
  waits_until(door, other, system_clock::now() + hours(24 * 13));
  fair::mutex long_held(client, "door", seconds(30));
  CHECK(long_held.try_lock());
  is_over_at(other, in_hours::min());
  is_over_at(other, in_seconds::min());
  is_over_at(other, in_days::min());
  is_over_at(other, in_any_seconds(-infinity));
  is_over_at(other, steady_clock::time_point::min());
  CHECK(!other.try_lock_for(hours::min()) && other.status() == FAIRLOCK_BUSY);
  CHECK(!other.try_lock_for(nanoseconds(1)) && other.status() == FAIRLOCK_TIMEOUT);
  long_held.unlock();
  CHECK(door.try_lock());
  CHECK(other.try_lock_for(hours::max()));
  other.unlock();
}

/* The standard's own ways to lock. */
static void standard_locks(fair::client &client)
{
  fair::mutex door(client, "door"), gate(client, "gate");
  {
    std::lock_guard<fair::mutex> guard(door);
    CHECK(door.status() == FAIRLOCK_OK && door.token() > 0 && door.remaining() > milliseconds(0));
    std::lock_guard<fair::mutex> again(door);
    CHECK(fairlock_hold_count(door.native_handle()) == 2);
  }
  CHECK(door.status() == FAIRLOCK_OK && door.token() == 0 && door.remaining() == milliseconds(0));

  fair::mutex other(client, "door");
  std::unique_lock<fair::mutex> unique(door);
  CHECK(unique.owns_lock());
  CHECK(!other.try_lock() && other.status() == FAIRLOCK_BUSY);
  const auto began = std::chrono::steady_clock::now();
  std::unique_lock<fair::mutex> late(other, std::chrono::microseconds(50001));
  CHECK(!late.owns_lock() && other.status() == FAIRLOCK_TIMEOUT);
  CHECK(!other.try_lock_until(std::chrono::steady_clock::now() + milliseconds(50)));
  CHECK(std::chrono::steady_clock::now() - began >= milliseconds(100));
  CHECK(!other.try_lock_until(began) && other.status() == FAIRLOCK_BUSY); /* it is over */
  unique.unlock();
  CHECK(other.try_lock_until(std::chrono::system_clock::now() + std::chrono::minutes(1)));
  CHECK(!door.try_lock());
  other.unlock();
  other.unlock();
  CHECK(other.status() == FAIRLOCK_NOT_HELD);

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

static void holds(fair::client &client)
{
  fair::mutex door(client, "door", std::chrono::seconds(5));
  fair::mutex other(*client.native_handle(), "door");
  fair::hold none;
  CHECK(!none && none.status() == FAIRLOCK_NOT_HELD && none.token() == 0);
  CHECK(none.release() == FAIRLOCK_NOT_HELD && none.remaining() == milliseconds(0));
  std::uint64_t token;
  {
    fair::hold held(door);
    CHECK(held && held.status() == FAIRLOCK_OK && held.token() > 0);
    CHECK(held.remaining() > milliseconds(0) && held.remaining() <= std::chrono::seconds(5));
    token = held.token();
    fair::hold refused(other, milliseconds(0));
    CHECK(!refused && refused.status() == FAIRLOCK_BUSY && refused.token() == 0);
    none = std::move(held);
    CHECK(none && none.token() == token && !held && held.token() == 0);
  }
  CHECK(none.remaining() > milliseconds(0));
  fair::hold &self = none;
  none = std::move(self);
  CHECK(none.token() == token);
  fair::hold moved(std::move(none));
  CHECK(moved && moved.release() == FAIRLOCK_OK && !moved && moved.status() == FAIRLOCK_OK);
  CHECK(moved.token() == 0);
  moved = fair::hold(other, std::chrono::seconds(5));
  CHECK(moved.token() > token);
  moved = fair::hold(); /* releases */
  CHECK(other.token() == 0);

  fair::hold lost(door);
  CHECK(fairlock_force_release(client.native_handle(), "door", 4, 0) == FAIRLOCK_OK);
  CHECK(lost && lost.release() == FAIRLOCK_LOST && lost.status() == FAIRLOCK_LOST);
}

/* A hold goes to another thread with the object; what a mutex holds has to be taken over. */
static void threads(fair::client &client)
{
  fair::mutex door(client, "door"), other(client, "door");
  fair::hold held(door);
  std::thread([&held] { fair::hold mine(std::move(held)); }).join();
  CHECK(door.status() == FAIRLOCK_OK && other.try_lock());
  int wrong = 0, right = 1;
  std::thread([&] {
    wrong = other.release();
    CHECK(other.take_over() == FAIRLOCK_OK);
    right = other.release();
  }).join();
  CHECK(wrong == FAIRLOCK_WRONG_TASK && right == FAIRLOCK_OK);
  CHECK(other.take_over() == FAIRLOCK_NOT_HELD);

  held = fair::hold(door);
  std::thread waiter([&other] { CHECK(other.acquire() == FAIRLOCK_CANCELLED); });
  while (other.cancel() != FAIRLOCK_OK)
    (void)fairlock_poll(client.native_handle(), 10);
  waiter.join();
}

/* What is destroyed while it holds, waits or has begun something leaves nothing. */
static void destroyed(fair::client &client)
{
  fair::mutex door(client, "door");
  {
    fair::mutex short_lived(client, "door");
    CHECK(short_lived.try_lock() && short_lived.try_lock());
    std::thread([&client] {
      fair::mutex waits(client, "door");
      CHECK(fairlock_start_acquire(waits.native_handle(), FAIRLOCK_FOREVER, FAIRLOCK_RENEW) ==
            FAIRLOCK_PENDING);
    }).join();
    fairlock_poll(client.native_handle(), 100);
    CHECK(!door.try_lock());
  }
  CHECK(door.try_lock());
  CHECK(door.close() == FAIRLOCK_OK && door.close() == FAIRLOCK_OK);
  CHECK(door.acquire() == FAIRLOCK_INVALID && door.release() == FAIRLOCK_NOT_HELD);
  CHECK(door.token() == 0 && door.remaining() == milliseconds(0));
  CHECK(door.cancel() == FAIRLOCK_NOT_HELD && door.take_over() == FAIRLOCK_NOT_HELD);
}

static void refusals(fair::client &client, port_transport &transport)
{
  fairlock_config config = configure();
  config.send_size = 1;
  fair::client broken(config, transport);
  CHECK(broken.status() == FAIRLOCK_TOO_LONG);
  fair::mutex nothing(broken, "door");
  CHECK(nothing.status() == FAIRLOCK_TOO_LONG && !nothing.try_lock());
  CHECK(nothing.status() == FAIRLOCK_TOO_LONG);

  fair::mutex nameless(client, "");
  CHECK(nameless.status() == FAIRLOCK_INVALID);
  fair::mutex too_short(client, "door", milliseconds(1));
  CHECK(too_short.status() == FAIRLOCK_OK && !too_short.try_lock());
  CHECK(too_short.status() == FAIRLOCK_INVALID);
#ifdef __cpp_exceptions
  CHECK(std::strcmp(fair::category().name(), "fairlock") == 0);
  int caught = 0;
  try {
    std::lock_guard<fair::mutex> guard(nameless);
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

/* A transport that has lost the server. */
static int refuse(void *, std::uint32_t)
{
  return PORT_UNREACHABLE;
}

static int end_of_stream(void *, void *, std::size_t, std::uint32_t)
{
  return PORT_CLOSED;
}

/*
 * Without a server, what cannot be released is there until nothing of it can be left on the server:
 * its memory is needed until then.
 */
static void unreachable(port_transport transport)
{
  const milliseconds lease(500);
  fairlock_config config = configure();
  config.waiter_ms = FAIRLOCK_WAITER_MIN_MS;
  fair::client client(config, transport);
  std::chrono::steady_clock::time_point began;
  {
    fair::mutex door(client, "unreachable", lease);
    CHECK(door.try_lock());
    transport.connect = refuse;
    transport.recv = end_of_stream;
    began = std::chrono::steady_clock::now();
  }
  CHECK(std::chrono::steady_clock::now() - began >= lease);
  CHECK(std::chrono::steady_clock::now() - began < std::chrono::seconds(30));
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
  standard_locks(client);
  ends_of_time(client);
  holds(client);
  threads(client);
  destroyed(client);
  if (argc > 2) unreachable(socket.transport);
  refusals(client, socket.transport);
  return 0;
}
