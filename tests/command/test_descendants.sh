#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# fairlock run: whatever the command has started, in process groups and sessions of its own, too, is
# ended with it: before anybody else holds the lock.
# shellcheck source=tests/support/lib.sh disable=SC2016,SC2046,SC2086,SC2089,SC2090,SC2119,SC2120,SC2154,SC1091,SC2317
set -u
. tests/support/lib.sh
side=4 # they sleep most of the time

# What the descendants do: they note their ids in $1, and sleep. In $1.stat is when each was started, because a busy
# machine gives an id to another process within a minute.
note='read -r it </proc/$$/stat; echo "$it" >>"$1.stat"; echo $$ >>"$1"'
work="$note; exec sleep 600"
stubborn="trap '' TERM INT; $note; while :; do sleep 600; done"
stopped="$note; kill -STOP \$\$; exec sleep 600"
many='for i in $(seq 200); do sleep 600 & read -r it </proc/$!/stat; echo "$it" >>"$1.stat"; echo $! >>"$1"; done; wait'
forking="trap '' TERM INT; [ -e \"\$1\" ] || exit; $note; sleep 0.05; sh -c \"\$forking\" - \"\$1\" &"
# prints those that run, with what the system says of them: sh -c "$running" FILE
running='while read -r it; do
    { read -r now <"/proc/${it%% *}/stat"; } 2>/dev/null || continue
    now=${now##*) }
    case $now in [ZX]*) continue ;; esac
    set -- ${it##*) }
    start=${20}
    set -- $now
    [ "$start" != "${20}" ] || echo "${it%% *} $now"
  done <"$0.stat"'
loop="$note; "'while :; do date +%s%N >"$1.now"; mv "$1.now" "$1.beat"; sleep 0.05; done'

# command_of KIND: a script that is given the file of ids, and the scripts above
command_of() {
  case $1 in
    timeout) echo 'timeout 600 sh -c "$work" - "$1" & wait' ;;
    session) echo 'setsid sh -c "$work" - "$1" & wait' ;;
    monitor) echo 'exec bash -c "set -m; sh -c \"\$work\" - \"\$1\" & wait" - "$1"' ;;
    script) echo 'script -qec "sh -c \"\$work\" - \"$1\"" /dev/null </dev/null >/dev/null; true' ;;
    twice) echo '(setsid sh -c "$work" - "$1" & ); sh -c "$work" - "$1"; true' ;;
    pipeline) echo 'sh -c "$work" - "$1" | sh -c "$work" - "$1" | cat' ;;
    many) echo 'setsid sh -c "$many" - "$1" & wait' ;;
    stubborn) echo 'setsid sh -c "$stubborn" - "$1" & wait' ;;
    forking) echo ': >"$1"; setsid sh -c "$forking" - "$1" & sleep 600' ;;
    stopped) echo 'setsid sh -c "$stopped" - "$1" & wait' ;;
  esac
}
kinds='timeout session monitor script twice pipeline many stubborn stopped forking'
export work stubborn stopped many forking loop running

# count_of KIND: how many note their ids
count_of() {
  case $1 in
    many) echo 200 ;;
    twice | pipeline | forking) echo 2 ;;
    *) echo 1 ;;
  esac
}

# begun KIND: all of its processes are there
begun() {
  [ -e "$dir/$1.ids" ] && [ "$(wc -l <"$dir/$1.ids")" -ge "$(count_of $1)" ] || return 1
  [ $1 != stopped ] || stopped "$(cat "$dir/$1.ids")"
}

# begin OPTION...: a command of each kind, under a lock of its own each, for a long $lease unless that has to end
lease=60
begin() {
  for kind in $kinds; do
    run --lease $lease "$@" $kind -- sh -c "$(command_of $kind)" - "$dir/$kind.ids" 2>"$dir/err.$kind" &
    echo $! >"$dir/$kind.run"
  done
  for kind in $kinds; do eventually begun $kind; done
}

# each COMMAND...: for each kind, with the id of its fairlock run behind it
each() {
  for kind in $kinds; do "$@" "$(cat "$dir/$kind.run")"; done
}

# none_runs KIND: of its processes
none_runs() {
  [ -z "$(sh -c "$running" "$dir/$1.ids")" ]
}

# over STATUS: each fairlock run ends so, and with it all that its command has started
over() {
  for kind in $kinds; do
    ends $1 "$(cat "$dir/$kind.run")"
    [ $1 = 137 ] || none_runs $kind || fail "$kind: its command has ended, and not all that it has started: $(sh -c "$running" "$dir/$kind.ids")"
  done
}

# succeeded STATUS: the same, and whoever holds the lock next finds none of them running
succeeded() {
  for kind in $kinds; do
    "$fairlock" run -w 60 $kind -- sh -c ': >"$0.next"; sh -c "$running" "$0.ids" >"$0.alive"' "$dir/$kind" 2>"$dir/err.next" &
    echo $! >"$dir/$kind.waiter"
  done
  over $1
  for kind in $kinds; do
    wait "$(cat "$dir/$kind.waiter")"
    [ -e "$dir/$kind.next" ] || fail "$kind: nobody got the lock: $(cat "$dir/err.next")"
    [ ! -s "$dir/$kind.alive" ] || fail "$kind: the next holder works beside it: $(cat "$dir/$kind.alive")"
  done
}

