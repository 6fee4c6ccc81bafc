/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The contract of port.h as tests; see conformance.h.
 *
 * The peer obeys commands of 16 bytes: a letter, a number and a time in milliseconds, of 7 digits
 * each, and the end of a line. It serves one connection at a time, the one that has spoken last.
 *
 *   T  sends the time, in 10 digits, after the milliseconds
 *   C  says 'k' if the connection before this one was closed, 'x' if it was left open
 *   E  sends back all that comes
 *   D  sends that number of bytes of the pattern, one by one, the milliseconds apart
 *   S  sends that number of bytes of the pattern, and closes
 *   L  reads nothing for the milliseconds, then all up to MARK; says 'k' if it was the pattern
 *   R  resets the connection
 *   Q  says 'k', and refuses connections until the milliseconds are over
 *   F  says 'k', and leaves connections unanswered until the milliseconds are over
 *
 * Nothing here judges how fast a port is: times are compared with bounds that a busy machine keeps.
 */
#include "conformance.h"

#include <string.h>

/* Whatever is to come has come by then, unless something is broken. */
#define SOON_MS 10000U

/* The same where the peer makes pauses of some seconds. */
#define LATE_MS (6U * SOON_MS)

/* For so long the peer refuses connections, or leaves them unanswered. */
#define CLOSED_MS 3000U

/* For so long the peer reads nothing. */
#define UNREAD_MS 3000U

/* How often a rule is tried that a busy machine may miss, or that is broken by a time alone. */
#define TRIES 4

/* A call that takes this much longer than asked was not just waiting for a processor. */
#define SLACK_MS 2000U

/* When a port has taken this many bytes, the test gives up filling it. */
#define MOST_SENT 32000000U

#define PATTERN 251U /* byte i of the pattern is i % PATTERN */
#define MARK    0xffU

enum { COMMAND_SIZE = 16, TIME_SIZE = 10 };

static const struct port_conformance *port;
static bool broken; /* the rule under test */
static bool late;   /* by a time: as a machine that is busy for seconds may do, but not each time */
static uint8_t data[512], echoed[512];

static void note(const char *what)
{
  port->write("# ");
  port->write(what);
  port->write("\n");
  broken = true;
}

static bool require(bool condition, const char *what)
{
  if (!condition) note(what);
  return condition;
}

static bool require_in_time(bool condition, const char *what)
{
  late = late || !condition;
  return require(condition, what);
}

static uint32_t since(uint32_t began)
{
  return port_clock_ms() - began;
}

/* Lets time pass without using a connection. */
static void pass(uint32_t ms)
{
  struct port_mutex mutex;
  struct port_event event;
  uint32_t began = port_clock_ms();
  port_mutex_init(&mutex);
  port_event_init(&event);
  port_mutex_lock(&mutex);
  for (uint32_t spent = 0; spent < ms; spent = since(began))
    port_event_wait(&event, &mutex, ms - spent);
  port_mutex_unlock(&mutex);
  port_event_destroy(&event);
  port_mutex_destroy(&mutex);
}

/* The transport */

static int try_connect(uint32_t timeout_ms)
{
  uint32_t began = port_clock_ms();
  int status = port->transport->connect(port->transport->context, timeout_ms);
  require_in_time(since(began) <= timeout_ms + SLACK_MS, "connect() took much longer than asked");
  require(status == PORT_OK || (status <= PORT_WOULD_BLOCK && status >= PORT_NEEDS_INPUT),
          "connect() returned what is no status");
  return status;
}

static int try_send(const void *bytes, size_t size)
{
  uint32_t began = port_clock_ms();
  int sent = port->transport->send(port->transport->context, bytes, size);
  require_in_time(since(began) <= SLACK_MS, "send() blocked");
  require(sent != 0, "send() returned 0");
  require(sent >= 0 ? sent <= (int)size : sent == PORT_WOULD_BLOCK || sent == PORT_CLOSED,
          "send() returned what is no status");
  return sent;
}

