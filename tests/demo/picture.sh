#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Looks whether a picture of the demo is one, and shows the lock as it should be:
# tests/demo/picture.sh FILE What is wrong goes to standard error, what two pictures of the demo
# have in common to standard output (picture.awk). BUILD: where the judge of histories is (build).
set -u
status=0
elements=$(mktemp)
history=$(mktemp)
trap 'rm -f "$elements" "$history"' EXIT
trap 'exit 1' INT TERM HUP
if ! xmllint --nonet --format "$1" >"$elements"; then
  echo "fault: not well-formed" >&2
  exit 1
fi
if [ "$(wc -c <"$1")" -gt 30720 ]; then
  echo "fault: larger than 30 KB" >&2
  status=1
fi
awk -v history="$history" -f tests/demo/picture.awk "$elements" || status=1
most=$(sed -n "s/.*data-limit=['\"]\([0-9]*\).*/\1/p" "$elements" | sort -n | tail -n 1)
if ! "${BUILD:-build}/tests/chaos/judge" <"$history" >"$elements"; then
  sed '$s/^/fault: /' "$elements" >&2
  status=1
elif ! grep -q " most ${most:-1}$" "$elements"; then
  echo "fault: there never are $most that share" >&2
  status=1
fi
exit $status
