/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Coroutines of C++20 that wait for locks in one loop: many jobs, each with a lock of its own,
 * acquire it, hold it for a while and release it.
 *
 *     coroutine PORT NAME JOBS HOLD_MS
 *
 * The client calls ended() for each operation that is over, with its mutex locked: nothing may be
 * resumed there, so it only puts the lock on a list. After each fairlock_poll() the loop resumes
 * what is on the list, and looks at no other lock, however many wait. It counts.
 *
 * The loop is one thread. With several, each operation but the first of a coroutine that has moved
 * to another thread begins with fairlock_adopt().
 */
#include <fairlock/fairlock.h>
#include <fairlock/port_posix.h>

#include <coroutine>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <map>
#include <string>

/* A lock, the coroutine that waits for its operation, and its place in the list of those ended. */
struct lock {
  fairlock handle; /* first: ended() is told this */
  std::coroutine_handle<> waiter;
  lock *next;
};

class loop;

/* What co_await takes: an operation of a lock, and what beginning it came to. */
class operation
{
public:
  operation(lock &of, int status) : of_(of), status_(status)
  {
  }

  bool await_ready() const
  {
    return status_ != FAIRLOCK_PENDING;
  }

  /* Its end may be on the list already, but that is read later. */
  void await_suspend(std::coroutine_handle<> waiter)
  {
    of_.waiter = waiter;
  }

  int await_resume()
  {
    return status_ == FAIRLOCK_PENDING ? fairlock_result(&of_.handle) : status_;
  }

private:
  lock &of_;
  int status_;
};

/* A coroutine that begins at once, and frees itself at its end. */
struct task {
  struct promise_type {
    task get_return_object()
    {
      return {};
    }
    std::suspend_never initial_suspend()
    {
      return {};
    }
    std::suspend_never final_suspend() noexcept
    {
      return {};
    }
    void return_void()
    {
    }
    void unhandled_exception()
    {
      std::terminate();
    }
  };
};

class loop
{
public:
  explicit loop(const char *port)
  {
    config_.receive_buffer = received_;
    config_.receive_size = sizeof received_;
    config_.send_buffer = sent_;
    config_.send_size = sizeof sent_;
    config_.ended = ended;
    config_.ended_context = this;
    port_posix_tcp(&socket_, "127.0.0.1", port);
    if (fairlock_client_init(&client_, &config_, &socket_.transport) != FAIRLOCK_OK) std::exit(1);
  }

  loop(const loop &) = delete;
  loop &operator=(const loop &) = delete;

  ~loop()
  {
    fairlock_client_deinit(&client_);
  }

  fairlock_client *client()
  {
    return &client_;
  }

  /* co_await loop.end(lock, fairlock_start_...()) gives the result of the operation. */
  operation end(lock &of, int status)
  {
    if (status == FAIRLOCK_PENDING) operations_++;
    return operation(of, status);
  }

  /* co_await loop.sleep(ms) */
  auto sleep(uint32_t ms)
  {
    struct timer {
      loop &of;
      uint32_t at;
      bool await_ready() const
      {
        return false;
      }
      void await_suspend(std::coroutine_handle<> waiter)
      {
        of.timers_.emplace(at, waiter);
      }
      void await_resume() const
      {
      }
    };
    return timer{*this, port_clock_ms() - start_ + ms};
  }

  void run(const int &left)
  {
    while (left > 0) {
      uint32_t now = port_clock_ms() - start_;
      uint32_t wait = 1000;
      if (!timers_.empty()) wait = timers_.begin()->first > now ? timers_.begin()->first - now : 0;
      if (ended_ != nullptr) wait = 0;
      (void)fairlock_poll(&client_, wait);
      polls_++;
      resume_ended();
      resume_timers();
    }
  }

  void report(const char *name, int jobs) const
  {
    std::printf("%d jobs of %s: %u operations, %u locks looked at, in %u turns\n", jobs, name,
                operations_, looked_at_, polls_);
  }

private:
  static void ended(fairlock *handle, const fairlock_end *, void *context)
  {
    loop *self = static_cast<loop *>(context);
    lock *of = reinterpret_cast<lock *>(handle);
    of->next = self->ended_;
    self->ended_ = of;
  }

  /* What is resumed may begin operations, and so end others: they come on a new list. */
  void resume_ended()
  {
    lock *of = ended_;
    ended_ = nullptr;
    while (of != nullptr) {
      lock *next = of->next;
      looked_at_++;
      of->waiter.resume();
      of = next;
    }
  }

  void resume_timers()
  {
    uint32_t now = port_clock_ms() - start_;
    while (!timers_.empty() && timers_.begin()->first <= now) {
      std::coroutine_handle<> waiter = timers_.begin()->second;
      timers_.erase(timers_.begin());
      waiter.resume();
    }
  }

  fairlock_config config_ = fairlock_config();
  port_posix socket_;
  fairlock_client client_;
  lock *ended_ = nullptr;
  std::multimap<uint32_t, std::coroutine_handle<>> timers_;
  uint32_t start_ = port_clock_ms();
  unsigned operations_ = 0, looked_at_ = 0, polls_ = 0;
  unsigned char received_[1024], sent_[4096];
};

/* A mistake, or the server is gone for good. */
static void fail(const char *what, int status)
{
  std::printf("%s: %s\n", what, fairlock_status_text(status));
  std::exit(1);
}

static task job(loop &in, std::string name, uint32_t hold_ms, int &left)
{
  lock door = {}; /* in the coroutine's frame, which does not move */
  int status = fairlock_init(&door.handle, in.client(), name.c_str());
  if (status != FAIRLOCK_OK) fail("init", status);
  status =
      co_await in.end(door, fairlock_start_acquire(&door.handle, FAIRLOCK_FOREVER, FAIRLOCK_RENEW));
  if (status != FAIRLOCK_OK) fail("acquire", status);
  co_await in.sleep(hold_ms);
  status = co_await in.end(door, fairlock_start_release(&door.handle));
  if (status != FAIRLOCK_OK) fail("release", status);
  while (status = fairlock_start_deinit(&door.handle), status == FAIRLOCK_PENDING)
    (void)co_await in.end(door, status);
  left--;
}

int main(int count, char **arguments)
{
  if (count < 5) return 2;
  const int jobs = std::atoi(arguments[3]);
  const uint32_t hold_ms = static_cast<uint32_t>(std::atoi(arguments[4]));
  int left = jobs;
  loop all(arguments[1]);
  for (int i = 0; i < jobs; i++)
    job(all, arguments[2] + std::to_string(i), hold_ms, left);
  all.run(left);
  all.report(arguments[2], jobs);
  return 0;
}
