#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What fairlock run --metrics-file and fairlock list --metrics write, as a parser of Prometheus's own
# reads it, and as JSON.
# shellcheck source=tests/support/lib.sh disable=SC2016,SC2034,SC2046,SC2086,SC2154,SC1091,SC2317,SC3045
set -u
. tests/support/lib.sh

# same WHAT WANTED
same() {
  [ "$1" = "$2" ] || fail "'$1' instead of '$2'"
}

# samples FILE: "name{labels} value" of each sample, in order; every metric has a help text and a type
samples() {
  python prometheus_client -c '
import sys
from prometheus_client.parser import text_fd_to_metric_families
with open(sys.argv[1]) as file:
    for family in text_fd_to_metric_families(file):
        assert family.type in ("counter", "gauge", "histogram") and family.documentation, family
        for sample in family.samples:
            labels = ",".join("%s=%s" % pair for pair in sorted(sample.labels.items()))
            print("%s{%s} %s" % (sample.name, labels, repr(sample.value)))
' "$1"
}

# url_label: what every sample has, as samples prints it
url_label() {
  echo "url=redis://127.0.0.1:$port"
}

# has LINE: of $dir/samples
has() {
  grep -qxF -e "$1" "$dir/samples" || fail "no '$1': $(cat "$dir/samples")"
}

# has_run LINE: the same of a sample of fairlock run, without fairlock_run_, the url and .0
has_run() {
  has "fairlock_run_$(echo "$1" | sed "s|} |,$(url_label)} |").0"
}

# shows LINE: waits until the file has it
shows() {
  eventually sh -c "sed 's|url=\"redis://127.0.0.1:$port\",||; s/^fairlock_run_//' '$dir/m.prom' | grep -qxF '$1'"
}

# within METRIC LEAST MOST: its only sample is
within() {
  sed -n "s/^fairlock_$1{.*} //p" "$dir/samples" |
    awk -v least="$2" -v most="$3" '$1 >= least && $1 <= most { good++ } END { exit NR != 1 || good != 1 }' ||
    fail "$1 is not from $2 to $3: $(cat "$dir/samples")"
}

test_text() {
  expect 0 "$fairlock" run a true # the server knows the scripts from here on
  before=$(date +%s)
  expect 7 "$fairlock" run --metrics-file "$dir/m.prom" a sh -c 'sleep 0.3; exit 7'
  [ ! -s "$dir/err" ] || fail "$(cat "$dir/err")"
  samples "$dir/m.prom" >"$dir/samples" || fail "it cannot be parsed: $(cat "$dir/m.prom")"
  for line in 'acquired{lock=a} 1' 'waited{lock=a} 0' 'handed_over{how=granted,lock=a} 0' 'handed_over{how=polled,lock=a} 0' \
    'held{lock=a} 0' 'lost{lock=a} 0' 'renewals_total{lock=a} 0' 'connections_total{lock=a} 1' 'requests_total{lock=a} 2' \
    'exit_status{lock=a} 7'; do
    has_run "$line"
  done
  same "$(wc -l <"$dir/samples")" 14
  same "$(sed -n 's/^# TYPE \(.*\) counter/\1/p' "$dir/m.prom" | tr '\n' ' ')" \
    'fairlock_run_renewals_total fairlock_run_connections_total fairlock_run_requests_total '
  awk -v before="$before" -v after="$(date +%s)" '
    /_wait_seconds/ { good += $2 >= 0 && $2 < 60 }
    /_hold_seconds/ { good += $2 >= 0.3 && $2 < 60 }
    /_start_time_seconds/ { good += $2 >= before; start = $2 }
    /_end_time_seconds/ { good += $2 >= start + 0.3 && $2 <= after + 1 }
    END { exit good != 4 }' "$dir/samples" || fail "$(cat "$dir/samples")"
  # nothing else is left in the folder, and a collector may read the file
  same "$(echo "$dir"/m.prom*)" "$dir/m.prom"
  same "$(cd "$dir" && umask 022 && "$fairlock" run --metrics-file=n.prom a true && stat -c %a n.prom)" 644
}

