/* What lwIP asks of the compiler and the platform: no printf, no abort, a random number, the clock. */
#ifndef ARCH_CC_H
#define ARCH_CC_H

#include <stdint.h>

#define BYTE_ORDER              LITTLE_ENDIAN
#define LWIP_PLATFORM_DIAG(x)   ((void)0)
#define LWIP_PLATFORM_ASSERT(x) ((void)0)
#define LWIP_NO_UNISTD_H        1
#define LWIP_NO_CTYPE_H         1

uint32_t network_random(void);
#define LWIP_RAND() network_random()

#endif
