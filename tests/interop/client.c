/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The library of any release as a program that is driven by lines: RELEASES.md describes them. It is
 * compiled with the public headers of each release, so it uses only what all of them have.
 *
 * Arguments: HOST PORT [WAITER_MS [LEASE_MS [KEEP_MS]]]. The loop services the client all the time, as a
 * device does, and so keeps leases and places in queues. It must not retry, correct or order
 * anything by itself.
 *
 * Two lines more than others need: "contend NAME FOR_MS HOLD_MS PAUSE_MS" acquires, holds for HOLD_MS
 * and pauses for up to PAUSE_MS, again and again, and then answers with a line for each hold, "hold
 * ASKED BEGUN ENDED TOKEN", times of CLOCK_MONOTONIC in us, and "failed ASKED STATUS" for each
 * acquire or release that failed; "done" is the last.
 * And "work NAME LIMIT CARELESS", for test_mixed.py, until another line comes.
 */
#include "fairlock.h"
#include "port_posix.h"

#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define MOST_LOCKS 16

#ifdef PORT_RELEASE
#include "fairlock_keep.h"
#include "fairlock_operate.h"
#include "fairlock_share.h"
#define GOES_ON      bool
#define GO_ON        return true
#define ID_OF(h, id) fairlock_id(h, id, sizeof id)
#else /* 1.0.0-rc2 and before */
#define GOES_ON      void
#define GO_ON        (void)0
#define ID_OF(h, id) fairlock_id(h, id)
#endif

#ifndef FAIRLOCK_ANY_TOKEN /* 1.0.0-rc1, which has other names for these */
#define FAIRLOCK_ANY_TOKEN   0
#define fairlock_keeping     fairlock_keeper
#define fairlock_use_keeping fairlock_keep
#endif

static struct fairlock_client client;
static struct fairlock handles[MOST_LOCKS];
static char names[MOST_LOCKS][128];
static struct fairlock *asked; /* the handle whose acquire or release is under way */
static int asked_what;

static long long now_us(void)
{
  struct timespec now;
  (void)clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1000000LL + now.tv_nsec / 1000;
}

static void sleep_us(long long us)
{
  struct timespec time = {.tv_sec = us / 1000000, .tv_nsec = us % 1000000 * 1000};
  if (us > 0) (void)nanosleep(&time, NULL);
}

/* NULL: the library refuses the name. */
static struct fairlock *handle_of(const char *name)
{
  for (int i = 0; i < MOST_LOCKS; i++) {
    if (strcmp(names[i], name) == 0) return &handles[i];
    if (names[i][0] != 0) continue;
    (void)snprintf(names[i], sizeof names[i], "%s", name);
    if (fairlock_init(&handles[i], &client, names[i]) == FAIRLOCK_OK) return &handles[i];
    names[i][0] = 0;
    return NULL;
  }
  exit(1);
}

#ifdef FAIRLOCK_LIMIT_MAX /* it can share */
static struct fairlock_shared shares[MOST_LOCKS];
#if FAIRLOCK_VERSION_NUMBER < 1000003L
static struct fairlock_sharing sharing;
#endif

/* The handle that shares this lock; of one limit. */
static struct fairlock *share_of(const char *name, uint32_t limit)
{
  long index = handle_of(name) - handles;
  struct fairlock_shared *shared = &shares[index];
  if (shared->handle.name_size > 0) return &shared->handle;
  if (fairlock_init_shared(shared, &client, names[index], limit) != FAIRLOCK_OK) exit(1);
  return &shared->handle;
}
#endif

static void answer(int status)
{
  if (status == FAIRLOCK_PENDING) return;
  if (status == FAIRLOCK_OK && asked_what == 'a')
    printf("held %llu\n", (unsigned long long)fairlock_token(asked));
  else if (status == FAIRLOCK_OK) printf("released\n");
  else if (status == FAIRLOCK_BUSY) printf("busy\n");
  else if (status == FAIRLOCK_TIMEOUT) printf("timeout\n");
  else if (status == FAIRLOCK_LOST) printf("lost\n");
  else if (status == FAIRLOCK_NOT_HELD) printf("not-held\n");
  else printf("error %d\n", status);
  asked = NULL;
}

