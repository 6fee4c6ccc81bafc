#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# fairlock load: what it loads, what it prints, and what it says of failures.
# shellcheck source=tests/support/lib.sh disable=SC2034,SC2046,SC2086,SC2154,SC1091,SC2317
set -u
. tests/support/lib.sh

# known HASH...: how many of them the server knows
known() {
  redis script exists "$@" | grep -c '1$'
}

# hashes: of the last load --json
hashes() {
  jq -r '.scripts|.lock, .break, .inspect, .shared, .downgrade' "$dir/out"
}

test_load() {
  expect 0 "$fairlock" load --json
  [ "$(jq -r .server "$dir/out")" = "127.0.0.1:$port" ] || fail "$(cat "$dir/out")"
  [ "$(known $(hashes))" = 5 ] || fail "the server does not know $(cat "$dir/out")"
  for name in lock break inspect shared downgrade; do
    wanted=$(sed -n "s/^#define FAIRLOCK_$(echo $name | tr '[:lower:]' '[:upper:]')_SHA1 *\"\(.*\)\"/\1/p" lock/scripts/hashes.h)
    [ "$(jq -r .scripts.$name "$dir/out")" = "$wanted" ] || fail "$name is not $wanted: $(cat "$dir/out")"
  done
  all=$(hashes)
  expect 0 "$fairlock" load
  [ "$(cat "$dir/out")" = "127.0.0.1:$port:$(printf ' lock %s break %s inspect %s shared %s downgrade %s' $all)" ] || fail "$(cat "$dir/out")"
  redis script flush >"$dir/set"
  [ "$(known $all)" = 0 ] || fail 'a server knows scripts after SCRIPT FLUSH'
  expect 0 "$fairlock" load --url "unix://$dir/$port/socket"
  printed "unix://$dir/$port/socket: lock "
  [ "$(known $all)" = 5 ] || fail "the server does not know $all"
}

# Nothing else need be loaded for a lock that is used.
test_is_what_others_load() {
  expect 0 "$fairlock" load --json
  all=$(hashes)
  redis script flush >"$dir/set"
  expect 0 "$fairlock" run a true
  [ "$(known $all)" = 1 ] || fail "not one is known"
  expect 0 "$fairlock" status a
  run a sleep 60 2>"$dir/err.holder" &
  eventually held a
  expect 0 "$fairlock" break --yes a
  expect 0 "$fairlock" run -s a true
  [ "$(known $all)" = 4 ] || fail "not all that the command uses are known"
}

test_misuse() {
  expect 64 "$fairlock" load a
  said "it takes no arguments: 'a' is one too many"
}

test_failures() {
  "$fairlock" load >/dev/full 2>"$dir/err"
  [ $? -eq 71 ] || fail "with nowhere to print: $(cat "$dir/err")"
  for rule in '-script' '+script|load'; do
    redis acl setuser loader on '>pw' +@all $rule >"$dir/set"
    wanted=$([ $rule = -script ] && echo 77 || echo 0)
    expect $wanted "$fairlock" load --url "redis://loader:pw@127.0.0.1:$port"
    [ $wanted = 0 ] || said NOPERM
  done
  stop_server
  expect 75 "$fairlock" load
  said 'the server cannot be reached'
}

test_right() {
  redis acl setuser loader on '>pw' +@all -script >"$dir/set"
  url=redis://loader:pw@127.0.0.1:$port
  expect 77 "$fairlock" load --url "$url"
  said NOPERM
  said ... # the text is longer than the library keeps
  redis acl setuser loader '+script|load' >"$dir/set"
  expect 0 "$fairlock" load --url "$url"
}

# Redis 7.4 and later forget what came by EVAL, from a usual client, when 500 more have come; by then it is of no
# use that it was also loaded. As the manual says: loaded first, or again once they are forgotten, scripts stay.
test_evicted() {
  expect 0 "$fairlock" run a true
  expect 0 "$fairlock" load --json
  all=$(hashes)
  seq 1 600 | sed "s/.*/eval 'return &' 0/" | redis >"$dir/set"
  expect 0 "$fairlock" load
  expect 0 "$fairlock" run a true
  seq 1001 1600 | sed "s/.*/eval 'return &' 0/" | redis >"$dir/set"
  [ "$(known $all)" = 5 ] || fail "the server has forgotten $all"
  redis script flush >"$dir/set"
  expect 0 "$fairlock" load
  expect 0 "$fairlock" run a true
  seq 2001 2600 | sed "s/.*/eval 'return &' 0/" | redis >"$dir/set"
  [ "$(known $all)" = 5 ] || fail "the server has forgotten $all"
}

[ $# -eq 0 ] || run_tests "$@"
run_tests load is_what_others_load misuse failures right evicted
