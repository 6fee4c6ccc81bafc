/*
 * The laboratory of the interop tests; see lab.h. Linux: nothing else ends the children of a killed
 * test.
 */
#define _GNU_SOURCE
#include "lab.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define ANSWER_MS 20000

static void die(const char *why)
{
  printf("not ok interop lab: %s\n", why);
  exit(1);
}

int64_t now_ns(void)
{
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

void pause_ms(int ms)
{
  struct timespec time = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L};
  nanosleep(&time, NULL);
}

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

/* Processes */

/*
 * Starts a program that ends when this one does. in, out: where its ends of the pipes are to be, or
 * NULL for none.
 */
static pid_t start(const char *const *words, int *in, int *out)
{
  int to[2], from[2];
  if (pipe2(to, O_CLOEXEC) < 0 || pipe2(from, O_CLOEXEC) < 0) die("no pipe");
  fflush(stdout);
  pid_t parent = getpid();
  pid_t pid = fork();
  if (pid < 0) die("no process");
  if (pid == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(1);
    int null = open("/dev/null", O_RDWR);
    dup2(in != NULL ? to[0] : null, 0);
    dup2(out != NULL ? from[1] : null, 1);
    if (getenv("INTEROP_VERBOSE") == NULL) dup2(null, 2);
    execvp(words[0], (char *const *)(uintptr_t)words);
    _exit(127);
  }
  close(to[0]);
  close(from[1]);
  if (in != NULL) *in = to[1];
  else close(to[1]);
  if (out != NULL) *out = from[0];
  else close(from[0]);
  return pid;
}

static void end(pid_t pid)
{
  kill(pid, SIGKILL);
  waitpid(pid, NULL, 0);
}

/* A port that was free a moment ago. */
static int free_port(void)
{
  struct sockaddr_in address = {.sin_family = AF_INET};
  socklen_t size = sizeof address;
  int probe = socket(AF_INET, SOCK_STREAM, 0);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (bind(probe, (struct sockaddr *)&address, size) < 0 ||
      getsockname(probe, (struct sockaddr *)&address, &size) < 0) {
    die("no free port");
  }
  close(probe);
  return ntohs(address.sin_port);
}

static const char *build(void)
{
  const char *folder = getenv("BUILD");
  return folder != NULL ? folder : "build";
}

void lab_open(struct lab *lab, const char *version)
{
  char program[512], port[16];
  memset(lab, 0, sizeof *lab);
  lab->version = version;
  signal(SIGPIPE, SIG_IGN);
  snprintf(program, sizeof program, "%s/redis-server", build());
  for (int attempt = 0; attempt < 3; attempt++) {
    lab->port = free_port();
    snprintf(port, sizeof port, "%d", lab->port);
    const char *words[] = {program, "--port",       port, "--bind", "127.0.0.1", "--save",
                           "",      "--appendonly", "no", "--dir",  "/tmp",      NULL};
    lab->server = start(words, NULL, NULL);
    for (int i = 0; i < 100 && waitpid(lab->server, NULL, WNOHANG) == 0; i++) {
      if (redis_open(&lab->redis, lab->port)) return;
      pause_ms(50);
    }
    end(lab->server);
  }
  die("redis-server does not start");
}

void lab_close(struct lab *lab)
{
  redis_close(&lab->redis);
  end(lab->server);
}

/* Drivers */

/* A time is only as good as the clock it is of. */
static void check_clock(struct driver *driver)
{
  int64_t before = now_ns();
  int64_t theirs = field(tell(driver, "clock - clock"), 0);
  if (theirs < before || theirs > now_ns()) die("a driver has another clock");
}

struct driver *driver_start(const struct lab *lab, enum kind kind, int port, const char *options)
{
  char program[512], path[2048], number[16], extra[256];
  const char *words[16];
  int count = 0;
  struct driver *driver = calloc(1, sizeof *driver);
  if (driver == NULL) die("no memory");
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
  for (char *word = strtok(extra, " "); word != NULL && count < 15; word = strtok(NULL, " "))
    words[count++] = word;
  words[count] = NULL;
  driver->pid = start(words, &driver->in, &driver->out);
  if (hear(driver, "ready", 60000) == NULL) die("a driver does not start");
  check_clock(driver);
  return driver;
}

void driver_kill(struct driver *driver)
{
  end(driver->pid);
  close(driver->in);
  close(driver->out);
  free(driver);
}

static void send_line(struct driver *driver, const char *format, va_list arguments)
{
  char line[512];
  int size = vsnprintf(line, sizeof line - 1, format, arguments);
  line[size++] = '\n';
  if (write(driver->in, line, (size_t)size) != size) die("a driver ended");
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

bool queue_reaches(struct lab *lab, const char *lock, int64_t length)
{
  for (int i = 0; i < 5000; i++) {
    if (redis_number(&lab->redis, "LLEN redisson_lock_queue:{%s}", lock) == length) return true;
    pause_ms(2);
  }
  return false;
}
