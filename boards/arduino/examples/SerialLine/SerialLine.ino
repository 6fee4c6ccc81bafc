/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A board without a network: its second serial line, Serial1, goes to a gateway that runs uart-bridge.
 * FairlockSerial.h says how. For a Mega 2560, or any other AVR with two serial lines.
 *
 * On the console (Serial), type a to ask for the lock, and r to release it.
 */
#include <avr/sleep.h>
#include <EEPROM.h>
#include <Fairlock.h>
#include <FairlockSerial.h>

FairlockSerial gateway(Serial1);
FairlockClient locks;
FairlockMutex door(locks, "door:7");

/* Of the board, in EEPROM: each start is told from the one before. */
uint32_t countStarts()
{
  uint32_t starts;
  EEPROM.get(0, starts);
  starts++;
  EEPROM.put(0, starts);
  return starts;
}

void granted(FairlockHandle &lock)
{
  Serial.print(F("held, token "));
  lock.printToken(Serial);
  Serial.println();
}

void failed(FairlockHandle &lock)
{
  Serial.print(F("no lock: "));
  Serial.println(lock.statusText());
}

void lost(FairlockHandle &)
{
  Serial.println(F("lost the lock"));
}

void release()
{
  Serial.println(F("releasing"));
  bool released = door.release();
  Serial.println(released ? F("released") : F("not released"));
}

void setup()
{
  Serial.begin(115200);
  Serial1.begin(38400);
  door.onGranted(granted);
  door.onFailed(failed);
  door.onLost(lost);
  locks.config.client_id = "mega";
  locks.config.response_ms = 6000; /* a server that has restarted is sent a script of 4.3 KB: two seconds */
  bool begun = locks.begin(gateway.transport(countStarts()));
  Serial.println(begun ? F("ready") : F("not ready"));
}

/* An AVR in this mode wakes with each byte, and with each tick of millis(), which goes on. */
void sleepFor(uint32_t ms)
{
  unsigned long began = millis();
  set_sleep_mode(SLEEP_MODE_IDLE);
  while (!Serial.available() && !Serial1.available() && millis() - began < ms)
    sleep_mode();
}

void loop()
{
  int key = Serial.read();
  if (key == 'a' && door.startAcquire()) Serial.println(F("waiting"));
  if (key == 'r') release();
  sleepFor(locks.poll());
}
