#!/bin/sh
# Which mutants `make mutants-changed` chooses: in a copy of the tree with three mutants, two of one
# file and one of another.
# shellcheck source=tests/support/verdicts.sh disable=SC2154,SC2319
set -u
. tests/support/verdicts.sh
. tests/mutants/mutate.sh
unset ONLY ENTRIES FOUND RETRY JOBS
tree=$folder/tree
record=tests/mutants/found.txt
copy_tree "$tree" tests/unit/test_resp
for part in mutants proof; do rm "$tree/tests/$part" && cp -R "tests/$part" "$tree/tests"; done
{
  grep '^resp: .*|resp/decode\.c|' tests/mutants/mutants.txt | head -n 2
  grep '^resp: .*|resp/encode\.c|' tests/mutants/mutants.txt | head -n 1
} >"$tree/tests/mutants/mutants.txt"
top=$PWD
cd "$tree" || exit 1
: >tests/proof/faults.txt
rm -f "$record"
cp -pR tests/mutants tests/unit resp lock "$folder"

found() {
  sh tests/mutants/found.sh "$@" >"$folder/log" 2>&1
}

said() {
  grep -q -e "$1" "$folder/log"
}

# again: all is as it was when the record was written, and nothing is known but the record
again() {
  rm -rf "$build/mutants" tests/mutants tests/unit resp lock
  for part in mutants unit; do cp -pR "$folder/$part" tests; done
  cp -pR "$folder/resp" "$folder/lock" .
  if [ -e "$folder/record" ]; then cp "$folder/record" "$record"; fi
}

# chosen WHAT COUNT WORDS: so many of the three, says the choice, and why
chosen() {
  ! found --due && said "$3" && [ "$(grep -c '^resp: ' "$folder/log")" -eq "$2" ] && said "^# left out: $((3 - $2)) of 3"
  verdict "mutants-changed: $1" [ $? -eq 0 ]
  again
}

chosen 'without a record, all' 3 'there is no tests/mutants/found.txt'
found && said '^# found 3 of 3' && [ "$(grep -c '^[0-9]' "$record")" -eq 3 ]
verdict 'mutants-found: writes down what is found' [ $? -eq 0 ]
cp "$record" "$folder/record"
rm "$record" Makefile
found && said '^# found 3 of 3' && cmp -s "$record" "$folder/record"
verdict 'mutants-found: goes on where it was ended, and makes nothing twice' [ $? -eq 0 ]
again
found --due && said '^# left out: 3 of 3' && found --changed && said '^nothing has changed: none is run'
verdict 'mutants-changed: nothing has changed' [ $? -eq 0 ]
ln -s "$top/Makefile" Makefile

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

# damaged COMMAND: of sed
damaged() {
  sed -i "$1" "$record"
  chosen "none is left out after $1 of the record" 3 'is damaged'
}
damaged 3d
damaged '$d'
damaged '3s/[0-9]/x/'
damaged '$s/[0-9]/x/'
damaged '3,$d'
: >"$record"
chosen 'none is left out with an empty record' 3 'is damaged'

echo '/* changed */' >>resp/encode.c
found --changed && said '^   1 ok, 0 not ok' && said '^1 passed, 0 failed' && cmp -s "$record" "$folder/record"
verdict 'mutants-changed: runs them' [ $? -eq 0 ]
again
echo 'resp: one that nothing finds|resp/encode.c|$s/$/ /' >>tests/mutants/mutants.txt
! found --changed && said '^not ok mutant: resp: one that nothing finds' && said '^0 passed, 1 failed'
verdict 'mutants-changed: fails when one is not found' [ $? -eq 0 ]
! found && said '^# found 3 of 4' && ! found --due && said '^resp: one that' && said '^# left out: 3 of 4'
verdict 'mutants-found: fails then, and writes down the others' [ $? -eq 0 ]
exit $failed
