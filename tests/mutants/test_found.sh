#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Which mutants `make mutants-changed` chooses: in a copy of the tree with three mutants, two of one
# file and one of another, and a planted fault of a third, which no proof is asked for here.
# shellcheck source=tests/support/verdicts.sh disable=SC2154,SC2319
set -u
. tests/support/verdicts.sh
. tests/mutants/mutate.sh
unset ONLY ENTRIES FOUND RETRY JOBS
tree=$folder/tree
record=tests/mutants/found.txt
copy_tree "$tree" tests/unit/test_resp
for part in mutants proof server support chaos sim fuzz check.c asserts.h; do
  rm "$tree/tests/$part" && cp -pR "tests/$part" "$tree/tests"
done
{
  grep '^resp: .*|resp/decode\.c|' tests/mutants/mutants.txt | head -n 2
  grep '^resp: .*|resp/encode\.c|' tests/mutants/mutants.txt | head -n 1
} >"$tree/tests/mutants/mutants.txt"
top=$PWD
cd "$tree" || exit 1
rm -f "$record" Makefile
cp -p "$top/Makefile" .
echo 'any|topology.c|1s/^/ /' >tests/proof/faults.txt
cat >tests/proof/faults.sh <<'end'
if [ -n "${BESIDE:-}" ]; then
  (unset ENTRIES FOUND && eval "BESIDE= $BESIDE") >"${BUILD:-build}/beside" 2>&1
fi
. tests/mutants/mutate.sh
mutants | grep '^proof: ' | while IFS= read -r line; do note "$line" any 0; done
echo 'ok proof'
end
mkdir -p "$build/proof/cbmc/bin"
: >"$build/proof/cbmc/bin/cbmc"
mkdir "$folder/bin"
echo 'exit 1' >"$folder/bin/make"
chmod +x "$folder/bin/make"
cp -pR tests/mutants tests/proof tests/unit resp lock "$folder"

found() {
  sh tests/mutants/found.sh "$@" >"$folder/log" 2>&1
}

said() {
  grep -q -e "$1" "$folder/log"
}

# again: all is as it was when the record was written, and nothing is known but the record
again() {
  rm -rf "$build/mutants" tests/mutants tests/proof tests/unit resp lock
  for part in mutants proof unit; do cp -pR "$folder/$part" tests; done
  cp -pR "$folder/resp" "$folder/lock" .
  if [ -e "$folder/record" ]; then cp "$folder/record" "$record"; fi
}

# makes_nothing ARGUMENT...: found, where whatever has to be built fails
makes_nothing() (
  PATH=$folder/bin:$PATH
  found "$@"
)

# chosen WHAT COUNT WORDS: so many of the four, says the choice, and why
chosen() {
  ! found --due && said "$3" && [ "$(grep -c '^[a-z]*: ' "$folder/log")" -eq "$2" ] && said "^# left out: $((4 - $2)) of 4"
  verdict "mutants-changed: $1" [ $? -eq 0 ]
  again
}

chosen 'without a record, all' 4 'there is no tests/mutants/found.txt'
found && said '^# found 4 of 4' && [ "$(grep -c '^[0-9]' "$record")" -eq 4 ]
verdict 'mutants-found: writes down what is found' [ $? -eq 0 ]
cp "$record" "$folder/record"
for beside in 'ONLY=decode sh tests/mutants/found.sh' 'sh tests/mutants/found.sh' \
  'sh tests/mutants/found.sh --changed' 'sh tests/mutants/found.sh --due' 'sh tests/mutants/found.sh --complete'; do
  BESIDE=$beside found && said '^# found 4 of 4' && cmp -s "$record" "$folder/record" &&
    grep -q '^not ok mutants: another run goes on' "$build/beside"
  verdict "mutants-found: alone, with $beside beside it" [ $? -eq 0 ]
done
(exit 0) &
wait
echo $! >"$build/mutants/run/pid"
makes_nothing && said '^# found 4 of 4' && [ ! -e "$build/mutants/run/pid" ]
verdict 'mutants-found: after one that was killed' [ $? -eq 0 ]
rm "$record"
makes_nothing && said '^# found 4 of 4' && cmp -s "$record" "$folder/record"
verdict 'mutants-found: goes on where it was ended, and makes nothing twice' [ $? -eq 0 ]
echo '# changed' >>tests/mutants/test_mutants.sh
! makes_nothing && said '^# found 1 of 4'
verdict 'mutants-found: asks anew what was noted with other tools' [ $? -eq 0 ]
again
found --due && said '^# left out: 4 of 4' && makes_nothing --changed && said '^nothing has changed: none is run'
verdict 'mutants-changed: nothing has changed' [ $? -eq 0 ]
echo '/* changed */' >>resp/decode.c
! found --due && said because && cp -p "$folder/resp/decode.c" resp && found --due && ! said because
verdict 'mutants-changed: and no reason of the time before is given' [ $? -eq 0 ]
again

