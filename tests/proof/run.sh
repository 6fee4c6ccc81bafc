#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs the proofs that harnesses.txt lists: tests/proof/run.sh [--long | --all | NAME...]: without any,
# all but those marked as long. For each it prints the verdict, seconds of processor time and memory,
# and fails unless CBMC says that all holds, and that the harness reaches each place that it marks by
# REACHED: what is proved of no run at all would hold, too. JOBS: side by side (default 2). LIMIT: seconds for one
# (default 600). MEMORY: megabytes of address space for one (default 2048). FAULT is what
# faults.sh has planted: then the proof has to fail. LIST=1: names those proofs, and runs none.
#
# What all of them are asked: nothing outside of an object, no null or dead pointer, no pointer moved
# outside of its object, no overflow of a signed number, no shift too far, no division by 0, no loop
# that runs further than the bound given for it, and what the harness checks.
# shellcheck disable=SC3045 # ulimit -v: as ulimit -t in tests/mutants
set -u
list=tests/proof/harnesses.txt
folder=$PWD/${BUILD:-build}/proof
PATH=${TOOLS:-$folder/cbmc/bin}:$PATH
checks="--bounds-check --pointer-check --pointer-primitive-check --pointer-overflow-check --signed-overflow-check
  --undefined-shift-check --div-by-zero-check --no-malloc-may-fail --drop-unused-functions --slice-formula"

# column NUMBER: of the line of $name
column() {
  sed 's/#.*//' "$list" | awk -F '|' -v name="$name" -v number="$1" '
    { key = $1; sub(/^ *(long:)? */, "", key); sub(/ *$/, "", key) }
    key == name { print $number }'
}

# limited LOG COMMAND...: within the limits; LOG.took says what it took
limited() {
  log=$1
  shift
  (ulimit -v $((${MEMORY:-2048} * 1024)) &&
    exec timeout -k 5 "${LIMIT:-600}" time -f '%U s, %M MB' -o "$log.took" "$@") >"$log" 2>&1
  result=$?
  took=$(sed -n '$s/\([0-9]*\)[0-9][0-9][0-9] MB/\1 MB/p' "$log.took")
}

# build PLACE FLAG...
build() {
  code=$1
  shift
  # shellcheck disable=SC2086
  goto-cc --function harness -std=c11 "$@" $compile -Itests/proof -I. -Iresp -Iport -Ilock -o "$code" $sources &&
    { [ -z "$instrument" ] || goto-instrument $instrument "$code" "$code"; }
}

# prove NAME: 0: all holds, and all is reached. 1: it does not hold. 2: neither is known.
prove() {
  name=$1
  place=$folder/run/$name
  rm -rf "$place" && mkdir -p "$place"
  sources='' compile='' instrument='' options='' solver=''
  for source in $(column 2); do
    case $source in
    */*) sources="$sources $source" ;;
    *) sources="$sources tests/proof/$source" ;;
    esac
  done
  if [ -z "$sources" ]; then
    echo "# no such proof"
    return 2
  fi
  # shellcheck disable=SC2046
  set -- $(column 3)
  while [ $# -gt 0 ]; do
    case $1 in
    -D* | -I*) compile="$compile $1" ;;
    --replace-calls | --restrict-function-pointer | --loop-contracts-file)
      instrument="$instrument $1 $2"
      shift
      ;;
    --apply-loop-contracts) instrument="$instrument $1" ;;
    --external-sat-solver)
      solver="$1 $2"
      shift
      ;;
    *) options="$options $1" ;;
    esac
    shift
  done
  if ! build "$place/holds.code" >"$place/log" 2>&1 || ! build "$place/reached.code" -DREACH >>"$place/log" 2>&1; then
    sed 's/^/# /' "$place/log"
    return 2
  fi
  # shellcheck disable=SC2086
  limited "$place/holds" cbmc "$place/holds.code" $checks --unwinding-assertions $options $solver ${FAULT:+--stop-on-fail}
  holds=$took
  if grep -q '^VERIFICATION FAILED' "$place/holds"; then
    sed -n -e 's/: FAILURE$//p' -e '/^Violated property/,/^$/p' "$place/holds" | head -n 20 | sed 's/^ */# /'
    return 1
  elif [ $result -ne 0 ] || ! grep -q '^VERIFICATION SUCCESSFUL' "$place/holds"; then
    echo "# no verdict: exit status $result"
    tail -n 3 "$place/holds" | sed 's/^/# /'
    return 2
  elif grep 'no body for function' "$place/holds" | grep -v 'nondet_'; then
    return 2
  elif [ -n "${FAULT:-}" ]; then
    return 0
  fi
  # Each place is a question of its own, for which an external solver would have to start anew.
  # shellcheck disable=SC2086
  limited "$place/reached" cbmc "$place/reached.code" --cover cover --no-standard-checks --no-malloc-may-fail \
    --drop-unused-functions $options
  took="$holds; $(grep -c ': SATISFIED$' "$place/reached") reached in $took"
  if [ $result -ne 0 ] || ! grep -q ': SATISFIED$' "$place/reached" || grep -q ': FAILED$' "$place/reached"; then
    echo "# not reached, exit status $result:"
    grep -e ': FAILED$' "$place/reached" | sed 's/^/# /'
    return 2
  fi
}

if [ "${1:-}" = --one ]; then
  took=
  said=$(prove "$2"; echo "$? $took")
  status=$(echo "$said" | tail -n 1)
  took=${status#* } status=${status%% *}
  if [ -z "${FAULT:-}" ]; then
    what="proof: $2"
    [ "$status" = 0 ]
  else
    what="proof: $2 fails with $FAULT"
    [ "$status" = 1 ]
  fi && verdict=ok || verdict='not ok'
  echo "$verdict $what ($took)
$said" | sed '$d'
  [ "$verdict" = ok ]
  exit
fi
case ${1:---short} in
--short) chosen='/^long:/!p' ;;
--long) chosen='s/^long: *//p' ;;
--all) chosen='s/^long: *//; p' ;;
*) chosen= ;;
esac
if [ -n "$chosen" ]; then
  # shellcheck disable=SC2046
  set -- $(sed 's/#.*//; s/ *|.*//; /^$/d' "$list" | sed -n "$chosen")
fi
if [ "${LIST:-}" = 1 ]; then
  printf '%s\n' "$@"
  exit
fi
printf '%s\n' "$@" | xargs -n 1 -P "${JOBS:-2}" sh "$0" --one
