/* SPDX-License-Identifier: Apache-2.0 */
/*
 * TLS by Mbed TLS over lwIP to a server on the simulator's host, which has a certificate of a CA
 * that was known when this was compiled: link_ca.c with another library. All that Mbed TLS
 * allocates comes from an array. The time to check a certificate against comes from the board.
 */
#include "board.h"
#include "ca_der.h"
#include "link.h"
#include "network.h"
#include "port_mbedtls.h"

#include <mbedtls/memory_buffer_alloc.h>
#include <mbedtls/platform.h>
#include <mbedtls/platform_time.h>
#include <mbedtls/platform_util.h>
#include <string.h>

/* Enough for a handshake with RSA and a session to resume, and not much more. */
#ifndef TLS_MEMORY
#define TLS_MEMORY 16384
#endif

static int secret(void *context, unsigned char *data, size_t size)
{
  (void)context;
  return board_secret(data, size) ? 0 : -1;
}

static mbedtls_time_t utc(mbedtls_time_t *to)
{
  uint32_t seconds;
  /* the time is not known: at 0, no certificate is valid yet */
  if (!board_utc(&seconds)) seconds = 0;
  if (to != NULL) *to = (mbedtls_time_t)seconds;
  return (mbedtls_time_t)seconds;
}

/* For Mbed TLS: the date, by days since 0000-03-01 in eras of 400 years. */
struct tm *mbedtls_platform_gmtime_r(const mbedtls_time_t *time, struct tm *date)
{
  uint32_t seconds = (uint32_t)*time;
  uint32_t days = seconds / 86400 + 719468;
  uint32_t of_era = days % 146097;
  uint32_t year = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
  uint32_t of_year = of_era - (365 * year + year / 4 - year / 100);
  uint32_t month = (5 * of_year + 2) / 153; /* March is 0 */
  memset(date, 0, sizeof *date);
  date->tm_mday = (int)(of_year - (153 * month + 2) / 5 + 1);
  date->tm_mon = (int)(month < 10 ? month + 2 : month - 10);
  date->tm_year = (int)(days / 146097 * 400 + year + (month < 10 ? 0 : 1)) - 1900;
  date->tm_hour = (int)(seconds / 3600 % 24);
  date->tm_min = (int)(seconds / 60 % 60);
  date->tm_sec = (int)(seconds % 60);
  return date;
}

static mbedtls_x509_crt ca;
static struct port_mbedtls tls;

static const struct port_mbedtls_config tls_config = {
    .random = secret,
    .ca = &ca,
    .name = "localhost",
    .fragment = MBEDTLS_SSL_MAX_FRAG_LEN_2048,
};

bool link_start(struct fairlock_client *client, const struct fairlock_config *config)
{
  static struct port_lwip lwip;
  static unsigned char memory[TLS_MEMORY];
  const ip_addr_t host = IPADDR4_INIT(lwip_htonl(NETWORK_HOST));
  if (!network_init()) return false;
  mbedtls_memory_buffer_alloc_init(memory, sizeof memory);
  (void)mbedtls_platform_set_time(utc);
  mbedtls_x509_crt_init(&ca);
  /* the array stays: it is not copied */
  if (mbedtls_x509_crt_parse_der_nocopy(&ca, CA_DER, sizeof CA_DER) != 0) return false;
  port_lwip_init(&lwip, &network_hooks, &host, (uint16_t)board_argument_number(1, 6379));
  return port_mbedtls_init(&tls, &lwip.transport, &tls_config) &&
         fairlock_client_init(client, config, &tls.transport) == FAIRLOCK_OK;
}

struct port_transport **link_below(void)
{
  return &tls.below;
}
