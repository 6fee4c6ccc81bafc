#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Whether each mutant of mutants.txt is found by what its entry says: the simulator has to find it
# within two minutes of processor time, or the suite of that name has to fail. In the lock as it is,
# for which the simulator gets 20 s, it has to find nothing. Those of chaos are asked for by
# tests/chaos/mutants.sh, those of the proofs by tests/proof/faults.sh; found.sh calls all three.
# ONLY=text: those whose name or file contains it, and their copies of the tree stay in
# build/mutants/. Needs what it copies: make builds that first. JOBS: how many are tried side by
# side (default 2).
# shellcheck disable=SC3045 # ulimit -t: every sh of a system with a kernel of its own has that
set -u
. tests/mutants/mutate.sh
limit=120

# fails PROGRAM: a suite does, by a test, a crash, or a loop without end. Of those in real time the
# first failure is awaited.
fails() {
  ulimit -t 10
  case $suite in
  tests/server/*) finds_nothing "$place/found" 300 "$1" ;;
  *) timeout -k 5 300 "$1" >"$place/found" 2>&1 ;;
  esac
  status=$?
  if [ $status -eq 0 ]; then return 1; fi
  grep -a -m 3 '^\(not ok\|#\)' "$place/found" | sed 's/^not ok/# fails:/'
  echo "# exit status $status"
}

# hunts PROGRAM: the simulator does, from the world on that gave the mutant away when it was found
# last, which most often does so again. Which one it was this time is in $place/seed.
hunts() {
  "$1" hunt $limit "$first" >"$place/found" || { cat "$place/found" && return 1; }
  sed -n 's/^# seed \([0-9]*\),.*/\1/p' "$place/found" | head -n 1 >"$place/seed"
  cat "$place/found"
}

# finds FILE COMMAND: in a shell of its own
finds() (
  mutate "$place" "$1" "$2" "$suite" && build_in "$place" "$program" && cd "$place" || return 1
  if [ "$suite" = hunt ]; then hunts "$program"; else fails "$program"; fi
)

if [ "${1:-}" = --none ]; then # what the hunt finds in the lock as it is, it would in every mutant
  said=$("$build/tests/sim/sim" hunt 20)
  status=$?
  if [ $status -eq 1 ]; then
    said=$("$build/tests/sim/sim" hunt 20 1000000000000001)
    status=$?
  fi
  if [ $status -eq 1 ]; then verdict=ok; else verdict='not ok'; fi
  printf '%s the hunt finds nothing without a mutation\n%s\n' "$verdict" "$said"
  [ $status -eq 1 ]
  exit
fi
if [ "${1:-}" = --one ]; then
  place=$PWD/$build/mutants/$2
  line=$(sed -n "$2p" "$build/mutants/list")
  name=${line%%|*} rest=${line#*|}
  suite=$(suite_of "$name")
  program=$build/$suite
  if [ "$suite" = hunt ]; then program=$build/tests/sim/sim; fi
  key=$(key_of "$line" "$program")
  if known "$line" "$key"; then
    echo "ok mutant: $name"
    exit 0
  fi
  first=$(seed_of "$line")
  said=$(finds "${rest%%|*}" "${rest#*|}")
  status=$?
  if [ $status -eq 0 ]; then
    verdict=ok
    note "$line" "$key" "$(cat "$place/seed" 2>/dev/null || echo 0)"
  else
    verdict='not ok'
  fi
  printf '%s mutant: %s\n# %s\n' "$verdict" "$name" "$name"
  printf '%s\n' "$said" | sed 's/^#/#   /'
  if [ -z "${ONLY:-}" ]; then rm -rf "$place"; fi
  exit $status
fi

mkdir -p "$build/mutants"
mutants | grep -v -e '^chaos:' -e '^proof:' >"$build/mutants/list"
# First what sleeps most of the time, and the one that takes 20 s, so that none of them is the last.
number=0
while IFS= read -r line; do
  number=$((number + 1))
  case $(suite_of "${line%%|*}") in
  hunt) order=2 ;;
  tests/server/*) order=0 ;;
  *) order=3 ;;
  esac
  echo "$order --one $number"
done <"$build/mutants/list" >"$build/mutants/order"
{
  cat "$build/mutants/order"
  if grep -q '^2' "$build/mutants/order"; then echo "1 --none"; fi
} | sort -n -k 1,1 -s | cut -d ' ' -f 2- | xargs -r -L 1 -P "${JOBS:-2}" sh "$0"
