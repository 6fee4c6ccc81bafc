#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# lock/scripts.c is what lock/scripts/generate.sh makes of the Lua sources, whichever awk runs it, and
# so is lock/scripts/hashes.h: run from the top folder. What port/README.md says of their sizes is true.
set -u
new=$(mktemp)
trap 'rm -f "$new"' EXIT
failed=0
for awk in awk original-awk; do
  if ! command -v "$awk" >/dev/null; then
    echo "# there is no $awk: make packages"
    echo "not ok scripts: lock/scripts.c is up to date, by $awk"
    failed=1
  elif AWK=$awk sh lock/scripts/generate.sh >"$new" && cmp -s "$new" lock/scripts.c; then
    echo "ok scripts: lock/scripts.c is up to date, by $awk"
  else
    diff "$new" lock/scripts.c | head -20 | sed 's/^/# /'
    echo "# lock/scripts.c is stale: run make scripts"
    echo "not ok scripts: lock/scripts.c is up to date, by $awk"
    failed=1
  fi
done

if sh lock/scripts/generate.sh hashes | cmp -s - lock/scripts/hashes.h; then
  echo "ok scripts: lock/scripts/hashes.h is up to date"
else
  echo "# lock/scripts/hashes.h is stale: run make scripts"
  echo "not ok scripts: lock/scripts/hashes.h is up to date"
  failed=1
fi

sizes=$(sed -n 's/.*}, \([0-9]*\), "[0-9a-f]*"}.*/\1/p' lock/scripts.c |
  awk 'BEGIN { split("acquire and release, ;break, ;share, ;downgrade, ;inspect", what, ";") }
    { printf "%.1f KB to %s", $1 / 1000, what[NR] }')
if tr '\n' ' ' <port/README.md | grep -qF "$sizes"; then
  echo "ok scripts: port/README.md says how much is uploaded"
else
  echo "# it is: $sizes"
  echo "not ok scripts: port/README.md says how much is uploaded"
  failed=1
fi
exit $failed
