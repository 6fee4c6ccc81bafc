#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Which server, as which user, and what happens when it does not serve us; mistakes in the command
# line.
# shellcheck source=tests/support/lib.sh disable=SC2016,SC2046,SC2086,SC2154,SC1091,SC1003,SC2317,SC2094
set -u
. tests/support/lib.sh
. tests/command/rights.sh
side=4 # they sleep most of the time

# misuse WORDS ARGUMENT...: a usage error that says WORDS
misuse() {
  words=$1
  shift
  expect 64 "$fairlock" "$@"
  said "$words"
  [ ! -s "$dir/out" ] || fail "output for a usage error: $(cat "$dir/out")"
}

test_usage() {
  misuse 'a subcommand is missing'
  misuse "no subcommand 'lock'" lock
  misuse 'NAME of a lock is missing' run
  misuse 'NAME of a lock is missing' status
  misuse 'NAME of a lock is missing' watch
  misuse 'NAME of a lock is missing' break
  misuse 'no COMMAND' run a
  misuse 'no COMMAND' run a --
  misuse 'there is no option -y' run -y a true
  misuse 'there is no option --unknown' run --unknown=3 a true
  misuse 'there is no option --json' run --json a true
  misuse '-n cannot come before the subcommand' -n run a true
  misuse '--json cannot come before the subcommand' --json status a
  misuse '--lease cannot come before the subcommand' --lease 3 run a true
  misuse 'a subcommand is missing' --url redis://h
  misuse 'a subcommand is missing' --insecure
  misuse 'a subcommand is missing' --url
  misuse "no subcommand 'lock'" --url redis://h lock
  misuse '--nonblock takes no value' run --nonblock=1 a true
  misuse '-w needs a value' run -w
  misuse '--lease needs a value' run --lease
  misuse '-c needs a value' run a -c
  misuse '-c takes one STRING' run -c true a true
  misuse '-x holds the lock exclusively, -s shares it' run -s -x a true
  misuse '-x holds the lock exclusively, --limit shares it' run -x --limit 2 a true
  for bad in '' x 0 1001 -1 1.5 00001; do misuse '--limit needs a number from 1 to 1000' run --limit "$bad" a true; done
  misuse 'give one of them' run -n -w 1 a true
  for bad in '' x 1x -1 1e3 0x10 ' 1' 1,5 . inf nan s .s 1ss 1s1 1m; do misuse 'needs a number of seconds' run -w "$bad" a true; done
  misuse 'needs 0 to 1073741 seconds' run -w 1073742 a true
  misuse 'needs 0 to 1073741 seconds' run -w 99999999999999999999999999999999 a true
  misuse '--lease needs 0.1 to' run --lease 0.09 a true
  misuse '--claim needs 1 to 5' run --claim 0.9 a true
  misuse '--claim needs 1 to 5' run --claim 5.1 a true
  misuse '--kill-after has to fit' run --lease 3 --kill-after 1.001 a true
  misuse '--kill-after has to fit' run --kill-after 20 a true
  misuse '--on-lost needs' run --on-lost stop a true
  for bad in '' x -1 256 1000 1.5; do
    misuse 'from 0 to 255' run -E "$bad" a true
    misuse 'from 0 to 255' run --lost-exit-code "$bad" a true
  done
  for bad in '' x -1 101 1000 1.5; do misuse '--replicas needs a number from 0 to 100' run --replicas "$bad" a true; done
  expect 64 env FAIRLOCK_REPLICAS=x "$fairlock" run a true
  said "FAIRLOCK_REPLICAS needs a number from 0 to 100, not 'x'"
  expect 0 env FAIRLOCK_REPLICAS=x "$fairlock" run --replicas 0 a true
  expect 0 env FAIRLOCK_REPLICAS= "$fairlock" run a true
  misuse 'there is no option --replicas' status --replicas 1 a
  misuse 'one lock at a time' break a b
  misuse 'one lock at a time' watch a b
  misuse '-i needs' watch -i 0 a
  expect 0 "$fairlock" run -w 60. --lease 30.5 --kill-after .0001 --at-least .1s a true
}

test_help() {
  for words in --help -h help 'help run' 'run -h' 'status -h' 'watch -h' 'list -h' 'break -h' 'history -h' 'load -h' 'run -n -h a' 'run --help' 'status --help' 'watch --help' 'list --help' 'break --help' 'history --help' 'load --help' 'help break' 'help load'; do
    expect 0 "$fairlock" $words
    printed 'usage: fairlock'
    [ ! -s "$dir/err" ] || fail "messages: $(cat "$dir/err")"
  done
  for option in --version -V; do
    expect 0 "$fairlock" $option
    grep -qx "fairlock $version, format [0-9]*" "$dir/out" || fail "$(cat "$dir/out")"
  done
}

