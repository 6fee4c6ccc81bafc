#!/bin/sh
# Whether each proof fails when what it is about has a fault: tests/proof/faults.sh [NAME...], those of
# faults.txt, or the faults of these proofs alone. Each fault is planted in a copy of the sources. A
# sed command that changes nothing fails, as does a proof without a fault. JOBS, LIMIT, MEMORY: as for
# run.sh.
set -u
. tests/mutants/mutate.sh
folder=$PWD/$build/proof

if [ "${1:-}" = --one ]; then
  line=$(sed -n "$2p" "$folder/faults")
  name=${line%%|*} rest=${line#*|}
  place=$folder/run/fault$2
  rm -rf "$place" && mkdir -p "$place"
  cp -pR lock resp port "$place" && ln -s "$PWD/tests" "$place"
  if ! plant "$place" "${rest%%|*}" "${rest#*|}"; then
    echo "not ok proof fails with a fault: $name"
    exit 1
  fi
  cd "$place" && BUILD=build TOOLS=${TOOLS:-$folder/cbmc/bin} FAULT=${rest#*|} sh tests/proof/run.sh "$name"
  exit
fi

status=0
mkdir -p "$folder"
[ $# -gt 0 ] || set -- --all
for name in $(LIST=1 sh tests/proof/run.sh "$@"); do
  planted | sed -n "s/^proof: \($name|.*\)/\1/p" | grep . && continue
  echo "not ok proof fails with a fault: $name has none" >&2
  status=1
done >"$folder/faults"
seq "$(wc -l <"$folder/faults")" | xargs -n 1 -P "${JOBS:-2}" sh "$0" --one || status=1
exit $status
