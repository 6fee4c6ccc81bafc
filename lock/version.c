/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The version of the library, for programs that were compiled against the headers of another one.
 */
#include "fairlock.h"

const char *fairlock_version(void)
{
  return FAIRLOCK_VERSION;
}