static void contend(struct fairlock *handle, long for_ms, long hold_ms, long pause_ms)
{
  long long until = now_us() + for_ms * 1000LL;
  unsigned seed = (unsigned)getpid();
  while (now_us() < until) {
    long long at = now_us();
    int status = fairlock_acquire(handle, 60000, FAIRLOCK_RENEW);
    if (status == FAIRLOCK_OK) {
      long long begun = now_us();
      unsigned long long token = fairlock_token(handle);
      sleep_us(hold_ms * 1000LL);
      long long ended = now_us();
      status = fairlock_release(handle);
      printf("hold %lld %lld %lld %llu\n", at, begun, ended, token);
    }
    if (status != FAIRLOCK_OK) printf("failed %lld %d\n", at, status);
    sleep_us(pause_ms > 0 ? (long long)((unsigned)rand_r(&seed) % (unsigned)(pause_ms * 1000)) : 0);
  }
  printf("done\n");
}

/* What an acquire or release came to, at once: who kills this program loses no line. */
static void tell(const char *what, const char *name, int status)
{
  printf("%s %s %d\n", what, name, status);
  (void)fflush(stdout);
}

/*
 * Holds it for so long, and tells until when it believed that: the clock is read before the belief. A
 * careless one never asks.
 */
static void work_in(struct fairlock *handle, const char *name, long limit, long ms, bool careless)
{
  long long at = now_us();
  int status = fairlock_acquire(handle, 120000, FAIRLOCK_RENEW);
  tell("acquired", name, status);
  if (status != FAIRLOCK_OK) return;
  long long begun = now_us(), seen = 0;
  for (long long now = begun; seen == 0 || now < begun + ms * 1000; now = now_us()) {
    if (!careless && fairlock_remaining_ms(handle) == 0) break;
    seen = now;
    (void)fairlock_poll(&client, 1);
  }
  if (careless) seen = now_us();
  if (seen != 0)
    printf("hold %s %ld %lld %lld %lld %llu\n", name, limit, at, begun, seen,
           (unsigned long long)fairlock_token(handle));
  (void)fflush(stdout);
  tell("released", name, fairlock_release(handle));
}

/* One of two locks after the other, the second often shared, and now and then for 4 s. */
static void work(const char *name, long limit, bool careless)
{
  unsigned seed = (unsigned)getpid();
  struct pollfd lines = {.fd = STDIN_FILENO, .events = POLLIN};
  char shared[128];
  (void)snprintf(shared, sizeof shared, "%.120s.shared", name);
  while (poll(&lines, 1, 0) == 0) {
    int dice = rand_r(&seed);
    long ms = dice % 200 == 0 ? 4000 : dice % 20;
    const char *one = dice / 64 % 2 != 0 ? shared : name;
    struct fairlock *handle = handle_of(one);
    bool is_shared = false;
#ifdef FAIRLOCK_LIMIT_MAX
    is_shared = one == shared && dice / 128 % 4 != 0;
    if (is_shared) handle = share_of(one, (uint32_t)limit);
#endif
    work_in(handle, one, is_shared ? limit : 0, ms, careless);
    (void)fairlock_poll(&client, (uint32_t)(dice / 512 % 20));
  }
  printf("done\n");
}

/* 0 stands for one that is renewed, as in releases before 1.0.0-rc3. */
static uint32_t lease_of(long number)
{
  return number != 0 ? (uint32_t)number : FAIRLOCK_RENEW;
}

/* A word for each waiter, in order. */
static GOES_ON print_waiter(const struct fairlock_report *report, void *context)
{
  (void)context;
#if FAIRLOCK_VERSION_NUMBER == 1000001L /* 1.0.0-rc1 */
  const char *word = report->alive ? "alive" : "dead";
  if (report->later) word = "unknown";
#else
  const char *word = report->life == FAIRLOCK_LIFE_ALIVE ? "alive" : "dead";
  if (report->life == FAIRLOCK_LIFE_UNKNOWN) word = "unknown";
#endif
  if (report->place > 0) printf(" %s", word);
  GO_ON;
}

/* What handles that share are asked for. False: it is something else. */
static bool obey_share(const char *verb, const char *name, const long *number)
{
#ifdef FAIRLOCK_LIMIT_MAX
  if (strcmp(verb, "share") == 0) {
    asked = share_of(name, (uint32_t)number[0]);
    asked_what = 'a';
    answer(fairlock_start_acquire(asked, (uint32_t)number[1], lease_of(number[2])));
  } else if (strcmp(verb, "unshare") == 0) {
    asked = share_of(name, (uint32_t)number[0]);
    asked_what = 'r';
    answer(fairlock_start_release(asked));
  } else if (strcmp(verb, "share-id") == 0) {
    char id[FAIRLOCK_HOLDER_ID_SIZE];
    ID_OF(share_of(name, (uint32_t)number[0]), id);
    printf("id %s\n", id);
  } else {
    return false;
  }
  return true;
#else
  (void)name;
  (void)number;
  if (strstr(verb, "share") == NULL) return false;
  printf("unsupported\n");
  return true;
#endif
}

