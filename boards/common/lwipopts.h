/* lwIP for one or two TCP connections: no operating system, no sockets, fixed pools, 536 bytes a segment. */
#ifndef LWIPOPTS_H
#define LWIPOPTS_H

#define NO_SYS               1
#define SYS_LIGHTWEIGHT_PROT 0
#define LWIP_NETCONN         0
#define LWIP_SOCKET          0
#define LWIP_NOASSERT        1
#define LWIP_STATS           0

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
#define LWIP_NETIF_LOOPBACK 0
#define LWIP_SINGLE_NETIF   1

#define TCP_MSS                            536
#define TCP_WND                            (3 * TCP_MSS)
#define TCP_SND_BUF                        (2 * TCP_MSS)
#define TCP_SND_QUEUELEN                   8
#define TCP_QUEUE_OOSEQ                    0
#define TCP_OVERSIZE                       0 /* the client hands over whole requests: no room to spare behind them */
#define LWIP_RANDOMIZE_INITIAL_LOCAL_PORTS 1 /* the ports of before a reset may still be open at the server */

#define MEM_ALIGNMENT           4
#define MEM_SIZE                1600
#define MEMP_NUM_TCP_PCB        2
#define MEMP_NUM_TCP_PCB_LISTEN 0
#define MEMP_NUM_TCP_SEG        8
#define MEMP_NUM_PBUF           4
#define PBUF_POOL_SIZE          4
#define PBUF_POOL_BUFSIZE       608 /* TCP_MSS, and 14 + 20 + 20 and rounding */
#define ARP_TABLE_SIZE          4
#define ARP_QUEUEING            0

#endif
