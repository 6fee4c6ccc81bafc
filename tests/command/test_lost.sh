#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# fairlock run: the lock is renewed, and whatever ends the hold ends the command before anybody else
# can hold it.
# shellcheck source=tests/support/lib.sh disable=SC2016,SC2046,SC2086,SC2154,SC1091,SC1003,SC2317
set -u
. tests/support/lib.sh
side=4 # they sleep most of the time

# A command that writes the time every 20 ms to its first argument, as does a process it starts;
# both ignore SIGTERM.
beat='trap "" TERM; beat() { while :; do date +%s%N >>$0; sleep 0.02; done; }; beat & echo $! >$0.second; beat'

# A command that notes SIGTERM in its first argument.
polite='trap "echo term >>$0; exit 3" TERM; echo ready >>$0; while :; do sleep 0.02; done'

last_beat_ms() {
  echo $(($(tail -n 1 "$1") / 1000000))
}

test_renewed() {
  run --lease 8 a -- sh -c 'until [ -e "$0" ]; do sleep 0.05; done; exit 5' "$dir/go" &
  command=$!
  eventually held a
  token=$(redis hget 'fairlock:{a}' token)
  sleep 10
  expect 1 "$fairlock" run -n a true
  [ "$(redis hget 'fairlock:{a}' token)" = "$token" ] || fail "somebody else held the lock"
  touch "$dir/go"
  ends 5 $command
  expect 0 "$fairlock" run -n a true
}

test_key_deleted() {
  run --lease 6 --kill-after 2 a -- sh -c "$polite" "$dir/got" 2>"$dir/err" &
  command=$!
  eventually grep -q ready "$dir/got"
  redis del a >"$dir/out"
  ends 79 $command
  grep -q term "$dir/got" || fail "no SIGTERM"
  said 'a is lost'
}

# A command that obeys SIGTERM, and a child of it that does not.
test_what_a_lost_command_leaves() {
  run --lease 6 a -- sh -c '(trap "" TERM; exec sleep 60) & echo $! >$0; exec sleep 60' "$dir/second" &
  command=$!
  eventually test -s "$dir/second"
  eventually held a
  redis del a >"$dir/out"
  ends 79 $command
  eventually dead "$(cat "$dir/second")"
}

test_lost_exit_code() {
  run --lease 3 --lost-exit-code 5 a -- sh -c "$polite" "$dir/got" &
  command=$!
  eventually grep -q ready "$dir/got"
  redis del a >"$dir/out"
  ends 5 $command
}

test_broken_just_before_the_end() {
  run a -- sh -c 'redis-cli -p "$0" del a >"$1"; exit 0' $port "$dir/out" 2>"$dir/err" &
  ends 79 $!
  said 'was lost while the command ran'
}

# broken_at_once WORDS...: run with these words ends as soon as its hold is broken, long before a third of its lease
broken_at_once() {
  run --lease 300 "$@" a -- sh -c "$polite" "$dir/got" 2>"$dir/err.holder" &
  command=$!
  eventually grep -q ready "$dir/got"
  start=$(now_ms)
  expect 0 "$fairlock" break --token "$(redis hget 'fairlock:{a}' token)" a
  ends 79 $command
  told_after=$(($(now_ms) - start))
  [ $told_after -lt 10000 ] || fail "it was told after $told_after ms"
  grep -q term "$dir/got" || fail 'no SIGTERM'
  grep -q 'a is lost: ' "$dir/err.holder" || fail "$(cat "$dir/err.holder")"
  rm "$dir/got"
}

test_broken_is_told_at_once() {
  broken_at_once
  broken_at_once -n
  broken_at_once -s
}

test_on_lost_ignore() {
  run --lease 3 --on-lost ignore a -- sh -c "$polite" "$dir/got" 2>"$dir/err" &
  command=$!
  eventually grep -q ready "$dir/got"
  redis del a >"$dir/out"
  eventually grep -q 'continues' "$dir/err"
  sleep 0.5
  ! grep -q term "$dir/got" || fail "SIGTERM was sent"
  ! dead $command || fail "it has ended"
  kill $command
  ends 79 $command
}

