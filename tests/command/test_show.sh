#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# fairlock status, watch and break, and names of all kinds.
# shellcheck source=tests/support/lib.sh disable=SC2016,SC2046,SC2086,SC2154,SC1091,SC1003,SC2317
set -u
. tests/support/lib.sh

# json FILTER: what the last command printed
json() {
  jq -c "$1" "$dir/out" || fail "no JSON: $(cat "$dir/out")"
}

# same WHAT WANTED
same() {
  [ "$1" = "$2" ] || fail "'$1' instead of '$2'"
}

test_status() {
  expect 0 "$fairlock" status a
  printed 'a: free, nobody waits'
  run a sleep 60 &
  holder=$!
  eventually held a
  owner=$(redis hkeys a)
  run a true &
  waiter=$!
  eventually waits 1 a
  expect 0 "$fairlock" status a b
  token=$(redis hget 'fairlock:{a}' token)
  printed "a: held by $owner (fairlock, token $token, since $(date -d "@$((token / 1000000))" '+%F %T'), "
  id=$(redis lindex 'redisson_lock_queue:{a}' 0)
  # the second in which its client connected first
  now=$(date +%s)
  for second in $now $((now - 1)) $((now - 2)) $((now - 3)) $((now - 4)) -; do
    [ $second != - ] || fail "not since it came: $(cat "$dir/out")"
    ! grep -qF "$id, since $(date -d "@$second" '+%F %T') at the earliest" "$dir/out" || break
  done
  printed 'b: free, nobody waits'
  kill $waiter $holder
  ends 143 $holder
}

test_status_json() {
  expect 0 "$fairlock" status --json a
  same "$(json .)" '{"name":"a","server":"127.0.0.1:'$port'","held":false,"shared":false,"limit":null,"limits":[],"outdated":false,"holder_count":0,"holders":[],"last":null,"waiter_count":0,"waiters":[]}'
  run a sleep 60 &
  holder=$!
  eventually held a
  run a true &
  eventually waits 1 a
  run a true &
  eventually waits 2 a
  expect 0 "$fairlock" status b --json a
  same "$(json '.held' | tr '\n' ' ')" 'false true '
  same "$(json '.holders[].id')" "\"$(redis hkeys a)\""
  same "$(json '.holders[].token')" "$(redis hget 'fairlock:{a}' token)"
  same "$(json '.holders[].start_time_seconds * 1000 | round')" "$(($(redis hget 'fairlock:{a}' token) / 1000))"
  same "$(json '.holders[]|[.kind,.hold_count,(.lease_remaining_seconds>0 and .lease_remaining_seconds<=30)]')" '["fairlock",1,true]'
  same "$(json 'select(.held)|.waiters|map(.id)|join(" ")')" "\"$(redis lrange 'redisson_lock_queue:{a}' 0 -1 | tr '\n' ' ' | sed 's/ $//')\""
  same "$(json 'select(.held)|.waiters|map([.place,.kind,.alive,.listens])')" '[[1,"fairlock",true,true],[2,"fairlock",true,true]]'
  same "$(json 'select(.held)|[.waiter_count, .holders[0].hold_seconds >= 0, .holders[0].hold_seconds < 60]')" '[2,true,true]'
  # all that list tells
  cp "$dir/out" "$dir/status"
  expect 0 "$fairlock" list --json a
  same "$(jq -c --slurpfile status "$dir/status" '[keys - ($status[1] | keys), .holders[0].hold_seconds >= $status[1].holders[0].hold_seconds]' "$dir/out")" '[[],true]'
  cp "$dir/status" "$dir/out"
  # their clients came after the hold began, one after the other
  same "$(json 'select(.held)|(.holders[0].start_time_seconds <= .waiters[0].client_start_time_seconds and .waiters[0].client_start_time_seconds <= .waiters[1].client_start_time_seconds)')" true
  same "$(json "select(.held)|.waiters[1].client_start_time_seconds <= $(now_ms) / 1000")" true
  kill $holder
  ends 143 $holder
}

# For scripts: nothing but the exit status.
test_status_quiet() {
  run a sleep 60 &
  holder=$!
  eventually held a
  run b sleep 60 &
  other=$!
  eventually held b
  for words in '0 a' '1 free' '0 a b' '1 a free b' '1 free a' '75 --url redis://127.0.0.1:1 a' '64' '64 --json a' "77 --url redis://x:y@127.0.0.1:$port a"; do
    set -- $words
    status=$1
    shift
    for option in -q --quiet; do
      expect "$status" "$fairlock" status $option "$@"
      [ ! -s "$dir/out" ] || fail "$(cat "$dir/out")"
      [ "$status" -ge 2 ] || [ ! -s "$dir/err" ] || fail "$(cat "$dir/err")"
    done
  done
  expect 0 "$fairlock" status free # as ever
  kill $holder $other
  ends 143 $holder
}

