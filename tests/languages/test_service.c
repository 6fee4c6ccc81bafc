/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The client for other languages, function by function, against a real server: what service.h
 * promises, a lock that is freed in each of its states, signals, forks, and the end of a client.
 */
#include "scene.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

/* Options */

/* A client that cannot be made says this. */
static void refused(struct fls_options options, const char *words)
{
  char error[FLS_ERROR_SIZE] = "";
  options.size = sizeof options;
  CHECK(fls_open(&options, error) == NULL);
  if (!CHECK(strstr(error, words) != NULL)) printf("# \"%s\"\n", error);
}

static void test_wrong_options(void)
{
  const char *ours = "redis://localhost";
  begin();
  refused((struct fls_options){0}, "the URL: ");
  refused((struct fls_options){.url = ""}, "the URL: ");
  refused((struct fls_options){.url = "http://localhost"}, "the URL: ");
  refused((struct fls_options){.url = "redis://"}, "the URL: it names no host");
  refused((struct fls_options){.url = "redis://localhost/x"}, "is not a number");
  refused((struct fls_options){.url = "rediss://localhost"}, "TLS");
  refused((struct fls_options){.url = ours, .ca_file = "ca.crt"}, "it asks for no TLS, but");
  refused((struct fls_options){.url = ours, .lease_ms = 1}, "the options: ");
  refused((struct fls_options){.url = ours, .keep_ms = 29000}, "the options: ");
  refused((struct fls_options){.url = ours, .client_id = "a:b"}, "the options: ");
}

/* Nothing of what was refused stays open, and nothing of a client that has ended. */
static void test_descriptors(void)
{
  begin();
  int before = dup(0);
  refused((struct fls_options){.url = "redis://localhost", .keep_ms = 29000}, "options");
  for (int i = 0; i < 3; i++) {
    struct fls_client *client = open_service(NULL);
    CHECK((fcntl(fls_fd(client), F_GETFD) & FD_CLOEXEC) != 0);
    CHECK_EQUAL(acquire(make_lock(client, "door", 0)), FLS_OK);
    fls_close(client, SOON);
  }
  int after = dup(0);
  CHECK_EQUAL(after, before + 1);

  struct rlimit limit;
  CHECK_EQUAL(getrlimit(RLIMIT_NOFILE, &limit), 0);
  const struct rlimit none = {.rlim_cur = (rlim_t)after + 1, .rlim_max = limit.rlim_max};
  CHECK_EQUAL(setrlimit(RLIMIT_NOFILE, &none), 0);
  refused((struct fls_options){.url = "redis://localhost"}, "the system: ");
  CHECK_EQUAL(setrlimit(RLIMIT_NOFILE, &limit), 0);
  CHECK(close(before) == 0 && close(after) == 0);
}

static void test_options(void)
{
  char url[80];
  char text[FLS_ERROR_SIZE];
  begin();
  CHECK(raw_run(&redis, "ACL SETUSER alice on >se:cret ~* &* +@all"));
  (void)snprintf(url, sizeof url, "redis://alice:wrong@127.0.0.1:%d/3", server.port);
  struct fls_options options = {.size = sizeof options, .url = url};
  struct fls_client *client = open_by_url(&options);
  CHECK_EQUAL(fls_connect(client), FAIRLOCK_DENIED);
  fls_error(client, text);
  CHECK(strstr(text, "WRONGPASS") != NULL);
  fls_close(client, 0);

  char strings[3][8] = {"se:cret", "robot", "arm-3"};
  options.password = strings[0];
  options.client_id = strings[1];
  options.client_name = strings[2];
  client = open_by_url(&options);
  memset(strings, 'x', sizeof strings); /* they were copied */
  CHECK_EQUAL(fls_connect(client), FLS_OK);
  struct fls_lock *lock = make_lock(client, "door", 0);
  CHECK_EQUAL(acquire(lock), FLS_OK);
  fls_id(lock, text);
  CHECK_EQUAL(strncmp(text, "robot.", 6), 0);
  CHECK(strstr(raw_text(&redis, "CLIENT LIST"), "name=arm-3") != NULL);
  CHECK(raw_run(&redis, "SELECT 3"));
  CHECK_EQUAL(raw_number(&redis, "EXISTS door"), 1);
  fls_close(client, SOON);
  CHECK(nothing_left(&redis, "door"));
  CHECK(raw_run(&redis, "SELECT 0"));
  CHECK(raw_run(&redis, "ACL DELUSER alice"));
}

