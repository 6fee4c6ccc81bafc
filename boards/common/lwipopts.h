/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lwIP for one or two TCP connections: no operating system, no sockets, fixed pools, 536 bytes a
 * segment. If you switch on a protocol with timers (DHCP, DNS, reassembly), call them in
 * run_timers() of network.c, or use LWIP_TIMERS for 300 bytes of flash.
 */
#ifndef LWIPOPTS_H
#define LWIPOPTS_H

#define NO_SYS               1
#define SYS_LIGHTWEIGHT_PROT 0
#define LWIP_NETCONN         0
#define LWIP_SOCKET          0
#define LWIP_NOASSERT        1
#define LWIP_STATS           0
#define LWIP_TIMERS          0

#define LWIP_RAW            0
#define LWIP_UDP            0
#define LWIP_DHCP           0
#define LWIP_AUTOIP         0
#define LWIP_DNS            0
#define LWIP_IGMP           0
#define LWIP_IPV6           0
#define LWIP_ICMP           1
#define LWIP_ARP            1
#define IP_REASSEMBLY       0
#define IP_FRAG             0
#define IP_OPTIONS_ALLOWED  0
#define LWIP_NETIF_LOOPBACK 0
#define LWIP_SINGLE_NETIF   1

/*
 * After 2 bytes of padding and the 14 of Ethernet's header all others are aligned, so nothing has
 * to be read a byte at a time.
 */
#define ETH_PAD_SIZE 2

/*
 * A frame is one pbuf, in each direction: what is sent is copied into blocks of a whole segment,
 * which requests that are sent together share; a ping is answered in the pbuf that brought it,
 * which has room for the headers.
 */
#define LWIP_NETIF_TX_SINGLE_PBUF           1
#define PBUF_NEEDS_COPY(p)                  0
#define LWIP_ICMP_ECHO_CHECK_INPUT_PBUF_LEN 0

#define TCP_MSS                    536
#define TCP_CALCULATE_EFF_SEND_MSS 0 /* the interface takes that much */
/*
 * On a real network, a window of three segments lets a server send on while the first is on its
 * way. QEMU's user network ignores the segment's size, and sends in one frame what the window
 * allows.
 */
#define TCP_WND          TCP_MSS
#define TCP_SND_BUF      (2 * TCP_MSS)
#define TCP_SND_QUEUELEN 8
#define TCP_QUEUE_OOSEQ  0
#define LWIP_RANDOMIZE_INITIAL_LOCAL_PORTS                                                         \
  1 /* the ports used before a reset may still be open at the server */

/* Blocks of two sizes in place of a heap: lwippools.h. */
#define MEM_USE_POOLS                 1
#define MEM_USE_POOLS_TRY_BIGGER_POOL 1
#define MEMP_USE_CUSTOM_POOLS         1

#define MEM_ALIGNMENT           4
#define MEMP_NUM_TCP_PCB        2
#define MEMP_NUM_TCP_PCB_LISTEN 0
#define MEMP_NUM_TCP_SEG        8
#define MEMP_NUM_PBUF           1
#define PBUF_POOL_SIZE          4
#define PBUF_POOL_BUFSIZE       608 /* TCP_MSS, and 2 + 14 + 20 + 20 and rounding */
#define ARP_TABLE_SIZE          4
#define ARP_QUEUEING            0

#endif