# While it waits, while it holds, and when it has lost the lock.
test_while_it_runs() {
  run a sleep 60 &
  holder=$!
  eventually held a
  run --lease 6 --metrics-file "$dir/m.prom" a tail -f /dev/null 2>"$dir/err.waiter" &
  waiter=$!
  shows 'held{lock="a"} 0'
  eventually waits 1 a
  kill $holder
  ends 143 $holder
  shows 'held{lock="a"} 1'
  samples "$dir/m.prom" >"$dir/samples"
  has_run 'acquired{lock=a} 1'
  has_run 'waited{lock=a} 1'
  has_run 'handed_over{how=granted,lock=a} 1'
  has_run 'lost{lock=a} 0'
  ! grep -q -e exit_status -e end_time "$dir/samples" || fail "it has not ended: $(cat "$dir/samples")"
  # written again without an event, with what has changed since
  eventually grep -q '^fairlock_run_renewals_total{.*} [1-9]' "$dir/m.prom"
  redis del a >"$dir/out"
  ends 79 $waiter
  samples "$dir/m.prom" >"$dir/samples"
  has_run 'lost{lock=a} 1'
  has_run 'held{lock=a} 0'
  has_run 'exit_status{lock=a} 79'
}

test_not_acquired() {
  run a sleep 60 &
  eventually held a
  expect 1 "$fairlock" run -w 0.2 --metrics-file "$dir/m.prom" a true
  samples "$dir/m.prom" >"$dir/samples"
  has_run 'acquired{lock=a} 0'
  has_run 'hold_seconds{lock=a} 0'
  has_run 'exit_status{lock=a} 1'
  within run_wait_seconds 0.2 60
  stop_server
  expect 75 "$fairlock" run -n --metrics-file "$dir/m.prom" a true
  samples "$dir/m.prom" >"$dir/samples"
  has_run 'connections_total{lock=a} 0'
  has_run 'exit_status{lock=a} 75'
}

test_json() {
  expect 0 "$fairlock" run a true
  expect 3 "$fairlock" run --metrics-file "$dir/m.json" a sh -c 'jq -c "[.acquired, .held, .exit_status, .end_time_seconds]" "$0" >"$0.held"; exit 3' "$dir/m.json"
  same "$(jq -c 'del(.wait_seconds, .hold_seconds, .start_time_seconds, .end_time_seconds)' "$dir/m.json")" \
    '{"name":"a","url":"redis://127.0.0.1:'$port'","acquired":true,"waited":false,"granted":false,"polled":false,"held":false,"lost":false,"renewals":0,"connections":1,"requests":2,"exit_status":3}'
  same "$(jq -c '[.wait_seconds >= 0, .hold_seconds > 0, .end_time_seconds - .start_time_seconds < 60]' "$dir/m.json")" '[true,true,true]'
}

# A wait and a hold of more than 49 days, after which the library's clock begins anew. --at-least does
# not, also if fairlock is killed, and only its agent is left.
test_long() {
  ahead="env JUMP=$dir/jump LD_PRELOAD=$build/tests/command/jump.so"
  expect 0 $ahead "$fairlock" run --at-least 60 --metrics-file "$dir/m.json" a \
    sh -c 'until jq -e .acquired "$1"; do sleep 0.05; done; printf x >"$0"' "$dir/jump" "$dir/m.json"
  same "$(jq -c '[.wait_seconds < 600, .hold_seconds > 4294967, .hold_seconds < 4295567]' "$dir/m.json")" '[true,true,true]'
  ! grep 'stays held' "$dir/err" || fail 'for how long it was held is forgotten'
  run a sleep 60 &
  other=$!
  eventually held a
  $ahead "$fairlock" run --at-least 600 --metrics-file "$dir/m.json" a sh -c 'echo >"$0"; exec sleep 60' "$dir/begun" &
  runner=$!
  eventually waits 1 a
  printf x >>"$dir/jump"
  kill $other
  ends 143 $other
  eventually test -s "$dir/begun"
  eventually jq -e .acquired "$dir/m.json"
  same "$(jq -c '[.wait_seconds > 4294967, .hold_seconds < 600]' "$dir/m.json")" '[true,true]'
  printf x >>"$dir/jump"
  kill -9 $runner
  eventually unheld a
}