# What the note of a later release says cannot be read, so nobody knows if such a waiter is alive, or
# wants to share.
test_waiter_of_a_later_release() {
  redis hset a other:1 1 >"$dir/out"
  redis rpush 'redisson_lock_queue:{a}' later:1 redisson:2 >"$dir/out"
  redis hset 'fairlock:{a}' later:1 'v2 1 2 3' >"$dir/out"
  expect 0 "$fairlock" status --json a
  same "$(json '.waiters|map([.id,.kind,.alive,.listens,.shares])')" \
    '[["later:1","fairlock",null,false,null],["redisson:2","redisson",false,false,false]]'
  expect 0 "$fairlock" status a
  grep -q '1  fairlock  unknown  *later:1' "$dir/out" || fail "$(cat "$dir/out")"
}

# What is kept of a lock has a limit, because a server may list waiters without end: those beyond it are
# counted.
test_more_than_is_kept() {
  redis eval "for i = 1, 6000 do redis.call('rpush', 'redisson_lock_queue:{a}', string.rep('x', 4000) .. i) end" 0 >"$dir/out"
  expect 0 "$fairlock" status --json a
  said 'there are more holders and waiters than fairlock keeps, which is 16 MB'
  same "$(wc -l <"$dir/err")" 1
  same "$(json '[.waiter_count, (.waiters | length) > 4000, (.waiters | length) < 4200]')" '[6000,true,true]'
  kept=$(json '.waiters | length')
  expect 0 "$fairlock" status a
  same "$(tail -n 1 "$dir/out")" "  and $((6000 - kept)) more"
  expect 0 "$fairlock" list a
  printed 'a: free, 6000 waiting'
  expect 1 "$fairlock" break --yes a
  # a server that does not end: the memory has a limit
  waiters=$(((1 << 31) / 3 - 10))
  fake_server EVALSHA "*$((6 + 3 * waiters))\\r\\n:$((waiters + (1 << 32)))\\r\\n:1000\\r\\n:5\\r\\n:1\\r\\n:3\\r\\n\$3\\r\\na:1\\r\\n\\0:1\\r\\n:2\\r\\n\$1\\r\\nx\\r\\n"
  "$fairlock" status --url redis://127.0.0.1:$other a >"$dir/out" 2>"$dir/err" &
  reader=$!
  eventually test -e "$dir/at.said"
  memory=$(sed -n 's/^VmHWM:[^0-9]*\([0-9]*\) kB/\1/p' /proc/$reader/status)
  [ "$memory" -lt 60000 ] || fail "it has $memory kB"
  said 'than fairlock keeps'
  kill $reader
  ends 143 $reader
}

test_status_of_others() {
  redis hset a redisson:1 2 >"$dir/out"
  redis pexpire a 60000 >"$dir/out"
  redis rpush 'redisson_lock_queue:{a}' dead:1 silent:2 >"$dir/out"
  redis zadd 'redisson_lock_timeout:{a}' 1000 dead:1 99999999999999 silent:2 >"$dir/out"
  expect 0 "$fairlock" status --json a
  same "$(json '.holders[]|[.id,.kind,.hold_count,.token]')" '["redisson:1","redisson",2,null]'
  same "$(json '.waiters|map([.id,.kind,.alive,.listens])')" '[["dead:1","redisson",false,false],["silent:2","redisson",true,false]]'
  expect 0 "$fairlock" status a
  printed 'held by redisson:1 (redisson, 2 times, '
  grep -q '1  redisson  dead  *dead:1' "$dir/out" || fail "$(cat "$dir/out")"
  redis hset a redisson:1 0 >"$dir/out"
  expect 0 "$fairlock" status a
  printed 'held by redisson:1 (redisson, handed over, not confirmed yet, '
  redis persist a >"$dir/out"
  expect 0 "$fairlock" status --json a
  same "$(json .lease_remaining_seconds)" null
  expect 0 "$fairlock" status a
  printed 'without end'
}

# What an id tells of its client's age: seven digits of seconds and five of microseconds, of 5 bits
# each, the last ones first. Only an id of exactly that form is believed.
test_client_since() {
  for id in x.5.d4b5gl1o6q61:1 5.d4b5gl1o6q61:9999 x.5.d4b5gl100001:1 x.5.vvvvvv30s7u1:1 \
    x.5.d4b5gl1o6q62:1 x.5.d4b5gl1o6q01:1 x.5.d4b5gl1vvvv1:1 x.5.d4b5w1o6q61:1 x.5.d4b5gl4o6q61:1 x.5.d4b5gl0o6q61:1 \
    x.5-d4b5gl1o6q61:1 d4b5gl1o6q61:1 .d4b5gl1o6q61:1 x.5.D4b5gl1o6q61:1 x.5.d4b5gl1o6q61 :1 1; do
    redis rpush 'redisson_lock_queue:{a}' $id >"$dir/out"
    redis hset 'fairlock:{a}' $id "$(date +%s) 0 5000" >"$dir/out"
  done
  redis rpush 'redisson_lock_queue:{a}' redisson.5.d4b5gl1o6q61:1 >"$dir/out"
  expect 0 "$fairlock" status --json a
  same "$(json '[.waiters[].client_start_time_seconds | if . == null then . else . * 1000 | round end] | tostring')" \
    '"[1795337357223,1795337357223,1795337357000,4294967295991,null,1795337357026,null,null,null,null,null,null,null,null,null,null,null,null]"'
}

