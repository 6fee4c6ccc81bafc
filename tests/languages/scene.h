/* SPDX-License-Identifier: Apache-2.0 */
/* What the suites of boards/service share: clients by URL, their locks, and their events. */
#ifndef SCENE_H
#define SCENE_H

#include "harness.h"
#include "service.h"

/* Makes a client of the suite's server with these options, or NULL for none. Ends the program if that fails. */
struct fls_client *open_service(const struct fls_options *options);

/* The same with a URL of the caller's in them. */
struct fls_client *open_by_url(const struct fls_options *options);

/* Makes an exclusive lock, or a shared one. It ends the program if that fails. */
struct fls_lock *make_lock(struct fls_client *client, const char *name, uintptr_t user);
struct fls_lock *make_shared(struct fls_client *client, const char *name, int limit);

/* Acquires without a limit, or releases, and waits for the end. */
int acquire(struct fls_lock *lock);
int release(struct fls_lock *lock);

/* fls_wait() until the operation has ended, or for SOON. */
int await(struct fls_lock *lock);

/* The next event within SOON, or one without a kind. */
struct fls_event next_event(struct fls_client *client);

/* Whether the descriptor of the client is readable now. */
bool readable(const struct fls_client *client);

#endif