# A status that any subcommand may end with is in the help of each.
test_help_names_statuses() {
  expect 0 "$fairlock" --help
  printed 'fairlock break [--token N|--holder ID] [--ask|--yes]'
  for words in status list watch 'break --yes'; do
    run a sleep 60 2>"$dir/err.holder" &
    eventually held a
    timeout 60 "$fairlock" $words a >/dev/full 2>"$dir/err"
    status=$?
    [ $status -eq 71 ] || fail "$words: exit status $status instead of 71"
    kill $! 2>"$dir/err"
    wait $!
  done
  for words in hold acquire release status list watch break history load; do
    expect 0 "$fairlock" $words --help
    for status in 64 66 71 75 76 77 78; do
      sed -n '/^Exit status/,$p' "$dir/out" | grep -q "\<$status\>" || fail "$words --help does not name $status"
    done
  done
}

# Each option of the help is in the manual, and each exit status.
test_manual() {
  sed 's/\\//g' boards/fairlock/fairlock.1 >"$dir/manual"
  for words in '' run hold acquire release status watch list break history load; do
    for option in $("$fairlock" $words --help | grep -o -e ' --[a-z-]*' | sort -u); do
      grep -q -e "^\.B[IR]* .*$option" "$dir/manual" || fail "$option of fairlock $words is not in the manual"
    done
  done
  grep -qx '\.BR -V ", " --version' "$dir/manual" || fail "--version is not in the manual"
  for status in 1 64 66 69 71 75 76 77 78 79 80 82 83; do
    grep -q "^\.B $status\$" boards/fairlock/fairlock.1 || fail "exit status $status is not in the manual"
  done
  if ! command -v man >"$dir/out"; then return; fi
  LC_ALL=C.UTF-8 MANROFFSEQ='' man --warnings -l -Tutf8 boards/fairlock/fairlock.1 >"$dir/out" 2>"$dir/err" </dev/null
  [ ! -s "$dir/err" ] || fail "$(cat "$dir/err")"
}

test_bad_urls() {
  for url in http://h redis: redis:// redis://:1 'redis://h:' redis://h:0 redis://h:65536 redis://h:x redis://::1 'redis://[::1' \
    'redis://[::1]x' redis://h/x redis://h/-1 redis://h/1/2 'redis://h?x=1' 'redis://h#x' redis://%zz redis://%00 redis://h%4 \
    redis://u:a/b@h redis://a,b redis+sentinel://h redis+sentinel://h/ \
    redis+sentinel:///s redis+sentinel://h,/s redis+sentinel://,h/s redis+sentinel://h:0/s redis+sentinel://h/s/x redis+sentinel://h/s/1/2 \
    redis+sentinel://h/%zz redis+sentinel://::1/s 'redis+sentinel://h/s?x=1' redis+sentinel://h%2Ch/s redis+sentinel://h%3A1/s \
    redis+sentinel://u:a/b@h/s "redis+sentinel://h,$(printf '%0256d' 1)/s" redis+cluster:// redis+cluster://h,,h redis+cluster://h:x,h \
    redis+cluster://h/s redis+cluster://[::1 'redis+cluster://[a%2Cb]' "redis+cluster://a$(printf ',%.0s' $(seq 900) | sed 's/,/,a/g')" \
    redis+other://h valkey+sentinel://h valkey: unix: unix://path unix:// 'unix:///p?x=1' 'unix:///p#x' "unix:///$(printf '%0300d' 1)" 127.0.0.1:6379 \
    "redis://$(printf '%03000d' 1)"; do
    expect 64 "$fairlock" status --url "$url" a
    said 'the URL in --url cannot be used'
    said 'A URL looks like'
    expect 64 env FAIRLOCK_URL="$url" "$fairlock" run a true
    said 'the URL in FAIRLOCK_URL cannot be used'
  done
  for url in rediss://h rediss+sentinel://h/s rediss+cluster://h valkeys://h valkeys+cluster://h; do
    expect 64 "$fairlock" status --url $url a
    said "built without TLS"
    said 'make TLS=openssl'
  done
}

test_urls() {
  unset FAIRLOCK_URL
  expect 0 "$fairlock" run --url redis://127.0.0.1:$port a true
  expect 0 "$fairlock" run --url redis://127.0.0.1:$port/ a true
  expect 0 "$fairlock" run --url redis://%31%32%37.0.0.1:$port a true
  expect 0 "$fairlock" run --url=redis://localhost:$port a true
  expect 0 env FAIRLOCK_URL=redis://127.0.0.1:$port "$fairlock" run a true
  expect 0 env FAIRLOCK_URL=http://bad "$fairlock" run --url redis://127.0.0.1:$port a true
  expect 0 "$fairlock" run --url valkey://127.0.0.1:$port a true
  expect 76 "$fairlock" run --url redis+cluster://127.0.0.1:$port a true # which it has to be
  expect 0 "$fairlock" run --url unix://$dir/$port/socket a true
  expect 0 "$fairlock" run --url "unix://$(echo "$dir/$port/socket" | sed 's/s/%73/g')" a true
  expect 75 "$fairlock" run -n --url "unix://$dir/$port/none" a true
}

