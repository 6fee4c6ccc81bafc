/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A serial line in place of a network: at its other end a gateway, which has one, carries the bytes to
 * the server and back. That is uart-bridge of this library's repository (make uart-bridge), on Linux:
 *
 *     stty -F /dev/ttyUSB0 38400 raw -echo
 *     uart-bridge 192.0.2.7 6379 </dev/ttyUSB0 >/dev/ttyUSB0
 *
 *     FairlockSerial gateway(Serial1);
 *     FairlockClient locks;
 *
 *     void setup() { Serial1.begin(38400); locks.begin(gateway.transport(starts)); }
 *
 * No call of a serial line blocks for long, so neither does poll(): leases are renewed while the
 * client connects, and blocksFor() says nothing here.
 *
 * Lost bytes. Serial1 keeps 64 bytes on an AVR, and a handover sends the board some 150 at once, so
 * loop() has to come back to poll() while 64 bytes arrive: within 16 ms at 38400 baud, 66 ms at 9600.
 * Or build with -DSERIAL_RX_BUFFER_SIZE=256, and it is four times as long. If bytes are lost, the
 * client connects anew, and asks again: that costs time, and no hold, while the lease lasts. A byte
 * that is changed on a noisy line may go unnoticed.
 */
#ifndef FAIRLOCK_ARDUINO_SERIAL_H
#define FAIRLOCK_ARDUINO_SERIAL_H

#include <Arduino.h>

#include "fairlock/port_uart.h"

class FairlockSerial
{
public:
  /* line: Serial1 or any other Stream, which nothing else may use. Call its begin() before ours. */
  explicit FairlockSerial(Stream &line);

  FairlockSerial(const FairlockSerial &) = delete;
  FairlockSerial &operator=(const FairlockSerial &) = delete;

  /*
   * For FairlockClient::begin(). starts: a number that differs after each start of the board, so that
   * it knows the answers of the gateway to what it has asked before a reset: a count in EEPROM, as in
   * the example SerialLine; a clock that goes on, or random bits. Not millis(), nor the chip's number.
   */
  const struct port_transport &transport(uint32_t starts);

private:
  static size_t readLine(void *context, void *data, size_t size);
  static size_t writeLine(void *context, const void *data, size_t size);
  static void waitForLine(void *context, uint32_t timeout_ms);

  Stream &stream_;
  bool tells_room_; /* availableForWrite() of the Stream works */
  struct port_uart_line line_;
  struct port_uart uart_;
};

#endif
