/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The lock in C++: threads, each with a handle of its own, take turns, and pass the fencing token to
 * what the lock protects, which refuses one smaller than the largest that it has seen.
 *
 *     guard PORT NAME THREADS
 */
#include <fairlock/fairlock.hpp>
#include <fairlock/port_posix.h>

#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <thread>
#include <vector>

/*
 * What only one may write to at a time: a valve, a file, a table. Its mutex makes one step of check and
 * write: a former holder may come at the same time as the next.
 */
class valve
{
public:
  bool write(std::uint64_t token)
  {
    std::lock_guard<std::mutex> step(mutex_);
    if (token < newest_) return false;
    newest_ = token;
    writes_++;
    return true;
  }

  int writes() const
  {
    return writes_;
  }

private:
  std::mutex mutex_;
  std::uint64_t newest_ = 0;
  int writes_ = 0;
};

static void work(fair::client &client, const char *name, valve &protege)
{
  fair::handle door(client, name);
  fair::hold held(door, std::chrono::seconds(20));
  if (!held) {
    std::printf("not held: %s\n", fairlock_status_text(held.result()));
    return;
  }
  for (int i = 0; i < 2; i++) { /* the holder may write again */
    if (held.remaining() > std::chrono::seconds(1) && protege.write(held.token()))
      std::printf("written\n");
  }
  if (held.release() != FAIRLOCK_OK) std::printf("lost: somebody else may have written\n");
}

int main(int count, char **arguments)
{
  static unsigned char received[1024], sent[1024];
  if (count < 4) return 2;
  fairlock_config config = fairlock_config();
  config.receive_buffer = received;
  config.receive_size = sizeof received;
  config.send_buffer = sent;
  config.send_size = sizeof sent;
  port_posix socket;
  port_posix_tcp(&socket, "127.0.0.1", arguments[1]);
  fair::client client(config, socket.transport);
  if (client.status() != FAIRLOCK_OK) return 1;

  const int threads = std::atoi(arguments[3]);
  valve protege;
  std::vector<std::thread> all;
  for (int i = 0; i < threads; i++)
    all.emplace_back(work, std::ref(client), arguments[2], std::ref(protege));
  for (std::thread &one : all)
    one.join();
  return protege.writes() == 2 * threads ? 0 : 1;
}
