/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sleep on the MPS2+ boards with a Cortex-M3 or M4: a timer of Arm's CMSDK, set again for each
 * sleep, and the interrupts of the second UART. The clock is another counter, which never stops:
 * see fpgaio.c.
 *
 * The vector table of start-up has only the processor's exceptions; a longer one takes its
 * place here.
 */
#include "sleep.h"
#include "board.h"

#define SYST_CSR  REGISTER(0xe000e010)
#define NVIC_ISER REGISTER(0xe000e100)
#define VTOR      REGISTER(0xe000ed08)

#define TIMER_CONTROL REGISTER(TIMER_BASE + 0x00)
#define TIMER_RELOAD  REGISTER(TIMER_BASE + 0x08)
#define TIMER_CLEAR   REGISTER(TIMER_BASE + 0x0c)
#define TIMER_ON      9U /* counts, with interrupt */

#define DATA    REGISTER(LINE_BASE + 0x00)
#define STATE   REGISTER(LINE_BASE + 0x04)
#define CONTROL REGISTER(LINE_BASE + 0x08)
#define CLEAR   REGISTER(LINE_BASE + 0x0c)
#define BAUDDIV REGISTER(LINE_BASE + 0x10)
#define TX_FULL 1U
#define RX_FULL 2U
#define TX_DONE 1U /* in CLEAR */
#define RX_DONE 2U
#define ALL_ON  15U /* both directions, with interrupts */

enum { EXCEPTIONS = 16, LINE_RX = 2, LINE_TX = 3, TIMER = 8, VECTORS = EXCEPTIONS + 16 };
enum { QUIET_MS = 5, LONGEST_MS = 100000 };

typedef void (*handler)(void);

/* Bytes from one writer to one reader, one of which is an interrupt. */
#define RING 512U
struct ring {
  volatile uint32_t put, taken; /* how many bytes since the start */
  uint8_t bytes[RING];
};

static struct ring incoming, outgoing;
static volatile bool fired, heard;
static bool asleep;
/* aligned to its size, as the processor requires */
static handler vectors[VECTORS] __attribute__((aligned(256)));

static bool empty(const struct ring *ring)
{
  return ring->put == ring->taken;
}

static bool put(struct ring *ring, uint8_t byte)
{
  uint32_t at = ring->put;
  if (at - ring->taken == RING) return false;
  ring->bytes[at % RING] = byte;
  ring->put = at + 1;
  return true;
}

static uint8_t take_byte(struct ring *ring)
{
  uint8_t byte = ring->bytes[ring->taken % RING];
  ring->taken = ring->taken + 1;
  return byte;
}

static void start_timer(uint32_t ms)
{
  TIMER_CONTROL = 0;
  TIMER_CLEAR = 1;
  fired = false;
  TIMER_RELOAD = ms * (CLOCK_HZ / 1000); /* it counts from there, too */
  TIMER_CONTROL = TIMER_ON;
}

static void on_timer(void)
{
  TIMER_CONTROL = 0;
  TIMER_CLEAR = 1;
  fired = true;
}

/* A byte that finds no room is lost: the client will see that the reply is malformed. */
static void on_received(void)
{
  CLEAR = RX_DONE;
  while (STATE & RX_FULL)
    (void)put(&incoming, (uint8_t)DATA);
  heard = true;
  if (asleep) start_timer(QUIET_MS);
}

static void on_sent(void)
{
  CLEAR = TX_DONE;
  if (!empty(&outgoing) && !(STATE & TX_FULL)) DATA = take_byte(&outgoing);
}

static void on_none(void)
{
}

static void disable_interrupts(void)
{
  __asm__ volatile("cpsid i" ::: "memory");
}

static void enable_interrupts(void)
{
  __asm__ volatile("cpsie i" ::: "memory");
}

void sleep_init(void)
{
  const volatile uint32_t *old = (const volatile uint32_t *)(uintptr_t)VTOR;
  for (uint32_t i = 0; i < VECTORS; i++)
    vectors[i] = i < EXCEPTIONS ? (handler)(uintptr_t)old[i] : on_none;
  vectors[EXCEPTIONS + LINE_RX] = on_received;
  vectors[EXCEPTIONS + LINE_TX] = on_sent;
  vectors[EXCEPTIONS + TIMER] = on_timer;
  SYST_CSR = 0;
  VTOR = (uint32_t)(uintptr_t)vectors;
  BAUDDIV = 16;
  CONTROL = ALL_ON;
  NVIC_ISER = 1U << LINE_RX | 1U << LINE_TX | 1U << TIMER;
}

/*
 * An interrupt that comes between the check and the instruction that sleeps must not be missed:
 * with interrupts masked it stays pending, and still ends the sleep.
 */
bool sleep_for(uint32_t ms)
{
  disable_interrupts();
  heard = !empty(&incoming);
  asleep = true;
  if (heard) ms = QUIET_MS;
  fired = ms == 0;
  if (ms > 0) start_timer(ms < LONGEST_MS ? ms : LONGEST_MS);
  while (!fired) {
    __asm__ volatile("wfi" ::: "memory");
    enable_interrupts();
    disable_interrupts();
  }
  asleep = false;
  TIMER_CONTROL = 0;
  enable_interrupts();
  return heard;
}

size_t sleep_line_read(void *data, size_t size)
{
  uint8_t *bytes = data;
  size_t done = 0;
  while (done < size && !empty(&incoming))
    bytes[done++] = take_byte(&incoming);
  return done;
}

/* Sends the first byte; the interrupt that reports it as sent sends the next one, and so on. */
size_t sleep_line_write(const void *data, size_t size)
{
  const uint8_t *bytes = data;
  size_t done = 0;
  while (done < size && put(&outgoing, bytes[done]))
    done++;
  disable_interrupts();
  on_sent();
  enable_interrupts();
  return done;
}
