/* SPDX-License-Identifier: Apache-2.0 */
/* Stands in for Zephyr's: see ../kernel.h. */
#ifndef ZEPHYR_NET_TLS_CREDENTIALS_H
#define ZEPHYR_NET_TLS_CREDENTIALS_H

typedef int sec_tag_t;

#endif
