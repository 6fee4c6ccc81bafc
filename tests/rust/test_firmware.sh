#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The crate without std on a Cortex-M3 in the simulator, whose serial line is a connection to a real server.
# It waits in one queue with a program in C and a service in Rust.
# shellcheck source=tests/support/lib.sh disable=SC2154,SC1091,SC2317
set -u
. tests/support/lib.sh
image=$build/rust/firmware/thumbv7m-none-eabi/release/fairlock-firmware
driver=$build/rust/target/debug/examples/driver

board() {
  exec qemu-system-arm -M mps2-an385 -display none -monitor none -serial stdio \
    -serial "tcp:127.0.0.1:$port,nodelay=on" -semihosting-config enable=on,target=native -kernel "$image"
}

# service FILE...: what a driver of the service is told
service() {
  printf '%s\n' 'acquire door:7 600000 0' 'release door:7' | "$driver" 127.0.0.1 "$port" 5000 30000
}

token_of() {
  sed -n "s/^held \([0-9]*\).*/\1/p" "$dir/$1"
}

test_in_one_queue_with_c_and_a_service() {
  run door:7 -- sh -c "until [ -e '$dir/enough' ]; do sleep 0.05; done" &
  eventually held door:7
  board >"$dir/board" &
  board=$!
  eventually waits 1 door:7
  run -w 600 door:7 -- sh -c 'echo "held $FAIRLOCK_TOKEN"' >"$dir/c" &
  c=$!
  eventually waits 2 door:7
  service >"$dir/service" &
  service=$!
  eventually waits 3 door:7
  board >"$dir/last" &
  last=$!
  eventually waits 4 door:7
  touch "$dir/enough"
  for process in $board $c $service $last; do ends 0 "$process"; done
  first=0
  for who in board c service last; do
    token=$(token_of $who)
    [ -n "$token" ] || fail "$who has not held: $(cat "$dir/$who")"
    [ "$token" -gt "$first" ] || fail "$who was served too early: $token after $first"
    first=$token
  done
  grep -qx released "$dir/board" || fail "$(cat "$dir/board")"
  eventually unheld door:7
}

# One that stands still, as in a debugger, is passed over by the one behind it.
test_one_that_stands_still_is_passed_over() {
  run door:7 -- sh -c "until [ -e '$dir/enough' ]; do sleep 0.05; done" &
  eventually held door:7
  board >"$dir/board" &
  board=$!
  ends_with_us $board
  eventually waits 1 door:7
  kill -STOP $board
  service >"$dir/service" &
  service=$!
  eventually waits 2 door:7
  touch "$dir/enough"
  ends 0 $service
  [ -n "$(token_of service)" ] || fail "$(cat "$dir/service")"
  kill -CONT $board
  ends 0 $board
  [ "$(token_of board)" -gt "$(token_of service)" ] || fail "$(cat "$dir/board")"
}

run_tests in_one_queue_with_c_and_a_service one_that_stands_still_is_passed_over
