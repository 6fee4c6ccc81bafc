/* SPDX-License-Identifier: Apache-2.0 */
/* Connections that look without the library; see raw.h. */
#include "raw.h"
#include "clock.h"
#include "loopback.h"
#include "process.h"

#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

bool raw_open(struct raw *raw, int port)
{
  struct timeval limit = {.tv_sec = SOON / 1000};
  raw->count = raw->used = 0;
  raw->socket = dial(port);
  if (raw->socket < 0) return false;
  (void)setsockopt(raw->socket, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  return true;
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

/* False: no more come. */
static bool receive(struct raw *raw)
{
  if (raw->used == sizeof raw->buffer) give_up("a reply is too long");
  ssize_t got = recv(raw->socket, raw->buffer + raw->used, sizeof raw->buffer - raw->used, 0);
  if (got <= 0) return false;
  raw->used += (size_t)got;
  return true;
}

static void drop(struct raw *raw, size_t size)
{
  raw->used -= size;
  memmove(raw->buffer, raw->buffer + size, raw->used);
}

/* The size of the line at the beginning of the buffer, its end included; 0: it does not come. */
static size_t receive_line(struct raw *raw)
{
  const char *end;
  while ((end = memchr(raw->buffer, '\n', raw->used)) == NULL) {
    if (!receive(raw)) return 0;
  }
  return (size_t)(end - raw->buffer) + 1;
}

static void note(struct raw *raw, char type, int64_t integer, const char *text, size_t size)
{
  if (raw->count == sizeof raw->element / sizeof raw->element[0])
    give_up("a reply has too many elements");
  char *copy = malloc(size + 1);
  if (copy == NULL) give_up("malloc");
  memcpy(copy, text, size);
  copy[size] = 0;
  raw->element[raw->count++] = (struct raw_element){type, integer, size, copy};
}

static bool read_value(struct raw *raw)
{
  size_t size = receive_line(raw);
  if (size < 3) return false;
  char type = raw->buffer[0];
  int64_t number = strtoll(raw->buffer + 1, NULL, 10);
  bool has_elements = type == '*' || type == '%' || type == '~' || type == '>';
  bool has_size = has_elements || type == '$';
  if (type == '%') number *= 2;
  if (has_size && number < 0) note(raw, '_', 0, "", 0);
  else if (has_elements || type == ':') note(raw, type, number, "", 0);
  else if (type != '$') note(raw, type, 0, raw->buffer + 1, size - 3);
  drop(raw, size);
  if (!has_size || number < 0) return true;
  for (int64_t i = 0; has_elements && i < number; i++) {
    if (!read_value(raw)) return false;
  }
  if (has_elements) return true;
  while (raw->used < (size_t)number + 2) {
    if (!receive(raw)) return false;
  }
  note(raw, type, 0, raw->buffer, (size_t)number);
  drop(raw, (size_t)number + 2);
  return true;
}

bool raw_reply(struct raw *raw)
{
  forget_reply(raw);
  return read_value(raw);
}

bool raw_reply_within(struct raw *raw, int timeout_ms)
{
  struct pollfd wanted = {.fd = raw->socket, .events = POLLIN};
  if (raw->used == 0 && poll(&wanted, 1, timeout_ms) <= 0) return false;
  return raw_reply(raw);
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

/*
 * Puts the words of a command one after the other, and notes their ends. Returns how many there
 * are.
 */
static size_t put_words(const char *format, va_list values, char *words, size_t room, size_t *ends)
{
  size_t count = 0, used = 0;
  for (const char *at = format;; at++) {
    if (*at == ' ' || *at == 0) {
      ends[count++] = used;
      if (*at == 0) return count;
      continue;
    }
    char number[24];
    const char *text = at;
    size_t size = 1;
    if (*at == '%') {
      bool is_number = *++at == 'd' || *at == 'l';
      int64_t value = *at == 'd' ? va_arg(values, int) : *at == 'l' ? va_arg(values, int64_t) : 0;
      (void)snprintf(number, sizeof number, "%lld", (long long)value);
      text = is_number ? number : va_arg(values, const char *);
      size = *at == 'b' ? va_arg(values, size_t) : strlen(text);
      if (*at == 'l') at++;
    }
    if (used + size > room) give_up("a command is too long");
    memcpy(words + used, text, size);
    used += size;
  }
}

static void send_format(struct raw *raw, const char *format, va_list values)
{
  char words[1 << 15], message[1 << 16];
  size_t ends[64], count = put_words(format, values, words, sizeof words, ends);
  size_t used = (size_t)snprintf(message, sizeof message, "*%zu\r\n", count);
  for (size_t i = 0, start = 0; i < count; start = ends[i++]) {
    used += (size_t)snprintf(message + used, 32, "$%zu\r\n", ends[i] - start);
    memcpy(message + used, words + start, ends[i] - start);
    used += ends[i] - start;
    memcpy(message + used, "\r\n", 2);
    used += 2;
  }
  send_all(raw->socket, message, used);
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
  return raw->count == 0 || raw->element[0].type == '-';
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
  if (element->type == '_') return -1;
  return element->type == '$' ? strtoll(element->text, NULL, 10) : element->integer;
}

const char *raw_text(struct raw *raw, const char *format, ...)
{
  va_list values;
  va_start(values, format);
  send_format(raw, format, values);
  va_end(values);
  return raw_reply(raw) ? raw->element[0].text : "";
}
