/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Low power: a program that sleeps until a time it names, or until something arrives by the line
 * (the second UART). No tick runs. What arrives is stored by interrupt, and what is sent goes out
 * by interrupt, while the program sleeps.
 */
#ifndef SLEEP_H
#define SLEEP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Stops the tick and starts the line. */
void sleep_init(void);

/*
 * Sleeps for ms, 100 s at most. Returns earlier, with true, if something has arrived by the line
 * and the line has then been quiet for 5 ms: so a reply wakes it once, however many bytes it has.
 */
bool sleep_for(uint32_t ms);

/* The line's two ends. Both return how many bytes they moved, 0 included. */
size_t sleep_line_read(void *data, size_t size);
size_t sleep_line_write(const void *data, size_t size);

#endif