/* A caller who knows only the first of the options, and the first members of an event. */
static void test_older_caller(void)
{
  char url[64];
  (void)snprintf(url, sizeof url, "redis://127.0.0.1:%d", server.port);
  begin();
  struct fls_options options = {.size = offsetof(struct fls_options, client_id), .url = url};
  memset((char *)&options + options.size, 0xa5, sizeof options - options.size);
  struct fls_client *client = open_by_url(&options);
  struct fls_lock *lock = make_lock(client, "door", 5);
  CHECK_EQUAL(fls_acquire(lock, 0, FLS_RENEW, 1), FLS_PENDING);
  struct fls_event event;
  memset(&event, 0xa5, sizeof event);
  event.size = offsetof(struct fls_event, words);
  CHECK_EQUAL(fls_next(client, SOON, &event), 1);
  CHECK_EQUAL(event.user, 5);
  CHECK_EQUAL(event.what, FLS_ENDED);
  CHECK_EQUAL(event.words[0], (char)0xa5);
  fls_close(client, SOON);
}

static void test_unix_socket(void)
{
  char folder[40];
  char path[64];
  char url[80];
  struct server own = {0};
  begin();
  own_folder(folder);
  (void)snprintf(path, sizeof path, "%s/dump.rdb", folder); /* a name that the folder may have */
  (void)snprintf(url, sizeof url, "unix://%s", path);
  const char *const settings[] = {"--unixsocket", path, NULL};
  server_start(&own, settings);
  struct fls_options options = {.size = sizeof options, .url = url};
  struct fls_client *client = open_by_url(&options);
  CHECK_EQUAL(acquire(make_lock(client, "door", 0)), FLS_OK);
  fls_close(client, SOON);
  server_stop(&own);
  remove_folder(folder);
}

static void test_unreachable(void)
{
  char url[64];
  char text[FLS_ERROR_SIZE];
  begin();
  (void)snprintf(url, sizeof url, "redis://127.0.0.1:%d", free_port());
  struct fls_options options = {.size = sizeof options, .url = url};
  struct fls_client *client = open_by_url(&options);
  CHECK_EQUAL(fls_connect(client), FAIRLOCK_UNREACHABLE);
  fls_error(client, text);
  CHECK(strstr(text, "refused") != NULL);
  struct fls_lock *lock = make_lock(client, "door", 0);
  CHECK_EQUAL(fls_acquire(lock, 0, FLS_RENEW, 0), FLS_PENDING);
  CHECK_EQUAL(await(lock), FAIRLOCK_UNREACHABLE);
  fls_close(client, FLS_FOREVER); /* there is nothing to tell */
}

/* Locks */

static void test_lock(void)
{
  int status;
  begin();
  struct fls_client *client = open_service(NULL);
  struct fls_lock *lock = make_lock(client, "door", 0);
  CHECK_EQUAL(fls_token(lock), 0);
  CHECK_EQUAL(acquire(lock), FLS_OK);
  uint64_t token = fls_token(lock);
  CHECK(token != 0 && fls_held(lock) == token);
  CHECK(fls_remaining_ms(lock) > 0);
  CHECK_EQUAL(acquire(lock), FLS_OK);
  CHECK_EQUAL(fls_hold_count(lock), 2);
  CHECK_EQUAL(release(lock), FLS_OK);
  CHECK_EQUAL(release(lock), FLS_OK);
  CHECK_EQUAL(release(lock), FAIRLOCK_NOT_HELD);
  CHECK_EQUAL(fls_held(lock), 0);
  CHECK_EQUAL(fls_remaining_ms(lock), 0);
  CHECK(fls_token(lock) == token);
  CHECK_EQUAL(acquire(lock), FLS_OK);
  CHECK(fls_token(lock) > token);

  struct fls_lock *other = make_lock(client, "door", 0);
  CHECK_EQUAL(fls_acquire(other, 0, FLS_RENEW, 0), FLS_PENDING);
  CHECK_EQUAL(await(other), FAIRLOCK_BUSY);
  CHECK_EQUAL(fls_acquire(other, 50, FLS_RENEW, 0), FLS_PENDING);
  CHECK_EQUAL(await(other), FAIRLOCK_TIMEOUT);
  CHECK_EQUAL(fls_acquire(other, 0, 0, 0), FAIRLOCK_INVALID);

  CHECK(fls_new(client, "", 0, FLS_EXCLUSIVE, 0, &status) == NULL);
  CHECK_EQUAL(status, FAIRLOCK_INVALID);
  CHECK(fls_new(client, "door", 4, 1001, 0, &status) == NULL);
  CHECK_EQUAL(status, FAIRLOCK_INVALID);
  CHECK(fls_new(client, NULL, SIZE_MAX, FLS_EXCLUSIVE, 0, &status) == NULL);
  CHECK_EQUAL(status, FAIRLOCK_TOO_LONG);
  fls_close(client, SOON);
  CHECK(nothing_left(&redis, "door"));
}

