#!/bin/sh
# Makes each mutant of mutants.txt from a copy of the lock. The simulator has to find it within two
# minutes of its own time, and nothing in the lock as it is, for which it gets 20 s. Those with "unit:" it does not find surely in that time; the engine's
# unit suite has to fail with them. ONLY=text: those whose name contains it; the last one stays in
# build/tests/mutants/one. Needs the simulator's archive and the library: make builds them first.
set -u
. tests/mutants/mutate.sh
build=${BUILD:-build}
parts=$build/tests/sim
folder=$build/tests/mutants/one
limit=120
status=0 found=0
rm -rf "$folder"
mkdir -p "$folder"

# build_with FILE COMMAND: leaves the simulator with the mutation in it in $folder/sim.
# shellcheck disable=SC2086
build_with() {
  rm -rf "$folder/lock" "$folder"/*.o
  mutate "$folder" "$1" "$2" || return 1
  ${CC:-cc} ${CFLAGS:-} ${LDFLAGS:-} -o "$folder/sim" "$folder"/*.o "$parts/sim.a" "$build/liblock.a" -llua5.1 -lm
}

# fails_with FILE COMMAND: the engine's unit suite does, with the mutation in it.
# shellcheck disable=SC2086
fails_with() {
  rm -rf "$folder/lock" "$folder"/*.o
  mutate "$folder" "$1" "$2" || return 1
  ${CC:-cc} ${CFLAGS:-} ${LDFLAGS:-} -o "$folder/unit" "$build/tests/unit/test_engine.o" "$build/tests/check.o" \
    "$build/tests/check_host.o" "$folder"/*.o "$build/liblock.a" -pthread || return 1
  ! timeout 60 "$folder/unit" >"$folder/unit.log" 2>&1
}

# finds NAME FILE COMMAND
finds() {
  case $1 in
  unit:*) fails_with "$2" "$3" ;;
  *) build_with "$2" "$3" && "$folder/sim" hunt $limit >"$folder/found" ;;
  esac
}

# What the hunt finds in the lock as it is, it would find in every mutant.
# shellcheck disable=SC2086
finds_nothing() {
  ${CC:-cc} ${CFLAGS:-} ${LDFLAGS:-} -o "$folder/sim" "$parts/sim.a" "$build/liblock.a" -llua5.1 -lm || return 1
  "$folder/sim" hunt 20 >"$folder/found"
  [ $? -eq 1 ]
}

if finds_nothing; then echo "ok the hunt finds nothing without a mutation"; else
  echo "not ok the hunt finds nothing without a mutation"
  status=1
fi
sed 's/^#/#   /' "$folder/found"
rm -f "$folder/found"

mutants "$(dirname "$0")/mutants.txt" >"$folder/list"
while IFS='|' read -r name file command; do
  case $name in *"${ONLY:-}"*) ;; *) continue ;; esac
  if finds "$name" "$file" "$command"; then
    echo "ok mutant: $name"
    found=$((found + 1))
  else
    echo "not ok mutant: $name"
    status=1
  fi
  echo "# $name"
  if [ -e "$folder/found" ]; then sed 's/^#/#   /' "$folder/found"; fi
  rm -f "$folder/found"
done <"$folder/list"
echo "# $found mutants found"
exit $status
