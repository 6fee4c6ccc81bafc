#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A soak says what it has simulated, and the same seeds give the same again: `make soak HOURS=`, which
# tests/RELEASE.md asks for.
# shellcheck source=tests/support/verdicts.sh disable=SC2154
set -u
. tests/support/verdicts.sh
sim=${BUILD:-build}/tests/sim/sim

# said FILE: the line of the seeds, with each number as N
said() {
  grep '^# seeds' "$1" | sed 's/[0-9][0-9]*/N/g'
}
# number FILE WORDS: the one before these words
number() {
  sed -n "s/^# seeds.*[ :]\([0-9]*\) $2.*/\1/p" "$1"
}

"$sim" hours 20 5 >"$folder/one"
status=$?
"$sim" hours 20 5 >"$folder/again"
verdict "soak: all promises kept" [ "$status" = 0 ]
line="# seeds N to N and N to N: N client-hours, N holds, N of them shared, N faults, N fail-overs, N worlds with a promise broken"
verdict "soak: its line" [ "$(said "$folder/one")" = "$line" ]
grep '^# seeds 5 to [0-9]* and 1000000000000005 to ' "$folder/one" >"$folder/log"
verdict "soak: from that seed on, half of them with sharing" [ $? -eq 0 ]
verdict "soak: as many client-hours as were asked for" [ "$(number "$folder/one" client-hours)" -ge 20 ]
verdict "soak: with shared holds" [ "$(number "$folder/one" 'of them shared')" -gt 0 ]
sed -i '/ a minute$/d' "$folder/one" "$folder/again"
diff "$folder/one" "$folder/again" >"$folder/log"
verdict "soak: the same again" [ $? -eq 0 ]
last=$(sed -n 's/^# seeds 5 to \([0-9]*\) .*/\1/p' "$folder/one")
"$sim" hours 1 $((last + 1)) >"$folder/next"
! diff "$folder/one" "$folder/next" >"$folder/log" && grep -q "^# seeds $((last + 1)) to " "$folder/next"
verdict "soak: the seeds behind it are others" [ $? -eq 0 ]
exit $failed
