#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# fairlock run: exit statuses, the command's environment, conflict and time-out, signals, and the
# terminal.
# shellcheck source=tests/support/lib.sh disable=SC2016,SC2046,SC2086,SC2094,SC2154,SC1091,SC2317
set -u
. tests/support/lib.sh

test_status_of_command() {
  expect 0 "$fairlock" run a true
  expect 7 "$fairlock" run a -- sh -c 'exit 7'
  expect 69 "$fairlock" run a -- sh -c 'exit 69'
  for signal in TERM KILL SEGV; do
    expect $((128 + $(number_of $signal))) "$fairlock" run a -- sh -c "kill -$signal \$\$"
  done
  unheld a || fail "the lock is still held"
}

# alone PID: its command has ended
alone() {
  [ -z "$(children_of "$(guard_of "$1")")" ]
}

# kept_by COMMAND...: runs it with --at-least in the background, and waits until it has ended
kept_by() {
  run --lease 9 --at-least $least a -- sh -c ': >"$0"; "$@"' "$dir/began" "$@" 2>"$dir/err.kept" &
  keeping=$!
  eventually test -e "$dir/began"
  rm "$dir/began"
  eventually alone $keeping
}

# told WORDS: its messages have them
told() {
  eventually grep -qF -e "$1" "$dir/err.kept"
}

# --at-least holds the lock when the command has ended, however it ended, and renews it.
test_at_least() {
  began=$(now_ms)
  least=14s # longer than the lease, which is that long because on a busy machine a server is late for seconds
  kept_by sh -c 'exit 7'
  token=$(redis hget 'fairlock:{a}' token)
  held a || fail "it is not kept"
  expect 1 "$fairlock" run -n a true
  ends 7 $keeping
  [ $(($(now_ms) - began)) -ge 14000 ] || fail "it was kept for $(($(now_ms) - began)) ms"
  [ "$(redis hget 'fairlock:{a}' token)" = "$token" ] || fail "somebody else has had it"
  unheld a || fail "it is kept for ever"
  # it counts from when the lock was acquired, so this one has been kept for long enough
  expect 0 "$fairlock" run --verbose --at-least 0.2 a sleep 0.3
  ! grep 'stays held' "$dir/err" || fail "it was kept for longer"
  least="600 --verbose"
  kept_by true
  eventually grep -q 'a stays held for another [1-5][0-9][0-9]\.' "$dir/err.kept" || fail "$(cat "$dir/err.kept")"
  kill $keeping
  ends 0 $keeping
}

# Who asks the command to end, or fairlock when it has ended, does not have to wait.
test_at_least_is_ended() {
  least=600
  for signal in TERM INT QUIT HUP; do
    kept_by sh -c 'exit 7'
    kill -USR2 $keeping
    kill -USR1 $keeping
    sleep 0.1
    held a || fail "it is not kept"
    kill -$signal $keeping
    ends 7 $keeping
    unheld a || fail "it is still held"
    run --at-least 600 a -- sh -c 'trap "exit 3" '$signal'; : >"$0"; while :; do sleep 0.05; done' "$dir/began" &
    running=$!
    eventually test -e "$dir/began"
    rm "$dir/began"
    kill -$signal $running
    ends 3 $running
    unheld a || fail "it is still held"
  done
}

