/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The client for other languages; see service.h.
 *
 * A thread of each client sits in fairlock_run(). Operations are begun by fairlock_start_...(), and
 * callbacks note what happens: they put the lock into a queue of events. The library calls them
 * with its own mutex locked, and they lock the gate inside that. So whoever has the gate must not
 * call the library.
 *
 * A lock that is freed goes through fairlock_abandon(), whatever it is doing. What is left of it
 * stays in the same memory, until the library gives that back.
 */
#define _DEFAULT_SOURCE 1 /* what -std=c11 hides */

#include "service.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine.h"
#include "fairlock_abandon.h"
#include "fairlock_follow.h"
#include "fairlock_keep.h"
#include "fairlock_operate.h"
#include "port_openssl.h"
#include "port_posix.h"

#define MOVING_LEASE_MS 60000U /* a fail-over takes two thirds of it at most */

_Static_assert((int)FLS_PENDING == (int)FAIRLOCK_PENDING && FLS_FOREVER == FAIRLOCK_FOREVER &&
                   FLS_RENEW == FAIRLOCK_RENEW && FLS_ID_SIZE >= FAIRLOCK_HOLDER_ID_SIZE,
               "service.h has the numbers of fairlock.h");

/* A place in a list, which is a ring; or the list itself. */
struct link {
  struct link *next, *previous;
};

struct fls_lock {
  struct fairlock_shared own; /* begins with the handle, by which callbacks know the lock */
  struct fairlock_rest rest;
  struct fls_client *client;

  /* guarded by the gate */
  struct link all;        /* in the client's locks, until it is freed */
  struct link queued;     /* in the client's events, while event.what is not 0 */
  struct fls_event event; /* what was not read yet */
  uint64_t token;         /* of the last hold; 0: none yet */
  bool by_event;          /* the operation was begun for an event */
  bool freed;             /* has no events any more */

  char name[];
};

struct fls_client {
  struct fairlock_client client;
  struct fairlock_config config;
  struct fairlock_topology topology;
  struct fairlock_keeping keeping;
  struct port_posix_server server;
  struct port_openssl tls;
  bool ready; /* client is initialised */
  pthread_t thread;
  unsigned char receive[FAIRLOCK_RECEIVE_SIZE(FAIRLOCK_NAME_MAX, FAIRLOCK_ID_MAX)], send[2048];

  struct port_mutex gate; /* guards what follows */
  struct link locks;      /* all that are not freed */
  struct link events;     /* locks that have some */
  int out[2];             /* a pipe, with a byte in it while there are events, or if stopped */
  bool stopped;           /* there are no more events */
  unsigned readers;       /* threads inside fls_next() */
  unsigned leaving;       /* locks that are freed, but whose memory is in use */
  struct port_event calm; /* set when one of these two becomes 0 */

  struct fls_options options; /* its strings are copies: */
  char strings[];
};

/* The lock whose member is this link. */
#define LOCK_OF(link, member)                                                                      \
  ((struct fls_lock *)(void *)((char *)(link)-offsetof(struct fls_lock, member)))

static bool empty(const struct link *list)
{
  return list->next == list;
}

static void append(struct link *list, struct link *link)
{
  *link = (struct link){list, list->previous};
  link->previous->next = link;
  list->previous = link;
}

static void take_out(struct link *link)
{
  link->next->previous = link->previous;
  link->previous->next = link->next;
}

/* To be asked before the gate is locked: in a forked process that may block for ever. */
static bool forked(const struct fls_client *client)
{
  return port_mutex_forked(&client->gate);
}

/* The pipe. With the gate locked, so that there is never more than one byte. */

static void fill(struct fls_client *client)
{
  ssize_t written = write(client->out[1], "", 1);
  (void)written;
}

static void drain(struct fls_client *client)
{
  char byte;
  ssize_t got = read(client->out[0], &byte, 1);
  (void)got;
}

/* Callbacks, with the library's mutex locked: they note what happens between these two. */

static struct fls_lock *enter(struct fairlock *handle)
{
  struct fls_lock *lock = (struct fls_lock *)(void *)handle;
  port_mutex_lock(&lock->client->gate);
  return lock;
}

