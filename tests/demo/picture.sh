#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Looks whether a picture of the demo is one, and shows the lock as it should be:
# tests/demo/picture.sh FILE What is wrong goes to standard error, what two pictures of the demo
# have in common to standard output (picture.awk).
set -u
status=0
elements=$(mktemp)
trap 'rm -f "$elements"' EXIT
trap 'exit 1' INT TERM HUP
if ! xmllint --nonet --format "$1" >"$elements"; then
  echo "fault: not well-formed" >&2
  exit 1
fi
if [ "$(wc -c <"$1")" -gt 30720 ]; then
  echo "fault: larger than 30 KB" >&2
  status=1
fi
awk -f tests/demo/picture.awk "$elements" || status=1
exit $status
