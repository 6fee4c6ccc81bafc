/* Resolves a name in another thread. Private to port/posix. */
#ifndef PORT_POSIX_RESOLVE_H
#define PORT_POSIX_RESOLVE_H

#include <netdb.h>
#include <stdbool.h>
#include <stdint.h>

/* What failed: an errno, or, negative, an error of the resolver, whose sign systems differ in. */
#define RESOLVER(error) (EAI_NONAME < 0 ? (error) : -(error))

struct port_posix_lookup;

/* Begins to resolve; the strings are copied. NULL: there is no memory. */
struct port_posix_lookup *port_posix_resolve(const char *host, const char *service);

/* Whether the lookup is for this, and its answer, if it has come, not an old one. */
bool port_posix_resolves(const struct port_posix_lookup *lookup, const char *host,
                         const char *service);

/* Waits for the answer for up to timeout_ms; 0: only looks. Returns whether it is there. */
bool port_posix_resolved(const struct port_posix_lookup *lookup, uint32_t timeout_ms);

/*
 * The answer, once it is there; it is the caller's, and the lookup is gone. Returns 0, or what
 * failed; *addresses is then NULL.
 */
int port_posix_take_answer(struct port_posix_lookup *lookup, struct addrinfo **addresses);

/* Gives the lookup up: nobody waits for the answer any more. */
void port_posix_give_up(struct port_posix_lookup *lookup);

#endif
