#!/bin/sh
# tests/tools/misra.sh fails when a rule deviates more often than its page says, and only then.
# shellcheck source=tests/support/verdicts.sh disable=SC2154,SC2319
set -u
. tests/support/verdicts.sh

printf '%s\n' 'int half(int number);' 'int half(int number)' '{' '  if (number < 7) goto end;' \
  '  number += 07;' '  number += 011;' 'end:' '  return number / 2;' '}' >"$folder/half.c"

# misra ROW...: with a page of these rows
misra() {
  printf '%s\n' '| rule | | count | why |' '| --- | --- | --- | --- |' "$@" >"$folder/page.md"
  sh tests/tools/misra.sh "$folder/page.md" "$folder/half.c" >"$folder/log" 2>&1
}
jump='| 15.1 | advisory | 1 | goto |'
octal='| 7.1 | required | 2 | 07, 011 |'

misra "$jump" "$octal"
verdict "misra: what the page has passes" [ $? -eq 0 ]
verdict "misra: it has nothing else to say" [ "$(cat "$folder/log")" = "misra: 3 deviations" ]
! misra "$octal"
verdict "misra: a rule that is not there fails" [ $? -eq 0 ]
! misra "$jump" '| 7.1 | required | 1 | 07 |'
verdict "misra: one more fails" [ $? -eq 0 ]
verdict "misra: it says where" \
  grep -q "rule 7.1: 2 instead of 1: $folder/half.c:5 $folder/half.c:6\$" "$folder/log"
misra "$jump" '| 7.1 | required | 3 | 07 |'
verdict "misra: one less passes" [ $? -eq 0 ]
verdict "misra: but is told" grep -q 'rule 7.1: only 2 of 3' "$folder/log"
: >"$folder/half.c"
! misra "$jump" "$octal"
verdict "misra: to find nothing at all fails" [ $? -eq 0 ]
mkdir "$folder/bin"
printf '%s\n' '#!/bin/sh' 'echo "the addon does not run"' >"$folder/bin/cppcheck"
chmod +x "$folder/bin/cppcheck"
! PATH=$folder/bin:$PATH sh tests/tools/misra.sh >"$folder/log" 2>&1
verdict "misra: an analyser that does not run fails" [ $? -eq 0 ]
exit $failed