# Ids are any bytes that somebody wrote.
test_status_of_any_bytes() {
  id=$(printf 'x"\\\t\033[2J\377\303\251\342\200\256\177')
  redis hset a "$id" 1 >"$dir/out"
  expect 0 "$fairlock" status --json a
  same "$(json '.holders[0].id_hex')" '"78225c091b5b324affc3a9e280ae7f"'
  same "$(json '.holders[0].id[0:4]')" '"x\"\\\t"'
  same "$(json '.holders[0].id|contains("é")')" true
  expect 0 "$fairlock" status a
  printed 'x"\\\x09\x1b[2J\xffé\xe2\x80\xae\x7f (redisson'
}

# What has no width, and what changes the direction of writing, is shown as bytes: U+00AD, 034F, 061C, 115F, 180E, 200B,
# 200C, 200D, 200E, 200F, 2028, 202A, 2060, 2064, 2066, 206F, 3164, FE0F, FEFF, FFF9, 1D173, E0041, E01EF.
test_unseen_characters() {
  for bytes in c2ad cd8f d89c e1859f e1a08e e2808b e2808c e2808d e2808e e2808f e280a8 e280aa e281a0 e281a4 e281a6 e281af \
    e385a4 efb88f efbbbf efbfb9 f09d85b3 f3a08181 f3a087af; do
    shown=$(echo $bytes | sed 's/../\\x&/g')
    name=$(printf 'a%bb' "$(printf '\\0%o' $(echo $bytes | sed 's/../0x& /g'))")
    redis hset "$name" me:1 1 >"$dir/out"
    for words in status 'status --json' 'run --verbose -n'; do
      "$fairlock" $words "$name" $([ "${words#run}" = "$words" ] || echo true) >"$dir/out" 2>&1
      ! LC_ALL=C grep -q '[^ -~]' "$dir/out" || fail "$words, $shown: $(cat "$dir/out")"
      [ "$words" = 'status --json' ] || printed "a${shown}b"
    done
    expect 0 "$fairlock" status --json "$name"
    same "$(jq -r .name "$dir/out")" "$name"
    same "$(json '.name_hex')" null
  done
  expect 0 "$fairlock" status 'é ✓ 日本 א ا' # and what is seen, as it is
  printed 'é ✓ 日本 א ا: free'
}

test_names() {
  long=$(printf '%0512d' 7)
  longest=$(printf '%04096d' 7)
  for name in 'with spaces' 'Tür 7 ✓' "$(printf 'bad \377\301 utf-8')" "$(printf 'new\nline\ttab "quoted" \\')" '{a}b' 'a}b{' \
    '-n' x "$long" "$longest"; do
    run -- "$name" sleep 60 &
    holder=$!
    eventually held "$name"
    expect 1 "$fairlock" run -n -- "$name" true
    expect 0 "$fairlock" status --json -- "$name"
    same "$(json '.held')" true
    if [ "$(json '.name_hex')" = null ]; then same "$(jq -r .name "$dir/out")" "$name"
    else same "$(jq -r .name_hex "$dir/out")" "$(printf %s "$name" | od -An -v -tx1 | tr -d ' \n')"; fi
    expect 0 "$fairlock" status -- "$name"
    same "$(wc -l <"$dir/out")" 1
    expect 0 "$fairlock" break --yes -- "$name"
    kill $holder
    ends 79 $holder
  done
  expect 64 "$fairlock" run '' true
  expect 64 "$fairlock" run "x$longest" true
  said 'at most 4096 bytes'
  expect 64 "$fairlock" status a ''
}

test_name_in_environment() {
  name=$(printf 'a \377\n"x')
  run -- "$name" sh -c 'printf %s "$FAIRLOCK_NAME"' >"$dir/name" &
  ends 0 $!
  same "$(cat "$dir/name")" "$name"
}

test_break() {
  expect 1 "$fairlock" break --yes a
  said 'a is free'
  run --lease 6 a sleep 60 2>"$dir/err.holder" &
  holder=$!
  eventually held a
  owner=$(redis hkeys a)
  run a -- sh -c 'echo mine >$0; sleep 60' "$dir/next" &
  next=$!
  eventually waits 1 a
  expect 0 "$fairlock" break --yes a
  printed "a: broken; it was held by $owner (fairlock, token "
  printed '1 waiting'
  eventually test -s "$dir/next"
  ends 79 $holder
  kill $next
  ends 143 $next
}

