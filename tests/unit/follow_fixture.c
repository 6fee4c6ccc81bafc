/* SPDX-License-Identifier: Apache-2.0 */
#include "follow_fixture.h"

struct fairlock_topology topology;
char address[64];
unsigned seeds, seed;
bool goes_anywhere;
char place[64];

static unsigned turn; /* the seed of the last turn */

bool aim(void *context, const char *where)
{
  CHECK(context == &seeds);
  if (where == NULL) {
    turn = turn % seeds + 1;
    seed = turn;
    return seed < seeds;
  }
  if (!goes_anywhere) return false;
  CHECK(strlen(where) < sizeof place);
  memcpy(place, where, strlen(where) + 1);
  seed = 0;
  return true;
}

void prepare_seeds(unsigned count)
{
  memset(&topology, 0, sizeof topology);
  topology.address = address;
  topology.address_size = sizeof address;
  memset(address, 'x', sizeof address);
  seeds = count;
  turn = count; /* the first comes after the last */
  goes_anywhere = true;
  place[0] = 0;
}

void set_up_seeds(unsigned count)
{
  set_up();
  prepare_seeds(count);
}

void follow(void)
{
  CHECK_EQUAL(fairlock_engine_follow(&engine, &topology, aim, &seeds), FAIRLOCK_OK);
}

void follow_seeds(unsigned count)
{
  set_up_seeds(count);
  follow();
}

void say_hello(const char *version, const char *mode, const char *role)
{
  uint8_t text[256];
  struct resp_writer writer;
  resp_writer_init(&writer, text, sizeof text - 1, 0);
  resp_write_header(&writer, RESP_MAP, 7);
  resp_write_bulk(&writer, "server", 6);
  resp_write_bulk(&writer, "redis", 5);
  resp_write_bulk(&writer, "version", 7);
  resp_write_bulk(&writer, version, strlen(version));
  resp_write_bulk(&writer, "proto", 5);
  resp_write_header(&writer, RESP_INTEGER, 3);
  resp_write_bulk(&writer, "id", 2);
  resp_write_header(&writer, RESP_INTEGER, 74);
  resp_write_bulk(&writer, "mode", 4);
  resp_write_bulk(&writer, mode, strlen(mode));
  resp_write_bulk(&writer, "role", 4);
  resp_write_bulk(&writer, role, strlen(role));
  resp_write_bulk(&writer, "modules", 7);
  resp_write_header(&writer, RESP_ARRAY, 1);
  resp_write_bulk(&writer, "role", 4);
  text[writer.used] = 0;
  feed((char *)text);
}