test_on_lost_kill() {
  run --lease 3 --on-lost kill a -- sh -c "$polite" "$dir/got" &
  command=$!
  eventually grep -q ready "$dir/got"
  redis del a >"$dir/out"
  ends 79 $command
  ! grep -q term "$dir/got" || fail "SIGTERM was sent"
}

# The server dies: nobody can renew. The lease that the server last granted began before that, so a
# command that last ran less than a lease later has ended in time. It began 1.5 s before, and is renewed
# 1.5 s later, so that a busy machine has time for each.
server_dies() {
  run --lease 9 "$@" a -- sh -c "$beat" "$dir/beats" 2>"$dir/err" &
  command=$!
  eventually test -s "$dir/beats.second"
  eventually lasts 7500 a
  stop_server
  died=$(now_ms)
  ends 79 $command
  said 'could not be renewed'
  lived=$(($(last_beat_ms "$dir/beats") - died))
  [ $lived -lt 9000 ] || fail "the command lived for another $lived ms"
  eventually dead "$(cat "$dir/beats.second")"
}

test_server_dies() {
  server_dies --kill-after 0.5
}

test_server_dies_no_grace() {
  server_dies --on-lost kill
}

test_server_freezes() {
  run --lease 6 --kill-after 2 a -- sh -c "$polite" "$dir/got" &
  command=$!
  eventually grep -q ready "$dir/got"
  kill -STOP $server
  ends 79 $command
  kill -CONT $server
  grep -q term "$dir/got" || fail "no SIGTERM"
  # the agent's renewals may have reached the server in the end, or not: the lock is free either
  # way
  eventually unheld a
}

test_short_freeze_does_no_harm() {
  run --lease 6 a -- sh -c 'sleep 4; exit 4' &
  command=$!
  eventually held a
  sleep 1.5
  kill -STOP $server
  sleep 1
  kill -CONT $server
  ends 4 $command
}

test_server_restarts_empty() {
  run --lease 6 a -- sh -c "$polite" "$dir/got" &
  command=$!
  eventually grep -q ready "$dir/got"
  redis flushall >"$dir/out"
  redis client kill type normal skipme yes >"$dir/out"
  ends 79 $command
}

test_fairlock_is_killed() {
  run a -- sh -c "$beat" "$dir/beats" &
  command=$!
  eventually test -s "$dir/beats"
  eventually test -s "$dir/beats.second"
  start=$(now_ms)
  kill -9 $command
  eventually unheld a
  [ $(($(now_ms) - start)) -lt 25000 ] || fail "only the lease has ended the hold"
  dead "$(cat "$dir/beats.second")" || fail "a process of the command's is still there"
  beats=$(wc -l <"$dir/beats")
  sleep 0.3
  [ "$(wc -l <"$dir/beats")" = "$beats" ] || fail "it still runs"
  expect 0 "$fairlock" run -n a true
}

test_agent_is_killed() {
  run a -- sh -c "$beat" "$dir/beats" 2>"$dir/err" &
  command=$!
  eventually test -s "$dir/beats.second"
  kill -9 "$(agent_of $command)"
  ends 79 $command
  said 'was killed'
  eventually dead "$(cat "$dir/beats.second")"
}

# Also while it waits: nobody else keeps its end of the link open.
test_agent_is_killed_in_line() {
  redis hset a somebody:1 1 >"$dir/out"
  run a true 2>"$dir/err" &
  waiter=$!
  eventually waits 1 a
  kill -9 "$(agent_of $waiter)"
  over 71 $waiter
  said 'has ended unexpectedly'
  run --url redis://127.0.0.1:1 a true 2>"$dir/err" &
  waiter=$!
  eventually grep -q 'trying again' "$dir/err"
  kill $waiter
  over 143 $waiter
}

test_guard_is_killed_in_line() {
  redis hset a somebody:1 1 >"$dir/out"
  run a true 2>"$dir/err" &
  waiter=$!
  eventually waits 1 a
  kill -9 "$(guard_of $waiter)"
  over 71 $waiter
  said 'a was not acquired: the process that guards the command was killed'
  waits 0 a || fail "the queue was not left"
}