# What a secret's file or an editor has put behind a URL, and nobody sees in a message.
test_invisible_in_urls() {
  redis config set requirepass "$(printf 'a\nb\tc ')" >"$dir/out"
  url=redis://127.0.0.1:$port
  for control in '\n' '\r\n' '\t' '\033' '\177'; do
    for bad in "$url$control" "redis://:a${control}b@127.0.0.1:$port" "redis://h$control" "redis+cluster://h${control},h" "unix:///p$control"; do
      bad=$(printf '%b.' "$bad")
      bad=${bad%.}
      for wrong in --url FAIRLOCK_URL; do
        if [ $wrong = --url ]; then expect 64 "$fairlock" status --url "$bad" a
        else expect 64 env FAIRLOCK_URL="$bad" "$fairlock" status a; fi
        said "the URL in $wrong cannot be used: it has a line break, or another control character, in it"
      done
    done
  done
  expect 64 "$fairlock" status --url "$url " a
  said 'it ends in a space'
  expect 0 "$fairlock" run --url redis://:a%0ab%09c%20@127.0.0.1:$port a true
}

# Options of all subcommands may stand before the subcommand, too.
test_options_first() {
  url=redis://:secret@127.0.0.1:$port
  redis config set requirepass secret >"$dir/out"
  password=secret
  (umask 077 && echo secret >"$dir/password")
  FAIRLOCK_URL=redis://127.0.0.1:1
  expect 7 "$fairlock" --url "$url" run -n a sh -c 'exit 7'
  expect 7 "$fairlock" --url="$url" run -n a sh -c 'exit 7' --url redis://127.0.0.1:2
  expect 0 "$fairlock" --url redis://127.0.0.1:$port --password-file "$dir/password" status a b
  printed 'b: free'
  expect 0 "$fairlock" --password-file "$dir/password" status a --url redis://127.0.0.1:$port
  expect 0 "$fairlock" --url "$url" list
  expect 1 "$fairlock" --url "$url" break --yes a
  expect 75 "$fairlock" --url "$url" status --url redis://127.0.0.1:1 a # the last one counts
  expect 64 "$fairlock" --insecure --url "$url" status a
  for words in --help --version '--help status' 'status --help'; do
    expect 0 "$fairlock" --url "$url" $words
  done
  "$fairlock" --url "$url" run a sleep 60 &
  holder=$!
  eventually held a
  ! grep -q secret "/proc/$holder/cmdline" || fail "$(tr '\0' ' ' <"/proc/$holder/cmdline")"
  kill $holder
  ends 143 $holder
}

test_ipv6() {
  if ! redis-cli -h ::1 -p $port ping >"$dir/out" 2>&1; then
    echo "skip ipv6: no IPv6 loopback"
    return
  fi
  expect 0 "$fairlock" run --url "redis://[::1]:$port" a true
}

test_databases() {
  run --url redis://127.0.0.1:$port/3 a sleep 60 &
  holder=$!
  eventually sh -c "[ \$(redis-cli -p $port -n 3 hlen a) = 1 ]"
  expect 1 "$fairlock" run -n --url "unix://$dir/$port/socket?db=3" a true
  expect 0 "$fairlock" run -n --url redis://127.0.0.1:$port/2 a true
  kill $holder
  ends 143 $holder
  expect 76 "$fairlock" run -n --url redis://127.0.0.1:$port/99 a true
  said 'out of range'
}

test_unreachable() {
  start=$(now_ms)
  expect 75 "$fairlock" run -n --url redis://127.0.0.1:1 a true
  said 'redis://127.0.0.1:1: the server cannot be reached: Connection refused'
  ! grep -q 'trying again' "$dir/err" || fail "$(cat "$dir/err")"
  expect 75 "$fairlock" status --url redis://127.0.0.1:1 a
  expect 75 "$fairlock" watch --url redis://127.0.0.1:1 a
  expect 75 "$fairlock" break --yes --url redis://127.0.0.1:1 a
  [ $(($(now_ms) - start)) -lt 4000 ] || fail "not at once"
  kill -STOP $server
  expect 75 "$fairlock" run -w 1 a true
  kill -CONT $server
}