# A hold is named: by its token, or by its holder. Another one is left alone.
test_break_named() {
  run a sleep 60 &
  holder=$!
  eventually held a
  owner=$(redis hkeys a)
  token=$(redis hget 'fairlock:{a}' token)
  expect 64 "$fairlock" break a </dev/null
  said 'no terminal to ask on'
  said '--token'
  expect 1 "$fairlock" break --token $((token - 1)) a
  said "a is held by $owner (fairlock, token $token, "
  said 'another hold, and nothing was done'
  expect 1 "$fairlock" break --holder nobody:1 a
  said 'another hold, and nothing was done'
  held a || fail 'broken'
  expect 0 "$fairlock" break --token $token a
  printed "a: broken; it was held by $owner"
  expect 1 "$fairlock" break --token $token a
  said 'a is free'
  ends 79 $holder
  run a sleep 60 &
  holder=$!
  eventually held a
  expect 1 "$fairlock" break --token $token a
  said 'another hold'
  expect 0 "$fairlock" break --holder "$(redis hkeys a)" a
  ends 79 $holder
  # one of Redisson's, which has no token; and one whose id nobody can name
  for id in peer:1 'Tür 7'; do
    redis hset a "$id" 1 >"$dir/out"
    expect 1 "$fairlock" break --token $token a
    expect 0 "$fairlock" break --yes a
    printed "a: broken; it was held by $id (redisson"
    unheld a || fail 'it is still held'
  done
  # such an id is named to nobody, least of all * to the server
  for id in 'two words' '*'; do
    redis hset a "$id" 1 >"$dir/out"
    expect 1 "$fairlock" break --holder "$id" a
    said 'a: its holder cannot be named in a request'
    expect 1 "$fairlock" break --holder "$id" --yes a
    expect 1 "$fairlock" break --ask a
    held a || fail "'$id' was named"
    expect 0 "$fairlock" break --yes a
    unheld a || fail 'it is still held'
  done
  # nor is what makes no sense
  redis hset a peer:1 1 >"$dir/out"
  redis hset 'fairlock:{a}' token 99999999999999999999 holder peer:1 >"$dir/out"
  expect 0 "$fairlock" status a
  printed 'a: held by peer:1 (fairlock, without end)'
  expect 0 "$fairlock" break --holder peer:1 a
  # a hold count that is none hides nobody
  redis hset a peer:1 -5 >"$dir/out"
  expect 1 "$fairlock" break --token 7 a
  said 'a is held by peer:1 (fairlock, '
  expect 0 "$fairlock" break --holder peer:1 a
  unheld a || fail 'it is still held'
  for words in '--token 0' '--token x' '--token 9007199254740993' '--token 1 --holder x:1' '--ask --yes' '-w 1'; do
    expect 64 "$fairlock" break $words a
  done
}

# last MEMBER: of the last hold of a
last() {
  "$fairlock" status --json a | jq -r ".last.$1"
}

is_shared() {
  redis hexists "$1" shared | grep -q 1
}

# A free lock: who held it last, for how long, and how that ended.
test_last_hold() {
  expect 0 "$fairlock" run a sleep 0.3
  expect 0 "$fairlock" status a
  id=$(redis hget 'fairlock:{a}' holder) token=$(redis hget 'fairlock:{a}' token)
  since=$(date -d "@$((token / 1000000))" '+%F %T')
  printed "a: free, last held by $id (token $token) from $since for "
  printed ' s, released, nobody waits'
  same "$(last id) $(last token) $(last end) $(last broken_by)" "$id $token released null"
  same "$(last 'start_time_seconds | floor')" $((token / 1000000))
  [ "$("$fairlock" status --json a | jq '.last.hold_seconds >= 0.3 and .last.hold_seconds < 100')" = true ] || fail "$(last hold_seconds)"

  run a sleep 60 2>"$dir/err.holder" &
  holder=$!
  eventually held a
  same "$(last id)" null
  expect 0 "$fairlock" break --yes a
  ends 79 $holder
  expect 0 "$fairlock" status a
  printed "a: free, last held by $(redis hget 'fairlock:{a}' holder) (token "
  printed ' s, broken by '
  printed "$(id -un)@"
  same "$(last end)" broken

  run a sleep 60 2>"$dir/err.holder" &
  holder=$!
  eventually held a
  redis del a >"$dir/out"
  expect 0 "$fairlock" status a
  printed ', not released: its lease ran out, or its key was deleted, nobody waits'
  same "$(last end) $(last hold_seconds)" 'unreleased null'
  kill $holder
  ends 79 $holder

  # of those who share, the last to go; and what a clean-up leaves of an earlier release
  run -s a -- sh -c 'until [ -e "$0" ]; do sleep 0.05; done' "$dir/go" &
  first=$!
  eventually is_shared a
  expect 0 "$fairlock" run -s a true
  id=$(redis hget 'fairlock:{a}' holder)
  sleep 0.3
  touch "$dir/go"
  ends 0 $first
  same "$(last id) $(last end)" "$id released"
  [ "$("$fairlock" status --json a | jq '.last.hold_seconds >= 0.3')" = true ] || fail "$(last hold_seconds)"
  redis hdel 'fairlock:{a}' ended >"$dir/out"
  same "$(last hold_seconds)" null

  # what anybody may have written
  redis hset 'fairlock:{a}' holder "$(printf 'x\033[2J:1')" broken "$(redis hget 'fairlock:{a}' token) 1 $(printf 'anna@\033[2J\nevil')" >"$dir/out"
  expect 0 "$fairlock" status a
  printed 'last held by x\x1b[2J:1 (token '
  printed ', broken by anna@\x1b[2J\x0aevil, nobody waits'
}

