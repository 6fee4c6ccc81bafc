#!/bin/sh
# Plants each bug of planted.txt in a copy of the lock, and sees whether the simulator finds it within a minute of its own time.
# ONLY=text: those whose name contains it; the last one stays in planted/sim beside the simulator's objects. Needs the
# simulator's archive and the library: make builds them first.
set -u
. tests/plant.sh
build=${BUILD:-build}
parts=$build/tests/sim
folder=$parts/planted
limit=60
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

bugs "$(dirname "$0")/planted.txt" >"$folder/list"
while IFS='|' read -r name file command; do
  case $name in *"${ONLY:-}"*) ;; *) continue ;; esac
  if build_with "$file" "$command" && "$folder/sim" hunt $limit >"$folder/found"; then
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
