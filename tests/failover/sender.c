/* SPDX-License-Identifier: Apache-2.0 */
/* A server that redirects everybody; see sender.h. One connection at a time is enough. */
#include "fairlock_follow.h"
#include "sender.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "harness.h"

struct call {
  int socket;
  size_t used;
  char bytes[1 << 14];
};

/* Reads until there is one more line. NULL: the client has gone. */
static char *next_line(struct call *call, size_t *at)
{
  char *end;
  while ((end = memchr(call->bytes + *at, '\n', call->used - *at)) == NULL) {
    if (call->used == sizeof call->bytes) return NULL;
    ssize_t got = read(call->socket, call->bytes + call->used, sizeof call->bytes - call->used);
    if (got <= 0) return NULL;
    call->used += (size_t)got;
  }
  char *line = call->bytes + *at;
  *at = (size_t)(end - call->bytes) + 1;
  return line;
}

/* Reads a command, and gives its first word. No word of ours has a line feed. */
static bool take_command(struct call *call, char word[16])
{
  size_t at = 0;
  const char *line = next_line(call, &at);
  long words = line != NULL && *line == '*' ? strtol(line + 1, NULL, 10) : 0;
  for (long i = 0; i < words; i++) {
    if (next_line(call, &at) == NULL || (line = next_line(call, &at)) == NULL) return false;
    if (i == 0) (void)snprintf(word, 16, "%.*s", (int)strcspn(line, "\r"), line);
  }
  memmove(call->bytes, call->bytes + at, call->used - at);
  call->used -= at;
  return words > 0;
}

static bool answer(struct call *call, const char *word, const struct sender_control *control)
{
  char text[500];
  (void)snprintf(text, sizeof text, "*2\r\n$10\r\n%010ld\r\n$1\r\n0\r\n", (long)time(NULL));
  if (strcmp(word, "HELLO") == 0)
    (void)snprintf(text, sizeof text,
                   "%%4\r\n$7\r\nversion\r\n$6\r\n7.0.15\r\n$2\r\nid\r\n:%d\r\n"
                   "$4\r\nmode\r\n$7\r\ncluster\r\n$4\r\nrole\r\n$6\r\nmaster\r\n",
                   atomic_load(&control->calls));
  else if (strcmp(word, "TIME") != 0)
    (void)snprintf(text, sizeof text, "-MOVED %s\r\n", control->place);
  return write(call->socket, text, strlen(text)) == (ssize_t)strlen(text);
}

static void send_everybody(int listener, void *context)
{
  static struct call call;
  struct sender_control *control = context;
  char word[16];
  while ((call.socket = take_call(listener)) >= 0) {
    int number = atomic_load(&control->calls);
    call.used = 0;
    if (number < SENDER_CALLS) atomic_store(&control->called_at[number], now_ms());
    atomic_store(&control->calls, number + 1);
    while (take_command(&call, word) && answer(&call, word, control)) {
    }
    (void)close(call.socket);
  }
}

void sender_start(struct sender *sender)
{
  int listener = listen_anywhere(&sender->port);
  sender->control = share(sizeof *sender->control);
  sender->pid = spawn(send_everybody, listener, sender->control);
  (void)close(listener);
}

void sender_stop(struct sender *sender)
{
  slay(sender->pid);
}

void sender_says(struct sender *sender, const char *name, const char *place)
{
  (void)snprintf(sender->control->place, sizeof sender->control->place, "%u %s",
                 fairlock_slot(name, strlen(name)), place);
}
