#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The history of a lock: what run, hold, acquire and break write to it with --history, and what
# fairlock history makes of that, or of anything else that stands there.
# shellcheck source=tests/support/lib.sh disable=SC2016,SC2034,SC2046,SC2086,SC2154,SC1091,SC2317
set -u
. tests/support/lib.sh
. tests/command/rights.sh
side=4 # they sleep some of the time
unset FAIRLOCK_HISTORY
TZ=UTC # for the times of --since
export TZ

key='fairlock:fairlock:history:{a}'

# entries: one a line, fields and values
entries() {
  redis --json xrange "$key" - + | jq -c '.[][1]'
}

# wrote COUNT WORDS: so many entries have these words
wrote() {
  [ "$(entries | grep -c -e "$2")" = "$1" ] || fail "not $1 of $2: $(entries)"
}
written() {
  [ "$(entries | grep -c -e "$2")" = "$1" ]
}

# members MEMBER...: those of all lines of --json, with a space between them
members() {
  expect 0 "$fairlock" history --json a
  python3 -c 'import json, sys
for line in sys.stdin:
    said = json.loads(line)
    print(*(said[name] for name in sys.argv[1:]))' "$@" <"$dir/out" >"$dir/members" || fail "no JSON: $(cat "$dir/out")"
}

# are WORDS: what members has found
are() {
  [ "$(cat "$dir/members")" = "$1" ] || fail "$(cat "$dir/members" "$dir/out")"
}

# draws NAME: the picture is well-formed, without anything from outside; its texts are in $dir/texts
draws() {
  expect 0 "$fairlock" history --svg "$dir/picture.svg" "$1"
  [ ! -s "$dir/out" ] || fail "it prints, too"
  python3 - "$dir/picture.svg" >"$dir/texts" <<'END' || fail "the picture is wrong"
import sys
import xml.etree.ElementTree as tree
root = tree.parse(sys.argv[1]).getroot()
kinds = {element.tag.split('}')[1] for element in root.iter()}
assert kinds <= {'svg', 'style', 'rect', 'path', 'text', 'title'}, kinds
for element in root.iter():
    assert not set(element.attrib) & {'href', 'onload', 'style'}, element.attrib
    if element.tag.endswith('}text') or element.tag.endswith('}title'):
        print(element.tag.split('}')[1], element.get('class', ''), element.text)
END
}

test_begin_and_end() {
  expect 3 "$fairlock" run --history --id web-7 a -- sh -c 'exit 3' secret
  [ ! -s "$dir/err" ] || fail "$(cat "$dir/err")"
  wrote 2 .
  wrote 1 '^\["begin","[0-9]*","id","web-7[^"]*:1","waited","[0-9]*","command","sh"\]$'
  wrote 1 '^\["end","[0-9]*","status","3"\]$'
  token=$(redis hget 'fairlock:{a}' token)
  members end token command status shared broken_by reason
  are "released $token sh 3 False None None"
  members wait_seconds start_time_seconds end_time_seconds
  read -r wait start end <"$dir/members"
  python3 -c "assert 0 <= $wait < 60 and 0 < $end - $start < 60 and round($start * 1000) == $token // 1000" ||
    fail "it began at $start, not at $token"
  expect 0 "$fairlock" history a
  printed 'released, status 3'
  expect 0 "$fairlock" run a true
  wrote 2 .
}

# COMMAND begins without waiting for the history, and the entries name the wait.
test_wait() {
  run a -- sh -c 'until [ -e "$0" ]; do sleep 0.05; done' "$dir/go" &
  eventually held a
  run --history a true &
  waiter=$!
  eventually waits 1 a
  sleep 1
  touch "$dir/go"
  ends 0 $waiter
  members wait_seconds
  python3 -c "assert 1 <= float(open('$dir/members').read()) < 60"
}