static void test_longest_name(void)
{
  static char name[FAIRLOCK_NAME_MAX];
  int status;
  begin();
  memset(name, 'n', sizeof name);
  name[7] = 0;
  struct fls_client *client = open_service(NULL);
  struct fls_lock *lock = fls_new(client, name, sizeof name, FLS_EXCLUSIVE, 0, &status);
  if (!CHECK(lock != NULL)) return;
  CHECK_EQUAL(acquire(lock), FLS_OK);
  CHECK_EQUAL(raw_number(&redis, "EXISTS %b", name, sizeof name), 1);
  fls_free(lock);
  fls_close(client, SOON);
  CHECK_EQUAL(raw_number(&redis, "EXISTS %b", name, sizeof name), 0);
}

static void test_shared(void)
{
  begin();
  struct fls_client *client = open_service(NULL);
  struct fls_lock *seats[3];
  for (int i = 0; i < 3; i++)
    seats[i] = make_shared(client, "hall", 2);
  CHECK_EQUAL(acquire(seats[0]), FLS_OK);
  CHECK_EQUAL(acquire(seats[1]), FLS_OK);
  CHECK_EQUAL(fls_acquire(seats[2], FLS_FOREVER, FLS_RENEW, 0), FLS_PENDING);
  CHECK_EQUAL(fls_wait(seats[2], 100), FLS_PENDING);
  fls_free(seats[0]);
  CHECK_EQUAL(await(seats[2]), FLS_OK);
  fls_close(client, SOON);
  CHECK(nothing_left(&redis, "hall"));
}

static void test_kept(void)
{
  begin();
  const struct fls_options options = {.keep_ms = 10000};
  struct fls_client *client = open_service(&options);
  struct fls_lock *lock = make_lock(client, "door", 0);
  CHECK_EQUAL(acquire(lock), FLS_OK);
  uint64_t token = fls_token(lock);
  CHECK_EQUAL(release(lock), FLS_OK);
  CHECK_EQUAL(fls_held(lock), 0);
  int64_t run = scripts_run(&redis);
  for (int i = 0; i < 100; i++) {
    CHECK_EQUAL(acquire(lock), FLS_OK);
    CHECK(fls_held(lock) == token && fls_token(lock) == token);
    CHECK_EQUAL(release(lock), FLS_OK);
  }
  CHECK_EQUAL(scripts_run(&redis), run);
  fls_close(client, SOON); /* gives it back */
  CHECK(nothing_left(&redis, "door"));
}

static void *release_in_thread(void *lock)
{
  return release(lock) == FLS_OK ? lock : NULL;
}

/* Any thread releases, and acquires. */
static void test_threads(void)
{
  pthread_t thread;
  void *result;
  begin();
  struct fls_client *client = open_service(NULL);
  struct fls_lock *lock = make_lock(client, "door", 0);
  CHECK_EQUAL(acquire(lock), FLS_OK);
  CHECK_EQUAL(pthread_create(&thread, NULL, release_in_thread, lock), 0);
  CHECK_EQUAL(pthread_join(thread, &result), 0);
  CHECK(result == lock);
  CHECK_EQUAL(acquire(lock), FLS_OK);
  fls_close(client, SOON);
}

/* Events */

/* Receives by threads other than this one, while it is known. */
static atomic_int by_others;
static atomic_bool counts;
static pthread_t here;

ssize_t __real_recv(int socket, void *data, size_t size, int flags);
ssize_t __wrap_recv(int socket, void *data, size_t size, int flags);
ssize_t __wrap_recv(int socket, void *data, size_t size, int flags)
{
  if (atomic_load(&counts) && !pthread_equal(pthread_self(), here)) atomic_fetch_add(&by_others, 1);
  return __real_recv(socket, data, size, flags);
}

