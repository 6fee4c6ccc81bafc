/* Private servers, raw connections, clients and actors for the suites; see harness.h. */
#include "harness.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#ifndef REDIS_SERVER
#define REDIS_SERVER "build/redis-server"
#endif

/* A test that takes longer has failed. */
#define TEST_LIMIT_S 120

struct server server;
struct raw redis;

int64_t now_us(void)
{
  struct timespec time;
  (void)clock_gettime(CLOCK_MONOTONIC, &time);
  return (int64_t)time.tv_sec * 1000000 + time.tv_nsec / 1000;
}

int64_t now_ms(void)
{
  return now_us() / 1000;
}

void sleep_ms(int ms)
{
  int64_t until = now_ms() + ms;
  for (int64_t left = ms; left > 0; left = until - now_ms())
    (void)poll(NULL, 0, (int)left);
}

/* Gives up on the whole suite: the harness itself does not work. */
static void give_up(const char *why)
{
  printf("not ok harness: %s: %s\n", why, strerror(errno));
  exit(1);
}

/* Processes */

static pid_t owner; /* the process of the suite */
static pid_t children[256];
static char directories[16][40];

static void remove_directory(const char *directory)
{
  static const char *const files[] = {"log", "dump.rdb"};
  char path[80];
  for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
    (void)snprintf(path, sizeof path, "%s/%s", directory, files[i]);
    (void)unlink(path);
  }
  (void)chmod(directory, 0700);
  (void)rmdir(directory);
}

static void kill_children(void)
{
  for (size_t i = 0; i < sizeof children / sizeof children[0]; i++) {
    if (children[i] > 0) (void)kill(children[i], SIGKILL);
  }
}

static void clean_up(void)
{
  if (getpid() != owner) return;
  kill_children();
  for (size_t i = 0; i < sizeof children / sizeof children[0]; i++) {
    if (children[i] > 0) (void)waitpid(children[i], NULL, 0);
    children[i] = 0;
  }
  for (size_t i = 0; i < sizeof directories / sizeof directories[0]; i++) {
    if (directories[i][0] != 0) remove_directory(directories[i]);
    directories[i][0] = 0;
  }
}

static void on_signal(int number)
{
  static const char late[] = "# the test took too long, or was interrupted\nnot ok harness\n";
  if (getpid() == owner) {
    kill_children();
    (void)!write(STDOUT_FILENO, late, sizeof late - 1);
    for (size_t i = 0; i < sizeof directories / sizeof directories[0]; i++) {
      if (directories[i][0] != 0) remove_directory(directories[i]);
    }
  }
  _exit(128 + number);
}

static void set_up(void)
{
  static const int signals[] = {SIGALRM, SIGINT, SIGTERM, SIGHUP};
  if (owner != 0) return;
  owner = getpid();
  (void)atexit(clean_up);
  (void)signal(SIGPIPE, SIG_IGN);
  for (size_t i = 0; i < sizeof signals / sizeof signals[0]; i++)
    (void)signal(signals[i], on_signal);
}

/* The kernel ends the child when this process dies, of whatever. */
static void die_with_parent(void)
{
  (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != owner) _exit(1);
}

static pid_t fork_child(void)
{
  set_up();
  (void)fflush(stdout);
  pid_t pid = fork();
  if (pid < 0) give_up("fork");
  if (pid == 0) {
    (void)alarm(0);
    die_with_parent();
    return 0;
  }
  for (size_t i = 0; i < sizeof children / sizeof children[0]; i++) {
    if (children[i] == 0) {
      children[i] = pid;
      return pid;
    }
  }
  (void)kill(pid, SIGKILL);
  give_up("too many children");
  return -1;
}

pid_t spawn(void (*run)(int index, void *context), int index, void *context)
{
  pid_t pid = fork_child();
  if (pid == 0) {
    run(index, context);
    (void)fflush(stdout);
    _exit(0);
  }
  return pid;
}

static void forget_child(pid_t pid)
{
  for (size_t i = 0; i < sizeof children / sizeof children[0]; i++) {
    if (children[i] == pid) children[i] = 0;
  }
}

