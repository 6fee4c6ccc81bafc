/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Zephyr's transport in place of port/posix's, for suites that are compiled with this folder before
 * that one: they and the harness then run on it as they are.
 */
#ifndef PORT_POSIX_H
#define PORT_POSIX_H

#include "port_zephyr.h"

#define port_posix     port_zephyr
#define port_posix_tcp port_zephyr_tcp

#include "support/only_tcp.h"

#endif