static int try_recv(void *bytes, size_t size, uint32_t timeout_ms)
{
  uint32_t began = port_clock_ms();
  int got = port->transport->recv(port->transport->context, bytes, size, timeout_ms);
  require_in_time(since(began) <= timeout_ms + SLACK_MS, "recv() took much longer than asked");
  require(got != 0, "recv() returned 0");
  require(got >= 0 ? got <= (int)size
                   : got == PORT_WOULD_BLOCK || got == PORT_CLOSED || got == PORT_UNTRUSTED,
          "recv() returned what is no status");
  return got;
}

static void hang_up(void)
{
  port->transport->close(port->transport->context);
}

/* Connects, as the client does: after a failure it closes, pauses and starts over. */
static bool call_peer(void)
{
  uint32_t began = port_clock_ms();
  do {
    int status = try_connect(100);
    if (status == PORT_OK) return true;
    if (status == PORT_WOULD_BLOCK || status == PORT_NEEDS_INPUT) continue;
    hang_up();
    pass(50);
  } while (since(began) < SOON_MS && !broken);
  note("the peer is not reached");
  return false;
}

static bool send_all(const void *bytes, size_t size)
{
  const uint8_t *at = bytes;
  uint32_t began = port_clock_ms();
  while (size > 0) {
    int sent = try_send(at, size);
    if (sent == 0 || sent == PORT_CLOSED || since(began) > SOON_MS) {
      note("a few bytes cannot be sent");
      return false;
    }
    if (sent > 0) {
      at += sent;
      size -= (size_t)sent;
    } else {
      pass(1);
    }
  }
  return true;
}

/* Receives size bytes; returns how many came before the connection or the time ended. */
static size_t receive_within(uint8_t *bytes, size_t size, uint32_t time_ms)
{
  uint32_t began = port_clock_ms();
  size_t done = 0;
  while (done < size && since(began) < time_ms && !broken) {
    int got = try_recv(bytes + done, size - done, 200);
    if (got > 0) done += (size_t)got;
    else if (got != PORT_WOULD_BLOCK) break;
  }
  return done;
}

static size_t receive(uint8_t *bytes, size_t size)
{
  return receive_within(bytes, size, SOON_MS);
}

static void put_digits(char *text, uint32_t number)
{
  for (int i = 7; i > 0; i--, number /= 10)
    text[i - 1] = (char)('0' + number % 10);
}

static bool command(char letter, uint32_t number, uint32_t ms)
{
  char text[COMMAND_SIZE];
  text[0] = letter;
  put_digits(text + 1, number);
  put_digits(text + 8, ms);
  text[COMMAND_SIZE - 1] = '\n';
  return send_all(text, sizeof text);
}

/* A connection on which the peer does this. */
static bool call(char letter, uint32_t number, uint32_t ms)
{
  return call_peer() && command(letter, number, ms);
}

static bool peer_agrees(void)
{
  uint8_t answer = 0;
  return require(receive(&answer, 1) == 1 && answer == 'k', "the peer does not answer");
}

/* The peer's time. */
static bool ask_time(uint32_t after_ms, uint32_t *time)
{
  uint8_t digits[TIME_SIZE];
  if (!command('T', 0, after_ms)) return false;
  if (!require(receive(digits, TIME_SIZE) == TIME_SIZE, "the peer does not say the time"))
    return false;
  *time = 0;
  for (int i = 0; i < TIME_SIZE; i++) {
    if (!require(digits[i] >= '0' && digits[i] <= '9',
                 "what came is no time: not from the peer, or garbled"))
      return false;
    *time = *time * 10 + (uint32_t)(digits[i] - '0');
  }
  return true;
}

/* What is sent comes back. Each value of a byte is tried. */
static bool bytes_come_back(void)
{
  uint32_t value = 0;
  if (!call('E', 0, 0)) return false;
  for (size_t size = 1; size <= sizeof data && !broken; size += size / 2 + 1) {
    for (size_t i = 0; i < size; i++)
      data[i] = (uint8_t)value++;
    if (!send_all(data, size)) return false;
    require(receive(echoed, size) == size, "not all of an echo came");
    require(broken || memcmp(data, echoed, size) == 0, "an echo is not what was sent");
  }
  hang_up();
  return require(broken || value > 256, "not every byte was tried") && !broken;
}

