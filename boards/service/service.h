/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The client for other languages: on the heap, behind opaque pointers, serviced by a thread of its
 * own. POSIX hosts.
 *
 * A binding to fairlock.h would have to know sizes that only a C compiler knows, keep memory in
 * place until a handle is out, and be called back under the client's mutex, where a language's own
 * lock waits for ever. Here nothing calls back: what happens is an event, read from a queue with a
 * descriptor, or the end of a wait. What stands in fairlock.h means the same here; a status is one
 * of enum fairlock_status, as a number.
 *
 *     struct fls_options options = {.size = sizeof options, .url = "redis://localhost"};
 *     struct fls_client *client = fls_open(&options, error);
 *     struct fls_lock *door = fls_new(client, "door:7", 6, FLS_EXCLUSIVE, 0, &status);
 *     if (fls_acquire(door, FLS_FOREVER, FLS_RENEW, 0) == FLS_PENDING)
 *       while ((status = fls_wait(door, FLS_FOREVER)) == FLS_PENDING) ...    a signal: look at it
 *     ...
 *     fls_release(door, 0);   fls_wait(door, FLS_FOREVER);
 *     fls_free(door);   fls_close(client, 1000);
 *
 * Threads. Any thread may call every function, but none from a signal handler. A lock is one
 * holder: two threads that want the lock make two. Its calls come one after the other, by any
 * thread, with two exceptions: fls_cancel() ends a wait of another thread, and what only reads
 * (fls_token(), _held(), _remaining_ms(), _id()) may be called at any time before fls_free().
 *
 * Processes. After a fork(), client and locks are the parent's. Functions then send nothing and
 * return FAIRLOCK_FORKED, 0 or ""; fls_forked() closes the child's copy.
 */
#ifndef FLS_SERVICE_H
#define FLS_SERVICE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct fls_client;
struct fls_lock;

enum {
  FLS_PENDING = 1,      /* as FAIRLOCK_PENDING */
  FLS_OK = 0,           /* as FAIRLOCK_OK; failures are below 0 */
  FLS_EXCLUSIVE = -1,   /* a limit: the lock is not shared */
  FLS_ERROR_SIZE = 512, /* room for any text of an error, with its NUL */
  FLS_ID_SIZE = 80,     /* room for the id of a holder, with its NUL */
  FLS_WORDS_SIZE = 216  /* room for what somebody who asks has said, with a NUL */
};
#define FLS_FOREVER UINT32_MAX  /* as FAIRLOCK_FOREVER */
#define FLS_RENEW   0x7e7e7e7eU /* as FAIRLOCK_RENEW */

/*
 * What a client is to be. A string that is NULL, and a number that is 0, stand for the default.
 * Strings are copied.
 */
struct fls_options {
  size_t size;     /* sizeof of this struct as the caller knows it, so that it may grow */
  const char *url; /* port_posix.h has the grammar. A password in it need not be given below */
  const char *client_id;
  const char *client_name;
  const char *user;
  const char *password;
  const char *sentinel_user;
  const char *sentinel_password;
  const char *ca_file;     /* PEM. With rediss:// alone, as the next three */
  const char *certificate; /* ours */
  const char *key;         /* of that; NULL: it is in the same file */
  const char *tls_name;    /* which the server's certificate must have; NULL: the host's */
  uint32_t lease_ms;       /* with servers that move 60000 */
  uint32_t waiter_ms;
  uint32_t claim_ms;
  uint32_t response_ms;
  uint32_t connect_ms;
  uint32_t offline_ms;
  uint32_t replicas; /* as in fairlock_follow.h: so many have to acknowledge */
  uint32_t keep_ms;  /* as in fairlock_keep.h; 0: nothing is kept */
  uint32_t listen;   /* not 0: holders hear of FLS_ASKED */
};

/* Returns a client, which connects to nothing yet, or NULL, and why in words. */
struct fls_client *fls_open(const struct fls_options *options, char error[FLS_ERROR_SIZE]);

/*
 * Gives up all locks, which are freed, for up to ms until the server has been told; ends the
 * thread, and frees the client. No other thread may be inside a function of the client, but for
 * fls_next(), which must not be called again: see fls_stop(). What the server was not told of ends
 * with its lease. After a fork it is fls_forked().
 */
