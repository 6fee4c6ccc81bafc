#!/bin/sh
# Counts where the sources deviate from MISRA C:2012, as far as cppcheck's addon sees it, and holds
# the counts against a page: tests/tools/misra.sh [PAGE [FILE...]] Fails when a rule deviates more
# often than the page's table has it, or is not in it; a smaller count is told and passes. Octal
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
  { split($0, word, " "); count[word[1]]++; places[word[1]] = places[word[1]] " " word[2]; all++ }
  END {
    for (rule in count) {
      if (count[rule] <= allowed[rule] + 0) continue
      printf "misra: rule %s: %d instead of %d:%s\n", rule, count[rule], allowed[rule], places[rule]
      failed = 1
    }
    for (rule in allowed)
      if (count[rule] + 0 < allowed[rule])
        printf "misra: rule %s: only %d of %d are left; the page can be lowered\n", rule, count[rule], allowed[rule]
    printf "misra: %d deviations\n", all
    exit failed
  }' "$page" "$folder/places"
