/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Included before every file of a build with sanitizers or of a fuzzer: a mistake in the use of the
 * library ends the program. No header of the system's comes in here, as files choose first what
 * those show.
 */
#ifndef ASSERTS_H
#define ASSERTS_H

#define FAIRLOCK_ASSERT(condition) ((condition) ? (void)0 : __builtin_trap())

#endif
