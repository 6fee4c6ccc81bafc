/* SPDX-License-Identifier: Apache-2.0 */
/* lwIP has it all in one. */
#include "lwip/sockets.h"