# A loss meanwhile is a loss, but there is no command to end.
test_at_least_is_lost() {
  least=600
  kept_by true
  redis del a >"$dir/out"
  ends 79 $keeping
  told 'a is lost: '
  told '; the command has ended'
  kept_by true
  kill -9 "$(agent_of $keeping)"
  ends 79 $keeping
  told 'the process that holds a was killed; the command has ended'
  # fairlock itself is killed: its agent holds the lock for the rest of that time
  least=5
  start=$(now_ms)
  kept_by true
  kill -9 $keeping
  expect 0 "$fairlock" run -w 60 a true
  [ $(($(now_ms) - start)) -ge 5000 ] || fail "it was kept for $(($(now_ms) - start)) ms"
  # also if the command was running; but not for whoever asks for the lock, or has asked for the end
  run --lease 9 --at-least 600 a -- sh -c 'trap "" TERM; : >"$0"; sleep 600' "$dir/began" &
  running=$!
  eventually test -e "$dir/began"
  kill -9 $running
  sleep 11
  held a || fail "it is not kept"
  expect 0 "$fairlock" break --ask -w 60 a
  rm "$dir/began"
  run --lease 9 --at-least 600 a -- sh -c 'trap ": >\"\$0.termed\"" TERM; : >"$0"; while :; do sleep 0.05; done' "$dir/began" &
  running=$!
  eventually test -e "$dir/began"
  kill $running
  eventually test -e "$dir/began.termed"
  kill -9 $running
  eventually unheld a
}

