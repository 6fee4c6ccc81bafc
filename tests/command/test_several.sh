#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# fairlock run --and: several locks at once, in one order for all, or none of them.
# shellcheck source=tests/support/lib.sh disable=SC2016,SC2046,SC2086,SC2154,SC1091,SC2317
set -u
. tests/support/lib.sh
side=4 # they sleep most of the time

# none_is_left NAME...: nobody holds them, or waits
none_is_left() {
  for name in "$@"; do
    unheld $name || fail "$name is still held"
    waits 0 $name || fail "somebody waits for $name"
  done
}

# holds NAME: another one holds it, until it is ended. Sets holder.
holds() {
  run "$1" sleep 600 &
  holder=$!
  eventually held "$1"
}

test_all() {
  expect 7 "$fairlock" run --and c --and b a -- sh -c 'echo "$FAIRLOCK_NAME $FAIRLOCK_TOKEN"; echo "$FAIRLOCK_TOKENS"
    echo "$FAIRLOCK_HOLDERS"; for name in a b c; do redis-cli -p $0 hkeys $name; done; exit 7' $port
  token() { redis hget "fairlock:{$1}" token; }
  [ "$(sed -n 1p "$dir/out")" = "a $(token a)" ] || fail "$(cat "$dir/out")"
  [ "$(sed -n 2p "$dir/out")" = "$(token a) $(token c) $(token b)" ] || fail "$(cat "$dir/out")"
  [ "$(sed -n 3p "$dir/out" | tr ' ' '\n' | sort)" = "$(sed -n '4,$p' "$dir/out" | sort)" ] || fail "$(cat "$dir/out")"
  [ "$(sed -n '4,$p' "$dir/out" | grep -c .)" = 3 ] || fail "$(cat "$dir/out")"
  none_is_left a b c
  expect 0 "$fairlock" run --verbose --and b a true
  for words in 'a + b is requested' 'a is acquired by ' 'b is acquired by ' 'a + b is released'; do said "$words"; done
}

# What runs under one lock finds its token under that name, too.
test_tokens_of_one() {
  expect 0 "$fairlock" run --and b a "$fairlock" run c sh -c 'echo "$FAIRLOCK_TOKEN|$FAIRLOCK_TOKENS"'
  token=$(redis hget 'fairlock:{c}' token)
  printed "$token|$token"
}

test_none() {
  for name in a b c; do
    holds $name
    owner=$(redis hkeys $name)
    for wait in -n '-w 0.2'; do
      expect 9 "$fairlock" run $wait -E 9 --and c --and a b touch "$dir/ran"
      said "fairlock: $name is held by $owner since "
      expect 1 "$fairlock" run $wait -q --and c --and a b touch "$dir/ran"
      [ ! -s "$dir/err" ] || fail "$(cat "$dir/err")"
    done
    [ "$("$fairlock" list | wc -l)" = 1 ] || fail "$("$fairlock" list)"
    waits 0 $name || fail "it still waits"
    kill $holder
    ends 143 $holder
  done
  [ ! -e "$dir/ran" ] || fail "it ran"
}

# -w is for all of them: of the second a twentieth of it is left.
test_the_whole_wait() {
  holds a
  first=$holder
  holds b
  began=$(now_ms)
  run -w 4 -q --and b a true &
  waiter=$!
  eventually waits 1 a
  sleep 3.6
  kill $first
  ends 1 $waiter
  took=$(($(now_ms) - began))
  [ $took -ge 4000 ] && [ $took -lt 7600 ] || fail "$took ms"
  unheld a || fail "it is still held"
}

# Each round would last for ever if they waited for each other.
test_opposite_orders() {
  turns() {
    for i in $(seq 100); do
      "$fairlock" run --and "$2" --and "$3" "$1" -- sh -c '[ ! -e "$0" ] && : >"$0" && rm "$0"' "$dir/inside" || echo "round $i: $?"
    done >"$dir/turns.$1" 2>&1
  }
  turns a b c &
  first=$!
  turns c b a &
  second=$!
  turns b a c &
  wait $first $second $!
  for turns in "$dir"/turns.*; do [ ! -s "$turns" ] || fail "$(cat "$turns")"; done
  none_is_left a b c
}

# waiting: a is held, and b waited for. Sets holder (of b) and waiter.
waiting() {
  holds b
  run "$@" --and b a -- sh -c 'echo $$ >$0; exec sleep 600' "$dir/it" 2>"$dir/err" &
  waiter=$!
  eventually waits 1 b
  held a || fail "a is not held"
}

test_signal_while_waiting() {
  for signal in INT TERM; do
    waiting --lease 20
    kill -$signal $waiter
    ends $((128 + $(number_of $signal))) $waiter
    none_is_left a
    waits 0 b || fail "it still waits"
    kill $holder
    ends 143 $holder
  done
}

