#!/bin/sh
# Takes the program out of the README, compiles it as a user would, and runs it against a private server.
set -eu
build=${BUILD:-build}
dir=$(mktemp -d)
server=
trap 'if [ -n "$server" ]; then kill "$server" 2>/dev/null || true; fi; rm -rf "$dir"' EXIT INT TERM
awk '/^```c$/ {on = 1; next} /^```$/ {on = 0} on' README.md >"$dir/program.c"
"${CC:-cc}" -std=c11 -Wall -Wextra -Werror -Iresp -Iport -Iport/posix -Ilock "$dir/program.c" "$build/liblock.a" -pthread \
  -o "$dir/program"
echo "ok the README's program compiles"

port=17000
while [ -z "$server" ]; do
  port=$((port + 1))
  "$build/redis-server" --port "$port" --bind 127.0.0.1 --save '' --dir "$dir" >"$dir/log" 2>&1 &
  server=$!
  for _ in 1 2 3 4 5 6 7 8 9 10; do
    grep -q 'Ready to accept' "$dir/log" && break
    sleep 0.2
  done
  kill -0 "$server" 2>/dev/null || server=
done
if "$dir/program" "$port" >"$dir/out" && grep -q 'held, fencing token [1-9]' "$dir/out" && grep -qx 'done' "$dir/out"; then
  echo "ok the README's program holds and releases the lock"
else
  cat "$dir/out"
  echo "not ok the README's program holds and releases the lock"
  exit 1
fi
