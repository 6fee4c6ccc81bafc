#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What fairlock run --verbose says, line by line.
# shellcheck source=tests/support/lib.sh disable=SC2016,SC2034,SC2046,SC2086,SC2154,SC1091,SC2317
set -u
. tests/support/lib.sh

# lines FILE: its lines, without prefix, times, ids and tokens
stamp='[0-9]\{4\}-[0-9][0-9]-[0-9][0-9] [0-9][0-9]:[0-9][0-9]:[0-9][0-9]\.[0-9]\{3\}'
lines() {
  sed "s/^fairlock: $stamp //"'; s/ by [^ ]*, token [0-9]*$/ by ID, token N/' "$1"
}

# said_all FILE LINE...: these lines and no others
said_all() {
  file=$1
  shift
  [ "$(lines "$file")" = "$(printf '%s\n' "$@")" ] || fail "$(cat "$file")"
}

# counts COUNT WORDS FILE: that number of lines have these words
counts() {
  [ "$(grep -cF -e "$2" "$3")" -eq "$1" ]
}

test_run() {
  url=redis://127.0.0.1:$port
  expect 7 "$fairlock" run --verbose a sh -c 'echo $FAIRLOCK_HOLDER, token $FAIRLOCK_TOKEN; exit 7'
  said_all "$dir/err" "$url: connected" 'a is requested' 'a is acquired by ID, token N' 'a is released'
  said "$(cat "$dir/out")"
  expect 7 "$fairlock" run a sh -c 'exit 7'
  [ ! -s "$dir/err" ] || fail "without being asked: $(cat "$dir/err")"
  name=$(printf 'x\033[2J\ny')
  expect 0 "$fairlock" run --verbose "$name" true
  said_all "$dir/err" "$url: connected" 'x\x1b[2J\x0ay is requested' 'x\x1b[2J\x0ay is acquired by ID, token N' 'x\x1b[2J\x0ay is released'
}

test_not_acquired() {
  run a sleep 60 &
  eventually held a
  expect 1 "$fairlock" run --verbose -w 2 -q a true
  said_all "$dir/err" "redis://127.0.0.1:$port: connected" 'a is requested' 'a was not acquired: the wait timed out'
  run --verbose a true 2>"$dir/err" &
  waiter=$!
  eventually waits 1 a
  kill $waiter
  ends 143 $waiter
  said 'a was not acquired: the wait was cancelled'
}

connected() {
  redis client list | grep -q name=fairlock
}

# Each line says when it happened, also if it is read much later.
test_times() {
  before=$(now_ms)
  run --verbose a sh -c 'echo $$ >"$0"; sleep 60' "$dir/command" 2>"$dir/err" &
  holder=$!
  eventually test -s "$dir/command"
  after=$(now_ms)
  kill -STOP $holder
  redis client kill type normal skipme yes >"$dir/out"
  redis client kill type pubsub >"$dir/out"
  eventually connected
  sleep 0.5
  read=$(now_ms)
  kill -CONT $holder
  eventually counts 1 'disconnected: ' "$dir/err"
  kill $holder
  ends 143 $holder
  ! grep -v "^fairlock: $stamp " "$dir/err" || fail "lines without a time"
  while read -r _ day time _; do echo $(($(date -d "$day $time" +%s%N) / 1000000)); done <"$dir/err" >"$dir/times"
  [ "$(sed -n 1p "$dir/times")" -ge "$before" ] || fail "too early: $(cat "$dir/err")"
  [ "$(sed -n 2p "$dir/times")" -le "$after" ] || fail "too late: $(cat "$dir/err")"
  broken=$(sed -n '/disconnected/=' "$dir/err" | head -n 1)
  [ "$(sed -n "${broken}p" "$dir/times")" -lt "$read" ] || fail "when it was read, not when it happened: $(cat "$dir/err")"
  expect 0 "$fairlock" run a true # and none without --verbose
  [ ! -s "$dir/err" ] || fail "$(cat "$dir/err")"
}

# A wrong password: the server's words, and what they mean.
test_refused() {
  redis config set requirepass secret >"$dir/out"
  expect 77 "$fairlock" run --verbose --url redis://:wrong@127.0.0.1:$port a true
  said "redis://127.0.0.1:$port: refused: WRONGPASS "
  said "redis://127.0.0.1:$port: not connected: the server refuses this user"
  ! grep -q -e 'wrong@' -e ':wrong' "$dir/err" || fail "$(cat "$dir/err")"
}

