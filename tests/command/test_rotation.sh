#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A password that is rotated under a running `fairlock run`: its file and the server change at
# different moments, and connections end meanwhile.
# shellcheck source=tests/support/lib.sh disable=SC2016,SC2034,SC2046,SC2086,SC2154,SC1091,SC2317
set -u
. tests/support/lib.sh

# may PASSWORD: the user "job" has this password, and no other
may() {
  redis acl setuser job reset on ">$1" '~*' '&*' '+@all' >/dev/null
}

# note PASSWORD: it is in the file
note() {
  printf '%s\n' "$1" >"$dir/new"
  chmod 600 "$dir/new"
  mv "$dir/new" "$dir/password"
}

cut_off() {
  redis client kill user job >/dev/null
}

begin() {
  may secret0
  note secret0
  FAIRLOCK_URL=redis://job@127.0.0.1:$port
}

greeted() {
  [ "$(redis client list | grep -c 'user=job')" -ge "$1" ]
}

# hold NAME: sets holder, whose command ends with status 5 when $dir/end is there
hold() {
  run --verbose --password-file "$dir/password" "$1" \
    sh -c 'echo $FAIRLOCK_TOKEN >"$0/token"; until [ -e "$0/end" ]; do sleep 0.1; done; exit 5' "$dir" 2>"$dir/err" &
  holder=$!
  eventually test -s "$dir/token"
}

# still_holds NAME: without an interruption
still_holds() {
  held "$1" || fail "the hold is gone"
  [ "$(redis hget "fairlock:{$1}" token)" = "$(cat "$dir/token")" ] || fail "another token"
}

keeps_secrets() {
  ! grep -q secret "$dir"/err* || fail "a password in its messages: $(grep -h secret "$dir"/err*)"
}

# told_why WORDS: the holder has said so since it had said $told lines, when this rotation began
told_why() {
  tail -n +$((told + 1)) "$dir/err" | grep -q "$1"
}

rotate() {
  told=$(wc -l <"$dir/err")
  case $(($1 % 6)) in
    0) # the file comes first, and is wrong for a while
      note "secret$1"
      cut_off
      eventually told_why WRONGPASS
      may "secret$1"
      ;;
    1) # the server comes first
      may "secret$1"
      cut_off
      eventually told_why WRONGPASS
      note "secret$1"
      ;;
    2) # there is no user for a while
      redis acl deluser job >/dev/null
      note "secret$1"
      eventually told_why WRONGPASS
      may "secret$1"
      ;;
    3) # nor a file
      may "secret$1"
      rm "$dir/password"
      cut_off
      eventually told_why 'No such file'
      note "secret$1"
      ;;
    4) # written in place: empty, and in part
      may "secret$1"
      : >"$dir/password"
      cut_off
      eventually told_why 'its first line is empty'
      printf secr >"$dir/password"
      eventually told_why WRONGPASS
      printf 'et%s\n' "$1" >>"$dir/password"
      ;;
    *) # at the same moment
      may "secret$1"
      note "secret$1"
      cut_off
      ;;
  esac
  eventually greeted "$2"
}

test_holder() {
  begin
  hold a
  for i in $(seq 1 12); do
    rotate "$i" 1
    still_holds a
  done
  : >"$dir/end"
  ends 5 $holder
  unheld a || fail "not released"
  keeps_secrets
  said 'refused: WRONGPASS'
  said 'not connected: the server refuses this user: password file: No such file or directory'
  said 'password file: its first line is empty'
}

# Waiters keep their places, are told why they wait, and are served in order.
test_waiters() {
  begin
  hold a
  for i in 1 2 3; do
    run -w 100 --password-file "$dir/password" a sh -c 'echo $0 $FAIRLOCK_TOKEN >>"$1"' $i "$dir/order" 2>"$dir/err$i" &
    eval "waiter$i=\$!"
    eventually waits $i a
  done
  for i in 0 1 2 3 4 5; do rotate "$((i + 12))" 4; done
  note secret18
  cut_off
  eventually grep -q 'the server refuses this user.*; trying again' "$dir/err1"
  may secret18
  eventually greeted 4
  still_holds a
  waits 3 a || fail "a waiter has left"
  : >"$dir/end"
  ends 5 $holder
  ends 0 $waiter1
  ends 0 $waiter2
  ends 0 $waiter3
  [ "$(cut -d' ' -f1 "$dir/order" | tr -d '\n')" = 123 ] || fail "in this order: $(cat "$dir/order")"
  sort -n -k2 "$dir/order" | cmp -s - "$dir/order" || fail "tokens fall: $(cat "$dir/order")"
  keeps_secrets
}

# A release, too, outlasts the moment.
test_release() {
  begin
  hold a
  may secret1
  cut_off
  : >"$dir/end"
  sleep 1
  note secret1
  ends 5 $holder
  unheld a || fail "not released"
}

# Nothing changes by waiting: at the start, and for a password that is no file's.
test_ends_at_once() {
  begin
  may secret1
  expect 77 timeout 60 "$fairlock" run --password-file "$dir/password" a true
  expect 77 timeout 60 "$fairlock" status --password-file "$dir/password" a
  note secret1
  hold a
  FAIRLOCK_PASSWORD=secret1 run -w 100 a true 2>"$dir/err1" &
  waiter=$!
  eventually waits 1 a
  may secret2
  note secret2
  cut_off
  ends 77 $waiter
  eventually greeted 1
  still_holds a
  : >"$dir/end"
  ends 5 $holder
}

# A pipe is read once, and what was in it stays.
test_pipe() {
  begin
  mkfifo "$dir/pipe"
  printf 'secret0\n' >"$dir/pipe" &
  "$fairlock" run --password-file "$dir/pipe" a sh -c 'until [ -e "$0/end" ]; do sleep 0.1; done' "$dir" 2>"$dir/err" &
  holder=$!
  eventually held a
  cut_off
  eventually greeted 1
  : >"$dir/end"
  ends 0 $holder
  unheld a || fail "not released"
}

# What was a file and is a pipe is not waited for.
test_no_longer_a_file() {
  begin
  hold a
  rm "$dir/password"
  mkfifo "$dir/password"
  cut_off
  eventually grep -q 'it is no longer a file' "$dir/err"
  rm "$dir/password"
  note secret0
  eventually greeted 1
  still_holds a
  : >"$dir/end"
  ends 5 $holder
}

test_watch() {
  begin
  "$fairlock" watch -i 0.1 --password-file "$dir/password" a >"$dir/out" 2>"$dir/err" &
  watcher=$!
  eventually grep -q 'free' "$dir/out"
  may secret1
  cut_off
  eventually grep -q 'refuses this user; trying again' "$dir/out"
  note secret1
  run --password-file "$dir/password" a sleep 60 &
  holder=$!
  eventually grep -q 'held' "$dir/out"
  kill $holder
  ends 143 $holder
  kill $watcher
  wait $watcher
  keeps_secrets
}

run_tests holder waiters release ends_at_once pipe no_longer_a_file watch
