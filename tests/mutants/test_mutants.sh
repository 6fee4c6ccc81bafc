#!/bin/sh
# Whether each mutant of mutants.txt is found by what its entry says: the simulator has to find it
# within two minutes of processor time, or the suite of that name has to fail. In the lock as it is,
# for which the simulator gets 20 s, it has to find nothing. Those of chaos are asked for by
# tests/chaos/mutants.sh, those of the proofs by tests/proof/faults.sh. ONLY=text: those whose name
# or file contains it, and their copies of the tree stay in build/mutants/. Needs what it copies:
# make builds that first. JOBS: how many are tried side by side (default 2).
# shellcheck disable=SC3045 # ulimit -t: every sh of a system with a kernel of its own has that
set -u
. tests/mutants/mutate.sh
limit=120

# fails PROGRAM: a suite does, by a test, a crash, or a loop without end.
fails() {
  (ulimit -t 10 && exec timeout -k 5 300 "$1") >"$place/found" 2>&1
  status=$?
  if [ $status -eq 0 ]; then return 1; fi
  grep -a -m 3 '^\(not ok\|#\)' "$place/found" | sed 's/^not ok/# fails:/'
  echo "# exit status $status"
}

# finds NAME FILE COMMAND
finds() {
  suite=$(suite_of "$1")
  program=$build/$suite
  if [ "$suite" = hunt ]; then program=$build/tests/sim/sim; fi
  mutate "$place" "$2" "$3" && build_in "$place" "$program" && cd "$place" || return 1
  if [ "$suite" = hunt ]; then "$program" hunt $limit; else fails "$program"; fi
}

if [ "${1:-}" = --none ]; then # what the hunt finds in the lock as it is, it would in every mutant
  said=$("$build/tests/sim/sim" hunt 20)
  status=$?
  if [ $status -eq 1 ]; then verdict=ok; else verdict='not ok'; fi
  printf '%s the hunt finds nothing without a mutation\n%s\n' "$verdict" "$said"
  [ $status -eq 1 ]
  exit
fi
if [ "${1:-}" = --one ]; then
  place=$PWD/$build/mutants/$2
  line=$(sed -n "$2p" "$build/mutants/list")
  name=${line%%|*} rest=${line#*|}
  said=$(finds "$name" "${rest%%|*}" "${rest#*|}")
  status=$?
  if [ $status -eq 0 ]; then verdict=ok; else verdict='not ok'; fi
  printf '%s mutant: %s\n# %s\n' "$verdict" "$name" "$name"
  printf '%s\n' "$said" | sed 's/^#/#   /'
  if [ -z "${ONLY:-}" ]; then rm -rf "$place"; fi
  exit $status
fi

mkdir -p "$build/mutants"
mutants | grep -v -e '^chaos:' -e '^proof:' >"$build/mutants/list"
{
  while IFS= read -r line; do suite_of "${line%%|*}"; done <"$build/mutants/list" |
    grep -q '^hunt$' && echo --none
  seq -f '--one %.0f' "$(wc -l <"$build/mutants/list")"
} | xargs -L 1 -P "${JOBS:-2}" sh "$0"