/*
 * Who waits receives the answer itself: the client's thread comes back only when nobody has waited for
 * milliseconds, and leaves again after one answer.
 */
static void test_wait_needs_no_thread(void)
{
  enum { PAIRS = 1000 };
  begin();
  struct fls_client *client = open_service(NULL);
  struct fls_lock *lock = make_lock(client, "door", 0);
  here = pthread_self();
  atomic_store(&by_others, 0);
  atomic_store(&counts, true);
  for (int i = 0; i < PAIRS; i++) {
    CHECK_EQUAL(acquire(lock), FLS_OK);
    CHECK_EQUAL(release(lock), FLS_OK);
  }
  atomic_store(&counts, false);
  if (!CHECK(atomic_load(&by_others) < PAIRS)) printf("# %d\n", atomic_load(&by_others));
  fls_close(client, SOON);
}

/* Where somebody has just waited, operations that are begun for events end, too, and so do waits of others. */
static void test_waits_and_events(void)
{
  begin();
  struct fls_client *client = open_service(NULL);
  struct fls_lock *waited = make_lock(client, "waited", 1);
  struct fls_lock *begun = make_lock(client, "begun", 2);
  for (int i = 0; i < 50; i++) {
    CHECK_EQUAL(acquire(waited), FLS_OK);
    CHECK_EQUAL(fls_acquire(begun, FLS_FOREVER, FLS_RENEW, 1), FLS_PENDING);
    if (i % 2 == 0) CHECK_EQUAL(next_event(client).status, FLS_OK);
    CHECK_EQUAL(release(waited), FLS_OK);
    if (i % 2 == 1) CHECK_EQUAL(next_event(client).status, FLS_OK);
    CHECK_EQUAL(fls_release(begun, 0), FLS_PENDING);
    if (i % 10 == 0) sleep_ms(20); /* then the client's thread receives the answer */
    CHECK_EQUAL(await(begun), FLS_OK);
  }
  fls_close(client, SOON);
}

static void test_events(void)
{
  begin();
  struct fls_client *client = open_service(NULL);
  struct fls_lock *lock = make_lock(client, "door", 7);
  struct fls_event event = {.size = sizeof event};
  CHECK(!readable(client));
  CHECK_EQUAL(fls_next(client, 0, &event), 0);
  CHECK_EQUAL(fls_next(client, 20, &event), 0);

  CHECK_EQUAL(fls_acquire(lock, FLS_FOREVER, FLS_RENEW, 1), FLS_PENDING);
  event = next_event(client);
  CHECK_EQUAL(event.what, FLS_ENDED);
  CHECK_EQUAL(event.user, 7);
  CHECK_EQUAL(event.status, FLS_OK);
  CHECK(event.token != 0 && event.token == fls_held(lock));
  CHECK(!readable(client));

  struct fls_lock *other = make_lock(client, "door", 8);
  CHECK_EQUAL(fls_acquire(other, FLS_FOREVER, FLS_RENEW, 1), FLS_PENDING);
  CHECK(queue_reaches(&redis, "door", 1));
  CHECK_EQUAL(fls_acquire(other, 0, FLS_RENEW, 0),
              FAIRLOCK_IN_PROGRESS); /* the event still comes */
  CHECK_EQUAL(fls_cancel(other), FLS_OK);
  AWAIT(readable(client), sleep_ms(1));
  event = next_event(client);
  CHECK_EQUAL(event.user, 8);
  CHECK_EQUAL(event.what, FLS_ENDED);
  CHECK_EQUAL(event.status, FAIRLOCK_CANCELLED);
  CHECK_EQUAL(event.token, 0);

  /* fls_wait() takes the end of an operation that was begun for an event */
  CHECK_EQUAL(fls_release(lock, 1), FLS_PENDING);
  CHECK_EQUAL(await(lock), FLS_OK);
  CHECK(fls_next(client, 0, &event) == 0 || event.what == FLS_ENDED); /* unless it was too late */

  /* those of two locks, in order; one that is freed has none */
  struct fls_lock *third = make_lock(client, "gate", 9);
  CHECK_EQUAL(fls_acquire(third, 0, FLS_RENEW, 1), FLS_PENDING);
  AWAIT(readable(client), sleep_ms(1));
  CHECK_EQUAL(fls_acquire(lock, 0, FLS_RENEW, 1), FLS_PENDING);
  AWAIT(fls_held(lock) != 0, sleep_ms(1));
  fls_free(third);
  CHECK(readable(client));
  event = next_event(client);
  CHECK_EQUAL(event.user, 7);
  CHECK(!readable(client));
  fls_close(client, SOON);
}