# A wait is no longer than -w says because one attempt to connect would take longer: to a server that
# is silent, where a second attempt would last until 10 s, and to one that is silent from the greeting
# on, when it is asked who holds the lock, where an answer is awaited for 10 s.
test_unreachable_in_time() {
  fake_server
  kill -STOP $server
  for at in $port $other; do
    (
      start=$(now_ms)
      FAIRLOCK_HOLDERS=me:1 "$fairlock" run -w 6 --url redis://127.0.0.1:$at a true 2>"$dir/err.$at"
      echo $? $(($(now_ms) - start)) >"$dir/took.$at"
    ) &
    eval "at_$at=\$!"
  done
  for at in $port $other; do
    eval "wait \$at_$at"
    read -r status took <"$dir/took.$at"
    [ "$status" -eq 75 ] || fail "exit status $status instead of 75: $(cat "$dir/err.$at")"
    [ "$took" -ge 6000 ] || fail "it did not wait: $took ms"
    echo "# -w 6 took $took ms"
    [ "$took" -lt 60000 ] || fail "$(cat "$dir/err.$at")"
    grep -qF "redis://127.0.0.1:$at: the server cannot be reached" "$dir/err.$at" || fail "$(cat "$dir/err.$at")"
  done
  kill -CONT $server
}

