#!/bin/sh
# The library as programs link it: all of it can be used from C++, it takes no names but its own,
# and it can become a part of a shared object.
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
  [ ! -e "$build/include/fairlock/port_openssl.h" ] || tls="-lssl -lcrypto"
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
  for header in "$build"/include/fairlock/*.h; do echo "#include <fairlock/${header##*/}>"; done >"$dir/headers.c"
  expect 0 gcc -std=c11 -I"$build/include" -aux-info "$dir/declared" -c -o "$dir/headers.o" "$dir/headers.c"
  grep -F "/* $build/include/fairlock/" "$dir/declared" | sed 's/^[^*]*\*[^*]*\*\/ *//; s/ (.*//; s/.*[ *]//' | sort -u
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

# Whoever reads a call of a function that no public header declares knows which file to open.
test_private_functions_have_the_name_of_their_file() {
  declared >"$dir/names"
  nm -A -g --defined-only "$build/liblock.a" | sed -n 's/.*:\([a-z_0-9]*\)\.o:.* T \(fairlock_\)/\1 \2/p' >"$dir/defined"
  grep -q '^handle fairlock_' "$dir/defined" || fail "no functions"
  others=$(awk 'FNR == NR { public[$1]; next }
    !($2 in public) && index($2, "fairlock_" ($1 == "texts" ? "script" : $1) "_") != 1 { print $1 ".c:" $2 }' \
    "$dir/names" "$dir/defined" | tr '\n' ' ')
  [ -z "$others" ] || fail "without the name of their file: $others"
}

# python_with_headers: the first Python that has them
python_with_headers() {
  for python in python3 /usr/bin/python3; do
    headers=$($python -c 'import sysconfig; print(sysconfig.get_path("include"))')
    [ ! -e "$headers/Python.h" ] || return 0
  done
  fail "no Python has its headers"
}

# module OPTION...: one of Python's. -z text: nothing in its code is changed when it is loaded.
module() {
  expect 0 cc -shared -fPIC -Wall -Wextra -Werror -I"$build/include" -I"$headers" -o "$dir/doors.so" tests/portable/doors.c \
    -L"$build" -llock -pthread -Wl,-z,text "$@"
}

# With two threads that take turns over one client. It may show what it has of the library, or not.
test_in_a_shared_object() {
  python_with_headers
  module
  module -Wl,--exclude-libs,ALL
  nm -D --defined-only "$dir/doors.so" | awk '{ print $NF }' >"$dir/symbols"
  [ "$(cat "$dir/symbols")" = PyInit_doors ] || fail "it shows $(tr '\n' ' ' <"$dir/symbols")"
  cat >"$dir/turns.py" <<'EOF'
import sys, threading
import doors
doors.open(sys.argv[1])
tokens = [], []
def take(tokens):
    for turn in range(100):
        tokens.append(doors.turn())
threads = [threading.Thread(target=take, args=[list]) for list in tokens]
for thread in threads: thread.start()
for thread in threads: thread.join()
assert all(list == sorted(list) for list in tokens)
print(len(set(tokens[0] + tokens[1])), "turns", max(tokens[0] + tokens[1]))
EOF
  PYTHONPATH=$dir expect 0 timeout 60 $python "$dir/turns.py" "$port"
  printed "200 turns $(redis hget 'fairlock:{door}' token)"
}

[ $# -eq 0 ] || run_tests "$@"
run_tests used_from_cxx_with_gcc used_from_cxx_with_clang all_functions_are_used_from_cxx symbols_have_a_prefix \
  private_functions_have_the_name_of_their_file \
  in_a_shared_object
