/* A small Redis client for tests; see redis.h. */
#include "redis.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static void die(const char *why)
{
  printf("not ok redis connection: %s\n", why);
  exit(1);
}

static char *grow(char *memory, size_t *room, size_t needed)
{
  if (needed <= *room) return memory;
  *room = needed * 2;
  memory = realloc(memory, *room);
  if (memory == NULL) die("no memory");
  return memory;
}

bool redis_open(struct redis *redis, int port)
{
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
  int one = 1;
  memset(redis, 0, sizeof *redis);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  redis->socket = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (connect(redis->socket, (struct sockaddr *)&address, sizeof address) < 0) {
    close(redis->socket);
    return false;
  }
  setsockopt(redis->socket, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  return true;
}

void redis_close(struct redis *redis)
{
  close(redis->socket);
  free(redis->bytes);
  free(redis->text);
  memset(redis, 0, sizeof *redis);
  redis->socket = -1;
}

/* Waits for more bytes. False when the time passed. */
static bool receive(struct redis *redis, int timeout_ms)
{
  struct pollfd poller = {.fd = redis->socket, .events = POLLIN};
  if (redis->used > 0) {
    memmove(redis->bytes, redis->bytes + redis->used, redis->size - redis->used);
    redis->size -= redis->used;
    redis->used = 0;
  }
  if (poll(&poller, 1, timeout_ms) <= 0) return false;
  redis->bytes = grow(redis->bytes, &redis->room, redis->size + 16384);
  ssize_t got = recv(redis->socket, redis->bytes + redis->size, 16384, 0);
  if (got <= 0) die("closed by the server");
  redis->size += (size_t)got;
  return true;
}

static void add_text(struct redis *redis, const char *text, size_t size)
{
  redis->text = grow(redis->text, &redis->text_room, redis->text_size + size + 2);
  if (redis->text_size > 0) redis->text[redis->text_size++] = '\n';
  memcpy(redis->text + redis->text_size, text, size);
  redis->text_size += size;
  redis->text[redis->text_size] = 0;
}

/* Reads a line, which stays valid until more is received. */
static char *read_line(struct redis *redis, size_t *size, int timeout_ms)
{
  for (;;) {
    char *start = redis->bytes + redis->used;
    char *end = redis->size > redis->used ? memchr(start, '\n', redis->size - redis->used) : NULL;
    if (end != NULL) {
      *size = (size_t)(end - start) - 1;
      end[-1] = 0;
      redis->used += *size + 2;
      return start;
    }
    if (!receive(redis, timeout_ms)) return NULL;
  }
}

static bool read_value(struct redis *redis, int timeout_ms)
{
  size_t size;
  const char *line = read_line(redis, &size, timeout_ms);
  if (line == NULL) return false;
  long count = strtol(line + 1, NULL, 10);
  switch (line[0]) {
  case '*':
    for (long i = 0; i < count; i++) {
      if (!read_value(redis, 10000)) die("half a reply");
    }
    if (count < 0) add_text(redis, "(nil)", 5);
    return true;
  case '$':
    if (count < 0) {
      add_text(redis, "(nil)", 5);
      return true;
    }
    while (redis->size - redis->used < (size_t)count + 2) {
      if (!receive(redis, 10000)) die("half a reply");
    }
    add_text(redis, redis->bytes + redis->used, (size_t)count);
    redis->used += (size_t)count + 2;
    return true;
  default:
    add_text(redis, line + (line[0] == '-' ? 0 : 1), size - (line[0] == '-' ? 0 : 1));
    return true;
  }
}

const char *redis_next(struct redis *redis, int timeout_ms)
{
  redis->text_size = 0;
  redis->text = grow(redis->text, &redis->text_room, 16);
  redis->text[0] = 0;
  return read_value(redis, timeout_ms) ? redis->text : NULL;
}

void redis_send(struct redis *redis, int count, const char *const *words)
{
  size_t room = 64;
  size_t size;
  for (int i = 0; i < count; i++)
    room += strlen(words[i]) + 32;
  char *request = malloc(room);
  if (request == NULL) die("no memory");
  size = (size_t)snprintf(request, room, "*%d\r\n", count);
  for (int i = 0; i < count; i++) {
    size +=
        (size_t)snprintf(request + size, room - size, "$%zu\r\n%s\r\n", strlen(words[i]), words[i]);
  }
  for (size_t sent = 0; sent < size;) {
    ssize_t done = send(redis->socket, request + sent, size - sent, MSG_NOSIGNAL);
    if (done < 0) die("cannot send");
    sent += (size_t)done;
  }
  free(request);
}

const char *redis_ask_words(struct redis *redis, int count, const char *const *words)
{
  redis_send(redis, count, words);
  const char *reply = redis_next(redis, 30000);
  if (reply == NULL) die("no reply");
  return reply;
}

static const char *ask(struct redis *redis, const char *format, va_list arguments)
{
  char line[4096];
  const char *words[64];
  int count = 0;
  vsnprintf(line, sizeof line, format, arguments);
  for (char *word = strtok(line, " "); word != NULL && count < 64; word = strtok(NULL, " "))
    words[count++] = word;
  return redis_ask_words(redis, count, words);
}

const char *redis_ask(struct redis *redis, const char *format, ...)
{
  va_list arguments;
  va_start(arguments, format);
  const char *reply = ask(redis, format, arguments);
  va_end(arguments);
  return reply;
}

int64_t redis_number(struct redis *redis, const char *format, ...)
{
  va_list arguments;
  va_start(arguments, format);
  const char *reply = ask(redis, format, arguments);
  va_end(arguments);
  return strtoll(reply, NULL, 10);
}
