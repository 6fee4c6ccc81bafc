#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# fairlock.hpp: by each compiler as each standard, with and without exceptions and RTTI, against a
# server; and the example that uses it.
# shellcheck source=tests/support/lib.sh disable=SC2046,SC2086,SC2154,SC1091,SC2317
set -u
. tests/support/lib.sh
strict="-Wall -Wextra -Wpedantic -Wconversion -Wshadow -Werror"

# build_cxx PROGRAM SOURCE COMPILER OPTION...: with what is installed alone
build_cxx() {
  program=$1 source=$2
  shift 2
  tls=
  [ ! -e "$build/include/fairlock/port_openssl.h" ] || tls="-lssl -lcrypto"
  expect 0 "$@" $strict -I"$build/include" -o "$dir/$program" "$source" "$build/liblock.a" $tls -pthread
}

# use_by COMPILER
use_by() {
  for standard in 11 17 20; do
    build_cxx all tests/portable/cxx.cc "$1" -std=c++$standard
    expect 0 "$dir/all" $port
    build_cxx bare tests/portable/cxx.cc "$1" -std=c++$standard -fno-exceptions -fno-rtti
    expect 0 "$dir/bare" $port
    [ "$1" != g++ ] || {
      build_cxx undefined tests/portable/cxx.cc "$1" -std=c++$standard -fsanitize=undefined -fno-sanitize-recover=all
      expect 0 "$dir/undefined" $port
    }
    ! nm -C "$dir/bare" | grep -q 'typeinfo for fair\|__cxa_throw' || fail "it needs exceptions or RTTI"
  done
}

test_used_with_gcc() {
  use_by g++
}

test_used_with_clang() {
  use_by clang++
}

# Without exceptions and without a word from the program, lock() never comes back without the lock.
test_aborts_by_default() {
  cat >"$dir/aborts.cc" <<'END'
#include <fairlock/fairlock.hpp>
#include <fairlock/port_posix.h>

int main()
{
  static unsigned char received[256], sent[256];
  fairlock_config config = fairlock_config();
  config.receive_buffer = received;
  config.receive_size = sizeof received;
  config.send_buffer = sent;
  config.send_size = sizeof sent;
  port_posix socket;
  port_posix_tcp(&socket, "127.0.0.1", "1");
  fair::client client(config, socket.transport);
  fair::handle nameless(client, "");
  nameless.lock();
  return 0;
}
END
  build_cxx aborts "$dir/aborts.cc" g++ -std=c++11 -fno-exceptions
  expect 134 sh -c "ulimit -c 0; \"$dir/aborts\"; exit \$?"
  build_cxx aborts "$dir/aborts.cc" g++ -std=c++11
  expect 134 sh -c "ulimit -c 0; \"$dir/aborts\"; exit \$?"
  said 'an argument is out of its range'
}

test_example() {
  expect 0 "$build/examples/guard" $port door 5
  # each of the five holders twice
  [ "$(grep -c '^written$' "$dir/out")" -eq 10 ] && [ "$(wc -l <"$dir/out")" -eq 10 ] || fail "$(cat "$dir/out")"
}

[ $# -eq 0 ] || run_tests "$@"
run_tests used_with_gcc used_with_clang aborts_by_default example