# unreachable WORDS ADVICE ARGUMENT...: fairlock status, with the advice alone in the second line
unreachable() {
  words=$1
  advice=$2
  shift 2
  for command in status list; do
    [ $command = status ] && name=a || name=
    expect 75 timeout 60 "$@" $command $name
    said ": the server cannot be reached: $words"
    [ "$(sed -n 2p "$dir/err" | cut -c "1-${#advice}")" = "$advice" ] || fail "not '$advice': $(cat "$dir/err")"
  done
}

# Each reason in its own words, with what to do about it.
test_why_unreachable() {
  unreachable 'Connection refused' 'Nothing listens' "$fairlock" --url redis://127.0.0.1:1
  unreachable 'No such file or directory' 'There is no such socket' "$fairlock" --url "unix://$dir/none"
  unreachable '' 'The name' "$fairlock" --url redis://no-such-host.invalid
  grep -q -e 'not known' -e 'resolution' "$dir/err" || fail "not in the resolver's words: $(cat "$dir/err")"
  expect 75 "$fairlock" run -n --verbose --url redis://no-such-host.invalid a true
  grep -q ': not connected: .*: .*\(not known\|resolution\)' "$dir/err" || fail "$(cat "$dir/err")"
  run -w 600 --url redis://127.0.0.1:1 a true 2>"$dir/err" &
  waiter=$!
  eventually grep -qF 'the server cannot be reached: Connection refused; trying again' "$dir/err"
  kill $waiter
  ends 143 $waiter
  # one of several, which is the one that is named
  expect 75 timeout 60 "$fairlock" status --url "redis+cluster://127.0.0.1:1,no-such-host.invalid:2" a
  if grep -q invalid:2 "$dir/err"; then said 'The name'; else said 'Nothing listens'; fi
  said 'a fail-over may be under way'
  chmod 755 "$top" "$dir" "$dir/$port"
  chmod 700 "$dir/$port/socket"
  if [ "$(id -u)" != 0 ]; then chmod 0 "$dir/$port/socket"; fi
  cp "$fairlock" "$dir/fairlock" && chmod 755 "$dir/fairlock"
  as=
  [ "$(id -u)" != 0 ] || as="setpriv --reuid=65534 --regid=65534 --clear-groups --"
  unreachable 'Permission denied' 'This user may not' $as "$dir/fairlock" --url "unix://$dir/$port/socket"
  kill -STOP $server
  for url in $FAIRLOCK_URL "unix://$dir/$port/socket"; do
    unreachable 'it accepts the connection, but does not answer' 'Is it stopped' "$fairlock" --url "$url"
  done
  kill -CONT $server
  # the same in the middle of a wait
  redis hset b somebody:1 1 >"$dir/out"
  run -w 20 b true 2>"$dir/err" &
  waiter=$!
  eventually waits 1 b
  stop_server
  ends 75 $waiter
  said 'the server cannot be reached: Connection refused'
}

# start_again: the server that was stopped, on its port and without its data
start_again() {
  "$build/redis-server" --port $port --bind 127.0.0.1 -::1 --save '' --appendonly no --dir "$dir/$port" \
    --unixsocket "$dir/$port/socket" "$@" >"$dir/$port/log" 2>&1 &
  server=$!
  ends_with_us $server
  eventually answers
}

# One that may wait says what it waits for, and goes on trying; one that may not ends at once.
test_down_for_a_moment() {
  for words in '-w 60' '--wait=60' ''; do
    stop_server
    run $words a touch "$dir/ran" 2>"$dir/err" &
    waiter=$!
    eventually grep -qF "redis://127.0.0.1:$port: the server cannot be reached" "$dir/err"
    sleep 1
    start_again
    ends 0 $waiter
    said '; trying again'
    [ -e "$dir/ran" ] || fail "'$words': the command did not run"
    rm "$dir/ran"
  done
  stop_server
  start=$(now_ms)
  expect 75 "$fairlock" run -w 2 a true
  [ $(($(now_ms) - start)) -ge 2000 ] || fail "it did not wait"
  expect 75 timeout 60 "$fairlock" run -n a true
  ! grep -q 'trying again' "$dir/err" || fail "$(cat "$dir/err")"
  # what cannot pass ends the wait
  password=secret
  start_again --requirepass $password
  expect 77 timeout 60 "$fairlock" run -w 60 --url redis://:wrong@127.0.0.1:$port a true
  ! grep -q 'trying again' "$dir/err" || fail "$(cat "$dir/err")"
  stop_server
  password=
  start_again --replicaof 127.0.0.1 1
  expect 78 timeout 60 "$fairlock" run -w 60 a true
}

# The same while it stands in line: the wait goes on for as long as -w says.
test_down_while_waiting() {
  redis hset a somebody:1 1 >"$dir/out"
  run -w 60 a touch "$dir/ran" 2>"$dir/err" &
  waiter=$!
  eventually waits 1 a
  stop_server
  sleep 15
  start_again
  ends 0 $waiter
  [ -e "$dir/ran" ] || fail "the command did not run"
  said "redis://127.0.0.1:$port: the server cannot be reached: Connection refused; trying again"
  [ "$(wc -l <"$dir/err")" = 1 ] || fail "$(cat "$dir/err")"
}

test_unreachable_while_waiting() {
  run a sleep 60 2>"$dir/err.holder" &
  holder=$!
  eventually held a
  run -w 10 a true 2>"$dir/err" &
  waiter=$!
  eventually waits 1 a
  stop_server
  ends 75 $waiter
  said 'cannot be reached'
  kill $holder
  ends 143 $holder
}

# One that speaks another protocol.
test_not_a_server_of_ours() {
  fake_server '' 'SSH-2.0-x\n' HELLO ''
  expect 76 "$fairlock" run --url redis://127.0.0.1:$other a true
  said 'Is it a Redis server'
}

# One that waits for a server whose answers make no sense says so at once, and once.
test_nonsense_while_waiting() {
  fake_server '*' ':7\r\n'
  run --url redis://127.0.0.1:$other a true 2>"$dir/err" &
  waiter=$!
  eventually test -s "$dir/err"
  sleep 3
  [ "$(cat "$dir/err")" = "fairlock: redis://127.0.0.1:$other: the server sent an answer that is not valid; trying again" ] ||
    fail "$(cat "$dir/err")"
  kill $waiter
  ends 143 $waiter
}

# A server before Redis 6, and a proxy, which say so in several ways: what they lack is RESP3.
test_without_resp3() {
  for words in 'NOPROTO unsupported protocol version' 'NOPROTO sorry, this protocol version is not supported.' \
    "ERR unknown command 'HELLO', with args beginning with: '3' " "ERR unsupported command 'hello'" "unsupported command 'HELLO'"; do
    fake_server '*' ':7\r\n' HELLO "-$words\r\n"
    for command in 'run -n a true' 'run a true' 'status a' list; do
      expect 76 timeout 60 "$fairlock" --url redis://127.0.0.1:$other $command
      said "$words"
      said 'It does not speak RESP3 (HELLO 3), which fairlock needs'
      ! grep -q '6\.2 or newer' "$dir/err" || fail "$(cat "$dir/err")"
    done
  done
  fake_server '*' "-ERR unsupported command 'EVALSHA'\r\n"
  expect 76 timeout 60 "$fairlock" run -n --url redis://127.0.0.1:$other a true
  said 'It lacks a command that fairlock needs'
}

# lies HOLDERS WAITERS: a server that says that so many hold the lock and wait for it, and tells of one and two.
lies() {
  fake_server EVALSHA "*12\r\n:$(($1 * 4294967296 + $2))\r\n:5000\r\n\$1\r\n7\r\n:1\r\n:1\r\n\$4\r\nme:1\r\n:1\r\n:2\r\n\$4\r\nme:2\r\n:1\r\n:2\r\n\$4\r\nme:3\r\n"
}

# Other numbers than announced: neither believed nor written behind what was set aside.
test_lies_about_numbers() {
  lies 1 2
  expect 0 "$fairlock" status --url redis://127.0.0.1:$other a
  printed me:3
  for numbers in '1 0' '1 1' '1 3' '1 4000000000' '0 2' '2 2' '3 0' '0 4' '2000000 2'; do
    lies $numbers
    expect 76 "$fairlock" status --url redis://127.0.0.1:$other a
    [ ! -s "$dir/out" ] || fail "$(cat "$dir/out")"
  done
}

test_passwords() {
  redis config set requirepass 's:e/c@r%t' >"$dir/out"
  password='s:e/c@r%t'
  expect 77 "$fairlock" run a true
  said NOAUTH
  said 'Check the user and password'
  expect 77 "$fairlock" run --url redis://:wrong@127.0.0.1:$port a true
  said WRONGPASS
  ! grep -q 'white space' "$dir/err" || fail "$(cat "$dir/err")"
  for end in %20 %09 %0A %0d; do
    expect 77 "$fairlock" run -n --url "redis://:wrong$end@127.0.0.1:$port" a true
    said 'The password ends in white space, which counts'
  done
  expect 77 env FAIRLOCK_PASSWORD="$password " "$fairlock" status a
  said 'The password ends in white space, which counts'
  (umask 077 && echo "$password " >"$dir/padded")
  expect 77 "$fairlock" list --password-file "$dir/padded"
  said 'The password ends in white space, which counts'
  expect 0 "$fairlock" run --url redis://:s%3Ae%2Fc%40r%25t@127.0.0.1:$port a true
  expect 0 "$fairlock" run --url redis://default:s:e%2fc@r%25t@127.0.0.1:$port a true
  expect 0 env FAIRLOCK_PASSWORD="$password" "$fairlock" run a true
  expect 0 env FAIRLOCK_PASSWORD="$password" "$fairlock" status --url redis://default@127.0.0.1:$port a
  expect 64 "$fairlock" status --url redis://default@127.0.0.1:$port a
  said 'no password'
  printf '%s\n' "$password" >"$dir/password"
  expect 0 env FAIRLOCK_PASSWORD=wrong "$fairlock" run --password-file "$dir/password" a true
  printf '%s\r\nmore\n' "$password" >"$dir/password"
  expect 0 "$fairlock" run --url redis://:wrong@127.0.0.1:$port --password-file="$dir/password" a true
  printf %s "$password" >"$dir/password"
  expect 0 "$fairlock" status --password-file "$dir/password" a
  expect 66 "$fairlock" run --password-file "$dir/none" a true
  said "$dir/none"
  expect 66 "$fairlock" run --password-file "$dir" a true
  expect 66 "$fairlock" run --password-file /dev/null a true
  said 'is empty'
}

# bytes COUNT: so many letters
bytes() {
  head -c "$1" /dev/zero | tr '\0' x
}

# As long as the token of a cloud may be, and as the server takes: by a file, the environment and a URL.
test_long_passwords() {
  umask 077
  for size in 1023 1024 1100 4096 16384; do
    redis config set requirepass "$(bytes $size)" >"$dir/out"
    password=$(bytes $size)
    for end in '' '\n' '\r\n'; do
      printf '%s%b' "$password" "$end" >"$dir/password"
      expect 0 "$fairlock" run --password-file "$dir/password" a true
    done
    expect 0 env FAIRLOCK_PASSWORD="$password" "$fairlock" status a
    expect 0 env FAIRLOCK_URL=redis://:$password@127.0.0.1:$port "$fairlock" run a true
    expect 0 "$fairlock" status --url "redis://:$(echo $password | sed 's/x/%78/g')@127.0.0.1:$port" a
  done
  # it is read again at each connection
  run --lease 60 --password-file "$dir/password" a sleep 60 2>"$dir/err" &
  holder=$!
  eventually held a
  redis client kill type pubsub >"$dir/out"
  eventually sh -c "[ \$(redis-cli -p $port --no-auth-warning -a $password client list | grep -c name=fairlock) = 1 ]"
  kill $holder
  ends 143 $holder
  for end in '' '\n'; do
    printf '%s%b' "$(bytes 16385)" "$end" >"$dir/password"
    expect 66 "$fairlock" run --password-file "$dir/password" a true
    said 'too long'
  done
  expect 64 env FAIRLOCK_PASSWORD="$(bytes 16385)" "$fairlock" run a true
  said 'the password has 16385 bytes'
  expect 64 "$fairlock" run --url redis://:$(bytes 16385)@127.0.0.1:$port a true
  said 'its password has more than 16384 bytes'
}

test_password_file_of_others() {
  redis config set requirepass secret >"$dir/out"
  password=secret
  echo secret >"$dir/password"
  for mode in 640 604 620 777; do
    chmod $mode "$dir/password"
    expect 0 "$fairlock" run --password-file "$dir/password" a true
    said "have access to the password in $dir/password (mode $mode): chmod 600 it"
    expect 0 "$fairlock" status --password-file "$dir/password" a
    said warning
  done
  for mode in 600 400; do
    chmod $mode "$dir/password"
    expect 0 "$fairlock" run --password-file "$dir/password" a true
    [ ! -s "$dir/err" ] || fail "$mode: $(cat "$dir/err")"
  done
  mkfifo "$dir/pipe"
  chmod 666 "$dir/pipe"
  echo secret >"$dir/pipe" &
  expect 0 "$fairlock" status --password-file "$dir/pipe" a
  [ ! -s "$dir/err" ] || fail "a pipe: $(cat "$dir/err")"
}

test_password_is_not_shown() {
  redis config set requirepass secret >"$dir/out"
  password=secret
  run --url redis://default:secret@127.0.0.1:$port a sleep 60 &
  holder=$!
  eventually held a
  for process in $holder "$(agent_of $holder)"; do
    ! grep -q secret "/proc/$process/cmdline" || fail "$(tr '\0' ' ' <"/proc/$process/cmdline")"
    grep -q sleep "/proc/$process/cmdline" || fail "the rest is gone: $(tr '\0' ' ' <"/proc/$process/cmdline")"
  done
  kill $holder
  ends 143 $holder
  for url in redis://:secret@127.0.0.1:1 redis://:secret@h/x 'redis://:secret/secret@h' 'redis://:secret%@h'; do
    "$fairlock" status --url "$url" a >"$dir/out" 2>&1
    ! grep -q secret "$dir/out" || fail "$(cat "$dir/out")"
  done
}

# A secret of the environment is in none of the processes' environments, as others can read them;
# nor can others of the same user read their memory, or find a core file of theirs.
test_password_is_not_in_environ() {
  redis config set requirepass s3cr3t >"$dir/out"
  password=s3cr3t
  for words in "FAIRLOCK_PASSWORD=s3cr3t FAIRLOCK_URL=redis://127.0.0.1:$port" "FAIRLOCK_URL=redis://:s3cr3t@127.0.0.1:$port/0" \
    "FAIRLOCK_PASSWORD=s3cr3t FAIRLOCK_SENTINEL_PASSWORD=s3cr3t FAIRLOCK_URL=redis://u:s3cr3t@h:1/ $fairlock --url redis://:s3cr3t@127.0.0.1:$port"; do
    case $words in *' --url '*) ;; *) words="$words $fairlock" ;; esac
    env TEST_MARK=here $words run a -- sh -c 'echo ready >"$0"; sleep 60' "$dir/ready" 2>"$dir/err" &
    holder=$!
    eventually test -s "$dir/ready"
    rm "$dir/ready"
    agent=$(agent_of $holder)
    for process in $holder $agent $(guard_of $holder); do
      tr '\0' '\n' <"/proc/$process/environ" >"$dir/environ" 2>"$dir/denied" || continue
      grep -q TEST_MARK "$dir/environ" || fail "this test shows nothing"
      ! grep -q cr3t "$dir/environ" || fail "of $process: $(grep cr3t "$dir/environ")"
    done
    kill $holder
    ends 143 $holder
  done
  # as the user that all of them are
  [ "$(id -u)" = 0 ] && command -v setpriv >"$dir/out" || return 0
  chmod 755 "$top" "$dir"
  cp "$fairlock" "$dir/fairlock" && chmod 755 "$dir/fairlock"
  nobody="setpriv --reuid=65534 --regid=65534 --clear-groups --"
  FAIRLOCK_PASSWORD=s3cr3t $nobody "$dir/fairlock" run a -- sh -c 'echo ready; sleep 60' >"$dir/ready" 2>"$dir/err" &
  holder=$!
  eventually test -s "$dir/ready"
  agent=$(agent_of $holder)
  for process in $holder $agent $(guard_of $holder); do
    ! $nobody cat "/proc/$process/environ" >"$dir/environ" 2>"$dir/denied" || fail "the environment of $process can be read"
    ! $nobody head -c 1 "/proc/$process/mem" >"$dir/mem" 2>"$dir/denied" || fail "the memory of $process can be read"
    grep -q 'Permission denied' "$dir/denied" || fail "$(cat "$dir/denied")"
  done
  command=$(children_of "$(guard_of $holder)")
  $nobody cat "/proc/$command/environ" >"$dir/environ" || fail "this test shows nothing"
  kill $holder
  ends 143 $holder
}