int reap(pid_t pid)
{
  int64_t until = now_ms() + SOON;
  int status = -1; /* for one that was reaped before */
  while (waitpid(pid, &status, WNOHANG) == 0) {
    if (now_ms() > until) return -1;
    sleep_ms(5);
  }
  forget_child(pid);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

void slay(pid_t pid)
{
  for (size_t i = 0; i < sizeof children / sizeof children[0]; i++) {
    if (children[i] != pid) continue;
    (void)kill(pid, SIGKILL);
    (void)waitpid(pid, NULL, 0);
    children[i] = 0;
  }
}

void *share(size_t size)
{
  void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) give_up("mmap");
  return memory;
}

/* Servers */

static int listen_anywhere(void)
{
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (listener < 0 || bind(listener, (struct sockaddr *)&address, sizeof address) != 0)
    give_up("bind");
  return listener;
}

int free_port(void)
{
  struct sockaddr_in address;
  socklen_t size = sizeof address;
  int listener = listen_anywhere();
  if (getsockname(listener, (struct sockaddr *)&address, &size) != 0) give_up("getsockname");
  (void)close(listener);
  return ntohs(address.sin_port);
}

static void run_server(struct server *started)
{
  const char *arguments[40] = {"redis-server",
                               "--port",
                               started->port_text,
                               "--bind",
                               "127.0.0.1",
                               "--save",
                               "",
                               "--appendonly",
                               "no",
                               "--dir",
                               started->directory,
                               "--logfile",
                               "log",
                               "--daemonize",
                               "no"};
  size_t count = 15;
  for (size_t i = 0; started->options != NULL && started->options[i] != NULL; i++)
    arguments[count++] = started->options[i];
  arguments[count] = NULL;
  (void)execv(REDIS_SERVER, (char *const *)(uintptr_t)arguments);
  fprintf(stderr, "# cannot run %s: %s\n", REDIS_SERVER, strerror(errno));
  _exit(127);
}

/*
 * Whether it is ready, by its own log: on its port somebody else's server may answer, which another
 * suite has started there a moment before.
 */
static bool answers(const struct server *started)
{
  char name[80], text[8192];
  (void)snprintf(name, sizeof name, "%s/log", started->directory);
  int64_t until = now_ms() + SOON;
  while (now_ms() < until) {
    FILE *log = fopen(name, "r");
    size_t size = log != NULL ? fread(text, 1, sizeof text - 1, log) : 0;
    if (log != NULL) (void)fclose(log);
    text[size] = 0;
    if (strstr(text, "eady to accept connections") != NULL) return true;
    if (waitpid(started->pid, NULL, WNOHANG) != 0) return false;
    sleep_ms(10);
  }
  return false;
}

void server_revive(struct server *started)
{
  char name[80];
  (void)snprintf(name, sizeof name, "%s/log", started->directory);
  (void)unlink(name); /* an earlier one's */
  started->pid = fork_child();
  if (started->pid == 0) run_server(started);
}

void server_start(struct server *started, const char *const options[])
{
  set_up();
  started->options = options;
  (void)snprintf(started->directory, sizeof started->directory, "/tmp/fairlock-test-XXXXXX");
  if (mkdtemp(started->directory) == NULL) give_up("mkdtemp");
  for (size_t i = 0; i < sizeof directories / sizeof directories[0]; i++) {
    if (directories[i][0] != 0) continue;
    memcpy(directories[i], started->directory, sizeof directories[i]);
    break;
  }
  /* somebody else may have taken the port meanwhile */
  for (int attempt = 0; attempt < 5; attempt++) {
    started->port = free_port();
    (void)snprintf(started->port_text, sizeof started->port_text, "%d", started->port);
    server_revive(started);
    if (answers(started)) return;
    slay(started->pid);
  }
  give_up("redis-server does not start");
}

void server_kill(struct server *started)
{
  slay(started->pid);
}

void server_restart(struct server *started)
{
  int64_t until = now_ms() + SOON;
  do { /* a connection of somebody else may have the port at its own end for a moment */
    server_kill(started);
    server_revive(started);
    if (answers(started)) return;
    sleep_ms(50);
  } while (now_ms() < until);
  give_up("redis-server does not start again");
}

