/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The LAN9118 Ethernet controller, polled. Its FIFOs are words wide: frames are moved as words,
 * with the bytes beyond the end of a frame left undefined. Interrupts are not used; the caller
 * polls often enough.
 */
#include "board.h"

#include <string.h>

#define RX_DATA      REGISTER(LAN9118_BASE + 0x00)
#define TX_DATA      REGISTER(LAN9118_BASE + 0x20)
#define RX_STATUS    REGISTER(LAN9118_BASE + 0x40)
#define TX_STATUS    REGISTER(LAN9118_BASE + 0x48)
#define BYTE_TEST    REGISTER(LAN9118_BASE + 0x64)
#define FIFO_INT     REGISTER(LAN9118_BASE + 0x68)
#define TX_CFG       REGISTER(LAN9118_BASE + 0x70)
#define HW_CFG       REGISTER(LAN9118_BASE + 0x74)
#define RX_FIFO_INF  REGISTER(LAN9118_BASE + 0x7c)
#define TX_FIFO_INF  REGISTER(LAN9118_BASE + 0x80)
#define MAC_CSR_CMD  REGISTER(LAN9118_BASE + 0xa4)
#define MAC_CSR_DATA REGISTER(LAN9118_BASE + 0xa8)

#define BYTE_TEST_VALUE 0x87654321U
#define SOFT_RESET      1U
#define TX_FIFO_5_KB    0x00050000U
#define TX_ON           2U
#define FIRST_AND_LAST  0x3000U
#define CSR_BUSY        0x80000000U
#define CSR_READ        0x40000000U
#define RX_ERROR        0x8000U
#define FCS_SIZE        4U

enum { MAC_CR = 1, ADDRH = 2, ADDRL = 3 };
#define MAC_CR_TX_RX 0xcU

static uint32_t read_mac(uint32_t index)
{
  MAC_CSR_CMD = CSR_BUSY | CSR_READ | index;
  while (MAC_CSR_CMD & CSR_BUSY)
    continue;
  return MAC_CSR_DATA;
}

static void write_mac(uint32_t index, uint32_t value)
{
  MAC_CSR_DATA = value;
  MAC_CSR_CMD = CSR_BUSY | index;
  while (MAC_CSR_CMD & CSR_BUSY)
    continue;
}

bool ethernet_init(uint8_t address[6])
{
  if (BYTE_TEST != BYTE_TEST_VALUE) return false;
  HW_CFG = SOFT_RESET;
  while (HW_CFG & SOFT_RESET)
    continue;
  HW_CFG = TX_FIFO_5_KB;
  FIFO_INT = 0xff000000U;
  TX_CFG = TX_ON;
  write_mac(MAC_CR, read_mac(MAC_CR) | MAC_CR_TX_RX);
  uint32_t low = read_mac(ADDRL);
  uint32_t high = read_mac(ADDRH);
  for (unsigned i = 0; i < 6; i++)
    address[i] = (uint8_t)(i < 4 ? low >> (8 * i) : high >> (8 * (i - 4)));
  return true;
}

bool ethernet_send(const uint8_t *frame, size_t size)
{
  uint32_t words = (uint32_t)(size + 3) / 4;
  if ((TX_FIFO_INF & 0xffffU) < 4 * words + 8) return false;
  TX_DATA = FIRST_AND_LAST | (uint32_t)size;
  TX_DATA = (uint32_t)size << 16 | (uint32_t)size;
  for (; words > 0; words--, frame += 4) {
    uint32_t word;
    memcpy(&word, frame, sizeof word);
    TX_DATA = word;
  }
  while (TX_FIFO_INF >> 16 & 0xffU)
    (void)TX_STATUS;
  return true;
}

size_t ethernet_receive(uint8_t *frame, size_t size)
{
  if ((RX_FIFO_INF >> 16 & 0xffU) == 0) return 0;
  uint32_t status = RX_STATUS;
  uint32_t length = status >> 16 & 0x3fffU;
  uint32_t words = (length + 3) / 4;
  bool good = !(status & RX_ERROR) && length > FCS_SIZE && 4 * words <= size;
  for (uint32_t i = 0; i < words; i++) {
    uint32_t word = RX_DATA;
    if (good) memcpy(frame + 4 * i, &word, sizeof word);
  }
  return good ? length - FCS_SIZE : 0;
}
