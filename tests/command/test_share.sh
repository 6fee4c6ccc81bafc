#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# fairlock run --shared and --limit, and what the other subcommands tell of a lock that is shared, and
# do with it.
# shellcheck source=tests/support/lib.sh disable=SC2016,SC2046,SC2086,SC2154,SC1091,SC2317
set -u
. tests/support/lib.sh

# same WHAT WANTED
same() {
  [ "$1" = "$2" ] || fail "'$1' instead of '$2'"
}

# json FILTER: of what status tells of a
json() {
  "$fairlock" status --json a | jq -c "$1"
}

# shared COUNT: so many share a
shared() {
  [ "$(json '[.shared, .holder_count]')" = "[true,$1]" ]
}

# begun FILE: the command that writes it runs
begun() {
  eventually test -e "$dir/$1"
}

# holds FILE OPTION...: holds a until it is ended, and writes the file when it does. Meant for the background.
holds() {
  file=$dir/$1
  shift
  rm -f "$file"
  run "$@" a -- sh -c ': >"$0"; while :; do sleep 0.05; done' "$file" 2>"$file.err"
}

# share FILE OPTION...: the same in the background, awaited. Sets sharer (its process), token and owner.
share() {
  file=$dir/$1
  shift
  rm -f "$file"
  run "$@" a -- sh -c 'echo $FAIRLOCK_TOKEN $FAIRLOCK_HOLDER >"$0.new"; mv "$0.new" "$0"; while :; do sleep 0.05; done' "$file" 2>"$file.err" &
  sharer=$!
  eventually test -e "$file"
  read -r token owner <"$file"
}

# The steps of util-linux's own test of flock, taken with each of the two: COMMAND OPTION... FILE-OR-NAME.
steps() {
  lock=$1
  shift
  rm -f "$dir/go" "$dir/locked"
  env --default-signal "$@" --shared "$lock" sh -c 'echo Locking; until [ -e "$0" ]; do sleep 0.05; done; echo Unlocking' "$dir/go" >"$dir/locked" &
  first=$!
  eventually grep -q Locking "$dir/locked"
  for exclusive in '' -x --exclusive; do
    expect 123 "$@" $exclusive --nonblock --conflict-exit-code 123 "$lock" echo never
    same "$(cat "$dir/out")" ''
    expect 5 "$@" $exclusive --timeout 0.2 --conflict-exit-code 5 "$lock" echo never
  done
  for option in --shared -s '-s -n'; do
    expect 0 "$@" $option "$lock" echo 'Have shared lock'
    printed 'Have shared lock'
  done
  env --default-signal "$@" --timeout 60 --conflict-exit-code 5 "$lock" sh -c 'cat "$0"; echo alone' "$dir/locked" >"$dir/after" &
  waiter=$!
  sleep 0.2
  : >"$dir/go"
  ends 0 $first
  ends 0 $waiter
  same "$(tr '\n' ' ' <"$dir/after")" 'Locking Unlocking alone '
}

test_steps_of_flock() {
  steps "$dir/lockfile" flock
  steps a "$fairlock" run
}

# At most two; the third enters as soon as one of them leaves, and who does not wait is told.
test_limit() {
  share one --limit 2
  one=$sharer
  share two --limit=2
  holds three --limit 2 &
  three=$!
  eventually waits 1 a
  expect 1 "$fairlock" run --limit 2 -n a true
  expect 9 "$fairlock" run --limit 2 -s -w 0.2 -E 9 a true
  shared 2 || fail "$(json .)"
  kill $one
  ends 143 $one
  begun three
  shared 2 || fail "$(json .)"
  kill $three $sharer
  ends 143 $three
  ends 143 $sharer
  same "$(json '[.held, .limit]')" '[false,null]'
  expect 0 "$fairlock" run --limit 1000 a true
  expect 0 "$fairlock" run --limit 1 a true
}

# Who names another limit is not refused: the smallest one in use binds, and all of them are shown.
test_other_limit() {
  share one --limit 3
  one=$sharer
  share two --limit 2
  expect 1 "$fairlock" run --limit 3 -n a true
  expect 1 "$fairlock" run --limit 1 -n a true
  expect 1 "$fairlock" run -s -w 0.1 a true
  same "$(json '[.limit, .limits]')" '[2,[2,3]]'
  expect 0 "$fairlock" status a
  printed 'a: shared by 2 of at most 2 (limits in use: 2 3)'
  expect 0 "$fairlock" list
  printed 'a: shared by 2 of at most 2 (limits in use: 2 3)'
  kill $sharer
  ends 143 $sharer
  expect 0 "$fairlock" run --limit 3 a true
  same "$(json '[.limit, .limits]')" '[2,[2,3]]' # for a lease
  kill $one
  ends 143 $one
  share alone --limit 5
  same "$(json '[.limit, .limits]')" '[5,[5]]'
  expect 0 "$fairlock" status a
  printed 'a: shared by 1 of at most 5'
  kill $sharer
  ends 143 $sharer
}

