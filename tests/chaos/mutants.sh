#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Whether the checks of chaos find mutants: makes each one that tests/mutants/mutants.txt marks with
# "chaos:", and lets the clients of a real server use it; what they write down has to give it away.
# As it does within seconds when it is found at all, a minute is a generous bound. Each seed is
# another try. Needs what it copies: its rules build that first. ONLY=text: those whose name or file
# contains it; found.sh asks for those that have changed.
set -u
. tests/mutants/mutate.sh
folder=$build/mutants/chaos
chaos=$build/tests/chaos/chaos
status=0
running=
rm -rf "$folder"
mkdir -p "$folder"
# shellcheck disable=SC2086
trap '[ -z "$running" ] || kill $running 2>/dev/null' EXIT
trap 'exit 1' HUP INT TERM

# Runs until the first complaint, or gives up. What it says is in PLACE/log.
hunt() {
  for seed in 1 2; do
    (cd "$1" && HUNT=1 TIME=60 SEED=$seed exec "$chaos" all_get_on) >"$1/log" 2>&1
    if grep -q '^not ok chaos_hunt' "$1/log"; then return; fi
  done
}

# All at a time: they sleep most of it.
count=0
mutants | grep '^chaos:' >"$folder/list"
while IFS= read -r line; do
  name=${line%%|*}
  key=$(key_of "$line" "$chaos")
  if known "$line" "$key"; then
    echo "ok chaos check finds: ${name#chaos: }"
    continue
  fi
  count=$((count + 1))
  place=$folder/$count
  mutation=${line#*|}
  if mutate "$place" "${mutation%%|*}" "${mutation#*|}" && build_in "$place" "$chaos"; then
    hunt "$place" &
    running="$running $!"
  fi
  echo "${name#chaos: }" >"$place/name"
  echo "$key" >"$place/key"
  printf '%s\n' "$line" >"$place/line"
done <"$folder/list"
wait
running=

for place in "$folder"/[0-9]*; do
  [ -e "$place/name" ] || continue
  name=$(cat "$place/name")
  if grep -q '^not ok chaos_hunt' "$place/log" 2>/dev/null; then
    echo "ok chaos check finds: $name"
    note "$(cat "$place/line")" "$(cat "$place/key")" 0
    grep '^# found after' "$place/log"
  else
    echo "not ok chaos check finds: $name"
    [ ! -e "$place/log" ] || grep '^#' "$place/log"
    status=1
  fi
done
[ $status -ne 0 ] || rm -rf "$folder"
exit $status