/* A loss and a request to release are events; what was not read is one event. */
static void test_merged(void)
{
  begin();
  const struct fls_options options = {.listen = 1, .lease_ms = 3000};
  struct fls_client *client = open_service(&options);
  struct fls_lock *lock = make_lock(client, "door", 7);
  CHECK_EQUAL(fls_acquire(lock, FLS_FOREVER, FLS_RENEW, 1), FLS_PENDING);
  AWAIT(fls_held(lock) != 0, sleep_ms(1));
  uint64_t token = fls_held(lock);

  static struct client asker;
  client_open(&asker, server.port);
  CHECK_EQUAL(fairlock_ask_release(&asker.client, "door", 4, FAIRLOCK_ANY_TOKEN), FLS_OK);
  struct fls_event event = next_event(client);
  uint32_t seen = event.what;
  if (seen == FLS_ENDED) event = next_event(client);
  CHECK((event.what & FLS_ASKED) != 0);
  CHECK(event.asked == token);
  CHECK_EQUAL(event.lost, 0);

  CHECK_EQUAL(fairlock_force_release(&asker.client, "door", 4, FAIRLOCK_ANY_TOKEN), FLS_OK);
  AWAIT(fls_held(lock) == 0, sleep_ms(10)); /* at the next renewal */
  CHECK_EQUAL(fls_release(lock, 0), FAIRLOCK_LOST);
  CHECK_EQUAL(fls_acquire(lock, 0, FLS_RENEW, 1), FLS_PENDING);
  AWAIT(fls_held(lock) != 0, sleep_ms(1));
  AWAIT(fls_token(lock) != token, sleep_ms(1));
  event = next_event(client);
  CHECK_EQUAL(event.user, 7);
  CHECK_EQUAL(event.what, FLS_ENDED | FLS_LOST);
  CHECK_EQUAL(event.status, FLS_OK);
  CHECK(event.lost == token);
  CHECK_EQUAL(event.reason, FAIRLOCK_LOSS_ENDED);
  CHECK(event.token == fls_held(lock) && event.token > token);
  CHECK(!readable(client));
  client_close(&asker);
  fls_close(client, SOON);
}

/* What somebody says who asks. */
static void test_words(void)
{
  begin();
  const struct fls_options options = {.listen = 1};
  struct fls_client *client = open_service(&options);
  struct fls_lock *lock = make_lock(client, "door", 7);
  CHECK_EQUAL(acquire(lock), FLS_OK);
  char id[FLS_ID_SIZE];
  char message[400];
  fls_id(lock, id);
  char long_words[200];
  memset(long_words, 'w', sizeof long_words);
  long_words[sizeof long_words - 1] = 0;
  const char *const words[] = {"anna lunch is ready", "", long_words};
  for (int i = 0; i < 3; i++) {
    (void)snprintf(message, sizeof message, "%llu%s%s", (unsigned long long)fls_held(lock),
                   words[i][0] != 0 ? " " : "", words[i]);
    AWAIT(raw_number(&redis, "PUBLISH redisson_lock__channel:{door}:%s %b", id, message,
                     strlen(message)) == 1,
          sleep_ms(1));
    struct fls_event event = next_event(client);
    CHECK_EQUAL(event.what, FLS_ASKED);
    CHECK_EQUAL(strcmp(event.words, words[i]), 0);
  }
  fls_close(client, SOON);
}

/* Signals */

static atomic_bool to_be_signalled;

static void on_signal(int number)
{
  (void)number;
}

static void *signal_it(void *context)
{
  const pthread_t *thread = context;
  while (atomic_load(&to_be_signalled)) {
    sleep_ms(20);
    (void)pthread_kill(*thread, SIGUSR1);
  }
  return NULL;
}

