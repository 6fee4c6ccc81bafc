/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The texts of the scripts. A text is sent once to a server that does not know the script, by EVAL
 * instead of EVALSHA. Firmware whose scripts somebody else loads links scripts/hashes.c instead of
 * this file and scripts.c.
 */
#include "texts.h"
#include "internal.h"

/*
 * Unpacks up to the 0, which is in no pair. While the first half of a pair is unpacked, the second
 * half waits on a stack.
 */
static void unpack_part(struct resp_writer *writer, const PORT_FLASH uint8_t *packed)
{
  uint8_t waiting[FAIRLOCK_UNPACK_DEPTH];
  size_t count = 0;
  for (;;) {
    uint8_t byte = count > 0 ? waiting[--count] : *packed++;
    if (byte == 0) return;
    for (;;) {
      uint8_t code = (uint8_t)(byte - FAIRLOCK_FIRST_CODE);
      if (code >= FAIRLOCK_PAIRS || fairlock_script_pairs[code][0] == 0) break;
      waiting[count++] = fairlock_script_pairs[code][1];
      byte = fairlock_script_pairs[code][0];
    }
    const uint8_t unpacked = byte; /* that one stays in a register, without an address */
    resp_write_raw(writer, &unpacked, 1);
  }
}

void fairlock_script_unpack(struct resp_writer *writer, const struct fairlock_script *script)
{
  for (unsigned i = 0; i < sizeof script->part / sizeof script->part[0]; i++)
    unpack_part(writer, script->part[i]);
}

void fairlock_script_write(struct resp_writer *writer, const struct fairlock_script *script,
                           bool eval, int words)
{
  fairlock_request_write_command(writer, eval ? "EVAL" : "EVALSHA", words);
  if (!eval) {
    fairlock_request_write_text(writer, script->sha1);
    return;
  }
  resp_write_header(writer, RESP_BULK_STRING, script->size);
  fairlock_script_unpack(writer, script);
  resp_write_end(writer);
}

int fairlock_script_unknown(struct fairlock_engine *engine, struct resp_event *event, uint8_t kind)
{
  engine->eval |= kind;
  event->type = RESP_NULL; /* no refusal for the log */
  return FAIRLOCK_PENDING;
}