test_both_are_killed() {
  run --lease 5 a -- sh -c 'echo $$ >$0; exec sleep 60' "$dir/command" &
  command=$!
  eventually test -s "$dir/command"
  kill -STOP $command
  kill -9 "$(agent_of $command)" $command
  eventually dead "$(cat "$dir/command")"
  expect 0 "$fairlock" run -w 20 a true
}

test_fairlock_is_stopped() {
  run --lease 6 a -- sh -c 'until [ -e $0 ]; do sleep 0.02; done; exit 4' "$dir/go" &
  command=$!
  eventually held a
  kill -STOP $command
  sleep 8
  expect 1 "$fairlock" run -n a true
  touch "$dir/go"
  kill -CONT $command
  ends 4 $command
}

test_stopped_command_is_ended() {
  run --lease 3 a -- sh -c 'echo $$ >$0; exec sleep 60' "$dir/command" &
  command=$!
  eventually test -s "$dir/command"
  kill -STOP "$(cat "$dir/command")"
  redis del a >"$dir/out"
  ends 79 $command
}

test_handover_is_confirmed_first() {
  run a sleep 60 &
  holder=$!
  eventually held a
  run -w 60 --lease 60 --kill-after 15 a -- sh -c 'exit 6' &
  waiter=$!
  eventually waits 1 a
  kill $holder
  ends 143 $holder
  ends 6 $waiter # a grant of 5 s has no room for 15 s of grace: it must not count as lost
}

test_what_is_left_in_the_background() {
  expect 0 "$fairlock" run a -- sh -c 'sleep 60 & echo $! >"$0"' "$dir/background"
  ! dead "$(cat "$dir/background")" || fail "it was ended"
  kill "$(cat "$dir/background")"
}

# freeze PID...: stops processes, until the end of the test at most
freeze() {
  frozen=$*
  trap 'kill -CONT $frozen 2>/dev/null' EXIT
  kill -STOP "$@"
}

# over STATUS PID: it ends with that status, before the test gives up
over() {
  eventually dead "$2"
  ends "$@"
}

# keep_longer NAME: the server keeps the lock for 2 s longer than its holder believes, in which a busy
# machine kills what the holder's time is over for
keep_longer() {
  redis pexpire "$1" $(($(redis pttl "$1") + 2000)) >"$dir/out"
}

# The agent is stopped, so nobody renews: within the lease the command must be over, and with it
# what it has started. agent_is_stopped LEASE OPTION...
agent_is_stopped() {
  run --lease "$@" a -- sh -c "$beat" "$dir/beats" 2>"$dir/err" &
  command=$!
  eventually test -s "$dir/beats.second"
  agent=$(agent_of $command)
  eventually lasts $(($1 * 1000 - 1500)) a # as in server_dies
  stopped=$(now_ms)
  freeze "$agent"
  over 79 $command
  said 'is not running'
  lived=$(($(last_beat_ms "$dir/beats") - stopped))
  [ $lived -lt $(($1 * 1000)) ] || fail "the command lived for another $lived ms"
  eventually dead "$(cat "$dir/beats.second")"
  dead "$agent" || fail "the agent is still there"
  expect 0 "$fairlock" run -w 20 a true
}

test_agent_is_stopped() {
  agent_is_stopped 9
}

test_agent_is_stopped_no_grace() {
  agent_is_stopped 9 --on-lost kill
}

test_agent_is_stopped_for_a_polite_command() {
  run --lease 3 --kill-after 1 a -- sh -c "$polite" "$dir/got" 2>"$dir/err" &
  command=$!
  eventually grep -q ready "$dir/got"
  freeze "$(agent_of $command)"
  over 79 $command
  grep -q term "$dir/got" || fail "no SIGTERM"
}

