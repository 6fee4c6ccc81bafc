/* lwIP has it all in one. */
#include "lwip/errno.h"