/* The clock */

/* Reading the clock has to show that it advances: everything else here relies on that. */
static bool clock_goes_on(void)
{
  uint32_t began = port_clock_ms();
  for (uint32_t i = 0; i < 5000000; i++) {
    if (port_clock_ms() != began) return true;
  }
  return false;
}

static void clock_never_goes_back(void)
{
  uint32_t began = port_clock_ms();
  uint32_t last = began;
  while (last - began < 300 && !broken) {
    uint32_t now = port_clock_ms();
    require(now - last < UINT32_MAX / 2, "it went back");
    last = now;
  }
}

/*
 * Compares the time that passed on the port's clock with that on the peer's, between the peer's
 * first and its last answer. Each answer was given at some time between the question and its
 * arrival; nothing else is assumed. Most of the time is spent in recv(), where a device may sleep.
 * Where bytes do not come back as they were sent, the clock is not to blame.
 */
static void clock_keeps_time(void)
{
  uint32_t first = 0;
  uint32_t last = 0;
  uint32_t asked[2], answered[2];
  if (!bytes_come_back() || !call_peer()) return;
  asked[0] = port_clock_ms();
  if (!ask_time(0, &first)) return;
  answered[0] = port_clock_ms();
  if (!ask_time(1500, &last)) return;
  asked[1] = port_clock_ms();
  if (!ask_time(0, &last)) return;
  answered[1] = port_clock_ms();
  uint32_t passed = last - first;
  uint32_t leeway = passed / 100 + 2;
  require(answered[1] - asked[0] + leeway >= passed, "it is slow, or stands still in a wait");
  require(asked[1] - answered[0] <= passed + leeway, "it is fast");
}

/* connect() and close() */

static void connect_reaches(void)
{
  uint32_t time;
  hang_up();
  hang_up();
  for (int i = 0; i < 2 && call_peer(); i++) {
    (void)ask_time(0, &time);
    hang_up();
    hang_up();
  }
}

/*
 * Has the peer let nobody in for CLOSED_MS, by Q or F. Notes when it was asked to: what ends before
 * CLOSED_MS have passed since then has met nobody, however busy the machine is.
 */
static bool shut_peer(char letter, uint32_t *asked)
{
  if (!call_peer()) return false;
  *asked = port_clock_ms();
  if (!command(letter, 0, CLOSED_MS) || !peer_agrees()) return false;
  hang_up();
  return true;
}

/* False: the peer may have listened again before there was an answer. */
static bool tries_closed_port(void)
{
  uint32_t asked;
  int status;
  if (!shut_peer('Q', &asked)) return true;
  do {
    status = try_connect(200);
  } while ((status == PORT_WOULD_BLOCK || status == PORT_NEEDS_INPUT) &&
           since(asked) < CLOSED_MS - 500);
  bool in_time = since(asked) < CLOSED_MS;
  require(status != PORT_OK || !in_time, "PORT_OK where nobody listens");
  require(status == PORT_OK || status == PORT_UNREACHABLE || status == PORT_CLOSED || !in_time,
          "no PORT_UNREACHABLE where nobody listens");
  hang_up();
  (void)call_peer();
  return in_time;
}

static void connect_is_refused(void)
{
  bool in_time = false;
  for (int i = 0; i < TRIES && !in_time && !broken; i++)
    in_time = tries_closed_port();
  require(in_time || broken, "connect() is not done while nobody listens");
}

/* An attempt that is given up half-way leaves no trace. */
static void connect_keeps_to_its_time(void)
{
  uint32_t asked;
  if (!shut_peer('F', &asked)) return;
  uint32_t began = port_clock_ms();
  for (uint32_t i = 0; since(began) < 600 && !broken; i++) {
    bool connected = try_connect(i % 2 * 100) == PORT_OK;
    require(!connected || since(asked) >= CLOSED_MS, "PORT_OK where nobody answers");
  }
  hang_up();
  (void)call_peer();
}

