/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A simulated modem (modem.py) on a terminal of its own, and a transport over it, as the suites use
 * them. The device is this process: a reset is modem_init() once more.
 */
#ifndef MODEM_RIG_H
#define MODEM_RIG_H

#include "modem.h"

/* Families by number, for tests that try each. */
extern const struct modem_family *const modem_families[2];

/* The one for the next modem_start(), the speed of its line (0: none), and what the line can do. */
extern int modem_family_number;
extern int modem_baud;
extern struct modem_line modem_line;

/* The transport. Its modem opens connections to that port of this machine. */
extern struct modem modem;
extern struct modem_config modem_config;

/* Starts a modem, in place of the one before, and a device. */
void modem_start(int port);

/* The device starts anew, and the modem does not. */
void modem_reset_device(void);

/* Tells the modem what to do wrong; see modem.py. Returns its answer. */
const char *modem_told(const char *what);

/* Pulls the modem's reset pin: what modem_line has for it. */
void modem_restart(void *context);

/* The modem's line, to write to past the transport. */
void modem_write(const void *data, size_t size);

#endif
