/* SPDX-License-Identifier: Apache-2.0 */
/* The same of the schedule of a program with one task, which is a list. */
#include "../../port/single/port_types.h" /* in place of the one that the library's own build has */

#include "../../lock/schedule.c"

#include "test_schedule.c"