# Who breaks a lock, and why: for the holder, for status, and for people only, so escaped.
test_break_reason() {
  reason=$(printf 'st\303\274ck\377 on NFS\033[2J\n"since"\\ 4') who=$(id -un)@$(uname -n | sed 's/\..*//')
  shown='stück\xff on NFS\x1b[2J\x0a"since"\\ 4'
  for words in '' '-n' '-s'; do
    run $words --on-ask ignore a sleep 60 2>"$dir/err.holder" &
    holder=$!
    eventually heard_by_all a
    expect 1 "$fairlock" break --ask --reason "$reason" -w 0 a
    eventually grep -qF "a is asked for by an operator: $who $shown; sent nothing" "$dir/err.holder"
    expect 0 "$fairlock" break --yes --reason "$reason" a
    ends 79 $holder
    grep -qF "a is lost: it was broken by $who $shown; ending the command" "$dir/err.holder" || fail "$(cat "$dir/err.holder")"
    expect 0 "$fairlock" status a
    printed " s, broken by $who $shown, nobody waits"
    same "$(last broken_by)" "$(printf '%s' "$who $reason" | sed "s/$(printf '\377')/$(printf '\357\277\275')/")"
    same "$(last broken_by_hex)" "$(printf '%s' "$who $reason" | od -An -v -tx1 | tr -d ' \n')"
  done
  expect 64 "$fairlock" break --yes --reason '' a
  expect 64 "$fairlock" break --yes --reason "$(printf '%129s' x)" a
  run a sleep 60 2>"$dir/err.holder" &
  holder=$!
  eventually held a
  expect 0 "$fairlock" break --yes --reason "$(printf '%0128d' 7)" a
  ends 79 $holder
  same "$(last broken_by)" "$who $(printf '%0128d' 7)"
}

# heard_by_all NAME: whoever holds it listens
heard_by_all() {
  [ "$("$fairlock" status --json "$1" | jq '.holders | length > 0 and all(.listens)')" = true ]
}

# A lock that cannot be read is broken only if nobody in particular is meant.
test_break_unread() {
  for words in '--token 7' '--holder peer:1' --ask; do
    fake_server EVALSHA ':1\r\n'
    expect 1 "$fairlock" break --url redis://127.0.0.1:$other $words a
    said 'a: its holder cannot be read'
  done
  fake_server EVALSHA ':1\r\n' EVALSHA '*3\r\n:1\r\n:0\r\n:1700000000000\r\n'
  expect 0 "$fairlock" break --url redis://127.0.0.1:$other --yes a
  printed 'a: broken; its holder could not be read'
}

# answered ANSWER [COMMAND]: break asks on a terminal, and gets this answer after the command
answered() {
  : >"$dir/out"
  ( (eventually grep -q 'End this hold' "$dir/out"); ${2:+"$2"}; echo "$1"; (eventually grep -q 'a: broken\|nothing was done' "$dir/out")) |
    SHELL=/bin/sh script -qefc "env NO_COLOR=1 '$fairlock' break a" /dev/null >"$dir/out"
}

# typed_ahead BEFORE ANSWER: the first is typed while the server, which is stopped, has not told yet
typed_ahead() {
  : >"$dir/out"
  kill -STOP $server
  ( echo "$1"; sleep 0.5; kill -CONT $server; (eventually grep -q 'End this hold' "$dir/out"); echo "$2"; (eventually grep -q 'a: broken\|nothing was done' "$dir/out")) |
    SHELL=/bin/sh script -qefc "env NO_COLOR=1 '$fairlock' break a" /dev/null >"$dir/out"
}

# Meanwhile the hold ends, and another begins.
change_holder() {
  redis del a >"$dir/answer"
  redis hset a second:1 1 >"$dir/answer"
}