# Five workers with a limit of 2 are replaced, one by one, by such with 3, and never stop for it: each of the
# new ones gets in, and no more than two hold as long as one of the old ones may.
test_rolling_update() {
  touch "$dir/2.run" "$dir/3.run"
  cat >"$dir/job" <<'END'
echo "+ $1" >>"$2/log"
sleep 0.4
echo "- $1" >>"$2/log"
END
  workers=
  for worker in 1 2 3 4 5; do
    while [ -e "$dir/2.run" ] && [ ! -e "$dir/new.$worker" ]; do
      "$fairlock" run --lease 1 --limit 2 a -- sh "$dir/job" 2 "$dir" || echo failed >>"$dir/log"
    done &
    workers="$workers $!"
  done
  sleep 1
  for worker in 1 2 3 4 5; do
    touch "$dir/new.$worker"
    while [ -e "$dir/3.run" ]; do
      "$fairlock" run -w 20 --lease 1 --limit 3 a -- sh "$dir/job" 3 "$dir" || echo failed >>"$dir/log"
    done &
    workers="$workers $!"
    sleep 0.5
  done
  sleep 7 # more than a waiter timeout, for which a claim names its limit
  rm "$dir/2.run" "$dir/3.run"
  wait $workers
  awk '$1 == "+" { now[$2]++; begun[$2]++ } $1 == "-" { now[$2]-- } $1 == "failed" { bad = 1 }
    now[2] + now[3] > 3 || now[2] > 0 && now[2] + now[3] > 2 { bad = 1 }
    now[3] == 3 { three = 1 } { mixed += now[2] && now[3] }
    END { print "# " begun[2] " of the old ones, " begun[3] " of the new ones, " mixed " times beside each other"
      exit bad || !three || !mixed || begun[3] < 5 }' "$dir/log" || fail "$(cat "$dir/log")"
}

# First come, first served: who wants it alone has it before those who came later to share it.
test_order() {
  share one -s
  one=$sharer
  share two -s
  run a -- sh -c 'echo alone >>"$0"; sleep 0.3; echo left >>"$0"' "$dir/order" &
  alone=$!
  eventually waits 1 a
  run -s a -- sh -c 'echo shares >>"$0"' "$dir/order" &
  late=$!
  eventually waits 2 a
  same "$(json '[.waiters[].shares]')" '[false,true]'
  expect 1 "$fairlock" run -s -n a true # the same for who would not wait
  kill $one
  ends 143 $one
  shared 1 || fail "$(json .)"
  [ ! -e "$dir/order" ] || fail 'somebody holds it beside a share'
  kill $sharer
  ends 143 $sharer
  ends 0 $alone
  ends 0 $late
  same "$(tr '\n' ' ' <"$dir/order")" 'alone left shares '
}

# Each share has its own agent, lease, signals and end.
test_processes() {
  share one -s --lease 2
  one=$sharer
  share two -s --lease 100
  two=$sharer
  # fairlock is killed: its agent ends the command, and then that share
  share three -s
  kill -9 $sharer
  eventually shared 2
  # the agent is killed: only that share ends, with its lease
  kill -9 "$(agent_of $one)"
  ends 79 $one
  eventually shared 1
  same "$(json '.holders[]|[.lease_seconds * 1, .alive]')" '[100,true]'
  # its command is ended by a signal
  kill -INT $two
  ends 130 $two
  unheld a || fail "$(json .)"
}

