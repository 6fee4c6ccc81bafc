/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The benchmarks' main program: `bench [NAME...]` runs all of them, or those named, against a private
 * server. `bench pairs PORT COUNT` and `bench kept PORT COUNT` are for the count of system calls: they
 * only acquire and release.
 */
#include "bench.h"

#include "texts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>
#include "support/counters.h"

const struct check_test check_tests[] = {{NULL, NULL}};

void check_write(const char *text)
{
  fputs(text, stderr);
}

double now(void)
{
  return (double)now_ns() / 1e3;
}

void add(struct series *series, double value)
{
  if (series->count < 64) series->value[series->count++] = value;
}

static int ascending(const void *a, const void *b)
{
  double x = *(const double *)a;
  double y = *(const double *)b;
  return (x > y) - (x < y);
}

double median(struct series *series)
{
  if (series->count == 0) return 0;
  qsort(series->value, (size_t)series->count, sizeof series->value[0], ascending);
  int half = series->count / 2;
  return series->count % 2 ? series->value[half]
                           : (series->value[half - 1] + series->value[half]) / 2;
}

void print_row(const char *name, struct series *series, const char *remark)
{
  double middle = median(series);
  printf("%s: %.3g (%.3g .. %.3g)%s%s\n", name, middle, series->value[0],
         series->value[series->count - 1], remark != NULL ? "  # " : "",
         remark != NULL ? remark : "");
  fflush(stdout);
}

void print_value(const char *name, double value, const char *remark)
{
  printf("%s: %.6g%s%s\n", name, value, remark != NULL ? "  # " : "", remark != NULL ? remark : "");
  fflush(stdout);
}

void must(bool condition, const char *what)
{
  if (condition) return;
  fprintf(stderr, "bench: %s\n", what);
  exit(1);
}

void bench_client_prepare(struct bench_client *client, int port)
{
  memset(&client->config, 0, sizeof client->config);
  client->config.receive_buffer = client->receive;
  client->config.receive_size = sizeof client->receive;
  client->config.send_buffer = client->send;
  client->config.send_size = sizeof client->send;
  snprintf(client->service, sizeof client->service, "%d", port);
  port_posix_tcp(&client->socket, "127.0.0.1", client->service);
}

void bench_client_start(struct bench_client *client)
{
  must(fairlock_client_init(&client->client, &client->config, &client->socket.transport) ==
           FAIRLOCK_OK,
       "client");
  must(fairlock_connect(&client->client) == FAIRLOCK_OK, "no server");
}

void bench_client_open(struct bench_client *client, int port)
{
  bench_client_prepare(client, port);
  bench_client_start(client);
}

void bench_client_close(struct bench_client *client)
{
  fairlock_client_deinit(&client->client);
}

void small_client_open(struct small_client *small, const char *service, const char *name)
{
  small->config.receive_buffer = small->receive;
  small->config.receive_size = sizeof small->receive;
  small->config.send_buffer = small->send;
  small->config.send_size = sizeof small->send;
  port_posix_tcp(&small->socket, "127.0.0.1", service);
  must(fairlock_client_init(&small->client, &small->config, &small->socket.transport) ==
           FAIRLOCK_OK,
       "client");
  must(fairlock_init(&small->door, &small->client, name) == FAIRLOCK_OK, "lock");
  must(fairlock_connect(&small->client) == FAIRLOCK_OK, "no server");
}

void small_client_arrive(struct small_client *small)
{
  uint32_t sent = counters_of(&small->client).requests;
  must(fairlock_start_acquire(&small->door, FAIRLOCK_FOREVER, 600000) == FAIRLOCK_PENDING,
       "acquire");
  while (fairlock_result(&small->door) == FAIRLOCK_PENDING &&
         (counters_of(&small->client).requests == sent || small->door.unanswered != 0))
    fairlock_poll(&small->client, 1000);
}

int most_files(void)
{
  const rlim_t enough = 1 << 20;
  struct rlimit files;
  must(getrlimit(RLIMIT_NOFILE, &files) == 0, "limit of descriptors");
  files.rlim_cur = files.rlim_max < enough ? files.rlim_max : enough; /* infinity is larger */
  must(setrlimit(RLIMIT_NOFILE, &files) == 0, "limit of descriptors");
  return (int)files.rlim_cur;
}

void finish_all(struct bench_client *client, struct fairlock *handles, int count)
{
  for (int done = 0; done < count;) {
    if (fairlock_result(&handles[done]) == FAIRLOCK_PENDING) {
      fairlock_poll(&client->client, 1000);
      continue;
    }
    must(fairlock_result(&handles[done]) == FAIRLOCK_OK,
         fairlock_status_text(fairlock_result(&handles[done])));
    done++;
  }
}