test_agent_is_stopped_and_ignored() {
  run --lease 3 --on-lost ignore a -- sh -c 'echo ready >"$0"; sleep 6; exit 4' "$dir/got" 2>"$dir/err" &
  command=$!
  eventually grep -q ready "$dir/got" # held alone is too soon: the agent has to have told of it
  freeze "$(agent_of $command)"
  over 79 $command
  said 'continued without it'
}

# hand_to_stopped ARGUMENT...: the lock a is handed to `run -w 60 ARGUMENT...`, $waiter, whose $agent
# is stopped; the claim has $token
hand_to_stopped() {
  run a sleep 60 &
  holder=$!
  eventually held a
  run -w 60 "$@" 2>"$dir/err.waiter" &
  waiter=$!
  eventually waits 1 a
  agent=$(agent_of $waiter)
  freeze "$agent"
  eventually stopped "$agent"
  kill $holder
  ends 143 $holder
  claim=$(redis hvals a)
  [ "$claim" = 0 ] || fail "it was not handed the lock, which has '$claim'"
  token=$(redis hget 'fairlock:{a}' token)
}

# wakes_without_claim STATUS COMMAND...: the agent of `run -w 60 a` wakes after its claim was broken,
# with its heartbeat due: it asks again before it reads that it was handed the lock. COMMAND is done
# meanwhile. What that request begins is used, or given back.
wakes_without_claim() {
  expected=$1
  shift
  hand_to_stopped --lease 20 a -- sh -c 'echo ready >>"$0"; exit 6' "$dir/got"
  expect 0 "$fairlock" break --token $token a
  sleep 2.5
  "$@"
  kill -CONT "$agent"
  ends "$expected" $waiter
  eventually dead "$agent"
  unheld a || fail "a hold is left: $(redis hgetall a)"
  waits 0 a || fail "a place in the queue is left"
}

test_claim_is_gone_when_the_agent_wakes() {
  wakes_without_claim 6 true
  [ "$(wc -l <"$dir/got")" = 1 ] || fail "the command ran more than once"
}

test_claim_and_wait_are_gone_when_the_agent_wakes() {
  wakes_without_claim 143 eval 'kill $waiter; sleep 2' # it has told the agent before that wakes
  [ ! -e "$dir/got" ] || fail "the command ran"
}

# The holder of a claim that has ended was asked, not the next one.
test_asked_for_a_claim_that_is_gone() {
  hand_to_stopped a -- sh -c 'echo ready >>"$0"; sleep 1; exit 6' "$dir/got"
  expect 0 "$fairlock" break --ask --token $token a
  expect 0 "$fairlock" break --token $token a
  kill -CONT "$agent"
  ends 6 $waiter
  ! grep 'asked for' "$dir/err.waiter" || fail "the later hold was asked"
}

# fairlock itself is stopped while its lock is granted and lost: it must not begin the command.
test_lost_before_the_command_begins() {
  for action in ignore term kill; do
    run a sleep 60 &
    holder=$!
    eventually held a
    run --lease 3 --on-lost $action a -- sh -c ': >"$0"' "$dir/began" 2>"$dir/err" &
    waiter=$!
    eventually waits 1 a
    freeze $waiter
    kill $holder
    ends 143 $holder
    eventually eval '[ "$(redis hvals a)" = 1 ]'
    redis del a >"$dir/out"
    sleep 3.5 # its agent has found out, as it renews at each third of the lease, and that is over
    kill -CONT $waiter
    ends 79 $waiter
    said 'a was acquired and lost before the command could be started'
    [ ! -e "$dir/began" ] || fail "the command has begun"
  done
}

# If woken in time, the agent renews, and the command goes on. If woken later, it finds the command
# ended.
test_agent_wakes_up() {
  run --lease 12 a -- sh -c 'echo ready >"$0"; sleep 13; exit 4' "$dir/got" &
  command=$!
  eventually grep -q ready "$dir/got"
  freeze "$(agent_of $command)"
  sleep 2
  kill -CONT "$(agent_of $command)"
  over 4 $command
  run --lease 3 --kill-after 1 b -- sh -c 'trap "touch $0.termed" TERM; touch $0.ready; while :; do sleep 0.02; done' "$dir/b" &
  command=$!
  eventually test -e "$dir/b.ready"
  agent=$(agent_of $command)
  freeze "$agent"
  eventually test -e "$dir/b.termed"
  kill -CONT "$agent"
  over 79 $command
  eventually unheld b
}