/* what: the kind of event; 0: none. */
static void leave(struct fls_lock *lock, uint32_t what)
{
  struct fls_client *client = lock->client;
  if (what != 0 && !lock->freed && !client->stopped) {
    if (empty(&client->events)) fill(client);
    if (lock->event.what == 0) append(&client->events, &lock->queued);
    lock->event.what |= what;
  }
  port_mutex_unlock(&client->gate);
}

static void on_ended(struct fairlock *handle, const struct fairlock_end *end, void *context)
{
  struct fls_lock *lock = enter(handle);
  (void)context;
  if (end->token != 0) lock->token = end->token;
  lock->event.status = end->status;
  lock->event.token = end->status == FAIRLOCK_OK ? end->token : 0;
  leave(lock, lock->by_event ? FLS_ENDED : 0);
}

static void on_lost(struct fairlock *handle, const struct fairlock_loss *loss, void *context)
{
  struct fls_lock *lock = enter(handle);
  (void)context;
  lock->token = loss->token; /* perhaps nobody has looked at it while it was held */
  lock->event.lost = loss->token;
  lock->event.reason = (int32_t)loss->reason;
  leave(lock, FLS_LOST);
}

static void on_asked(struct fairlock *handle, const struct fairlock_asking *asking, void *context)
{
  struct fls_lock *lock = enter(handle);
  size_t size = asking->size < FLS_WORDS_SIZE ? asking->size : FLS_WORDS_SIZE - 1;
  (void)context;
  lock->event.asked = asking->token;
  if (size > 0) memcpy(lock->event.words, asking->words, size);
  lock->event.words[size] = 0;
  leave(lock, FLS_ASKED);
}

static void on_freed(struct fairlock_rest *rest, void *context)
{
  struct fls_lock *lock = context;
  struct fls_client *client = lock->client;
  (void)rest;
  port_mutex_lock(&client->gate);
  if (--client->leaving == 0) port_event_set(&client->calm);
  port_mutex_unlock(&client->gate);
  free(lock);
}

/* Making a client */

/* Copies the strings of options to room. Returns how many bytes there are; room NULL: only that. */
static size_t copy_strings(struct fls_options *options, char *room)
{
  const char **strings[] = {&options->url,      &options->client_id,        &options->client_name,
                            &options->user,     &options->password,         &options->sentinel_user,
                            &options->ca_file,  &options->certificate,      &options->key,
                            &options->tls_name, &options->sentinel_password};
  size_t total = 0;
  for (size_t i = 0; i < sizeof strings / sizeof *strings; i++) {
    size_t size = *strings[i] != NULL ? strlen(*strings[i]) + 1 : 0;
    if (room != NULL && size > 0) *strings[i] = memcpy(room + total, *strings[i], size);
    total += size;
  }
  return total;
}

/* Returns what is wrong with the URL, or NULL. */
static const char *read_url(struct fls_client *client)
{
  const struct fls_options *options = &client->options;
  const struct port_openssl_config trust = {.ca_file = options->ca_file,
                                            .certificate = options->certificate,
                                            .key = options->key,
                                            .name = options->tls_name};
  bool trusts = trust.ca_file || trust.certificate || trust.key || trust.name;
  const char *wrong = port_openssl_url(&client->tls, &client->server, options->url, &trust);
  if (wrong != NULL || client->server.tls || !trusts) return wrong;
  return "it asks for no TLS, but there is a ca_file, certificate, key or tls_name";
}

static int init(struct fls_client *client)
{
  const struct fls_options *options = &client->options;
  const struct port_posix_server *server = &client->server;
  client->config = (struct fairlock_config){
      .receive_buffer = client->receive,
      .receive_size = sizeof client->receive,
      .send_buffer = client->send,
      .send_size = sizeof client->send,
      .client_id = options->client_id,
      .client_name = options->client_name,
      .user = options->user != NULL ? options->user : server->user,
      .password = options->password != NULL ? options->password : server->password,
      .database = server->database,
      .lease_ms = options->lease_ms == 0 && server->moves ? MOVING_LEASE_MS : options->lease_ms,
      .waiter_ms = options->waiter_ms,
      .claim_ms = options->claim_ms,
      .response_ms = options->response_ms,
      .connect_ms = options->connect_ms,
      .offline_ms = options->offline_ms,
      .lost = on_lost,
      .ended = on_ended,
      .asked = options->listen != 0 ? on_asked : NULL};
  return fairlock_client_init(&client->client, &client->config, server->transport);
}