# On a terminal it asks. What it shows is what it ends.
test_break_on_a_terminal() {
  run a sleep 60 &
  holder=$!
  eventually held a
  for answer in n '' no x yikes; do
    ! answered "$answer" || fail "broken by '$answer'"
    printed "a: held by $(redis hkeys a) (fairlock, token $(redis hget 'fairlock:{a}' token), since "
    printed '; 0 waiting'
    printed 'End this hold? [y/N]'
    printed 'nothing was done'
    held a || fail "broken by '$answer'"
  done
  # what was typed before the question does not answer it
  ! typed_ahead y n || fail 'broken by what was typed before'
  printed 'nothing was done'
  held a || fail 'broken by what was typed before'
  answered Yes || fail "$(cat "$dir/out")"
  printed 'a: broken; it was held by'
  ends 79 $holder
  redis hset a first:1 1 >"$dir/answer"
  ! answered y change_holder || fail "$(cat "$dir/out")"
  printed 'a is held by second:1'
  same "$(redis hkeys a)" second:1
}

# The holder is asked: its command gets SIGTERM, and the lock goes to the next in line.
test_break_ask() {
  expect 1 "$fairlock" break --ask a
  said 'a is free'
  for words in '' '-n'; do
    run $words a sleep 60 2>"$dir/err.holder" &
    holder=$!
    eventually held a
    owner=$(redis hkeys a)
    run a sleep 60 &
    next=$!
    eventually waits 1 a
    expect 0 "$fairlock" break --ask -w 20 a
    printed "a: asked $owner to release it"
    printed 'a: the hold has ended'
    ends 143 $holder
    grep -q "a is asked for by an operator: $(id -un)@.*; sent term to the command" "$dir/err.holder" || fail "$(cat "$dir/err.holder")"
    kill $next
    ends 143 $next
  done
}

# Nobody knows whether the holder goes on when the server is gone.
test_break_ask_without_a_server() {
  run --on-ask ignore a sleep 60 2>"$dir/err.holder" &
  holder=$!
  eventually held a
  eventually heard_by a
  "$fairlock" break --ask -w 10 a >"$dir/out" 2>"$dir/err" &
  asking=$!
  eventually grep -q 'a: asked' "$dir/out"
  stop_server
  ends 75 $asking
  said "redis://127.0.0.1:$port"
  kill -9 $holder
}

# A run that is stopped reads nothing of what its agent tells, and the agent renews all the same.
test_break_ask_of_one_that_is_stopped() {
  run --lease 6 --on-ask ignore a -- sh -c 'echo ready >"$0"; sleep 60' "$dir/ready" 2>"$dir/err.holder" &
  holder=$!
  eventually test -s "$dir/ready"
  kill -STOP $holder
  asked=0
  while [ $asked -lt 400 ]; do
    expect 0 "$fairlock" break --ask a
    asked=$((asked + 1))
  done
  sleep 7
  kill -CONT $holder
  eventually grep -q 'a is asked for by an operator: .*; sent nothing to the command' "$dir/err.holder"
  ! grep -v 'is asked for' "$dir/err.holder" || fail 'it took that for a loss'
  kill $holder
  ends 143 $holder
}

# The holder decides: it may be told by another signal, or not at all.
test_break_ask_ignored() {
  run --on-ask ignore a sleep 60 2>"$dir/err.holder" &
  holder=$!
  eventually held a
  eventually heard_by a
  expect 0 "$fairlock" break --ask a
  expect 1 "$fairlock" break --ask --wait 0.5 a
  said 'a: its holder has not released it'
  eventually grep -q 'a is asked for by an operator: .*; sent nothing to the command' "$dir/err.holder"
  ! dead $holder || fail 'it has ended'
  kill $holder
  ends 143 $holder
  run --on-ask SIGUSR1 a -- sh -c 'trap "echo asked >$0" USR1; echo ready >$0; while :; do sleep 0.1; done' "$dir/told" &
  holder=$!
  eventually grep -q ready "$dir/told"
  expect 1 "$fairlock" break --ask -w 2 a
  eventually grep -q asked "$dir/told"
  kill $holder
  ends 143 $holder
  # one that cannot be told
  redis hset a peer:1 1 >"$dir/out"
  expect 1 "$fairlock" break --ask a
  said 'a: its holder cannot be asked: it does not listen, as it is no fairlock client'
  expect 64 "$fairlock" run --on-ask stop a true
}

# heard_by NAME: its holder listens
heard_by() {
  [ "$(redis pubsub numsub "redisson_lock__channel:{$1}:$(redis hkeys "$1")" | tail -n 1)" = 1 ]
}

