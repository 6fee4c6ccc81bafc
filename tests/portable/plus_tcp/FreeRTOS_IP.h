/* SPDX-License-Identifier: Apache-2.0 */
/* FreeRTOS-Plus-TCP's version and byte order: see FreeRTOS.h. */
#ifndef FREERTOS_IP_H
#define FREERTOS_IP_H

#include "FreeRTOS.h"

#include <arpa/inet.h>

#ifndef ipFR_TCP_VERSION_MAJOR
#define ipFR_TCP_VERSION_MAJOR 4
#endif

#define FreeRTOS_htons(number) htons(number)
#define FreeRTOS_htonl(number) htonl(number)
#define FreeRTOS_ntohl(number) ntohl(number)

#endif
