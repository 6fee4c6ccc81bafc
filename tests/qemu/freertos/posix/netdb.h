/* lwIP has it under a name of its own. */
#include "lwip/netdb.h"