# Who asks for the lock meanwhile asks fairlock, as there is no command: --on-ask says whether it
# obeys. That is no loss.
test_at_least_is_asked() {
  who=$(id -un)@$(uname -n | sed 's/\..*//')
  least=600
  kept_by sh -c 'exit 7'
  expect 0 "$fairlock" break --ask -w 20 a
  printed 'a: the hold has ended'
  ends 7 $keeping
  told 'a is asked for by an operator: '"$who"'; it is released now'
  least="600 --on-ask ignore"
  kept_by sh -c 'exit 7'
  expect 1 "$fairlock" break --ask -w 2 a
  said 'a: its holder has not released it'
  told 'a is asked for by an operator: '"$who"'; it stays held until --at-least is over'
  kill $keeping
  ends 7 $keeping
  # nor is it kept when the command was asked to end
  for end in '3 term' '3 hup' '137 kill'; do
    run --at-least 600 --on-ask ${end#* } a -- sh -c 'trap "exit 3" TERM HUP; : >"$0"; while :; do sleep 0.05; done' "$dir/began" &
    running=$!
    eventually test -e "$dir/began"
    rm "$dir/began"
    expect 0 "$fairlock" break --ask -w 20 a
    ends ${end% *} $running
  done
}

test_command_cannot_be_executed() {
  expect 69 "$fairlock" run a /no/such/command
  said /no/such/command
  echo text >"$dir/file"
  expect 69 "$fairlock" run a "$dir/file"
  unheld a || fail "the lock is still held"
}

test_system_error() {
  expect 71 sh -c "ulimit -n 4; exec '$fairlock' run a true"
  said 'cannot make a pipe: '
  [ ! -e /dev/full ] || expect 71 sh -c "exec '$fairlock' status a >/dev/full"
}

# starts COMMAND...: it runs fairlock under a limit; true if the job could be run. A start that fails says what
# the system has refused, and asks the server for nothing: the lock would be held for its lease.
starts() {
  "$@" run --lease 600 -n a -- true >"$dir/out" 2>"$dir/err"
  status=$?
  unheld a || fail "$*: the lock is left: $(redis hgetall a)"
  [ $status -ne 0 ] || return 0
  [ ! -e "$dir/limits" ] || grep -qE 'cannot (make a pipe|start a process|start a thread): ' "$dir/err" ||
    fail "$*: exit status $status: $(cat "$dir/err")"
  return 1
}

test_start_that_fails() {
  expect 0 "$fairlock" run a true # the server knows the scripts
  limit=4
  until starts sh -c 'ulimit -n $0; exec "$@"' $limit "$fairlock"; do
    limit=$((limit + 1))
    [ $limit -lt 64 ] || fail "it needs more than 64 descriptors: $(cat "$dir/err")"
  done
  [ "$(id -u)" = 0 ] && command -v setpriv >"$dir/out" || return 0
  chmod 755 "$top" "$dir"
  cp "$fairlock" "$dir/fairlock" && chmod 755 "$dir/fairlock"
  # each time a user who has no other process, nor one that has just ended
  user=$((100000 + $$))
  : >"$dir/limits"
  limit=1
  until starts setpriv --reuid=$((user + limit)) --regid=65534 --clear-groups prlimit --nproc=$limit "$dir/fairlock"; do
    cat "$dir/err" >>"$dir/limits"
    limit=$((limit + 1))
    [ $limit -lt 16 ] || fail "it needs more than 16 processes: $(cat "$dir/err")"
  done
  grep -q 'cannot start a process: ' "$dir/limits" || fail "$(cat "$dir/limits")"
  grep -q 'cannot start a thread: ' "$dir/limits" || fail "$(cat "$dir/limits")"
}

# killed_by SIGNAL COMMAND...: the signal has to end it, which a shell does not tell from an exit status
killed_by() {
  number=$(number_of $1)
  shift
  python subprocess -c 'import subprocess, sys; sys.exit(subprocess.run(sys.argv[2:]).returncode != -int(sys.argv[1]))' \
    $number env --default-signal "$@" 2>"$dir/err" || fail "$number does not end $*: $(cat "$dir/err")"
}

# Whoever was ended by a signal ends by it, so that a shell ends its script; without a core of its own.
test_ends_by_signal() {
  mkdir "$dir/cores"
  cd "$dir/cores" || fail "no folder"
  for signal in INT TERM HUP QUIT USR1 KILL SEGV; do
    killed_by $signal sh -c 'ulimit -c unlimited; exec "$0" run a -- sh -c "ulimit -c 0; kill -$1 \$\$"' "$fairlock" $signal
    unheld a || fail "the lock is still held"
  done
  killed_by TERM "$fairlock" run --at-least 0.5 --metrics-file "$dir/metrics" a -- sh -c 'kill $$'
  grep -q '^fairlock_run_exit_status.* 143$' "$dir/metrics" || fail "$(cat "$dir/metrics")"
  redis hset a somebody:1 1 >"$dir/out"
  for signal in INT TERM HUP QUIT USR2; do
    (eventually waits 1 a; kill -$signal "$(cat "$dir/waiter")") &
    killed_by $signal sh -c 'echo $$ >"$1"; ulimit -c unlimited; exec "$0" run a true' "$fairlock" "$dir/waiter"
    waits 0 a || fail "the queue was not left"
  done
  rmdir "$dir/cores" || fail "a core file: $(ls)"
}

test_environment() {
  expect 0 "$fairlock" run 'a b' -- sh -c 'echo "$FAIRLOCK_NAME,$FAIRLOCK_HOLDER,$FAIRLOCK_TOKEN"; redis-cli -p '"$port"' hgetall "a b"'
  first=$(sed 1q "$dir/out")
  owner=$(echo "$first" | cut -d , -f 2)
  [ "$(echo "$first" | cut -d , -f 1)" = 'a b' ] || fail "name: $first"
  [ "$(sed -n 2p "$dir/out")" = "$owner" ] || fail "the owner is not the holder: $(cat "$dir/out")"
  # who it is can be read
  FAIRLOCK_HOLDER='' "$fairlock" run 'a b' -- sh -c 'echo $FAIRLOCK_HOLDER' >"$dir/out" &
  parent=$!
  ends 0 $parent
  read -r owner <"$dir/out"
  host=$(uname -n | sed 's/\..*//; s/[^A-Za-z0-9]/-/g' | cut -c 1-28)
  case $owner in
    "$host.$parent".*) ;;
    *) fail "not the id of process $parent on $host: $owner" ;;
  esac
  expect 0 "$fairlock" run 'a b' -- sh -c 'echo "$FAIRLOCK_TOKEN"'
  [ "$(cat "$dir/out")" -gt "$(echo "$first" | cut -d , -f 3)" ] || fail "the token does not grow"
}

# seen_url URL: what the command gets as FAIRLOCK_URL, which is not used here because of --url
seen_url() {
  FAIRLOCK_URL=$1 "$fairlock" run --url redis://127.0.0.1:$port a -- sh -c 'echo "$FAIRLOCK_URL"'
}

