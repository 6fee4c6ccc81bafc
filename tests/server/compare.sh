#!/bin/sh
# Runs test programs against one server after the other: tests/server/compare.sh "SERVER..."
# PROGRAM... SERVER: a folder of BUILD/servers. Prints what tests/tools/run.sh prints for each, and
# then a table of what passed, by the folder that the programs are from. BUILD: where all that is
# (build).
set -u
build=$(cd "${BUILD:-build}" && pwd)
servers=$1
shift
table=$(mktemp)
trap 'rm -rf "$table"*' EXIT
trap 'exit 1' INT TERM HUP

# sum LOG FOLDER: "ok not-ok skipped" of the programs from tests/FOLDER, or of all
sum() {
  awk -v folder="tests/$2" '/^\[[0-9]+\/[0-9]+\] / { on = index($2, folder) } /^\[alone\] / { on = 0 } on && /^   [0-9]+ ok, / { ok += $1; bad += $3; skip += $6 }
    END { print ok + 0, bad + 0, skip + 0 }' "$1"
}

for server in $servers; do
  SERVER=$build/servers/$server/redis-server
  export SERVER
  name=$("$SERVER" --version | sed 's/ server v=\([^ ]*\).*/ \1/')
  echo "### $name"
  {
    sh tests/tools/run.sh "$@"
    echo $? >>"$table.statuses"
  } | tee "$table.log"
  row="| $name |"
  for folder in server command sim fuzz; do
    row="$row $(sum "$table.log" $folder | sed 's/ .*//') |"
  done
  echo "$row $(sum "$table.log" "" | cut -d ' ' -f 2) |" >>"$table"
  sum "$table.log" "" >>"$table.sums"
done
echo
echo "Run in $(date +%Y-%m):"
echo
echo "| server | tests/server | tests/command | tests/sim | tests/fuzz | failed |"
echo "| --- | --- | --- | --- | --- | --- |"
cat "$table"
awk '{ ok += $1; bad += $2; skip += $3 } END { print ok + 0 " passed, " bad + 0 " failed, " skip + 0 " skipped" }' "$table.sums"
! grep -qv '^0$' "$table.statuses"