# A connection that breaks, and one that cannot be made for a while, which is said once.
test_connections() {
  run --verbose --lease 60 a sleep 60 2>"$dir/err" &
  holder=$!
  eventually counts 1 'a is acquired' "$dir/err"
  redis client kill type pubsub >"$dir/out"
  eventually counts 2 "redis://127.0.0.1:$port: connected" "$dir/err"
  stop_server
  eventually counts 1 ': not connected: the server cannot be reached' "$dir/err"
  sleep 3 # it tries several times
  counts 1 ': not connected: the server cannot be reached' "$dir/err" || fail "$(cat "$dir/err")"
  counts 2 ': disconnected: the server cannot be reached' "$dir/err" || fail "$(cat "$dir/err")"
  kill $holder
  ends 143 $holder
}

# Several servers that cannot be reached, in turn: each is reported once.
test_seeds() {
  stop_server
  url=redis+cluster://127.0.0.1:1,127.0.0.1:234,127.0.0.1:4
  expect 75 "$fairlock" run --verbose -w 6 --url "$url" a true
  counts 3 ': not connected: ' "$dir/err" || fail "$(cat "$dir/err")"
  for seed in 1 234 4; do said "(127.0.0.1:$seed): not connected: the server cannot be reached"; done
}

# An operator's request is one, each time that it comes, and nothing that the server refuses.
test_asked() {
  run --verbose --on-ask ignore a sleep 60 2>"$dir/err.holder" &
  holder=$!
  eventually counts 1 'a is acquired' "$dir/err.holder"
  for count in 1 2; do
    expect 0 "$fairlock" break --ask a
    eventually counts $count ': an operator asks for the hold with token ' "$dir/err.holder"
    eventually counts $count "; sent nothing to the command" "$dir/err.holder"
  done
  # another program may say who asks, and why: anything, printed as a terminal can show it
  token=$(redis hget 'fairlock:{a}' token)
  redis publish "redisson_lock__channel:{a}:$(redis hkeys a)" "$token anna@ops-1 $(printf 'stuck \033[2J')" >"$dir/out"
  eventually counts 1 'a is asked for by an operator: anna@ops-1 stuck \x1b[2J; sent nothing' "$dir/err.holder"
  eventually counts 1 ": an operator asks for the hold with token $token anna@ops-1 stuck \\x1b[2J" "$dir/err.holder"
  # so may who breaks the hold
  who=$(id -un)@$(uname -n | sed 's/\..*//')
  expect 0 "$fairlock" break --yes --reason "$(printf '0 st\303\274ck\377 \033[2J\n.')" a
  ends 79 $holder
  eventually counts 1 ": told that the hold was broken: $who"' 0 stück\xff \x1b[2J\x0a.' "$dir/err.holder"
  ! grep -q refused "$dir/err.holder" || fail "$(cat "$dir/err.holder")"
}

# The server's text may be anything, and is printed as a terminal can show it.
test_hostile_text() {
  fake_server HELLO '-ERR \033[2J\377 text\r\n'
  "$fairlock" run -n --verbose --url redis://127.0.0.1:$other a true 2>"$dir/err"
  said "redis://127.0.0.1:$other: refused: ERR \\x1b[2J\\xff text"
}

# More events than a pipe holds, while nobody reads: the agent ends the command in time all the same.
test_nobody_reads() {
  stop_server
  start_server --cluster-enabled yes
  redis cluster addslots $(seq 0 16383) >"$dir/out"
  eventually sh -c "redis-cli -p $port cluster info | grep -q cluster_state:ok"
  url=redis+cluster://127.0.0.1:$port$(printf ',127.0.0.1:%d' $(seq 130))
  run --verbose --lease 6 --url "$url" a sh -c 'echo $$ >"$0"; exec sleep 60' "$dir/command" 2>"$dir/err" &
  holder=$!
  eventually test -s "$dir/command"
  kill -STOP $holder
  stop_server
  eventually dead "$(cat "$dir/command")"
  kill -CONT $holder
  ends 79 $holder
  said 'a could not be renewed in time: '
  ! grep -q 'is not running' "$dir/err" || fail "it was not the agent that ended the command: $(cat "$dir/err")"
  said '127.0.0.1:1): not connected: the server cannot be reached'
  counts 16 'connected: ' "$dir/err" || fail "$(cat "$dir/err")"
}

[ $# -eq 0 ] || run_tests "$@"
run_tests run not_acquired times refused asked connections seeds hostile_text nobody_reads
