#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs the demo as a program would: its verdict, its exit status, its picture, and that nothing of
# it stays behind, whichever way it ends. BUILD: where it was built (build).
# shellcheck source=tests/support/verdicts.sh disable=SC2154,SC2317 # verdict() calls functions
set -u
build=${BUILD:-build}
demo=$build/tests/demo/demo
server=$(pwd)/$build/redis-server
case $build in /*) server=$build/redis-server ;; esac
. tests/support/verdicts.sh
mark=$folder
redis=
trap 'test -z "$redis" || kill "$redis"; rm -rf "$folder"' EXIT

# start_program PROGRAM ARGUMENT...: in the background, with a folder for its files; all its
# processes carry the mark. start ARGUMENT...: the demo.
start_program() {
  rm -rf "$folder/tmp" "$folder/log" # so that await() does not find what an earlier one printed
  mkdir "$folder/tmp"
  : >"$folder/log"
  env TMPDIR="$folder/tmp" DEMO_MARK="$mark" "$@" >"$folder/log" 2>&1 &
  pid=$!
}

start() {
  start_program "$demo" "$@"
}

running() {
  grep -lsz "^DEMO_MARK=$mark\$" /proc/[0-9]*/environ >/dev/null
}

# Processes that were killed take a moment to go.
nothing_runs() {
  tries=300
  while running; do
    tries=$((tries - 1))
    test "$tries" -gt 0 || return 1
    sleep 0.1
  done
}

nothing_stays() {
  nothing_runs && test -z "$(ls -A "$folder/tmp")"
}

# until TEXT: the demo has printed it
await() {
  tries=1000
  while ! grep -q "$1" "$folder/log"; do
    tries=$((tries - 1))
    test "$tries" -gt 0 || return 1
    sleep 0.1
  done
}

says() {
  test "$(grep -c "$1" "$folder/log")" = "$2"
}

# A picture that is one, with nothing from outside, and like a committed one but for places, times and
# tokens.
good_picture() {
  xmllint --nonet --noout "$folder/fresh.svg" 2>"$folder/log" && ! grep -n '<script\|<image\|href' "$folder/fresh.svg"
}

structure() {
  sed -e '/grid\|tick/d' -e 's/[0-9][0-9.]*/0/g' -e 's/turn //' "$1"
}

like_the_committed() {
  structure "$folder/fresh.svg" >"$folder/fresh"
  structure "tests/demo/$1.svg" | diff - "$folder/fresh" >"$folder/log"
}

draws() {
  grep -q "class='verdict'>$1<" "$folder/fresh.svg"
}

start --server "$server" --pace 400 --svg "$folder/fresh.svg"
wait "$pid"
status=$?
verdict demo_exit_status test $status = 0
verdict demo_order says '^order: kept$' 1
verdict demo_one_holder says '^holders at once: 1$' 1
verdict demo_table says '^ \(process\|thread\) [1-8] ' 8
verdict demo_grants says '^ \(process\|thread\) [1-8] *[1-8] *[1-7] *[0-9]\{10,\} ' 7
verdict demo_kills says ' kill -9 ' 2
verdict demo_leaves_nothing nothing_stays
verdict demo_picture good_picture
verdict demo_picture_like_the_committed like_the_committed timeline

start --server "$server" --pace 400 --shared --svg "$folder/fresh.svg"
wait "$pid"
status=$?
verdict demo_shared_exit_status test $status = 0
verdict demo_shared_order says '^order: kept$' 1
verdict demo_shared_limit says '^holders at once: 3$' 1
verdict demo_shared_writer says '^the writer: alone$' 1
verdict demo_shared_grants says '^ \(reader\|writer\) [1-8] *\([1-8]\) *\2 *[0-9]\{10,\} ' 8
verdict demo_shared_killed says ' kill -9 reader 3, which shares the lock$' 1
verdict demo_shared_leaves_nothing nothing_stays
verdict demo_shared_picture good_picture
verdict demo_shared_picture_like_the_committed like_the_committed shared

start --server "$server" --pace 400 --shared --meddle --svg "$folder/fresh.svg"
wait "$pid"
status=$?
verdict demo_shared_bad_verdict_status test $status = 1
verdict demo_shared_beside_the_writer says '^the writer: not alone$' 1
verdict demo_shared_bad_verdict_leaves_nothing nothing_stays
verdict demo_shared_bad_picture_says_so draws 'order kept, at most [1-4] at a time, the writer beside others'

