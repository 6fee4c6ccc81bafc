#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A client in another language and all checks of tests/interop/peer.py: tests/languages/peer.sh COMMAND...
# LACKS: the checks for which it has no call, such as "force inspection". They are no tests that were skipped.
set -u
said=$(mktemp)
trap 'rm -f "$said"' EXIT
trap 'exit 1' INT TERM HUP
tests/interop/peer.py -- "$@" >"$said"
status=$?
for check in ${LACKS:-}; do
  case $check in
  reentry) reason='no re-entry' ;;
  *) reason="no $check" ;;
  esac
  sed -i "/^skip [a-z_]*: $reason\$/d" "$said"
done
cat "$said"
exit $status