# What the command's exit status says of a loss, the metrics say, too: also when the lock is found
# lost only when it is released.
test_lost() {
  expect 79 "$fairlock" run --metrics-file "$dir/m.json" a sh -c 'sleep 0.5; redis-cli -p "$0" del a >"$1"' "$port" "$dir/gone"
  said 'a was lost while the command ran'
  same "$(jq -c '[.acquired, .held, .lost, .hold_seconds >= 0.5]' "$dir/m.json")" '[true,false,true,true]'
}

# The server in the label is that of fairlock list, without a user and a password, with a database.
test_url() {
  redis acl setuser me on '>secret' '~*' '&*' '+@all' >"$dir/out"
  expect 0 "$fairlock" run --url "redis://me:secret@127.0.0.1:$port/3" --metrics-file "$dir/m.prom" a true
  samples "$dir/m.prom" >"$dir/samples"
  has "fairlock_run_acquired{lock=a,$(url_label)/3} 1.0"
  ! grep -e me: -e secret "$dir/m.prom" || fail "it tells a password"
  expect 0 "$fairlock" run --url "redis://me:secret@127.0.0.1:$port/3" --metrics-file "$dir/m.json" a true
  same "$(jq -r .url "$dir/m.json")" "redis://127.0.0.1:$port/3"
  expect 0 "$fairlock" list --url "redis://me:secret@127.0.0.1:$port/3" --metrics-file "$dir/m.prom"
  samples "$dir/m.prom" >"$dir/samples"
  has "fairlock_list_success{$(url_label)/3} 1.0"
}

# Any bytes: as a terminal would show them, with quotes and backslashes escaped as the format
# requires.
test_names() {
  for name in 'a"b\c' "$(printf 'new\nline\t\377')" 'Tür 7 ✓'; do
    expect 0 "$fairlock" run --metrics-file "$dir/m.prom" -- "$name" true
    samples "$dir/m.prom" >"$dir/samples" || fail "it cannot be parsed: $(cat "$dir/m.prom")"
    same "$(wc -l <"$dir/samples")" 14
    expect 0 "$fairlock" run --metrics-file "$dir/m.json" -- "$name" true
    jq -e '.exit_status == 0' "$dir/m.json" >"$dir/out" || fail "no JSON: $(cat "$dir/m.json")"
  done
  has_run 'acquired{lock=Tür 7 ✓} 1'
  expect 0 "$fairlock" run --metrics-file "$dir/m.prom" 'a"b' true
  samples "$dir/m.prom" >"$dir/samples"
  has_run 'acquired{lock=a"b} 1'
}

# A file that cannot be written only leads to a message.
test_no_file() {
  expect 5 "$fairlock" run --metrics-file "$dir/none/m.prom" a sh -c 'exit 5'
  same "$(cat "$dir/err")" "fairlock: cannot write metrics to $dir/none/m.prom: No such file or directory"
  mkdir "$dir/folder.prom"
  expect 0 "$fairlock" run --metrics-file "$dir/folder.prom" a true
  said "cannot write metrics to $dir/folder.prom: "
  same "$(find "$dir" -name 'folder.prom*' | wc -l)" 1
  expect 64 "$fairlock" run --metrics-file '' a true
  # the end of the file, or nothing: a reader that reads all the time sees whole files
  run --metrics-file "$dir/m.json" a sleep 1 &
  runner=$!
  eventually test -s "$dir/m.json"
  while kill -0 $runner 2>/dev/null; do
    jq -e .name "$dir/m.json" >"$dir/out" || fail "half a file"
  done
  wait $runner
}

