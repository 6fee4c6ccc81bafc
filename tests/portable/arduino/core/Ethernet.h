/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stands in for Arduino's Ethernet library: connections are those of the host, to 127.0.0.1 and the
 * port in the environment's SERVER_PORT, whatever server the sketch names; without it, to where it
 * says. For tests, calls can take as long as those of a shield do.
 */
#ifndef ETHERNET_H
#define ETHERNET_H

#include "Client.h"

/* A connection over a socket of the host. */
class EthernetClient : public Client
{
public:
  ~EthernetClient() override;
  int connect(IPAddress address, uint16_t port) override;
  int connect(const char *host, uint16_t port) override;
  size_t write(uint8_t) override;
  size_t write(const uint8_t *data, size_t size) override;
  int availableForWrite() override;
  int available() override;
  int read() override;
  int read(uint8_t *data, size_t size) override;
  int peek() override;
  void flush() override
  {
  }
  void stop() override;
  uint8_t connected() override;
  operator bool() override
  {
    return socket_ >= 0;
  }
  void setConnectionTimeout(uint16_t ms)
  {
    timeout_ms_ = ms;
  }

  /* for tests */
  unsigned long connect_takes_ms = 0; /* before it connects */
  unsigned long write_takes_ms = 0;
  bool tells_room = true; /* false: availableForWrite() is that of Print */
  bool refuses = false;   /* connect() fails */
  bool takes_nothing = false;
  size_t takes_at_most = 1000;
  unsigned connects = 0; /* calls of connect() */
  unsigned writes = 0;

private:
  int open(const char *address, uint16_t port);

  int socket_ = -1;
  uint16_t timeout_ms_ = 1000;
};

/* The shield. */
class EthernetClass
{
public:
  void begin(uint8_t *, IPAddress)
  {
  }
  void setRetransmissionTimeout(uint16_t)
  {
  }
  void setRetransmissionCount(uint8_t)
  {
  }
};

extern EthernetClass Ethernet;

#endif
