#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# fairlock list: which locks it finds among other keys, patterns, names of all kinds, rights.
# shellcheck source=tests/support/lib.sh disable=SC2034,SC2016,SC2046,SC2086,SC2154,SC1091,SC1003,SC2317
set -u
. tests/support/lib.sh
. tests/command/rights.sh

# same WHAT WANTED
same() {
  [ "$1" = "$2" ] || fail "'$1' instead of '$2'"
}

# names: of the last list --json, with a space behind each
names() {
  jq -r '.name' "$dir/out" | tr '\n' ' '
}

# hold NAME...: each by a command in the background
hold() {
  for name in "$@"; do
    run -- "$name" sleep 60 &
    eventually held "$name"
  done
}

# Thousands of keys that are not locks, some of which look like one.
fill() {
  redis eval "for i = 1, 5000 do redis.call('set', 'string:' .. i, 1) redis.call('hset', 'fair:' .. i, 'a', 1)
    redis.call('rpush', 'redisson:' .. i, 1) end
    redis.call('set', 'fairlock:', 1) redis.call('set', 'fairlock:plain', 1) redis.call('set', 'fairlock:{', 1)
    redis.call('hset', 'fairlocks:{a}', 'a', 1) redis.call('rpush', 'redisson_lock_queues:{a}', 1)" 0 >"$dir/out"
}

test_among_other_keys() {
  fill
  redis del 'fairlock:{' >"$dir/out"
  expect 0 "$fairlock" list
  same "$(wc -c <"$dir/out")" 0
  hold a 'b c'
  expect 0 "$fairlock" run free true
  run a true &
  eventually waits 1 a
  run a true &
  eventually waits 2 a
  expect 0 "$fairlock" list
  cp "$dir/out" "$dir/sorted"
  same "$(wc -l <"$dir/sorted")" 2
  sed -n 1p "$dir/sorted" | grep -qx "a: held by $(redis hkeys a) (fairlock, heard [0-9.]* s ago) for [0-9.]* s, 2 waiting" || fail "$(cat "$dir/sorted")"
  sed -n 2p "$dir/sorted" | grep -qx "b c: held by $(redis hkeys 'b c') (fairlock, heard [0-9.]* s ago) for [0-9.]* s, 0 waiting" || fail "$(cat "$dir/sorted")"
}

# More locks than a page of SCAN, or a batch of requests, has; those that are free are not printed.
test_many() {
  fill
  redis del 'fairlock:{' >"$dir/out"
  redis eval "for i = 1, 3000 do local name, now = 'lock' .. i, redis.call('time')
    redis.call('hset', 'fairlock:{' .. name .. '}', 'token', now[1] .. now[2], 'holder', 'me:1')
    if i % 2 == 0 then redis.call('hset', name, 'me:1', 1) redis.call('pexpire', name, 60000) end end" 0 >"$dir/out"
  expect 0 "$fairlock" list --json
  same "$(jq -s 'map(.name) | unique | length' "$dir/out")" 1500
  jq -r .name "$dir/out" | LC_ALL=C sort -c -u 2>"$dir/err" || fail "not sorted: $(cat "$dir/err")"
  same "$(jq -s 'map(select(.held and .holders[0].id == "me:1" and .waiter_count == 0)) | length' "$dir/out")" "$(wc -l <"$dir/out")"
}

# A later release uses the lock in a way that this one does not know: all show it, and nobody gets in.
test_needs() {
  hold a
  redis hset 'fairlock:{a}' needs several >"$dir/out"
  expect 0 "$fairlock" list
  grep -qE '[)] for [0-9.]+ s, used by a later release, 0 waiting$' "$dir/out" || fail "$(cat "$dir/out")"
  expect 0 "$fairlock" status a
  printed ', used by a later release'
  expect 0 "$fairlock" status --json a
  same "$(jq .outdated "$dir/out")" true
  for words in 'run a true' 'run -n a true' 'run -s a true' 'break --yes a'; do
    expect 82 "$fairlock" $words
    said 'NEEDS several'
  done
  same "$(redis hlen a)" 1
  redis hdel 'fairlock:{a}' needs >"$dir/out"
  expect 1 "$fairlock" run -n a true
}

