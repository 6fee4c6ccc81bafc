#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What the suites reach of resp/ and lock/: coverage.sh BUILD SOURCE... BUILD holds objects that
# were compiled with --coverage and have run. Prints lines and branches of each source, and each
# line with something unreached that tests/COVERAGE.md does not explain; the exit status says
# whether there is one. A line is known by its file and its text, so that explanations outlive
# changes elsewhere.
set -u
build=$1 reasons=tests/COVERAGE.md
shift
unreached=$(mktemp) totals=$(mktemp)
trap 'rm -f "$unreached" "$totals"' EXIT

# Reads gcov's listing of one source: unreached lines to stdout, totals to stderr.
# shellcheck disable=SC2016
read_listing='
  /^ *-: *0:Source:/ { sub(/^ *-: *0:Source:/, ""); inside = $0 == source; next }
  !inside { next }
  /^ *[0-9#=*-]+\*?: *[0-9]+:/ {
    count = $0; sub(/:.*/, "", count); gsub(/ /, "", count)
    text = $0; sub(/^[^:]*:[^:]*:/, "", text); gsub(/^ +| +$/, "", text)
    if (count == "-") next
    lines++
    listed = 0
    if (count ~ /[#=]/) { print source "\t" text; listed = 1 } else reached++
    next
  }
  /^branch / {
    branches++
    if ($3 == "taken" && $4 + 0 > 0) { taken++; next }
    if (!listed) { print source "\t" text; listed = 1 }
  }
  END { printf "%s\t%d\t%d\t%d\t%d\n", source, reached, lines, taken, branches > "/dev/stderr" }'

for source in "$@"; do
  object=$build/${source%.c}.o
  gcov -b -c -t -o "${object%/*}" "$object" 2>/dev/null |
    awk -v source="$source" "$read_listing" >>"$unreached" 2>>"$totals"
done

awk -F '\t' '
  function share(part, all) { return all > 0 ? 100 * part / all : 100 }
  function row(name, a, b, c, d) { printf "%-20s %5d of %5d  %6.2f %%   %5d of %5d  %6.2f %%\n", name, a, b, share(a, b), c, d, share(c, d) }
  BEGIN { printf "%-20s %25s   %25s\n", "", "lines", "branches" }
  { row($1, $2, $3, $4, $5); a += $2; b += $3; c += $4; d += $5 }
  END { row("all", a, b, c, d) }' "$totals"

status=0
sort -u "$unreached" >"$unreached.sorted" && mv "$unreached.sorted" "$unreached"
while IFS="$(printf '\t')" read -r source text; do
  grep -qF -- "- \`$source\` \`$text\`" "$reasons" && continue
  [ "$status" -ne 0 ] || echo "not reached, and not explained in $reasons:"
  echo "- \`$source\` \`$text\`: "
  status=1
done <"$unreached"
while IFS= read -r line; do
  case $line in '- `'*) ;; *) continue ;; esac
  source=$(echo "$line" | cut -d '`' -f 2)
  text=${line#*"\` \`"} text=${text%%"\`: "*}
  grep -qxF -- "$(printf '%s\t%s' "$source" "$text")" "$unreached" || echo "reached by now: \`$source\` \`$text\`"
done <"$reasons"
[ "$status" -ne 0 ] || echo "every unreached line or branch is explained in $reasons"
exit $status