/* The first time, the connection before may have been that of a device that was reset. */
static void close_ends_the_connection(void)
{
  for (int i = 0; i < 12 && !broken; i++) {
    uint8_t answer = 0;
    if (!call('C', 0, 0) || !require(receive(&answer, 1) == 1, "the peer does not answer")) return;
    require(i == 0 || answer == 'k', "the peer still has the connection before");
    hang_up();
  }
}

static void close_leaves_nothing(void)
{
  static const char fresh[] = {'n', 'e', 'w', '!'};
  for (int i = 0; i < 3 && !broken; i++) {
    if (!call('D', 300, 0)) return;
    require(receive(data, 1) == 1, "the peer does not send");
    pass(100);
    hang_up();
    if (!call('E', 0, 0) || !send_all(fresh, sizeof fresh)) return;
    require(receive(data, sizeof fresh) == sizeof fresh && memcmp(data, fresh, sizeof fresh) == 0,
            "something of the old connection came out of the next");
    hang_up();
  }
}

/* send() and recv() */

static void bytes_arrive(void)
{
  (void)bytes_come_back();
}

/*
 * The bytes come one by one: a recv() that collects gets all of them together with others. So does a
 * task that has to wait for a processor, but not each time.
 */
static void recv_returns_with_the_first_byte(void)
{
  int got = 0;
  int alone = 0;
  uint32_t began = port_clock_ms();
  if (!call('D', 50, 200)) return;
  while (alone < 2 && got < 50 && since(began) < 2 * SOON_MS && !broken) {
    int some = try_recv(data, sizeof data, PORT_WAIT_MAX_MS);
    if (some > 0) got += some;
    else if (!require(some == PORT_WOULD_BLOCK, "the connection was closed")) break;
    alone += some == 1;
  }
  require(got > 0, "no byte came");
  require(alone >= 2, "recv() waits for more when it has something");
}

static void recv_waits(void)
{
  uint32_t rounds = 0;
  uint32_t time;
  if (!call_peer() || !ask_time(0, &time)) return;
  require(try_recv(data, sizeof data, 0) == PORT_WOULD_BLOCK, "nothing came, and recv() says else");
  uint32_t began = port_clock_ms();
  for (; since(began) < 300 && !broken; rounds++)
    require(try_recv(data, sizeof data, 50) == PORT_WOULD_BLOCK,
            "nothing came, and recv() says else");
  require(rounds <= 300, "recv() returns at once instead of waiting");
}

/* Sends the pattern from *total on until the port is full. False: it never is, or fails. */
static bool fill(uint32_t *total)
{
  while (*total < MOST_SENT && !broken) {
    for (size_t i = 0; i < sizeof data; i++)
      data[i] = (uint8_t)((*total + i) % PATTERN);
    int sent = try_send(data, sizeof data);
    if (sent == PORT_WOULD_BLOCK) return true;
    if (!require(sent > 0, "the connection was closed")) return false;
    *total += (uint32_t)sent;
  }
  return false;
}

/*
 * Keeps the port full until a recv() returns before its time because there is room. It may miss the
 * room now and then: not every system reports a little room, or room that comes late. False: it did,
 * and the peer has read on since, faster than this fills the port.
 */
static bool waits_for_room(uint32_t *total)
{
  uint32_t filled = *total;
  uint32_t began = port_clock_ms();
  bool told = false;
  bool full = true;
  while (full && !told && since(began) < LATE_MS && !broken) {
    uint32_t before = *total;
    uint32_t now = port_clock_ms();
    require(try_recv(echoed, 1, PORT_WAIT_MAX_MS) == PORT_WOULD_BLOCK,
            "nothing came, and recv() says else");
    bool early = since(now) < PORT_WAIT_MAX_MS;
    full = fill(total);
    told = early && *total > before;
  }
  require(*total > filled, "the peer reads, and there is no room");
  return told;
}