test_json() {
  hold a
  token=$(redis hget 'fairlock:{a}' token)
  expect 0 "$fairlock" list --json
  same "$(jq -c 'del(.holders[].lease_remaining_seconds, .holders[].hold_seconds, .holders[].unheard_seconds) | .holders[].start_time_seconds |= (. * 1000 | round) | .holders[].lease_seconds |= . * 1' "$dir/out")" \
    '{"name":"a","server":"127.0.0.1:'$port'","held":true,"shared":false,"limit":null,"limits":[],"outdated":false,"holder_count":1,"holders":[{"id":"'$(redis hkeys a)'","kind":"fairlock","hold_count":1,"token":'$token',"start_time_seconds":'$((token / 1000))',"lease_seconds":30,"alive":true,"listens":true}],"last":null,"waiter_count":0}'
  same "$(jq -c '.holders[]|[.unheard_seconds >= 0, .lease_remaining_seconds > 0, .lease_remaining_seconds <= 30, .hold_seconds >= 0, .hold_seconds < 60]' "$dir/out")" '[true,true,true,true,true]'
  # an hour later
  redis hset 'fairlock:{a}' token $((token - 3720000000)) >"$dir/out"
  expect 0 "$fairlock" list a
  printed ' (fairlock) for 1 h 2 min, 0 waiting'
}

# What only Redisson uses is found while somebody waits for it, and has no age.
test_of_others() {
  redis hset r redisson:1 1 >"$dir/out"
  redis hset found redisson:1 1 >"$dir/out"
  redis rpush 'redisson_lock_queue:{found}' redisson:2 >"$dir/out"
  redis rpush 'redisson_lock_queue:{free}' redisson:3 >"$dir/out"
  expect 0 "$fairlock" list
  same "$(tr '\n' ' ' <"$dir/out")" 'found: held by redisson:1 (redisson), 1 waiting free: free, 1 waiting '
  expect 0 "$fairlock" list --json found
  same "$(jq -c '[(.holders[]|.token, .start_time_seconds, .hold_seconds), .waiter_count]' "$dir/out")" '[null,null,null,1]'
}

test_names() {
  nasty=$(printf 'new\nline \033[2J"\\\t')
  binary=$(printf 'bad \377\301 utf-8')
  hold "$nasty" "$binary" 'Tür ✓' '{x}{y}' 'y{x}z' 'a}b' "$(printf '%04096d' 7)"
  expect 0 "$fairlock" list
  same "$(wc -l <"$dir/out")" 7
  sed 's/:.*//' "$dir/out" | LC_ALL=C sort -c || fail "not sorted: $(cat "$dir/out")"
  ! grep -q "$(printf '\033')" "$dir/out" || fail "$(cat "$dir/out")"
  for shown in 'new\x0aline \x1b[2J"\\\x09' 'bad \xff\xc1 utf-8' 'Tür ✓' '{x}{y}' 'y{x}z' 'a}b' "$(printf '%04096d' 7)"; do
    grep -qF "$shown: held by " "$dir/out" || fail "no $shown: $(cat "$dir/out")"
  done
  expect 0 "$fairlock" list --json
  same "$(jq -s length "$dir/out")" 7
  same "$(jq -r 'select(.name | startswith("new")) | .name' "$dir/out")" "$nasty"
  same "$(jq -r 'select(.name_hex) | .name_hex' "$dir/out")" "$(printf %s "$binary" | od -An -v -tx1 | tr -d ' \n')"
  # as they are, for xargs -0
  expect 0 "$fairlock" list -0
  "$fairlock" list --null | xargs -0 "$fairlock" status --json >"$dir/status"
  same "$(jq -s -c 'map([.name, .name_hex, .held])' "$dir/status")" "$("$fairlock" list --json | jq -s -c 'map([.name, .name_hex, .held])')"
  # a NUL byte, which no command line can give
  redis eval "redis.call('hset', 'n\0l', 'me:1', 1) redis.call('hset', 'fairlock:{n\0l}', 'token', 1)" 0 >"$dir/out"
  for pattern in 'n?l' 'n*' '*'; do
    expect 0 "$fairlock" list --json "$pattern"
    same "$(jq -c 'select(.name | startswith("n\u0000")) | [.name, .held]' "$dir/out")" '["n\u0000l",true]'
  done
  cp "$dir/out" "$dir/json"
  expect 0 "$fairlock" list -0
  said 'n\x00l has a zero byte in its name, and is left out'
  same "$(tr -d -c '\000' <"$dir/out" | wc -c)" "$(($(wc -l <"$dir/json") - 1))"
}

