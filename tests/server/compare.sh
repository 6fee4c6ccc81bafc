#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs test programs against several servers: tests/server/compare.sh "SERVER..." PROGRAM...
# SERVER: a folder of BUILD/servers. Prints what tests/tools/run.sh prints for each, and then a table
# of what passed, by the folder that the programs are from. BUILD: where all that is (build).
# AT_ONCE: how many servers side by side (default 2), each with JOBS programs.
set -u
build=$(cd "${BUILD:-build}" && pwd)

# sum LOG FOLDER: "ok not-ok skipped" of the programs from tests/FOLDER, or of all
sum() {
  awk -v folder="tests/$2" '/^\[[0-9]+\/[0-9]+\] / { on = index($2, folder) } /^\[alone\] / { on = 0 } on && /^   [0-9]+ ok, / { ok += $1; bad += $3; skip += $6 }
    END { print ok + 0, bad + 0, skip + 0 }' "$1"
}

if [ "${1:-}" = --one ]; then # PREFIX SERVER: shows what was said when all has been, so that nothing comes between
  log=$2.$3
  SERVER=$build/servers/$3/redis-server
  export SERVER
  shift 3
  {
    echo "### $("$SERVER" --version | sed 's/ server v=\([^ ]*\).*/ \1/')"
    sh tests/tools/run.sh "$@"
    echo $? >"$log.status"
  } >"$log" 2>&1
  dd bs=1048576 <"$log" 2>/dev/null
  exit 0
fi

servers=$1
shift
table=$(mktemp)
trap 'rm -rf "$table"*' EXIT
trap 'exit 1' INT TERM HUP
# shellcheck disable=SC2086
for server in $servers; do printf '%s\n' "$server"; done | xargs -P "${AT_ONCE:-2}" -I '{}' sh "$0" --one "$table" '{}' "$@"
for server in $servers; do
  log=$table.$server
  row="| $(sed -n '1s/^### //p' "$log") |"
  for folder in server command sim fuzz; do
    row="$row $(sum "$log" $folder | sed 's/ .*//') |"
  done
  echo "$row $(sum "$log" "" | cut -d ' ' -f 2) |" >>"$table"
  sum "$log" "" >>"$table.sums"
  cat "$log.status" >>"$table.statuses"
done
echo
echo "Run in $(date +%Y-%m):"
echo
echo "| server | tests/server | tests/command | tests/sim | tests/fuzz | failed |"
echo "| --- | --- | --- | --- | --- | --- |"
cat "$table"
awk '{ ok += $1; bad += $2; skip += $3 } END { print ok + 0 " passed, " bad + 0 " failed, " skip + 0 " skipped" }' "$table.sums"
! grep -qv '^0$' "$table.statuses"