void fls_close(struct fls_client *client, uint32_t ms);

/* In the child of a fork(): closes its copy of the connection. All else stays, and is not used. */
void fls_forked(struct fls_client *client);

/* As fairlock_connect(): blocks. */
int fls_connect(struct fls_client *client);

/* What the server or the transport has said last, or "". */
void fls_error(struct fls_client *client, char text[FLS_ERROR_SIZE]);

/*
 * A lock: name is size bytes, and copied. limit: FLS_EXCLUSIVE; 0: shared by any number; up to so
 * many. user comes back in its events. NULL: *status says why: FAIRLOCK_INVALID, _TOO_LONG, or
 * _OOM: no memory here.
 */
struct fls_lock *fls_new(struct fls_client *client, const void *name, size_t size, int limit,
                         uintptr_t user, int *status);

/*
 * Frees a lock in any state, and never blocks: for finalizers. What it does or has on the server is
 * ended in the background. It has no events from then on.
 */
void fls_free(struct fls_lock *lock);

/*
 * Begin an operation: return FLS_PENDING, or the final status. event 0: fls_wait() has its end;
 * otherwise an event FLS_ENDED has it. A release is begun by whichever thread.
 */
int fls_acquire(struct fls_lock *lock, uint32_t wait_ms, uint32_t lease_ms, int event);
int fls_release(struct fls_lock *lock, int event);

/* As fairlock_cancel(). */
int fls_cancel(struct fls_lock *lock);

/* The result, or FLS_PENDING after ms, and also when this thread has handled a signal. */
int fls_wait(struct fls_lock *lock, uint32_t ms);

/* The fencing token of the last hold; 0: none. And the same of the hold that there is now; 0: none. */
uint64_t fls_token(struct fls_lock *lock);
uint64_t fls_held(struct fls_lock *lock);

/* As fairlock_remaining_ms(), _hold_count() and _id(). */
uint32_t fls_remaining_ms(struct fls_lock *lock);
uint32_t fls_hold_count(struct fls_lock *lock);
void fls_id(struct fls_lock *lock, char text[FLS_ID_SIZE]);

/* What has happened to a lock. */
enum {
  FLS_ENDED = 1, /* an operation that was begun for an event: status, token */
  FLS_LOST = 2,  /* its hold is lost: lost, reason */
  FLS_ASKED = 4  /* somebody asks to release it: asked, words */
};

/*
 * An event of one lock: of several kinds at once if they came before it was read, each as it was
 * last. They may be about different holds.
 */
struct fls_event {
  size_t size;    /* sizeof of this struct as the caller knows it, set before the call */
  uintptr_t user; /* of the lock */
  uint64_t token; /* with FLS_ENDED and FLS_OK: of the hold that was acquired or released */
  uint64_t lost;  /* with FLS_LOST: the token of that hold */
  uint64_t asked; /* with FLS_ASKED: the token of that hold */
  uint32_t what;  /* bits of the enum above */
  int32_t status; /* with FLS_ENDED */
  int32_t reason; /* with FLS_LOST: as enum fairlock_loss_reason */
  char words[FLS_WORDS_SIZE]; /* with FLS_ASKED: as in fairlock_operate.h, with a NUL; "" */
};

/* Readable while there are events: for poll(), kqueue, epoll or an event loop. Nobody reads it. */
int fls_fd(const struct fls_client *client);

/*
 * Takes an event, and waits for up to ms for one. 1: event is set. 0: there is none; also when the
 * thread has handled a signal, and after fls_stop().
 */
int fls_next(struct fls_client *client, uint32_t ms, struct fls_event *event);

/*
 * Ends the events: fls_next() returns 0 at once from now on, also where it waits. So a thread that
 * reads events can be ended, and waited for, before fls_close(), which does the same.
 */
void fls_stop(struct fls_client *client);

/* As fairlock_status_text(), fairlock_status_name() and fairlock_version(). */
const char *fls_status_text(int status);
const char *fls_status_name(int status);
const char *fls_version(void);

#ifdef __cplusplus
}
#endif

#endif