# The command has ended, and --at-least holds the lock, but nobody renews it.
test_agent_is_stopped_at_least() {
  run --lease 3 --at-least 20 a -- sh -c 'echo ready >"$0"; exit 4' "$dir/got" 2>"$dir/err.kept" &
  command=$!
  eventually test -s "$dir/got"
  agent=$(agent_of $command)
  eventually eval '[ -z "$(children_of "$(guard_of $command)")" ]'
  freeze "$agent"
  expect 0 "$fairlock" run -w 20 a true
  over 79 $command
  grep -q 'could not be renewed in time: .* is not running' "$dir/err.kept" || fail "$(cat "$dir/err.kept")"
}

# Both are stopped, and only the guard is not.
test_both_are_stopped() {
  run --lease 3 a -- sh -c "$beat" "$dir/beats" 2>"$dir/err" &
  command=$!
  eventually test -s "$dir/beats.second"
  agent=$(agent_of $command)
  freeze $command "$agent"
  keep_longer a
  expect 0 "$fairlock" run -w 20 a sh -c 'date +%s%N >"$0"' "$dir/next"
  [ "$(last_beat_ms "$dir/beats")" -lt "$(last_beat_ms "$dir/next")" ] || fail "two commands ran at once"
  dead "$(cat "$dir/beats.second")" || fail "a process of the command's is still there"
  kill -CONT $command "$agent"
  over 79 $command
}

# Killed together, parent and agent leave the command, which the kernel kills, and its children,
# which it does not.
test_both_are_killed_with_children() {
  run a -- sh -c "$beat" "$dir/beats" &
  command=$!
  eventually test -s "$dir/beats.second"
  agent=$(agent_of $command)
  guard=$(guard_of $command)
  freeze $command "$agent"
  kill -9 $command "$agent"
  eventually dead "$(cat "$dir/beats.second")"
  eventually dead "$guard"
}

# The parent is gone, and the agent does nothing until all is over. Then it ends, too.
test_fairlock_is_killed_and_agent_stopped() {
  run --lease 3 a -- sh -c "$beat" "$dir/beats" &
  command=$!
  eventually test -s "$dir/beats.second"
  agent=$(agent_of $command)
  freeze "$agent"
  kill -9 $command
  keep_longer a
  expect 0 "$fairlock" run -w 20 a sh -c 'date +%s%N >"$0"' "$dir/next"
  [ "$(last_beat_ms "$dir/beats")" -lt "$(last_beat_ms "$dir/next")" ] || fail "two commands ran at once"
  dead "$(cat "$dir/beats.second")" || fail "a process of the command's is still there"
  kill -CONT "$agent"
  eventually dead "$agent"
}

test_guard_ends_with_its_agent() {
  run a -- sh -c 'until [ -e $0 ]; do sleep 0.02; done' "$dir/go" &
  command=$!
  eventually held a
  guard=$(guard_of $command)
  ! dead "$guard" || fail "there is no guard"
  touch "$dir/go"
  over 0 $command
  eventually dead "$guard"
}

# An agent that is stopped when the command has ended cannot release; fairlock must not wait for it
# for ever.
test_agent_is_stopped_at_the_end() {
  run a -- sh -c 'until [ -e "$0" ]; do sleep 0.02; done; exit 4' "$dir/go" 2>"$dir/err" &
  command=$!
  eventually held a
  agent=$(agent_of $command)
  freeze "$agent"
  touch "$dir/go"
  over 4 $command
  said 'does not answer'
  eventually dead "$agent"
}