static int keep(struct fls_client *client)
{
  client->keeping.keep_ms = client->options.keep_ms;
  if (client->options.keep_ms == 0) return FAIRLOCK_OK;
  return fairlock_use_keeping(&client->client, &client->keeping);
}

static int follow(struct fls_client *client)
{
  const struct fls_options *options = &client->options;
  struct port_posix_server *server = &client->server;
  client->topology = (struct fairlock_topology){.address = server->address,
                                                .address_size = sizeof server->address,
                                                .service = server->service,
                                                .cluster = server->cluster,
                                                .sentinel_user = options->sentinel_user,
                                                .sentinel_password = options->sentinel_password,
                                                .replicas = options->replicas};
  if (!server->moves && options->replicas == 0) return FAIRLOCK_OK;
  return fairlock_follow(&client->client, &client->topology);
}

static bool make_pipe(int ends[2])
{
  if (pipe(ends) != 0) {
    ends[0] = ends[1] = -1;
    return false;
  }
  for (int i = 0; i < 2; i++) {
    (void)fcntl(ends[i], F_SETFD, FD_CLOEXEC);
    (void)fcntl(ends[i], F_SETFL, O_NONBLOCK);
  }
  return true;
}

static void *serve(void *client)
{
  (void)fairlock_run(client);
  return NULL;
}

