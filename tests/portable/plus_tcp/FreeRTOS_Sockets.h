/* SPDX-License-Identifier: Apache-2.0 */
/* FreeRTOS-Plus-TCP's sockets: see FreeRTOS.h. */
#ifndef FREERTOS_SOCKETS_H
#define FREERTOS_SOCKETS_H

#ifndef FREERTOS_IP_H
#error "FreeRTOS-Plus-TCP's FreeRTOS_Sockets.h relies on FreeRTOS_IP.h"
#endif

struct xSOCKET;
typedef struct xSOCKET *Socket_t;
typedef struct xSOCKET const *ConstSocket_t;

extern struct xSOCKET plus_tcp_no_socket;

#define FREERTOS_INVALID_SOCKET (&plus_tcp_no_socket)
#define FREERTOS_AF_INET        2
#define FREERTOS_SOCK_STREAM    1
#define FREERTOS_IPPROTO_TCP    6
#define FREERTOS_SO_RCVTIMEO    0
#define FREERTOS_SO_SNDTIMEO    1
#define FREERTOS_MSG_PEEK       4
#define FREERTOS_MSG_DONTWAIT   16
#define FREERTOS_SHUT_RDWR      2

struct freertos_sockaddr {
  uint8_t sin_len;
  uint8_t sin_family;
  uint16_t sin_port;
#if ipFR_TCP_VERSION_MAJOR >= 4
  uint32_t sin_flowinfo;
  union {
    uint32_t ulIP_IPv4;
    uint8_t ucBytes[16];
  } sin_address;
#else
  uint32_t sin_addr;
#endif
};

Socket_t FreeRTOS_socket(BaseType_t domain, BaseType_t type, BaseType_t protocol);
BaseType_t FreeRTOS_setsockopt(Socket_t socket, int32_t level, int32_t option, const void *value,
                               size_t size);
BaseType_t FreeRTOS_connect(Socket_t socket, const struct freertos_sockaddr *address,
                            uint32_t size);
BaseType_t FreeRTOS_issocketconnected(ConstSocket_t socket);
BaseType_t FreeRTOS_send(Socket_t socket, const void *data, size_t size, BaseType_t flags);
BaseType_t FreeRTOS_recv(Socket_t socket, void *data, size_t size, BaseType_t flags);
BaseType_t FreeRTOS_rx_size(ConstSocket_t socket);
BaseType_t FreeRTOS_shutdown(Socket_t socket, BaseType_t how);
BaseType_t FreeRTOS_closesocket(Socket_t socket);

#endif
