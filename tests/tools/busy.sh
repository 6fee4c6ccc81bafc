#!/bin/sh
# Whether a test passes or fails by speed: tests/tools/busy.sh [TARGET] makes the target (test) three
# times beside four processes that keep the cores busy, and twice on one core. Passes if no test
# failed. The four end with this, however it ends.
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

failed=0
# try WHAT COMMAND...
try() {
  what=$1
  shift
  echo "### $what"
  if "$@" </dev/null; then
    verdicts="${verdicts:-}ok busy: $what
"
  else
    verdicts="${verdicts:-}not ok busy: $what
"
    failed=1
  fi
}

for _ in 1 2 3 4; do
  sh -c 'while kill -0 "$1" 2>/dev/null; do i=0; while [ $i -lt 100000 ]; do i=$((i + 1)); done; done' busy $$ &
  busy="$busy $!"
done
for time in 1 2 3; do try "make $target, all cores busy, $time of 3" "${MAKE:-make}" "$target"; done
rest
for time in 1 2; do try "make $target, on one core, $time of 2" taskset -c 0 "${MAKE:-make}" "$target"; done
printf %s "$verdicts"
exit $failed
