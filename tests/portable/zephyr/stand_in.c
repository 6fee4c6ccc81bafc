/* SPDX-License-Identifier: Apache-2.0 */
/* What the stand-in for Zephyr keeps; see zephyr/net/socket.h. */
#include <zephyr/net/socket.h>

struct tls_stand_in tls_stand_in;
