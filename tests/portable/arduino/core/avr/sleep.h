/* SPDX-License-Identifier: Apache-2.0 */
/* Stands in for avr-libc's, which sketches for an AVR include: a sleep ends with a tick of millis(). */
#ifndef AVR_SLEEP_H
#define AVR_SLEEP_H

#define SLEEP_MODE_IDLE      0
#define set_sleep_mode(mode) ((void)(mode))
#define sleep_mode()         delay(1)

#endif
