#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# fairlock hold, acquire and release: a script holds the lock between two commands, and no longer than
# somebody who can die, or a time, lets it.
# shellcheck source=tests/support/lib.sh disable=SC2016,SC2046,SC2086,SC2154,SC1091,SC2317
set -u
. tests/support/lib.sh
side=4 # they sleep most of the time
export fairlock

# script TEXT ARGUMENT...: by bash, which has <( )
script() {
  text=$1
  shift
  bash -c "$text" "$dir" "$@"
}

# The same, meant for the background: its process is $!.
shell() {
  text=$1
  shift
  exec env --default-signal bash -c "$text" "$dir" "$@"
}

test_hold() {
  expect 0 script 'exec 9< <("$fairlock" hold a); read -r token id <&9 || exit 9
    echo "$token $id"; "$fairlock" status a; redis-cli -p $1 hget "fairlock:{a}" token; exec 9<&-' $port
  token=$(sed -n '$p' "$dir/out")
  id=$(sed -n '1s/.* //p' "$dir/out")
  [ "$(head -n 1 "$dir/out")" = "$token $id" ] || fail "$(cat "$dir/out")"
  grep -q "held by $id " "$dir/out" || fail "$(cat "$dir/out")"
  eventually unheld a
}

test_several() {
  expect 0 script 'exec 9< <("$fairlock" hold --and b a); read -r token id other another <&9 && echo "$token $id $other $another"
    redis-cli -p $1 hkeys a; redis-cli -p $1 hkeys b' $port
  [ "$(head -n 1 "$dir/out" | cut -d ' ' -f 2,4)" = "$(sed -n 2p "$dir/out") $(sed -n 3p "$dir/out")" ] || fail "$(cat "$dir/out")"
  eventually unheld a
  eventually unheld b
}

# The shell is killed, and holds nothing more; but a child that has inherited the descriptor does.
test_shell_is_killed() {
  shell 'exec 9< <("$fairlock" hold a); read -r token <&9; echo >$0/held; sleep 600 9<&- & exec sleep 600' &
  shell=$!
  eventually test -e "$dir/held"
  kill -KILL $shell
  ends 137 $shell
  eventually unheld a
  shell 'exec 9< <("$fairlock" hold a); read -r token <&9; sleep 600 & echo $! >$0/child; exec 9<&-; wait' &
  shell=$!
  eventually test -s "$dir/child"
  kill -KILL $shell
  ends 137 $shell
  sleep 0.5
  held a || fail "the child has the descriptor"
  kill $(cat "$dir/child")
  eventually unheld a
}

# What the reader sees of a lock that is lost is the end.
test_lost() {
  for how in broken killed; do
    rm -f "$dir/held"
    script 'exec 9< <("$fairlock" hold --lease 3 a); hold=$!; read -r token <&9; echo $hold >$0/held
      read -r more <&9 && exit 1; wait $hold; exit $?' 2>"$dir/err" &
    shell=$!
    eventually test -s "$dir/held"
    if [ $how = broken ]; then redis del a >"$dir/out"; else kill -KILL $(agent_of $(cat "$dir/held")); fi
    ends 79 $shell
    eventually unheld a
  done
}

test_not_acquired() {
  run a sleep 600 &
  eventually held a
  for words in '-n' '-w 0.2'; do
    expect 1 script 'exec 9< <("$fairlock" hold '"$words"' a); hold=$!; read -r token <&9 && exit 9; wait $hold'
    said 'a is held by '
  done
  expect 7 script 'exec 9< <("$fairlock" hold -qnE 7 a); hold=$!; read -r token <&9 && exit 9; wait $hold'
  [ ! -s "$dir/err" ] || fail "$(cat "$dir/err")"
}

# Nobody reads any more while it waits: it leaves the queue.
test_reader_goes_while_it_waits() {
  run a sleep 600 &
  eventually held a
  shell 'exec 9< <("$fairlock" hold a); echo $! >$0/waiter; read -r token <&9' &
  shell=$!
  eventually waits 1 a
  waiter=$(cat "$dir/waiter")
  kill -KILL $shell
  ends 137 $shell
  eventually waits 0 a
  eventually dead $waiter
}

# Ctrl-C goes to the script's process group: the lock stays held until the script has cleaned up.
test_interrupt() {
  shell 'set -m; bash -c "$1" "$0" & echo $! >"$0/group"; wait $!; exit $?' '
    exec 9< <("$fairlock" hold a); read -r token <&9
    trap "echo >$0/trapped; until [ -e $0/go ]; do sleep 0.05; done; exit 3" INT
    echo >$0/held; while :; do sleep 0.05; done' &
  outer=$!
  eventually test -e "$dir/held"
  kill -INT -$(cat "$dir/group")
  eventually test -e "$dir/trapped"
  held a || fail "not held during the cleaning up"
  touch "$dir/go"
  ends 3 $outer
  eventually unheld a
}

# The leader of a process group cannot leave its session.
test_leader_of_a_group() {
  bash -c 'set -m; "$fairlock" hold a | { read -r token; echo "$token" >"$0/token"; until [ -e "$0/go" ]; do sleep 0.05; done; } &
    wait' "$dir" &
  eventually test -s "$dir/token"
  held a || fail "not held"
  touch "$dir/go"
  eventually unheld a
}

