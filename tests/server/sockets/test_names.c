/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Host names on port/sockets. No resolver is asked: one name has two addresses, and nobody listens at
 * the first; the others have none.
 */
#undef _FORTIFY_SOURCE /* its inline functions get in the way of the wrappers */

#include "check.h"
#include "port_sockets.h"
#include "support/loopback.h"

#include <netdb.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static struct port_sockets server;
static struct sockaddr_in addresses[2];
static struct addrinfo entries[2];
static unsigned lookups, lists;

int getaddrinfo(const char *restrict name, const char *restrict port,
                const struct addrinfo *restrict hints, struct addrinfo **restrict list)
{
  CHECK(port == NULL && hints->ai_family == AF_INET && hints->ai_socktype == SOCK_STREAM);
  lookups++;
  *list = NULL;
  if (strcmp(name, "none.example") == 0) return EAI_NONAME;
  if (strcmp(name, "empty.example") == 0) return 0;
  memset(entries, 0, sizeof entries);
  for (int i = 0; i < 2; i++) {
    addresses[i] = (struct sockaddr_in){.sin_family = AF_INET,
                                        .sin_addr.s_addr = htonl(i == 0 ? 0x7f000002 : 0x7f000001)};
    entries[i].ai_addr = (struct sockaddr *)&addresses[i];
    entries[i].ai_addrlen = sizeof(struct sockaddr_storage); /* as lwIP does */
  }
  entries[0].ai_next = &entries[1];
  *list = entries;
  lists++;
  return 0;
}

void freeaddrinfo(struct addrinfo *list)
{
  CHECK(list == entries);
  lists--;
}

static int connect_in_the_end(void)
{
  int status = PORT_WOULD_BLOCK;
  for (int i = 0; i < 100 && status == PORT_WOULD_BLOCK; i++)
    status = server.transport.connect(&server, 100);
  return status;
}

static void test_addresses_in_turn(void)
{
  int port;
  int listener = listen_anywhere(&port);
  port_sockets_host(&server, "two.example", (uint16_t)port);
  lookups = 0;
  CHECK_EQUAL(connect_in_the_end(), PORT_UNREACHABLE);
  server.transport.close(&server);
  CHECK_EQUAL(connect_in_the_end(), PORT_OK);
  server.transport.close(&server);
  CHECK_EQUAL(connect_in_the_end(), PORT_OK); /* the one that has served */
  server.transport.close(&server);
  CHECK_EQUAL(lookups, 3);
  CHECK_EQUAL(lists, 0);
  (void)close(listener);
}

/* An attempt that is given up is as good as one that fails. */
static void test_address_that_is_silent(void)
{
  port_sockets_host(&server, "two.example", 9);
  unsigned before = server.turn;
  server.socket = socket(AF_INET, SOCK_STREAM, 0); /* as if it were being opened */
  server.transport.close(&server);
  CHECK_EQUAL(server.turn, before + 1);
  server.transport.close(&server);
  CHECK_EQUAL(server.turn, before + 1);
}

static void test_names_that_are_none(void)
{
  static const char *const names[] = {"none.example", "empty.example"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    port_sockets_host(&server, names[i], 6379);
    CHECK_EQUAL(connect_in_the_end(), PORT_UNREACHABLE);
    server.transport.close(&server);
  }
}

const struct check_test check_tests[] = {
    {"sockets: addresses in turn", test_addresses_in_turn},
    {"sockets: address that is silent", test_address_that_is_silent},
    {"sockets: names that are none", test_names_that_are_none},
    {0},
};
