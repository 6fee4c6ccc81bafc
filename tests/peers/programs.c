/* SPDX-License-Identifier: Apache-2.0 */
/* The programs of the peers and of their servers; see programs.h. */
#include "programs.h"
#include "support/clock.h"
#include "support/loopback.h"
#include "support/process.h"

#include <inttypes.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define PATIENCE_MS 120000

void must(bool condition, const char *peer, const char *what)
{
  if (condition) return;
  fprintf(stderr, "peers: %s: %s; see %s/peers/log\n", peer, what, getenv("BUILD"));
  exit(1);
}

/* The next line, or false: none came in time. */
static bool hear(struct program *program, char *line, size_t size)
{
  int64_t until = now_ms() + PATIENCE_MS;
  char *end;
  while ((end = memchr(program->buffer, '\n', program->used)) == NULL) {
    struct pollfd ready = {.fd = program->out, .events = POLLIN};
    if (now_ms() > until || program->used == sizeof program->buffer) return false;
    if (poll(&ready, 1, 1000) == 0) continue;
    ssize_t got =
        read(program->out, program->buffer + program->used, sizeof program->buffer - program->used);
    if (got <= 0) return false;
    program->used += (size_t)got;
  }
  size_t length = (size_t)(end - program->buffer);
  if (length >= size) return false;
  memcpy(line, program->buffer, length);
  line[length] = 0;
  program->used -= length + 1;
  memmove(program->buffer, end + 1, program->used);
  return true;
}

/* Between releases ours says the number of the last one, so the commit says what was measured. */
static void add_commit(const char *name, char version[32])
{
  const char *commit = getenv("COMMIT");
  size_t length = strlen(version);
  if (strncmp(name, "fairlock", 8) != 0 || commit == NULL || commit[0] == 0) return;
  (void)snprintf(version + length, 32 - length, "+%s", commit);
}

void program_start(struct program *program, const char *name, const char *command, int port,
                   char version[32])
{
  char shell[512], port_text[8], line[128];
  snprintf(shell, sizeof shell, "exec 2>>$BUILD/peers/log; exec %s $1", command);
  snprintf(port_text, sizeof port_text, "%d", port);
  const char *const words[] = {"sh", "-c", shell, "sh", port_text, NULL};
  int64_t theirs = 0;
  program->name = name;
  program->pid = spawn_program(words, &program->in, &program->out);
  must(hear(program, line, sizeof line) &&
           sscanf(line, "ready %" SCNd64 " %31[^\n]", &theirs, version) == 2,
       name, "does not start");
  add_commit(name, version);
  must(llabs(theirs - now_ns()) < 1000000000, name, "has another clock");
}

void program_tell(struct program *program, const char *verb, int count)
{
  char line[64];
  int length = snprintf(line, sizeof line, "%s %d\n", verb, count);
  must(write(program->in, line, (size_t)length) == length, program->name, "does not listen");
}

int64_t program_done(struct program *program)
{
  char line[64];
  int64_t bytes = 0;
  must(hear(program, line, sizeof line) && sscanf(line, "done %" SCNd64, &bytes) == 1,
       program->name, "does not end");
  return bytes;
}

int program_numbers(struct program *program, int64_t *numbers)
{
  static char line[sizeof program->buffer];
  must(hear(program, line, sizeof line), program->name, "says nothing");
  int count = 0;
  for (char *at = line, *end; count < NUMBERS; at = end) {
    numbers[count] = strtoll(at, &end, 10);
    if (end == at) break;
    count++;
  }
  return count;
}

pid_t server_by_shell(const char *name, const char *shell, int port)
{
  char text[2][8];
  snprintf(text[0], sizeof text[0], "%d", port);
  snprintf(text[1], sizeof text[1], "%d", free_port());
  const char *const words[] = {"sh", "-c", shell, "sh", text[0], text[1], NULL};
  pid_t pid = spawn_program(words, NULL, NULL);
  int connection;
  AWAIT((connection = dial(port)) >= 0, sleep_ms(20));
  must(connection >= 0, name, "its server does not start");
  (void)close(connection);
  return pid;
}

double cpu_us(pid_t pid)
{
  clockid_t clock;
  struct timespec time;
  if (clock_getcpuclockid(pid, &clock) != 0 || clock_gettime(clock, &time) != 0)
    give_up("no time of a process");
  return (double)time.tv_sec * 1e6 + (double)time.tv_nsec / 1e3;
}

static int ascending(const void *a, const void *b)
{
  double x = *(const double *)a;
  double y = *(const double *)b;
  return (x > y) - (x < y);
}

double median_of(double *values, size_t count)
{
  qsort(values, count, sizeof *values, ascending);
  return values[count / 2];
}

const char *short_number(double value)
{
  static char text[4][32];
  static int next;
  char *result = text[next++ % 4];
  snprintf(result, sizeof text[0], "%.*f", value < 1 ? 2 : value < 10 ? 1 : 0, value);
  return result;
}

double load_now(void)
{
  double load[1] = {0};
  (void)getloadavg(load, 1);
  return load[0];
}

void write_circumstances(FILE *file, struct raw *redis, double load_before)
{
  char version[32] = "?", day[32];
  time_t now = time(NULL);
  const char *at = strstr(raw_text(redis, "INFO server"), "redis_version:");
  if (at != NULL) sscanf(at, "redis_version:%31s", version);
  strftime(day, sizeof day, "%Y-%m-%d", gmtime(&now));
  fprintf(file,
          "Of %s, on %ld cores, with Redis %s on loopback; load average before the run %.2f, at "
          "its end %.2f.\n",
          day, sysconf(_SC_NPROCESSORS_ONLN), version, load_before, load_now());
}

bool chosen(const char *name, char *const *words)
{
  if (*words == NULL) return true;
  while (*words != NULL) {
    if (strstr(name, *words++) != NULL) return true;
  }
  return false;
}
