/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The proxy; see proxy.h. A loop around poll(). Each direction of a connection takes whole RESP
 * values out of what it receives and puts them in a queue, from which they go out when they are
 * due.
 */
#define _GNU_SOURCE /* ppoll */
#include "proxy.h"
#include "clock.h"
#include "loopback.h"
#include "process.h"
#include "resp.h"

#include <poll.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#define LINKS  160
#define BUFFER (1 << 16)

struct chunk {
  struct chunk *next;
  int64_t due; /* us */
  size_t size;
  char data[];
};

struct direction {
  int from, to;
  bool ended; /* nothing comes any more */
  struct resp_decoder decoder;
  struct chunk *first, **last;
  /* of the buffer; parsed: taken by the decoder, but its value is not yet whole */
  size_t used, parsed;
  int depth_element;
  int values;   /* requests, or answers, those to SUBSCRIBE included */
  bool answer;  /* the value under way is one */
  bool message; /* ... or a message */
  char name[12];
  char buffer[BUFFER];
};

struct link {
  bool open;
  bool stranded; /* the client's side is closed, and what it sent is still on its way */
  int cut_at;    /* after so many answers; 0: never */
  struct direction up, down;
};

static struct link links[LINKS];
static struct proxy_control *control;

static void start_direction(struct direction *direction, int from, int to)
{
  memset(direction, 0, sizeof *direction);
  direction->from = from;
  direction->to = to;
  direction->last = &direction->first;
  resp_decoder_init(&direction->decoder, BUFFER - RESP_OVERHEAD);
}

static void drop_chunks(struct direction *direction)
{
  while (direction->first != NULL) {
    struct chunk *chunk = direction->first;
    direction->first = chunk->next;
    free(chunk);
  }
  direction->last = &direction->first;
}

static void close_link(struct link *link)
{
  if (!link->open) return;
  (void)close(link->up.from);
  (void)close(link->up.to);
  drop_chunks(&link->up);
  drop_chunks(&link->down);
  link->open = false;
}

static void take_connection(int listener, int port)
{
  int from = take_call(listener);
  if (from < 0) return;
  int to = atomic_load(&control->refuse) ? -1 : dial(port);
  struct link *link = links;
  while (link < links + LINKS && link->open)
    link++;
  if (to < 0 || link == links + LINKS) {
    (void)close(from);
    if (to >= 0) (void)close(to);
    return;
  }
  link->open = true;
  link->stranded = false;
  link->cut_at = 0;
  start_direction(&link->up, from, to);
  start_direction(&link->down, to, from);
  (void)atomic_fetch_add(&control->connections, 1);
}

static void put(struct direction *direction, const char *data, size_t size, int delay_ms)
{
  struct chunk *chunk = malloc(sizeof *chunk + size);
  if (chunk == NULL) abort();
  chunk->next = NULL;
  chunk->due = now_us() + (int64_t)delay_ms * 1000;
  chunk->size = size;
  memcpy(chunk->data, data, size);
  *direction->last = chunk;
  direction->last = &chunk->next;
}

static bool due(atomic_int *order, int index)
{
  int expected = index;
  return atomic_compare_exchange_strong(order, &expected, 0);
}

/* A whole request. False: the link is to be cut. */
static bool take_request(struct link *link, const char *data, size_t size)
{
  int index = atomic_load(&control->requests) + 1;
  if (index < 1024) memcpy(control->names[index], link->up.name, sizeof link->up.name);
  link->up.values++;
  bool cut = due(&control->cut_before, index);
  if (due(&control->strand, index)) {
    link->stranded = true;
    (void)shutdown(link->up.from, SHUT_RDWR);
  }
  bool lost = cut || link->cut_at != 0 || atomic_load(&control->to_server) == PROXY_DROP;
  if (!lost)
    put(&link->up, data, size,
        atomic_load(link->stranded ? &control->strand_ms : &control->delay_ms));
  if (due(&control->cut_after, index)) link->cut_at = link->up.values;
  atomic_store(&control->requests, index);
  return !cut;
}

/* A whole answer or message. False: the link is to be cut. */
static bool take_answer(struct link *link, const char *data, size_t size)
{
  struct direction *down = &link->down;
  if (down->answer) {
    down->values++;
    if (link->cut_at != 0 && down->values >= link->cut_at) return false;
  } else if (down->message) {
    (void)atomic_fetch_add(&control->messages, 1);
    if (atomic_load(&control->drop_messages) > 0) {
      (void)atomic_fetch_sub(&control->drop_messages, 1);
      return true;
    }
  }
  if (atomic_load(&control->to_client) != PROXY_DROP)
    put(down, data, size, atomic_load(&control->delay_ms));
  return true;
}

static bool is(const struct resp_event *event, const char *text)
{
  return event->size == strlen(text) && memcmp(event->data, text, event->size) == 0;
}

/* Notes what kind of a value is under way. */
static void look(struct direction *direction, const struct resp_event *event)
{
  if (event->depth == 0) {
    direction->depth_element = 0;
    direction->answer = event->type != RESP_PUSH;
    direction->message = false;
  } else if (event->depth == 1 && direction->depth_element++ == 0) {
    size_t size =
        event->size < sizeof direction->name - 1 ? event->size : sizeof direction->name - 1;
    memset(direction->name, 0, sizeof direction->name);
    if (size > 0) memcpy(direction->name, event->data, size);
    if (!direction->answer) {
      direction->answer = is(event, "subscribe") || is(event, "unsubscribe");
      direction->message = is(event, "message");
    }
  }
}

