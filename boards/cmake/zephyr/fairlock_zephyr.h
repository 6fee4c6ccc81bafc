/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A client that Kconfig describes (CONFIG_FAIRLOCK_...), for a program on Zephyr that needs one, and
 * does not want to set it up:
 *
 *     static struct fairlock door;
 *     struct fairlock_client *client = fairlock_zephyr_start(NULL, NULL);
 *
 *     if (client == NULL || fairlock_init(&door, client, "door:7") != FAIRLOCK_OK) return;
 *     if (fairlock_acquire(&door, FAIRLOCK_FOREVER, FAIRLOCK_RENEW) == FAIRLOCK_OK) {
 *       ...
 *       fairlock_release(&door);
 *     }
 */
#ifndef FAIRLOCK_ZEPHYR_H
#define FAIRLOCK_ZEPHYR_H

#include "fairlock.h"
#include "port_zephyr.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Makes the client, and starts a thread that services it, for good: holds are renewed, and waits go
 * on, whatever other threads do. Connections are logged under the module "fairlock". lost is called
 * when a hold is lost, with context, by whichever thread services the client (see fairlock_lost_fn);
 * NULL: it is only logged. Call it once, from one thread; credentials of TLS have been added before.
 * The network need not be up: until it is, the client tries again. Returns NULL if Kconfig describes
 * a client that cannot be, and logs why.
 */
struct fairlock_client *fairlock_zephyr_start(fairlock_lost_fn lost, void *context);

/* That client's transport, for port_zephyr_error(). */
const struct port_zephyr *fairlock_zephyr_transport(void);

#ifdef __cplusplus
}
#endif

#endif