# The agent is stopped while it waits, and gets the lock then: nobody tells fairlock of it, which
# must not wait for that for ever.
test_agent_is_stopped_when_granted() {
  for words in '' '-w 60'; do
    run a sleep 60 2>"$dir/err.holder" &
    holder=$!
    eventually held a
    run $words a touch "$dir/ran" 2>"$dir/err" &
    waiter=$!
    eventually waits 1 a
    agent=$(agent_of $waiter)
    freeze "$agent"
    eventually stopped "$agent"
    expect 0 "$fairlock" break --yes a
    waits 0 a || fail "the lock was not handed over"
    over 71 $waiter
    dead "$agent" || fail "the agent is still there"
    [ ! -e "$dir/ran" ] || fail "the command ran"
    expect 0 "$fairlock" run -w 60 a true # when the lease has run out, at the latest
    over 79 $holder
  done
}

# Nor while it stands in line, or has not even got there; a signal ends it as ever.
test_agent_is_stopped_in_line() {
  redis hset a somebody:1 1 >"$dir/out"
  run a true 2>"$dir/err" &
  waiter=$!
  eventually waits 1 a
  freeze "$(agent_of $waiter)"
  kill $waiter
  over 143 $waiter
  redis hset b somebody:1 1 >"$dir/out"
  run b true 2>"$dir/err" &
  waiter=$!
  eventually waits 1 b
  freeze "$(agent_of $waiter)"
  over 71 $waiter
  said 'is not running (was it stopped?)'
  run --url redis://127.0.0.1:1 a true 2>"$dir/err" &
  waiter=$!
  eventually grep -q 'trying again' "$dir/err"
  freeze "$(agent_of $waiter)"
  over 71 $waiter
  said 'is not running (was it stopped?)'
}

# If it wakes soon, it goes on.
test_agent_wakes_up_in_line() {
  redis hset a somebody:1 1 >"$dir/out"
  run a sh -c 'exit 4' 2>"$dir/err" &
  waiter=$!
  eventually waits 1 a
  agent=$(agent_of $waiter)
  freeze "$agent"
  expect 0 "$fairlock" break --yes a
  sleep 2
  kill -CONT "$agent"
  over 4 $waiter
}

# outage COMMAND...: the server is stopped meanwhile, and for 3 s more, as it drops most requests that are older
outage() {
  kill -STOP $server
  "$@"
  sleep 3
  kill -CONT $server
}

finished() {
  touch "$dir/go"
  ends 4 $command
  kill "$agent"
}

# The release is not answered, and fairlock ends. Its agent goes on until the server is back, also when a service manager
# asks all that is left to end. Nobody waits for its output.
test_release_in_an_outage() {
  mkfifo "$dir/output"
  run --lease 600 a -- sh -c 'until [ -e "$0" ]; do sleep 0.02; done; exit 4' "$dir/go" >"$dir/output" 2>&1 &
  command=$!
  cat "$dir/output" >"$dir/err" &
  reader=$!
  eventually held a
  agent=$(agent_of $command)
  outage finished
  ends 0 $reader
  said 'its agent goes on trying until its lease of 600 s has run out, or earlier'
  eventually unheld a
  eventually dead "$agent"
}

# The server answers, but takes no writes for now: what it says is reported. Its agent goes on.
test_release_is_refused_for_now() {
  run --lease 600 a -- sh -c 'until [ -e "$0" ]; do sleep 0.02; done; exit 4' "$dir/go" 2>"$dir/err" &
  command=$!
  eventually held a
  redis config set min-replicas-to-write 1 >"$dir/out"
  touch "$dir/go"
  ends 4 $command
  said 'could not be released'
  said NOREPLICAS
  said 'its agent goes on trying until its lease of 600 s has run out, or earlier'
  ! grep -q 'no answer came' "$dir/err" || fail "$(cat "$dir/err")"
  redis config set min-replicas-to-write 0 >"$dir/out"
  eventually unheld a
}

killed() {
  touch "$dir/go"
  eventually dead "$(cat "$dir/command")"
  kill -9 $command
  sleep 5
}

test_fairlock_is_killed_in_an_outage() {
  run --lease 600 a -- sh -c 'echo $$ >"$1"; until [ -e "$0" ]; do sleep 0.02; done' "$dir/go" "$dir/command" &
  command=$!
  eventually test -s "$dir/command"
  agent=$(agent_of $command)
  outage killed
  eventually unheld a
  eventually dead "$agent"
}

