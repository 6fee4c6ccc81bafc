/* SPDX-License-Identifier: Apache-2.0 */
/* SHA-1, by which Redis names scripts. */
#ifndef SIM_SHA1_H
#define SIM_SHA1_H

#include <stddef.h>

/* Writes 40 hexadecimal digits and NUL to digest. */
void sha1_hex(const void *data, size_t size, char digest[41]);

#endif
