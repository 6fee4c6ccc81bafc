#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# history.sh FILE: draws a history that is recorded meanwhile, of five hosts (namespaces of this one), in 15 s: waits, one
# of them given up, a break, a crash, a job that fails. For make demo-picture SCENE=history.
# shellcheck source=tests/support/lib.sh disable=SC2016,SC2046,SC2086,SC2154,SC1091
set -u
. tests/support/lib.sh
dir=$top/scene
mkdir "$dir"
start_server
export FAIRLOCK_HISTORY=1000 TZ=UTC

# on HOST COMMAND...: in the background this is the process of the command
on() {
  exec unshare --user --map-root-user --uts sh -c 'hostname "$0" && exec "$@"' "$@"
}

on build-1 "$fairlock" run nightly-db sleep 1.3 &
sleep 0.2
on build-2 "$fairlock" run nightly-db sleep 1.1 &
sleep 0.2
on db-3 "$fairlock" run nightly-db sleep 0.9 &
sleep 0.3
on web-7 "$fairlock" run -q -w 1.2 nightly-db true &
sleep 0.3
on build-1 "$fairlock" run nightly-db sleep 1 &
sleep 2.8
on build-2 "$fairlock" run --on-lost kill nightly-db sleep 60 2>"$dir/err" &
sleep 0.7
on db-3 "$fairlock" run nightly-db sleep 0.9 &
sleep 1.5
(SUDO_USER=anna on ops-1 "$fairlock" break --yes --reason 'stuck on NFS' nightly-db >"$dir/out")
sleep 1.6
on web-7 "$fairlock" run --lease 3 nightly-db sleep 60 2>"$dir/err" &
crashing=$!
sleep 0.5
on build-1 "$fairlock" run nightly-db sleep 0.8 &
sleep 0.2
kill -9 $(agent_of $crashing) $crashing
sleep 4.4
(on db-3 "$fairlock" run nightly-db sh -c 'sleep 0.6; exit 3')
sleep 0.2
"$fairlock" history --svg "$1" nightly-db && "$fairlock" history nightly-db
