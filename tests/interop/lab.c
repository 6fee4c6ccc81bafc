/* SPDX-License-Identifier: Apache-2.0 */
/* The laboratory of the interop tests; see lab.h. */
#include "lab.h"

#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define ANSWER_MS 20000

static int compare(const void *a, const void *b)
{
  int64_t first = *(const int64_t *)a;
  int64_t second = *(const int64_t *)b;
  return (first > second) - (first < second);
}

int64_t median(int64_t *values, int count)
{
  qsort(values, (size_t)count, sizeof *values, compare);
  return values[count / 2];
}

static const char *build(void)
{
  const char *folder = getenv("BUILD");
  return folder != NULL ? folder : "build";
}

void lab_open(struct lab *lab, const char *version)
{
  lab->version = version;
  server_start(&lab->server, NULL);
  if (!raw_open(&lab->redis, lab->server.port)) give_up("no connection to redis-server");
}

void lab_close(struct lab *lab)
{
  raw_close(&lab->redis);
  server_stop(&lab->server);
}

/* Drivers */

/* Times can be compared only if the driver uses the same clock. */
static void check_clock(struct driver *driver)
{
  int64_t before = now_ns();
  int64_t theirs = field(tell(driver, "clock - clock"), 0);
  if (theirs < before || theirs > now_ns()) give_up("a driver has another clock");
}

struct driver *driver_start(const struct lab *lab, enum kind kind, int port, const char *options)
{
  char program[512], path[2048], number[16], extra[256];
  const char *words[20] = {"sh", "-c", "exec \"$@\" 2>/dev/null", "driver"};
  int count = getenv("INTEROP_VERBOSE") == NULL ? 4 : 0;
  struct driver *driver = calloc(1, sizeof *driver);
  if (driver == NULL) give_up("no memory");
  driver->kind = kind;
  snprintf(number, sizeof number, "%d", port);
  snprintf(extra, sizeof extra, "%s", options != NULL ? options : "");
  if (kind == JAVA) {
    snprintf(path, sizeof path, "%s/interop/%s/classes:%s/interop/%s/lib/*", build(), lab->version,
             build(), lab->version);
    words[count++] = "java";
    words[count++] = "-cp";
    words[count++] = path;
    words[count++] = "Driver";
  } else {
    snprintf(program, sizeof program, "%s/tests/interop/driver", build());
    words[count++] = program;
  }
  words[count++] = number;
  for (char *word = strtok(extra, " "); word != NULL && count < 19; word = strtok(NULL, " "))
    words[count++] = word;
  words[count] = NULL;
  driver->pid = spawn_program(words, &driver->in, &driver->out);
  if (hear(driver, "ready", 60000) == NULL) give_up("a driver does not start");
  check_clock(driver);
  return driver;
}

void driver_kill(struct driver *driver)
{
  slay(driver->pid);
  close(driver->in);
  close(driver->out);
  free(driver);
}

static void send_line(struct driver *driver, const char *format, va_list arguments)
{
  char line[512];
  int size = vsnprintf(line, sizeof line - 1, format, arguments);
  if (size < 0 || size >= (int)sizeof line - 1) give_up("a line for a driver is too long");
  line[size++] = '\n';
  line[size] = 0;
  if (write(driver->in, line, (size_t)size) == size) return;
  int status = 0;
  (void)waitpid(driver->pid, &status, 0);
  printf("# %s driver, status %#x, was to be told: %s", driver->kind == JAVA ? "Redisson's" : "our",
         (unsigned)status, line);
  give_up("a driver ended");
}

void say(struct driver *driver, const char *format, ...)
{
  va_list arguments;
  va_start(arguments, format);
  send_line(driver, format, arguments);
  va_end(arguments);
}

/* Takes the first line of party's out of the lines that arrived. */
static const char *take_line(struct driver *driver, const char *party)
{
  size_t name = strlen(party);
  char *line = driver->lines;
  char *limit = driver->lines + driver->size;
  for (char *stop; (stop = memchr(line, '\n', (size_t)(limit - line))) != NULL; line = stop + 1) {
    size_t size = (size_t)(stop - line);
    if (size <= name || memcmp(line, party, name) != 0 || line[name] != ' ') continue;
    snprintf(driver->answer, sizeof driver->answer, "%.*s", (int)(size - name - 1),
             line + name + 1);
    memmove(line, stop + 1, (size_t)(limit - stop - 1));
    driver->size -= size + 1;
    return driver->answer;
  }
  return NULL;
}

const char *hear(struct driver *driver, const char *party, int timeout_ms)
{
  int64_t limit = now_ns() + (int64_t)timeout_ms * 1000000;
  for (;;) {
    const char *answer = take_line(driver, party);
    int64_t left = limit - now_ns();
    if (answer != NULL) return answer;
    struct pollfd poller = {.fd = driver->out, .events = POLLIN};
    if (left <= 0 || poll(&poller, 1, (int)(left / 1000000) + 1) <= 0) return NULL;
    ssize_t got =
        read(driver->out, driver->lines + driver->size, sizeof driver->lines - driver->size);
    if (got <= 0) return NULL;
    driver->size += (size_t)got;
  }
}

const char *tell(struct driver *driver, const char *format, ...)
{
  char party[128];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(party, sizeof party, format, arguments);
  va_end(arguments);
  party[strcspn(party, " ")] = 0;
  va_start(arguments, format);
  send_line(driver, format, arguments);
  va_end(arguments);
  const char *answer = hear(driver, party, ANSWER_MS);
  return answer != NULL ? answer : "";
}

int64_t field(const char *answer, int number)
{
  for (int i = 0; i < number && answer != NULL; i++) {
    answer = strchr(answer, ' ');
    if (answer != NULL) answer++;
  }
  return answer != NULL ? strtoll(answer, NULL, 10) : -1;
}

static bool listens_now(struct lab *lab, const char *lock, const char *id)
{
  raw_run(&lab->redis, "PUBSUB NUMSUB redisson_lock__channel:{%s}:%s", lock, id);
  return lab->redis.count == 3 && lab->redis.element[2].integer == 1;
}

bool listens(struct lab *lab, const char *lock, const char *id)
{
  for (int64_t until = now_ms() + SOON; now_ms() < until; sleep_ms(10)) {
    if (listens_now(lab, lock, id)) return true;
  }
  return false;
}

bool lab_queue_reaches(struct lab *lab, const char *lock, int64_t length)
{
  for (int64_t until = now_ms() + SOON; now_ms() < until; sleep_ms(2)) {
    if (raw_number(&lab->redis, "LLEN redisson_lock_queue:{%s}", lock) == length) return true;
  }
  return false;
}
