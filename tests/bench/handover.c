/*
 * From release called here to acquire returned there: on loopback, beside a bare PUBLISH to a
 * subscriber; and through a proxy that delays each direction, in round trips.
 */
#define _GNU_SOURCE /* ppoll */
#include "bench.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* The proxy */

enum { PIECES = 4096, PIECE = 2048 };

struct piece {
  double due;
  size_t size;
  uint8_t bytes[PIECE];
};

/* One direction of a connection: bytes wait in a ring until they are due. */
struct pipe_line {
  int from, to;
  struct piece *ring;
  unsigned first, count;
};

struct link {
  struct pipe_line way[2];
  double delay_us;
};

struct listener {
  int socket, port;
  double delay_us;
};

static bool take_in(struct pipe_line *line, double delay_us)
{
  struct piece *piece = &line->ring[(line->first + line->count) % PIECES];
  ssize_t got = recv(line->from, piece->bytes, PIECE, MSG_DONTWAIT);
  if (got == 0) return false;
  if (got < 0) return true;
  piece->size = (size_t)got;
  piece->due = now() + delay_us;
  line->count++;
  return true;
}

static bool give_out(struct pipe_line *line)
{
  while (line->count > 0 && line->ring[line->first].due <= now()) {
    const struct piece *piece = &line->ring[line->first];
    if (send(line->to, piece->bytes, piece->size, MSG_NOSIGNAL) < 0) return false;
    line->first = (line->first + 1) % PIECES;
    line->count--;
  }
  return true;
}

static void *carry(void *context)
{
  struct link *link = context;
  bool open = true;
  while (open) {
    struct pollfd polled[2];
    double wait = 1000000;
    for (int i = 0; i < 2; i++) {
      struct pipe_line *line = &link->way[i];
      polled[i] = (struct pollfd){.fd = line->from, .events = line->count < PIECES ? POLLIN : 0};
      if (line->count > 0 && line->ring[line->first].due - now() < wait)
        wait = line->ring[line->first].due - now();
    }
    struct timespec limit = {.tv_sec = 0,
                             .tv_nsec = wait > 0 ? (long)(wait * 1000) % 1000000000 : 0};
    ppoll(polled, 2, &limit, NULL);
    for (int i = 0; i < 2 && open; i++) {
      if (polled[i].revents != 0) open = take_in(&link->way[i], link->delay_us);
      open = open && give_out(&link->way[i]);
    }
  }
  close(link->way[0].from);
  close(link->way[0].to);
  free(link->way[0].ring);
  free(link->way[1].ring);
  free(link);
  return NULL;
}

static int tcp_socket(void)
{
  int one = 1;
  int fd = socket(AF_INET, SOCK_STREAM, 0);
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  return fd;
}

