#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The package for Arduino on a Mega 2560 without a network, whose second serial line goes to a
# gateway: what it takes of flash and RAM, and how it shares a lock with this host. The image is that of
# the example SerialLine, in a simulator (mega.c).
# shellcheck source=tests/support/lib.sh disable=SC2016,SC2154,SC1091,SC2317
set -u
. tests/support/lib.sh
exec 4>&1 # figures
mega=$build/arduino/mega

# data_of SKETCH: bytes of initialized data that come from the library, by the map
data_of() {
  sed -n '/^\.data /,/^\.bss/p' "$mega/$1.map" | sed -n 's/.* 0x[0-9a-f]* *\(0x[0-9a-f]*\) .*objects\/library\/.*/\1/p' | {
    sum=0
    while read -r size; do
      sum=$((sum + size))
    done
    echo $sum
  }
}

# An AVR copies what is initialized, constants included, from flash to its 8,192 bytes of RAM.
test_data_is_small() {
  for sketch in SerialLine mega; do
    data=$(data_of $sketch)
    avr-size "$mega/$sketch.elf" | awk -v name=$sketch -v data="$data" \
      'NR == 2 { print "# " name ": flash " $1 + $2 ", RAM " $2 + $3 " and the stack, in bytes; data of the library " data }' >&4
    [ "$data" -gt 400 ] || fail "the map has $data bytes of ours: is it read right?"
    [ "$data" -le 1000 ] || fail "$data bytes of data are copied to RAM: $(avr-nm -S --size-sort "$mega/$sketch.plain" | grep -i ' [dr] ')"
  done
}

# near SAID IS: within 2 %, by the compiler that the page names; Debian 13's keeps more in flash
near() {
  [ $(($1 * 100)) -ge $(($2 * 98)) ] && [ $(($1 * 100)) -le $(($2 * 102)) ]
}

test_page_says_how_large_it_is() {
  said=$(tr -d '\n,' <boards/arduino/README.md | sed -n 's/.*`SerialLine` takes \([0-9]*\) bytes of its 253952 of flash and without the *stack \([0-9]*\) of.*/\1 \2/p')
  is=$(avr-size "$mega/SerialLine.elf" | awk 'NR == 2 { print $1 + $2, $2 + $3 }')
  compiler=$(sed -n 's/.*(avr-gcc \([0-9.]*\).*/\1/p' boards/arduino/README.md)
  [ -n "$compiler" ] && [ -n "$said" ] || fail "the page does not say by which compiler it takes how much"
  [ "$(avr-gcc -dumpversion)" = "$compiler" ] || return 0 # which makes other sizes
  { near "${said% *}" "${is% *}" && near "${said#* }" "${is#* }"; } || fail "flash and RAM are $is, and the page says '$said'"
}

# start_board: sets board; what is written to fd 3 is typed at its console, and $dir/console is what
# it has printed there
start_board() {
  mkfifo "$dir/keys"
  "$mega/board" "$mega/SerialLine.elf" "$build/uart-bridge" 127.0.0.1 "$port" <"$dir/keys" >"$dir/console" 2>"$dir/simulator" &
  board=$!
  ends_with_us $board
  exec 3>"$dir/keys"
  eventually grep -q '^ready' "$dir/console"
}

type_key() {
  printf %s "$1" >&3
}

board_says() {
  tr -d '\r' <"$dir/console" | grep -qx "$1"
}

board_token() {
  tr -d '\r' <"$dir/console" | sed -n 's/^held, token //p' | tail -n 1
}

# host NAME: takes the lock in the background, notes its token in $dir/NAME, and holds it until
# $dir/NAME.end is there
host() {
  "$fairlock" run door:7 sh -c 'echo "$FAIRLOCK_TOKEN" >"$1.new" && mv "$1.new" "$1"; until [ -e "$1.end" ]; do sleep 0.05; done' - "$dir/$1" &
  ends_with_us $!
}

test_takes_turns_with_this_host() {
  start_board
  host first
  first=$!
  eventually test -e "$dir/first"
  type_key a
  eventually waits 1 door:7
  board_says waiting || fail "it does not say that it waits: $(cat "$dir/console")"
  ! board_says 'held.*' || fail "both hold: $(cat "$dir/console")"
  touch "$dir/first.end"
  eventually board_says 'held, token [0-9]*'
  ends 0 $first
  [ "$(board_token)" -gt "$(cat "$dir/first")" ] || fail "tokens: this host $(cat "$dir/first"), then the board $(board_token)"
  "$fairlock" status door:7 >"$dir/status"
  grep -q 'mega\.' "$dir/status" || fail "it does not hold: $(cat "$dir/status")"
  host second
  second=$!
  eventually waits 1 door:7
  [ ! -e "$dir/second" ] || fail "both hold: $(cat "$dir/console")"
  type_key r
  eventually test -e "$dir/second"
  eventually board_says released
  [ "$(cat "$dir/second")" -gt "$(board_token)" ] || fail "tokens: the board $(board_token), then this host $(cat "$dir/second")"
  touch "$dir/second.end"
  ends 0 $second
  echo "# tokens: this host $(cat "$dir/first"), the board $(board_token), this host $(cat "$dir/second")" >&4
}

# A lease of 30 s has become shorter by a quarter: then it is renewed.
renewed() {
  [ "$(redis pttl door:7)" -gt 25000 ]
}

test_renews_on_the_next_connection() {
  start_board
  type_key a
  eventually board_says 'held, token [0-9]*'
  [ "$(redis client kill skipme yes)" -ge 1 ] || fail "the board has no connection"
  eventually lasts 22500 door:7
  eventually renewed
  type_key r
  eventually board_says released
  ! board_says 'lost.*' || fail "$(cat "$dir/console")"
}

[ $# -eq 0 ] || run_tests "$@"
run_tests data_is_small page_says_how_large_it_is takes_turns_with_this_host renews_on_the_next_connection