# A pipe that nobody writes to is refused; one that somebody does, however slowly, is read.
test_password_from_a_pipe() {
  redis config set requirepass secret >"$dir/out"
  password=secret
  mkfifo "$dir/pipe"
  expect 66 timeout 60 "$fairlock" run --password-file "$dir/pipe" a true
  said "cannot take the password from $dir/pipe: nobody writes to this pipe"
  (sleep 1; echo secret >"$dir/pipe") & # who comes a little later
  expect 0 timeout 60 "$fairlock" run --password-file "$dir/pipe" a true
  (exec 7>"$dir/pipe"; sleep 15; printf sec >&7; sleep 1; printf 'ret\n' >&7; sleep 60) &
  writer=$!
  expect 0 timeout 60 "$fairlock" run --password-file "$dir/pipe" a true
  kill $writer
  command -v bash >"$dir/out" || return 0
  expect 0 timeout 60 bash -c '"$0" run --password-file <(sleep 1; echo secret) a true' "$fairlock"
  expect 0 timeout 60 bash -c 'echo secret | "$0" run --password-file /dev/stdin a true' "$fairlock"
  expect 66 timeout 60 bash -c '"$0" run --password-file <(true) a true' "$fairlock"
}

test_acl() {
  redis acl setuser limited on '>pw' '~*' '&*' +@connection >"$dir/out"
  url=redis://limited:pw@127.0.0.1:$port
  expect 77 "$fairlock" run --url "$url" a true
  said NOPERM
  expect 77 "$fairlock" run -n --url "$url" a true
  expect 77 "$fairlock" status --url "$url" a
  expect 77 "$fairlock" break --yes --url "$url" a
}

