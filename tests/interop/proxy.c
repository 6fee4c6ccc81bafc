/* A proxy that delays and counts; see proxy.h. Each chunk that arrives is kept until it is due. */
#define _GNU_SOURCE
#include "proxy.h"
#include "lab.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define MOST_LINKS 256

struct chunk {
  struct chunk *next;
  int64_t due;
  size_t size, sent;
  char bytes[];
};

/*
 * A connection is two ends, 0 the client's and 1 the server's; queue[e] is what goes out of end e.
 */
struct link {
  int ends[2];
  struct chunk *first[2], *last[2];
};

struct work {
  struct proxy *proxy;
  struct link links[MOST_LINKS];
  int count;
};

static int dial(int port)
{
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
  int end = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (connect(end, (struct sockaddr *)&address, sizeof address) == 0) return end;
  close(end);
  return -1;
}

static void accept_link(struct work *work)
{
  int one = 1;
  int client = accept4(work->proxy->listener, NULL, NULL, SOCK_CLOEXEC);
  if (client < 0) return;
  int server = work->count < MOST_LINKS ? dial(work->proxy->server_port) : -1;
  if (server < 0) {
    close(client);
    return;
  }
  setsockopt(client, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  setsockopt(server, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  work->links[work->count++] = (struct link){.ends = {client, server}};
}

static void drop_link(struct work *work, struct link *link)
{
  for (int end = 0; end < 2; end++) {
    close(link->ends[end]);
    while (link->first[end] != NULL) {
      struct chunk *chunk = link->first[end];
      link->first[end] = chunk->next;
      free(chunk);
    }
  }
  *link = work->links[--work->count];
}

/* Takes what arrived at an end, for the other one. False: it is closed. */
static bool take(struct work *work, struct link *link, int end)
{
  char bytes[65536];
  ssize_t got = recv(link->ends[end], bytes, sizeof bytes, MSG_DONTWAIT);
  if (got <= 0) return false;
  struct chunk *chunk = malloc(sizeof *chunk + (size_t)got);
  if (chunk == NULL) return false;
  *chunk = (struct chunk){.due = now_ns() + work->proxy->delay_ns, .size = (size_t)got};
  memcpy(chunk->bytes, bytes, (size_t)got);
  if (link->first[!end] == NULL) link->first[!end] = chunk;
  else link->last[!end]->next = chunk;
  link->last[!end] = chunk;
  if (end == 0) work->proxy->to_server += got;
  else work->proxy->to_clients += got;
  return true;
}

/* Sends what is due out of an end. */
static bool give(struct link *link, int end, int64_t now)
{
  while (link->first[end] != NULL && link->first[end]->due <= now) {
    struct chunk *chunk = link->first[end];
    ssize_t sent =
        send(link->ends[end], chunk->bytes + chunk->sent, chunk->size - chunk->sent, MSG_NOSIGNAL);
    if (sent < 0) return false;
    chunk->sent += (size_t)sent;
    if (chunk->sent < chunk->size) continue;
    link->first[end] = chunk->next;
    free(chunk);
  }
  return true;
}

/* Time until the next chunk is due. */
static struct timespec until_due(const struct work *work, int64_t now)
{
  int64_t wait = 1000000000;
  for (int i = 0; i < work->count; i++) {
    for (int end = 0; end < 2; end++) {
      const struct chunk *chunk = work->links[i].first[end];
      if (chunk != NULL && chunk->due - now < wait) wait = chunk->due > now ? chunk->due - now : 0;
    }
  }
  return (struct timespec){.tv_sec = wait / 1000000000, .tv_nsec = wait % 1000000000};
}

static void *serve(void *context)
{
  struct work *work = calloc(1, sizeof *work);
  struct pollfd pollers[2 * MOST_LINKS + 1];
  if (work == NULL) exit(1);
  work->proxy = context;
  for (;;) {
    struct timespec wait = until_due(work, now_ns());
    int count = work->count;
    pollers[2 * count] = (struct pollfd){.fd = work->proxy->listener, .events = POLLIN};
    for (int i = 0; i < 2 * count; i++) {
      pollers[i] = (struct pollfd){.fd = work->links[i / 2].ends[i % 2], .events = POLLIN};
    }
    if (ppoll(pollers, (nfds_t)(2 * count + 1), &wait, NULL) < 0) continue;
    for (int i = count - 1; i >= 0; i--) {
      struct link *link = &work->links[i];
      bool open = true;
      for (int end = 0; end < 2; end++) {
        if (open && pollers[2 * i + end].revents != 0) open = take(work, link, end);
      }
      for (int end = 0; end < 2; end++)
        open = open && give(link, end, now_ns());
      if (!open) drop_link(work, link);
    }
    if (pollers[2 * count].revents != 0) accept_link(work);
  }
  return NULL;
}

void proxy_start(struct proxy *proxy, int server_port, int delay_ms)
{
  struct sockaddr_in address = {.sin_family = AF_INET};
  socklen_t size = sizeof address;
  pthread_t thread;
  memset(proxy, 0, sizeof *proxy);
  proxy->server_port = server_port;
  proxy->delay_ns = (int64_t)delay_ms * 1000000;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  proxy->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (bind(proxy->listener, (struct sockaddr *)&address, size) < 0 ||
      listen(proxy->listener, 128) < 0 ||
      getsockname(proxy->listener, (struct sockaddr *)&address, &size) < 0 ||
      pthread_create(&thread, NULL, serve, proxy) != 0) {
    printf("not ok proxy does not start\n");
    exit(1);
  }
  proxy->port = ntohs(address.sin_port);
}
