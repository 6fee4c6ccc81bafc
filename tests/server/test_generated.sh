#!/bin/sh
# lock/scripts.c is what lock/scripts/generate.sh makes of the Lua sources, whichever awk runs it:
# run from the top folder.
set -u
new=$(mktemp)
trap 'rm -f "$new"' EXIT
failed=0
for awk in awk original-awk; do
  if AWK=$awk sh lock/scripts/generate.sh >"$new" && cmp -s "$new" lock/scripts.c; then
    echo "ok scripts: lock/scripts.c is up to date, by $awk"
  else
    diff "$new" lock/scripts.c | head -20 | sed 's/^/# /'
    echo "# lock/scripts.c is stale: run make scripts"
    echo "not ok scripts: lock/scripts.c is up to date, by $awk"
    failed=1
  fi
done
exit $failed