test_password_is_not_passed_on() {
  redis config set requirepass se@c/ret >"$dir/out"
  password=se@c/ret
  expect 0 env FAIRLOCK_PASSWORD="$password" "$fairlock" run a env
  ! grep -e PASSWORD -e ret "$dir/out" || fail "in its environment"
  printed "FAIRLOCK_URL=redis://127.0.0.1:$port"
  expect 0 env FAIRLOCK_URL="redis://:se%40c%2Fret@127.0.0.1:$port/0" "$fairlock" run a env
  ! grep -e 'c%2Fret' "$dir/out" || fail "in its environment"
  grep -qx "FAIRLOCK_URL=redis://127.0.0.1:$port/0" "$dir/out" || fail "it does not know the server: $(cat "$dir/out")"
  expect 0 env FAIRLOCK_URL="redis://default:se@c%2Fret@127.0.0.1:$port" "$fairlock" run a env
  grep -qx "FAIRLOCK_URL=redis://default@127.0.0.1:$port" "$dir/out" || fail "it does not know the server: $(cat "$dir/out")"
  # a nested one is told to give a password of its own, and needs no more than that
  expect 77 env FAIRLOCK_PASSWORD="$password" "$fairlock" run a "$fairlock" status b
  said NOAUTH
  said 'a fairlock run does not pass its password on'
  said '--password-file'
  expect 77 env FAIRLOCK_PASSWORD="$password" "$fairlock" run a "$fairlock" run b true
  said 'a fairlock run does not pass its password on'
  expect 64 env FAIRLOCK_PASSWORD="$password" FAIRLOCK_URL="redis://default@127.0.0.1:$port" "$fairlock" run a "$fairlock" run b true
  said 'a fairlock run does not pass its password on'
  for words in 'run b true' 'status b'; do
    expect 77 "$fairlock" $words # not nested
    ! grep -q 'pass its password on' "$dir/err" || fail "$(cat "$dir/err")"
    expect 77 env FAIRLOCK_PASSWORD="$password" "$fairlock" run a "$fairlock" --url redis://:wrong@127.0.0.1:$port $words # it has one
    ! grep -q 'pass its password on' "$dir/err" || fail "$(cat "$dir/err")"
  done
  printf '%s\n' "$password" >"$dir/password"
  chmod 600 "$dir/password"
  expect 0 env FAIRLOCK_PASSWORD="$password" "$fairlock" run a "$fairlock" run --password-file "$dir/password" b true
}

