/* SPDX-License-Identifier: Apache-2.0 */
/* Stands in for ArduinoCore-API's Client. */
#ifndef CLIENT_H
#define CLIENT_H

#include "Arduino.h"

namespace arduino
{
/* A connection. */
class Client : public Stream
{
public:
  virtual int connect(IPAddress address, uint16_t port) = 0;
  virtual int connect(const char *host, uint16_t port) = 0;
  virtual size_t write(uint8_t) = 0;
  virtual size_t write(const uint8_t *data, size_t size) = 0;
  virtual int available() = 0;
  virtual int read() = 0;
  virtual int read(uint8_t *data, size_t size) = 0;
  virtual int peek() = 0;
  virtual void flush() = 0;
  virtual void stop() = 0;
  virtual uint8_t connected() = 0;
  virtual operator bool() = 0;
};
} // namespace arduino

using arduino::Client;

#endif
