/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The boards' lwIP on the host, under a sanitizer: as on the boards, but with a server in the same
 * stack, and with each connection and buffer in memory of its own, so that a use after its end is
 * seen.
 */
#include "../../../boards/common/lwipopts.h"

#include <stddef.h>

#undef MEM_ALIGNMENT
#define MEM_ALIGNMENT 8
#undef LWIP_NOASSERT
#undef LWIP_TIMERS
#undef LWIP_UDP
#define LWIP_UDP 1
#undef LWIP_DNS
#define LWIP_DNS 1
#undef MEM_USE_POOLS
#undef MEMP_USE_CUSTOM_POOLS
#undef MEMP_NUM_TCP_PCB_LISTEN
#define MEMP_NUM_TCP_PCB_LISTEN 1
#undef LWIP_ARP
#define LWIP_ARP      0
#define LWIP_ETHERNET 0

#define MEM_LIBC_MALLOC 1
#define MEMP_MEM_MALLOC 1

void *test_malloc(size_t size);
void *test_calloc(size_t count, size_t size);
void test_free(void *memory);
#define mem_clib_malloc test_malloc
#define mem_clib_calloc test_calloc
#define mem_clib_free   test_free
