#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tests/tools/misra.sh fails when a rule deviates that its page does not have, or when one or all
# deviate clearly more often than there, and only then.
# shellcheck source=tests/support/verdicts.sh disable=SC2154,SC2319
set -u
. tests/support/verdicts.sh

# octals COUNT: a function with a jump and so many octal constants
octals() {
  printf '%s\n' 'int half(int number);' 'int half(int number)' '{' '  if (number < 7) goto end;'
  yes '  number += 07;' | head -n "$1"
  printf '%s\n' 'end:' '  return number / 2;' '}'
} >"$folder/half.c"
octals 2

# misra ROW...: with a page of these rows
misra() {
  printf '%s\n' '| rule | | count | why |' '| --- | --- | --- | --- |' "$@" >"$folder/page.md"
  sh tests/tools/misra.sh "$folder/page.md" "$folder/half.c" >"$folder/log" 2>&1
}
jump='| 15.1 | advisory | 1 | goto |'
octal='| 7.1 | required | 2 | 07 |'
# A rule that the file keeps, by which the page has so many in all that 2 % of them are more than what
# is tried.
others='| 15.2 | required | 1000 | none |'

misra "$jump" "$octal"
verdict "misra: what the page has passes" [ $? -eq 0 ]
verdict "misra: it has nothing else to say" [ "$(cat "$folder/log")" = "misra: 3 deviations" ]
! misra "$octal" "$others"
verdict "misra: a rule that is not there fails" [ $? -eq 0 ]
verdict "misra: it says where" grep -q "rule 15.1: 1 instead of 0: $folder/half.c:4\$" "$folder/log"
misra "$jump" '| 7.1 | required | 3 | 07 |'
verdict "misra: one less passes" [ $? -eq 0 ]
verdict "misra: but is told" grep -q 'not exact.*: 7.1 (-1)$' "$folder/log"

octals 5
misra "$jump" "$octal" "$others"
verdict "misra: three more of a rule pass" [ $? -eq 0 ]
verdict "misra: and are told" grep -q '7.1 (+3)' "$folder/log"
octals 6
! misra "$jump" "$octal" "$others"
verdict "misra: four more fail" [ $? -eq 0 ]
verdict "misra: it says of what" grep -q 'rule 7.1: 6 instead of 2' "$folder/log"
octals 66
misra "$jump" '| 7.1 | required | 60 | 07 |' "$others"
verdict "misra: a tenth more of a rule passes" [ $? -eq 0 ]
! misra "$jump" '| 7.1 | required | 59 | 07 |' "$others"
verdict "misra: more than a tenth fails" [ $? -eq 0 ]
octals 51
misra "$jump" '| 7.1 | required | 50 | 07 |'
verdict "misra: 2 % more in all pass" [ $? -eq 0 ]
octals 52
! misra "$jump" '| 7.1 | required | 50 | 07 |'
verdict "misra: more than 2 % fail" [ $? -eq 0 ]
verdict "misra: it says so" grep -q '53 in all instead of 51' "$folder/log"
: >"$folder/half.c"
! misra "$jump" "$octal"
verdict "misra: to find nothing at all fails" [ $? -eq 0 ]
mkdir "$folder/bin"
printf '%s\n' '#!/bin/sh' 'echo "the addon does not run"' >"$folder/bin/cppcheck"
chmod +x "$folder/bin/cppcheck"
! PATH=$folder/bin:$PATH sh tests/tools/misra.sh >"$folder/log" 2>&1
verdict "misra: an analyser that does not run fails" [ $? -eq 0 ]
exit $failed
