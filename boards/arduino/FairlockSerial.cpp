/* SPDX-License-Identifier: Apache-2.0 */
#include "FairlockSerial.h"

FairlockSerial::FairlockSerial(Stream &line) : stream_(line), tells_room_(false), line_(), uart_()
{
}

const struct port_transport &FairlockSerial::transport(uint32_t starts)
{
  line_.read = readLine;
  line_.write = writeLine;
  line_.wait = waitForLine;
  line_.context = this;
  port_uart_init(&uart_, &line_, starts);
  return uart_.transport;
}

size_t FairlockSerial::readLine(void *context, void *data, size_t size)
{
  Stream &stream = static_cast<FairlockSerial *>(context)->stream_;
  uint8_t *bytes = static_cast<uint8_t *>(data);
  size_t got = 0;
  while (got < size && stream.available() > 0)
    bytes[got++] = static_cast<uint8_t>(stream.read());
  return got;
}

/*
 * As much as there is room for. A Stream that cannot tell, such as SoftwareSerial, always says 0: it
 * takes one byte, and returns when that is sent.
 */
size_t FairlockSerial::writeLine(void *context, const void *data, size_t size)
{
  FairlockSerial *self = static_cast<FairlockSerial *>(context);
  int room = self->stream_.availableForWrite();
  if (room > 0) self->tells_room_ = true;
  else if (!self->tells_room_) room = 1;
  if (room <= 0) return 0;
  if (static_cast<size_t>(room) < size) size = static_cast<size_t>(room);
  return self->stream_.write(static_cast<const uint8_t *>(data), size);
}

/* Nothing tells of bytes or of room, so it looks again in a moment. */
void FairlockSerial::waitForLine(void *context, uint32_t)
{
  if (static_cast<FairlockSerial *>(context)->stream_.available() == 0) delay(1);
}