/* A signal ends a wait for the lock, which then leaves the queue, and one for an event. */
static void test_signals(void)
{
  struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
  struct fls_event event = {.size = sizeof event};
  pthread_t self = pthread_self();
  pthread_t signaller;
  begin();
  CHECK_EQUAL(sigaction(SIGUSR1, &action, NULL), 0);
  struct fls_client *client = open_service(NULL);
  struct fls_lock *holder = make_lock(client, "door", 0);
  struct fls_lock *waiter = make_lock(client, "door", 0);
  CHECK_EQUAL(acquire(holder), FLS_OK);
  CHECK_EQUAL(fls_acquire(waiter, FLS_FOREVER, FLS_RENEW, 0), FLS_PENDING);
  CHECK(queue_reaches(&redis, "door", 1));
  atomic_store(&to_be_signalled, true);
  CHECK_EQUAL(pthread_create(&signaller, NULL, signal_it, &self), 0);
  int64_t began = now_ms();
  CHECK_EQUAL(fls_wait(waiter, FLS_FOREVER), FLS_PENDING);
  CHECK_EQUAL(fls_next(client, FLS_FOREVER, &event), 0);
  atomic_store(&to_be_signalled, false);
  CHECK_EQUAL(pthread_join(signaller, NULL), 0);
  CHECK(now_ms() - began < SOON);
  CHECK_EQUAL(fls_cancel(waiter), FLS_OK);
  CHECK_EQUAL(fls_wait(waiter, FLS_FOREVER), FAIRLOCK_CANCELLED);
  CHECK(queue_reaches(&redis, "door", 0));
  CHECK_EQUAL(release(holder), FLS_OK);
  fls_close(client, SOON);
  CHECK(nothing_left(&redis, "door"));
}

/* The client's own thread handles none, so one that this thread blocks stays pending. */
static void test_signals_of_the_program(void)
{
  sigset_t own, before, pending;
  begin();
  CHECK_EQUAL(sigaction(SIGUSR1, &(struct sigaction){.sa_handler = on_signal}, NULL), 0);
  struct fls_client *client = open_service(NULL);
  CHECK_EQUAL(fls_connect(client), FLS_OK);
  (void)sigemptyset(&own);
  (void)sigaddset(&own, SIGUSR1);
  CHECK_EQUAL(pthread_sigmask(SIG_BLOCK, &own, &before), 0);
  CHECK_EQUAL(kill(getpid(), SIGUSR1), 0);
  sleep_ms(50);
  CHECK_EQUAL(sigpending(&pending), 0);
  CHECK_EQUAL(sigismember(&pending, SIGUSR1), 1);
  CHECK_EQUAL(pthread_sigmask(SIG_SETMASK, &before, NULL), 0);
  fls_close(client, SOON);
}

/* Freeing */

enum state { IDLE, WAITING, GRANTED, HOLDING_TWICE, RELEASING, ENDED, LOST, STATES };

/* Frees a lock in that state. Afterwards the next one gets it, and nothing is left. */
static void free_in(enum state state, int event)
{
  begin();
  const struct fls_options options = {.lease_ms = 3000};
  struct fls_client *client = open_service(&options);
  struct fls_lock *lock = make_lock(client, "door", 1);
  struct fls_lock *holder = make_lock(client, "door", 2);
  struct fls_lock *next = make_lock(client, "door", 3);
  if (state == WAITING || state == GRANTED) {
    CHECK_EQUAL(acquire(holder), FLS_OK);
    CHECK_EQUAL(fls_acquire(lock, FLS_FOREVER, FLS_RENEW, event), FLS_PENDING);
    CHECK(queue_reaches(&redis, "door", 1));
  } else if (state != IDLE) {
    CHECK_EQUAL(acquire(lock), FLS_OK);
  }
  if (state == GRANTED) CHECK_EQUAL(fls_release(holder, 0), FLS_PENDING);
  if (state == HOLDING_TWICE) CHECK_EQUAL(acquire(lock), FLS_OK);
  if (state == RELEASING) CHECK_EQUAL(fls_release(lock, event), FLS_PENDING);
  if (state == ENDED) CHECK_EQUAL(release(lock), FLS_OK);
  if (state == LOST) {
    CHECK(raw_run(&redis, "DEL door"));
    AWAIT(fls_held(lock) == 0, sleep_ms(5));
  }
  CHECK_EQUAL(fls_acquire(next, FLS_FOREVER, FLS_RENEW, 0), FLS_PENDING);
  fls_free(lock);
  if (state == WAITING) fls_free(holder);
  CHECK_EQUAL(await(next), FLS_OK);
  struct fls_event left = {.size = sizeof left};
  CHECK_EQUAL(fls_next(client, 0, &left), 0);
  CHECK(!readable(client));
  fls_close(client, SOON);
  CHECK(nothing_left(&redis, "door"));
}