# The line of lock/PRODUCTION.md names the commands of test_acl, and a user made by it, for locks whose
# names begin with "a", may do what it has to.
test_documented_rules() {
  set -f
  set -- $(rights)
  printf '%s\n' "$@" | sed -n 's/^+//p' | sort >"$dir/named"
  sed -n '/ commands\[\] = {/,/^}/s/[^"]*"\([^"]*\)"[^"]*/\1\n/gp' tests/server/test_acl.c | sed '/^$/d' | sort >"$dir/needed"
  cmp -s "$dir/named" "$dir/needed" || fail "$(diff "$dir/named" "$dir/needed" | tr "\n" " ")"
  redis acl setuser "$@" >"$dir/out"
  [ "$(cat "$dir/out")" = OK ] || fail "$(cat "$dir/out")"
  url=redis://lock:pw@127.0.0.1:$port
  expect 0 "$fairlock" run --url "$url" abc true
  expect 0 "$fairlock" run --limit 2 --url "$url" abc true
  expect 0 "$fairlock" status --url "$url" abc
  expect 77 "$fairlock" run --url "$url" b true
  said NOPERM
}

# Without +publish a release hands the lock over all the same: nobody is told of it but by asking.
test_missing_right_to_publish() {
  set -f
  redis acl setuser $(rights) -publish >"$dir/out"
  FAIRLOCK_URL=redis://lock:pw@127.0.0.1:$port
  run a sh -c 'until [ -e "$0" ]; do sleep 0.1; done; exit 5' "$dir/go" 2>"$dir/err" &
  holder=$!
  eventually held a
  run -w 20 a true 2>"$dir/err.waiter" &
  waiter=$!
  eventually waits 1 a
  touch "$dir/go"
  ends 5 $holder
  said "redis://127.0.0.1:$port: the server refuses this user: "
  grep -q -e 'ERR ' -e 'NOPERM ' -e 'The user executing' "$dir/err" || fail "not in the server's words: $(cat "$dir/err")"
  said 'ACL LOG'
  said 'it is free when its lease of 30 s has run out, or earlier'
  ends 0 $waiter
}