test_max_hold() {
  expect 83 script 'exec 9< <("$fairlock" hold --max-hold 1 a); hold=$!; read -r token <&9 || exit 9; read -r more <&9; wait $hold'
  said 'a has been held for 1 s'
}

# Only the script can tell when it may end: asking says so, and no more.
test_asked() {
  script 'exec 9< <("$fairlock" hold a 2>$0/said); read -r token <&9; echo >$0/held; until [ -e $0/go ]; do sleep 0.05; done' &
  shell=$!
  eventually test -e "$dir/held"
  expect 0 "$fairlock" break --ask --token $(redis hget 'fairlock:{a}' token) a
  eventually grep -q 'asked for by an operator' "$dir/said"
  held a || fail "it was released"
  touch "$dir/go"
  ends 0 $shell
}

# acquired OPTION...: sets token and id
acquired() {
  expect 0 "$fairlock" acquire --state "$dir/state" "$@" a
  read -r token id <"$dir/out"
  [ "$token" = "$(redis hget 'fairlock:{a}' token)" ] && [ "$id" = "$(redis hkeys a)" ] || fail "$(cat "$dir/out")"
}

test_acquire_and_release() {
  for words in "--pid $$" '--for 600' "--pid $$ --for 600"; do
    acquired $words
    expect 0 "$fairlock" release "$dir/state"
    [ ! -s "$dir/err" ] || fail "$(cat "$dir/err")"
    unheld a || fail "it is still held"
    [ ! -e "$dir/state" ] || fail "the socket is left"
    expect 66 "$fairlock" release "$dir/state"
  done
}

# A pipeline's step ends when nobody has its output any more.
test_keeps_no_output_open() {
  "$fairlock" acquire --for 600 --state "$dir/state" a 2>&1 | cat >"$dir/got"
  held a || fail "not held"
  expect 0 "$fairlock" release "$dir/state"
}

test_owner_ends() {
  sleep 600 &
  owner=$!
  acquired --pid $owner
  kill -KILL $owner
  ends 137 $owner
  eventually unheld a
  eventually released_too_late
}
released_too_late() {
  expect 79 "$fairlock" release "$dir/state"
  said 'was lost, or had ended, before'
}

test_time_ends() {
  acquired --for 1
  eventually unheld a
  eventually released_too_late
  acquired --for 600 # a socket at which nobody listens is replaced
  expect 66 "$fairlock" acquire --for 600 --state "$dir/state" b
  said 'cannot listen at'
  unheld b || fail "b is held"
  expect 0 "$fairlock" release "$dir/state"
}

test_broken() {
  acquired --for 600 --lease 3
  redis del a >"$dir/got"
  eventually released_too_late
}

# Only its lease is left when all of its processes are killed at once.
test_all_are_killed() {
  acquired --for 600 --lease 3
  holder=${id%.*.*}
  holder=${holder##*.}
  agent=$(agent_of $holder)
  guard=$(guard_of $holder)
  kill -KILL $holder $guard $agent
  eventually unheld a
  released_too_late
}

test_acquire_fails() {
  run a sleep 600 &
  eventually held a
  expect 1 "$fairlock" acquire --for 600 --state "$dir/state" -n a
  said 'a is held by '
  [ ! -e "$dir/state" ] || fail "the socket is left"
  expect 75 "$fairlock" acquire --for 600 --state "$dir/state" --url redis://127.0.0.1:1 -w 0.1 a
  expect 66 "$fairlock" release "$dir/state"
  # whoever waits is ended: nobody waits in the background
  "$fairlock" acquire --for 600 --state "$dir/state" a &
  waiter=$!
  eventually waits 1 a
  kill $waiter
  ends 143 $waiter
  eventually waits 0 a
}

test_command_line() {
  expect 64 "$fairlock" hold a
  said 'stdout has to be a pipe'
  expect 64 "$fairlock" hold a true
  said 'only one NAME'
  expect 64 "$fairlock" hold --max-hold 0 a
  expect 64 "$fairlock" hold -c true a
  expect 64 "$fairlock" run --for 5 a true
  expect 64 "$fairlock" acquire --for 5 a
  said '--state FILE is needed'
  expect 64 "$fairlock" acquire --state "$dir/state" a
  said '--pid N or --for SECONDS is needed'
  expect 64 "$fairlock" acquire --state "$dir/state" --pid 0 a
  expect 64 "$fairlock" acquire --state "$dir/state" --pid 999999999 a
  said 'there is no process 999999999'
  expect 66 "$fairlock" acquire --for 1 --state "$dir/none/state" a
  expect 66 "$fairlock" acquire --for 1 --state "$dir/$(printf '%0200d' 1)" a
  said 'cannot listen at'
  echo mine >"$dir/file"
  expect 66 "$fairlock" acquire --for 1 --state "$dir/file" a
  expect 66 "$fairlock" release "$dir/file"
  [ "$(cat "$dir/file")" = mine ] || fail "it was removed"
  expect 64 "$fairlock" release
  expect 64 "$fairlock" release a b
  for words in hold acquire release; do
    expect 0 "$fairlock" $words --help
    printed "usage: fairlock $words"
  done
}

[ $# -eq 0 ] || run_tests "$@"
run_tests hold several shell_is_killed lost not_acquired reader_goes_while_it_waits interrupt leader_of_a_group max_hold asked \
  acquire_and_release keeps_no_output_open owner_ends time_ends broken all_are_killed acquire_fails command_line