test_term() {
  begin
  each kill
  succeeded 143
}

test_int() {
  begin
  each kill -INT
  succeeded 130
}

test_fairlock_is_killed() {
  begin
  each kill -9
  succeeded 137
}

lose() {
  redis del $kind >/dev/null
}

# Whoever deletes a lock, or breaks it, lets the next holder begin before the last one can know.
test_lost() {
  begin
  each lose
  over 79
}

break_lock() {
  "$fairlock" break --yes $kind >/dev/null
}

test_broken() {
  begin
  each break_lock
  over 79
}

ask() {
  "$fairlock" break --ask $kind >/dev/null
}

test_asked() {
  begin --at-least 600
  each ask
  succeeded 143
}

# Nobody can renew: all have ended within the lease, while the server is still frozen. It froze 1.5 s after a
# renewal and 1.5 s before the next one, so that a busy machine has time for each.
test_server_freezes() {
  lease=9
  run --lease $lease beats -- sh -c 'setsid sh -c "$loop" - "$1" & wait' - "$dir/beats" &
  beating=$!
  begin
  eventually test -s "$dir/beats.beat"
  eventually lasts 7500 beats
  froze=$(now_ms)
  kill -STOP $server
  over 79
  ends 79 $beating
  still=$(sh -c "$running" "$dir/beats")
  [ -z "$still" ] || fail "it runs: $still"
  lived=$(($(cat "$dir/beats.beat") / 1000000 - froze))
  [ $lived -lt 9000 ] || fail "it lived for another $lived ms"
  kill -CONT $server
}

# slowly WHO: all that can find processes that have left the group needs 2 s to list them (slow.c), and WHO is stopped, so
# nobody can renew. SIGKILL begins earlier by what SIGTERM took: the last in a chain of processes ends within the lease.
slowly() {
  chain='if [ "$2" -gt 0 ]; then sh -c "$chain" - "$1" $(($2 - 1)); true; else exec sh -c "$loop" - "$1"; fi'
  export chain
  [ -e "$build/tests/command/slow.so" ] || make -s BUILD="$build" "$build/tests/command/slow.so" || fail "cannot build slow.so"
  LD_PRELOAD=$build/tests/command/slow.so run --lease 18 --kill-after 6 a -- sh -c 'trap "" TERM; setsid sh -c "$chain" - "$1" 9 & wait' \
    - "$dir/beats" 2>"$dir/err" &
  running=$!
  eventually test -s "$dir/beats.beat"
  eventually lasts 16500 a # as in server_freezes
  frozen=$([ $1 = agent ] && agent_of $running || echo $server)
  trap 'kill -CONT $frozen 2>/dev/null' EXIT
  left=$(($(now_ms) + $(redis pttl a)))
  kill -STOP $frozen
  ends 79 $running
  lived=$(($(cat "$dir/beats.beat") / 1000000 - left))
  [ $lived -lt 0 ] || fail "it lived for $lived ms after the lease"
}

test_signalling_takes_long() {
  slowly server
}

test_signalling_takes_long_without_agent() {
  slowly agent
}

kill_agent() {
  kill -9 "$(agent_of $1)"
}

test_agent_is_killed() {
  begin
  each kill_agent
  over 79
}

stop_agent() {
  agent=$(agent_of $1)
  frozen="$frozen $agent"
  kill -STOP "$agent"
}

test_agent_is_stopped() {
  frozen=
  trap 'kill -CONT $frozen 2>/dev/null' EXIT
  lease=6
  begin
  each stop_agent
  over 79
}

kill_guard() {
  kill -9 "$(guard_of $1)"
}

# The command ends with its guard, and the rest is given to fairlock.
test_guard_is_killed() {
  begin
  each kill_guard
  succeeded 71
}

# parent_of PID
parent_of() {
  sed 's/.*) //' "/proc/$1/stat" | cut -d ' ' -f 2
}

# The same where a shell that had children already has become fairlock. They are no business of ours, nor is what they
# start, though its parent has ended, so it was given to fairlock. One of them may hide among what the command has
# started: the lock is not released.
test_guard_is_killed_beside_others() {
  FAIRLOCK=$fairlock bash -c 'sleep 600 & echo $! >"$1"
    sh -c "sleep 600 & echo \$! >\"\$1.below\"; wait" - "$1" &
    sh -c "until [ -s \"\$1\" ]; do sleep 0.02; done; setsid sleep 600 & echo \$! >\"\$2.late\"" - "$2" "$1" &
    until [ -s "$1.below" ]; do sleep 0.02; done
    exec "$FAIRLOCK" run --lease 600 a -- sh -c "setsid sh -c \"\$work\" - \"\$1\" & wait" - "$2"' - "$dir/others" "$dir/a.ids" 2>"$dir/err" &
  running=$!
  eventually test -s "$dir/a.ids"
  eventually test -s "$dir/others.late"
  late=$(cat "$dir/others.late")
  eventually eval '[ "$(parent_of $late)" = $running ]'
  kill -9 "$(parent_of "$(parent_of "$(cat "$dir/a.ids")")")"
  ends 71 $running
  none_runs a || fail "the command's child runs without the lock"
  held a || fail "it was released beside others"
  for other in "$(cat "$dir/others")" "$(cat "$dir/others.below")" $late; do
    ! dead $other || fail "a child from before, or of one, was killed"
    kill $other
  done
}

