#!/bin/sh
# The library as programs link it: all of it can be used from C++, and it takes no names but its
# own.
# shellcheck source=tests/support/lib.sh disable=SC2046,SC2086,SC2154,SC1091,SC2317
set -u
. tests/support/lib.sh

# compile_cxx COMPILER OPTION...: tests/portable/all.cc, with the public headers alone
compile_cxx() {
  expect 0 "$@" -std=c++11 -Wall -Wextra -Wpedantic -Werror -I"$build/include" -c -o "$dir/all.o" tests/portable/all.cc
}

use_from_cxx() {
  compile_cxx "$1"
  tls=
  [ ! -e "$build/include/port_openssl.h" ] || tls="-lssl -lcrypto"
  expect 0 "$1" -o "$dir/all" "$dir/all.o" "$build/liblock.a" $tls -pthread
  expect 0 "$dir/all" "$port"
}

test_used_from_cxx_with_gcc() {
  use_from_cxx g++
}

test_used_from_cxx_with_clang() {
  use_from_cxx clang++
}

# What the headers declare, as the compiler sees it: "/* FILE:LINE:NC */ extern int NAME (...);"
declared() {
  for header in "$build"/include/*.h; do echo "#include \"$header\""; done >"$dir/headers.c"
  expect 0 gcc -std=c11 -I"$build/include" -aux-info "$dir/declared" -c -o "$dir/headers.o" "$dir/headers.c"
  grep -F "/* $build/include/" "$dir/declared" | sed 's/^[^*]*\*[^*]*\*\/ *//; s/ (.*//; s/.*[ *]//' | sort -u
}

test_all_functions_are_used_from_cxx() {
  compile_cxx g++ -O0
  declared >"$dir/names"
  grep -qx fairlock_acquire "$dir/names" && grep -qx resp_decode "$dir/names" || fail "no names: $(head -3 "$dir/declared")"
  nm -u "$dir/all.o" | awk '{ print $NF }' | sort -u >"$dir/used"
  unused=$(comm -23 "$dir/names" "$dir/used" | tr '\n' ' ')
  [ -z "$unused" ] || fail "tests/portable/all.cc does not use $unused"
}

# A program that defines a function of the same name as one inside the library would be linked with
# the wrong one.
test_symbols_have_a_prefix() {
  nm -g --defined-only "$build/liblock.a" | awk 'NF == 3 { print $3 }' | sort -u >"$dir/symbols"
  grep -qx fairlock_acquire "$dir/symbols" || fail "no symbols"
  others=$(grep -v -e '^fairlock_' -e '^resp_' -e '^port_' "$dir/symbols" | tr '\n' ' ')
  [ -z "$others" ] || fail "symbols without a prefix: $others"
}

[ $# -eq 0 ] || run_tests "$@"
run_tests used_from_cxx_with_gcc used_from_cxx_with_clang all_functions_are_used_from_cxx symbols_have_a_prefix