test_url_without_password() {
  for url in redis://h redis://h:1/2 redis://user@h unix:///a@b:c 'unix:///p?db=2' http://bad '' redis://h:x; do
    [ "$(seen_url "$url")" = "$url" ] || fail "$url has become $(seen_url "$url")"
  done
  [ "$(seen_url unix://u:p@/a@b)" = unix://u@/a@b ] || fail "$(seen_url unix://u:p@/a@b)"
  [ "$(seen_url unix://:p@/a:b)" = unix:///a:b ] || fail "$(seen_url unix://:p@/a:b)"
  for url in redis://:p/secret@h redis://u:p#secret@h 'redis://:secret%@h' rediss://u:secret@h u:secret@h; do
    case $(seen_url "$url") in *secret*) fail "$(seen_url "$url")" ;; esac
  done
}

test_stdin() {
  head -c 100000 /dev/urandom >"$dir/data"
  "$fairlock" run a cat <"$dir/data" | cmp - "$dir/data" || fail "data was changed"
  seq 3 | "$fairlock" run a -- sh -c 'read -r x; read -r y; echo $x$y' >"$dir/out"
  printed 12
}

test_pipe_closes_with_command() {
  start=$(now_ms)
  "$fairlock" run a -- sh -c 'echo x' | cat >/dev/null
  [ $(($(now_ms) - start)) -lt 10000 ] || fail "the output stayed open"
}

# Descriptors that the caller has left open go to the command, and to no process that may live
# longer.
test_agent_closes_what_it_inherits() {
  for options in '' -s; do
    run $options a sleep 60 3>"$dir/inherited" 9>&3 &
    command=$!
    eventually "$fairlock" status --quiet a
    agent=$(agent_of $command)
    guard=$(guard_of $command)
    [ "$(readlink "/proc/$command/fd/9")" = "$dir/inherited" ] || fail "this test shows nothing"
    for process in $agent $guard; do
      for descriptor in "/proc/$process/fd"/*; do
        [ "$(readlink "$descriptor")" != "$dir/inherited" ] || fail "$process has it open"
      done
    done
    kill $command
    ends 143 $command
  done
}

# None of our pipes and sockets takes the place of a closed standard descriptor, and the command gets
# it closed.
test_closed_standard_descriptors() {
  : >"$dir/in"
  for closed in '<&-' '>&-' '2>&-' '<&- >&-' '<&- 2>&-' '>&- 2>&-' '<&- >&- 2>&-'; do
    for options in '' --verbose '--at-least 1'; do
      eval "'$fairlock' run $options a -- sh -c 'ls -l /proc/\$\$/fd >\"\$0\"; exit 4' '$dir/fds'" \
        "<'$dir/in' >'$dir/out' 2>'$dir/err' $closed"
      status=$?
      [ $status -eq 4 ] || fail "exit status $status instead of 4: run $options $closed: $(cat "$dir/err")"
      ! grep -E ' [012] -> (pipe|socket|/dev/null)' "$dir/fds" || fail "the command has it: run $options $closed"
    done
  done
}

test_shell() {
  expect 3 "$fairlock" run -c 'echo "$0 is it"; exit 3' a
  printed 'is it'
  expect 3 "$fairlock" run a -c 'exit 3'
  expect 5 env SHELL=/bin/sh "$fairlock" run --command='exit 5' a
  expect 69 env SHELL=/no/shell "$fairlock" run a -c true
  expect 64 "$fairlock" run a -c 'echo' more
  expect 64 "$fairlock" run a -w 5 true
  said "options come before the NAME, and -w after it"
  expect 69 "$fairlock" run a -- -c true
}

test_conflict() {
  run a sleep 30 &
  holder=$!
  eventually held a
  expect 1 "$fairlock" run -n a true
  expect 9 "$fairlock" run -n -E 9 a true
  expect 0 "$fairlock" run -n -E 0 a false
  expect 1 "$fairlock" run -w 0 a true
  expect 1 "$fairlock" run --wait=0.2 a true
  expect 8 "$fairlock" run -w .2 --conflict-exit-code=8 a true
  waits 0 a || fail "the queue was not left"
  kill $holder
  ends 143 $holder
  expect 0 "$fairlock" run -n a true
}

# Who holds it, since when, and how many wait, is one line, and not said with -q.
test_conflict_names_the_holder() {
  run --id 'w1.7' a sleep 600 &
  holder=$!
  eventually held a
  owner=$(redis hkeys a)
  since=$(date -d "@$(($(redis hget 'fairlock:{a}' token) / 1000000))" '+%F %T')
  expect 1 "$fairlock" run -n a true
  [ "$(cat "$dir/err")" = "fairlock: a is held by $owner since $since, 0 waiting" ] || fail "$(cat "$dir/err")"
  run a true &
  eventually waits 1 a
  expect 7 "$fairlock" run -w 0.2 -E 7 a true
  [ "$(cat "$dir/err")" = "fairlock: a is held by $owner since $since, 1 waiting" ] || fail "$(cat "$dir/err")"
  for words in '-n -q' '-w 0.1 --quiet'; do
    expect 1 "$fairlock" run $words a true
    [ ! -s "$dir/err" ] || fail "with -q: $(cat "$dir/err")"
  done
  ends_with_us $holder
}

# Others than one fairlock: several who share it, a Redisson client, an id that is no text, nobody, and a server that
# says nothing.
test_conflict_with_others() {
  for i in 1 2 3; do
    run -s --id sharer$i a sleep 600 &
    eventually sharers $i
  done
  expect 1 "$fairlock" run -n a true
  grep -q '^fairlock: a is held by sharer[123][^ ]* since .* and 2 more, 0 waiting$' "$dir/err" || fail "$(cat "$dir/err")"
  redis hset b "$(printf '8a0c:1\033[2J')" 1 >"$dir/set"
  redis pexpire b 600000 >"$dir/set"
  expect 1 "$fairlock" run -n b true
  [ "$(cat "$dir/err")" = 'fairlock: b is held by 8a0c:1\x1b[2J, 0 waiting' ] || fail "$(cat "$dir/err")"
  refused='*3\r\n:0\r\n:5000\r\n:1700000000000\r\n'
  fake_server SUBSCRIBE "-ERR no\r\n" EVALSHA "$refused" EVALSHA '*6\r\n:4294967296\r\n:-2\r\n:0\r\n:0\r\n:0\r\n$0\r\n\r\n'
  expect 1 "$fairlock" run -n --url redis://127.0.0.1:$other a true
  [ "$(cat "$dir/err")" = 'fairlock: a is free by now, 0 waiting' ] || fail "$(cat "$dir/err")"
  fake_server SUBSCRIBE "-ERR no\r\n" EVALSHA "$refused" EVALSHA ''
  expect 1 timeout 60 "$fairlock" run -n --url redis://127.0.0.1:$other a true
  [ ! -s "$dir/err" ] || fail "$(cat "$dir/err")"
}

sharers() {
  [ "$("$fairlock" status --json a | jq .holder_count)" = "$1" ]
}

test_claim() {
  run a sleep 30 &
  holder=$!
  eventually held a
  run --claim 1.5 -w 60 a true &
  waiter=$!
  eventually named_claim
  kill $holder
  ends 143 $holder
  ends 0 $waiter
}

# The note of the waiter names it.
named_claim() {
  redis hvals 'fairlock:{a}' | grep -q ' 5000 C1500$'
}

test_waits_its_turn() {
  run a sleep 30 &
  holder=$!
  eventually held a
  for i in 1 2 3; do
    run -w 60 a -- sh -c "echo $i >>'$dir/order'" &
    last=$!
    eventually waits $i a
  done
  expect 1 "$fairlock" run -n a true
  kill $holder
  ends 143 $holder
  ends 0 $last
  [ "$(tr '\n' ' ' <"$dir/order")" = '1 2 3 ' ] || fail "order: $(cat "$dir/order")"
}

# It would wait for itself; also through others.
test_nested_run_of_the_same_lock() {
  for wait in '' '-w 30' '--wait=1000'; do
    expect 80 timeout 60 "$fairlock" run a -- "$fairlock" run $wait a true
    said 'a is held by the fairlock run that this one runs under: it would wait for itself'
  done
  expect 80 timeout 60 "$fairlock" run a "$fairlock" run b "$fairlock" run a true
  expect 80 timeout 60 "$fairlock" run 'a b' sh -c '"$0" run --url "unix://$1" "a b" true' "$fairlock" "$dir/$port/socket"
  expect 1 timeout 60 "$fairlock" run a "$fairlock" run -n a true
  waits 0 a || fail "it stands in the queue"
  unheld a || fail "the lock is still held"
}

test_nested_run_of_other_locks() {
  expect 5 timeout 60 "$fairlock" run a "$fairlock" run b sh -c 'exit 5'
  expect 5 timeout 60 "$fairlock" run a "$fairlock" run --url redis://127.0.0.1:$port/1 a sh -c 'exit 5'
  first=$port
  start_server
  expect 5 timeout 60 "$fairlock" run a "$fairlock" run --url redis://127.0.0.1:$first a sh -c 'exit 5'
  stop_server
  port=$first
  FAIRLOCK_URL=redis://127.0.0.1:$port
  # the hold that it runs under has ended, so it gets its turn
  expect 79 timeout 60 "$fairlock" run --lease 30 --on-lost ignore a sh -c 'redis-cli -p "$0" del a; "$1" run a true && touch "$2"' \
    $port "$fairlock" "$dir/had_its_turn"
  [ -e "$dir/had_its_turn" ] || fail "refused, or it waited: $(cat "$dir/err")"
  # somebody else's hold is waited for
  run a sleep 60 &
  holder=$!
  eventually held a
  expect 1 timeout 60 "$fairlock" run b "$fairlock" run -w 0.5 a true
  kill $holder
  ends 143 $holder
}

test_signals_are_forwarded() {
  run a -- sh -c 'for s in INT HUP QUIT USR1 USR2; do trap "echo $s >>$0" $s; done; trap "exit 42" TERM
    echo ready >>$0; while :; do sleep 0.05; done' "$dir/got" 2>/dev/null &
  command=$!
  eventually grep -q ready "$dir/got"
  for signal in INT HUP QUIT USR1 USR2; do
    kill -$signal $command
    eventually grep -q $signal "$dir/got"
  done
  kill -TERM $command
  ends 42 $command
  unheld a || fail "the lock is still held"
}

test_signals_reach_the_whole_group() {
  run a -- sh -c 'sleep 60 & echo $! >$0; wait' "$dir/grandchild" &
  command=$!
  eventually test -s "$dir/grandchild"
  kill -INT $command
  ends 130 $command
  # a shell starts background jobs with SIGINT ignored: the signal was sent, and had no effect
  kill "$(cat "$dir/grandchild")" 2>/dev/null
  run a sleep 60 &
  command=$!
  eventually held a
  kill -HUP $command
  ends 129 $command
}

# The masks that a status file shows, without the signals from 32 on, which are the C library's own.
masks() {
  tr -dc '0-9a-f\n' <"$dir/out" | while read -r mask; do printf '%x ' $((0x$(printf %s "$mask" | tail -c 16) & 0x7fffffff)); done
}

test_command_gets_signals_as_they_were() {
  expect 0 env --default-signal --ignore-signal=HUP,USR1 "$fairlock" run a -- sed -n 's/^SigIgn://p' /proc/self/status
  [ "$(masks)" = '201 ' ] || fail "ignored: $(cat "$dir/out")"
  expect 0 env --default-signal "$fairlock" run a -- sed -n 's/^Sig\(Ign\|Blk\)://p' /proc/self/status
  [ "$(masks)" = '0 0 ' ] || fail "not clean: $(cat "$dir/out")"
}

test_signals_end_the_wait() {
  run a sleep 60 &
  holder=$!
  eventually held a
  for signal in INT TERM HUP QUIT USR1 USR2; do
    run a true &
    waiter=$!
    eventually waits 1 a
    kill -$signal $waiter
    ends $((128 + $(number_of $signal))) $waiter
    waits 0 a || fail "$signal left an entry in the queue"
    [ "$(redis hlen 'fairlock:{a}')" -le 4 ] || fail "$signal left: $(redis hgetall 'fairlock:{a}')"
  done
  env --default-signal --ignore-signal=HUP "$fairlock" run a true &
  waiter=$!
  eventually waits 1 a
  kill -HUP $waiter
  sleep 0.3
  waits 1 a || fail "an ignored signal has ended the wait"
  kill -TERM $waiter
  ends 143 $waiter
  kill $holder
  ends 143 $holder
}

test_killed_waiter_leaves_the_queue() {
  run a sleep 60 &
  holder=$!
  eventually held a
  run a true &
  waiter=$!
  eventually waits 1 a
  kill -9 $waiter
  eventually waits 0 a
  kill $holder
  ends 143 $holder
}

# A terminal of its own, fed from stdin: tty SHELL-COMMAND
tty() {
  SHELL=/bin/sh script -qefc "$1" /dev/null >"$dir/out"
}

# types LINE: for tty, once $dir/reads is there; its end comes when the line has been read
types() {
  (eventually test -e "$dir/reads")
  echo "$1"
  (eventually grep -q "got $1" "$dir/out")
  rm "$dir/reads"
}

test_terminal_is_lent() {
  types hello | tty "'$fairlock' run a -- sh -c ': >$dir/reads; read -r x; echo got \$x'"
  printed 'got hello'
  types again | tty "'$fairlock' run a -- sh -c ': >$dir/reads; read -r x; echo got \$x' | cat; read -r y; echo also \$y" &
  ends 0 $!
  printed 'got again'
}

test_terminal_comes_back() {
  types hello | tty "'$fairlock' run a true; : >$dir/reads; read -r x; echo got \$x"
  printed 'got hello'
}

test_terminal_interrupts() {
  # Ctrl-C ends the command, and the script around it as well
  for option in --verbose --at-least=600; do
    rm -f "$dir/started"
    ( (eventually test -s "$dir/started"); printf '\003'; (eventually unheld a)) |
      tty "sh -c \"'$fairlock' run $option a sh -c 'echo yes >$dir/started; exec sleep 30'; echo not interrupted\"; true"
    ! grep -q 'not interrupted' "$dir/out" || fail "the script went on"
    eventually unheld a
  done
}

# The same for bash, which goes on unless a signal has ended its child: while the command runs, and
# while it waits.
test_bash_is_interrupted() {
  printf '%s\n' "'$fairlock' run a sh -c 'echo yes >\"$dir/started\"; exec sleep 30'" 'echo "not interrupted"' >"$dir/two_steps"
  ( (eventually test -s "$dir/started"); printf '\003'; (eventually unheld a)) | tty "bash '$dir/two_steps'; true"
  ! grep 'not interrupted' "$dir/out" || fail "the script went on"
  redis hset a somebody:1 1 >"$dir/out"
  ( (eventually waits 1 a); printf '\003'; (eventually waits 0 a)) | tty "bash '$dir/two_steps'; true"
  ! grep 'not interrupted' "$dir/out" || fail "the script went on"
}

# As a shell does it: the job is stopped, and continued in the foreground. The lock stays held, for
# longer than its lease.
test_job_control() {
  cat >"$dir/jobs" <<EOF
set -m
'$fairlock' run --lease 6 a -- sh -c 'echo \$\$ >"$dir/command"; until [ -e "$dir/end" ]; do sleep 0.05; done; exit 6' &
echo \$! >"$dir/run"
until [ -e "$dir/foreground" ]; do sleep 0.05; done
fg
echo "status \$?" >"$dir/status"
EOF
  (eventually test -s "$dir/status") | tty "sh '$dir/jobs'" &
  eventually test -s "$dir/command"
  eventually test -s "$dir/run"
  kill -TSTP "$(cat "$dir/run")"
  eventually stopped "$(cat "$dir/command")"
  eventually stopped "$(cat "$dir/run")"
  sleep 8
  expect 1 "$fairlock" run -n a true
  touch "$dir/foreground"
  eventually continued "$(cat "$dir/command")"
  touch "$dir/end"
  eventually test -s "$dir/status"
  [ "$(cat "$dir/status")" = 'status 6' ] || fail "$(cat "$dir/status")"
  unheld a || fail "the lock is still held"
}

[ $# -eq 0 ] || run_tests "$@"
run_tests status_of_command at_least at_least_is_ended at_least_is_lost at_least_is_asked command_cannot_be_executed \
  system_error start_that_fails ends_by_signal environment password_is_not_passed_on url_without_password stdin pipe_closes_with_command \
  agent_closes_what_it_inherits closed_standard_descriptors shell conflict conflict_names_the_holder conflict_with_others claim waits_its_turn \
  nested_run_of_the_same_lock nested_run_of_other_locks signals_are_forwarded signals_reach_the_whole_group \
  command_gets_signals_as_they_were signals_end_the_wait killed_waiter_leaves_the_queue terminal_is_lent \
  terminal_comes_back terminal_interrupts bash_is_interrupted job_control