test_gave_up() {
  run a sleep 600 &
  eventually held a
  expect 1 "$fairlock" run --history -q -w 1 --id web-7 a true
  expect 1 "$fairlock" run --history -q -n a true
  wrote 1 '^\["left","web-7","waited","[0-9]*","status","1"\]$'
  [ "$(entries | jq -r '.[3]')" -ge 1000 ] || fail "$(entries)"
  run --history a true &
  waiter=$!
  eventually waits 1 a
  kill -TERM $waiter
  ends 143 $waiter
  wrote 2 left
  members end token status
  are "$(printf 'gave_up None 1\ngave_up None 143')"
  expect 0 "$fairlock" history a
  printed 'gave up, status 1'
  draws a
  grep -q '^text mid halo gave up$' "$dir/texts" || fail "$(cat "$dir/texts")"
}

test_broken() {
  run --history --on-lost kill --lease 3 a sleep 600 &
  holder=$!
  eventually written 1 begin
  SUDO_USER=anna expect 0 "$fairlock" break --yes a
  ends 79 $holder
  wrote 1 "^\\[\"broken\",\"[0-9]*\",\"id\",\"[^\"]*\",\"by\",\"anna@$(uname -n | sed 's/\..*//')\"\\]$"
  wrote 1 '^\["lost","[0-9]*","status","79"\]$'
  members end broken_by status
  are "broken anna@$(uname -n | sed 's/\..*//') 79"
  # the field is there for those who say why
  redis xadd $key '*' broken "$(redis hget 'fairlock:{a}' token)" by bo@ops reason 'stuck <on> NFS' >"$dir/out"
  expect 0 "$fairlock" history a
  printed 'broken by anna@'
  printed ': stuck <on> NFS'
  draws a
  grep -q '^text .*broken by anna@.*: stuck <on> NFS$' "$dir/texts" || fail "$(cat "$dir/texts")"
}

# Without FAIRLOCK_HISTORY a break writes to a history that is there, and makes none.
test_broken_without() {
  run a sleep 600 &
  eventually held a
  expect 0 "$fairlock" break --yes a
  [ ! -s "$dir/err" ] || fail "$(cat "$dir/err")"
  [ "$(redis exists $key)" = 0 ] || fail "it made a history"
  eventually unheld a
  run a sleep 600 &
  eventually held a
  FAIRLOCK_HISTORY=5 expect 0 "$fairlock" break --yes a
  wrote 1 broken
}

test_lost() {
  run --history --on-lost kill --lease 3 a sleep 600 &
  holder=$!
  eventually written 1 begin
  redis del a >"$dir/out"
  ends 79 $holder
  members end status
  are 'lost 79'
  expect 0 "$fairlock" history a
  printed 'lost, status 79'
}

# run and its agent are killed: nobody writes an end. The next hold says when it ended at the latest.
test_crash() {
  run --history --lease 3 a sleep 600 &
  holder=$!
  eventually written 1 begin
  members end end_time_seconds
  are 'held None'
  kill -9 $(agent_of $holder) $holder
  eventually unheld a
  members end end_time_seconds
  are 'crashed None'
  expect 0 "$fairlock" run --history a true
  members end
  are "$(printf 'crashed\nreleased')"
  members end_time_seconds start_time_seconds
  [ "$(sed -n '1s/ .*//p' "$dir/members")" = "$(sed -n '2s/.* //p' "$dir/members")" ] || fail "$(cat "$dir/members")"
  expect 0 "$fairlock" history a
  printed 'never released: it crashed, or was cut off'
  draws a
  grep -q 'never released' "$dir/texts" || fail "$(cat "$dir/texts")"
}

test_hold_and_acquire() {
  "$fairlock" hold --history a </dev/null 2>"$dir/err" | head -n 1 >"$dir/one"
  eventually written 1 '"end"'
  expect 0 "$fairlock" acquire --history --for 60 --state "$dir/state" a
  eventually written 2 begin
  expect 0 "$fairlock" release "$dir/state"
  eventually written 2 '"end"'
  wrote 1 'fairlock acquire'
}

