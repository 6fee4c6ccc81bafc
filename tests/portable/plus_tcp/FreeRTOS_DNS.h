/* SPDX-License-Identifier: Apache-2.0 */
/* FreeRTOS-Plus-TCP's names: see FreeRTOS.h. */
#ifndef FREERTOS_DNS_H
#define FREERTOS_DNS_H

#ifndef FREERTOS_IP_H
#error "FreeRTOS-Plus-TCP's FreeRTOS_DNS.h relies on FreeRTOS_IP.h"
#endif

/* An address as it is sent; 0: there is none. */
uint32_t FreeRTOS_gethostbyname(const char *name);

#endif
