# Mutants: copies of the tree with one rule of the lock taken out, for the scripts that see whether
# a suite finds them. They read this file with `.`, from the top folder; it is not a program.
# shellcheck shell=sh
build=${BUILD:-build}
case $build in
/*)
  echo "not ok mutants: BUILD has to be a folder of the tree, which a copy of the tree has too"
  exit 1
  ;;
esac
unset MAKEFLAGS MFLAGS MAKELEVEL # those of the make that started this

# planted: the faults that are planted for the proofs, as mutants.
planted() {
  sed -n '/^[^#]/s/^/proof: /p' tests/proof/faults.txt
}

# mutants: the lines of mutants.txt, and those planted, whose name or file contains $ONLY.
mutants() {
  {
    grep -v -e '^#' -e '^$' tests/mutants/mutants.txt
    planted
  } | awk -F '|' -v only="${ONLY:-}" 'index($1, only) || index($2, only)'
}

# suite_of NAME: what has to find the mutant, by the word that its name begins with; "hunt" unless
# there is one.
suite_of() {
  case $1 in
  'unit: '*) echo tests/unit/test_engine ;;
  'chaos: '*) echo tests/chaos/chaos ;;
  'fuzz_'*': '*) echo "replay/${1%%: *}" ;;
  'zephyr: '*) echo tests/portable/zephyr/zephyr ;;
  *)
    for folder in unit sim server; do
      if [ -e "tests/$folder/test_${1%%: *}.c" ]; then echo "tests/$folder/test_${1%%: *}"; fi
    done | grep . || echo hunt
    ;;
  esac
}

# mutate PLACE FILE COMMAND: makes PLACE a copy of the tree and of its build, with the mutation in
# the sources; build_in makes what follows from that, and nothing else. False when the command
# changes nothing.
mutate() {
  rm -rf "$1"
  mkdir -p "$1/$build/tests/portable" "$1/$build/replay"
  for part in Makefile boards; do ln -s "$PWD/$part" "$1/$part"; done
  for part in lock resp port; do cp -pR "$part" "$1"; done
  mkdir "$1/tests"
  for part in tests/*; do ln -s "$PWD/$part" "$1/$part"; done
  rm "$1/tests/unit" # two of these include what may have the mutation in it
  cp -pR tests/unit "$1/tests"
  for part in lock resp port boards examples liblock.a redis-server \
    tests/check.o tests/check_host.o tests/support tests/unit tests/sim tests/server \
    tests/fuzz tests/chaos tests/failover tests/portable/zephyr \
    replay/lock replay/resp replay/boards replay/tests replay/liblock.a; do
    if [ -e "$build/$part" ]; then cp -pR "$build/$part" "$1/$build/$part"; fi
  done
  if [ -e "$build/replay/corpus" ]; then ln -s "$PWD/$build/replay/corpus" "$1/$build/replay"; fi
  plant "$@"
}

# plant PLACE FILE COMMAND: the mutation alone, in the sources at PLACE. False when the command
# changes nothing.
plant() {
  case $2 in
  resp/* | port/*) file=$2 ;;
  *) file=lock/$2 ;;
  esac
  sed "$3" "$file" >"$1/$file"
  if cmp -s "$file" "$1/$file"; then
    echo "# $file is not changed by it any more"
    return 1
  fi
  case $file in
  *.lua) sh "$1/lock/scripts/generate.sh" >"$1/lock/scripts.c" ;;
  esac
}

# build_in PLACE TARGET...
build_in() (
  copy=$1
  shift
  CFLAGS=${CFLAGS:--O1} WERROR=0 make -C "$copy" -s --no-print-directory BUILD="$build" "$@" \
    >"$copy/made" 2>&1 && return
  sed 's/^/# /' "$copy/made"
  return 1
)