# Under a limit for the size of files: a message, nothing of the file, and the same status.
test_limited_size() {
  for words in "5 run --metrics-file $dir/m.prom a sh -c 'exit 5'" "71 list --metrics-file $dir/m.prom" "71 list --metrics"; do
    (
      ulimit -c 0
      ulimit -f 1
      eval "'$fairlock' ${words#* } >'$dir/small'"
      echo "status $?"
    ) 2>&1 | cat >"$dir/err"
    said "status ${words%% *}"
    said ': File too large'
    same "$(find "$dir" -name 'm.prom*')" ''
  done
  # COMMAND has the limit, and what it does to who exceeds it
  expect 153 sh -c 'ulimit -c 0; ulimit -f 1; exec "$0" run a head -c 3000 /dev/zero >"$1"' "$fairlock" "$dir/small"
  # a job is not ended because --verbose has filled its log
  head -c 2000 /dev/zero >"$dir/log"
  expect 7 sh -c 'ulimit -c 0; ulimit -f 1; exec "$0" run --verbose a sh -c "exit 7" 2>>"$1"' "$fairlock" "$dir/log"
  same "$(wc -c <"$dir/log")" 2000
}

# What is no file is not replaced by one: root would lose /dev/stdout, which is a link, or /dev/null.
test_no_regular_file() {
  mkfifo "$dir/pipe"
  ln -s /dev/null "$dir/link"
  : >"$dir/there"
  ln -s there "$dir/to_file"
  for kind in pipe link to_file; do
    expect 3 "$fairlock" run --metrics-file "$dir/$kind" a sh -c 'exit 3'
    same "$(cat "$dir/err")" "fairlock: cannot write metrics to $dir/$kind: Not a regular file"
  done
  [ -p "$dir/pipe" ] || fail "no pipe any more"
  [ -L "$dir/link" ] || fail "no link any more"
  [ -L "$dir/to_file" ] || fail "no link to a file any more"
  same "$(wc -c <"$dir/there")" 0
  expect 0 "$fairlock" run --metrics-file "$dir/there" a true
  [ -s "$dir/there" ] || fail "the file is not written"
}

# lists OPTION...: the samples of fairlock list --metrics, which exits with $status
lists() {
  expect "${status:-0}" "$fairlock" list --metrics "$@"
  cp "$dir/out" "$dir/m.prom"
  samples "$dir/m.prom" >"$dir/samples" || fail "it cannot be parsed: $(cat "$dir/m.prom")"
}

# values METRIC: of its samples, in order, the labels but the url before each
values() {
  sed -n "s/^fairlock_$1{\(.*\)} \(.*\)/\1 \2/p" "$dir/samples" | sed 's/,*url=[^, ]*//; s/^,//; s/^ //' | tr '\n' ';'
}

test_of_a_server() {
  lists
  same "$(values server_locks)" 'state=free 0.0;state=held 0.0;'
  same "$(values list_success)$(values server_waiters)$(values server_oldest_wait_seconds)$(values list_locks_left_out)" '1.0;0.0;0.0;0.0;'
  same "$(grep -c lock= "$dir/samples")" 0
  run a sleep 60 &
  eventually held a
  run a sleep 60 &
  eventually waits 1 a
  run a sleep 60 &
  eventually waits 2 a
  sleep 0.5
  lists
  has "fairlock_lock_held{lock=a,$(url_label)} 1.0"
  same "$(values server_locks)" 'state=free 0.0;state=held 1.0;'
  same "$(values lock_waiters)$(values server_waiters)" 'lock=a 2.0;2.0;'
  within lock_hold_seconds 0.5 60
  within lock_oldest_wait_seconds 0.5 60
  # the hold began before the wait
  awk '/_hold_/ { hold = $2 } /_lock_oldest_/ { wait = $2 } /_server_oldest_/ { max = $2 } END { exit hold < wait || wait != max }' \
    "$dir/samples" || fail "$(cat "$dir/samples")"
  within lock_lease_remaining_seconds 1 30
  within list_duration_seconds 0 60
  # no sample is one of fairlock run's: a collector takes both files
  expect 0 "$fairlock" run --metrics-file "$dir/run.prom" b true
  sed -n 's/^# TYPE //p' "$dir/m.prom" "$dir/run.prom" | sort | uniq -d >"$dir/twice"
  same "$(cat "$dir/twice")" ''
}