cancelled() {
  kill $waiter
  ends 143 $waiter
}

# The same for the place of a waiter.
test_wait_ends_in_an_outage() {
  redis hset a somebody:1 1 >"$dir/out"
  run a true 2>"$dir/err" &
  waiter=$!
  eventually waits 1 a
  agent=$(agent_of $waiter)
  outage cancelled
  eventually waits 0 a
  eventually dead "$agent"
}

# contained COMMAND...: as process 1 of a container
contained() {
  exec unshare --fork --pid --mount-proc --kill-child "$@"
}

can_contain() {
  (contained true) 2>/dev/null || { echo "skip $name: this user may make no PID namespace"; return 1; }
}

unfinished() {
  touch "$dir/go"
  sleep 7
}

# As process 1 of a container, fairlock waits for its agent, which would end with it.
test_outage_of_a_container() {
  can_contain || return 0
  contained "$fairlock" run --lease 600 a -- sh -c 'until [ -e "$0" ]; do sleep 0.02; done; exit 4' "$dir/go" 2>"$dir/err" &
  command=$!
  eventually held a
  outage unfinished
  ends 4 $command
  said 'its agent goes on trying'
  unheld a || fail "the lock is still held"
}

# In a container that has its host's /proc, the numbers there are of other processes: here the guard is 2, and the host's
# 2 has a child with the number of the agent.
test_proc_of_another_namespace() {
  can_contain || return 0
  contained sh -c '(sleep 600 & sleep 600 & wait) & sleep 1; exec unshare --fork --pid --kill-child "$@"' - \
    "$fairlock" run --lease 6 --kill-after 0.5 a -- sh -c 'setsid sh -c "$1" - "$0" & until [ -e "$0.began" ]; do sleep 0.02; done; kill -9 $$' \
    "$dir/go" ': >"$1.began"; until [ -e "$1" ]; do sleep 0.05; done' 2>"$dir/err" &
  running=$!
  eventually test -e "$dir/go.began"
  sleep 3
  held a || fail "it is not held beside what the command has started: $(cat "$dir/err")"
  ! dead $running || fail "fairlock has ended: $(cat "$dir/err")"
  touch "$dir/go"
  ends 137 $running
  unheld a || fail "the lock is still held"
}

# The number of the command's group is given to another one while the agent is stopped, and guard and fairlock are gone.
test_number_of_the_group_is_given_away() {
  can_contain || return 0
  (contained sh -c '"$1" run --lease 600 a -- sh -c "echo \$\$ >\"\$0\"; exec sleep 600" "$2" &
    run=$!
    until [ -s "$2" ]; do sleep 0.02; done
    read -r command <"$2"
    for child in $(cat /proc/$run/task/$run/children); do
      if grep -q . /proc/$child/task/$child/children; then guard=$child; else agent=$child; fi
    done
    kill -STOP $agent
    kill -9 $guard $run
    while [ -e /proc/$command ]; do sleep 0.02; done
    echo $((command - 1)) >/proc/sys/kernel/ns_last_pid || exit 77
    setsid sleep 600 &
    [ $! = $command ] || exit 77
    until read -r _ _ _ _ group _ </proc/$!/stat && [ $group = $! ]; do sleep 0.02; done
    kill -CONT $agent
    while [ -e /proc/$agent ]; do sleep 0.02; done
    kill $!' - "$fairlock" "$dir/command" 2>"$dir/err")
  case $? in
    0) held a || fail "it was released beside what the command may have left" ;;
    77) echo "skip $name: no number can be chosen here" ;;
    *) fail "the other group was killed: $(cat "$dir/err")" ;;
  esac
}

adopt() {
  [ -x "$build/tests/command/adopt" ] || make -s BUILD="$build" "$build/tests/command/adopt" || fail "cannot build adopt"
  "$build/tests/command/adopt" "$@"
}

