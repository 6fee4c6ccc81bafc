/* SPDX-License-Identifier: Apache-2.0 */
/* Clients by URL, their locks, and their events; see scene.h. */
#include "scene.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>

struct fls_client *open_by_url(const struct fls_options *options)
{
  char error[FLS_ERROR_SIZE];
  struct fls_client *client = fls_open(options, error);
  if (client == NULL) give_up(error);
  return client;
}

struct fls_client *open_service(const struct fls_options *options)
{
  char url[64];
  struct fls_options all = {0};
  (void)snprintf(url, sizeof url, "redis://127.0.0.1:%d", server.port);
  if (options != NULL) all = *options;
  all.size = sizeof all;
  all.url = url;
  struct fls_client *client = open_by_url(&all);
  memset(url, 'x', sizeof url); /* it was copied */
  return client;
}

static struct fls_lock *make(struct fls_client *client, const char *name, int limit, uintptr_t user)
{
  int status;
  struct fls_lock *lock = fls_new(client, name, strlen(name), limit, user, &status);
  if (lock == NULL) give_up(fls_status_text(status));
  return lock;
}

struct fls_lock *make_lock(struct fls_client *client, const char *name, uintptr_t user)
{
  return make(client, name, FLS_EXCLUSIVE, user);
}

struct fls_lock *make_shared(struct fls_client *client, const char *name, int limit)
{
  return make(client, name, limit, 0);
}

int await(struct fls_lock *lock)
{
  int status;
  int64_t until = now_ms() + SOON;
  do
    status = fls_wait(lock, 1000);
  while (status == FLS_PENDING && now_ms() < until);
  return status;
}

int acquire(struct fls_lock *lock)
{
  int status = fls_acquire(lock, FLS_FOREVER, FLS_RENEW, 0);
  return status == FLS_PENDING ? await(lock) : status;
}

int release(struct fls_lock *lock)
{
  int status = fls_release(lock, 0);
  return status == FLS_PENDING ? await(lock) : status;
}

struct fls_event next_event(struct fls_client *client)
{
  struct fls_event event = {.size = sizeof event};
  int64_t until = now_ms() + SOON;
  while (fls_next(client, 1000, &event) == 0 && now_ms() < until)
    continue;
  return event;
}

bool readable(const struct fls_client *client)
{
  struct pollfd fd = {.fd = fls_fd(client), .events = POLLIN};
  return poll(&fd, 1, 0) == 1 && (fd.revents & POLLIN) != 0;
}
