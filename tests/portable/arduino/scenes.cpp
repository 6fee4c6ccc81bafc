/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scenes with the class for Arduino against a real server: scenes NAME PORT [ARGUMENT...]. What the
 * server, or another holder, has to do meanwhile is done by test_class.sh, which waits for what is
 * printed here. The exit status is 0, or the line of the first check that failed, cut to a byte.
 */
#include <Ethernet.h>
#include <Fairlock.h>

#include <stdio.h>
#include <unistd.h>

static struct fairlock_counters counters_of(struct fairlock_client *client)
{
  struct fairlock_counters counters;
  fairlock_read_counters(client, &counters, sizeof counters);
  return counters;
}

#define CHECK(condition)                                                                           \
  do {                                                                                             \
    if (!(condition)) {                                                                            \
      (void)fprintf(stderr, "line %d: %s\n", __LINE__, #condition);                                \
      exit(__LINE__ % 255 + 1);                                                                    \
    }                                                                                              \
  } while (0)

static uint16_t port;
static char **arguments;

static EthernetClient net, other_net, third_net;
static FairlockClient locks, other, third;
static FairlockMutex door(locks, "door"), gate(locks, "gate"), other_door(other, "door");
static FairlockShared place(locks, "places", 2), other_place(other, "places", 2),
    third_place(third, "places", 2);

static unsigned granted, failed, lost;
static FairlockHandle *last;

static void say(const char *text)
{
  (void)puts(text);
  (void)fflush(stdout);
}

static void on_granted(FairlockHandle &lock)
{
  granted++;
  last = &lock;
}

static void on_failed(FairlockHandle &lock)
{
  failed++;
  last = &lock;
}

/* It begins nothing here, and does no harm. */
static void on_lost(FairlockHandle &lock)
{
  lost++;
  last = &lock;
  CHECK(lock.status() == FAIRLOCK_LOST);
  CHECK(!lock.held() && lock.remaining() == 0);
  CHECK(!lock.release() && !lock.startAcquire() && !lock.acquire(1000) && !locks.connect());
  CHECK(lock.status() == FAIRLOCK_IN_PROGRESS);
  CHECK(locks.poll() > 0);
  locks.end();
}

static void watch(FairlockHandle &lock)
{
  lock.onGranted(on_granted);
  lock.onFailed(on_failed);
  lock.onLost(on_lost);
}

static void begin(FairlockClient &client, EthernetClient &over)
{
  CHECK(client.begin(over, "localhost", port));
  client.blocksFor(200);
}

/* Goes on as a loop() does until the condition holds. */
#define LOOP_UNTIL(condition)                                                                      \
  do {                                                                                             \
    locks.poll();                                                                                  \
    other.poll();                                                                                  \
    delay(1);                                                                                      \
  } while (!(condition))

/* A connection of the client is broken from outside, and it has noticed. */
static void wait_for_break(EthernetClient &over)
{
  say("break");
  LOOP_UNTIL(!over.connected());
}

/* Each adds to the number in the file as often, while it holds. */
static void count()
{
  begin(locks, net);
  for (int rounds = atoi(arguments[1]); rounds > 0; rounds--) {
    FairlockHold hold(door, 120000);
    CHECK(hold);
    int number = 0;
    FILE *file = fopen(arguments[0], "r");
    CHECK(file != nullptr && fscanf(file, "%d", &number) == 1 && fclose(file) == 0);
    delay(5);
    file = fopen(arguments[0], "w");
    CHECK(file != nullptr && fprintf(file, "%d\n", number + 1) > 0 && fclose(file) == 0);
  }
}

static void holds()
{
  begin(locks, net);
  begin(other, other_net);
  {
    FairlockHold hold(door, 10000);
    CHECK(hold && door.held() && door.remaining() > 0 && door.token() > 0);
    FairlockHold again(door, 0);
    CHECK(again && fairlock_hold_count(door.native()) == 2);
    CHECK(again.release() && !again && !again.release() && door.held());
    CHECK(!other_door.tryAcquire() && other_door.status() == FAIRLOCK_BUSY);
    FairlockHold too_late(other_door, 300);
    CHECK(!too_late && other_door.status() == FAIRLOCK_TIMEOUT);
    CHECK(strcmp(other_door.statusText(), fairlock_status_text(FAIRLOCK_TIMEOUT)) == 0);
  }
  CHECK(!door.held() && door.remaining() == 0 && door.token() == 0);
  {
    FairlockMutex passing(locks, "door");
    CHECK(passing.acquire(10000) && passing.status() == FAIRLOCK_OK);
  }
  CHECK(other_door.tryAcquire() && other_door.release());
  CHECK(!other_door.release() && other_door.status() == FAIRLOCK_NOT_HELD);
}

/* What it prints is read by the test, too. */
static void token()
{
  begin(locks, net);
  CHECK(door.acquire(10000));
  char text[24];
  (void)snprintf(text, sizeof text, "%llu", static_cast<unsigned long long>(door.token()));
  CHECK(door.printToken(Serial) == strlen(text));
  (void)printf(" %s %s\n", text, door.name());
  CHECK(door.release());
}

static void callbacks()
{
  begin(locks, net);
  begin(other, other_net);
  watch(door);
  CHECK(other_door.acquire(10000));
  CHECK(door.startAcquire() && door.pending() && door.status() == FAIRLOCK_PENDING);
  CHECK(!door.startAcquire() && !door.startRelease()); /* one at a time */
  LOOP_UNTIL(counters_of(locks.native()).requests > 0);
  CHECK(granted == 0 && failed == 0);
  CHECK(other_door.startRelease());
  LOOP_UNTIL(!door.pending() && !other_door.pending());
  CHECK(granted == 1 && failed == 0 && last == &door && door.status() == FAIRLOCK_OK);
  CHECK(other_door.status() == FAIRLOCK_OK);
  other_door.onFailed(on_failed);
  CHECK(other_door.startAcquire(300));
  LOOP_UNTIL(failed == 1);
  CHECK(last == &other_door && other_door.status() == FAIRLOCK_TIMEOUT && !other_door.pending());
  CHECK(other_door.startAcquire());
  LOOP_UNTIL(counters_of(other.native()).requests > 3);
  CHECK(other_door.cancel());
  LOOP_UNTIL(failed == 2);
  CHECK(other_door.status() == FAIRLOCK_CANCELLED && !other_door.cancel());
  CHECK(door.release() && lost == 0 && granted == 1);
}

/* onGranted may begin what it likes. */
static void release_at_once(FairlockHandle &lock)
{
  granted++;
  CHECK(lock.release() && lock.status() == FAIRLOCK_OK);
  if (granted < 3) CHECK(lock.startAcquire());
}

static void from_callbacks()
{
  begin(locks, net);
  door.onGranted(release_at_once);
  CHECK(door.startAcquire());
  LOOP_UNTIL(granted == 3);
  CHECK(!door.held() && !door.pending());
}

/* Somebody ends the hold. */
static void loss()
{
  locks.config.lease_ms = 3000;
  begin(locks, net);
  watch(door);
  CHECK(door.acquire(10000));
  say("break");
  LOOP_UNTIL(lost > 0);
  CHECK(last == &door && !door.held() && !door.tryAcquire() && door.status() == FAIRLOCK_LOST);
  CHECK(!door.release() && door.status() == FAIRLOCK_LOST);
  CHECK(door.acquire(10000) && door.release() && lost == 1);
}

/* The rest of the lease is longer than what connect() may take: the hold goes on. */
static void reconnects()
{
  locks.config.lease_ms = 6000;
  begin(locks, net);
  watch(door);
  CHECK(door.acquire(10000));
  uint64_t token = door.token();
  wait_for_break(net);
  uint32_t renewals = counters_of(locks.native()).renewals;
  LOOP_UNTIL(counters_of(locks.native()).renewals > renewals + 3);
  CHECK(net.connects == 2 && lost == 0 && door.held() && door.token() == token);
  CHECK(door.release());
}

/* It is not: loop() goes on, the loss is told in time, and only then it connects. */
static void waits_for_the_end()
{
  locks.config.lease_ms = 2000;
  begin(locks, net);
  locks.blocksFor(60000);
  watch(door);
  CHECK(door.acquire(10000));
  wait_for_break(net);
  unsigned turns = 0;
  LOOP_UNTIL(++turns > 0 && lost > 0);
  CHECK(net.connects == 1 && door.remaining() == 0);
  CHECK(turns > 20);
  CHECK(!door.release() && door.status() == FAIRLOCK_LOST);
  CHECK(door.acquire(10000) && net.connects == 2 && lost == 1 && door.release());
}

/* The same in a call that waits, which sleeps meanwhile: it looks at the clock now and then. */
static void waits_for_the_end_in_a_call()
{
  locks.config.lease_ms = 2000;
  begin(locks, net);
  locks.blocksFor(60000);
  watch(door);
  CHECK(door.acquire(10000));
  wait_for_break(net);
  unsigned long looks = millis_calls;
  CHECK(gate.acquire(60000));
  CHECK(millis_calls - looks < 20000);
  CHECK(lost == 1 && last == &door && net.connects == 2 && gate.release());
}

/* connect() takes longer than it was said to: the loss is told when it returns, and never denied. */
static void slow_connect()
{
  locks.config.lease_ms = 2000;
  begin(locks, net);
  watch(door);
  CHECK(door.acquire(10000));
  net.connect_takes_ms = 3000;
  wait_for_break(net);
  while (net.connects == 1)
    locks.poll();
  CHECK(!door.held() && door.remaining() == 0 && door.token() == 0);
  LOOP_UNTIL(lost > 0);
  CHECK(lost == 1 && locks.blocksFor() >= 3000);
  net.connect_takes_ms = 0;
  CHECK(!door.release() && door.acquire(10000) && door.release());
}

/* So is a write(), with which the lease would have been renewed. */
static void slow_write()
{
  locks.config.lease_ms = 2000;
  begin(locks, net);
  watch(door);
  CHECK(door.acquire(10000));
  net.write_takes_ms = 3000;
  unsigned before = net.writes;
  while (net.writes == before)
    locks.poll();
  CHECK(!door.held());
  net.write_takes_ms = 0;
  LOOP_UNTIL(lost > 0);
  CHECK(lost == 1 && locks.blocksFor() >= 3000);
  CHECK(!door.release() && door.acquire(10000) && door.release());
}

/* The call of another client would be too long as well. */
static void two_clients()
{
  locks.config.lease_ms = 2000;
  begin(locks, net);
  begin(other, other_net);
  other.blocksFor(60000);
  watch(gate);
  CHECK(gate.acquire(10000) && other_door.startAcquire());
  uint32_t renewals = counters_of(locks.native()).renewals;
  LOOP_UNTIL(counters_of(locks.native()).renewals > renewals + 3);
  CHECK(other_net.connects == 0 && gate.held() && lost == 0);
  CHECK(gate.release());
  LOOP_UNTIL(!other_door.pending());
  CHECK(other_door.held() && other_door.release());
}

/* Nobody is there at the start, and then somebody is. */
static void server_down()
{
  locks.config.offline_ms = 1000;
  net.refuses = true;
  begin(locks, net);
  watch(door);
  CHECK(!locks.connect() && locks.status() == FAIRLOCK_UNREACHABLE);
  CHECK(strcmp(locks.statusText(), fairlock_status_text(FAIRLOCK_UNREACHABLE)) == 0);
  CHECK(locks.error() == FAIRLOCK_UNREACHABLE);
  CHECK(!door.tryAcquire() && door.status() == FAIRLOCK_UNREACHABLE);
  CHECK(!door.acquire(60000) && door.status() == FAIRLOCK_UNREACHABLE);
  CHECK(door.startAcquire());
  LOOP_UNTIL(failed == 1);
  CHECK(door.status() == FAIRLOCK_UNREACHABLE && granted == 0);
  FairlockHold hold(door, 1000);
  CHECK(!hold);
  net.refuses = false;
  CHECK(locks.connect() && locks.status() == FAIRLOCK_OK && locks.error() == FAIRLOCK_OK);
  CHECK(door.tryAcquire() && door.release());
}

/* The server goes away, and comes back, while somebody waits. */
static void server_away()
{
  locks.config.offline_ms = FAIRLOCK_FOREVER;
  begin(locks, net);
  begin(other, other_net);
  watch(door);
  CHECK(other_door.acquire(10000) && door.startAcquire());
  LOOP_UNTIL(counters_of(locks.native()).requests > 0);
  net.refuses = true;
  wait_for_break(net);
  unsigned before = net.connects;
  LOOP_UNTIL(net.connects > before + 2);
  net.refuses = false;
  CHECK(other_door.release());
  LOOP_UNTIL(granted == 1);
  CHECK(door.release());
}

/* A Client that does not tell of room, takes a few bytes at a time, and then fails. */
static void poor_client()
{
  net.tells_room = false;
  net.takes_at_most = 17;
  begin(locks, net);
  CHECK(door.acquire(10000) && net.writes > 10 && net.connects == 1);
  net.takes_nothing = true;
  LOOP_UNTIL(door.startRelease() || !door.held());
  unsigned before = net.connects, writes = net.writes;
  LOOP_UNTIL(net.connects > before);
  CHECK(net.writes - writes <=
        2); /* what may be on its way is not offered again, but for the greeting */
  net.takes_nothing = false;
  LOOP_UNTIL(!door.pending());
  CHECK(!door.held() && other.begin(other_net, IPAddress(127, 0, 0, 1), port));
  CHECK(other_door.acquire(10000) && other_door.release());
}

static void shares()
{
  begin(locks, net);
  begin(other, other_net);
  begin(third, third_net);
  FairlockMutex alone(third, "places");
  CHECK(place.acquire(10000) && other_place.acquire(10000));
  CHECK(place.held() && other_place.held() && place.token() != other_place.token());
  CHECK(!third_place.tryAcquire() && third_place.status() == FAIRLOCK_BUSY);
  CHECK(!alone.tryAcquire() && alone.status() == FAIRLOCK_BUSY);
  say("two");
  (void)getchar();
  FairlockShared differs(third, "places", 3);
  CHECK(!differs.tryAcquire() && differs.status() == FAIRLOCK_BUSY); /* the smaller limit binds */
  third_place.onGranted(on_granted);
  CHECK(third_place.startAcquire() && place.release());
  do
    third.poll();
  while (granted == 0);
  CHECK(third_place.held() && other_place.held());
  CHECK(other_place.release() && third_place.release());
  CHECK(alone.acquire(10000) && alone.release());
}

/* What cannot be, and begins and ends. */
static void beginnings()
{
  CHECK(!door.acquire(1000) && !door.startAcquire() && !door.release() && !door.cancel());
  CHECK(door.status() == FAIRLOCK_INVALID && !door.pending() && !door.held());
  CHECK(door.token() == 0 && locks.poll() > 0 && !locks.connect());
  locks.end();
  locks.config.waiter_ms = 1;
  CHECK(!locks.begin(net, "localhost", port) && locks.status() == FAIRLOCK_INVALID);
  locks.config.waiter_ms = 0;
  CHECK(locks.begin(net, "localhost", port) && !locks.begin(net, "localhost", port));
  CHECK(!locks.begin(net, IPAddress(127, 0, 0, 1), port) && locks.status() == FAIRLOCK_OK);
  CHECK(door.acquire(10000));
  locks.end();
  CHECK(!door.held() && !door.tryAcquire());
  CHECK(locks.begin(net, IPAddress(127, 0, 0, 1), port));
  CHECK(gate.acquire(10000) && gate.release());
  FairlockMutex nameless(locks, "");
  CHECK(!nameless.acquire(0) && nameless.status() == FAIRLOCK_INVALID);
  EthernetClient late_net;
  char longest[FAIRLOCK_ARDUINO_NAME_SIZE + 2];
  memset(longest, 'x', sizeof longest);
  longest[sizeof longest - 1] = 0;
  FairlockMutex too_long(locks, longest), fits(locks, longest + 1);
  CHECK(!too_long.acquire(0) && too_long.status() == FAIRLOCK_TOO_LONG);
  CHECK(fits.acquire(10000) && fits.release());
  FairlockClient late;
  CHECK(late.begin(late_net, "localhost", port));
  FairlockShared later(late, "places", 2);
  CHECK(later.acquire(10000) && later.release());
}

/* Time that millis() does not know of counts. */
static void sleeps()
{
  locks.config.lease_ms = 10000;
  begin(locks, net);
  watch(door);
  CHECK(door.acquire(10000));
  fairlockSlept(3000);
  CHECK(door.held() && door.remaining() <= 7000);
  fairlockSlept(8000);
  CHECK(!door.held());
  LOOP_UNTIL(lost == 1);
  CHECK(!door.release() && door.status() == FAIRLOCK_LOST);
  door.fixedLease(500);
  CHECK(door.acquire(60000) && door.remaining() <= 500);
}

static void refused()
{
  locks.config.password = "wrong";
  begin(locks, net);
  CHECK(!door.acquire(10000) && door.status() == FAIRLOCK_DENIED);
  LOOP_UNTIL(locks.error() == FAIRLOCK_DENIED);
  CHECK(strcmp(locks.errorText(), fairlock_status_text(FAIRLOCK_DENIED)) == 0);
}

static const struct {
  const char *name;
  void (*play)();
} scenes[] = {
    {"count", count},
    {"holds", holds},
    {"token", token},
    {"callbacks", callbacks},
    {"from_callbacks", from_callbacks},
    {"loss", loss},
    {"reconnects", reconnects},
    {"waits_for_the_end", waits_for_the_end},
    {"waits_for_the_end_in_a_call", waits_for_the_end_in_a_call},
    {"slow_connect", slow_connect},
    {"slow_write", slow_write},
    {"two_clients", two_clients},
    {"server_down", server_down},
    {"server_away", server_away},
    {"poor_client", poor_client},
    {"shares", shares},
    {"beginnings", beginnings},
    {"sleeps", sleeps},
    {"refused", refused},
};

int main(int count, char **words)
{
  CHECK(count > 2);
  (void)alarm(240);
  port = static_cast<uint16_t>(atoi(words[2]));
  arguments = words + 3;
  for (const auto &scene : scenes) {
    if (strcmp(scene.name, words[1]) != 0) continue;
    scene.play();
    return 0;
  }
  return 1;
}