static void test_free(void)
{
  for (enum state state = IDLE; state < STATES; state++) {
    free_in(state, 0);
    free_in(state, 1);
  }
}

/* Neither freeing nor closing waits for a server that is stopped; it is told when it goes on. */
static void test_free_without_server(void)
{
  begin();
  struct fls_client *client = open_service(NULL);
  struct fls_lock *locks[3];
  for (int i = 0; i < 3; i++)
    locks[i] = make_lock(client, i < 2 ? "door" : "gate", 0);
  CHECK_EQUAL(acquire(locks[0]), FLS_OK);
  CHECK_EQUAL(fls_acquire(locks[1], FLS_FOREVER, FLS_RENEW, 1), FLS_PENDING);
  CHECK(queue_reaches(&redis, "door", 1));
  CHECK_EQUAL(kill(server.pid, SIGSTOP), 0);
  CHECK_EQUAL(fls_acquire(locks[2], FLS_FOREVER, FLS_RENEW, 0), FLS_PENDING);
  int64_t began = now_ms();
  CHECK_EQUAL(fls_wait(locks[2], 50), FLS_PENDING);
  for (int i = 0; i < 3; i++)
    fls_free(locks[i]);
  CHECK(now_ms() - began < 1500);
  CHECK_EQUAL(kill(server.pid, SIGCONT), 0);
  fls_close(client, FLS_FOREVER);
  CHECK(nothing_left(&redis, "door"));
  CHECK(nothing_left(&redis, "gate"));

  client = open_service(NULL);
  CHECK_EQUAL(acquire(make_lock(client, "door", 0)), FLS_OK);
  CHECK_EQUAL(kill(server.pid, SIGSTOP), 0);
  fls_close(client, 100);
  CHECK_EQUAL(kill(server.pid, SIGCONT), 0);
}

/* The end of a client */

/*
 * How many threads have begun to wait for events. The linker puts this in front of poll(), because a
 * client must not end before they are inside fls_next().
 */
static atomic_int watched = -1;
static atomic_int waiting;

int __real_poll(struct pollfd *fds, nfds_t count, int timeout_ms);
int __wrap_poll(struct pollfd *fds, nfds_t count, int timeout_ms);
int __wrap_poll(struct pollfd *fds, nfds_t count, int timeout_ms)
{
  if (count == 1 && fds->fd == atomic_load(&watched)) atomic_fetch_add(&waiting, 1);
  return __real_poll(fds, count, timeout_ms);
}

static void *read_events(void *context)
{
  struct fls_event event = {.size = sizeof event};
  while (fls_next(context, FLS_FOREVER, &event) != 0)
    continue;
  return NULL;
}

enum { READERS = 3 };

static void start_readers(struct fls_client *client, pthread_t threads[READERS])
{
  atomic_store(&waiting, 0);
  atomic_store(&watched, fls_fd(client));
  for (int i = 0; i < READERS; i++)
    CHECK_EQUAL(pthread_create(&threads[i], NULL, read_events, client), 0);
  AWAIT(atomic_load(&waiting) >= READERS, sleep_ms(1));
  atomic_store(&watched, -1);
}

static void join_readers(const pthread_t threads[READERS])
{
  for (int i = 0; i < READERS; i++)
    CHECK_EQUAL(pthread_join(threads[i], NULL), 0);
}

/* It waits for threads that wait for events, which it wakes. */
static void test_close_without_locks(void)
{
  pthread_t threads[READERS];
  begin();
  for (int round = 0; round < 50; round++) {
    struct fls_client *client = open_service(NULL);
    start_readers(client, threads);
    fls_close(client, 0);
    join_readers(threads);
  }
}

/* The same with locks, and without and with fls_stop() before it. */
static void test_close(void)
{
  pthread_t threads[READERS];
  struct fls_event event = {.size = sizeof event};
  begin();
  for (int stopped = 0; stopped < 2; stopped++) {
    struct fls_client *client = open_service(NULL);
    struct fls_lock *lock = make_lock(client, "door", 0);
    CHECK_EQUAL(acquire(lock), FLS_OK);
    CHECK_EQUAL(fls_acquire(make_lock(client, "door", 0), FLS_FOREVER, FLS_RENEW, 1), FLS_PENDING);
    start_readers(client, threads);
    if (stopped) {
      fls_stop(client);
      fls_stop(client);
      CHECK(readable(client));
      join_readers(threads);
      CHECK_EQUAL(fls_release(lock, 1), FLS_PENDING);
      CHECK_EQUAL(fls_next(client, FLS_FOREVER, &event), 0);
    }
    fls_close(client, SOON);
    if (!stopped) join_readers(threads);
    CHECK(nothing_left(&redis, "door"));
  }
}

