#!/bin/sh
# Shows the lock on simulated boards: boards/common/demo.sh BUILD BOARD... The images and
# BUILD/redis-server must have been built. It starts a private server on the loopback interface,
# and leaves nothing running.
set -eu
build=$1
shift
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
echo "redis-server on port $port; each board takes the lock \"door:7\" three times"

boards=
for board; do
  image=$build/firmware/$board/superloop.elf
  (timeout 60 "$build/firmware/$board/run" "$image" "$port" 3 500 || echo "failed") 2>&1 | sed -u "s/^/$board: /" &
  boards="$boards $!"
done
for board in $boards; do wait "$board"; done
