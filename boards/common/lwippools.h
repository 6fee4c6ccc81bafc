/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The blocks that lwIP sends from: number and size. The small ones for what carries no data
 * (acknowledgements, resets, address resolution), the big ones for a segment with its headers;
 * network.c checks the sizes. lwIP includes this several times, so there is no guard.
 */
LWIP_MALLOC_MEMPOOL_START
LWIP_MALLOC_MEMPOOL(4, 88)
LWIP_MALLOC_MEMPOOL(3, 608)
LWIP_MALLOC_MEMPOOL_END
