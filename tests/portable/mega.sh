#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Builds sketches for a Mega 2560 with Debian's core, as the IDE does, from the library's package:
#   sh tests/portable/mega.sh PACKAGE FOLDER SKETCH...
# In the folder, SKETCH.elf is what is uploaded, linked by -flto, as platform.txt says; SKETCH.map is of
# the same objects linked without, which tells from where each byte is. (Debian's core uses DECIMAL_DIG
# in C++, which Debian's compiler is too old to have.)
set -eu
package=$1 folder=$2
shift 2
arduino=/usr/share/arduino/hardware/arduino/avr
objects=$folder/objects
common="-c -g -Os -w -ffunction-sections -fdata-sections -flto -ffat-lto-objects -mmcu=atmega2560 -DF_CPU=16000000L
  -DDECIMAL_DIG=__DECIMAL_DIG__ -DARDUINO=10819 -DARDUINO_AVR_MEGA2560 -DARDUINO_ARCH_AVR
  -I$arduino/cores/arduino -I$arduino/variants/mega -I$arduino/libraries/EEPROM/src -I$package/src"

# compile FILE PART: into the part's folder of objects
compile() {
  object=$objects/$2/$(basename "$1").o
  case $1 in
    *.c) set -- avr-gcc -std=gnu11 "$1" ;;
    *.S) set -- avr-gcc -x assembler-with-cpp "$1" ;;
    *.ino) set -- avr-g++ -std=gnu++11 -fno-exceptions -fno-threadsafe-statics -include Arduino.h -x c++ "$1" ;;
    *) set -- avr-g++ -std=gnu++11 -fno-exceptions -fno-threadsafe-statics "$1" ;;
  esac
  # shellcheck disable=SC2086
  "$@" $common -o "$object"
}

rm -rf "$folder"
mkdir -p "$objects/core" "$objects/library" "$objects/sketch"
for file in "$arduino"/cores/arduino/*.c "$arduino"/cores/arduino/*.cpp "$arduino"/cores/arduino/*.S; do
  compile "$file" core
done
for file in "$package"/src/*.cpp "$package"/src/fairlock/*.c; do
  compile "$file" library
done
avr-gcc-ar rcs "$objects/core.a" "$objects"/core/*.o
for sketch; do
  out=$folder/$(basename "$sketch" .ino)
  compile "$sketch" sketch
  flags="-mmcu=atmega2560 -Os -w -Wl,--gc-sections $objects/sketch/$(basename "$sketch").o"
  # shellcheck disable=SC2086
  avr-gcc $flags -fno-lto -Wl,-Map="$out.map" -o "$out.plain" "$objects"/library/*.o "$objects/core.a" -lm
  # shellcheck disable=SC2086
  avr-gcc $flags -flto -fuse-linker-plugin -o "$out.elf" "$objects"/library/*.o "$objects/core.a" -lm
done
