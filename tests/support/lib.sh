# SPDX-License-Identifier: Apache-2.0
# What suites in shell share that use the fairlock command or a server; each reads it with
# ". tests/support/lib.sh" from the top folder.
#
# A test is a function test_NAME, which run_tests calls in a shell of its own, with set -u; it fails
# by fail or expect. start_server gives it a redis-server of its own, on a free loopback port.
# Whatever a suite has started ends with it: the servers by the ids noted in $top/pids, the commands
# because their server is gone.
# shellcheck shell=sh disable=SC2034,SC2120,SC2119,SC2086
build=$(cd "${BUILD:-build}" && pwd)
fairlock=${FAIRLOCK:-$build/fairlock} # test_plain.sh has another one
version=$(sed -n 's/^#define FAIRLOCK_VERSION *"\(.*\)"$/\1/p' lock/fairlock.h)
top=$(mktemp -d)
failed=0
unset SUDO_USER FAIRLOCK_URL FAIRLOCK_PASSWORD FAIRLOCK_ID FAIRLOCK_CACERT FAIRLOCK_CACERTDIR FAIRLOCK_CERT FAIRLOCK_KEY FAIRLOCK_SNI

# started PID: when it has started, by which it is told from a later process with the same id
started() {
  sed 's/.*) //' "/proc/$1/stat" 2>/dev/null | cut -d ' ' -f 20
}

# ends_with_us PID: this process of ours is ended when the suite ends
ends_with_us() {
  echo "$1 $(started "$1")" >>"$top/pids"
}

stop_all() {
  [ ! -e "$top/pids" ] || while read -r pid start; do
    [ -z "$start" ] || [ "$(started "$pid")" != "$start" ] || kill -9 "$pid" 2>/dev/null
  done <"$top/pids"
  rm -rf "$top"
}
trap stop_all EXIT
trap 'echo "# ended by a signal"; exit 1' INT TERM HUP

# What a test has left in the background ends with it. A waiter that stayed would go on connecting to its port, where a
# later server, of another test, would queue it for a lock that this one uses, too.
end_test() {
  jobs -p >"$dir/jobs"
  # shellcheck disable=SC2046
  kill -9 $(cat "$dir/jobs") 2>/dev/null
  wait
}

# fail WHY...: ends the test
fail() {
  echo "# $*"
  exit 1
}

# expect STATUS COMMAND...: the command has to exit so. Its output is in $dir/out and $dir/err.
expect() {
  wanted=$1
  shift
  "$@" >"$dir/out" 2>"$dir/err" </dev/null
  got=$?
  [ $got -eq "$wanted" ] || fail "exit status $got instead of $wanted: $* : $(cat "$dir/err")"
}

# said WORDS, printed WORDS: what the last command has written to stderr, to stdout
said() {
  grep -qF -e "$1" "$dir/err" || fail "no '$1' in its messages: $(cat "$dir/err")"
}
printed() {
  grep -qF -e "$1" "$dir/out" || fail "no '$1' in its output: $(cat "$dir/out")"
}

# eventually COMMAND...: within a minute it has to succeed
eventually() {
  tries=1200
  until "$@" >/dev/null 2>&1; do
    tries=$((tries - 1))
    [ $tries -gt 0 ] || fail "never came true: $*"
    sleep 0.05
  done
}

# ends STATUS PID: the background command has to end so
ends() {
  wait "$2"
  got=$?
  [ $got -eq "$1" ] || fail "exit status $got instead of $1 from a command in the background: $(cat "$dir"/err* 2>/dev/null)"
}

# number_of SIGNAL: the shells do not agree on kill -l
number_of() {
  case $1 in
    HUP) echo 1 ;;
    INT) echo 2 ;;
    QUIT) echo 3 ;;
    KILL) echo 9 ;;
    USR1) echo 10 ;;
    SEGV) echo 11 ;;
    USR2) echo 12 ;;
    TERM) echo 15 ;;
  esac
}

redis() {
  redis-cli -p "$port" ${password:+--no-auth-warning -a "$password"} "$@"
}

answers() {
  [ "$(redis ping)" = PONG ]
}

# draw_port FIRST: one of 6000. A cluster's bus is 10000 above, and still below the ports that the system gives to
# whoever connects, which begin at 32768.
draw_port() {
  echo $(($1 + $(od -An -N2 -tu2 /dev/urandom) % 6000))
}

# comes_up PROCESS LOG WORDS: it has written these words there. It is ended if it does not within 20 s.
comes_up() {
  ends_with_us "$1"
  tries=400
  while kill -0 "$1" 2>/dev/null && [ $tries -gt 0 ]; do
    if grep -q -i "$3" "$2"; then return; fi
    tries=$((tries - 1))
    sleep 0.05
  done
  kill -9 "$1" 2>/dev/null
  return 1
}

