/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stands in for a core of Arduino on a host: the names and macros of Arduino.h and of ArduinoCore-API
 * as they are documented, as far as the library and its sketches, or a clash with them, need them.
 */
#ifndef ARDUINO_H
#define ARDUINO_H

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define HIGH         0x1
#define LOW          0x0
#define INPUT        0x0
#define OUTPUT       0x1
#define INPUT_PULLUP 0x2
#define A0           14

#define PI         3.1415926535897932384626433832795
#define EULER      2.718281828459045235360287471352
#define SERIAL     0x0
#define DISPLAY    0x1
#define LSBFIRST   0
#define MSBFIRST   1
#define CHANGE     1
#define FALLING    2
#define RISING     3
#define DEFAULT    1
#define EXTERNAL   0
#define INTERNAL   3
#define DEC        10
#define HEX        16
#define OCT        8
#define BIN        2
#define DEPRECATED __attribute__((deprecated))

#define min(a, b)                   ((a) < (b) ? (a) : (b))
#define max(a, b)                   ((a) > (b) ? (a) : (b))
#define abs(x)                      ((x) > 0 ? (x) : -(x))
#define constrain(x, low, high)     ((x) < (low) ? (low) : ((x) > (high) ? (high) : (x)))
#define round(x)                    ((x) >= 0 ? (long)((x) + 0.5) : (long)((x)-0.5))
#define radians(x)                  ((x)*PI / 180)
#define degrees(x)                  ((x)*180 / PI)
#define sq(x)                       ((x) * (x))
#define interrupts()                ((void)0)
#define noInterrupts()              ((void)0)
#define lowByte(w)                  ((uint8_t)((w)&0xff))
#define highByte(w)                 ((uint8_t)((w) >> 8))
#define bit(b)                      (1UL << (b))
#define bitRead(value, b)           (((value) >> (b)) & 0x01)
#define bitSet(value, b)            ((value) |= bit(b))
#define bitClear(value, b)          ((value) &= ~bit(b))
#define bitToggle(value, b)         ((value) ^= bit(b))
#define bitWrite(value, b, is)      ((is) ? bitSet(value, b) : bitClear(value, b))
#define clockCyclesPerMicrosecond() 16
#define word(...)                   makeWord(__VA_ARGS__)
#define B0                          0
#define B1                          1
#define B00000000                   0
#define PROGMEM
#define PSTR(text) (text)
#define F(text)    (reinterpret_cast<const __FlashStringHelper *>(PSTR(text)))

typedef uint8_t byte;
typedef bool boolean;

extern "C" {
unsigned long millis(void);
unsigned long micros(void);
void delay(unsigned long ms);
void yield(void);
void pinMode(uint8_t pin, uint8_t mode);
void digitalWrite(uint8_t pin, uint8_t value);
int digitalRead(uint8_t pin);
int analogRead(uint8_t pin);
}

/* for tests: how often millis() was called */
extern unsigned long millis_calls;

void setup();
void loop();

class __FlashStringHelper;

namespace arduino
{
class Print;

/* What can be printed. */
class Printable
{
public:
  virtual ~Printable() = default;
  virtual size_t printTo(Print &to) const = 0;
};

/* What can be printed to. */
class Print
{
public:
  virtual ~Print() = default;
  virtual size_t write(uint8_t) = 0;
  virtual size_t write(const uint8_t *data, size_t size);
  virtual int availableForWrite()
  {
    return 0;
  }
  virtual void flush()
  {
  }
  size_t print(const __FlashStringHelper *text);
  size_t print(const char *text);
  size_t print(char);
  size_t print(int value, int base = DEC);
  size_t print(unsigned int value, int base = DEC);
  size_t print(long value, int base = DEC);
  size_t print(unsigned long value, int base = DEC);
  size_t print(const Printable &what);
  template <class T> size_t println(const T &what)
  {
    size_t size = print(what);
    return size + println();
  }
  size_t println();
  int getWriteError()
  {
    return write_error_;
  }
  void clearWriteError()
  {
    setWriteError(0);
  }

protected:
  void setWriteError(int error = 1)
  {
    write_error_ = error;
  }

private:
  int write_error_ = 0;
};

/* What can be read, too. */
class Stream : public Print
{
public:
  virtual int available() = 0;
  virtual int read() = 0;
  virtual int peek() = 0;
};

/* An address of IPv4. */
class IPAddress : public Printable
{
public:
  IPAddress() : bytes_{0, 0, 0, 0}
  {
  }
  IPAddress(uint8_t a, uint8_t b, uint8_t c, uint8_t d) : bytes_{a, b, c, d}
  {
  }
  uint8_t operator[](int index) const
  {
    return bytes_[index];
  }
  size_t printTo(Print &to) const override;

private:
  uint8_t bytes_[4];
};

/* The console. */
class HardwareSerial : public Stream
{
public:
  void begin(unsigned long)
  {
  }
  int available() override
  {
    return 0;
  }
  int read() override
  {
    return -1;
  }
  int peek() override
  {
    return -1;
  }
  using Print::write;
  size_t write(uint8_t) override;
};
} // namespace arduino

using arduino::HardwareSerial;
using arduino::IPAddress;
using arduino::Print;
using arduino::Printable;
using arduino::Stream;

extern HardwareSerial Serial, Serial1;

#endif
