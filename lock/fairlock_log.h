/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An option: a log of the connection.
 */
#ifndef FAIRLOCK_OPTION_LOG_H
#define FAIRLOCK_OPTION_LOG_H

#include "fairlock.h"

#ifdef __cplusplus
extern "C" {
#endif

/* As in fairlock.h. */
#define fairlock_set_log PORT_NAMED(fairlock_set_log)

/* The events of a log. */
enum fairlock_log_event {
  FAIRLOCK_LOG_CONNECTED = 1, /* the server has accepted us */
  FAIRLOCK_LOG_NOT_CONNECTED, /* there was no connection, or the server refused us. status: why;
                                 text: fairlock_status_text(status). The transport's may be better:
                                 port_posix_error() */
  FAIRLOCK_LOG_DISCONNECTED,  /* an established connection was given up, and another will be made.
                                 status, text: as above */
  FAIRLOCK_LOG_REDIRECTED,    /* a Sentinel or a node sends us elsewhere. text: "host:port" */
  FAIRLOCK_LOG_REFUSED,       /* the server has refused a request, for now or for good. text: as
                                 fairlock_error(), which begins with a code such as NOPERM */
  FAIRLOCK_LOG_ASKED,         /* as fairlock_asked_fn. text: the token of the hold, and who asks and
                                 why, as they were sent, cut off to FAIRLOCK_ERROR_SIZE. Without
                                 `asked`, only holders that have waited in the queue, or keep their
                                 locks, listen */
  FAIRLOCK_LOG_BROKEN /* a message, which anybody may have sent, says that the hold was ended
                                 by force: `lost` follows if it was. text: "0", and who did it and
                                 why, as above */
};

/*
 * A callback: an event. text: NULL for FAIRLOCK_LOG_CONNECTED. Of a lost hold, only `lost` tells.
 */
typedef void (*fairlock_log_fn)(enum fairlock_log_event event, int status, const char *text,
                                void *context);

/* Of struct fairlock_log. Private. */
struct fairlock_log_state {
  struct fairlock_link link;
  bool up;
};

/* An option: a log. */
struct fairlock_log {
  fairlock_log_fn function; /* called for each event */
  void *context;            /* passed to function */

  /* the rest is private */
  struct fairlock_log_state own;
};

/* Logs each connection that is made, refused, redirected or ended, and why. Returns FAIRLOCK_OK. */
int fairlock_set_log(struct fairlock_client *client, struct fairlock_log *log);

#ifdef __cplusplus
}
#endif

#endif
