#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Whether each proof fails when what it is about has a fault: tests/proof/faults.sh [NAME...], those of
# faults.txt, or the faults of these proofs alone. Each fault is planted in a copy of the sources. A
# sed command that changes nothing fails, as does a proof without a fault. JOBS, LIMIT, MEMORY: as for
# run.sh. tests/mutants/found.sh asks for the faults that have changed, which it leaves in $ENTRIES.
set -u
. tests/mutants/mutate.sh
folder=$PWD/$build/proof

if [ "${1:-}" = --one ]; then
  line=$(sed -n "$2p" "$folder/faults")
  name=${line%%|*} rest=${line#*|}
  key=$(key_of "proof: $line" "$folder/proved")
  if known "proof: $line" "$key"; then
    echo "ok proof: $name fails with ${rest#*|}"
    exit 0
  fi
  top=$PWD
  place=$folder/run/fault$2
  rm -rf "$place" && mkdir -p "$place"
  cp -pR lock resp port "$place" && ln -s "$PWD/tests" "$place"
  if ! plant "$place" "${rest%%|*}" "${rest#*|}"; then
    echo "not ok proof fails with a fault: $name"
    exit 1
  fi
  (cd "$place" && BUILD=build TOOLS=${TOOLS:-$folder/cbmc/bin} FAULT=${rest#*|} sh tests/proof/run.sh "$name") || exit
  cd "$top" && note "proof: $line" "$key" 0
  exit 0
fi

status=0
mkdir -p "$folder"
find lock resp port tests/proof -name '*.[chj]*' -o -name harnesses.txt | sort | xargs cat >"$folder/proved"
[ $# -gt 0 ] || set -- --all
if [ -n "${ENTRIES:-}" ]; then
  mutants | sed -n 's/^proof: //p' >"$folder/faults"
else
  for name in $(LIST=1 sh tests/proof/run.sh "$@"); do
    planted | sed -n "s/^proof: \($name|.*\)/\1/p" | grep . && continue
    echo "not ok proof fails with a fault: $name has none" >&2
    status=1
  done >"$folder/faults"
fi
seq "$(wc -l <"$folder/faults")" | xargs -r -n 1 -P "${JOBS:-2}" sh "$0" --one || status=1
exit $status
