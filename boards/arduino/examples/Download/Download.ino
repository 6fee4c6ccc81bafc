/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A fleet in which at most two boards download at a time, in the order in which they ask: so many as
 * the line, or the server, can bear. A board that loses its power while it downloads gives its place
 * up with its lease. Computers take part by `fairlock run --limit 2 firmware -- ...`.
 *
 * fetch() stands for your download. Change the addresses to yours.
 */
#include <SPI.h>
#include <Ethernet.h>
#include <Fairlock.h>

const uint16_t AT_MOST = 2; /* the same for all who share "firmware" */
const unsigned long EVERY_MS = 3600000UL;

byte mac[] = {0x02, 0x00, 0x00, 0x00, 0x00, 0x08};
const IPAddress address(192, 168, 1, 71);
const IPAddress server(192, 168, 1, 10);

EthernetClient net;
FairlockClient locks;
FairlockShared firmware(locks, "firmware", AT_MOST);

/* A piece of the download. Returns true when all has come. Here it takes a second in all. */
bool fetch(unsigned long since)
{
  delay(10);
  return millis() - since >= 1000;
}

/* False: our place was lost before the end, and another board may download in it. */
bool download()
{
  unsigned long began = millis();
  for (;;) {
    if (!firmware.held()) return false;
    if (fetch(began)) return true;
    locks.poll(); /* renews the lease */
  }
}

void setup()
{
  Serial.begin(115200);
  Ethernet.begin(mac, address);
  Ethernet.setRetransmissionTimeout(100); /* see README.md: how long its calls block */
  Ethernet.setRetransmissionCount(3);
  locks.config.lease_ms = 40000;
  if (!locks.begin(net, server)) Serial.println(locks.statusText());
}

void loop()
{
  Serial.println(F("waiting for a place"));
  FairlockHold place(firmware, FAIRLOCK_FOREVER);
  if (place) {
    Serial.println(F("downloading"));
    Serial.println(download() ? F("done") : F("lost the place: stopped"));
    place.release();
    delay(EVERY_MS);
  } else {
    Serial.println(firmware.statusText());
    delay(5000);
  }
}
