# Mutants: copies of the lock with one rule taken out, for the scripts that see whether a suite
# finds them. They read this file with `.`; it is not a program.
# shellcheck shell=sh

# mutants FILE: the lines of a list of mutants: a name, | a file in lock/, | a sed command that
# makes it.
mutants() {
  grep -v -e '^#' -e '^$' "$1"
}

# mutate PLACE FILE COMMAND: copies the lock to PLACE/lock, mutated, and compiles to PLACE what is
# changed by that. A linker that gets PLACE/*.o before the library takes the rest from there. False
# when the command changes nothing.
# shellcheck disable=SC2086
mutate() {
  cp -R lock "$1/lock"
  sed "$3" "lock/$2" >"$1/lock/$2"
  if cmp -s "lock/$2" "$1/lock/$2"; then
    echo "# $2 is not changed by it any more"
    return 1
  fi
  case $2 in
  *.lua)
    sh "$1/lock/scripts/generate.sh" >"$1/lock/scripts.c"
    files=scripts
    ;;
  *.h) files='engine handle reply request inspect' ;;
  *) files=${2%.c} ;;
  esac
  for file in $files; do
    ${CC:-cc} -std=c11 ${CFLAGS:-} -O1 -Iresp "-I$1/lock" -c "$1/lock/$file.c" -o "$1/$file.o" || return 1
  done
}
