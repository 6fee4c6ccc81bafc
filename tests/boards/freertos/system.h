/* SPDX-License-Identifier: Apache-2.0 */
/* What an application finds below it on the simulated board; boards/freertos/main.c, too. */
#ifndef SYSTEM_H
#define SYSTEM_H

#include <stdbool.h>

/* Starts lwIP, with its own task, and one that drives the network. False: there is no controller. */
bool board_init(void);

/* Writes to the log. */
void board_print(const char *text);

#endif
