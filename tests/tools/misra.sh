#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Counts where the sources deviate from MISRA C:2012, as far as cppcheck's addon sees it, and holds
# the counts against a page: tests/tools/misra.sh [PAGE [FILE...]] Fails when a rule deviates that
# the page's table does not have, when one deviates more often than there by more than a tenth and by
# more than 3, or when all together do by more than 2 %. What passes but differs is told. Octal
# bytes in lock/scripts.c, which is generated, are not counted: each change of a script changes them.
set -u
page=${1:-tests/MISRA.md}
[ $# -eq 0 ] || shift
[ $# -gt 0 ] || set -- resp/*.c lock/*.c
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
trap 'exit 1' INT TERM HUP

cppcheck -q --std=c11 --enable=style --addon=misra --template='{id} {file}:{line}' \
  -Iresp -Iport -Iport/posix -Ilock "$@" >"$folder/log" 2>"$folder/found" || exit 1
if [ -s "$folder/log" ]; then # the addon's own failure is no failure of cppcheck's
  cat "$folder/log" >&2
  exit 1
fi
sed -n 's/^misra-c2012-\([0-9]*\.[0-9]*\) \(.*\)/\1 \2/p' "$folder/found" | sort -u |
  grep -v -e '^4\.1 lock/scripts\.c:' -e '^7\.1 lock/scripts\.c:' >"$folder/places"
if [ ! -s "$folder/places" ]; then
  echo "misra: nothing was found, which nobody believes: $(head -n 3 "$folder/found")" >&2
  exit 1
fi

# Rows of the table: | rule | what | count | why |
awk -F ' *[|] *' '
  FNR == NR { if ($2 ~ /^[0-9]+\.[0-9]+$/) allowed[$2] = $4; next }
  function sign(number) { return (number > 0 ? "+" : "") number }
  { split($0, word, " "); count[word[1]]++; places[word[1]] = places[word[1]] " " word[2]; all++ }
  END {
    for (rule in count) {
      listed = rule in allowed # before a look into it, which would add it
      more = count[rule] - allowed[rule]
      if (listed && (more <= 3 || more <= allowed[rule] / 10)) continue
      failed = 1
      printf "misra: rule %s: %d instead of %d:%s\n", rule, count[rule], allowed[rule], places[rule]
    }
    for (rule in allowed) {
      on_page += allowed[rule]
      if (count[rule] + 0 != allowed[rule]) differ = differ " " rule " (" sign(count[rule] - allowed[rule]) ")"
    }
    if (all > on_page * 1.02) {
      printf "misra: %d in all instead of %d, which is more than 2 %% more\n", all, on_page
      failed = 1
    }
    if (differ != "") printf "misra: the page is not exact, which fails nothing by itself:%s\n", differ
    printf "misra: %d deviations\n", all
    exit failed
  }' "$page" "$folder/places"
