#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# fairlock run --max-hold: ends the command, and all that it has started, so long after the grant, and
# releases the lock when all of them have ended.
# shellcheck source=tests/support/lib.sh disable=SC2016,SC2046,SC2086,SC2089,SC2090,SC2154,SC1091,SC2317
set -u
. tests/support/lib.sh
side=4 # they sleep most of the time

# What notes its process in a file, and ignores SIGTERM: sh -c "$stubborn" FILE
stubborn='trap "" TERM; echo $$ >$0; while :; do sleep 0.05; done'
# The same, but SIGTERM is noted, and ends it with status 0 when $0.go is there: sh -c "$polite" FILE
polite='trap "echo term >>$0; until [ -e $0.go ]; do sleep 0.05; done; exit 0" TERM
  echo $$ >$0; while :; do sleep 0.05; done'
export stubborn

# The wait is no part of it: had it counted, nothing would have lived for so long.
test_from_the_grant() {
  run a -- sh -c 'until [ -e "$0" ]; do sleep 0.05; done' "$dir/go" &
  eventually held a
  run --max-hold 5 a -- sh -c 'sleep 1; echo lived >$0; exec sleep 600' "$dir/lived" 2>"$dir/err" &
  command=$!
  eventually waits 1 a
  sleep 5.5
  touch "$dir/go"
  ends 83 $command
  [ -s "$dir/lived" ] || fail "the wait counts"
  said 'a has been held for 5 s (--max-hold); ending the command'
  unheld a || fail "it is still held"
}

test_in_time() {
  expect 3 "$fairlock" run --max-hold 600 a -- sh -c 'exit 3'
  [ ! -s "$dir/err" ] || fail "$(cat "$dir/err")"
}

# A child in a session of its own, which ignores SIGTERM, after the command has gone.
test_descendants() {
  run --max-hold 1 --kill-after 1 a -- sh -c 'setsid sh -c "$stubborn" $0 & exec sleep 600' "$dir/child" &
  command=$!
  eventually test -s "$dir/child"
  ends 83 $command
  dead $(cat "$dir/child") || fail "the child runs on"
  unheld a || fail "it is still held"
}

test_descendants_waited_for() {
  run --max-hold 1 --wait-all a -- sh -c 'setsid sh -c "$stubborn" $0 & exit 5' "$dir/child" &
  command=$!
  eventually test -s "$dir/child"
  ends 83 $command
  dead $(cat "$dir/child") || fail "the child runs on"
}

# What the command leaves when it ends by itself goes on, as without --max-hold.
test_left() {
  expect 5 "$fairlock" run --max-hold 2 a -- sh -c 'setsid sh -c "$stubborn" $0 >$0.out 2>&1 &
    until [ -s $0 ]; do sleep 0.05; done; exit 5' "$dir/child"
  child=$(cat "$dir/child")
  ends_with_us $child
  sleep 3
  ! dead $child || fail "it was ended"
  unheld a || fail "it is still held"
}

# While the command cleans up, for longer than a lease, the lock stays held; its status does not count.
test_renewed_until_the_end() {
  run --max-hold 1 --lease 3 --kill-after 1 a -- sh -c "$stubborn" "$dir/it" &
  command=$!
  eventually test -s "$dir/it"
  token=$(redis hget 'fairlock:{a}' token)
  until dead $(cat "$dir/it"); do
    sleep 0.05
    dead $(cat "$dir/it") || [ "$(redis hget 'fairlock:{a}' token)$(redis hlen a)" = "${token}1" ] ||
      dead $(cat "$dir/it") || fail "it lived without the lock"
  done
  ends 83 $command
  run --max-hold 1 --lease 30 --kill-after 10 a -- sh -c "$polite" "$dir/got" &
  command=$!
  eventually grep -q term "$dir/got"
  held a || fail "it is not held while the command cleans up"
  touch "$dir/got.go"
  ends 83 $command
}

test_on_lost_kill() {
  run --max-hold 1 --on-lost kill a -- sh -c "$polite" "$dir/got" &
  ends 83 $!
  ! grep -q term "$dir/got" || fail "SIGTERM was sent"
}

# fairlock run is stopped when it is due: the agent has it ended, and releases; nobody is late.
test_stopped() {
  run --max-hold 2 a -- sh -c 'echo $$ >$0; exec sleep 600' "$dir/it" 2>"$dir/err" &
  command=$!
  eventually test -s "$dir/it"
  agent=$(agent_of $command)
  kill -STOP $command $(guard_of $command)
  eventually unheld a
  dead $(cat "$dir/it") || fail "released before it had ended"
  expect 0 "$fairlock" run -w 60 a true
  ! dead $agent || fail "the agent does not wait for fairlock run"
  kill -CONT $command
  ends 83 $command
  grep -q 'ending the command' "$dir/err" || fail "$(cat "$dir/err")"
}

# The same, and then it is killed: the agent does not stay.
test_stopped_and_killed() {
  run --max-hold 1 a -- sh -c 'echo $$ >$0; exec sleep 600' "$dir/it" &
  command=$!
  eventually test -s "$dir/it"
  agent=$(agent_of $command)
  kill -STOP $command
  eventually unheld a
  kill -KILL $command
  ends 137 $command
  eventually dead $agent
}

# fairlock run was stopped before the command began, and is continued when it is due.
test_ended_in_time_while_stopped() {
  run --max-hold 2 a -- sh -c 'echo $$ >$0; until [ -e $0.go ]; do sleep 0.05; done; exit 7' "$dir/it" &
  command=$!
  eventually test -s "$dir/it"
  kill -STOP $command
  touch "$dir/it.go"
  eventually unheld a
  kill -CONT $command
  ends 7 $command
}

test_lost_meanwhile() {
  run --max-hold 1 --lease 6 --kill-after 2 a -- sh -c "$stubborn" "$dir/it" 2>"$dir/err" &
  command=$!
  eventually grep -q 'ending the command' "$dir/err"
  redis del a >"$dir/out"
  ends 79 $command
  dead $(cat "$dir/it") || fail "it runs on"
}

test_command_line() {
  expect 64 "$fairlock" run --max-hold 0 a true
  expect 64 "$fairlock" run --max-hold 5 --at-least 5 a true
  said '--max-hold has to be longer than --at-least'
}

[ $# -eq 0 ] || run_tests "$@"
run_tests from_the_grant in_time descendants descendants_waited_for left renewed_until_the_end on_lost_kill stopped \
  stopped_and_killed ended_in_time_while_stopped lost_meanwhile command_line
