/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The transport over lwIP with several addresses, from which the client chooses; see port_lwip.h.
 * This is a separate file, so that a program with one server links none of it.
 *
 * A host name is looked up for each connection, because its address may change. A query cannot be
 * cancelled in lwIP, so each answer is compared with the name that is asked for now: it may be a
 * late one.
 */
#include "port_lwip.h"

#if LWIP_DNS
#include "lwip/dns.h"
#include <string.h>
#define HOST_SIZE DNS_MAX_NAME_LENGTH
#else
#define HOST_SIZE IPADDR_STRLEN_MAX
#endif

/* The length of the first place in a list. */
static size_t length(const char *place)
{
  size_t size = 0;
  while (place[size] != 0 && place[size] != ',')
    size++;
  return size;
}

/* Puts the host of "host:port" or "[host]:port" into `host`. False when it is not of that form. */
static bool split(const char *place, char host[HOST_SIZE], uint16_t *port)
{
  size_t end = length(place);
  size_t colon = end;
  uint32_t number = 0;
  while (colon > 0 && place[colon - 1] != ':')
    colon--;
  if (colon == 0) return false;
  for (size_t i = colon; i < end; i++) {
    if (place[i] < '0' || place[i] > '9') return false;
    number = number * 10 + (uint32_t)(place[i] - '0');
    if (number > UINT16_MAX) return false;
  }
  size_t size = colon - 1;
  if (size > 1 && place[0] == '[' && place[size - 1] == ']') {
    place++;
    size -= 2;
  }
  if (number == 0 || size >= HOST_SIZE) return false;
  for (size_t i = 0; i < size; i++)
    host[i] = place[i];
  host[size] = 0;
  *port = (uint16_t)number;
  return true;
}

/* Makes the next connection go there. No host: to that port of the present address. */
static bool go(struct port_lwip_seeds *seeds, const char *place)
{
  char host[HOST_SIZE];
  ip_addr_t address;
  uint16_t port;
  if (!split(place, host, &port)) return false;
  if (host[0] != 0) {
    bool known = ipaddr_aton(host, &address) != 0;
#if LWIP_DNS
    seeds->name = known ? NULL : place;
    seeds->asked = false;
#else
    if (!known) return false;
#endif
    if (known) seeds->lwip.address = address;
  }
  seeds->lwip.port = port;
  return true;
}

static bool seeds_aim(void *context, const char *address)
{
  struct port_lwip_seeds *seeds = context;
  if (address != NULL) return go(seeds, address);
  const char *end = seeds->seeds;
  if (seeds->seed != NULL) end = seeds->seed + length(seeds->seed);
  seeds->seed = *end == ',' ? end + 1 : seeds->seeds;
  (void)go(seeds, seeds->seed); /* cannot fail: port_lwip_init_seeds() has checked the seed */
  return seeds->seed[length(seeds->seed)] == ',';
}

#if LWIP_DNS

/* lwIP's answer. address NULL: the name has none. */
static void on_found(const char *name, const ip_addr_t *address, void *context)
{
  struct port_lwip_seeds *seeds = context;
  char host[HOST_SIZE];
  uint16_t port;
  if (!seeds->asked || !split(seeds->name, host, &port) || strcmp(name, host) != 0) return;
  seeds->asked = false;
  if (address == NULL) return;
  seeds->lwip.address = *address;
  seeds->name = NULL;
}

/* Asks for the address, which lwIP may know already. Called with the lock. */
static void look_up(struct port_lwip_seeds *seeds)
{
  char host[HOST_SIZE];
  uint16_t port;
  (void)split(seeds->name, host, &port);
  seeds->lwip.error = ERR_VAL; /* see port_lwip_error(): until the address is known */
  err_t status = dns_gethostbyname(host, &seeds->lwip.address, on_found, seeds);
  seeds->asked = status == ERR_INPROGRESS;
  if (status == ERR_OK) seeds->name = NULL;
}

static int seeds_connect(void *context, uint32_t timeout_ms)
{
  struct port_lwip_seeds *seeds = context;
  const struct port_lwip_hooks *hooks = seeds->lwip.hooks;
  if (hooks->lock != NULL) hooks->lock();
  if (seeds->name != NULL && !seeds->asked) look_up(seeds);
  bool waits = seeds->asked;
  if (hooks->unlock != NULL) hooks->unlock();
  if (waits) hooks->turn(timeout_ms);
  if (hooks->lock != NULL) hooks->lock();
  bool known = seeds->name == NULL;
  bool failed = !known && !seeds->asked;
  if (hooks->unlock != NULL) hooks->unlock();
  if (known) return seeds->connect(context, waits ? 0 : timeout_ms);
  return failed ? PORT_UNREACHABLE : PORT_WOULD_BLOCK;
}

#endif

bool port_lwip_init_seeds(struct port_lwip_seeds *seeds, const struct port_lwip_hooks *hooks,
                          const char *list)
{
  port_lwip_init(&seeds->lwip, hooks, IP_ADDR_ANY, 0);
  seeds->lwip.transport.aim = seeds_aim;
#if LWIP_DNS
  seeds->connect = seeds->lwip.transport.connect;
  seeds->lwip.transport.connect = seeds_connect;
#endif
  seeds->seeds = list;
  seeds->seed = NULL;
  for (const char *place = list;; place++) {
    if (*place == ':' || !go(seeds, place)) return false;
    place += length(place);
    if (*place == 0) break;
  }
  return go(seeds, list);
}
