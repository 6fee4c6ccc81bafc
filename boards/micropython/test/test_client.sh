#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The module for MicroPython as its users call it (client.py), and its page.
# shellcheck source=tests/support/lib.sh disable=SC2154,SC1091,SC2317
set -u
. tests/support/lib.sh
run=$build/micropython/run

test_client() {
  "$run" boards/micropython/test/client.py "$port" >"$dir/out" 2>&1 || fail "$(cat "$dir/out")"
}

# The example, with this server for the page's.
test_page() {
  awk -v want=python -f tests/release/pages.awk boards/micropython/README.md |
    sed "s/\"192.0.2.7\"/\"127.0.0.1\", $port/" >"$dir/page.py"
  grep -q "127.0.0.1" "$dir/page.py" || fail "the page has no example"
  expect 0 timeout 60 "$run" "$dir/page.py"
  printed 'held, fencing token '
  [ "$(redis exists door:7)" = 0 ] || fail "it was not released"
}

# The same list in all builds.
test_sources() {
  for name in $(sed -n '/^WASM_SOURCES/,/\.c,/p' boards/core/rules.mk | tr ' ,)' '\n' | grep -x '[a-z]*'); do
    [ -e "lock/$name.c" ] || continue
    for file in micropython.mk micropython.cmake; do
      grep -qw "$name" "boards/micropython/module/$file" || fail "$file lacks $name"
    done
  done
}

# By CMake, as the ports for ESP32 and RP2 take it: a stand-in for what they do with it.
test_cmake() {
  source=$build/micropython/source
  mkdir "$dir/cmake"
  cat >"$dir/cmake/CMakeLists.txt" <<END
cmake_minimum_required(VERSION 3.13)
project(port C)
include($source/py/usermod.cmake)
add_library(port OBJECT \${MICROPY_SOURCE_USERMOD})
target_include_directories(port PRIVATE $source $source/ports/unix $source/ports/unix/variants/standard $build/micropython/port)
target_link_libraries(port PRIVATE usermod)
END
  expect 0 cmake -S "$dir/cmake" -B "$dir/cmake/build" "-DUSER_C_MODULES=$(pwd)/boards/micropython/module/micropython.cmake"
  expect 0 cmake --build "$dir/cmake/build"
  [ "$(find "$dir/cmake/build" -name '*.o' | wc -l)" -ge 18 ] || fail "not all was compiled"
}

run_tests client page sources cmake
