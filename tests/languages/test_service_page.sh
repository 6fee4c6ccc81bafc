#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The program of boards/service/README.md, as its reader builds it, and the sizes that it names.
# shellcheck source=tests/support/lib.sh disable=SC2154,SC1091,SC2317
set -u
. tests/support/lib.sh

test_program() {
  awk -v want=c -f tests/release/pages.awk boards/service/README.md >"$dir/program.c"
  expect 0 cc -std=c11 -Wall -Wextra -Werror -Iboards/service -o "$dir/program" "$dir/program.c" \
    "$build/service/libfls.a" "$build/liblock.a" -pthread
  expect 0 "$dir/program" "redis://127.0.0.1:$port"
  printed 'held, fencing token '
  [ "$(redis exists door:7)" = 0 ] || fail "it is still held"
  expect 1 "$dir/program" "redis://"
  said 'it names no host'
}

# Each part that make size-service prints. Another compiler has others, so they may differ by a fifth.
test_sizes() {
  [ "$(uname -m)" = x86_64 ] || return # the page is about that
  sh boards/service/size.sh "$build" ar >"$dir/out"
  printed "the service itself"
  sed -E 's/ +([0-9]+)$/|\1/' <"$dir/out" >"$dir/printed"
  [ "$(wc -l <"$dir/printed")" -ge 7 ] || fail "it prints $(cat "$dir/printed")"
  while IFS='|' read -r part bytes; do
    named=$(tr -d '`' <boards/service/README.md | sed -n "s/^| $part | \([0-9]*\) |\$/\1/p")
    [ -n "$named" ] || fail "the page does not name: $part"
    { [ $((bytes * 10)) -le $((named * 12)) ] && [ $((bytes * 10)) -ge $((named * 8)) ]; } || fail "$part: $bytes, on the page $named"
  done <"$dir/printed"
}

[ $# -eq 0 ] || run_tests "$@"
run_tests program sizes