# The samples of two patterns, in two files that one collector reads, are told apart, and are not those
# of all locks.
test_patterns() {
  for name in a:1 a:2 b; do
    redis hset "$name" me:1 1 >"$dir/out"
    redis hset "fairlock:{$name}" token 1 >"$dir/out"
  done
  for pattern in 'a:*' '[b]' 'q"\*'; do
    lists "$pattern"
    cat "$dir/samples"
  done >"$dir/three"
  lists
  ! grep pattern "$dir/samples" || fail "no pattern was given"
  cat "$dir/samples" >>"$dir/three"
  mv "$dir/three" "$dir/samples"
  same "$(sed 's/ .*//' "$dir/samples" | sort | uniq -d)" ''
  same "$(values server_holders)" 'pattern=a:* 2.0;pattern=[b] 1.0;pattern=q"\\* 0.0;3.0;'
  for metric in list_success list_duration_seconds list_locks_left_out server_waiters server_oldest_wait_seconds; do
    same "$metric $(values $metric | tr ';' '\n' | grep -c 'pattern=a:\*')" "$metric 1"
  done
  has "fairlock_lock_held{lock=a:1,pattern=a:*,$(url_label)} 1.0"
  has "fairlock_lock_held{lock=b,$(url_label)} 1.0"
}

# What Redisson does not tell is left out; a hold without end, and a lock that is passed on, are told.
test_of_others() {
  redis hset r redisson:1 1 >"$dir/out"
  redis rpush 'redisson_lock_queue:{r}' redisson:2 dead:3 >"$dir/out"
  redis zadd 'redisson_lock_timeout:{r}' 99999999999999 redisson:2 >"$dir/out"
  redis rpush 'redisson_lock_queue:{dead}' dead:4 >"$dir/out"
  lists
  same "$(values server_locks)" 'state=free 1.0;state=held 1.0;'
  same "$(values lock_held)" 'lock=r 1.0;lock=dead 0.0;'
  same "$(values lock_waiters)" 'lock=r 2.0;lock=dead 1.0;'
  same "$(values lock_oldest_wait_seconds)" 'lock=dead 0.0;'
  same "$(values lock_hold_seconds)" ''
  same "$(values lock_lease_remaining_seconds)" 'lock=r inf;'
}

# However many locks there are, the number of samples has a limit; the sums are of all.
test_many_locks() {
  redis eval "for i = 1, 300 do local name = 'lock' .. i
    redis.call('hset', 'fairlock:{' .. name .. '}', 'token', 1) redis.call('hset', name, 'me:1', 1)
    if i > 200 then redis.call('rpush', 'redisson_lock_queue:{' .. name .. '}', unpack({'a:1', 'b:2', 'c:3'}, 1, i == 256 and 3 or 1)) end
    end" 0 >"$dir/out"
  lists
  same "$(values server_locks)$(values server_waiters)$(values list_locks_left_out)" 'state=free 0.0;state=held 300.0;102.0;200.0;'
  same "$(values lock_held | tr ';' '\n' | sed 's/^lock=lock\(2[0-9][1-9]\|2[1-9]0\|300\) 1.0$/good/' | sort | uniq -c | sed 's/^ *//')" '100 good'
  lists --metrics-locks 1
  same "$(values server_locks)$(values server_waiters)$(values lock_waiters)$(values list_locks_left_out)" 'state=free 0.0;state=held 300.0;102.0;lock=lock256 3.0;299.0;'
  lists --metrics-locks 0
  same "$(values lock_held)$(values list_locks_left_out)" '300.0;'
  lists --metrics-locks 999
  same "$(values list_locks_left_out)$(grep -c fairlock_lock_held "$dir/samples")" '0.0;300'
}

