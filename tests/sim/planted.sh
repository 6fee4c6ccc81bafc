#!/bin/sh
# Plants each bug of planted.txt in a copy of the lock, and sees whether the simulator finds it within two minutes of its own time.
# Those with "unit:" the simulator does not find surely in that time; the engine's unit suite has to fail with them.
# ONLY=text: those whose name contains it; the last one stays in planted/sim beside the simulator's objects. Needs the
# simulator's archive and the library: make builds them first.
set -u
. tests/plant.sh
build=${BUILD:-build}
parts=$build/tests/sim
folder=$parts/planted
limit=120
status=0 found=0
rm -rf "$folder"
mkdir -p "$folder"

# build_with FILE COMMAND: leaves the simulator with the bug in it in $folder/sim.
# shellcheck disable=SC2086
build_with() {
  rm -rf "$folder/lock" "$folder"/*.o
  plant "$folder" "$1" "$2" || return 1
  ${CC:-cc} ${CFLAGS:-} ${LDFLAGS:-} -o "$folder/sim" "$folder"/*.o "$parts/sim.a" "$build/liblock.a" -llua5.1 -lm
}

# fails_with FILE COMMAND: the engine's unit suite does, with the bug in it.
# shellcheck disable=SC2086
fails_with() {
  rm -rf "$folder/lock" "$folder"/*.o
  plant "$folder" "$1" "$2" || return 1
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

bugs "$(dirname "$0")/planted.txt" >"$folder/list"
while IFS='|' read -r name file command; do
  case $name in *"${ONLY:-}"*) ;; *) continue ;; esac
  if finds "$name" "$file" "$command"; then
    echo "ok planted: $name"
    found=$((found + 1))
  else
    echo "not ok planted: $name"
    status=1
  fi
  echo "# $name"
  if [ -e "$folder/found" ]; then sed 's/^#/#   /' "$folder/found"; fi
  rm -f "$folder/found"
done <"$folder/list"
echo "# $found planted bugs found"
exit $status
