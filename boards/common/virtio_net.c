/*
 * Ethernet by virtio over memory-mapped registers (virtio 1.1, sections 2.6, 4.2 and 5.1), polled. The machine has
 * several slots; the first with a network device is used. Each queue's descriptors point to fixed buffers for ever:
 * frames are copied in and out.
 */
#include "board.h"

#include <string.h>

#define SLOTS     8
#define SLOT_SIZE 0x1000
#define ENTRIES   4

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

/* A network packet: the header of virtio, 12 bytes, none of whose features are used, and the frame. */
#define HEADER 12
#define PACKET 640

struct descriptor {
  uint64_t address;
  uint32_t size;
  uint16_t flags, next;
};

struct used {
  uint32_t index, size;
};

struct queue {
  struct descriptor descriptors[ENTRIES];
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

static struct queue queues[QUEUES] __attribute__((aligned(16)));
static uintptr_t base;

static volatile uint32_t *at(uint32_t offset)
{
  return (volatile uint32_t *)(base + offset);
}

static void barrier(void)
{
  __asm__ volatile("fence" ::: "memory");
}

static void write_address(uint32_t offset, const void *address)
{
  *at(offset) = (uint32_t)(uintptr_t)address;
  *at(offset + 4) = 0;
}

static void start_queue(uint32_t index, uint16_t flags)
{
  struct queue *queue = &queues[index];
  for (uint16_t i = 0; i < ENTRIES; i++) {
    queue->descriptors[i] = (struct descriptor){(uintptr_t)queue->packets[i], PACKET, flags, 0};
    queue->driver.ring[i] = i;
  }
  *at(QUEUE_SELECT) = index;
  *at(QUEUE_SIZE) = ENTRIES;
  write_address(QUEUE_DESCRIPTORS, queue->descriptors);
  write_address(QUEUE_DRIVER, &queue->driver);
  write_address(QUEUE_DEVICE, &queue->device);
  *at(QUEUE_READY) = 1;
}

/* Hands one more buffer of the queue to the device. */
static void offer(uint32_t index)
{
  barrier();
  queues[index].driver.index++;
  barrier();
  *at(QUEUE_NOTIFY) = index;
}

static bool find_device(void)
{
  for (base = VIRTIO_BASE; base < VIRTIO_BASE + SLOTS * SLOT_SIZE; base += SLOT_SIZE) {
    if (*at(MAGIC) == MAGIC_VALUE && *at(DEVICE_ID) == ID_NETWORK) return true;
  }
  return false;
}

bool ethernet_init(uint8_t address[6])
{
  if (!find_device()) return false;
  *at(STATUS) = 0;
  *at(STATUS) = STATUS_START;
  *at(DRIVER_FEATURES_SELECT) = 0;
  *at(DRIVER_FEATURES) = FEATURE_MAC;
  *at(DRIVER_FEATURES_SELECT) = 1;
  *at(DRIVER_FEATURES) = FEATURE_VERSION_1;
  *at(STATUS) = STATUS_START | STATUS_FEATURES;
  if (!(*at(STATUS) & STATUS_FEATURES)) return false;
  start_queue(RECEIVE, DEVICE_WRITES);
  start_queue(TRANSMIT, 0);
  *at(STATUS) = STATUS_START | STATUS_FEATURES | STATUS_READY;
  for (int i = 0; i < ENTRIES; i++)
    offer(RECEIVE);
  for (unsigned i = 0; i < 6; i++)
    address[i] = *(volatile uint8_t *)(base + CONFIG + i);
  return true;
}

/* The oldest buffer that the device has done with; NULL: none. */
static struct used *done(struct queue *queue)
{
  barrier();
  if (*(volatile uint16_t *)&queue->device.index == queue->seen) return NULL;
  barrier();
  return &queue->device.ring[queue->seen % ENTRIES];
}

/* Buffers are sent in turn, so the next one is free unless all are under way. */
bool ethernet_send(const uint8_t *frame, size_t size)
{
  struct queue *queue = &queues[TRANSMIT];
  while (done(queue) != NULL)
    queue->seen++;
  if ((uint16_t)(queue->driver.index - queue->seen) == ENTRIES || size > PACKET - HEADER) return false;
  uint16_t next = queue->driver.index % ENTRIES;
  memset(queue->packets[next], 0, HEADER);
  memcpy(queue->packets[next] + HEADER, frame, size);
  queue->descriptors[next].size = (uint32_t)(HEADER + size);
  queue->driver.ring[next] = next;
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
