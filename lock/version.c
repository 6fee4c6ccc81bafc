/*
 * The version of the library, for programs that are built apart from it.
 */
#include "engine.h"

const char *fairlock_version(void)
{
  return FAIRLOCK_VERSION;
}
