#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Mutants and planted faults of all kinds, and the record of those that were found, found.txt:
#
#     found.sh            all are found; ONLY=text: some. If it was all, it writes the record
#     found.sh --changed  those are found that have changed since; of the others it says how many.
#                         MOST=number: so many at most, first those of which most has changed
#     found.sh --due      prints those, and runs none; fails if there is one
#     found.sh --complete the same, and fails if the record was written for another library: a change
#                         of one file may hide a mutant of another one, most often from the simulator
#
# An entry is left out if the record has it with the sums of its text, of its file, and of the sources
# of what has to find it, as they are now. A record that is damaged has none, and one that was written
# with other tools leaves none out. What was found is noted
# at once (mutate.sh), so whoever interrupts this goes on where it was. JOBS: side by side (default 2).
set -u
. tests/mutants/mutate.sh
record=tests/mutants/found.txt
folder=$build/mutants/run
list=$folder/entries
FOUND=$folder/found
export FOUND TOOLS_SUM

# begin_alone: false, and says so, while another run goes on in this build. Each would empty the
# other's list and what it has found, and build in the same places.
begin_alone() {
  if other=$(cat "$folder/pid" 2>/dev/null) && ! kill -0 "$other" 2>/dev/null; then rm -f "$folder/pid"; fi
  (set -C && echo $$ >"$folder/pid") 2>/dev/null && return
  echo "not ok mutants: another run goes on, process $other"
  return 1
}

sum() {
  cksum | cut -d ' ' -f 1
}

# library: the sum of all that can be mutated
library() {
  find lock resp port -name '*.[ch]' -o -name '*.lua' | sort | xargs cat | sum
}

# tools: the sum of what makes the mutants and what the tests are built and judged with. Any of it may
# decide about any entry. A test, which sources_of() names, does so about its own alone.
tools() {
  for tool in Makefile tests/*.[ch] tests/sim/rules.mk tests/server/rules.mk tests/chaos/rules.mk \
    tests/fuzz/rules.mk tests/proof/rules.mk tests/mutants/rules.mk lock/scripts.c lock/scripts/*.sh lock/scripts/*.awk \
    tests/mutants/*.sh tests/mutants/*.awk tests/chaos/*.sh tests/sim/*.sh tests/interop/change.sh tests/interop/later.sed \
    tests/proof/*.sh tests/proof/*.h tests/proof/*/*.h tests/proof/*.json tests/proof/harnesses.txt \
    tests/server/*.[ch] tests/support/* tests/unit/*.h tests/fuzz/replay.c; do
    case $tool in
    tests/server/test_* | tests/mutants/test_found.sh | tests/mutants/test_apply.sh | tests/mutants/matrix.*) ;;
    *) cksum "$tool" ;;
    esac
  done | LC_ALL=C sort | sum
}

# sources_of SUITE: what decides whether it finds something, besides the library
sources_of() {
  case $1 in
  hunt) find tests/sim -name '*.[ch]' ! -name 'test_*' ;;
  tests/sim/*) find tests/sim -name '*.[ch]' ;;
  tests/unit/test_engine | tests/unit/test_one_task) echo tests/unit/test_engine.c && find tests/unit -name 'engine_*' ;;
  tests/chaos/chaos) find tests/chaos -name '*.[ch]' ;;
  replay/fuzz_*) echo "tests/fuzz/${1#*/}.c" && find tests/fuzz -name "${1#*_}.tar.gz" -o -name 'witness.*' -o -name 'hostile.[ch]' ;;
  tests/portable/zephyr/zephyr) find tests/portable/zephyr -name '*.[ch]' ;;
  proof:*) proof_of "${1#proof:}" ;;
  *) echo "$1.c" && sed -n "s|^#include \"\(test_.*[.]c\)\"|${1%/*}/\1|p" "$1.c" ;;
  esac
}

# proof_of NAME: the list has its bounds, the harness its question
proof_of() {
  awk -F '|' -v name="$1" '{ key = $1; sub(/^(long:)? */, "", key); sub(/ *$/, "", key) } key == name { print $2 }' \
    tests/proof/harnesses.txt | tr ' ' '\n' | sed -n 's|^[^/]*\.c$|tests/proof/&|p'
  echo tests/proof/harnesses.txt
}

# finder_of NAME: the suite, or proof:NAME
finder_of() {
  case $1 in
  'proof: '*) echo "proof:${1#proof: }" ;;
  *) suite_of "$1" ;;
  esac
}

# states: of the entries that it reads: the sums of entry, file and sources, a | and the entry
states() {
  while IFS= read -r line; do
    printf '%s|%s|%s\n' "$(printf '%s' "$line" | sum)" "$(finder_of "${line%%|*}")" "$line"
  done >"$folder/lines"
  cut -d '|' -f 4 "$folder/lines" | sort -u | while IFS= read -r file; do
    echo "$file|$(sum <"$(path_of "$file")")"
  done >"$folder/files"
  cut -d '|' -f 2 "$folder/lines" | sort -u | while IFS= read -r finder; do
    echo "$finder|$(sources_of "$finder" | sort | xargs cat | sum)"
  done >"$folder/finders"
  LC_ALL=C awk -F '|' '
    FILENAME ~ /files$/ { file[$1] = $2; next }
    FILENAME ~ /finders$/ { finder[$1] = $2; next }
    { entry = $0; sub(/^[^|]*[|][^|]*[|]/, "", entry); print $1, file[$4], finder[$2] "|" entry }
  ' "$folder/files" "$folder/finders" "$folder/lines"
}