test_options() {
  share one -s
  expect 7 "$fairlock" run -s --at-least 3 --verbose a sh -c 'exit 7'
  said 'a stays held for another '
  eventually shared 1
  run -s --wait-all a -- sh -c 'sh -c "until [ -e \"\$0\" ]; do sleep 0.05; done" "$0" &' "$dir/go" &
  all=$!
  eventually shared 2
  : >"$dir/go"
  ends 0 $all
  shared 1 || fail "$(json .)"
  expect 0 "$fairlock" run -s -c 'test $FAIRLOCK_TOKEN -gt 0' a
  expect 0 "$fairlock" run -s --metrics-file "$dir/m.json" a true
  same "$(jq -c '[.acquired, .lost, .exit_status]' "$dir/m.json")" '[true,false,0]'
  expect 75 "$fairlock" run -s -n --replicas 1 a true
  said 'too few replicas acknowledge'
  eventually shared 1
  run -s --on-lost kill --lease 3 a sleep 60 2>"$dir/err.lost" &
  lost=$!
  eventually shared 2
  expect 0 "$fairlock" break --holder "$(json '.holders | map(select(.lease_seconds == 3))[0].id' | tr -d '"')" a
  ends 79 $lost
  shared 1 || fail "$(json .)"
}

# Below a share of the same lock, another one might wait for itself: for who waits in between.
test_nested() {
  for outer in -s '--limit 3'; do
    expect 80 "$fairlock" run $outer a "$fairlock" run $outer a true
    said 'a is held by the fairlock run that this one runs under'
    expect 0 "$fairlock" run $outer a "$fairlock" run $outer -n a true
    expect 0 "$fairlock" run $outer a "$fairlock" run $outer b true
    expect 80 "$fairlock" run $outer a "$fairlock" run a true
    expect 80 "$fairlock" run a "$fairlock" run $outer a true
  done
  expect 1 "$fairlock" run --limit 1 a "$fairlock" run --limit 1 -n a true
  # also if it is not the first of those who hold
  share one -s --lease 100
  expect 80 "$fairlock" run -s a "$fairlock" run -s a true
}

# The share that is named ends, and no other.
test_break() {
  share one -s --lease 6
  one=$sharer
  token_one=$token
  owner_one=$owner
  share two -s --lease 7
  two=$sharer
  owner_two=$owner
  share three -s --lease 8
  for words in "--token $((token_one - 1))" '--holder nobody:1'; do
    expect 1 "$fairlock" break $words a
    said 'fairlock: a is shared by 3: none of them has that hold, and nothing was done'
  done
  expect 64 "$fairlock" break a
  said 'no terminal to ask on'
  shared 3 || fail "$(json .)"
  expect 0 "$fairlock" break --token $token_one a
  printed "a: broken; it was held by $owner_one (fairlock, token $token_one, "
  printed 'a: 1 of 3 holds ended; 0 waiting'
  same "$(grep -c broken "$dir/out")" 1
  ends 79 $one
  shared 2 || fail "$(json .)"
  expect 1 "$fairlock" break --token $token_one a
  expect 0 "$fairlock" break --holder "$owner_two" a
  printed "a: broken; it was held by $owner_two (fairlock, "
  ends 79 $two
  same "$(json '[.holders[].id]')" "[\"$owner\"]"
  kill $sharer
  ends 143 $sharer
  # those behind enter
  share one --limit 1 --lease 6
  holds two --limit 1 &
  two=$!
  eventually waits 1 a
  expect 0 "$fairlock" break --token $token a
  printed 'a: 1 of 1 holds ended; 1 waiting'
  begun two
  kill $two
  ends 143 $two
}

# Named by nothing, all those that were there are meant.
test_break_all() {
  for who in one two three; do
    share $who -s --lease 6
    eval "$who=$sharer owner_$who=$owner"
  done
  expect 0 "$fairlock" break --yes a
  for owner in $owner_one $owner_two $owner_three; do printed "a: broken; it was held by $owner (fairlock, "; done
  printed 'a: 3 of 3 holds ended; 0 waiting'
  unheld a || fail "$(json .)"
  for process in $one $two $three; do ends 79 $process; done
  expect 1 "$fairlock" break --yes a
  said 'a is free'
  # with a limit that was wrong, that ends, too
  share one --limit 2 --lease 6
  expect 0 "$fairlock" break --yes a
  expect 0 "$fairlock" run --limit 3 a true
  ends 79 $sharer
}

# answered ANSWER: break asks on a terminal, and gets this answer
answered() {
  : >"$dir/out"
  ( (eventually grep -q 'End th' "$dir/out"); echo "$1"; (eventually grep -q 'a: broken\|nothing was done' "$dir/out")) |
    SHELL=/bin/sh script -qefc "env NO_COLOR=1 '$fairlock' break a" /dev/null >"$dir/out"
}

