/* SPDX-License-Identifier: Apache-2.0 */
/* lwIP has it under a name of its own. */
#include "lwip/netdb.h"