/* Forks */

/* All of it in the child of a fork: returns true if each says so at once. */
static bool all_forked(struct fls_client *client, struct fls_lock *lock, struct fls_lock *waiter)
{
  char text[FLS_ERROR_SIZE];
  int status = 0;
  struct fls_event event = {.size = sizeof event};
  bool right = fls_connect(client) == FAIRLOCK_FORKED;
  right &= fls_acquire(lock, FLS_FOREVER, FLS_RENEW, 0) == FAIRLOCK_FORKED;
  right &= fls_release(lock, 1) == FAIRLOCK_FORKED;
  right &= fls_wait(waiter, FLS_FOREVER) == FAIRLOCK_FORKED;
  right &= fls_cancel(waiter) == FAIRLOCK_FORKED;
  right &= fls_token(lock) == 0 && fls_held(lock) == 0;
  right &= fls_remaining_ms(lock) == 0 && fls_hold_count(lock) == 0;
  right &= fls_next(client, FLS_FOREVER, &event) == 0;
  right &= fls_new(client, "x", 1, FLS_EXCLUSIVE, 0, &status) == NULL && status == FAIRLOCK_FORKED;
  fls_error(client, text);
  right &= text[0] == 0;
  fls_id(lock, text);
  right &= text[0] == 0;
  fls_stop(client);
  fls_free(waiter);
  return right;
}

static void test_fork(void)
{
  begin();
  struct fls_client *client = open_service(NULL);
  struct fls_lock *lock = make_lock(client, "door", 0);
  struct fls_lock *waiter = make_lock(client, "door", 0);
  CHECK_EQUAL(acquire(lock), FLS_OK);
  CHECK_EQUAL(fls_acquire(waiter, FLS_FOREVER, FLS_RENEW, 1), FLS_PENDING);
  CHECK(queue_reaches(&redis, "door", 1));
  fls_forked(client); /* nothing here */
  uint64_t token = fls_held(lock);
  for (int closes = 0; closes < 2; closes++) {
    pid_t child = fork();
    if (child == 0) {
      bool right = all_forked(client, lock, waiter);
      if (closes) fls_close(client, FLS_FOREVER);
      else fls_forked(client);
      right &= all_forked(client, lock, waiter) && fls_fd(client) == -1;
      fls_forked(client);
      _exit(right ? 0 : 1);
    }
    CHECK_EQUAL(reap(child), 0);
  }
  CHECK(fls_held(lock) == token);
  CHECK_EQUAL(release(lock), FLS_OK);
  CHECK_EQUAL(next_event(client).status, FLS_OK);
  fls_close(client, SOON);
  CHECK(nothing_left(&redis, "door"));
}

static void test_words_of_statuses(void)
{
  CHECK_EQUAL(strcmp(fls_status_name(FAIRLOCK_BUSY), "BUSY"), 0);
  CHECK(strlen(fls_status_text(FAIRLOCK_BUSY)) > 0);
  CHECK_EQUAL(strcmp(fls_version(), FAIRLOCK_VERSION), 0);
}

const struct check_test check_tests[] = {{"wrong_options", test_wrong_options},
                                         {"descriptors", test_descriptors},
                                         {"options", test_options},
                                         {"older_caller", test_older_caller},
                                         {"unix_socket", test_unix_socket},
                                         {"unreachable", test_unreachable},
                                         {"lock", test_lock},
                                         {"longest_name", test_longest_name},
                                         {"shared", test_shared},
                                         {"kept", test_kept},
                                         {"threads", test_threads},
                                         {"wait_needs_no_thread", test_wait_needs_no_thread},
                                         {"waits_and_events", test_waits_and_events},
                                         {"events", test_events},
                                         {"merged", test_merged},
                                         {"words", test_words},
                                         {"signals", test_signals},
                                         {"signals_of_the_program", test_signals_of_the_program},
                                         {"free", test_free},
                                         {"free_without_server", test_free_without_server},
                                         {"close_without_locks", test_close_without_locks},
                                         {"close", test_close},
                                         {"fork", test_fork},
                                         {"words_of_statuses", test_words_of_statuses},
                                         {0}};
