/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lwIP as the boards have it, but with a task of its own, and sockets. Timers are run by network.c,
 * as on the boards.
 */
#ifndef FREERTOS_LWIPOPTS_H
#define FREERTOS_LWIPOPTS_H

#include "../../../boards/common/lwipopts.h"

#include <sys/time.h>

#undef NO_SYS
#define NO_SYS 0
#undef SYS_LIGHTWEIGHT_PROT
#define SYS_LIGHTWEIGHT_PROT 1
#undef LWIP_NETCONN
#define LWIP_NETCONN 1
#undef LWIP_SOCKET
#define LWIP_SOCKET 1
#undef LWIP_NOASSERT

void assertion_failed(const char *file, int line);
#define LWIP_ASSERT(text, condition) ((condition) ? (void)0 : assertion_failed(__FILE__, __LINE__))

/* lwIP's task opens the lock while it waits only if it believes that it has timers. */
#undef LWIP_TIMERS
#define LWIP_TIMERS        1
#define LWIP_TIMERS_CUSTOM 1

#define LWIP_TCPIP_CORE_LOCKING 1
#define TCPIP_MBOX_SIZE         MAILBOX_SLOTS
#define TCPIP_THREAD_STACKSIZE  512
#define TCPIP_THREAD_PRIO       3

/* One task sends while another receives. */
#define LWIP_NETCONN_FULLDUPLEX     1
#define LWIP_NETCONN_SEM_PER_THREAD 1
#define DEFAULT_TCP_RECVMBOX_SIZE   MAILBOX_SLOTS
#define LWIP_TCP_KEEPALIVE          1

/* Names: one that is listed here, so that nothing is asked of the network. */
#undef LWIP_UDP
#define LWIP_UDP 1
#undef LWIP_DNS
#define LWIP_DNS           1
#define DNS_LOCAL_HOSTLIST 1
#define DNS_LOCAL_HOSTLIST_INIT                                                                    \
  {                                                                                                \
    DNS_LOCAL_HOSTLIST_ELEM("redis.example", IPADDR4_INIT_BYTES(10, 0, 2, 2))                      \
  }

/* Debian's patch for hosts has these in a header of its own. */
#define IP4ADDR_SOCKADDR_SET_LEN(address) ((address)->sin_len = sizeof(struct sockaddr_in))
#define IPADDR_SOCKADDR_GET_LEN(address)  ((address)->sa.sa_len)

/* The type is the C library's; errno is that of the task. */
#define LWIP_TIMEVAL_PRIVATE 0
#define LWIP_PROVIDE_ERRNO   1
#define errno                FreeRTOS_errno
extern int FreeRTOS_errno;

#endif
