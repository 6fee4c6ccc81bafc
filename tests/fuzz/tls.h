/* SPDX-License-Identifier: Apache-2.0 */
/* What fuzz_openssl and fuzz_mbedtls share, tls.c, and the transport that each gives it. */
#ifndef FUZZ_TLS_H
#define FUZZ_TLS_H

#include "port.h"

/* The certificate of the server, which is for the name "host". Called once. */
void subject_prepare(const unsigned char *certificate, size_t size);

/* Whether the transport below is called with the mutex locked to send. */
extern const bool subject_sends_locked;

/* Makes the transport; trusts: it has reason to trust the server. NULL: that failed. */
struct port_transport *subject_init(struct port_transport *below, bool trusts);

void subject_deinit(void);

/* The mutex that the transport uses. */
const struct port_mutex *subject_mutex(void);

/* Whether the transport holds no connection. */
bool subject_is_down(void);

/* Whether there is a text for the last error, as there has to be. */
bool subject_has_a_text(void);

#endif
