/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The texts of the scripts, as generated into scripts.c from the Lua files of scripts/.
 * Private to the engine, and to programs that load the scripts.
 */
#ifndef FAIRLOCK_TEXTS_H
#define FAIRLOCK_TEXTS_H

#include "port_flash.h"
#include "scripts.h"

/*
 * How many codes may wait on the stack while another one is unpacked. generate.sh packs no deeper,
 * and scripts.c checks it.
 */
#define FAIRLOCK_UNPACK_DEPTH 8

/* A script. Its text consists of parts, each packed as scripts.c describes, and ended by a 0. */
struct fairlock_script {
  const PORT_FLASH uint8_t *part[4];

  /* of the text */
  uint16_t size;

  /* of the text */
  char sha1[41];
};

/*
 * The codes are the bytes from 127 on, and then those below 35, except 0, the line feed and the space:
 * these three have {0, 0} in the table.
 */
#define FAIRLOCK_FIRST_CODE 127U
#define FAIRLOCK_PAIRS      164U
extern const PORT_FLASH uint8_t fairlock_script_pairs[FAIRLOCK_PAIRS][2];

/* Writes the script's text, unpacked. */
void fairlock_script_unpack(struct resp_writer *writer, const struct fairlock_script *script);

#endif