/* Signals are for the program's threads. */
static bool start_thread(struct fls_client *client)
{
  sigset_t all, before;
  (void)sigfillset(&all);
  (void)pthread_sigmask(SIG_SETMASK, &all, &before);
  int failure = pthread_create(&client->thread, NULL, serve, &client->client);
  (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
  return failure == 0;
}

/* Returns what is wrong, or NULL. *with: what it is wrong with. */
static const char *start(struct fls_client *client, const char **with)
{
  *with = "the URL";
  const char *wrong = read_url(client);
  if (wrong != NULL) return wrong;
  *with = "the options";
  int status = init(client);
  client->ready = status == FAIRLOCK_OK;
  if (status == FAIRLOCK_OK) status = keep(client);
  if (status == FAIRLOCK_OK) status = follow(client);
  if (status != FAIRLOCK_OK) return fairlock_status_text(status);
  *with = "the system";
  return make_pipe(client->out) && start_thread(client) ? NULL : "no descriptor or thread is left";
}

/* Closes what this process has open. May be called again. */
static void close_all(struct fls_client *client)
{
  if (client->ready) fairlock_client_deinit(&client->client); /* calls on_freed() */
  client->ready = false;
  port_openssl_deinit(&client->tls);
  memset(&client->tls, 0, sizeof client->tls);
  for (int i = 0; i < 2; i++) {
    if (client->out[i] >= 0) (void)close(client->out[i]);
    client->out[i] = -1;
  }
}

static void destroy(struct fls_client *client)
{
  close_all(client);
  port_event_destroy(&client->calm);
  port_mutex_destroy(&client->gate);
  free(client);
}

struct fls_client *fls_open(const struct fls_options *given, char error[FLS_ERROR_SIZE])
{
  struct fls_options options = {0}; /* the caller may know fewer */
  memcpy(&options, given, given->size < sizeof options ? given->size : sizeof options);
  struct fls_client *client = calloc(1, sizeof *client + copy_strings(&options, NULL));
  const char *with;
  (void)snprintf(error, FLS_ERROR_SIZE, "no memory is left");
  if (client == NULL) return NULL;
  client->options = options;
  (void)copy_strings(&client->options, client->strings);
  client->out[0] = client->out[1] = -1;
  client->locks = (struct link){&client->locks, &client->locks};
  client->events = (struct link){&client->events, &client->events};
  port_mutex_init(&client->gate);
  port_event_init(&client->calm);
  const char *wrong = start(client, &with);
  error[0] = 0;
  if (wrong == NULL) return client;
  (void)snprintf(error, FLS_ERROR_SIZE, "%s: %s", with, wrong);
  destroy(client);
  return NULL;
}

/* Ending it */

/* Waits until no thread reads events, and up to ms until the server was told of all locks. */
static void settle(struct fls_client *client, uint32_t ms)
{
  uint32_t began = port_clock_ms();
  uint32_t left = ms;
  port_mutex_lock(&client->gate);
  while (client->readers > 0 || (client->leaving > 0 && left > 0)) {
    bool short_time = left > 0 && left < PORT_WAIT_MAX_MS;
    port_event_wait(&client->calm, &client->gate, short_time ? left : PORT_WAIT_MAX_MS);
    uint32_t past = port_clock_ms() - began;
    left = past < ms ? ms - past : 0;
  }
  port_mutex_unlock(&client->gate);
}

static struct fls_lock *any_lock(struct fls_client *client)
{
  port_mutex_lock(&client->gate);
  struct fls_lock *lock = empty(&client->locks) ? NULL : LOCK_OF(client->locks.next, all);
  port_mutex_unlock(&client->gate);
  return lock;
}

void fls_close(struct fls_client *client, uint32_t ms)
{
  struct fls_lock *lock;
  if (forked(client)) {
    close_all(client);
    return;
  }
  fls_stop(client);
  while ((lock = any_lock(client)) != NULL)
    fls_free(lock);
  settle(client, ms);
  fairlock_stop(&client->client);
  (void)pthread_join(client->thread, NULL);
  destroy(client);
}

void fls_forked(struct fls_client *client)
{
  if (forked(client)) close_all(client);
}

/* The connection */

int fls_connect(struct fls_client *client)
{
  return fairlock_connect(&client->client);
}

void fls_error(struct fls_client *client, char text[FLS_ERROR_SIZE])
{
  text[0] = 0;
  if (forked(client)) return;
  int status = fairlock_server_status(&client->client);
  if (status != FAIRLOCK_UNREACHABLE && status != FAIRLOCK_UNTRUSTED) {
    fairlock_error(&client->client, text, FLS_ERROR_SIZE);
    return;
  }
  if (client->server.tls) port_openssl_error(&client->tls, text, FLS_ERROR_SIZE);
  if (text[0] == 0) port_posix_error(&client->server.socket, text, FLS_ERROR_SIZE);
}

/* Locks */

struct fls_lock *fls_new(struct fls_client *client, const void *name, size_t size, int limit,
                         uintptr_t user, int *status)
{
  bool fits = size <= FAIRLOCK_NAME_MAX;
  struct fls_lock *lock = fits ? calloc(1, sizeof *lock + size) : NULL;
  *status = fits ? FAIRLOCK_OOM : FAIRLOCK_TOO_LONG;
  if (lock == NULL) return NULL;
  lock->client = client;
  lock->event.user = user;
  lock->rest.freed = on_freed;
  lock->rest.context = lock;
  if (size > 0) memcpy(lock->name, name, size);
  *status = limit < 0 ? fairlock_init_bytes(&lock->own.handle, &client->client, lock->name, size)
                      : fairlock_init_shared_bytes(&lock->own, &client->client, lock->name, size,
                                                   (uint32_t)limit);
  if (*status != FAIRLOCK_OK) {
    free(lock);
    return NULL;
  }
  port_mutex_lock(&client->gate);
  append(&client->locks, &lock->all);
  port_mutex_unlock(&client->gate);
  return lock;
}

/* Forgets what was not read. With the gate locked. */
static void drop_events(struct fls_lock *lock)
{
  struct fls_client *client = lock->client;
  if (lock->event.what == 0) return;
  lock->event = (struct fls_event){.user = lock->event.user};
  take_out(&lock->queued);
  if (empty(&client->events) && !client->stopped) drain(client);
}

void fls_free(struct fls_lock *lock)
{
  struct fls_client *client = lock->client;
  if (forked(client)) return;
  port_mutex_lock(&client->gate);
  drop_events(lock);
  take_out(&lock->all);
  lock->freed = true;
  client->leaving++;
  port_mutex_unlock(&client->gate);
  (void)fairlock_abandon(&lock->own.handle, &lock->rest);
}

/* By whichever thread. Returns FAIRLOCK_OK, or why no operation can begin. */
static int begin(struct fls_lock *lock, int event)
{
  int status = fairlock_adopt(&lock->own.handle);
  if (status == FAIRLOCK_IN_PROGRESS || status == FAIRLOCK_FORKED) return status;
  port_mutex_lock(&lock->client->gate);
  lock->by_event = event != 0;
  port_mutex_unlock(&lock->client->gate);
  return FAIRLOCK_OK;
}

/* Notes the token after a call without a callback. Returns status. */
static int note_token(struct fls_lock *lock, int status)
{
  uint64_t token = status == FAIRLOCK_OK ? fls_held(lock) : 0;
  if (token == 0) return status;
  port_mutex_lock(&lock->client->gate);
  lock->token = token;
  port_mutex_unlock(&lock->client->gate);
  return status;
}

int fls_acquire(struct fls_lock *lock, uint32_t wait_ms, uint32_t lease_ms, int event)
{
  int status = begin(lock, event);
  if (status != FAIRLOCK_OK) return status;
  status = event != 0 ? fairlock_start_acquire(&lock->own.handle, wait_ms, lease_ms)
                      : fairlock_client_prepare_acquire(&lock->own.handle, wait_ms, lease_ms);
  return note_token(lock, status);
}

int fls_release(struct fls_lock *lock, int event)
{
  int status = begin(lock, event);
  if (status != FAIRLOCK_OK) return status;
  return event != 0 ? fairlock_start_release(&lock->own.handle)
                    : fairlock_client_prepare_release(&lock->own.handle);
}

int fls_cancel(struct fls_lock *lock)
{
  return fairlock_cancel(&lock->own.handle);
}

int fls_wait(struct fls_lock *lock, uint32_t ms)
{
  return note_token(lock, fairlock_wait(&lock->own.handle, ms));
}

uint64_t fls_token(struct fls_lock *lock)
{
  if (forked(lock->client)) return 0;
  port_mutex_lock(&lock->client->gate);
  uint64_t token = lock->token;
  port_mutex_unlock(&lock->client->gate);
  return token;
}

uint64_t fls_held(struct fls_lock *lock)
{
  return fairlock_token(&lock->own.handle);
}

uint32_t fls_remaining_ms(struct fls_lock *lock)
{
  return fairlock_remaining_ms(&lock->own.handle);
}

uint32_t fls_hold_count(struct fls_lock *lock)
{
  return fairlock_hold_count(&lock->own.handle);
}

void fls_id(struct fls_lock *lock, char text[FLS_ID_SIZE])
{
  fairlock_id(&lock->own.handle, text, FLS_ID_SIZE);
}

/* Events */

int fls_fd(const struct fls_client *client)
{
  return client->out[0];
}

/* With the gate locked. */
static bool take_event(struct fls_client *client, struct fls_event *event)
{
  size_t size = event->size;
  if (client->stopped || empty(&client->events)) return false;
  struct fls_lock *lock = LOCK_OF(client->events.next, queued);
  memset(event, 0, size);
  memcpy(event, &lock->event, size < sizeof *event ? size : sizeof *event);
  event->size = size;
  drop_events(lock);
  return true;
}

int fls_next(struct fls_client *client, uint32_t ms, struct fls_event *event)
{
  struct pollfd out = {.fd = client->out[0], .events = POLLIN};
  uint32_t began = port_clock_ms();
  uint32_t left = ms;
  bool taken;
  if (forked(client)) return 0;
  port_mutex_lock(&client->gate);
  client->readers++;
  while (taken = take_event(client, event), !taken && !client->stopped && left > 0) {
    port_mutex_unlock(&client->gate);
    int limit = ms == FLS_FOREVER ? -1 : (int)(left < INT32_MAX ? left : INT32_MAX);
    bool interrupted = poll(&out, 1, limit) < 0;
    uint32_t past = port_clock_ms() - began;
    left = past < ms && !interrupted ? ms - past : 0;
    port_mutex_lock(&client->gate);
  }
  if (--client->readers == 0) port_event_set(&client->calm);
  port_mutex_unlock(&client->gate);
  return taken;
}

void fls_stop(struct fls_client *client)
{
  if (forked(client)) return;
  port_mutex_lock(&client->gate);
  if (!client->stopped && empty(&client->events)) fill(client);
  client->stopped = true;
  port_mutex_unlock(&client->gate);
}

/* Words */

const char *fls_status_text(int status)
{
  return fairlock_status_text(status);
}

const char *fls_status_name(int status)
{
  return fairlock_status_name(status);
}

const char *fls_version(void)
{
  return fairlock_version();
}
