/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What lwIP needs from the compiler and the platform: no printf, no abort, a random number, the
 * clock.
 */
#ifndef ARCH_CC_H
#define ARCH_CC_H

#include <stdint.h>

#define BYTE_ORDER              LITTLE_ENDIAN
#define LWIP_PLATFORM_DIAG(x)   ((void)0)
#define LWIP_PLATFORM_ASSERT(x) ((void)0)
#define LWIP_NO_UNISTD_H        1
#define LWIP_NO_CTYPE_H         1

/*
 * Headers have no gaps and, with ETH_PAD_SIZE, are aligned: if they were packed, each number would
 * be read byte by byte.
 */
#define PACK_STRUCT_STRUCT
#define LWIP_SKIP_PACKING_CHECK 1

/* One instruction on Arm; on other processors lwIP's functions are smaller. */
#ifdef __arm__
#define lwip_htons(x) __builtin_bswap16(x)
#define lwip_htonl(x) __builtin_bswap32(x)
#endif

uint32_t network_random(void);
#define LWIP_RAND() network_random()

#endif