found --complete && echo '/* changed */' >>lock/engine.h && found --due && ! found --complete && said 'for another library'
verdict 'mutants-found: the record is of one library' [ $? -eq 0 ]
again
echo '/* changed */' >>resp/decode.c
chosen 'of a file that has changed' 2 '^# resp/decode.c: 2 of 2 entries, because the file has'
sed -i '2s/$/;/' tests/mutants/mutants.txt
chosen 'an entry that has changed' 1 '^# resp/decode.c: 1 of 2 entries, because they are new or have'
sed -n '1s/^resp: /&another /p' tests/mutants/mutants.txt >>tests/mutants/mutants.txt
sed -i 3d tests/mutants/mutants.txt
chosen 'a new entry' 1 '^# resp/decode.c: 1 of 3 entries, because they are new or have'
echo '/* changed */' >>tests/unit/test_resp.c
chosen 'of tests that have changed' 3 '^# resp/encode.c: 1 of 1 entries, because the tests'
echo '/* changed */' >>tests/unit/test_poll.c
found --due
verdict 'mutants-changed: of tests that have to find none of them' [ $? -eq 0 ]
again
echo '/* changed */' >>tests/unit/engine_grant.c
found --due
verdict 'mutants-changed: nor of the parts of another suite' [ $? -eq 0 ]
again

# What makes the mutants, and what the tests are built with, the last one new.
for tool in Makefile tests/check.c tests/asserts.h tests/unit/engine_fixture.h tests/server/harness.c \
  tests/server/rules.mk tests/support/proxy.c tests/sim/releases.sh tests/chaos/mutants.sh tests/fuzz/replay.c \
  tests/mutants/mutate.sh tests/mutants/found.sh tests/mutants/due.awk tests/proof/run.sh tests/proof/proof.h \
  tests/proof/harnesses.txt lock/scripts.c lock/scripts/generate.sh lock/scripts/pack.awk tests/support/new.c; do
  cp -p "$tool" "$folder/tool" 2>/dev/null
  echo >>"$tool"
  chosen "all when $tool has changed" 4 '^# resp/decode.c: 2 of 2 entries, because the tools have'
  cp -p "$folder/tool" "$tool"
done
rm tests/support/new.c
sed -i '/^tools /d; $d' "$record"
echo "sum $(cksum <"$record" | cut -d ' ' -f 1)" >>"$record"
chosen 'all when the record does not say with which tools' 4 'because the record has no sum of the tools'

sed -i '2s/$/;/' tests/mutants/mutants.txt
echo >>tests/check.c
MOST=1 found --changed && said '^# 1 of these 4 are run' && said '^   1 ok, 0 not ok' &&
  grep -q ';$' "$build/mutants/run/entries" && cmp -s "$record" "$folder/record"
verdict 'mutants-changed: with MOST=, so many, first what has changed itself' [ $? -eq 0 ]
sed -i '$d' tests/check.c
again

# empty FILE: a list without an entry, and none
empty() {
  echo '# none' >"$1"
  ! found --changed && said "no mutants: $1" && ! found --complete && said "no mutants: $1" &&
    ! found && said "no mutants: $1" && rm "$1" && ! found --changed && said "no mutants: $1" &&
    ! found --complete && said "no mutants: $1"
  verdict "mutants-changed: fails without an entry in $1" [ $? -eq 0 ]
  again
}
empty tests/mutants/mutants.txt
empty tests/proof/faults.txt
! ONLY='no such' found && said 'no mutants: none has no such'
verdict 'mutants-found: fails when ONLY= leaves none' [ $? -eq 0 ]
again

# damaged COMMAND: of sed
damaged() {
  sed -i "$1" "$record"
  chosen "none is left out after $1 of the record" 4 'is damaged'
}
damaged 3d
damaged '$d'
damaged '3s/[0-9]/x/'
damaged '$s/[0-9]/x/'
damaged '3,$d'
: >"$record"
chosen 'none is left out with an empty record' 4 'is damaged'

echo '/* changed */' >>resp/encode.c
found --changed && said '^   1 ok, 0 not ok' && said '^1 passed, 0 failed' && cmp -s "$record" "$folder/record"
verdict 'mutants-changed: runs them' [ $? -eq 0 ]
again
echo 'resp: one that nothing finds|resp/encode.c|$s/$/ /' >>tests/mutants/mutants.txt
! found --changed && said '^not ok mutant: resp: one that nothing finds' && said '^0 passed, 1 failed'
verdict 'mutants-changed: fails when one is not found' [ $? -eq 0 ]
! found && said '^# found 4 of 5' && ! found --due && said '^resp: one that' && said '^# left out: 4 of 5'
verdict 'mutants-found: fails then, and writes down the others' [ $? -eq 0 ]
exit $failed
