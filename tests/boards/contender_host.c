/* SPDX-License-Identifier: Apache-2.0 */
/* A contender on the host: contender_host PORT ROUNDS PARTIES. */
#include "contender.h"
#include "port_posix.h"

#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
  static struct port_posix links[2];
  if (argc != 4) return 64;
  for (int i = 0; i < 2; i++)
    port_posix_tcp(&links[i], "127.0.0.1", argv[1]);
  const struct contender contender = {&links[0].transport, &links[1].transport,
                                      (uint32_t)atoi(argv[2]), (uint32_t)atoi(argv[3]), 0};
  const char *trouble = contend(&contender);
  if (trouble != NULL) fprintf(stderr, "%s\n", trouble);
  return trouble != NULL;
}
