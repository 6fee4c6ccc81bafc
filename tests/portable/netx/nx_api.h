/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The calls of NetX Duo that port/netx makes, on the host's sockets; see stand_in.c. What they mean
 * is taken from NetX Duo's documentation.
 */
#ifndef NX_API_H
#define NX_API_H

#include "tx_api.h"

#ifdef __cplusplus
extern "C" {
#endif

#define NX_NULL 0

#define NX_SUCCESS             0x00U
#define NX_NO_PACKET           0x01U
#define NX_SIZE_ERROR          0x09U
#define NX_NOT_ENABLED         0x14U
#define NX_IP_ADDRESS_ERROR    0x21U
#define NX_NOT_BOUND           0x24U
#define NX_NOT_CLOSED          0x35U
#define NX_IN_PROGRESS         0x37U
#define NX_NOT_CONNECTED       0x38U
#define NX_WINDOW_OVERFLOW     0x39U
#define NX_DISCONNECT_FAILED   0x41U
#define NX_STILL_BOUND         0x42U
#define NX_NO_FREE_PORTS       0x45U
#define NX_TX_QUEUE_DEPTH      0x49U
#define NX_INVALID_PARAMETERS  0x4dU
#define NX_PACKET_OFFSET_ERROR 0x53U

#define NX_NO_WAIT         0UL
#define NX_ANY_PORT        0U
#define NX_IP_NORMAL       0UL
#define NX_FRAGMENT_OKAY   0UL
#define NX_IP_TIME_TO_LIVE 0x80U
#define NX_TCP_PACKET      56UL /* room for headers before the data */
#define NX_IP_VERSION_V4   4U
#define NX_IP_VERSION_V6   6U

#define NX_TCP_CLOSED      1U
#define NX_TCP_SYN_SENT    3U
#define NX_TCP_ESTABLISHED 5U
#define NX_TCP_CLOSE_WAIT  6U
#define NX_TCP_FIN_WAIT_1  7U
#define NX_TCP_TIMED_WAIT  10U

#define IP_ADDRESS(a, b, c, d)                                                                     \
  ((((ULONG)(a)) << 24) | (((ULONG)(b)) << 16) | (((ULONG)(c)) << 8) | ((ULONG)(d)))

typedef struct {
  ULONG nxd_ip_version;
  union {
    ULONG v4;
    ULONG v6[4];
  } nxd_ip_address;
} NXD_ADDRESS;

/* Packets of one size, in the program's memory. */
typedef struct NX_PACKET_POOL_STRUCT NX_PACKET_POOL;
typedef struct NX_PACKET_STRUCT NX_PACKET;

struct NX_PACKET_STRUCT {
  NX_PACKET_POOL *nx_packet_pool_owner;
  NX_PACKET *nx_packet_next;       /* of the same message */
  NX_PACKET *nx_packet_queue_next; /* the next message, or the next free one */
  ULONG nx_packet_length;          /* of the whole message */
  UCHAR *nx_packet_data_start;
  UCHAR *nx_packet_data_end;
  UCHAR *nx_packet_prepend_ptr; /* where its data begin, and end */
  UCHAR *nx_packet_append_ptr;
  int free;
};

struct NX_PACKET_POOL_STRUCT {
  ULONG nx_packet_pool_available;
  ULONG nx_packet_pool_total;
  ULONG nx_packet_pool_empty_requests;
  NX_PACKET *first_free;
};

/* The stack. What a test sets in it goes wrong. */
typedef struct {
  UINT create_status, bind_status, connect_status, append_status, extract_status; /* 0: none */
  int silent;       /* no server answers */
  UINT send_status; /* refuses, when it has taken send_part bytes of the packet */
  ULONG send_part;
  unsigned sends;    /* calls of nx_tcp_socket_send() */
  unsigned receives; /* and of nx_tcp_socket_receive() */
  int empty_packet;  /* the next message is preceded by one without a byte */
  int sockets;       /* that have been made and not deleted */
} NX_IP;

typedef struct NX_TCP_SOCKET_STRUCT {
  NX_IP *ip;
  NX_PACKET_POOL *pool; /* for what is received: that of the program */
  ULONG window;
  VOID (*received)(struct NX_TCP_SOCKET_STRUCT *tcp);
  VOID (*disconnected)(struct NX_TCP_SOCKET_STRUCT *tcp);
  UINT state;
  int bound;
  int fd;      /* -1: none */
  int wake[2]; /* a pair, whose byte has the thread look again */
  pthread_t thread;
  int thread_runs;
  NX_PACKET *head, *tail; /* received */
  ULONG queued;           /* bytes */
} NX_TCP_SOCKET;

/* What the stand-in runs on: one stack, and a pool for all that is received. */
extern NX_IP nx_ip;
extern NX_PACKET_POOL nx_pool;

UINT nx_packet_pool_create(NX_PACKET_POOL *pool, const CHAR *name, ULONG payload, VOID *memory,
                           ULONG size);
UINT nx_packet_pool_info_get(NX_PACKET_POOL *pool, ULONG *total, ULONG *available,
                             ULONG *empty_requests, ULONG *empty_suspensions,
                             ULONG *invalid_releases);
UINT nx_packet_allocate(NX_PACKET_POOL *pool, NX_PACKET **packet, ULONG type, ULONG wait);
UINT nx_packet_release(NX_PACKET *packet);
UINT nx_packet_data_append(NX_PACKET *packet, VOID *data, ULONG size, NX_PACKET_POOL *pool,
                           ULONG wait);
UINT nx_packet_data_extract_offset(NX_PACKET *packet, ULONG offset, VOID *buffer, ULONG size,
                                   ULONG *copied);

UINT nx_tcp_socket_create(NX_IP *ip, NX_TCP_SOCKET *tcp, const CHAR *name, ULONG service,
                          ULONG fragment, UINT time_to_live, ULONG window,
                          VOID (*urgent)(NX_TCP_SOCKET *tcp),
                          VOID (*disconnected)(NX_TCP_SOCKET *tcp));
UINT nx_tcp_socket_receive_notify(NX_TCP_SOCKET *tcp, VOID (*received)(NX_TCP_SOCKET *tcp));
UINT nx_tcp_client_socket_bind(NX_TCP_SOCKET *tcp, UINT port, ULONG wait);
UINT nxd_tcp_client_socket_connect(NX_TCP_SOCKET *tcp, NXD_ADDRESS *address, UINT port, ULONG wait);
UINT nx_tcp_socket_info_get(NX_TCP_SOCKET *tcp, ULONG *packets_sent, ULONG *bytes_sent,
                            ULONG *packets_received, ULONG *bytes_received,
                            ULONG *packets_sent_again, ULONG *packets_queued,
                            ULONG *checksum_errors, ULONG *state, ULONG *queue_depth,
                            ULONG *transmit_window, ULONG *receive_window);
UINT nx_tcp_socket_send(NX_TCP_SOCKET *tcp, NX_PACKET *packet, ULONG wait);
UINT nx_tcp_socket_receive(NX_TCP_SOCKET *tcp, NX_PACKET **packet, ULONG wait);
UINT nx_tcp_socket_disconnect(NX_TCP_SOCKET *tcp, ULONG wait);
UINT nx_tcp_client_socket_unbind(NX_TCP_SOCKET *tcp);
UINT nx_tcp_socket_delete(NX_TCP_SOCKET *tcp);

#ifdef __cplusplus
}
#endif

#endif
