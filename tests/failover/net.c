/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The network; see net.h. A loop around poll(): each direction of a link has a buffer, which is
 * read when it is empty and written when it is not. A stopped server that takes no bytes blocks
 * nobody else.
 */
#include "net.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#define LINKS     256
#define LISTENERS (NET_NODES * NET_KINDS)
#define CLIENT    (-1)

struct net_control {
  atomic_int port[NET_NODES][NET_KINDS]; /* where a node listens; 0: not yet */
  atomic_uint parted;                    /* the set of net_part() */
  atomic_int wanted, done;               /* raised with each change; caught up with */
};

struct direction {
  int from, to;
  size_t used, sent;
  char buffer[1 << 14];
};

struct link {
  bool open;
  bool cut;          /* carries nothing until it is closed */
  int source, owner; /* nodes, or CLIENT */
  struct direction way[2];
};

static struct link links[LINKS];
static int listeners_of[LISTENERS]; /* by node and kind */
static struct net_control *control;

void net_source(int node, char text[24])
{
  (void)snprintf(text, 24, "127.0.0.%d", 10 + node);
}

static void close_link(struct link *link)
{
  if (!link->open) return;
  (void)close(link->way[0].from);
  if (link->way[0].to >= 0) (void)close(link->way[0].to);
  link->open = false;
}

static bool apart(int source, int owner)
{
  unsigned parted = atomic_load(&control->parted);
  return source != CLIENT && ((parted >> source) & 1U) != ((parted >> owner) & 1U);
}

static void set_nonblocking(int socket)
{
  (void)fcntl(socket, F_SETFL, fcntl(socket, F_GETFL) | O_NONBLOCK);
}

static int source_of(int socket)
{
  struct sockaddr_in address = {0};
  socklen_t size = sizeof address;
  (void)getpeername(socket, (struct sockaddr *)&address, &size);
  int node = (int)(ntohl(address.sin_addr.s_addr) & 0xff) - 10;
  return node >= 0 && node < NET_NODES ? node : CLIENT;
}

static void take_connection(int index)
{
  int from = take_call(listeners_of[index]);
  if (from < 0) return;
  int owner = index / NET_KINDS, source = source_of(from);
  bool cut = apart(source, owner);
  int to = cut ? -1 : dial(atomic_load(&control->port[owner][index % NET_KINDS]));
  struct link *link = links;
  while (link < links + LINKS && link->open)
    link++;
  if (link == links + LINKS || (to < 0 && !cut)) {
    (void)close(from);
    if (to >= 0) (void)close(to);
    return;
  }
  set_nonblocking(from);
  if (to >= 0) set_nonblocking(to);
  link->open = true;
  link->cut = cut;
  link->source = source;
  link->owner = owner;
  for (int i = 0; i < 2; i++) {
    link->way[i].from = i == 0 ? from : to;
    link->way[i].to = i == 0 ? to : from;
    link->way[i].used = link->way[i].sent = 0;
  }
}

/* Does what poll() found possible. False: the link is over. */
static bool carry(struct direction *way, short from, short to)
{
  if (way->used == 0 && from != 0) {
    ssize_t got = recv(way->from, way->buffer, sizeof way->buffer, 0);
    if (got <= 0) return false;
    way->used = (size_t)got;
    way->sent = 0;
  }
  if (way->used > 0 && (to != 0 || from != 0)) {
    ssize_t sent = send(way->to, way->buffer + way->sent, way->used - way->sent, MSG_NOSIGNAL);
    if (sent > 0) way->sent += (size_t)sent;
    if (way->sent == way->used) way->used = 0;
  }
  return true;
}

/* A changed set: what is cut now stays cut until it is healed, and is closed then. */
static void follow_orders(void)
{
  int wanted = atomic_load(&control->wanted);
  if (wanted == atomic_load(&control->done)) return;
  for (struct link *link = links; link < links + LINKS; link++) {
    if (!link->open) continue;
    bool cut = apart(link->source, link->owner);
    if (link->cut && !cut) close_link(link);
    link->cut = cut;
  }
  atomic_store(&control->done, wanted);
}

static short events_of(const struct direction *in, const struct direction *out)
{
  return (short)((in->used == 0 ? POLLIN : 0) | (out->used > 0 ? POLLOUT : 0));
}

static void loop(void)
{
  static struct pollfd polled[LISTENERS + 2 * LINKS];
  static struct link *owners[LINKS];
  for (;;) {
    nfds_t count = LISTENERS, used = 0;
    for (nfds_t i = 0; i < LISTENERS; i++)
      polled[i] = (struct pollfd){.fd = listeners_of[i], .events = POLLIN};
    for (struct link *link = links; link < links + LINKS; link++) {
      if (!link->open || link->cut) continue;
      owners[used++] = link;
      for (int i = 0; i < 2; i++) {
        short events = events_of(&link->way[i], &link->way[1 - i]);
        polled[count++] = (struct pollfd){.fd = link->way[i].from, .events = events};
      }
    }
    int ready = poll(polled, count, 5);
    follow_orders();
    for (nfds_t i = 0; ready > 0 && i < used; i++) {
      struct link *link = owners[i];
      const struct pollfd *ends = &polled[LISTENERS + 2 * i];
      if (!link->open || link->cut) continue;
      if (!carry(&link->way[0], ends[0].revents & ~POLLOUT, ends[1].revents & POLLOUT) ||
          !carry(&link->way[1], ends[1].revents & ~POLLOUT, ends[0].revents & POLLOUT))
        close_link(link);
    }
    for (int i = 0; ready > 0 && i < LISTENERS; i++) {
      if (polled[i].revents != 0) take_connection(i);
    }
  }
}

static void run(int index, void *context)
{
  (void)index;
  (void)context;
  loop();
}

void net_start(struct net *net)
{
  control = net->control = share(sizeof *control);
  for (int i = 0; i < LISTENERS; i++)
    listeners_of[i] = listen_anywhere(&net->port[i / NET_KINDS][i % NET_KINDS]);
  net->pid = spawn(run, 0, NULL);
  for (int i = 0; i < LISTENERS; i++)
    (void)close(listeners_of[i]);
}

void net_stop(struct net *net)
{
  slay(net->pid);
  (void)munmap(net->control, sizeof *net->control);
}

void net_serve(struct net *net, int node, enum net_kind kind, int port)
{
  atomic_store(&net->control->port[node][kind], port);
}

void net_part(struct net *net, unsigned nodes)
{
  int64_t until = now_ms() + SOON;
  atomic_store(&net->control->parted, nodes);
  int wanted = atomic_fetch_add(&net->control->wanted, 1) + 1;
  while (atomic_load(&net->control->done) != wanted && now_ms() < until)
    sleep_ms(1);
  CHECK_EQUAL(atomic_load(&net->control->done), wanted);
}
