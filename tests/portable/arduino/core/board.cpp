/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A board for a sketch on a host: a button at pin 2 that is pressed for as long as the file exists that
 * the environment's BUTTON names, and pins that say so when they change.
 */
#include "Arduino.h"

#include <stdio.h>
#include <unistd.h>

extern "C" void pinMode(uint8_t, uint8_t)
{
}

extern "C" void digitalWrite(uint8_t pin, uint8_t value)
{
  static uint8_t pins[32];
  if (pin >= sizeof pins || pins[pin] == value) return;
  pins[pin] = value;
  (void)printf("pin %d %s\n", pin, value == HIGH ? "high" : "low");
  (void)fflush(stdout);
}

extern "C" int digitalRead(uint8_t)
{
  const char *button = getenv("BUTTON");
  return button != nullptr && access(button, F_OK) == 0 ? LOW : HIGH;
}

extern "C" int analogRead(uint8_t)
{
  return 512;
}

int main()
{
  setup();
  for (;;) {
    loop();
    delay(1);
  }
}