# The agent alone cannot find what has left the command's group: it does not release beside it.
test_fairlock_and_guard_are_killed() {
  run --lease 600 a -- sh -c 'setsid sh -c "$work" - "$1" & wait' - "$dir/ids" 2>"$dir/err" &
  running=$!
  eventually test -s "$dir/ids"
  agent=$(agent_of $running)
  command=$(parent_of "$(cat "$dir/ids")")
  kill -9 $running "$(guard_of $running)"
  eventually dead "$command"
  eventually dead "$agent"
  held a || fail "it was released beside what the command has started"
  kill "$(cat "$dir/ids")"
}

stop_guard() {
  kill -STOP "$(guard_of $1)"
}

test_guard_cannot_be_stopped() {
  begin
  each stop_guard
  each kill
  succeeded 143
}

# Somebody else kills the command's own process, as the system does when memory is short.
test_command_is_killed() {
  for signal in KILL SEGV USR1; do
    rm -f "$dir/ids"
    run --lease 600 a -- sh -c '(setsid sh -c "$work" - "$1" & ); until [ -s "$1" ]; do sleep 0.02; done; kill -"$2" $$' \
      - "$dir/ids" $signal 2>"$dir/err" &
    ends $((128 + $(number_of $signal))) $!
    dead "$(cat "$dir/ids")" || fail "$signal: what it has started runs without the lock"
    unheld a || fail "the lock is still held"
  done
}

# The command handles the signal that asks for its end, and ends by itself: what it leaves is ended.
test_signal_is_handled() {
  for signal in TERM INT QUIT HUP; do
    rm -f "$dir/ids"
    run --lease 600 a -- sh -c '(setsid sh -c "$work" - "$1" & ); until [ -s "$1" ]; do sleep 0.02; done
      trap "exit 0" "$2"; : >"$1.ready"; while :; do sleep 0.05; done' - "$dir/ids" $signal 2>"$dir/err" &
    running=$!
    eventually test -e "$dir/ids.ready"
    rm "$dir/ids.ready"
    kill -$signal $running
    ends 0 $running
    dead "$(cat "$dir/ids")" || fail "$signal: what it has started runs without the lock"
    unheld a || fail "the lock is still held"
  done
}

# What a command leaves that ends by itself goes on, without the lock.
test_daemon() {
  expect 3 "$fairlock" run a -- sh -c 'setsid sh -c "$work" - "$1" & until [ -s "$1" ]; do sleep 0.02; done; exit 3' - "$dir/ids"
  unheld a || fail "the lock is still held"
  ! dead "$(cat "$dir/ids")" || fail "it was ended"
  kill "$(cat "$dir/ids")"
}

# leave OPTION...: a command that has ended and left something, for which --wait-all holds the lock
leave() {
  rm -f "$dir/ids" "$dir/over"
  run --lease 6 --wait-all "$@" a -- sh -c '(setsid sh -c "$work" - "$1" & ); until [ -s "$1" ]; do sleep 0.02; done; : >"$1.over"; exit 3' \
    - "$dir/ids" 2>"$dir/err" &
  waiting=$!
  eventually test -e "$dir/ids.over"
  rm "$dir/ids.over"
  held a || fail "it is not kept"
}

test_wait_all() {
  leave
  sleep 8
  expect 1 "$fairlock" run -n a true
  kill "$(cat "$dir/ids")"
  ends 3 $waiting
  unheld a || fail "the lock is still held"
  expect 5 "$fairlock" run --wait-all a -- sh -c 'exit 5'
}

test_wait_all_is_ended() {
  for signal in TERM INT QUIT HUP; do
    leave
    kill -$signal $waiting
    ends 3 $waiting
    dead "$(cat "$dir/ids")" || fail "$signal: it runs"
    unheld a || fail "the lock is still held"
  done
  leave
  redis del a >"$dir/out"
  ends 79 $waiting
  dead "$(cat "$dir/ids")" || fail "it runs without the lock"
  leave
  kill -9 $waiting
  expect 0 "$fairlock" run -w 20 a true
  dead "$(cat "$dir/ids")" || fail "it runs without the lock"
}

[ $# -eq 0 ] || run_tests "$@"
run_tests term int fairlock_is_killed lost broken asked server_freezes agent_is_killed agent_is_stopped \
  guard_is_killed guard_is_killed_beside_others guard_cannot_be_stopped fairlock_and_guard_are_killed command_is_killed signal_is_handled daemon wait_all wait_all_is_ended \
  signalling_takes_long signalling_takes_long_without_agent