static struct sockaddr_in loopback(int port)
{
  struct sockaddr_in address;
  memset(&address, 0, sizeof address);
  address.sin_family = AF_INET;
  address.sin_port = htons((uint16_t)port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

static void *accept_links(void *context)
{
  struct listener *listener = context;
  for (;;) {
    int client = accept(listener->socket, NULL, NULL);
    if (client < 0) return NULL;
    int one = 1;
    setsockopt(client, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    int server_side = tcp_socket();
    struct sockaddr_in address = loopback(listener->port);
    if (connect(server_side, (struct sockaddr *)&address, sizeof address) < 0) exit(1);
    struct link *link = calloc(1, sizeof *link);
    link->delay_us = listener->delay_us;
    link->way[0] = (struct pipe_line){
        .from = client, .to = server_side, .ring = calloc(PIECES, sizeof(struct piece))};
    link->way[1] = (struct pipe_line){
        .from = server_side, .to = client, .ring = calloc(PIECES, sizeof(struct piece))};
    pthread_t thread;
    pthread_create(&thread, NULL, carry, link);
    pthread_detach(thread);
  }
}

int delay_proxy(int port, int delay_ms)
{
  struct listener *listener = calloc(1, sizeof *listener);
  struct sockaddr_in address = loopback(0);
  socklen_t size = sizeof address;
  pthread_t thread;
  listener->socket = tcp_socket();
  listener->port = port;
  listener->delay_us = delay_ms * 1000.0;
  if (bind(listener->socket, (struct sockaddr *)&address, size) < 0 ||
      listen(listener->socket, 64) < 0)
    exit(1);
  getsockname(listener->socket, (struct sockaddr *)&address, &size);
  pthread_create(&thread, NULL, accept_links, listener);
  pthread_detach(thread);
  return ntohs(address.sin_port);
}

/* Two clients that hand a lock to and fro, each in a thread */

enum { ROUNDS = 60 };

struct player {
  struct bench_client client;
  struct fairlock door;
  double released[ROUNDS], acquired[ROUNDS];
  int rounds, pause_us;
};

static void *play(void *context)
{
  struct player *player = context;
  for (int i = 0; i < player->rounds; i++) {
    if (fairlock_acquire(&player->door, 60000, 30000) != FAIRLOCK_OK) exit(1);
    player->acquired[i] = now();
    usleep((unsigned)player->pause_us); /* so that the other one stands in the queue */
    player->released[i] = now();
    if (fairlock_release(&player->door) != FAIRLOCK_OK) exit(1);
    /* let the other one run first: there may be no processor for both */
    usleep((unsigned)player->pause_us / 2);
  }
  return NULL;
}

/* Microseconds from a release to the acquisition that follows it, the median over some rounds. */
static double hand_to_and_fro(int port, int rounds, int pause_us, const char *name)
{
  static struct player players[2];
  struct series trips = {.count = 0};
  pthread_t thread[2];
  memset(players, 0, sizeof players);
  for (int i = 0; i < 2; i++) {
    bench_client_open(&players[i].client, port);
    fairlock_init(&players[i].door, &players[i].client.client, name);
    players[i].rounds = rounds;
    players[i].pause_us = pause_us;
  }
  for (int i = 0; i < 2; i++)
    pthread_create(&thread[i], NULL, play, &players[i]);
  for (int i = 0; i < 2; i++)
    pthread_join(thread[i], NULL);
  /*
   * the two take turns: the acquisition that follows a release is the earliest later one of the
   * other
   */
  for (int a = 0; a < 2; a++) {
    for (int i = 0; i < rounds - 1; i++) {
      for (int j = 0; j < rounds; j++) {
        double trip = players[1 - a].acquired[j] - players[a].released[i];
        if (trip <= 0) continue;
        if (i > 2 && j > 2) add(&trips, trip);
        break;
      }
    }
  }
  for (int i = 0; i < 2; i++) {
    fairlock_deinit(&players[i].door);
    bench_client_close(&players[i].client);
  }
  return median(&trips);
}

/* The bare thing: a command here that has a message published there, both by hiredis. */

struct subscriber {
  redisContext *redis;
  double heard[ROUNDS];
  int rounds;
};

static void *listen_for(void *context)
{
  struct subscriber *subscriber = context;
  redisReply *reply;
  for (int i = 0;
       i < subscriber->rounds && redisGetReply(subscriber->redis, (void **)&reply) == REDIS_OK;
       i++) {
    subscriber->heard[i] = now();
    freeReplyObject(reply);
  }
  return NULL;
}

static void run(redisContext *peer, const char *command)
{
  redisReply *reply = redisCommand(peer, command);
  if (reply == NULL || reply->type == REDIS_REPLY_ERROR) exit(1);
  freeReplyObject(reply);
}

/*
 * Microseconds from the command to the message, the median over some rounds. prepare: a command for
 * each round, or NULL.
 */
static double command_to_message(int port, int rounds, int pause_us, const char *prepare,
                                 const char *command)
{
  static struct subscriber subscriber;
  struct series trips = {.count = 0};
  double said[ROUNDS];
  pthread_t thread;
  redisContext *peer = hiredis_open(port);
  subscriber.redis = hiredis_open(port);
  subscriber.rounds = rounds;
  run(subscriber.redis, "SUBSCRIBE trip:waiter");
  pthread_create(&thread, NULL, listen_for, &subscriber);
  for (int i = 0; i < rounds; i++) {
    if (prepare != NULL) run(peer, prepare);
    usleep((unsigned)pause_us);
    said[i] = now();
    run(peer, command);
  }
  pthread_join(thread, NULL);
  for (int i = 3; i < rounds; i++)
    add(&trips, subscriber.heard[i] - said[i]);
  redisFree(subscriber.redis);
  redisFree(peer);
  return median(&trips);
}

/*
 * The limit of a handover in a script: the commands without which no lock of this data layout can
 * be passed on, one after the other, and no rule around them.
 */
static const char prepare_text[] =
    "redis.call('hset', KEYS[1], 'holder', 1) redis.call('rpush', KEYS[2], 'waiter') "
    "redis.call('zadd', KEYS[3], 1, 'waiter') redis.call('hset', KEYS[4], 'waiter', 1)";
static const char limit_text[] =
    "local lock, queue, timeout, ours, call = KEYS[1], KEYS[2], KEYS[3], KEYS[4], redis.call\n"
    "local time = call('time')\n"
    "if not call('hget', lock, ARGV[1]) then return 0 end\n"
    "local head = call('lindex', queue, '0')\n"
    "local alive, channel = call('hget', ours, head), 'trip:' .. head\n"
    "if not alive or call('pubsub', 'numsub', channel)[2] == 0 then return 0 end\n"
    "local token = time[1] .. time[2]\n"
    "call('del', lock)\n"
    "call('hset', ours, 'token', token, 'holder', head)\n"
    "call('hset', lock, head, '1')\n"
    "call('pexpire', lock, '5000')\n"
    "call('lrem', queue, '1', head)\n"
    "call('zrem', timeout, head)\n"
    "call('hdel', ours, head)\n"
    "call('publish', channel, token)\n"
    "return 1\n";

static void load_script(int port, const char *text, char command[120])
{
  redisContext *peer = hiredis_open(port);
  redisReply *reply = redisCommand(peer, "SCRIPT LOAD %s", text);
  if (reply == NULL || reply->type != REDIS_REPLY_STRING) exit(1);
  snprintf(command, 120, "EVALSHA %s 4 {limit}1 {limit}2 {limit}3 {limit}4 holder", reply->str);
  freeReplyObject(reply);
  redisFree(peer);
}

void bench_handover(int port)
{
  struct series ratio = {.count = 0};
  struct series limit = {.count = 0};
  struct series loopback_us = {.count = 0};
  struct series trips = {.count = 0};
  char prepare[120];
  char pass_on[120];
  load_script(port, prepare_text, prepare);
  load_script(port, limit_text, pass_on);
  for (int round = 0; round < 35; round++) {
    double a = hand_to_and_fro(port, 30, 3000, "handover");
    double b = command_to_message(port, 30, 3000, NULL, "PUBLISH trip:waiter 1763664000000000");
    double c = command_to_message(port, 30, 3000, prepare, pass_on);
    add(&loopback_us, a);
    add(&ratio, a / b);
    add(&limit, c / b);
  }
  print_row("handover.loopback.us", &loopback_us, "release called here to acquire returned there");
  print_row("handover.loopback.ratio", &ratio,
            "to PUBLISH called here to message there, by hiredis; aim at most 1.3");
  print_row("handover.loopback.limit", &limit,
            "the same ratio of hiredis with a script of only what the layout dictates");
  int slow = delay_proxy(port, 5);
  for (int round = 0; round < 5; round++)
    add(&trips, hand_to_and_fro(slow, 20, 60000, "far") / 10000);
  print_row("handover.rtt", &trips, "round trips of 10 ms; aim at most 1.1");
}