test_several_locks() {
  expect 0 "$fairlock" run --history --and b a true
  expect 0 "$fairlock" history b
  printed released
  members end
  are released
}

test_shared() {
  run --history --limit 3 a sleep 600 &
  holder=$!
  eventually written 1 '"shared","3"'
  expect 0 "$fairlock" run --history -s --id web-7 a true
  wrote 1 '"shared","0"'
  members end shared
  are "$(printf 'held True\nreleased True')"
  kill $holder
  ends 143 $holder
}

# The environment says so, an option comes before it; a wrong number is a mistake.
test_environment() {
  FAIRLOCK_HISTORY=10 expect 0 "$fairlock" run a true
  FAIRLOCK_HISTORY=10 expect 0 "$fairlock" run --history=0 a true
  FAIRLOCK_HISTORY='' expect 0 "$fairlock" run a true
  FAIRLOCK_HISTORY=0 expect 0 "$fairlock" run a true
  wrote 2 .
  for wrong in x -1 1000001 1.5; do
    FAIRLOCK_HISTORY=$wrong expect 64 "$fairlock" run a true
    said FAIRLOCK_HISTORY
    expect 64 "$fairlock" run --history=$wrong a true
  done
  expect 64 "$fairlock" run --history
}

# The stream is cut at whole nodes of the server's, of 100 entries; and it expires.
test_cap_and_ttl() {
  [ "$(redis config set stream-node-max-entries 10)" = OK ]
  for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15; do expect 0 "$fairlock" run --history=10 a true; done
  length=$(redis xlen $key)
  { [ $length -ge 10 ] && [ $length -lt 30 ]; } || fail "it has $length entries"
  ttl=$(redis pttl $key)
  { [ $ttl -gt 2591000000 ] && [ $ttl -le 2592000000 ]; } || fail "it lives for $ttl ms"
  members end
  grep -q released "$dir/members" || fail "$(cat "$dir/members")"
}

# The lock that is named as the key cannot be, and no key of another one is that of a history.
test_key() {
  for name in 'fairlock:fairlock:history:{a}' 'fairlock:history:{a}' 'fairlock:history:a{b}'; do
    expect 64 "$fairlock" run --history "$name" true
    said 'is a key in which another lock keeps its state'
  done
  binary=$(printf 'x\001\377{y}')
  for name in a 'a{b}' '{a}:history' 'history:{a}' 'fairlock:history:a' 'fairlock_history:{a}' "$binary"; do
    expect 0 "$fairlock" run --history "$name" true
    expect 0 "$fairlock" run --history "$name" true
    expect 0 "$fairlock" history --json "$name"
    [ "$(grep -c '"end":"released"' "$dir/out")" = 2 ] || fail "$name: $(cat "$dir/out")"
  done
  expect 0 "$fairlock" list
  [ "$(redis --scan --pattern 'fairlock:fairlock:history:*' | wc -l)" = 7 ] || fail "$(redis --scan)"
  run 'history:{a}' sleep 600 &
  eventually held 'history:{a}'
  expect 0 "$fairlock" list --json
  [ "$(jq -r .name "$dir/out")" = 'history:{a}' ] || fail "$(cat "$dir/out")"
}

