#!/bin/sh
# Plants each bug of planted.txt in a copy of the lock, and sees whether the simulator finds it within a minute of its own time.
# ONLY=text: those whose name contains it; the last one stays in planted/sim beside the simulator's objects. Needs the
# simulator's archive and the library: make builds them first.
set -u
build=${BUILD:-build}
parts=$build/tests/sim
folder=$parts/planted
limit=60
status=0 found=0
rm -rf "$folder"
mkdir -p "$folder"

# plant FILE COMMAND: leaves the simulator with the bug in it in $folder/sim. What is compiled here comes before the library.
# shellcheck disable=SC2086
plant() {
  rm -rf "$folder/lock" "$folder"/*.o
  cp -R lock "$folder/lock"
  sed "$2" "lock/$1" >"$folder/lock/$1"
  if cmp -s "lock/$1" "$folder/lock/$1"; then
    echo "# $1 has no place for it any more"
    return 1
  fi
  case $1 in
  *.lua)
    sh "$folder/lock/scripts/generate.sh" >"$folder/lock/scripts.c"
    files=scripts
    ;;
  *.h) files='engine holder reply request inspect' ;;
  *) files=${1%.c} ;;
  esac
  for file in $files; do
    ${CC:-cc} -std=c11 ${CFLAGS:-} -O1 -Iresp "-I$folder/lock" -c "$folder/lock/$file.c" -o "$folder/$file.o" || return 1
  done
  ${CC:-cc} ${CFLAGS:-} ${LDFLAGS:-} -o "$folder/sim" "$folder"/*.o "$parts/sim.a" "$build/liblock.a" -llua5.1 -lm
}

grep -v -e '^#' -e '^$' "$(dirname "$0")/planted.txt" >"$folder/list"
while IFS='|' read -r name file command; do
  case $name in *"${ONLY:-}"*) ;; *) continue ;; esac
  if plant "$file" "$command" && "$folder/sim" hunt $limit >"$folder/found"; then
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
