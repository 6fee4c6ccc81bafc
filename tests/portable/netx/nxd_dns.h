/* SPDX-License-Identifier: Apache-2.0 */
/* The call of NetX's DNS that port/netx makes. It knows the names that a test gives it. */
#ifndef NXD_DNS_H
#define NXD_DNS_H

#include "nx_api.h"

#ifdef __cplusplus
extern "C" {
#endif

#define NX_DNS_QUERY_FAILED 0xa3U

typedef struct {
  const char *name; /* the only one, which has this address */
  ULONG address;
  unsigned lookups;
  ULONG wait; /* of the last one, in ticks */
} NX_DNS;

UINT nxd_dns_host_by_name_get(NX_DNS *dns, UCHAR *name, NXD_ADDRESS *address, ULONG wait,
                              UINT type);

#ifdef __cplusplus
}
#endif

#endif
