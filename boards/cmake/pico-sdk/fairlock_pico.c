/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The hooks of port/lwip, the clock and port_idle() on the pico-sdk; see fairlock_pico.h. With
 * pico_cyw43_arch_lwip_poll this polls the chip and lwIP; with the background architecture an
 * interrupt does that, at any time but between begin and end.
 */
#include "fairlock_pico.h"

#include "pico/cyw43_arch.h"
#include "pico/time.h"

#if PICO_CYW43_ARCH_FREERTOS
#error                                                                                             \
    "fairlock_pico is for a program with one task. With FreeRTOS take port/freertos and port/sockets"
#endif

/*
 * Waits first: what a poll has brought has to be looked at before the next wait. An interrupt ends
 * __wfe(), also one that came just before it.
 */
static void turn(uint32_t timeout_ms)
{
  absolute_time_t until = make_timeout_time_ms(timeout_ms);
#if PICO_CYW43_ARCH_POLL
  if (timeout_ms > 0) cyw43_arch_wait_for_work_until(until);
  cyw43_arch_poll();
#else
  if (timeout_ms > 0) (void)best_effort_wfe_or_timeout(until);
#endif
}

static void lock(void)
{
  cyw43_arch_lwip_begin();
}

static void unlock(void)
{
  cyw43_arch_lwip_end();
}

const struct port_lwip_hooks fairlock_pico_hooks = {turn, lock, unlock};

/* A timer of 64 bits, in microseconds, which counts in sleep, but not in dormant mode. */
uint32_t port_clock_ms(void)
{
  return (uint32_t)(time_us_64() / 1000U);
}

void port_idle(uint32_t ms)
{
  turn(ms);
}
