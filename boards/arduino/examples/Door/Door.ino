/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A door that only one of several boards may drive at a time. A button asks for it, and who presses
 * first is served first. loop() never waits for the lock; while the door moves, the lease is renewed
 * by poll(), and if the hold ends all the same, the motor stops in that moment.
 *
 * Pins: a button from 2 to ground, a motor's driver at 3. Change the addresses to yours.
 */
#include <SPI.h>
#include <Ethernet.h>
#include <Fairlock.h>

const int BUTTON = 2;
const int MOTOR = 3;
const unsigned long MOVE_MS = 2000;

byte mac[] = {0x02, 0x00, 0x00, 0x00, 0x00, 0x07};
const IPAddress address(192, 168, 1, 70);
const IPAddress server(192, 168, 1, 10);

EthernetClient net;
FairlockClient locks;
FairlockMutex door(locks, "door:7");

bool moving = false;
unsigned long movingSince;

void granted(FairlockHandle &lock)
{
  Serial.print(F("held, token "));
  lock.printToken(Serial);
  Serial.println();
  digitalWrite(MOTOR, HIGH);
  moving = true;
  movingSince = millis();
}

void failed(FairlockHandle &lock)
{
  Serial.print(F("no lock: "));
  Serial.println(lock.statusText());
}

/* Called inside of the library: only stop what moves. loop() does the rest. */
void lost(FairlockHandle &)
{
  digitalWrite(MOTOR, LOW);
}

void stopDoor()
{
  digitalWrite(MOTOR, LOW);
  moving = false;
  Serial.println(door.held() ? F("done") : F("lost the lock: stopped"));
  door.startRelease(); /* also after a loss */
}

void setup()
{
  pinMode(BUTTON, INPUT_PULLUP);
  pinMode(MOTOR, OUTPUT);
  Serial.begin(115200);
  Ethernet.begin(mac, address);

  /* the shield's calls block: 8 attempts of 200 ms and more by default, here 3 of 100 ms */
  Ethernet.setRetransmissionTimeout(100);
  Ethernet.setRetransmissionCount(3);
  net.setConnectionTimeout(2000);
  locks.blocksFor(3000);

  door.onGranted(granted);
  door.onFailed(failed);
  door.onLost(lost);
  locks.config.lease_ms = 20000;
  locks.config.client_id = "door-board";
  if (!locks.begin(net, server)) Serial.println(locks.statusText());
}

void loop()
{
  locks.poll();
  if (moving) {
    if (!door.held() || millis() - movingSince >= MOVE_MS) stopDoor();
  } else if (!door.pending() && digitalRead(BUTTON) == LOW) {
    if (door.startAcquire(60000)) Serial.println(F("waiting"));
  }
}
