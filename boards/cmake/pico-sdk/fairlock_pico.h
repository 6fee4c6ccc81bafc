/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What port/lwip needs of the pico-sdk: its hooks, for the Wi-Fi of a Pico W by pico_cyw43_arch. The
 * clock and port_idle() come with them. Only one core, the one that called cyw43_arch_init(), and
 * none of its interrupts, may call the library.
 */
#ifndef FAIRLOCK_PICO_H
#define FAIRLOCK_PICO_H

#include "port_lwip.h"

#ifdef __cplusplus
extern "C" {
#endif

/* For port_lwip_init() and port_lwip_init_seeds(), after cyw43_arch_init(). */
extern const struct port_lwip_hooks fairlock_pico_hooks;

#ifdef __cplusplus
}
#endif

#endif
