/* SPDX-License-Identifier: Apache-2.0 */
/* Resolves a name in another thread. Private to port/posix. */
#ifndef PORT_POSIX_RESOLVE_H
#define PORT_POSIX_RESOLVE_H

#include <netdb.h>
#include <stdbool.h>
#include <stdint.h>

/*
 * A failure is an errno, or an error of the resolver as a negative number. On some systems these
 * are negative already.
 */
#define RESOLVER(error) (EAI_NONAME < 0 ? (error) : -(error))

struct port_posix_lookup;

/* Begins to resolve; the strings are copied. NULL: there is no memory. */
struct port_posix_lookup *port_posix_resolve(const char *host, const char *service);

/* True if the lookup is for this host and service, and has not got its answer too long ago. */
bool port_posix_resolves(const struct port_posix_lookup *lookup, const char *host,
                         const char *service);

/* Waits for the answer for up to timeout_ms; 0: only looks. Returns true if it has come. */
bool port_posix_resolved(const struct port_posix_lookup *lookup, uint32_t timeout_ms);

/*
 * Takes the answer, which has come, and frees the lookup. Returns 0, and the caller has to free
 * *addresses; or what failed, and *addresses is NULL.
 */
int port_posix_take_answer(struct port_posix_lookup *lookup, struct addrinfo **addresses);

/* Gives up the lookup. It is freed when its thread has ended. */
void port_posix_give_up(struct port_posix_lookup *lookup);

#endif
