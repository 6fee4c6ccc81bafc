/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lwIP for a Pico W with one or two connections, an address by DHCP, and names by DNS. The SDK's own
 * examples set much more.
 */
#ifndef LWIPOPTS_H
#define LWIPOPTS_H

/* What the SDK's architectures without an operating system ask for. */
#define NO_SYS               1
#define LWIP_SOCKET          0
#define LWIP_NETCONN         0
#define MEM_LIBC_MALLOC      0
#define MEM_ALIGNMENT        4
#define LWIP_TIMEVAL_PRIVATE 0

/* Each client is one MEMP_NUM_TCP_PCB, and sends from MEM_SIZE. A segment fits into one pbuf. */
#define MEM_SIZE         4000
#define MEMP_NUM_TCP_PCB 3
#define MEMP_NUM_TCP_SEG 16
#define PBUF_POOL_SIZE   12
#define TCP_MSS          1460
#define TCP_WND          (2 * TCP_MSS)
#define TCP_SND_BUF      (2 * TCP_MSS)
#define TCP_SND_QUEUELEN 8

#define LWIP_DHCP 1
#define LWIP_DNS  1
#define LWIP_IPV6 0

#define LWIP_NETIF_STATUS_CALLBACK 1
#define LWIP_NETIF_LINK_CALLBACK   1
#define LWIP_NETIF_HOSTNAME        1
#define LWIP_NETIF_TX_SINGLE_PBUF  1

#endif
