#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The kill matrix: runs each suite below with each mutant of mutants.txt, and prints which fail. It
# says what a suite is worth, and which mutant nothing finds. What was found is kept in
# build/mutants/cells, under the sums of the mutation and of the suite's program, so that a
# second run goes on where the first was ended, and does again what has changed. The table is left
# in build/mutants/matrix.txt.
#
# ONLY=text: mutants whose name or file contains it. SUITE="words": suites whose name contains one of
# these; the words unit, sim and real: those of that kind. JOBS: mutants side by side (default 2).
# SIDE: suites in real time side by side for each (default 4; they sleep most of the time). HUNT:
# the simulator's processor time for each, in seconds (default 20). PRINT=1 only prints the table.
# shellcheck disable=SC3045 # ulimit -t: as in test_mutants.sh
set -u
. tests/mutants/mutate.sh
cells=$build/mutants/cells
unmutated='no mutant'
HUNT=${HUNT:-20}
export HUNT

# A name, the kind, the program under build/, and its arguments. Not here: what does not look at the
# lock (test_port, test_generated), and what builds it again for a board (qemu).
suites() {
  cat <<END
client unit tests/unit/test_client
engine unit tests/unit/test_engine
schedule unit tests/unit/test_schedule
one_task unit tests/unit/test_one_task
work unit tests/unit/test_work
topology unit tests/unit/test_topology
poll unit tests/unit/test_poll
single unit tests/unit/test_single
assert unit tests/unit/test_assert
resp unit tests/unit/test_resp
resp_guard unit tests/unit/test_resp_guard
unpacked unit tests/unit/test_unpack
fuzz_resp unit replay/fuzz_resp
fuzz_engine unit replay/fuzz_engine
fuzz_client unit replay/fuzz_client
zephyr unit tests/portable/zephyr/zephyr
hunt sim tests/sim/sim hunt $HUNT
sweep sim tests/sim/test_sweep
worlds sim tests/sim/sim
differential sim tests/sim/test_differential
hostile_keys real tests/fuzz/hostile_keys
scripts real tests/server/test_scripts
rlock real tests/server/test_rlock
break real tests/server/test_break
acl real tests/server/test_acl
errors real tests/server/test_errors
names real tests/server/test_names
order real tests/server/test_order
subscribe real tests/server/test_subscribe
loops real tests/server/test_loops
lost real tests/server/test_lost
replies real tests/server/test_replies
dead real tests/server/test_dead
threads real tests/server/test_threads
sockets real tests/server/sockets/threads
chaos real tests/chaos/chaos
sentinel real tests/failover/test_sentinel
cluster real tests/failover/test_cluster
END
}

chosen() {
  suites | awk -v words="${SUITE:-}" '
    BEGIN { count = split(words, word, " ") }
    {
      chosen = count == 0
      for (i = 1; i <= count; i++) {
        if (word[i] ~ /^(unit|sim|real)$/ ? $2 == word[i] : index($1, word[i])) chosen = 1
      }
      if (chosen) print
    }'
}

sum() {
  cksum | cut -d ' ' -f 1
}

# finds KIND LOG PROGRAM ARGUMENTS: prints what became of it, the seconds and the first failure. A
# suite in real time has to fail twice: the second time with nothing but the test that failed.
finds() {
  kind=$1 log=$2
  shift 2
  began=$(date +%s)
  verdict=alive
  case $kind in
  unit) ulimit -t 10 ;;
  *) ulimit -t 120 ;;
  esac
  if [ "${2:-}" = hunt ]; then
    "$@" >"$log" 2>&1 && verdict=killed
  elif ! finds_nothing "$log" 400 "$@"; then
    verdict=killed
    test=$(sed -n 's/^not ok //p' "$log" | head -n 1)
    case $test in chaos_* | harness*) test= ;; esac
    if [ "$kind" = real ] && finds_nothing "$log.again" 400 "$@" ${test:+"$test"}; then verdict=once; fi
  fi
  echo "$verdict $(($(date +%s) - began)) $(grep -a -m 1 '^\(not ok\|# seed\)' "$log")"
}

case ${1:-} in
--suite) # in the place $2, what the line $3 says: a cell, a kind, a program, and its arguments
  top=$PWD
  cd "$2" || exit 1
  # shellcheck disable=SC2086
  set -- $3
  cell=$1 kind=$2
  shift 2
  if [ "$top" != "$PWD" ] && cmp -s "$1" "$top/$1"; then
    echo unlinked 0 >"$top/$cell"
  else
    finds "$kind" "$top/$cell.log" "$@" >"$top/$cell.new"
    mv "$top/$cell.new" "$top/$cell"
    rm -f "$top/$cell".log*
  fi
  exit 0
  ;;
--mutant) # each suite that is still to be run with the mutant in line $2
  line=$(sed -n "$2p" "$run/list")
  place=$run/m$2
  file=${line#*|}
  mutant=$(printf '%s' "${line#*|}" | sum)
  while read -r suite _ rest; do
    if [ ! -e "$cells/$mutant-$suite" ]; then echo "$cells/$mutant-$suite $rest"; fi
  done <"$run/suites" >"$place.todo"
  if [ ! -s "$place.todo" ]; then exit 0; fi
  echo "# $(date +%H:%M:%S) $2: ${line%%|*}"
  # shellcheck disable=SC2046
  if [ "$line" = "$unmutated" ]; then
    place=.
  elif ! { mutate "$place" "${file%%|*}" "${file#*|}" &&
    build_in "$place" $(cut -d ' ' -f 3 "$place.todo" | sort -u); }; then
    echo "# it cannot be made: ${line%%|*}"
    exit 1
  fi
  grep -v ' real ' "$run/m$2.todo" | xargs -r -d '\n' -n 1 sh "$0" --suite "$place"
  grep ' real ' "$run/m$2.todo" | xargs -r -d '\n' -n 1 -P "${SIDE:-4}" sh "$0" --suite "$place"
  rm -rf "$run/m$2" "$run/m$2.todo"
  exit 0
  ;;
esac

mkdir -p "$cells"
run=$(mktemp -d "$build/mutants/run.XXXXXX") # this run's: another may go on beside it
export run
trap 'rm -rf "$run"' EXIT
trap 'exit 1' HUP INT TERM
{
  echo "$unmutated"
  mutants
} >"$run/list"
chosen | while read -r suite kind program arguments; do
  echo "$({
    echo "$program $arguments"
    cat "$build/$program"
  } | sum) $suite $kind $build/$program $arguments"
done | sed 's/ *$//' >"$run/suites"
if [ "${PRINT:-}" != 1 ]; then
  sh "$0" --mutant 1
  seq 2 "$(wc -l <"$run/list")" | xargs -r -n 1 -P "${JOBS:-2}" sh "$0" --mutant
fi

# What awk makes the table of: the suites, and for each mutant its name and its cells.
{
  sed 's/^/suite /' "$run/suites"
  while IFS= read -r line; do
    echo "mutant ${line%%|*}"
    mutant=$(printf '%s' "${line#*|}" | sum)
    while read -r suite _; do
      cat "$cells/$mutant-$suite" 2>/dev/null || echo none
    done <"$run/suites" | sed 's/^/cell /'
  done <"$run/list"
} | awk -f tests/mutants/matrix.awk | tee "$build/mutants/matrix.txt"