/* Takes whole values out of what was received. */
static bool split(struct link *link, struct direction *direction)
{
  size_t start = 0;
  bool going = true;
  while (going) {
    struct resp_event event;
    size_t used;
    size_t at = start + direction->parsed;
    int status = resp_decode(&direction->decoder, direction->buffer + at, direction->used - at,
                             &used, &event);
    direction->parsed += used;
    if (status != RESP_EVENT) {
      going = status == RESP_MORE;
      break;
    }
    look(direction, &event);
    if (!event.last) continue;
    const char *data = direction->buffer + start;
    going = direction == &link->up ? take_request(link, data, direction->parsed)
                                   : take_answer(link, data, direction->parsed);
    start += direction->parsed;
    direction->parsed = 0;
  }
  direction->used -= start;
  memmove(direction->buffer, direction->buffer + start, direction->used);
  return going;
}

static bool take_bytes(struct link *link, struct direction *direction)
{
  ssize_t got =
      recv(direction->from, direction->buffer + direction->used, BUFFER - direction->used, 0);
  if (got <= 0) {
    direction->ended = true;
    return true;
  }
  direction->used += (size_t)got;
  (void)atomic_fetch_add(
      direction == &link->up ? &control->bytes_to_server : &control->bytes_to_client, got);
  return split(link, direction);
}

static void send_due(struct direction *direction, int mode)
{
  while (direction->first != NULL && mode != PROXY_HOLD && direction->first->due <= now_us()) {
    struct chunk *chunk = direction->first;
    size_t done = 0;
    while (done < chunk->size) {
      ssize_t sent = send(direction->to, chunk->data + done, chunk->size - done, MSG_NOSIGNAL);
      if (sent <= 0) break;
      done += (size_t)sent;
    }
    direction->first = chunk->next;
    if (direction->first == NULL) direction->last = &direction->first;
    free(chunk);
  }
}

/* Sends what is due. Closes a link one end of which was closed, once all has been sent. */
static void serve(struct link *link)
{
  send_due(&link->up, atomic_load(&control->to_server));
  send_due(&link->down, atomic_load(&control->to_client));
  if (link->up.ended && link->up.first == NULL) close_link(link);
  else if (link->down.ended && link->down.first == NULL && !link->stranded) close_link(link);
}

static void sever(void)
{
  int wanted = atomic_load(&control->sever);
  if (wanted == atomic_load(&control->severed)) return;
  for (struct link *link = links; link < links + LINKS; link++)
    close_link(link);
  atomic_store(&control->severed, wanted);
}

/* The time until the next chunk is due; at most 5 ms, so that an order is seen soon. */
static struct timespec pause_before(int64_t now)
{
  int64_t wait = 5000;
  for (const struct link *link = links; link < links + LINKS; link++) {
    for (int i = 0; link->open && i < 2; i++) {
      const struct chunk *chunk = i == 0 ? link->up.first : link->down.first;
      if (chunk != NULL && chunk->due > now && chunk->due - now < wait) wait = chunk->due - now;
    }
  }
  return (struct timespec){.tv_nsec = wait * 1000};
}

static void loop(int listener, int port)
{
  struct pollfd wanted[1 + 2 * LINKS];
  struct direction *directions[1 + 2 * LINKS];
  struct link *owners[1 + 2 * LINKS];
  for (;;) {
    nfds_t count = 1;
    wanted[0] = (struct pollfd){.fd = listener, .events = POLLIN};
    for (struct link *link = links; link < links + LINKS; link++) {
      if (!link->open) continue;
      for (int i = 0; i < 2; i++) {
        struct direction *direction = i == 0 ? &link->up : &link->down;
        if (direction->ended || direction->used == BUFFER) continue;
        wanted[count] = (struct pollfd){.fd = direction->from, .events = POLLIN};
        owners[count] = link;
        directions[count++] = direction;
      }
    }
    struct timespec pause = pause_before(now_us());
    int ready = ppoll(wanted, count, &pause, NULL);
    sever();
    for (nfds_t i = 1; ready > 0 && i < count; i++) {
      if (wanted[i].revents == 0 || !owners[i]->open) continue;
      if (!take_bytes(owners[i], directions[i])) {
        serve(owners[i]);
        close_link(owners[i]);
      }
    }
    for (struct link *link = links; link < links + LINKS; link++) {
      if (link->open) serve(link);
    }
    if (ready > 0 && wanted[0].revents != 0) take_connection(listener, port);
  }
}

struct job {
  int listener, port;
};

static void run(int index, void *context)
{
  const struct job *job = context;
  (void)index;
  loop(job->listener, job->port);
}

void proxy_start(struct proxy *proxy, int server_port)
{
  struct job job = {listen_anywhere(&proxy->port), server_port};
  control = share(sizeof *control);
  proxy->control = control;
  proxy->pid = spawn(run, 0, &job);
  (void)close(job.listener);
}

void proxy_stop(struct proxy *proxy)
{
  slay(proxy->pid);
  (void)munmap(proxy->control, sizeof *proxy->control);
}

void proxy_sever(struct proxy *proxy)
{
  int wanted = atomic_fetch_add(&proxy->control->sever, 1) + 1;
  int64_t until = now_ms() + SOON;
  while (atomic_load(&proxy->control->severed) != wanted && now_ms() < until)
    sleep_ms(1);
}