test_killed_while_waiting() {
  waiting
  agent=$(agent_of $waiter)
  kill -KILL $waiter
  ends 137 $waiter
  eventually dead $agent
  unheld a || fail "it is still held"
  waits 0 b || fail "it still waits"
}

test_killed() {
  run --and b a -- sh -c 'echo $$ >$0; exec sleep 600' "$dir/it" &
  command=$!
  eventually test -s "$dir/it"
  agent=$(agent_of $command)
  kill -KILL $command
  ends 137 $command
  eventually dead $agent
  none_is_left a b
  dead $(cat "$dir/it") || fail "the command runs on"
}

# One is lost while the other is waited for: it is given back, and all is waited for again.
test_lost_while_waiting() {
  waiting --lease 3
  redis hset a another:1 1 >"$dir/set"
  redis hdel a "$(redis hkeys a | grep -v another)" >"$dir/set"
  eventually waits 0 b
  eventually waits 1 a
  kill $holder
  ends 143 $holder
  sleep 0.5
  [ ! -e "$dir/it" ] || fail "it runs without a"
  redis del a >"$dir/set"
  eventually test -s "$dir/it"
  kill $waiter
  ends 143 $waiter
  none_is_left a b
}

# Nor does -w begin again.
test_lost_while_waiting_for_some_time() {
  began=$(now_ms)
  waiting --lease 3 -w 4 -E 9
  redis del a >"$dir/set"
  eventually held a
  ends 9 $waiter
  [ $(($(now_ms) - began)) -ge 4000 ] || fail "it has not waited"
  [ ! -e "$dir/it" ] || fail "it ran"
  unheld a || fail "it is still held"
}

test_lost() {
  for lost in a b; do
    run --lease 3 --and b a -- sh -c 'echo $$ >$0; exec sleep 600' "$dir/it.$lost" 2>"$dir/err" &
    command=$!
    eventually test -s "$dir/it.$lost"
    redis del $lost >"$dir/out"
    ends 79 $command
    said "$lost is lost: "
    dead $(cat "$dir/it.$lost") || fail "it runs on"
    none_is_left a b
  done
}

test_asked() {
  run --on-ask term --and b a -- sh -c 'echo $$ >$0; exec sleep 600' "$dir/it" 2>"$dir/err" &
  command=$!
  eventually test -s "$dir/it"
  expect 0 "$fairlock" break --ask -w 60 b
  ends 143 $command
  grep -q 'b is asked for by an operator' "$dir"/err* || fail "$(cat "$dir"/err*)"
  none_is_left a b
}

test_shared() {
  run -s --and b a sleep 600 &
  first=$!
  eventually "$fairlock" status -q a b
  expect 0 "$fairlock" run -n -s --and a b true
  expect 1 "$fairlock" run -nq --and a b true
  kill $first
  ends 143 $first
  none_is_left a b
}

test_nested() {
  for names in '--and b c' '--and c b' 'b' 'a'; do
    expect 80 "$fairlock" run --and b a "$fairlock" run $names true
  done
  said 'a is held by the fairlock run that this one runs under'
  expect 0 "$fairlock" run --and b a "$fairlock" run --and d c true
}

# No server answers the release: what is left ends later.
test_release_in_an_outage() {
  run --lease 3 --and b a -- sh -c 'kill -STOP $0; exit 4' $server 2>"$dir/err" &
  command=$!
  wait $command
  status=$?
  [ $status = 4 ] || [ $status = 79 ] || fail "$status"
  kill -CONT $server
  eventually unheld a
  eventually unheld b
}

test_max_hold() {
  expect 83 "$fairlock" run --max-hold 0.5 --and b a sleep 600
  said 'a + b has been held for 0.5 s'
  none_is_left a b
}

test_command_line() {
  expect 64 "$fairlock" run --and a a true
  said '--and needs a lock that is not named already'
  expect 64 "$fairlock" run --and b --and b a true
  expect 64 "$fairlock" run --and '' a true
  expect 64 "$fairlock" run --and '{b}' a true
  expect 64 "$fairlock" run $(seq -f '--and %g' 16) a true
  said '--and can be given 15 times, not more'
  expect 0 "$fairlock" run $(seq -f '--and %g' 15) a sh -c 'test "$(echo $FAIRLOCK_TOKENS | wc -w)" = 16'
}

[ $# -eq 0 ] || run_tests "$@"
run_tests all tokens_of_one none the_whole_wait opposite_orders signal_while_waiting killed_while_waiting killed \
  lost_while_waiting lost_while_waiting_for_some_time lost asked shared nested release_in_an_outage max_hold command_line