# A user with the rights of the page writes and reads. One without is told once, and runs the job.
test_rights() {
  redis acl setuser $(rights) >"$dir/out"
  url=redis://lock:pw@127.0.0.1:$port
  expect 5 "$fairlock" run --url $url --history a -- sh -c 'exit 5'
  [ "$(wc -l <"$dir/err")" = 1 ] || fail "not said once: $(cat "$dir/err")"
  said 'the history is not written'
  said NOPERM
  expect 77 "$fairlock" history --url $url a
  said NOPERM
  run --url $url a sleep 600 &
  eventually held a
  redis acl log reset >"$dir/out"
  expect 0 "$fairlock" break --url $url --yes a
  [ ! -s "$dir/err" ] || fail "$(cat "$dir/err")"
  [ -z "$(redis acl log)" ] || fail "it tries what it may not: $(redis acl log)"
  redis acl setuser lock $(more_rights '~fairlock:fairlock' | sed 's/job:/a/g') >"$dir/out"
  eventually unheld a
  expect 5 "$fairlock" run --url $url --history a -- sh -c 'exit 5'
  [ ! -s "$dir/err" ] || fail "$(cat "$dir/err")"
  expect 0 "$fairlock" history --url $url a
  printed 'status 5'
  run --url $url a sleep 600 &
  eventually held a
  FAIRLOCK_HISTORY=9 expect 0 "$fairlock" break --url $url --yes a
  [ ! -s "$dir/err" ] || fail "$(cat "$dir/err")"
  wrote 1 broken
  redis acl setuser lock $(more_rights +scan) >"$dir/out"
  expect 0 "$fairlock" list --url $url --metrics a
  printed fairlock_history_hold_seconds_count
  redis acl setuser lock -hincrby >"$dir/out"
  expect 5 "$fairlock" run --url $url --history a -- sh -c 'exit 5'
  said 'the history is not written'
}

# Something else has the key: the job runs, and it is said once.
test_wrong_type() {
  redis set $key x >"$dir/out"
  expect 4 "$fairlock" run --history a -- sh -c 'exit 4'
  said WRONGTYPE
  [ "$(wc -l <"$dir/err")" = 1 ] || fail "not said once: $(cat "$dir/err")"
  expect 76 "$fairlock" history a
}

# The server stops while the command runs: the end waits for a few seconds at most.
test_unreachable() {
  run --history --lease 60 --on-lost ignore a -- sh -c 'until [ -e "$0" ]; do sleep 0.05; done; exit 6' "$dir/go" 2>"$dir/err" &
  holder=$!
  eventually written 1 begin
  kill -STOP $server
  touch "$dir/go"
  ends 6 $holder
  kill -CONT $server
  said 'the history is not written'
}

