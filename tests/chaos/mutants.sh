#!/bin/sh
# Whether the checks of chaos find mutants: makes each one of mutants.txt, and lets the clients of a
# real server use it; what they write down has to give it away. As it does within seconds when it is
# found at all, a minute is a generous bound. Each seed is another try. Needs the objects of chaos:
# its rules build them first. ONLY=text: those whose name contains it.
set -u
. tests/mutants/mutate.sh
build=${BUILD:-build}
folder=$build/tests/chaos/mutants
tab=$(printf '\t')
status=0
running=
rm -rf "$folder"
mkdir -p "$folder"
# shellcheck disable=SC2086
trap '[ -z "$running" ] || kill $running 2>/dev/null' EXIT
trap 'exit 1' HUP INT TERM

# build_with PLACE FILE COMMAND: leaves chaos with the mutation in it in PLACE/chaos.
# shellcheck disable=SC2086
build_with() {
  mutate "$1" "$2" "$3" || return 1
  ${CC:-cc} ${CFLAGS:-} ${LDFLAGS:-} -o "$1/chaos" "$build"/tests/chaos/chaos.o "$build"/tests/chaos/history.o "$build"/tests/server/harness.o \
    "$build"/tests/check.o "$build"/tests/check_host.o "$1"/*.o "$build"/tests/support/support.a "$build"/liblock.a -pthread
}

# Runs until the first complaint, or gives up. What it says is in PLACE/log.
hunt() {
  for seed in 1 2; do
    HUNT=1 TIME=60 SEED=$seed "$1/chaos" all_get_on >"$1/log" 2>&1
    if grep -q '^not ok chaos_hunt' "$1/log"; then return; fi
  done
}

# All at a time: they sleep most of it.
count=0
mutants "$(dirname "$0")/mutants.txt" | sed "s/|/$tab/;s/|/$tab/" >"$folder/list"
while IFS=$tab read -r name file command; do
  case $name in *"${ONLY:-}"*) ;; *) continue ;; esac
  count=$((count + 1))
  mkdir "$folder/$count"
  echo "$name" >"$folder/$count/name"
  if build_with "$folder/$count" "$file" "$command"; then
    hunt "$folder/$count" &
    running="$running $!"
  fi
done <"$folder/list"
wait
running=

for place in "$folder"/[0-9]*; do
  name=$(cat "$place/name")
  if grep -q '^not ok chaos_hunt' "$place/log" 2>/dev/null; then
    echo "ok chaos check finds: $name"
    grep '^# found after' "$place/log"
  else
    echo "not ok chaos check finds: $name"
    [ ! -e "$place/log" ] || grep '^#' "$place/log"
    status=1
  fi
done
exit $status