test_server_refuses() {
  redis hset a x 1 >"$dir/out"
  redis set b string >"$dir/out"
  expect 76 "$fairlock" run -n b true
  said WRONGTYPE
  redis del a b >"$dir/out"
  redis config set maxmemory 1 >"$dir/out"
  expect 75 "$fairlock" run -n a true
  said 'out of memory'
  redis config set maxmemory 0 >"$dir/out"
  redis replicaof 127.0.0.1 1 >"$dir/out"
  expect 78 "$fairlock" run -n a true
  said 'read-only replica'
  said 'Name the master'
  expect 78 "$fairlock" status a # nobody's channel is known there
  said "redis://127.0.0.1:$port: the server is a read-only replica"
}

test_too_many_clients() {
  mkfifo "$dir/input"
  redis <"$dir/input" >"$dir/out" 2>&1 & # takes the one place that there will be
  exec 4>"$dir/input"
  eventually sh -c "[ \$(redis-cli -p $port client list | wc -l) -ge 2 ]"
  redis config set maxclients 1 >"$dir/out"
  eventually sh -c "redis-cli -p $port ping 2>&1 | grep -q 'max number'"
  for words in 'run -n a true' 'status a' list; do
    expect 75 "$fairlock" $words
    said 'ERR max number of clients reached'
    said maxclients
  done
}

[ $# -eq 0 ] || run_tests "$@"
run_tests usage help help_names_statuses manual bad_urls urls invisible_in_urls options_first ipv6 databases unreachable why_unreachable down_for_a_moment down_while_waiting unreachable_while_waiting not_a_server_of_ours \
  lies_about_numbers unreachable_in_time nonsense_while_waiting without_resp3 passwords long_passwords password_file_of_others password_is_not_shown password_is_not_in_environ \
  password_from_a_pipe acl documented_rules missing_right_to_publish server_refuses too_many_clients