static void obey(const char *line)
{
  char name[128] = "";
  char verb[16] = "";
  long number[3] = {0};
  if (sscanf(line, "%15s %127s %ld %ld %ld", verb, name, &number[0], &number[1], &number[2]) < 2)
    exit(1);
  struct fairlock *handle = handle_of(name);
  if (handle == NULL) {
    printf("error no such name\n");
    return;
  }
  if (obey_share(verb, name, number)) return;
  if (strcmp(verb, "acquire") == 0) {
    asked = handle;
    asked_what = 'a';
    answer(fairlock_start_acquire(handle, (uint32_t)number[0], lease_of(number[1])));
  } else if (strcmp(verb, "release") == 0) {
    asked = handle;
    asked_what = 'r';
    answer(fairlock_start_release(handle));
  } else if (strcmp(verb, "id") == 0) {
    char id[FAIRLOCK_HOLDER_ID_SIZE];
    ID_OF(handle, id);
    printf("id %s\n", id);
  } else if (strcmp(verb, "force") == 0) {
    int status = fairlock_force_release(&client, name, strlen(name), FAIRLOCK_ANY_TOKEN);
    if (status == FAIRLOCK_OK) printf("forced\n");
    else printf("error %d\n", status);
  } else if (strcmp(verb, "inspect") == 0) {
    printf("waiters");
    int status = fairlock_inspect(&client, name, strlen(name), print_waiter, NULL);
    if (status != FAIRLOCK_OK) printf(" error %d", status);
    printf("\n");
  } else if (strcmp(verb, "holds") == 0) {
    if (fairlock_remaining_ms(handle) == 0) printf("not-held\n");
    else printf("held %llu\n", (unsigned long long)fairlock_token(handle));
  } else if (strcmp(verb, "contend") == 0) {
    contend(handle, number[0], number[1], number[2]);
  } else if (strcmp(verb, "work") == 0) {
    work(name, number[0], number[1] != 0);
  } else {
    exit(1);
  }
}

int main(int argc, char **argv)
{
  static unsigned char receive_buffer[1024], send_buffer[1024];
  static char output[1 << 20]; /* no line of a contest waits for a reader */
  static struct fairlock_config config = {.receive_buffer = receive_buffer,
                                          .receive_size = sizeof receive_buffer,
                                          .send_buffer = send_buffer,
                                          .send_size = sizeof send_buffer};
  static struct port_posix server;
  char line[512];
  size_t size = 0;
  if (argc < 3) return 64;
  (void)setvbuf(stdout, output, _IOFBF, sizeof output);
  if (argc > 3) config.waiter_ms = (uint32_t)strtoul(argv[3], NULL, 10);
  if (argc > 4) config.lease_ms = (uint32_t)strtoul(argv[4], NULL, 10);
  port_posix_tcp(&server, argv[1], argv[2]);
  if (fairlock_client_init(&client, &config, &server.transport) != FAIRLOCK_OK) return 1;
  static struct fairlock_keeping keeping;
  if (argc > 5) keeping.keep_ms = (uint32_t)strtoul(argv[5], NULL, 10);
  if (argc > 5 && fairlock_use_keeping(&client, &keeping) != FAIRLOCK_OK) return 1;
#if defined FAIRLOCK_LIMIT_MAX && FAIRLOCK_VERSION_NUMBER < 1000003L
  fairlock_use_sharing(&client, &sharing);
#endif
  if (fairlock_connect(&client) != FAIRLOCK_OK) return 1;
  printf("ready\n");
  for (;;) {
    struct pollfd lines = {.fd = STDIN_FILENO, .events = POLLIN};
    if (asked != NULL) answer(fairlock_result(asked));
    (void)fflush(stdout);
    if (asked != NULL || poll(&lines, 1, 0) == 0) {
      (void)fairlock_poll(&client, 10);
      continue;
    }
    if (size == sizeof line || read(STDIN_FILENO, line + size, 1) != 1) break;
    if (line[size++] != '\n') continue;
    line[size - 1] = 0;
    size = 0;
    obey(line);
  }
  _exit(0); /* what it holds or waits for ends with its connection and its lease */
}