# A holder that has missed two renewals is told from one that has not, in text and in JSON.
test_dead_holder() {
  run --lease 300 a sleep 60 &
  holder=$!
  eventually held a
  eventually heard_by a
  expect 0 "$fairlock" status a
  printed 's left of 300.0, heard '
  ! grep -q dead "$dir/out" || fail "$(cat "$dir/out")"
  for words in status list; do
    expect 0 "$fairlock" $words --json a
    same "$(json '.holders[]|[.lease_seconds * 1, .unheard_seconds < 100, .alive, .listens]')" '[300,true,true,true]'
  done
  # as long after its last renewal as if it had been cut off
  redis pexpire a 90000 >"$dir/answer"
  expect 0 "$fairlock" status a
  grep -q ' s left of 300\.0, heard 2[1-9][0-9]\.[0-9] s ago, probably dead)' "$dir/out" || fail "$(cat "$dir/out")"
  expect 0 "$fairlock" list a
  printed 's ago, probably dead) for '
  expect 0 "$fairlock" status --json a
  same "$(json '.holders[]|[.lease_seconds * 1, .unheard_seconds > 200, .alive]')" '[300,true,false]'
  kill $holder
  ends 143 $holder
  redis hset a peer:1 1 >"$dir/answer"
  redis pexpire a 9000 >"$dir/answer"
  expect 0 "$fairlock" status --json a
  same "$(json '.holders[]|[.token, .start_time_seconds, .hold_seconds, .lease_seconds, .unheard_seconds, .alive, .listens]')" '[null,null,null,null,null,null,false]'
  redis del a >"$dir/answer"
}

# as_host NAME COMMAND...: on a host of this name
as_host() {
  unshare $(unshare -u true 2>"$dir/unshared" || echo -r) -u sh -c 'hostname "$0" && exec "$@"' "$@"
}

# begins NAME WORDS: so does the id of its holder
begins() {
  case $(redis hkeys "$1") in
    "$2"*) ;;
    *) fail "the id is '$(redis hkeys "$1")', and does not begin with '$2'" ;;
  esac
}

# Pods of Kubernetes differ only at the end of their names, which are long.
test_pods() {
  as_host pod true 2>"$dir/err" || { echo 'skip pods: the system lets nobody name a host'; return; }
  pod=nightly-report-generator-of-a-customer-29411280
  for end in x7k2p q9d4z; do
    as_host $pod-$end "$fairlock" run --limit 2 a sleep 60 &
  done
  eventually sh -c "'$fairlock' status --json a | jq -e '.holder_count == 2'"
  expect 0 "$fairlock" status a
  for end in x7k2p q9d4z; do
    grep -q "nightly-report.*[.][.].*-29411280-${end}[.]" "$dir/out" || fail "$(cat "$dir/out")"
  done
  expect 0 "$fairlock" list --json
  same "$(json '[.holders[].id|capture("(?<end>.....)[.][0-9]+[.][0-9a-v]+[.][0-9a-v]+:1$").end]|sort')" '["q9d4z","x7k2p"]'
  # one that fits is whole
  as_host nightly-report-29411280-x7k2p.svc.local "$fairlock" run b sleep 60 &
  eventually held b
  begins b nightly-report-29411280-x7k2p.
}

test_id() {
  longest=0123456789012345678901234567890123456789
  FAIRLOCK_ID=eu-1/pod.7
  export FAIRLOCK_ID
  expect 0 "$fairlock" run a sh -c 'echo "$FAIRLOCK_HOLDER"'
  same "$(sed 's/[.][^.]*[.][^.]*$//' "$dir/out")" eu-1/pod.7
  expect 0 "$fairlock" run --id $longest a sh -c 'echo "$FAIRLOCK_HOLDER"'
  same "$(sed 's/[.][^.]*[.][^.]*$//' "$dir/out")" $longest
  run a sleep 60 &
  holder=$!
  eventually held a
  begins a eu-1/pod.7.
  expect 0 "$fairlock" status --json a
  same "$(json '.holders[0].id')" "\"$(redis hkeys a)\""
  kill $holder
  ends 143 $holder
  for id in 'a b' a:b "$(printf 'a\033b')" é; do
    expect 64 "$fairlock" run --id "$id" a true
    said '--id takes printable ASCII characters, but no space and no colon: not '
    expect 64 env FAIRLOCK_ID="$id" "$fairlock" run a true
    said 'FAIRLOCK_ID takes printable ASCII characters, but no space and no colon: not '
  done
  ! grep -q "$(printf '\033')" "$dir/err" || fail "it steers the terminal"
  expect 64 "$fairlock" run --id x$longest a true
  said "--id takes at most 40 characters, and x$longest has 41"
  expect 64 "$fairlock" run --id '' a true
  said '--id cannot be empty'
  expect 0 env FAIRLOCK_ID= "$fairlock" run a true
  expect 0 env FAIRLOCK_ID=a:b "$fairlock" run --id c a true
}

test_watch() {
  "$fairlock" watch -i 0.05 a >"$dir/watched" &
  watcher=$!
  eventually grep -q 'a: free, 0 waiting' "$dir/watched"
  head -n 1 "$dir/watched" | grep -q "a: read from redis://127.0.0.1:$port\$" || fail "$(cat "$dir/watched")"
  run a sleep 60 &
  holder=$!
  eventually held a
  eventually grep -q "held by $(redis hkeys a) .*, 0 waiting" "$dir/watched"
  run a sleep 60 &
  waiter=$!
  eventually grep -q "1 waiting: [0-9a-v.]*:1" "$dir/watched"
  kill $holder
  ends 143 $holder
  eventually unheld b
  kill $waiter
  ends 143 $waiter
  eventually sh -c "tail -n 1 '$dir/watched' | grep -q 'a: free, 0 waiting'"
  lines=$(wc -l <"$dir/watched")
  sleep 0.3
  same "$(wc -l <"$dir/watched")" "$lines"
  same "$(grep -c 'read from' "$dir/watched")" 1
  kill $watcher
  ends 143 $watcher
}