# What runs with --history have waited and held, by lock, also while it is free. A history that is cut does not make it
# less, nor is a run without --history counted. One that was killed has waited; one that gives up, too.
# counted WAITS: so many of the lock a are in its histogram
counted() {
  lists && [ "$(values history_wait_seconds_count)" = "lock=a $1;" ]
}

test_of_the_history() {
  lists
  ! grep history_ "$dir/samples" || fail 'there is no history'
  for run in 1 2 3; do expect 0 "$fairlock" run --history=1 a true; done
  expect 0 "$fairlock" run a true
  [ "$(redis xtrim 'fairlock:fairlock:history:{a}' maxlen 0)" -gt 0 ] || fail 'nothing was cut'
  run --history a sleep 0.5 &
  holder=$!
  eventually held a
  expect 1 "$fairlock" run --history -w 0.2 a true
  ends 0 $holder
  lists
  same "$(values history_wait_seconds_count)$(values history_hold_seconds_count)" 'lock=a 5.0;lock=a 4.0;'
  same "$(values history_wait_seconds_bucket | tr ';' '\n' | tail -n 1)" 'le=+Inf,lock=a 5.0'
  within history_wait_seconds_sum 0.2 60
  within history_hold_seconds_sum 0.5 60
  # each bucket has those below
  values history_hold_seconds_bucket | tr ';' '\n' | sed 's/le=\(.*\),.* /\1 /' >"$dir/buckets"
  awk '$2 < before || $1 == "0.3" && $2 > 3 { exit 1 } { before = $2 }' "$dir/buckets" || fail "$(cat "$dir/buckets")"
  [ "$(wc -l <"$dir/buckets")" = 16 ] || fail "$(cat "$dir/buckets")"
  run --history a sleep 60 &
  eventually held a
  eventually counted 6.0
  kill -9 $!
  eventually unheld a
  lists
  same "$(values history_wait_seconds_count)$(values history_hold_seconds_count)" 'lock=a 6.0;lock=a 4.0;'
  left=$(redis pttl 'fairlock:fairlock:times:{a}')
  [ "$left" -gt 2500000000 ] && [ "$left" -le 2592000000 ] || fail "it stays for $left ms"
}

# Locks of other names; what the hash has that this release does not write; another type of key.
test_of_strange_histories() {
  for name in 'a{b' 'c}d' 'e"f'; do expect 0 "$fairlock" run --history "$name" true; done
  redis hset 'fairlock:fairlock:times:{x}' 'wait 20' 7 'wait 30' 1 'wait 999999999999' 2 'wait more' 1 'wait sum' 1500 \
    'wait -' 3 'wait 100' -5 'wait 300' many 'wait' 1 'wait1000' 1 other 6 'hold 10' 9007199254740993 >"$dir/out"
  redis hset 'fairlock:fairlock:times:{empty}' other 1 >"$dir/out"
  lists
  for name in 'a{b' 'c}d' 'e"f'; do has "fairlock_history_hold_seconds_count{lock=$name,$(url_label)} 1.0"; done
  ! grep empty "$dir/samples" || fail 'nothing was counted'
  same "$(grep -c 'history_wait_seconds_bucket.*lock=x' "$dir/samples")" 16
  for sample in 'bucket{le=0.01 0.0' 'bucket{le=0.03 8.0' 'bucket{le=100000 8.0' 'bucket{le=+Inf 11.0'; do
    has "fairlock_history_wait_seconds_${sample% *},lock=x,$(url_label)} ${sample#* }"
  done
  has "fairlock_history_wait_seconds_sum{lock=x,$(url_label)} 1.5"
  has "fairlock_history_hold_seconds_count{lock=x,$(url_label)} 0.0"
  lists '[ac]*'
  same "$(values history_hold_seconds_count)" 'lock=a{b,pattern=[ac]* 1.0;lock=c}d,pattern=[ac]* 1.0;'
  lists --metrics-locks 1
  same "$(values history_hold_seconds_count)" 'lock=a{b 1.0;'
  redis set 'fairlock:fairlock:times:{y}' 1 >"$dir/out"
  status=76
  lists
  same "$(values list_success)" '0.0;'
  said 'y cannot be read'
  has "fairlock_history_hold_seconds_count{lock=c}d,$(url_label)} 1.0"
  expect 0 "$fairlock" list
}

