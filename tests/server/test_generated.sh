#!/bin/sh
# lock/scripts.c is what lock/scripts/generate.sh makes of the Lua sources: run from the top folder.
set -u
new=$(mktemp)
trap 'rm -f "$new"' EXIT
if sh lock/scripts/generate.sh >"$new" && cmp -s "$new" lock/scripts.c; then
  echo "ok scripts: lock/scripts.c is up to date"
else
  diff "$new" lock/scripts.c | head -20 | sed 's/^/# /'
  echo "# lock/scripts.c is stale: run make scripts"
  echo "not ok scripts: lock/scripts.c is up to date"
  exit 1
fi
