/* SPDX-License-Identifier: Apache-2.0 */
/* What a sketch can have of the library without a network: for the sizes alone. */
#include <Fairlock.h>
#include <FairlockSerial.h>

FairlockSerial gateway(Serial1);
FairlockClient locks;
FairlockMutex door(locks, "door:7");
FairlockShared download(locks, "download", 2);

void lost(FairlockHandle &lock)
{
  Serial.println(lock.statusText());
}

void setup()
{
  Serial1.begin(38400);
  door.onGranted(lost);
  download.onLost(lost);
  locks.begin(gateway.transport(1));
  if (!locks.connect()) Serial.println(locks.errorText());
}

void loop()
{
  FairlockHold hold(door, 10000);
  if (hold) door.printToken(Serial);
  if (download.startAcquire()) locks.poll();
  else download.cancel();
  if (!download.startRelease()) locks.end();
}

