/* SPDX-License-Identifier: Apache-2.0 */
/* As RIOT's package has them, as far as it matters here. */
#define NO_SYS       0
#define LWIP_SOCKET  0
#define LWIP_NETCONN 0
#define LWIP_DNS     0
