#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Whether a test passes or fails by speed: tests/tools/busy.sh [TARGET] makes the target (test) three
# times beside four processes that keep the cores busy, and twice on one core. ROUNDS="busy one"
# names other rounds. Passes if no test failed. The four end with their round, however it ends.
set -u
target=${1:-test}
unset MAKEFLAGS MFLAGS MAKELEVEL RETRY
busy=
rest() {
  # shellcheck disable=SC2086
  [ -z "$busy" ] || kill $busy
  busy=
}
trap rest EXIT
trap 'exit 1' INT TERM HUP

burn() {
  for _ in 1 2 3 4; do
    sh -c 'while kill -0 "$1" 2>/dev/null; do i=0; while [ $i -lt 100000 ]; do i=$((i + 1)); done; done' busy $$ &
    busy="$busy $!"
  done
}

failed=0
# try WHAT COMMAND...
try() {
  what=$1
  shift
  echo "### $what"
  began=$(date +%s)
  if "$@" </dev/null; then verdict=ok; else
    verdict="not ok"
    failed=1
  fi
  verdicts="${verdicts:-}$verdict busy: $what, $((($(date +%s) - began) / 60)) min
"
}

for round in ${ROUNDS:-busy busy busy one one}; do
  case $round in
    busy)
      burn
      try "make $target, all cores busy" "${MAKE:-make}" "$target" NICE=
      rest
      ;;
    one) try "make $target, on one core" taskset -c 0 "${MAKE:-make}" "$target" ;;
    *)
      echo "busy.sh: no such round: $round" >&2
      exit 2
      ;;
  esac
done
printf %s "$verdicts"
exit $failed