test_names_in_a_list() {
  nasty=$(printf 'new\nline \033[2J"\\\t')
  for name in "$nasty" "$(printf 'bad \377\301')" 'Tür ✓' 'a,b="c"} 7'; do
    redis hset "$name" me:1 1 >"$dir/out"
    redis hset "fairlock:{$name}" token 1 >"$dir/out"
  done
  lists
  for shown in 'new\x0aline \x1b[2J"\\\x09' 'bad \xff\xc1' 'Tür ✓' 'a,b="c"} 7'; do
    has "fairlock_lock_held{lock=$shown,$(url_label)} 1.0"
  done
}

# A part that cannot be read, or all, is told, and changes the exit status.
test_unreadable() {
  redis hset a me:1 1 >"$dir/out"
  redis hset 'fairlock:{a}' token 1 >"$dir/out"
  redis set m 1 >"$dir/out"
  redis hset 'fairlock:{m}' token 1 >"$dir/out"
  status=76
  lists
  same "$(values list_success)$(values lock_held)" '0.0;lock=a 1.0;'
  expect 76 "$fairlock" list --metrics-file "$dir/n.prom"
  [ ! -s "$dir/out" ] || fail "$(cat "$dir/out")"
  grep -v _seconds "$dir/n.prom" >"$dir/without_times"
  grep -v _seconds "$dir/m.prom" | cmp -s - "$dir/without_times" || fail "$(cat "$dir/n.prom")"
  same "$(echo "$dir"/n.prom*)" "$dir/n.prom"
  stop_server
  for url in redis://127.0.0.1:$port/3 redis+cluster://127.0.0.1:$port,localhost:$port/3 "unix://$dir/$port/socket?db=3"; do
    status=75
    lists --url "$url"
    same "$(wc -l <"$dir/samples")" 2
    grep -qxF "fairlock_list_success{url=\"$url\"} 0" "$dir/m.prom" || fail "$(cat "$dir/m.prom")"
    expect 75 "$fairlock" list --metrics-file "$dir/n.prom" --url "$url"
    grep -q '^fairlock_list_success{.*} 0$' "$dir/n.prom" || fail "$(cat "$dir/n.prom")"
  done
  # a password is nobody's business
  lists --url "redis://me:secret@127.0.0.1:$port"
  ! grep -e me -e secret "$dir/samples" | grep -v -e _time || fail "$(cat "$dir/samples")"
}

test_list_cannot_be_written() {
  expect 71 "$fairlock" list --metrics-file "$dir/none/m.prom"
  said "cannot write metrics to $dir/none/m.prom: No such file or directory"
  expect 71 sh -c "exec '$fairlock' list --metrics >/dev/full"
  for words in '--json --metrics' '--null --metrics' '--metrics-file x --json' '--metrics-locks 1 -0'; do
    expect 64 "$fairlock" list $words
    said 'give one of --json, --null and --metrics'
  done
  for bad in '' x -1 1000; do
    expect 64 "$fairlock" list --metrics-locks "$bad"
    said '--metrics-locks needs a number from 0 to 999'
  done
  expect 64 "$fairlock" list --metrics-file ''
  # there, fairlock run writes JSON
  expect 64 "$fairlock" list --metrics-file "$dir/m.json"
  said "not JSON as the name $dir/m.json promises"
  [ ! -e "$dir/m.json" ] || fail "$(cat "$dir/m.json")"
}

[ $# -eq 0 ] || run_tests "$@"
run_tests of_a_server patterns of_others many_locks of_the_history of_strange_histories names_in_a_list unreadable list_cannot_be_written text while_it_runs not_acquired json long lost url names no_file limited_size no_regular_file