# Where its output is closed, its lines do not go to the server, by a connection that took its place.
test_watch_without_an_output() {
  for closed in '>&-' '<&- >&-' '>&- 2>&-' '<&- >&- 2>&-'; do
    eval "timeout 60 '$fairlock' watch a </dev/null 2>'$dir/err' $closed"
    same "$closed $?" "$closed 71"
  done
  ! redis info errorstats | grep errorstat_ERR || fail "the server was sent what was for the output"
}

# on_terminal COMMAND: its output to a terminal is in $dir/out
on_terminal() {
  TERM=xterm SHELL=/bin/sh script -qefc "$1" /dev/null </dev/null >"$dir/out"
}

test_watch_on_a_terminal() {
  run a sleep 60 &
  holder=$!
  eventually held a
  run a true &
  waiter=$!
  eventually waits 1 a
  # for how long it has been seen, counting up; then Ctrl-C
  seen=$dir/out
  : >"$seen"
  ( (eventually grep -q 'at the earliest, seen for [1-9]\.[0-9] s' "$seen"); printf '\003'; sleep 0.2) |
    TERM=xterm SHELL=/bin/sh script -qefc "'$fairlock' watch --interval=0.1 a" /dev/null >"$dir/out"
  printed "$(printf '\033[H\033[J')"
  printed "$(printf '\033[1ma\033[0m') on redis://127.0.0.1:$port"
  printed "held by $(redis hkeys a)"
  printed 's left of 30.0, heard '
  grep -q 'at the earliest, seen for 0\.[0-9] s' "$dir/out" || fail "$(cat "$dir/out")"
  grep -q 'at the earliest, seen for [1-9]\.[0-9] s' "$dir/out" || fail "$(cat "$dir/out")"
  kill $waiter
  ends 143 $waiter
  kill $holder
  ends 143 $holder
}

test_colours() {
  escape=$(printf '\033')
  run a sleep 60 &
  holder=$!
  eventually held a
  redis rpush 'redisson_lock_queue:{a}' silent:1 dead:2 >"$dir/out"
  redis hset 'fairlock:{a}' silent:1 '99999999999 0 5000' dead:2 '1 0 5000' >"$dir/out"
  for words in 'status a b' 'list' 'status --json a b' 'list --json'; do
    expect 0 "$fairlock" $words
    ! grep -q "$escape" "$dir/out" || fail "colours in a pipe: $words: $(cat "$dir/out")"
    for without in NO_COLOR=1 TERM=dumb TERM=; do
      on_terminal "env $without '$fairlock' $words"
      ! grep -q "$escape" "$dir/out" || fail "colours in spite of $without: $words: $(cat "$dir/out")"
    done
  done
  on_terminal "env NO_COLOR= '$fairlock' status a b"
  for painted in "${escape}[1ma${escape}[0m: ${escape}[33mheld by $(redis hkeys a)${escape}[0m (" \
    "${escape}[33msilent ${escape}[0m  silent:1" "${escape}[31mdead   ${escape}[0m  dead:2" "${escape}[32mfree${escape}[0m"; do
    printed "$painted"
  done
  on_terminal "'$fairlock' list"
  printed "${escape}[33mheld by $(redis hkeys a)${escape}[0m (fairlock, heard "
  on_terminal "'$fairlock' list --json"
  ! grep -q "$escape" "$dir/out" || fail "colours in JSON: $(cat "$dir/out")"
  kill $holder
  ends 143 $holder
}

test_watch_outlives_the_connection() {
  "$fairlock" watch -i 0.05 a >"$dir/watched" &
  watcher=$!
  eventually grep -q 'a: free' "$dir/watched"
  redis client kill type normal skipme yes >"$dir/out"
  run a sleep 60 &
  holder=$!
  eventually grep -q 'held by' "$dir/watched"
  kill $holder
  ends 143 $holder
  stop_server
  eventually grep -q 'cannot be reached; trying again' "$dir/watched"
  ! dead $watcher || fail "it has ended"
  kill $watcher
  ends 143 $watcher
}

[ $# -eq 0 ] || run_tests "$@"
run_tests status last_hold status_json more_than_is_kept status_quiet client_since waiter_of_a_later_release status_of_others status_of_any_bytes unseen_characters names name_in_environment break break_named break_reason break_unread break_on_a_terminal break_ask \
  break_ask_ignored break_ask_without_a_server break_ask_of_one_that_is_stopped dead_holder pods id watch \
  watch_without_an_output watch_on_a_terminal colours watch_outlives_the_connection