static bool is_told_of_room(void)
{
  static const uint8_t mark = MARK;
  uint32_t total = 0;
  uint32_t asked = port_clock_ms();
  if (!call('L', 0, UNREAD_MS)) return false;
  if (!fill(&total)) {
    late = late || since(asked) >= UNREAD_MS; /* the peer may have begun to read */
    note("the way to the peer is never full");
    return false;
  }
  bool told = waits_for_room(&total);
  uint8_t answer = 0;
  if (!broken && send_all(&mark, 1))
    require(receive_within(&answer, 1, LATE_MS) == 1 && answer == 'k',
            "not all that send() took arrived");
  hang_up();
  return told;
}

static void send_does_not_block(void)
{
  bool told = false;
  for (int i = 0; i < TRIES && !told && !broken; i++)
    told = is_told_of_room();
  require(told || broken, "recv() does not return when there is room again");
}

/*
 * Sends to a peer that has closed, which answers with a reset. False: send() has returned
 * PORT_CLOSED. At first it may not, because what came before the end is still unread.
 */
static bool send_after_the_end(void)
{
  static const uint8_t byte = 'x';
  for (int i = 0; i < 5; i++, pass(20)) {
    if (try_send(&byte, 1) != PORT_CLOSED) continue;
    require(i > 0, "send() returned PORT_CLOSED before the last byte");
    return false;
  }
  return true;
}

/*
 * Receives what the peer has sent before it closed. With `sends`, a stack may drop it when the reset
 * comes; but if send() says that all is over, nothing may come any more.
 */
static void receive_to_the_end(uint32_t size, bool sends)
{
  uint32_t total = 0;
  bool over = sends && !send_after_the_end();
  uint32_t began = port_clock_ms();
  int got;
  do {
    got = try_recv(data, 64, 200);
    require(got < 0 || !over, "send() returned PORT_CLOSED before the last byte");
    for (int j = 0; j < got; j++)
      require(data[j] == total++ % PATTERN, "what came is not what was sent");
  } while ((got > 0 || got == PORT_WOULD_BLOCK) && since(began) < SOON_MS && !broken);
  require(got == PORT_CLOSED, "no PORT_CLOSED when the peer has closed");
  require(total == size || sends, "PORT_CLOSED before the last byte");
}

/* The bytes may come together with the end of the connection, or in pieces. */
static void last_byte_comes_before_the_end(void)
{
  static const uint32_t sizes[] = {1, 100, 3000};
  for (unsigned i = 0; i < 2 * sizeof sizes / sizeof *sizes && !broken; i++) {
    if (!call('S', sizes[i / 2], 0)) return;
    pass(150);
    receive_to_the_end(sizes[i / 2], i % 2 != 0);
    hang_up();
  }
}

static void reset_is_noticed(void)
{
  int got = PORT_WOULD_BLOCK;
  if (!call('R', 0, 0)) return;
  uint32_t began = port_clock_ms();
  while (got == PORT_WOULD_BLOCK && since(began) < SOON_MS && !broken)
    got = try_recv(data, sizeof data, 200);
  require(got == PORT_CLOSED, "no PORT_CLOSED when the peer has reset the connection");
  hang_up();
  (void)call_peer();
}

/* Tasks */

/* What the test and its second task share. */
static struct {
  struct port_mutex mutex;
  struct port_event event;
  void (*run)(void);
  /* read and changed with the mutex locked; volatile, as a mutex that is wrong may keep nothing apart */
  volatile bool inside, clash, done, set;
  volatile uintptr_t task;
  volatile uint32_t took_ms;
} shared;

static bool look_at(const volatile bool *flag)
{
  port_mutex_lock(&shared.mutex);
  bool value = *flag;
  port_mutex_unlock(&shared.mutex);
  return value;
}

static void change(volatile bool *flag, bool value)
{
  port_mutex_lock(&shared.mutex);
  *flag = value;
  port_mutex_unlock(&shared.mutex);
}