# orphaned OPTION...: fairlock and the guard of its command are killed. Orphans go to $nobody, a process
# that does not reap them, like process 1 of some containers: the dead stay zombies.
orphaned() {
  adopt sh -c 'out=$1; run=$2; shift 2; "$run" run "$@" a -- sh -c "echo \$\$ >\$0; exec sleep 60" "$out" & echo $! >"$out.run"; exec sleep 60' \
    - "$dir/command" "$fairlock" "$@" &
  nobody=$!
  eventually test -s "$dir/command"
  eventually test -s "$dir/command.run"
  run=$(cat "$dir/command.run")
  guard=$(guard_of "$run")
  start=$(now_ms)
  freeze "$run"
  kill -9 "$guard" "$run"
  eventually dead "$(cat "$dir/command")"
}

# The agent cannot know what else the command has started: the lease ends the hold.
test_fairlock_is_killed_and_nobody_can_tell() {
  orphaned --lease 5
  [ -e "/proc/$(cat "$dir/command")" ] || fail "somebody has reaped it: this test shows nothing"
  expect 0 "$fairlock" run -w 20 a true
  kill $nobody
}

# As process 1 of a container fairlock is given the orphans itself.
test_adopted_zombies_are_reaped() {
  adopt "$fairlock" run a -- sh -c '(true & echo $! >$0) & wait; i=0
    while [ -e /proc/$(cat $0) ] && [ $i -lt 400 ]; do i=$((i + 1)); sleep 0.05; done; cat /proc/$(cat $0)/stat >$0.stat' "$dir/orphan" 2>"$dir/err" &
  ends 1 $!
  [ -s "$dir/orphan" ] || fail "there was no orphan"
  [ ! -s "$dir/orphan.stat" ] || fail "a zombie: $(cat "$dir/orphan.stat")"
}

# Nor does an agent that was killed keep others from being reaped.
test_children_behind_an_agent_are_reaped() {
  FAIRLOCK=$fairlock bash -c 'sh -c "until [ -e \"\$0\" ]; do sleep 0.02; done; sleep 1 & echo \$! >\"\$1\"" "$0" "$1" &
    exec "$FAIRLOCK" run --on-lost ignore a -- sh -c ": >\"\$0\"; exec sleep 600" "$2"' "$dir/go" "$dir/child" "$dir/began" 2>"$dir/err" &
  running=$!
  eventually test -e "$dir/began"
  kill -9 "$(agent_of $running)"
  eventually grep -q 'continues without it' "$dir/err"
  touch "$dir/go"
  eventually test -s "$dir/child"
  eventually eval '[ ! -e "/proc/$(cat "$dir/child")" ]'
  kill $running
  ends 79 $running
}

[ $# -eq 0 ] || run_tests "$@"
run_tests renewed key_deleted what_a_lost_command_leaves lost_exit_code broken_just_before_the_end broken_is_told_at_once on_lost_ignore \
  on_lost_kill server_dies server_dies_no_grace server_freezes short_freeze_does_no_harm server_restarts_empty \
  fairlock_is_killed agent_is_killed agent_is_killed_in_line guard_is_killed_in_line both_are_killed \
  fairlock_is_stopped stopped_command_is_ended \
  handover_is_confirmed_first what_is_left_in_the_background agent_is_stopped agent_is_stopped_no_grace \
  agent_is_stopped_for_a_polite_command agent_is_stopped_and_ignored claim_is_gone_when_the_agent_wakes \
  claim_and_wait_are_gone_when_the_agent_wakes asked_for_a_claim_that_is_gone lost_before_the_command_begins \
  agent_is_stopped_at_least agent_wakes_up agent_is_stopped_when_granted \
  agent_is_stopped_in_line agent_wakes_up_in_line both_are_stopped \
  both_are_killed_with_children fairlock_is_killed_and_agent_stopped guard_ends_with_its_agent \
  agent_is_stopped_at_the_end fairlock_is_killed_and_nobody_can_tell adopted_zombies_are_reaped \
  release_in_an_outage release_is_refused_for_now fairlock_is_killed_in_an_outage wait_ends_in_an_outage outage_of_a_container \
  proc_of_another_namespace number_of_the_group_is_given_away children_behind_an_agent_are_reaped
