/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The same with waits as long as a program with one task may want them: it wakes for heartbeats and
 * answers alone, and each call still ends in time.
 */
#define PORT_WAIT_MAX_MS 60000U

#include "test_single.c"