# believed: the sums in the record, if its last one is the sum of those before. What is wrong with it is in $folder/wrong.
believed() {
  : >"$folder/wrong"
  if [ "$(tail -n 1 "$record" 2>/dev/null)" = "sum $(sed '$d' "$record" 2>/dev/null | sum)" ]; then
    grep -e '^[0-9]' -e '^tools ' "$record"
  elif [ -e "$record" ]; then
    echo "# $record is damaged: none is left out" >"$folder/wrong"
  else
    echo "# there is no $record: none is left out" >"$folder/wrong"
  fi
}

# due: of the states, those entries that the record does not have so. Why is in $folder/why.
due() {
  believed >"$folder/record"
  : >"$folder/why"
  LC_ALL=C awk -v why="$folder/why" -v tools="$TOOLS_SUM" -v library="$before" -f tests/mutants/due.awk "$folder/record" states=1 "$folder/states" |
    LC_ALL=C sort -n -k 1,1 -k 2,2 -s | cut -d ' ' -f 3-
}

# programs: those that have something to do. CBMC is got only for them.
programs() {
  if grep -qv -e '^chaos:' -e '^proof:' "$list"; then echo 'nice sh tests/mutants/test_mutants.sh'; fi
  if grep -q '^chaos:' "$list"; then echo 'sh tests/chaos/mutants.sh'; fi
  if grep -q '^proof:' "$list"; then
    make -s --no-print-directory "$build/proof/cbmc/bin/cbmc" >&2 </dev/null
    echo 'nice sh tests/proof/faults.sh'
  fi
}

# run_changed: as suites, so that what fails is tried once more
run_changed() {
  programs >"$folder/programs"
  set --
  while IFS= read -r program; do set -- "$@" "$program"; done <"$folder/programs"
  JOBS=3 TEST_TIMEOUT=7200 sh tests/tools/run.sh "$@"
}

# run_all: one kind after the other, so that each is seen when it is found, but chaos, which sleeps.
run_all() {
  failures=0
  programs >"$folder/programs"
  if grep -q chaos "$folder/programs"; then
    sh tests/chaos/mutants.sh >"$folder/chaos" 2>&1 &
    chaos=$!
  fi
  grep -v chaos "$folder/programs" >"$folder/others"
  while IFS= read -r program; do
    $program </dev/null || failures=$((failures + 1))
  done <"$folder/others"
  if [ -n "$chaos" ]; then
    wait "$chaos" || failures=$((failures + 1))
    chaos=
    cat "$folder/chaos"
  fi
  [ $failures -eq 0 ]
}

# write_record: of what was found, what is still as it was when this began. False if there is more.
write_record() {
  mutants | states | sort >"$folder/now"
  sort "$folder/states" | comm -12 - "$folder/now" >"$folder/same"
  {
    echo '# Written by make mutants-found: the mutants and planted faults that were found. The sums of the entry, of its'
    echo '# file, and of the tests that have to find it; the world of the hunt that did, or 0; the name.'
    if [ "$before" = "$(library)" ]; then echo "library $before"; fi
    if [ "$TOOLS_SUM" = "$(tools)" ]; then echo "tools $TOOLS_SUM"; fi
    LC_ALL=C awk '
      FILENAME ~ /found$/ { entry = $0; sub(/^[^ ]* /, "", entry); found[entry] = $1; next }
      {
        entry = sums = $0
        sub(/^[^|]*[|]/, "", entry)
        sub(/[|].*/, "", sums)
        if (entry in found) print sums, found[entry], substr(entry, 1, index(entry, "|") - 1)
      }' "$FOUND" "$folder/same" | sort -k 5
  } >"$folder/record"
  echo "sum $(sum <"$folder/record")" >>"$folder/record"
  mv "$folder/record" "$record"
  [ "$(grep -c '^[0-9]' "$record")" -eq "$(wc -l <"$folder/now")" ]
}

listed || exit
mkdir -p "$folder"
begin_alone || exit
chaos=
trap 'rm -f "$folder/pid"; [ -z "$chaos" ] || kill "$chaos" 2>/dev/null' EXIT
trap 'exit 1' HUP INT TERM
: >"$FOUND"
before=$(library)
TOOLS_SUM=$(tools)
echo "$TOOLS_SUM" >"$folder/tools"
mutants | states >"$folder/states"
case ${1:-} in
'')
  mutants >"$list"
  if [ ! -s "$list" ]; then
    echo "not ok no mutants: none has ${ONLY:-} in its name or file"
    exit 1
  fi
  ;;
*)
  due >"$list"
  cat "$folder/why" "$folder/wrong"
  ;;
esac
case ${1:-} in
--due)
  cat "$list"
  [ ! -s "$list" ]
  exit
  ;;
--complete)
  if ! grep -qx "library $before" "$record" 2>/dev/null; then
    echo "# $record was written for another library"
    exit 1
  fi
  [ ! -s "$list" ]
  exit
  ;;
--changed)
  if [ ! -s "$list" ]; then
    echo "nothing has changed: none is run"
    exit 0
  fi
  if [ "$(grep -c . "$list")" -gt "${MOST:-99999}" ]; then
    echo "# $MOST of these $(grep -c . "$list") are run; make mutants-found runs all"
    sed -i "$((MOST + 1)),\$d" "$list"
  fi
  ENTRIES=$list
  export ENTRIES
  run_changed
  exit
  ;;
esac
began=$(date +%s)
ENTRIES=$list
export ENTRIES
run_all
status=$?
unset ENTRIES
if [ -z "${ONLY:-}" ] && ! write_record; then status=1; fi
times >"$folder/times" # the second line: of what ran
echo "# found $(sort -u "$FOUND" | grep -c .) of $(grep -c . "$list"): $((($(date +%s) - began) / 60)) min, $(sed -n '2s/[ms]/ /gp' "$folder/times" | awk '{ printf "%.0f", 60 * ($1 + $3) + $2 + $4 }') s of a processor"
exit $status
