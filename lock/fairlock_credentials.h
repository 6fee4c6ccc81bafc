/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An option: user and password that change: tokens that expire, passwords that are rotated.
 */
#ifndef FAIRLOCK_OPTION_CREDENTIALS_H
#define FAIRLOCK_OPTION_CREDENTIALS_H

#include "fairlock.h"

#ifdef __cplusplus
extern "C" {
#endif

/* As in fairlock.h. */
#define fairlock_use_credentials PORT_NAMED(fairlock_use_credentials)

/* User and password for a connection. The client sets the first part, your function the rest. */
struct fairlock_login {
  bool sentinel; /* they are for a Sentinel, which has other users than the master */
  bool refused;  /* the server has refused the last ones: do not give the same again */

  const char *user;     /* NULL, as it is before: the default user */
  const char *password; /* NULL, as it is before: no authentication */
  uint32_t valid_ms;    /* for how long from now they are valid; more than FAIRLOCK_DURATION_MAX_MS
                           counts as that. 0, as it is before: for ever */
};

/*
 * A callback: fills in login and returns true; false: there are none now. The strings stay
 * unchanged until it is called again. Fetch a token in a task of your own.
 */
typedef bool (*fairlock_credentials_fn)(struct fairlock_login *login, void *context);

/* Of struct fairlock_credentials. Private. */
struct fairlock_credentials_state {
  struct fairlock_link link;

  /* for how long the last ones are valid, from when, and whether they were for a Sentinel */
  uint32_t valid_ms;
  uint32_t given_at;
  bool sentinel;

  /* the last ones were refused: by a server, by a Sentinel */
  bool refused[2];

  /* sends the AUTH */
  struct fairlock handle;
};

/* An option: credentials that change. */
struct fairlock_credentials {
  fairlock_credentials_fn function; /* called when user and password are needed */
  void *context;                    /* passed to function */

  /* the rest is private */
  struct fairlock_credentials_state own;
};

/*
 * Makes the client ask credentials->function at each connection, instead of the configuration and
 * the topology. If it gives nothing, or the server answers WRONGPASS or NOAUTH, then or later, the
 * connection is closed, and made again after the usual pause; meanwhile holds and waits go on. A
 * wait ends with FAIRLOCK_DENIED after offline_ms; all else at once.
 *
 * When three quarters of their time have passed, it is called for an AUTH on the open connection.
 * If that fails, the former user goes on, and it is called again after half of the rest, at least 1
 * s; once they have expired, every 5 s, until the server closes the connection. Returns
 * FAIRLOCK_OK.
 */
int fairlock_use_credentials(struct fairlock_client *client,
                             struct fairlock_credentials *credentials);

#ifdef __cplusplus
}
#endif

#endif
