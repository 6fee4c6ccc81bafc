#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The command as one static program, made with musl: `make STATIC=1`. And what any other system needs
# to compile it: POSIX, and no more.
# shellcheck source=tests/support/lib.sh disable=SC2154,SC1091,SC2317
set -u
. tests/support/lib.sh

# static_build: sets static, the program
static_build() {
  static=$top/static/fairlock
  expect 0 make -s STATIC=1 BUILD="$top/static"
}

test_needs_no_library() {
  static_build
  printed "fairlock: $(wc -c <"$static") bytes"
  readelf -d "$static" >"$dir/dynamic" 2>&1
  ! grep -q NEEDED "$dir/dynamic" || fail "it needs $(cat "$dir/dynamic")"
  ! readelf -l "$static" | grep -q INTERP || fail "it needs a dynamic linker"
}

# musl's compiler does not find Debian's OpenSSL, which is for another C library. Who has no other
# one is told, before anything is compiled, what does it.
test_tls() {
  expect 2 make -s STATIC=1 TLS=openssl BUILD="$dir/musl"
  said 'CC=gcc with libssl-dev'
  [ ! -e "$dir/musl/resp" ] || fail "it has compiled: $(find "$dir/musl")"
  expect 0 make -s STATIC=1 TLS=openssl BUILD="$dir/static" CC=gcc
  ! readelf -d "$dir/static/fairlock" | grep NEEDED >"$dir/out" || fail "it needs $(cat "$dir/out")"
  start_server
  expect 75 "$dir/static/fairlock" status --url "rediss://127.0.0.1:$port" a
}

# With names that are looked up, processes and threads: what another C library may do otherwise.
test_takes_turns() {
  static_build
  start_server
  url=redis://localhost:$port
  expect 0 "$static" run --url "$url" turns sh -c "$static status --url $url turns"
  printed turns
  "$static" run --url "$url" turns sh -c "until [ -e '$dir/end' ]; do sleep 0.05; done" &
  first=$!
  eventually held turns
  expect 1 "$static" run --url "$url" -n turns true
  "$static" run --url "$url" -w 60 turns true &
  next=$!
  eventually waits 1 turns
  touch "$dir/end"
  ends 0 $first
  ends 0 $next
  expect 3 "$static" run --url "$url" turns sh -c 'exit 3'
}

# Without what is Linux's, and without the extensions that -std=c11 hides and the sources ask for.
# MAP_ANONYMOUS is in POSIX since 2024; all systems had it before.
test_keeps_to_posix() {
  cp -R boards/fairlock port resp lock "$dir"
  for file in "$dir"/port/posix/*.c "$dir"/fairlock/*.c "$dir/fairlock/tls/none.c"; do
    sed -i '/^#define _DEFAULT_SOURCE/d' "$file"
    for compiler in cc musl-gcc; do
      expect 0 $compiler -std=c11 -Wall -Wextra -Wpedantic -Werror -D_POSIX_C_SOURCE=200809L -DFAIRLOCK_PLAIN_POSIX \
        -DMAP_ANONYMOUS=0 -I"$dir/resp" -I"$dir/port" -I"$dir/port/posix" -I"$dir/port/openssl" -I"$dir/lock" \
        -c -o "$dir/object.o" "$file"
    done
  done
}

[ $# -eq 0 ] || run_tests "$@"
run_tests needs_no_library tls takes_turns keeps_to_posix
