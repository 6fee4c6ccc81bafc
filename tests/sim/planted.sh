#!/bin/sh
# Plants each bug of planted.txt in a copy of the lock, and sees whether the simulator finds it. ONLY=text: those whose
# name contains it. Needs the simulator's objects: `make planted` builds them first.
set -u
build=${BUILD:-build}
folder=$build/tests/sim/planted
limit=60
status=0
rm -rf "$folder"
mkdir -p "$folder"

# What the copy was compiled to, and the rest of the lock and the codec as it is.
objects() {
  for object in "$build"/lock/*.o "$build"/resp/*.o; do
    name=$(basename "$object")
    if [ "$name" = client.o ]; then continue; fi
    if [ -e "$folder/$name" ]; then echo "$folder/$name"; else echo "$object"; fi
  done
}

# plant FILE COMMAND: leaves the simulator with the bug in it in $folder/sim
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
    ${CC:-cc} -std=c11 -O1 -Iresp "-I$folder/lock" -c "$folder/lock/$file.c" -o "$folder/$file.o" || return 1
  done
  # shellcheck disable=SC2046
  ${CC:-cc} -o "$folder/sim" "$build"/tests/sim/*.o $(objects) -llua5.1 -lm
}

grep -v -e '^#' -e '^$' "$(dirname "$0")/planted.txt" >"$folder/list"
while IFS='|' read -r name file command; do
  case $name in *"${ONLY:-}"*) ;; *) continue ;; esac
  if plant "$file" "$command" && found=$("$folder/sim" hunt $limit); then
    echo "ok planted: $name"
    echo "$found" | sed 's/^# seed/#   seed/'
  else
    echo "not ok planted: $name"
    status=1
  fi
done <"$folder/list"
exit $status
