/* SPDX-License-Identifier: Apache-2.0 */
/* Zephyr's log, as lines on standard output: see ../kernel.h. */
#ifndef ZEPHYR_LOGGING_LOG_H
#define ZEPHYR_LOGGING_LOG_H

#include <stdio.h>

#define LOG_MODULE_REGISTER(module, level) static const char log_module[] = #module
#define LOG_ERR(...)                       log_line("err", __VA_ARGS__)
#define LOG_WRN(...)                       log_line("wrn", __VA_ARGS__)
#define LOG_INF(...)                       log_line("inf", __VA_ARGS__)
#define log_line(level, ...)                                                                       \
  (printf("<%s> %s: ", level, log_module), printf(__VA_ARGS__), printf("\n"), (void)fflush(stdout))

#endif