# until_up COMMAND...: calls it until it is true, ten times at most. It starts a server at a port that it draws, which
# may be somebody else's, and sets server_log.
until_up() {
  for attempt in 1 2 3 4 5 6 7 8 9 10; do
    "$@" && return
  done
  fail "no server starts, $attempt times: $(cat "$server_log")"
}

try_server() {
  port=$(draw_port 10000)
  server_log=$dir/$port/log
  mkdir -p "$dir/$port"
  "$build/redis-server" --port "$port" --bind 127.0.0.1 -::1 --save '' --appendonly no --dir "$dir/$port" \
    --unixsocket "$dir/$port/socket" "$@" >"$server_log" 2>&1 &
  server=$!
  comes_up $server "$server_log" 'ready to accept'
}

# start_server OPTION...: sets port, server (its process) and FAIRLOCK_URL
start_server() {
  [ -x "$build/redis-server" ] || fail "there is no $build/redis-server: make it first"
  password=
  until_up try_server "$@"
  FAIRLOCK_URL=redis://127.0.0.1:$port
  export FAIRLOCK_URL
}

stop_server() {
  kill -9 "$server"
  wait "$server" 2>/dev/null
}

# fake_server COMMAND ANSWER...: a server that answers so (fake.py), on a port of the system's. Sets other, its port, and
# fake, its process.
fake_server() {
  rm -f "$dir/at"
  python3 tests/support/fake.py "$dir/at" "$@" 2>"$dir/fake" &
  fake=$!
  ends_with_us $fake
  eventually test -s "$dir/at"
  other=$(cat "$dir/at")
}

# run ...: fairlock run, with all signals as the system gives them to an interactive shell. Meant
# for the background: its process is $!.
run() {
  exec env --default-signal "$fairlock" run "$@"
}

held() {
  [ "$(redis hlen "$1")" = 1 ]
}
unheld() {
  [ "$(redis hlen "$1")" = 0 ]
}

# lasts MS NAME: its lease ends in so many at the latest
lasts() {
  [ "$(redis pttl "$2")" -le "$1" ]
}

# waits COUNT NAME: so many stand in line
waits() {
  [ "$(redis llen "redisson_lock_queue:{$2}")" = "$1" ]
}

# dead PID: the process is gone, or only waits to be reaped
dead() {
  case $(sed 's/.*) //' "/proc/$1/stat" 2>/dev/null) in
    '' | Z* | X*) true ;;
    *) false ;;
  esac
}

# stopped PID: by a signal
stopped() {
  case $(sed 's/.*) //' "/proc/$1/stat" 2>/dev/null) in
    T*) true ;;
    *) false ;;
  esac
}

continued() {
  ! stopped "$1"
}

# session_of PID, children_of PID
session_of() {
  sed 's/.*) //' "/proc/$1/stat" 2>/dev/null | cut -d ' ' -f 4
}
children_of() {
  tr ' ' '\n' <"/proc/$1/task/$1/children"
}

# agent_of PID, guard_of PID: the two children of a fairlock run. The agent, which has a session of
# its own, holds the lock; the guard is the parent of the command.
agent_of() {
  for child in $(children_of "$1"); do
    [ "$(session_of "$child")" != "$child" ] || echo "$child"
  done
}
guard_of() {
  for child in $(children_of "$1"); do
    [ "$(session_of "$child")" = "$child" ] || echo "$child"
  done
}

# python MODULE ARGUMENT...: a Python that has the module: the system's, if another stands before it
python() {
  for python in python3 /usr/bin/python3; do
    $python -c "import $1" 2>/dev/null || continue
    shift
    $python "$@"
    return
  done
  fail "no Python has $1"
}

now_ms() {
  echo $(($(date +%s%N) / 1000000))
}

# run_tests NAME...: each in a shell, a folder ($dir) and with a server of its own; with $side, so many
# at a time, for suites that sleep most of it. Each of these is the suite with one name as its argument:
# what runs behind & would not get the signals that the terminal sends.
run_tests() {
  if [ $# -gt 1 ] && [ -n "${side:-}" ]; then
    printf '%s\n' "$@" | xargs -n 1 -P "$side" sh "$0"
    exit
  fi
  for name in "$@"; do
    dir=$top/$name
    log=$top/$name.log
    mkdir "$dir"
    if (
      trap end_test EXIT
      start_server
      "test_$name"
    ) >"$log" 2>&1; then
      grep '^skip ' "$log" || echo "ok $name"
    else
      grep '^#' "$log" || sed 's/^/# /' "$log"
      echo "not ok $name"
      failed=1
    fi
  done
  exit $failed
}
