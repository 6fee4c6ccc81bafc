/* SPDX-License-Identifier: Apache-2.0 */
/* The clock of ESP-IDF: microseconds since the start, which count on in light sleep. */
#include "port.h"

#include "esp_timer.h"

uint32_t port_clock_ms(void)
{
  return (uint32_t)((uint64_t)esp_timer_get_time() / 1000U);
}
