#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Shows the lock on simulated boards: boards/common/demo.sh BUILD BOARD... With "shared" before the
# boards, they and this host share it, two at a time, and the first board is switched off. The images,
# BUILD/redis-server and, to share, BUILD/fairlock must have been built. It starts a private server on
# the loopback interface, and leaves nothing running. The last line is the verdict: whether each has had
# all its turns.
set -eu
build=$1
shift
shared=
[ "$1" != shared ] || { shared=1; shift; }
folder=$(mktemp -d)
server=
# shellcheck disable=SC2317
clean_up() {
  [ -z "$server" ] || kill "$server" 2>/dev/null || :
  rm -rf "$folder"
}
trap clean_up EXIT
trap 'exit 130' INT TERM HUP

# A port that should be free: the server says so if it is not.
port=$((20000 + $$ % 20000))
while :; do
  "$build/redis-server" --port "$port" --bind 127.0.0.1 --save '' --appendonly no --dir "$folder" --logfile log &
  server=$!
  tries=0
  until grep -q 'Ready to accept' "$folder/log" 2>/dev/null; do
    kill -0 "$server" 2>/dev/null || break
    tries=$((tries + 1))
    [ "$tries" -lt 100 ] || { echo "redis-server does not start" >&2; exit 1; }
    sleep 0.1
  done
  if kill -0 "$server" 2>/dev/null; then break; fi
  port=$((port + 1))
  rm -f "$folder/log"
done

# Runs an image and its arguments, for a minute at most, and puts the board's name before its lines.
run_board() {
  board=$1
  image=$build/firmware/$board/$2.elf
  shift 2
  (timeout 60 "$build/firmware/$board/run" "$image" "$port" "$@" || echo "failed") 2>&1 | sed -u "s/^/$board: /" |
    tee -a "$folder/said"
}

# Runs a board until it downloads, and switches it off then.
run_victim() {
  mkfifo "$folder/victim"
  timeout 60 "$build/firmware/$1/run" "$build/firmware/$1/superloop_shared.elf" "$port" 1 60000 >"$folder/victim" 2>&1 &
  victim=$!
  while read -r line; do
    echo "$1: $line"
    [ "$line" != downloading ] || break
  done <"$folder/victim"
  sleep 1
  kill "$victim" # which timeout passes on
  echo "$1: SWITCHED OFF; its lease ends in 3 s"
  : >"$folder/off"
}

# all_done NAME: it has had its three turns, and has lost none
all_done() {
  [ "$(grep -c "^$1: done" "$folder/said")" -eq 3 ] && ! grep -q -e "^$1: lost" -e "^$1: failed" "$folder/said" && return
  echo "FAILED: $1 has not had its three turns"
  failed=1
}

failed=0
: >"$folder/said"
boards=
if [ -n "$shared" ]; then
  echo "redis-server on port $port; at most two download \"firmware\" at a time"
  run_victim "$1" &
  boards=$!
  shift
  for board; do
    run_board "$board" superloop_shared 3 1000 &
    boards="$boards $!"
  done
  for _ in 1 2 3; do
    "$build/fairlock" --url "redis://127.0.0.1:$port" run --limit 2 firmware -- \
      sh -c 'echo "host: downloading"; sleep 1; echo "host: done"' || echo "host: failed"
  done | tee -a "$folder/said"
else
  echo "redis-server on port $port; each board takes the lock \"door:7\" three times"
  for board; do
    run_board "$board" superloop 3 500 &
    boards="$boards $!"
  done
fi
for board in $boards; do wait "$board" || failed=1; done
[ -z "$shared" ] || set -- "$@" host
for name; do all_done "$name"; done
[ -z "$shared" ] || [ -e "$folder/off" ] || { echo "FAILED: no board was switched off" && failed=1; }
[ $failed -eq 1 ] || echo "ok: $(echo "$*" | sed 's/ /, /g') had three turns each"
exit $failed