void server_stop(struct server *started)
{
  server_kill(started);
  for (size_t i = 0; i < sizeof directories / sizeof directories[0]; i++) {
    if (strcmp(directories[i], started->directory) == 0) directories[i][0] = 0;
  }
  remove_directory(started->directory);
}

/* Raw connections */

bool raw_open(struct raw *raw, int port)
{
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  struct timeval limit = {.tv_sec = SOON / 1000};
  int one = 1;
  address.sin_port = htons((uint16_t)port);
  memset(raw, 0, sizeof *raw);
  raw->socket = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (raw->socket < 0) give_up("socket");
  (void)setsockopt(raw->socket, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  (void)setsockopt(raw->socket, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  if (connect(raw->socket, (struct sockaddr *)&address, sizeof address) == 0) return true;
  (void)close(raw->socket);
  raw->socket = -1;
  return false;
}

static void forget_reply(struct raw *raw)
{
  for (size_t i = 0; i < raw->count; i++)
    free(raw->element[i].text);
  raw->count = 0;
}

void raw_close(struct raw *raw)
{
  forget_reply(raw);
  if (raw->socket >= 0) (void)close(raw->socket);
  raw->socket = -1;
}

static void keep_element(struct raw *raw, const struct resp_event *event)
{
  if (raw->count == sizeof raw->element / sizeof raw->element[0])
    give_up("a reply has too many elements");
  struct raw_element *element = &raw->element[raw->count++];
  element->type = event->type;
  element->integer = event->integer;
  element->size = event->size;
  element->text = calloc(event->size + 1, 1);
  if (element->text == NULL) give_up("calloc");
  if (event->size > 0) memcpy(element->text, event->data, event->size);
}

bool raw_reply(struct raw *raw)
{
  struct resp_decoder decoder;
  struct resp_event event;
  size_t start = 0;
  resp_decoder_init(&decoder, sizeof raw->buffer - RESP_OVERHEAD);
  forget_reply(raw);
  for (;;) {
    size_t used;
    int status = resp_decode(&decoder, raw->buffer + start, raw->used - start, &used, &event);
    start += used;
    if (status == RESP_EVENT) {
      keep_element(raw, &event);
      if (!event.last) continue;
      break;
    }
    if (status < 0) return false;
    memmove(raw->buffer, raw->buffer + start, raw->used - start);
    raw->used -= start;
    start = 0;
    ssize_t got = recv(raw->socket, raw->buffer + raw->used, sizeof raw->buffer - raw->used, 0);
    if (got <= 0) return false;
    raw->used += (size_t)got;
  }
  memmove(raw->buffer, raw->buffer + start, raw->used - start);
  raw->used -= start;
  return true;
}

static void send_all(int socket, const char *data, size_t size)
{
  while (size > 0) {
    ssize_t sent = send(socket, data, size, MSG_NOSIGNAL);
    if (sent <= 0) return;
    data += sent;
    size -= (size_t)sent;
  }
}

static void send_format(struct raw *raw, const char *format, va_list values)
{
  static char words[1 << 14], message[1 << 15];
  size_t ends[64], count = 0, used = 0;
  for (const char *at = format;; at++) {
    if (*at == ' ' || *at == 0) {
      ends[count++] = used;
      if (*at == 0) break;
      continue;
    }
    char number[16];
    const char *text = at;
    size_t size = 1;
    if (*at == '%') {
      at++;
      if (*at == 'd') {
        size = (size_t)snprintf(number, sizeof number, "%d", va_arg(values, int));
        text = number;
      } else {
        text = va_arg(values, const char *);
        size = *at == 'b' ? va_arg(values, size_t) : strlen(text);
      }
    }
    memcpy(words + used, text, size);
    used += size;
  }
  struct resp_writer writer;
  resp_writer_init(&writer, message, sizeof message, 0);
  resp_write_header(&writer, RESP_ARRAY, (int64_t)count);
  for (size_t i = 0, start = 0; i < count; start = ends[i++])
    resp_write_bulk(&writer, words + start, ends[i] - start);
  send_all(raw->socket, message, writer.used);
}

void raw_send(struct raw *raw, const char *format, ...)
{
  va_list values;
  va_start(values, format);
  send_format(raw, format, values);
  va_end(values);
}

static bool is_error(const struct raw *raw)
{
  return raw->count == 0 || raw->element[0].type == RESP_SIMPLE_ERROR;
}

bool raw_run(struct raw *raw, const char *format, ...)
{
  va_list values;
  va_start(values, format);
  send_format(raw, format, values);
  va_end(values);
  return raw_reply(raw) && !is_error(raw);
}

int64_t raw_number(struct raw *raw, const char *format, ...)
{
  va_list values;
  va_start(values, format);
  send_format(raw, format, values);
  va_end(values);
  if (!raw_reply(raw) || is_error(raw)) return INT64_MIN;
  const struct raw_element *element = &raw->element[0];
  if (element->type == RESP_NULL) return -1;
  return element->type == RESP_BULK_STRING ? strtoll(element->text, NULL, 10) : element->integer;
}

const char *raw_text(struct raw *raw, const char *format, ...)
{
  va_list values;
  va_start(values, format);
  send_format(raw, format, values);
  va_end(values);
  return raw_reply(raw) ? raw->element[0].text : "";
}

/* What stands in Redis */

int64_t hold_count_of(struct raw *raw, const char *name, const char *id)
{
  return raw_number(raw, "HGET %s %s", name, id);
}

int64_t queue_length(struct raw *raw, const char *name)
{
  return raw_number(raw, "LLEN redisson_lock_queue:{%s}", name);
}

int64_t listeners(struct raw *raw, const char *name)
{
  return raw_number(raw, "PUBSUB CHANNELS redisson_lock__channel:{%s}:*", name);
}

bool queue_reaches(struct raw *raw, const char *name, int64_t length)
{
  int64_t until = now_ms() + SOON;
  while (queue_length(raw, name) != length) {
    if (now_ms() > until) return false;
    sleep_ms(2);
  }
  return true;
}

/* Fields of our hash that tell of a waiter: they contain its id, and so a colon. */
static int64_t notes_on_waiters(struct raw *raw, const char *name)
{
  int64_t notes = 0;
  int64_t fields = raw_number(raw, "HKEYS fairlock:{%s}", name);
  for (int64_t i = 1; i <= fields; i++)
    notes += strchr(raw->element[i].text, ':') != NULL;
  return notes;
}

bool no_trace_of_waiters(struct raw *raw, const char *name)
{
  bool clean = CHECK_EQUAL(raw_number(raw, "EXISTS redisson_lock_queue:{%s}", name), 0);
  clean &= CHECK_EQUAL(raw_number(raw, "EXISTS redisson_lock_timeout:{%s}", name), 0);
  clean &= CHECK_EQUAL(notes_on_waiters(raw, name), 0);
  return clean;
}

bool nothing_left(struct raw *raw, const char *name)
{
  bool clean = CHECK_EQUAL(raw_number(raw, "EXISTS %s", name), 0);
  clean &= no_trace_of_waiters(raw, name);
  return clean;
}

bool sane(struct raw *raw, const char *name)
{
  char waiter[64][FAIRLOCK_HOLDER_ID_SIZE];
  int64_t ttl = raw_number(raw, "PTTL %s", name);
  bool good = CHECK(ttl != -1);
  good &= CHECK(raw_number(raw, "PTTL fairlock:{%s}", name) != -1);
  int64_t count = raw_number(raw, "LRANGE redisson_lock_queue:{%s} 0 63", name);
  for (int64_t i = 0; i < count; i++)
    (void)snprintf(waiter[i], sizeof waiter[i], "%s", raw->element[i + 1].text);
  for (int64_t i = 0; i < count; i++) {
    good &= CHECK(raw_number(raw, "ZSCORE redisson_lock_timeout:{%s} %s", name, waiter[i]) > 0);
  }
  return good;
}

/* Clients */

static void count_loss(struct fairlock *handle, void *context)
{
  struct client *client = context;
  (void)handle;
  (void)atomic_fetch_add(&client->losses, 1);
}

void client_prepare(struct client *client, int port)
{
  memset(client, 0, sizeof *client);
  (void)snprintf(client->service, sizeof client->service, "%d", port);
  port_posix_tcp(&client->socket, "127.0.0.1", client->service);
  client->config.receive_buffer = client->receive;
  client->config.receive_size = sizeof client->receive;
  client->config.send_buffer = client->send;
  client->config.send_size = sizeof client->send;
  client->config.lost = count_loss;
  client->config.lost_context = client;
}

void client_start(struct client *client)
{
  CHECK_EQUAL(fairlock_client_init(&client->client, &client->config, &client->socket.transport),
              FAIRLOCK_OK);
}

void client_open(struct client *client, int port)
{
  client_prepare(client, port);
  client_start(client);
}

void client_close(struct client *client)
{
  fairlock_client_deinit(&client->client);
}

const char *client_error(struct client *client)
{
  fairlock_error(&client->client, client->error);
  return client->error;
}

int await_result(struct client *client, struct fairlock *handle)
{
  int64_t until = now_ms() + SOON;
  while (fairlock_result(handle) == FAIRLOCK_PENDING && now_ms() < until)
    fairlock_poll(&client->client, 100);
  return fairlock_result(handle);
}

void service_for(struct client *client, int ms)
{
  int64_t until = now_ms() + ms;
  for (int64_t left = ms; left > 0; left = until - now_ms())
    fairlock_poll(&client->client, (uint32_t)left);
}

static void copy_id(char to[FAIRLOCK_HOLDER_ID_SIZE], const struct fairlock_report *report)
{
  size_t size =
      report->id_size < FAIRLOCK_HOLDER_ID_SIZE - 1 ? report->id_size : FAIRLOCK_HOLDER_ID_SIZE - 1;
  memcpy(to, report->id, size);
  to[size] = 0;
}

void picture_report(const struct fairlock_report *report, void *context)
{
  struct picture *picture = context;
  if (report->place == 0) {
    memset(picture, 0, sizeof *picture);
    picture->held = report->id != NULL;
    if (picture->held) copy_id(picture->holder, report);
    picture->ttl_ms = report->ttl_ms;
    picture->hold_count = report->hold_count;
    picture->token = report->token;
    picture->waiters = report->waiters;
    return;
  }
  if (report->place <= 8) copy_id(picture->waiter[report->place - 1], report);
  picture->seen++;
  picture->ours += report->ours;
  picture->alive += report->alive;
  picture->listening += report->listens;
}

struct picture inspect(struct client *client, const char *name)
{
  struct picture picture;
  memset(&picture, 0, sizeof picture);
  int status = fairlock_inspect(&client->client, name, strlen(name), picture_report, &picture);
  picture.status = status;
  return picture;
}

/* Actors */

struct command {
  char what;
  uint32_t wait_ms, lease_ms;
};

static void tell_event(int pipe, struct client *client, struct fairlock *handle, char what,
                       int status)
{
  struct event event;
  memset(&event, 0, sizeof event);
  event.what = what;
  event.status = status;
  if (handle->engine != NULL) {
    event.token = fairlock_token(handle);
    event.held_ms = fairlock_remaining_ms(handle);
    event.holds = fairlock_hold_count(handle);
    fairlock_id(handle, event.id);
  }
  event.losses = atomic_load(&client->losses);
  event.at_us = now_us();
  event.stats = fairlock_read_counters(&client->client);
  if (write(pipe, &event, sizeof event) != (ssize_t)sizeof event) _exit(1);
}

static int obey(struct fairlock *handle, const struct command *command)
{
  switch (command->what) {
  case 'a':
    return fairlock_acquire(handle, command->wait_ms, command->lease_ms);
  case 'r':
    return fairlock_release(handle);
  case 'd':
    return fairlock_deinit(handle);
  case 'p':
    sleep_ms((int)command->wait_ms);
    return FAIRLOCK_OK;
  default:
    return FAIRLOCK_OK;
  }
}

static void act(struct client *client, const char *name, int commands, int events)
{
  struct fairlock handle;
  struct command command;
  client_start(client);
  if (fairlock_init(&handle, &client->client, name) != FAIRLOCK_OK) _exit(1);
  for (;;) {
    struct pollfd wanted = {.fd = commands, .events = POLLIN};
    if (poll(&wanted, 1, 0) == 0) {
      fairlock_poll(&client->client, 10);
      continue;
    }
    if (read(commands, &command, sizeof command) != (ssize_t)sizeof command || command.what == 'q')
      _exit(0);
    if (command.what == 'c') {
      command.what = 'a';
      int status = obey(&handle, &command);
      if (status == FAIRLOCK_OK) sleep_ms(5);
      tell_event(events, client, &handle, 'c', status);
      if (status == FAIRLOCK_OK) (void)fairlock_release(&handle);
    } else {
      int status = obey(&handle, &command);
      tell_event(events, client, &handle, command.what, status);
    }
  }
}

static void open_pipe(int ends[2])
{
  if (pipe(ends) != 0) give_up("pipe");
  (void)fcntl(ends[0], F_SETFD, FD_CLOEXEC);
  (void)fcntl(ends[1], F_SETFD, FD_CLOEXEC);
}

void actor_start_with(struct actor *actor, int port, const char *name,
                      const struct fairlock_config *config)
{
  int commands[2], events[2];
  open_pipe(commands);
  open_pipe(events);
  actor->pid = fork_child();
  if (actor->pid == 0) {
    static struct client client;
    (void)close(commands[1]);
    (void)close(events[0]);
    client_prepare(&client, port);
    if (config != NULL) {
      struct fairlock_config own = client.config;
      client.config = *config;
      client.config.receive_buffer = own.receive_buffer;
      client.config.receive_size = own.receive_size;
      client.config.send_buffer = own.send_buffer;
      client.config.send_size = own.send_size;
      client.config.lost = own.lost;
      client.config.lost_context = own.lost_context;
    }
    act(&client, name, commands[0], events[1]);
  }
  (void)close(commands[0]);
  (void)close(events[1]);
  actor->commands = commands[1];
  actor->events = events[0];
}

void actor_start(struct actor *actor, int port, const char *name)
{
  actor_start_with(actor, port, name, NULL);
}

void actor_tell(const struct actor *actor, char what, uint32_t wait_ms, uint32_t lease_ms)
{
  struct command command;
  memset(&command, 0, sizeof command);
  command.what = what;
  command.wait_ms = wait_ms;
  command.lease_ms = lease_ms;
  CHECK(write(actor->commands, &command, sizeof command) == (ssize_t)sizeof command);
}

struct event actor_hear(const struct actor *actor, int timeout_ms)
{
  struct event event;
  struct pollfd wanted = {.fd = actor->events, .events = POLLIN};
  memset(&event, 0, sizeof event);
  event.status = FAIRLOCK_PENDING;
  if (poll(&wanted, 1, timeout_ms) > 0 &&
      read(actor->events, &event, sizeof event) != (ssize_t)sizeof event) {
    memset(&event, 0, sizeof event);
    event.status = FAIRLOCK_PENDING;
  }
  return event;
}

struct event actor_do(const struct actor *actor, char what, uint32_t wait_ms, uint32_t lease_ms)
{
  actor_tell(actor, what, wait_ms, lease_ms);
  return actor_hear(actor, SOON);
}

void actor_end(struct actor *actor)
{
  struct command command;
  memset(&command, 0, sizeof command);
  command.what = 'q';
  (void)!write(actor->commands, &command, sizeof command);
  (void)close(actor->commands);
  if (actor->pid > 0 && reap(actor->pid) < 0) slay(actor->pid);
  (void)close(actor->events);
  actor->pid = 0;
}

/* Tests */

void begin(void)
{
  if (owner == 0) {
    server_start(&server, NULL);
    if (!raw_open(&redis, server.port)) give_up("no connection to redis-server");
  }
  (void)alarm(TEST_LIMIT_S);
  for (size_t i = 0; i < sizeof children / sizeof children[0]; i++) { /* of a test that failed */
    if (children[i] > 0 && children[i] != server.pid) slay(children[i]);
  }
  CHECK(raw_run(&redis, "FLUSHALL"));
  CHECK(raw_run(&redis, "SCRIPT FLUSH"));
}
