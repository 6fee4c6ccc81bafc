/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A board on a battery that sleeps between its turns. It wakes, waits in line for the radio channel,
 * say, sends what it has measured, releases, closes the connection, and sleeps again. Nothing is held
 * while it sleeps, so nobody waits for a sleeper.
 *
 * While it waits and holds, it rests between two calls of poll(): the network needs millis(), so that
 * is a delay(), in which many boards save power.
 *
 * deepSleep() is for you to fill in, with what your board has: LowPower, ESP.deepSleep() ... If its
 * millis() stands still meanwhile, say so by fairlockSlept(), or keep to this pattern, in which
 * nothing is held. Change the addresses to yours.
 */
#include <SPI.h>
#include <Ethernet.h>
#include <Fairlock.h>

const unsigned long SLEEP_MS = 600000UL;
const unsigned long WAIT_MS = 60000UL;

byte mac[] = {0x02, 0x00, 0x00, 0x00, 0x00, 0x09};
const IPAddress address(192, 168, 1, 72);
const IPAddress server(192, 168, 1, 10);

EthernetClient net;
FairlockClient locks;
FairlockMutex channel(locks, "channel:4");

void deepSleep(unsigned long ms)
{
  delay(ms);
}

/* A delay of up to ms, in which the client is serviced when it is due. */
void rest(unsigned long ms)
{
  unsigned long began = millis();
  unsigned long passed = 0;
  while (passed < ms) {
    unsigned long due = locks.poll();
    unsigned long left = ms - passed;
    if (due > 50) due = 50; /* what arrives wakes no shield's board: look now and then */
    delay(due < left ? due : left);
    passed = millis() - began;
  }
}

void sendMeasurements()
{
  for (int i = 0; i < 10 && channel.held(); i++) {
    Serial.println(analogRead(A0));
    rest(100);
  }
}

void setup()
{
  Serial.begin(115200);
  Ethernet.begin(mac, address);
  Ethernet.setRetransmissionTimeout(100); /* see README.md: how long its calls block */
  Ethernet.setRetransmissionCount(3);
}

void loop()
{
  if (locks.begin(net, server)) {
    if (channel.startAcquire(WAIT_MS)) {
      while (channel.pending())
        rest(50);
    }
    if (channel.held()) sendMeasurements();
    Serial.println(channel.statusText());
    channel.release();
    locks.end();
  }
  deepSleep(SLEEP_MS);
}