test_break_on_a_terminal() {
  share one --limit 5 --lease 6
  one=$sharer
  owner_one=$owner
  share two --limit 5 --lease 6
  ! answered n || fail "broken by 'n'"
  printed 'a: shared by 2 of at most 5; 0 waiting'
  printed "        held by $owner_one (fairlock, token "
  printed "        held by $owner (fairlock, token $token, since "
  printed 'End these 2 holds? [y/N]'
  shared 2 || fail "$(json .)"
  answered y || fail "$(cat "$dir/out")"
  ends 79 $one
  ends 79 $sharer
  share one --limit 5 --lease 6
  answered y || fail "$(cat "$dir/out")"
  printed 'End this hold? [y/N]'
  ends 79 $sharer
}

test_ask() {
  share one -s
  one=$sharer
  owner_one=$owner
  share two -s
  two=$sharer
  expect 0 "$fairlock" break --ask -w 60 --token $token a
  printed "a: asked $owner to release it"
  printed 'a: the hold has ended'
  ends 143 $two
  shared 1 || fail "$(json .)"
  ! grep -q asked "$dir/one.err" || fail "$(cat "$dir/one.err")"
  share two -s
  two=$sharer
  expect 0 "$fairlock" break --ask -w 60 a
  printed "a: asked $owner_one to release it"
  printed "a: asked $owner to release it"
  printed 'a: the holds have ended'
  ends 143 $one
  ends 143 $two
  # one of them does not
  share one -s
  one=$sharer
  share two -s --on-ask ignore
  expect 1 "$fairlock" break --ask -w 3 a
  said 'a: 1 of its 2 holders have not released it'
  ends 143 $one
  # and one that does not listen
  redis hset a deaf:1 "7 $(($(now_ms) + 600000)) 1 600000+" >"$dir/answer"
  expect 1 "$fairlock" break --ask a
  printed "a: asked $owner to release it"
  said 'a: deaf:1 cannot be asked: it does not listen'
}

# The one whose lease ends last comes first, and is what the members describe that are there for one.
test_status() {
  share one --limit 3 --lease 100
  token_one=$token
  owner_one=$owner
  share two --limit 3 --lease 60
  share three --limit 3
  holds four --limit 3 &
  eventually waits 1 a
  holds five &
  eventually waits 2 a
  expect 0 "$fairlock" status a
  printed "a: shared by 3 of at most 3, read from 127.0.0.1:$port"
  same "$(sed -n 2p "$dir/out" | sed 's/, since .*/, since/')" "        held by $owner_one (fairlock, token $token_one, since"
  same "$(sed -n 4p "$dir/out" | sed 's/, since .*/, since/')" "        held by $owner (fairlock, token $token, since"
  sed -n 5p "$dir/out" | grep -q '^     1  fairlock  listens  [^,]*, to share it, since ' || fail "$(cat "$dir/out")"
  sed -n 6p "$dir/out" | grep -q '^     2  fairlock  listens  [^,]*, since ' || fail "$(cat "$dir/out")"
  for words in status list; do
    expect 0 "$fairlock" $words --json a
    same "$(jq -c '[.held, .shared, .limit, .holder_count, .waiter_count, (.holders[0]|.id, .token, .lease_seconds * 1, .kind, .hold_count)]' "$dir/out")" \
      "[true,true,3,3,2,\"$owner_one\",$token_one,100,\"fairlock\",1]"
    same "$(jq -c '[.holders[] | [.lease_seconds * 1, .kind, .hold_count, .alive, .listens, .unheard_seconds < 20, (.start_time_seconds * 1000 | round) == (.token / 1000 | floor)]]' "$dir/out")" \
      '[[100,"fairlock",1,true,true,true,true],[60,"fairlock",1,true,true,true,true],[30,"fairlock",1,true,true,true,true]]'
    same "$(jq -c '[.holders[2].id, .holders[2].token]' "$dir/out")" "[\"$owner\",$token]"
  done
  expect 0 "$fairlock" status --quiet a
  expect 0 "$fairlock" list
  grep -q '^a: shared by 3 of at most 3 for [0-9.]* s, 2 waiting$' "$dir/out" || fail "$(cat "$dir/out")"
  # of any number; and one that is gone
  redis eval "redis.call('del', 'b') local now = redis.call('time')[1] * 1000
    redis.call('hset', 'b', 'gone:1', '5 ' .. now + 5000 .. ' 1 60000+', 'well:1', '6 ' .. now + 59000 .. ' 1 60000+', 'past:1', '4 ' .. now - 1 .. ' 1 60000+',
      'shared', now + 5000 .. ' 1 ' .. now + 59000 .. ' 1') redis.call('pexpire', 'b', 59000)" 0 >"$dir/out"
  expect 0 "$fairlock" status b
  printed 'b: shared by 2, 1 probably dead, nobody waits'
  same "$("$fairlock" status --json b | jq -c '[.limit, .holders[].alive]')" '[null,true,false]'
  # the server rounds the end of a lease up, by a sixteenth of it: no more is left of it than it has
  redis eval "local now = redis.call('time')[1] * 1000
    redis.call('hset', 'c', 'new:1', '5 ' .. now + 3721500 .. ' 1 3600000+') redis.call('pexpire', 'c', 3721000)" 0 >"$dir/out"
  expect 0 "$fairlock" status c
  printed ', 3600.0 s left of 3600.0, heard 0.0 s ago)'
  same "$("$fairlock" status --json c | jq '.holders[0].lease_remaining_seconds > 3600')" true
}

