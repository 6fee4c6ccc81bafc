/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ethernet by virtio over memory-mapped registers (virtio 1.1, sections 2.6, 4.2 and 5.1), polled.
 * Each queue's descriptors point to fixed buffers for ever: frames are copied in and out.
 */
#include "board.h"
#include "port.h"

#include <string.h>

#define ENTRIES          2
#define TRANSMIT_MOST_MS 10U

enum { RECEIVE, TRANSMIT, QUEUES };

enum registers {
  MAGIC = 0x000,
  DEVICE_ID = 0x008,
  DRIVER_FEATURES = 0x020,
  DRIVER_FEATURES_SELECT = 0x024,
  QUEUE_SELECT = 0x030,
  QUEUE_SIZE = 0x038,
  QUEUE_READY = 0x044,
  QUEUE_NOTIFY = 0x050,
  STATUS = 0x070,
  QUEUE_DESCRIPTORS = 0x080,
  QUEUE_DRIVER = 0x090,
  QUEUE_DEVICE = 0x0a0,
  CONFIG = 0x100
};

#define MAGIC_VALUE       0x74726976U
#define ID_NETWORK        1U
#define FEATURE_MAC       (1U << 5)
#define FEATURE_VERSION_1 1U /* bit 32, in the second word */
#define STATUS_START      3U /* ACKNOWLEDGE, DRIVER */
#define STATUS_FEATURES   8U
#define STATUS_READY      4U
#define DEVICE_WRITES     2U

/*
 * A network packet: the header of virtio, which is zero in frames that we send, and a frame of no
 * more than 596 bytes.
 */
#define HEADER 12
#define PACKET 608

struct descriptor {
  uint64_t address;
  uint32_t size;
  uint16_t flags, next;
};

struct used {
  uint32_t index, size;
};

struct queue {
  _Alignas(16) struct descriptor descriptors[ENTRIES];
  struct {
    uint16_t flags, index, ring[ENTRIES];
  } driver;
  struct {
    uint16_t flags, index;
    struct used ring[ENTRIES];
  } device;
  uint16_t seen; /* of device.index */
  uint8_t packets[ENTRIES][PACKET];
};

static struct queue queues[QUEUES];

#define AT(offset) REGISTER(VIRTIO_BASE + (offset))

static void barrier(void)
{
  __asm__ volatile("fence" ::: "memory");
}

static void write_address(uint32_t offset, const void *address)
{
  AT(offset) = (uint32_t)(uintptr_t)address;
  AT(offset + 4) = 0;
}

static void start_queue(uint32_t index, uint16_t flags)
{
  struct queue *queue = &queues[index];
  for (uint16_t i = 0; i < ENTRIES; i++) {
    queue->descriptors[i] = (struct descriptor){(uintptr_t)queue->packets[i], PACKET, flags, 0};
    queue->driver.ring[i] = i;
  }
  AT(QUEUE_SELECT) = index;
  AT(QUEUE_SIZE) = ENTRIES;
  write_address(QUEUE_DESCRIPTORS, queue->descriptors);
  write_address(QUEUE_DRIVER, &queue->driver);
  write_address(QUEUE_DEVICE, &queue->device);
  AT(QUEUE_READY) = 1;
}

/* Hands one more buffer of the queue to the device. */
static void offer(uint32_t index)
{
  barrier();
  queues[index].driver.index++;
  barrier();
  AT(QUEUE_NOTIFY) = index;
}

bool ethernet_init(uint8_t address[6])
{
  if (AT(MAGIC) != MAGIC_VALUE || AT(DEVICE_ID) != ID_NETWORK) return false;
  AT(STATUS) = 0;
  AT(STATUS) = STATUS_START;
  AT(DRIVER_FEATURES_SELECT) = 0;
  AT(DRIVER_FEATURES) = FEATURE_MAC;
  AT(DRIVER_FEATURES_SELECT) = 1;
  AT(DRIVER_FEATURES) = FEATURE_VERSION_1;
  AT(STATUS) = STATUS_START | STATUS_FEATURES;
  if (!(AT(STATUS) & STATUS_FEATURES)) return false;
  start_queue(RECEIVE, DEVICE_WRITES);
  start_queue(TRANSMIT, 0);
  AT(STATUS) = STATUS_START | STATUS_FEATURES | STATUS_READY;
  for (int i = 0; i < ENTRIES; i++)
    offer(RECEIVE);
  for (unsigned i = 0; i < 6; i++)
    address[i] = *(volatile uint8_t *)(VIRTIO_BASE + CONFIG + i);
  return true;
}

/* The oldest buffer that the device is done with; NULL: none. */
static struct used *done(struct queue *queue)
{
  barrier();
  if (*(volatile uint16_t *)&queue->device.index == queue->seen) return NULL;
  barrier();
  return &queue->device.ring[queue->seen % ENTRIES];
}

/*
 * Buffers are sent in turn, so the next one is free unless all are under way. The device is done
 * with the oldest in a moment; waiting is better than dropping a frame, which TCP would send again
 * only after its time-out.
 */
bool ethernet_send(const uint8_t *frame, size_t size)
{
  struct queue *queue = &queues[TRANSMIT];
  uint32_t began = port_clock_ms();
  if (size > PACKET - HEADER) return false;
  while ((uint16_t)(queue->driver.index - queue->seen) == ENTRIES) {
    if (done(queue) != NULL) queue->seen++;
    else if (port_clock_ms() - began > TRANSMIT_MOST_MS) return false;
  }
  uint16_t next = queue->driver.index % ENTRIES;
  memcpy(queue->packets[next] + HEADER, frame, size);
  queue->descriptors[next].size = (uint32_t)(HEADER + size);
  offer(TRANSMIT);
  return true;
}

size_t ethernet_receive(uint8_t *frame, size_t size)
{
  struct queue *queue = &queues[RECEIVE];
  const struct used *used = done(queue);
  if (used == NULL) return 0;
  size_t length = used->size > HEADER ? used->size - HEADER : 0;
  if (length > size) length = 0;
  memcpy(frame, queue->packets[used->index % ENTRIES] + HEADER, length);
  queue->driver.ring[queue->driver.index % ENTRIES] = (uint16_t)used->index;
  queue->seen++;
  offer(RECEIVE);
  return length;
}