static void second_task(void *context)
{
  (void)context;
  shared.run();
  change(&shared.done, true);
}

static void prepare(void (*run)(void))
{
  memset(&shared, 0, sizeof shared);
  port_mutex_init(&shared.mutex);
  port_event_init(&shared.event);
  shared.run = run;
}

static bool start(void)
{
  return require(port->start(second_task, NULL), "there is no second task");
}

/* Waits for the end of the second task. If it does not end, what it uses is not destroyed. */
static void join(void)
{
  uint32_t began = port_clock_ms();
  bool done = false;
  while (!done && since(began) < 2 * SOON_MS) {
    pass(2);
    done = look_at(&shared.done);
  }
  if (!require(done, "the second task does not end")) return;
  port_event_destroy(&shared.event);
  port_mutex_destroy(&shared.mutex);
}

static void tell_task(void)
{
  shared.task = port_task_self();
}

static void task_has_a_name(void)
{
  uintptr_t self = port_task_self();
  require(self != 0, "it is 0");
  require(self == port_task_self(), "it changes");
  if (port->start == NULL) return;
  prepare(tell_task);
  if (!start()) return;
  join();
  require(shared.task != 0, "it is 0");
  require(shared.task != self, "two tasks have the same");
}

/* Stays inside long enough for the other task to find it there, however tasks are switched. */
static void enter_often(void)
{
  for (int i = 0; i < 200; i++) {
    port_mutex_lock(&shared.mutex);
    if (shared.inside) shared.clash = true;
    shared.inside = true;
    uint32_t began = port_clock_ms();
    while (since(began) < 2)
      continue;
    shared.inside = false;
    port_mutex_unlock(&shared.mutex);
    if (i % 16 == 0) pass(1);
  }
}

static void mutex_shuts_out(void)
{
  prepare(enter_often);
  if (!start()) return;
  enter_often();
  join();
  require(!shared.clash, "two tasks were inside");
}

/* Waits until the event is set. Returns how long that took. */
static uint32_t wait_until_set(void)
{
  uint32_t began = port_clock_ms();
  port_mutex_lock(&shared.mutex);
  while (!shared.set && since(began) < SOON_MS)
    port_event_wait(&shared.event, &shared.mutex, SOON_MS);
  port_mutex_unlock(&shared.mutex);
  return since(began);
}

static void set_event(void)
{
  pass(100);
  port_mutex_lock(&shared.mutex);
  shared.set = true;
  port_event_set(&shared.event);
  port_mutex_unlock(&shared.mutex);
}

static void event_wakes(void)
{
  prepare(set_event);
  if (!start()) return;
  uint32_t took = wait_until_set();
  join();
  require(shared.set, "the mutex is not free while a task waits");
  require(took < SOON_MS / 2, "setting it wakes nobody");
}

static void event_is_not_lost(void)
{
  prepare(NULL);
  port_mutex_lock(&shared.mutex);
  port_event_set(&shared.event);
  uint32_t began = port_clock_ms();
  port_event_wait(&shared.event, &shared.mutex, SOON_MS / 2);
  require(since(began) < SOON_MS / 4, "set before the wait, it is lost");
  port_mutex_unlock(&shared.mutex);
  port_event_destroy(&shared.event);
  port_mutex_destroy(&shared.mutex);
}

static void event_waits(void)
{
  uint32_t rounds = 0;
  struct port_mutex mutex;
  struct port_event event;
  port_mutex_init(&mutex);
  port_event_init(&event);
  port_mutex_lock(&mutex);
  uint32_t began = port_clock_ms();
  for (; since(began) < 300 && !broken; rounds++) {
    uint32_t now = port_clock_ms();
    port_event_wait(&event, &mutex, 50);
    require_in_time(since(now) <= 50 + SLACK_MS, "it took much longer than asked");
  }
  require(rounds <= 600, "it returns at once instead of waiting");
  port_mutex_unlock(&mutex);
  port_event_destroy(&event);
  port_mutex_destroy(&mutex);
}

