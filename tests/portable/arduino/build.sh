# SPDX-License-Identifier: Apache-2.0
# What the suites of the Arduino library share: how they build it on the host, from its package alone,
# with stand-ins for ArduinoCore-API's classes. After lib.sh.
# shellcheck shell=sh disable=SC2154,SC2086
package=${package:-$build/arduino/Fairlock}
core=tests/portable/arduino/core
strict="-Wall -Wextra -Wpedantic -Wconversion -Wshadow -Werror"

# c_of COMPILER FLAG...: compiles the package's C files into $dir/c
c_of() {
  mkdir -p "$dir/c"
  for file in "$package"/src/fairlock/*.c; do
    object=$(basename "$file" .c).o
    expect 0 "$@" -std=gnu11 -Wall -Wextra -Werror -c -o "$dir/c/$object" "$file"
  done
}

# program NAME SOURCE COMPILER FLAG...: with the stand-ins and the C files, as C++11
program() {
  name=$1 source=$2
  shift 2
  expect 0 "$@" -std=c++11 $strict -I"$core" -I"$package/src" -include Arduino.h -o "$dir/$name" -x c++ "$source" \
    "$core/core.cpp" "$package"/src/*.cpp $board -x none "$dir"/c/*.o
}
