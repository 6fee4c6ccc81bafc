/* SPDX-License-Identifier: Apache-2.0 */
/* Stands in for Arduino's EEPROM library: as much of it as a sketch needs that counts its starts. */
#ifndef EEPROM_H
#define EEPROM_H

#include <string.h>

class EEPROMClass
{
public:
  template <class T> T &get(int at, T &value)
  {
    memcpy(&value, bytes_ + at, sizeof value);
    return value;
  }
  template <class T> const T &put(int at, const T &value)
  {
    memcpy(bytes_ + at, &value, sizeof value);
    return value;
  }

private:
  unsigned char bytes_[64];
};

static EEPROMClass EEPROM;

#endif