test_patterns() {
  hold door:1 door:12 'do*r' 'a[b]' 'é'
  for case in 'door:? door:1 ' 'door:* door:1_door:12 ' 'd* do*r_door:1_door:12 ' 'do\*r do*r ' 'a\[b] a[b] ' 'a[b] ' \
    'door:[0-9] door:1 ' 'é é ' 'x ' '* a[b]_do*r_door:1_door:12_é '; do
    expect 0 "$fairlock" list --json "${case%% *}"
    same "$(names | tr ' ' _)" "$(echo "${case#* }" | sed 's/ $//; s/$/_/; s/^_$//')"
  done
  expect 64 "$fairlock" list a b
  said "'b' is one too many"
}

# A key of another type does not end the list.
test_unreadable() {
  hold a z
  redis set m 1 >"$dir/out"
  redis hset 'fairlock:{m}' token 1 >"$dir/out"
  expect 76 "$fairlock" list --json
  same "$(names)" 'a z '
  said 'm cannot be read: '
  said WRONGTYPE
}

# No age is told by a time that is none, or that no number of ours can hold.
# It is as it should be once, for the greeting.
test_lies_about_time() {
  for time in '1700000000 5' '9223372036854775807 5' '-5 0' '5 1000000' '5'; do
    set -- $time
    wrong="*$#\r\n"
    for number; do wrong="$wrong\$${#number}\r\n$number\r\n"; done
    fake_server TIME '*2\r\n$10\r\n1700000000\r\n$1\r\n5\r\n' TIME "$wrong" SCAN '*2\r\n$1\r\n0\r\n*1\r\n$12\r\nfairlock:{a}\r\n' \
      EXISTS ':1\r\n' HGETALL '*0\r\n' PTTL ':-2\r\n' EVALSHA '*6\r\n:4294967296\r\n:5000\r\n$1\r\n7\r\n:1\r\n:1\r\n$4\r\nme:1\r\n'
    wanted=76
    [ "$time" != '1700000000 5' ] || wanted=0
    expect $wanted "$fairlock" list --url redis://127.0.0.1:$other
  done
}

# A lock whose contents make no sense is named, not taken for free.
test_nonsense() {
  hold a z
  redis hset m redisson:1 -5 >"$dir/out"
  redis hset 'fairlock:{m}' token 1 >"$dir/out"
  expect 0 "$fairlock" list --json
  same "$(names)" 'a m z '
  expect 0 "$fairlock" status --json m
  same "$(jq -c '[.held, .holders[0].id, .holders[0].hold_count]' "$dir/out")" '[true,"redisson:1",0]'
  expect 0 "$fairlock" break --yes m
  expect 0 "$fairlock" status m
  printed 'm: free'
}

# A lock of Redisson's whose name is wholly in braces has the queue of another: it is shown as what it is.
test_wholly_in_braces() {
  redis eval "redis.call('hset', '{x}', 'java:7', 2) redis.call('pexpire', '{x}', 60000)
    redis.call('hset', 'fairlock:{x}', 'token', 1)
    redis.call('hset', '{free}', 'java:8', 1) redis.call('rpush', 'redisson_lock_queue:{free}', 'java:9')" 0 >"$dir/out"
  expect 0 "$fairlock" list
  same "$(cat "$dir/out")" 'free: free, 1 waiting
{free}: held by java:8 (redisson), 0 waiting
{x}: held by java:7 (redisson), 0 waiting'
  expect 0 "$fairlock" list --json '{x}'
  same "$(jq -c '[.name, (.holders[]|.kind, .id, .hold_count, .token), .waiter_count]' "$dir/out")" '["{x}","redisson","java:7",2,null,0]'
  [ "$(jq '.holders[].lease_remaining_seconds > 1' "$dir/out")" = true ] || fail "$(cat "$dir/out")"
  for command in 'status {x}' 'watch {x}' 'break --yes {x}' 'run {x} -- true'; do
    # shellcheck disable=SC2086
    expect 64 "$fairlock" $command
    said '{x} is wholly in braces, and shares the queue of the lock without them, but not its holder: take {x}:lock'
  done
  for key in fairlock redisson_lock_queue redisson_lock_timeout; do
    expect 64 "$fairlock" run "$key:{x}" -- true
    said "$key:{x} is a key in which another lock keeps its state"
    expect 0 "$fairlock" run "$key:x" -- true
  done
}

# A key that stands where a lock's in braces would, with a name longer than any lock's: no lock's, and no end.
test_too_long_in_braces() {
  hold a z
  for size in 4094 4095 4096; do
    name=$(printf "%0${size}d" 7)
    redis set "{$name}" 1 >"$dir/out"
    redis hset "fairlock:{$name}" token 1 >"$dir/out"
  done
  # the shortest can be a lock's
  expect 76 "$fairlock" list --json
  same "$(names)" 'a z '
  same "$(grep -c 'cannot be read: ' "$dir/err")" 1
  said WRONGTYPE
}

test_rights() {
  more=$(more_rights +scan)
  [ -n "$more" ] || fail "the page has no rule"
  set -f
  redis acl setuser $(rights) >"$dir/out"
  hold a b
  expect 77 "$fairlock" list --url redis://lock:pw@127.0.0.1:$port
  said "redis://127.0.0.1:$port: the server refuses this user"
  said NOPERM
  redis acl setuser lock $more >"$dir/out"
  expect 0 "$fairlock" list --json --url redis://lock:pw@127.0.0.1:$port 'a*'
  same "$(names)" 'a '
  # a lock that it may not read is named
  expect 77 "$fairlock" list --json --url redis://lock:pw@127.0.0.1:$port
  said NOPERM
}

# The second connection is like the first: passwords that can be read once, databases, sockets.
test_urls() {
  redis config set requirepass secret >"$dir/out"
  password=secret
  mkfifo "$dir/password"
  (echo secret >"$dir/password") &
  "$fairlock" run --url redis://:secret@127.0.0.1:$port/3 a sleep 60 &
  eventually sh -c "[ \$(redis-cli -p $port --no-auth-warning -a secret -n 3 hlen a) = 1 ]"
  expect 0 "$fairlock" list --json --password-file "$dir/password" --url redis://127.0.0.1:$port/3
  same "$(names)" 'a '
  expect 0 "$fairlock" list --json --url "unix://:secret@$dir/$port/socket?db=3"
  same "$(names)" 'a '
  expect 0 "$fairlock" list --url "unix://:secret@$dir/$port/socket"
  same "$(wc -c <"$dir/out")" 0
  expect 77 "$fairlock" list
  said 'the server refuses this user'
  stop_server
  expect 75 "$fairlock" list
  said "redis://127.0.0.1:$port: the server cannot be reached"
}

# A password may be as long as for the other connection, and the user's name as long as a URL.
test_long_password() {
  password=$(head -c 16384 /dev/zero | tr '\0' p)
  user=$(head -c 1500 /dev/zero | tr '\0' u)
  (umask 077 && echo "$password" >"$dir/password")
  redis acl setuser "$user" on ">$password" '~*' '&*' +@all >"$dir/out" || fail "$(cat "$dir/out")"
  password=
  expect 0 "$fairlock" list --json --url "redis://$user@127.0.0.1:$port" --password-file "$dir/password"
}

# A server that sends keys without end: they are not all kept.
test_endless() {
  fake_server SCAN '*2\r\n$1\r\n0\r\n*2000000000\r\n\0$12\r\nfairlock:{a}\r\n'
  "$fairlock" list --url redis://127.0.0.1:$other >"$dir/out" 2>"$dir/err" &
  reader=$!
  eventually sh -c "test -s '$dir/err' || test -e '$dir/at.said'"
  [ ! -e "$dir/at.said" ] || fail "it has $(grep VmHWM /proc/$reader/status)"
  ends 76 $reader
  said "redis://127.0.0.1:$other"
}

[ $# -eq 0 ] || run_tests "$@"
run_tests among_other_keys many needs json of_others names wholly_in_braces patterns unreadable lies_about_time nonsense too_long_in_braces endless rights urls long_password