redisContext *hiredis_open(int port)
{
  redisContext *peer = redisConnect("127.0.0.1", port);
  must(peer != NULL && peer->err == 0, "hiredis cannot connect");
  return peer;
}

double info_number(redisContext *peer, const char *section, const char *field)
{
  redisReply *reply = redisCommand(peer, "INFO %s", section);
  must(reply != NULL && reply->str != NULL, "INFO");
  /* "line:field" is a field within a line */
  const char *colon = strchr(field, ':');
  const char *last = colon != NULL && colon[1] != 0 ? colon + 1 : field;
  char line[64];
  snprintf(line, sizeof line, "%.*s", (int)(colon != NULL ? colon + 1 - field : 0), field);
  const char *at = strstr(reply->str, line);
  at = at != NULL ? strstr(at, last) : NULL;
  double number = at != NULL ? strtod(at + strlen(last), NULL) : 0;
  freeReplyObject(reply);
  return number;
}

/* Bytes that the server has received and sent, without those of this request. */
double net_bytes(redisContext *peer)
{
  static double own;
  double first = info_number(peer, "stats", "total_net_input_bytes:") +
                 info_number(peer, "stats", "total_net_output_bytes:");
  double second = info_number(peer, "stats", "total_net_input_bytes:") +
                  info_number(peer, "stats", "total_net_output_bytes:");
  own += second - first;
  double result = second - own;
  own += second - first;
  return result;
}

double server_cpu(redisContext *peer)
{
  return (info_number(peer, "cpu", "used_cpu_user:") + info_number(peer, "cpu", "used_cpu_sys:")) *
         1e6;
}

int format_request(char **text, const char *name, const char *id, unsigned long long token)
{
  char argument[200];
  long long expires = ((long long)time(NULL) + 100) * 1000;
  bool acquires = token == 0;
  const struct fairlock_script *script = &fairlock_lock_script;
  if (acquires) snprintf(argument, sizeof argument, "%s %lld 5000 30000", id, expires);
  else snprintf(argument, sizeof argument, "%s %lld 0 0 %llu", id, expires, token);
  return redisFormatCommand(text,
                            "EVALSHA %s 4 %s redisson_lock_queue:{%s} redisson_lock_timeout:{%s} "
                            "fairlock:{%s} %s",
                            script->sha1, name, name, name, name, argument);
}

void append_request(redisContext *peer, const char *name, const char *id, unsigned long long token)
{
  char *text;
  int size = format_request(&text, name, id, token);
  redisAppendFormattedCommand(peer, text, (size_t)size);
  redisFreeCommand(text);
}

long long take_reply(redisContext *peer, long long state)
{
  redisReply *reply;
  if (redisGetReply(peer, (void **)&reply) != REDIS_OK || reply->elements != 3 ||
      reply->element[0]->integer != state) {
    (void)fprintf(stderr, "bench: a script failed: %s\n",
                  reply != NULL && reply->str != NULL ? reply->str : "");
    exit(1);
  }
  long long value = reply->element[1]->integer;
  freeReplyObject(reply);
  return value;
}

static int only_pairs(int port, int count)
{
  static struct bench_client client;
  static struct fairlock door;
  bench_client_open(&client, port);
  fairlock_init(&door, &client.client, "sixteen byte nam");
  for (int i = 0; i < count; i++) {
    must(fairlock_acquire(&door, 1000, 30000) == FAIRLOCK_OK, "acquire");
    must(fairlock_release(&door) == FAIRLOCK_OK, "release");
  }
  return 0;
}

static const struct {
  const char *name;
  void (*run)(int port);
} benches[] = {
    {"memory", bench_memory}, /* first: later ones leave memory that it would use */
    {"pair", bench_pair},       {"handover", bench_handover}, {"growth", bench_growth},
    {"many", bench_many},       {"threads", bench_threads},   {"decode", bench_decode},
    {"wait", bench_wait},       {"tls", bench_tls},           {"server", bench_server_time},
    {"waiters", bench_waiters}, {"keep", bench_keep},         {"shared", bench_shared},
};

static bool chosen(int argc, char **argv, const char *name)
{
  for (int i = 1; i < argc; i++) {
    if (strcmp(argv[i], name) == 0) return true;
  }
  return argc < 2;
}

int main(int argc, char **argv)
{
  if (argc == 4 && strcmp(argv[1], "pairs") == 0) return only_pairs(atoi(argv[2]), atoi(argv[3]));
  if (argc == 4 && strcmp(argv[1], "kept") == 0)
    return only_kept_pairs(atoi(argv[2]), atoi(argv[3]));
  server_start(&server, NULL);
  only_pairs(server.port, 1); /* and the server knows the scripts */
  for (size_t i = 0; i < sizeof benches / sizeof benches[0]; i++) {
    if (chosen(argc, argv, benches[i].name)) benches[i].run(server.port);
  }
  server_stop(&server);
  return 0;
}