start --server "$server" --pace 400 --meddle --svg "$folder/fresh.svg"
wait "$pid"
status=$?
verdict demo_bad_verdict_status test $status = 1
verdict demo_two_holders says '^holders at once: 2$' 1
verdict demo_bad_verdict_leaves_nothing nothing_stays
verdict demo_bad_picture_says_so draws 'order kept, 2 holders at a time'

start --server "$server" --pace 100 --svg "$folder/nowhere/picture.svg"
wait "$pid"
status=$?
verdict demo_picture_unwritten_status test $status = 2
verdict demo_picture_unwritten_leaves_nothing nothing_stays

for signal in INT TERM HUP; do
  start --server "$server"
  await 'thread 4 is in line'
  kill -s $signal "$pid"
  wait "$pid"
  status=$?
  verdict "demo_${signal}_status" test $status -gt 128
  verdict "demo_${signal}_leaves_nothing" nothing_stays
done

start --server "$server"
await 'thread 4 is in line'
kill -s KILL "$pid"
wait "$pid" 2>/dev/null
verdict demo_killed_leaves_no_process nothing_runs

start --server /bin/false
wait "$pid"
status=$?
verdict demo_without_server_status test $status = 2
verdict demo_without_server_leaves_nothing nothing_stays

"$server" --port 0 --unixsocket "$folder/socket" --dir "$folder" --save '' --appendonly no >/dev/null 2>&1 &
redis=$!
while ! test -S "$folder/socket"; do sleep 0.1; done
start --url "unix://$folder/socket" --pace 300
wait "$pid"
status=$?
verdict demo_url_status test $status = 0
verdict demo_url_leaves_nothing nothing_stays
redis-cli -s "$folder/socket" keys '*' >"$folder/log"
verdict demo_url_leaves_no_lock says 'fairlock:{demo:[0-9]*}' 1
verdict demo_url_leaves_no_queue says . 1

# Servers that move. Their folder goes with them.
start_program "$demo-failover" "$demo" --pace 400
wait "$pid"
status=$?
verdict demo_failover_status test $status = 0
verdict demo_failover_order says '^order: kept$' 1
verdict demo_failover_one_holder says '^holders at once: 1$' 1
verdict demo_failover_grants says '^ \(process\|thread\) [1-8] *[1-8] *[1-7] *[0-9]\{10,\} ' 7
verdict demo_failover_killed says 'kill -9 the master of the servers, while process 5 holds$' 1
verdict demo_failover_survived says '3 are in line at the next master, ' 1
verdict demo_failover_leaves_nothing nothing_stays

start_program "$demo-failover" "$demo" --pace 400 --meddle
wait "$pid"
status=$?
verdict demo_failover_bad_verdict_status test $status = 1
verdict demo_failover_two_holders says '^holders at once: 2$' 1

for signal in TERM KILL; do
  start_program "$demo-failover" "$demo"
  await 'thread 4 is in line'
  kill -s $signal "$pid"
  wait "$pid" 2>/dev/null
  status=$?
  verdict "demo_failover_${signal}_status" test $status -gt 128
  verdict "demo_failover_${signal}_leaves_nothing" nothing_stays
done

# Boards, by programs that say what those say.
mkdir -p "$folder/boards/firmware/good" "$folder/boards/firmware/bad"
ln -s "$server" "$folder/boards/redis-server"
for board in good bad; do
  printf '%s\n' '#!/bin/sh' 'for turn in 1 2 3; do echo waiting; echo done; done' >"$folder/boards/firmware/$board/run"
  chmod +x "$folder/boards/firmware/$board/run"
done
start_program sh boards/common/demo.sh "$folder/boards" good
wait "$pid"
status=$?
verdict demo_boards_status test $status = 0
verdict demo_boards_verdict test "$(tail -n 1 "$folder/log")" = 'ok: good had three turns each'
sed -i 's/1 2 3/1 2/' "$folder/boards/firmware/bad/run"
start_program sh boards/common/demo.sh "$folder/boards" good bad
wait "$pid"
status=$?
verdict demo_boards_bad_verdict_status test $status = 1
verdict demo_boards_bad_verdict says '^FAILED: bad has not had its three turns$' 1
verdict demo_boards_leave_nothing nothing_stays
exit $failed
