#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The class for Arduino against a real server, on stand-ins for ArduinoCore-API's classes: by g++ with
# sanitizers, and by clang++; scenes.cpp has what the board does, this what happens around it.
# shellcheck source=tests/support/lib.sh disable=SC2034,SC2046,SC2086,SC2154,SC1091,SC2317
set -u
. tests/support/lib.sh
. tests/portable/arduino/build.sh
board=
side=2

# both: the scenes by both compilers, as $dir/by_gcc and $dir/by_clang
both() {
  (dir=$scenes && mkdir "$dir" 2>/dev/null || exit 0
    c_of gcc -g -O1 -fsanitize=address,undefined -fno-sanitize-recover=all
    program by_gcc tests/portable/arduino/scenes.cpp g++ -g -O1 -fno-exceptions -fsanitize=address,undefined -fno-sanitize-recover=all
    c_of clang -Os
    program by_clang tests/portable/arduino/scenes.cpp clang++ -Os -fno-exceptions -fno-rtti) || exit 1
}

# play SCENE: by both, one after the other, with nothing left of what was before
play() {
  for program in by_gcc by_clang; do
    redis flushall >/dev/null
    expect 0 "$scenes/$program" "$1" $port
  done
}

# breaks COMMAND... -- SCENE: as often as the scene says "break", the command is carried out
breaks() {
  command=
  while [ "$1" != -- ]; do
    command="$command $1"
    shift
  done
  for program in by_gcc by_clang; do
    "$scenes/$program" "$2" $port >"$dir/$program" 2>"$dir/err" &
    scene=$!
    eventually grep -qx break "$dir/$program"
    $command >"$dir/broken" 2>&1 || fail "$command: $(cat "$dir/broken")"
    ends 0 $scene
  done
}

# The board and three hosts add to one number, and none is lost.
test_contends_with_the_command() {
  for program in by_gcc by_clang; do
    echo 0 >"$dir/number"
    "$scenes/$program" count $port "$dir/number" 30 2>"$dir/err" &
    device=$!
    hosts=
    for host in 1 2 3; do
      (for round in 1 2 3 4 5 6 7 8; do
        "$fairlock" run door -- sh -c 'n=$(cat "$1"); sleep 0.01; echo $((n + 1)) >"$1"' sh "$dir/number" || exit 1
      done) &
      hosts="$hosts $!"
    done
    ends 0 $device
    for host in $hosts; do ends 0 "$host"; done
    [ "$(cat "$dir/number")" = 54 ] || fail "$(cat "$dir/number") instead of 54"
  done
}

test_holds() {
  play holds
}

test_token() {
  play token
  awk '$1 != $2 || $1 < 1 || $3 != "door" { exit 1 }' "$dir/out" || fail "$(cat "$dir/out")"
}

test_callbacks() {
  play callbacks
}

test_begins_in_callbacks() {
  play from_callbacks
}

test_forced_release_is_a_loss() {
  breaks "$fairlock" break --yes door -- loss
}

test_reconnects() {
  breaks redis client kill skipme yes -- reconnects
}

test_waits_for_the_end_of_the_hold() {
  breaks redis client kill skipme yes -- waits_for_the_end
}

test_waits_for_the_end_in_a_call() {
  breaks redis client kill skipme yes -- waits_for_the_end_in_a_call
}

test_slow_connect() {
  breaks redis client kill skipme yes -- slow_connect
}

test_slow_write() {
  play slow_write
}

test_two_clients() {
  play two_clients
}

test_server_down_at_the_start() {
  play server_down
}

test_server_away() {
  breaks redis client kill skipme yes -- server_away
}

test_poor_client() {
  play poor_client
}

# While two of the board's clients share, a host that would be the third does not get in.
test_shares() {
  for program in by_gcc by_clang; do
    mkfifo "$dir/go"
    "$scenes/$program" shares $port <"$dir/go" >"$dir/$program" 2>"$dir/err" &
    scene=$!
    exec 9>"$dir/go"
    eventually grep -qx two "$dir/$program"
    expect 1 "$fairlock" run --limit 2 -w 0 places -- true
    echo >&9
    ends 0 $scene
    exec 9>&-
    rm "$dir/go"
    expect 0 "$fairlock" run --limit 2 -w 0 places -- true
  done
}

test_beginnings() {
  play beginnings
}

test_sleeps() {
  play sleeps
}

test_refused() {
  redis config set requirepass right >/dev/null
  play refused
}

scenes=${ARDUINO_SCENES:-$top/scenes}
export ARDUINO_SCENES="$scenes"
[ $# -gt 0 ] && [ -e "$scenes" ] || (dir=$top; both) || exit 1
[ $# -eq 0 ] || run_tests "$@"
run_tests contends_with_the_command holds token callbacks begins_in_callbacks forced_release_is_a_loss reconnects \
  waits_for_the_end_of_the_hold waits_for_the_end_in_a_call slow_connect slow_write two_clients server_down_at_the_start server_away \
  poor_client shares beginnings sleeps refused