test_since() {
  redis xadd $key 1000000000000-0 end 1000000000000000 status 0 >"$dir/out"
  now=$(($(redis time | head -n 1) * 1000))
  redis xadd $key $((now - 7200000))-0 end $(((now - 7200000) * 1000)) status 7 >"$dir/out"
  expect 8 "$fairlock" run --history a -- sh -c 'exit 8'
  for since in '3h:7 8' '10800:7 8' '180min:7 8' '60m:8' '3600s:8' '1d:7 8' '2001-09-09:0 7 8' \
    '2002-01-01:7 8' '2002-01-01 00:00:7 8' '2002-01-01T10:00:05:7 8'; do
    statuses=${since##*:}
    expect 0 "$fairlock" history --json --since "${since%:*}" a
    [ "$(jq .status "$dir/out" | tr '\n' ' ')" = "$statuses " ] || fail "--since ${since%:*}: $(jq -c . "$dir/out" | tr "\n" " ")"
  done
  expect 0 "$fairlock" history --json --since "$(date -d '1 hour ago' +%H:%M)" a
  [ "$(jq .status "$dir/out" | tail -n 1)" = 8 ] || fail "$(cat "$dir/out")"
  for wrong in "" x 5x -1:00 2026-13-01 25:00 12:60 2026-11 2026-11-30x 1:2:3:4 99999999999; do
    expect 64 "$fairlock" history --since "$wrong" a
    said '--since needs a time'
  done
  expect 1 "$fairlock" history b
  said 'b has no history'
  expect 0 "$fairlock" run --history b true
  redis xtrim 'fairlock:fairlock:history:{b}' MAXLEN 0 >"$dir/out"
  expect 1 "$fairlock" history --since 1h b
  said 'b has no history since then'
}

test_output() {
  expect 0 "$fairlock" run --history a true
  expect 71 "$fairlock" history --svg "$dir/none/picture.svg" a
  said 'cannot write'
  expect 71 "$fairlock" history --svg /dev/null a
  expect 0 "$fairlock" history --json --svg "$dir/picture.svg" a
  printed '"end":"released"'
  [ -s "$dir/picture.svg" ] || fail "no picture"
  "$fairlock" history a >/dev/full 2>"$dir/err"
  [ $? -eq 71 ] || fail "a full disk is not noticed"
}

# fill COUNT KIND: entries without a run, by a program that knows RESP
fill() {
  python3 tests/command/histories.py $port "$key" "$@" || fail "not filled"
}

# Above 60 spans each host has one lane, and waits are in the queue's plot alone.
test_crowd() {
  fill 60 crowd
  draws a
  [ "$(grep -c '^text end host-' "$dir/texts")" = 3 ] || fail "$(cat "$dir/texts")"
  grep -q 'class=.wait. x' "$dir/picture.svg" || fail "no waits"
  rows=$(grep -o "class='hold' x='[^']*' y='[^']*'" "$dir/picture.svg" | sed 's/.* y=//' | sort -u | wc -l)
  [ $rows -gt 4 ] || fail "$rows rows for waits that overlap"
  fill 61 crowd
  draws a
  rows=$(grep -o "class='hold' x='[^']*' y='[^']*'" "$dir/picture.svg" | sed 's/.* y=//' | sort -u | wc -l)
  [ $rows = 4 ] || fail "$rows rows for three hosts and the legend"
  grep -q '^text red broken by anna@ops: stuck$' "$dir/texts" || fail "$(cat "$dir/texts")"
  [ "$(grep -c "class='wait' x" "$dir/picture.svg")" = 1 ] || fail "it shows waits"
}

# Whatever stands in the stream, and however much: JSON and XML stay so, the terminal gets no
# escape sequence, and memory and time stay small.
test_hostile() {
  fill 3000 hostile
  members end
  draws a
  grep -q 'script&gt;' "$dir/picture.svg" || fail "no hostile text is in it"
  expect 0 "$fairlock" history a
  ! LC_ALL=C grep -q "$(printf '[\001-\011\013-\037\177]')" "$dir/out" || fail "control characters"
}

# takes_less KB OPTION...: fairlock history, with these
takes_less() {
  most=$1
  shift
  took=$(python3 -c 'import resource, subprocess, sys
subprocess.run(sys.argv[2:], stdout=open(sys.argv[1], "w"), check=True)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)' "$dir/out" "$fairlock" history "$@" a)
  [ "${took:-$most}" -lt $most ] || fail "it took ${took:-?} KB"
}

test_large() {
  fill 100000 hostile
  takes_less 100000
  takes_less 100000 --json
  takes_less 100000 --svg "$dir/picture.svg"
  [ "$(wc -c <"$dir/picture.svg")" -lt 3000000 ] || fail "a picture of $(wc -c <"$dir/picture.svg") bytes"
}

# A server whose answer has no end: it is cut, and said.
test_endless() {
  redis config set proto-max-bulk-len 64mb >"$dir/out"
  python3 - $port "$key" <<'END'
import socket, sys
s = socket.create_connection(('127.0.0.1', int(sys.argv[1])))
key = sys.argv[2].encode()
value = b'v' * 30000000
for field in b'id', b'begin', b'f' * 100000:
    parts = [b'XADD', key, b'*', field, value]
    s.sendall(b'*5\r\n' + b''.join(b'$%d\r\n%s\r\n' % (len(part), part) for part in parts))
    assert s.recv(64)[:1] == b'$'
END
  redis xadd $key '*' end 1000 status 5 >"$dir/out"
  takes_less 80000
  members end status
  are 'released 5'
}

[ $# -eq 0 ] || run_tests "$@"
run_tests begin_and_end wait gave_up broken broken_without lost crash hold_and_acquire several_locks shared environment \
  cap_and_ttl key rights wrong_type unreachable since output crowd hostile large endless
