/* lwIP has it all in one. */
#include "lwip/sockets.h"