# renewed: the share with a lease of 3 s ends later than when this looked last, at $left ms from then
renewed() {
  before=$left
  left=$("$fairlock" status --json a | jq '.holders | map(select(.lease_seconds == 3))[0].lease_remaining_seconds * 1000 | round')
  [ "$left" -gt $((before + 100)) ]
}

test_watch() {
  "$fairlock" watch -i 0.05 a >"$dir/watched" &
  watcher=$!
  share one --limit 2 --lease 3
  one=$sharer
  eventually grep -q "a: shared by 1 of at most 2: $owner, 0 waiting" "$dir/watched"
  share two --limit 2 --lease 6
  eventually grep -q "a: shared by 2 of at most 2: [^ ,]*, [^ ,]*, 0 waiting" "$dir/watched"
  # renewals, and who ends last by them, are no change
  lines=$(wc -l <"$dir/watched")
  left=3000
  eventually renewed
  same "$(wc -l <"$dir/watched")" "$lines"
  kill $one
  ends 143 $one
  eventually grep -q "a: shared by 1 of at most 2: $owner, 0 waiting" "$dir/watched"
  kill $watcher
  ends 143 $watcher
  # on a terminal
  : >"$dir/out"
  ( (eventually grep -q 'held by' "$dir/out"); printf '\003'; sleep 0.2) |
    env NO_COLOR=1 TERM=xterm SHELL=/bin/sh script -qefc "stty rows 24; '$fairlock' watch -i 0.1 a" /dev/null >"$dir/out"
  printed 'shared by 1 of at most 2'
  printed "        held by $owner (fairlock, token $token, since "
  printed '0 waiting'
  # many: those that the terminal has room for
  redis eval "local now = redis.call('time')[1] * 1000 local counts = {}
    for i = 1, 40 do redis.call('hset', 'm', 'me:' .. i, i .. ' ' .. now + 600000 .. ' 1 600000+') redis.call('rpush', 'redisson_lock_queue:{m}', 'waiter:' .. i) end
    redis.call('hset', 'm', 'shared', now + 600000 .. ' 40')" 0 >"$dir/answer"
  : >"$dir/out"
  ( (eventually grep -q 'waiting' "$dir/out"); printf '\003'; sleep 0.2) |
    env NO_COLOR=1 TERM=xterm SHELL=/bin/sh script -qefc "stty rows 24; '$fairlock' watch -i 10 m" /dev/null >"$dir/out"
  printed 'and 31 more'
  same "$(grep -c 'held by' "$dir/out") $(grep -c 'redisson  ' "$dir/out")" '9 9'
}

test_metrics() {
  share one --limit 4
  sleep 0.3
  share two --limit 4
  run -s b sleep 60 &
  eventually sh -c "'$fairlock' status -q b"
  run c sleep 60 &
  eventually held c
  expect 0 "$fairlock" list --metrics
  for line in 'server_locks{.*,state="held"} 3' 'server_holders{.*} 4' 'lock_holders{.*,lock="a"} 2' 'lock_limit{.*,lock="a"} 4' 'lock_holders{.*,lock="b"} 1' \
    'lock_holders{.*,lock="c"} 1' 'lock_held{.*,lock="a"} 1'; do
    grep -q "^fairlock_$line\$" "$dir/out" || fail "no $line: $(cat "$dir/out")"
  done
  same "$(grep -c '^fairlock_lock_limit{' "$dir/out")" 1
  awk '/^fairlock_lock_hold_seconds.*"a"/ { exit $2 < 0.3 }' "$dir/out" || fail "not the longest hold: $(cat "$dir/out")"
}

[ $# -eq 0 ] || run_tests "$@"
run_tests steps_of_flock limit other_limit rolling_update order processes options nested break break_all break_on_a_terminal ask status watch metrics