/* A send() that takes longer has waited for the other task, or for a processor. */
#define BESIDE_MS 300U

/*
 * Sends a byte at a time while the other task is inside recv(), and notes the shortest time. One that
 * is short will do.
 */
static void send_beside(void)
{
  static const uint8_t byte = 'x';
  for (int i = 0; i < 8 && shared.took_ms >= BESIDE_MS; i++) {
    pass(100);
    uint32_t began = port_clock_ms();
    (void)port->transport->send(port->transport->context, &byte, 1);
    uint32_t took = since(began);
    if (look_at(&shared.inside) && took < shared.took_ms) shared.took_ms = took;
  }
  change(&shared.set, true);
}

/* The peer says nothing, so that recv() waits for all of its time. */
static void send_goes_beside_recv(void)
{
  if (!call('L', 0, UNREAD_MS)) return;
  prepare(send_beside);
  shared.took_ms = UINT32_MAX;
  shared.inside = true;
  if (!start()) return;
  uint32_t began = port_clock_ms();
  while (!look_at(&shared.set) && since(began) < 2 * SOON_MS && !broken)
    (void)try_recv(data, sizeof data, PORT_WAIT_MAX_MS);
  change(&shared.inside, false);
  join();
  require(shared.took_ms < BESIDE_MS, "send() waits for the end of recv()");
}

/* The rules */

struct rule {
  const char *name;
  void (*test)(void);
  /* it needs a second task */
  bool tasks;
};

static const struct rule rules[] = {
    {"clock: never goes back", clock_never_goes_back, false},
    {"event: waits, and for no longer than asked", event_waits, false},
    {"connect: reaches the peer, again and again", connect_reaches, false},
    {"bytes arrive as they were sent", bytes_arrive, false},
    {"clock: keeps time", clock_keeps_time, false},
    {"connect: says that it is refused", connect_is_refused, false},
    {"connect: keeps to its time", connect_keeps_to_its_time, false},
    {"recv: returns with the first byte", recv_returns_with_the_first_byte, false},
    {"recv: waits, and for no longer than asked", recv_waits, false},
    {"send: does not block, and recv() tells of room", send_does_not_block, false},
    {"recv: the last byte comes before PORT_CLOSED", last_byte_comes_before_the_end, false},
    {"recv: tells of a reset", reset_is_noticed, false},
    {"close: leaves nothing for the next connection", close_leaves_nothing, false},
    {"close: ends the connection", close_ends_the_connection, false},
    {"task: has a name of its own", task_has_a_name, false},
    {"mutex: shuts out", mutex_shuts_out, true},
    {"event: set before the wait, is not lost", event_is_not_lost, true},
    {"event: wakes a task", event_wakes, true},
    {"send: goes beside recv()", send_goes_beside_recv, true},
};

static void say_number(int number)
{
  char text[12] = {0};
  size_t at = sizeof text - 1;
  do {
    text[--at] = (char)('0' + number % 10);
    number /= 10;
  } while (number > 0);
  port->write(text + at);
}

static bool keeps(const struct rule *rule)
{
  int tries = 0;
  do {
    broken = late = false;
    rule->test();
    hang_up();
  } while (broken && late && ++tries < TRIES);
  port->write(broken ? "not ok " : "ok ");
  port->write(rule->name);
  port->write("\n");
  return !broken;
}

int port_conformance_run(const struct port_conformance *of)
{
  int tried = 0;
  int failed = 0;
  port = of;
  if (!clock_goes_on()) {
    port->write("# port_clock_ms() stands still: nothing else can be tried\n"
                "not ok clock: goes on\n");
    return 1;
  }
  for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) {
    if (rules[i].tasks && port->start == NULL) continue;
    if (port->only != NULL && strstr(rules[i].name, port->only) == NULL) continue;
    tried++;
    failed += !keeps(&rules[i]);
  }
  port->write("# ");
  say_number(tried);
  port->write(" rules, ");
  say_number(failed);
  port->write(" broken\n");
  return failed;
}
