# SPDX-License-Identifier: Apache-2.0
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

# mutants: the lines of mutants.txt, and those planted, whose name or file contains $ONLY; or those
# that the file $ENTRIES has (found.sh).
mutants() {
  if [ -n "${ENTRIES:-}" ]; then
    cat "$ENTRIES"
    return
  fi
  {
    grep -v -e '^#' -e '^$' tests/mutants/mutants.txt
    planted
  } | awk -F '|' -v only="${ONLY:-}" 'index($1, only) || index($2, only)'
}

# listed: false, and says which, when a list is missing or empty: nothing would be asked for, and pass
listed() {
  for entries in tests/mutants/mutants.txt tests/proof/faults.txt; do
    if ! grep -q '^[^#]' "$entries" 2>/dev/null; then
      echo "not ok no mutants: $entries is missing or has no entry"
      return 1
    fi
  done
}

# path_of FILE: from the top folder
path_of() {
  case $1 in
  resp/* | port/*) echo "$1" ;;
  *) echo "lock/$1" ;;
  esac
}

# suite_of NAME: what has to find the mutant, by the word that its name begins with; "hunt" unless
# there is one.
suite_of() {
  case $1 in
  'unit: '*) echo tests/unit/test_engine ;;
  'one_task: '*) echo tests/unit/test_one_task ;;
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

# What was found, one "KEY SEED" a line, in $build/mutants/noted, so that what is interrupted goes on
# where it was. The key is of the entry, of the program that found it, without the mutation, and
# of $TOOLS_SUM, which found.sh sets: when one of them changes, it is asked for again. SEED: of the world in which the hunt found it, or 0.

# key_of LINE FILE...
key_of() {
  printf '%s\n' "$1" "${TOOLS_SUM:-}" | cat - "$2" | cksum | tr ' ' -
}

# seed_noted KEY: false if there is none
seed_noted() {
  sed -n "s/^$1 //p" "$build/mutants/noted" 2>/dev/null | tail -n 1 | grep .
}

# note LINE KEY SEED
note() {
  mkdir -p "$build/mutants"
  echo "$2 $3" >>"$build/mutants/noted"
  if [ -n "${FOUND:-}" ]; then printf '%s %s\n' "$3" "$1" >>"$FOUND"; fi
}

# known LINE KEY: it was noted. Whoever asks for some, by ONLY, or for one kind, wants to see them run.
known() {
  if [ -n "${ONLY:-}" ] || [ -z "${ENTRIES:-}" ]; then return 1; fi
  seed=$(seed_noted "$2") && note "$1" "$2" "$seed"
}

# seed_of LINE: of the world in which the hunt found it last, says the record, or the first one: of
# those in which locks are shared, if the entry is about that
seed_of() {
  name=${1%%|*} seed=1
  case $1 in *sharer*) seed=1000000000000001 ;; esac
  LC_ALL=C NAME=$name awk -v seed=$seed 'NF > 4 && !/^#/ {
    name = $0
    for (i = 0; i < 4; i++) sub(/^[^ ]* /, "", name)
    if (name == ENVIRON["NAME"] && $4 > 0) seed = $4
  } END { print seed }' tests/mutants/found.txt 2>/dev/null || echo $seed
}

# finds_nothing LOG SECONDS COMMAND...: runs it until its first failure. True when there was none.
finds_nothing() {
  log=$1 seconds=$2
  shift 2
  : >"$log"
  timeout -k 10 "$seconds" "$@" >"$log" 2>&1 </dev/null &
  running=$!
  while kill -0 $running 2>/dev/null; do
    if grep -aq '^not ok ' "$log"; then kill $running 2>/dev/null; fi
    sleep 0.1
  done
  wait $running && ! grep -aq '^not ok ' "$log"
}

# parts_of SUITE: which of the build have to be copied, so that make has nothing else to compile
parts_of() {
  case $1 in
  hunt | tests/sim/*) echo tests/sim tests/server ;;
  tests/unit/test_one_task | tests/unit/test_single*) echo tests/unit one_task ;;
  tests/unit/*) echo tests/unit tests/sim ;;
  replay/*) echo replay/lock replay/resp replay/boards replay/tests replay/liblock.a ;;
  tests/portable/*) echo tests/portable/zephyr ;;
  *)
    echo boards examples tests/unit tests/sim tests/server tests/fuzz tests/chaos tests/failover \
      tests/portable/zephyr replay/lock replay/resp replay/boards replay/tests replay/liblock.a
    ;;
  esac
}

# mutate PLACE FILE COMMAND [SUITE]: makes PLACE a copy of the tree and of its build, or of what
# SUITE needs of that, with the mutation in the sources; build_in makes what follows from that, and
# nothing else. False when the command changes nothing.
mutate() {
  copy_tree "$1" "${4:-}"
  plant "$1" "$2" "$3"
}

# copy_tree PLACE [SUITE]
copy_tree() {
  rm -rf "$1"
  mkdir -p "$1/$build/tests/portable" "$1/$build/replay"
  for part in Makefile boards; do ln -s "$PWD/$part" "$1/$part"; done
  for part in lock resp port; do cp -pR "$part" "$1"; done
  mkdir "$1/tests"
  for part in tests/*; do ln -s "$PWD/$part" "$1/$part"; done
  rm "$1/tests/unit" # two of these include what may have the mutation in it
  cp -pR tests/unit "$1/tests"
  mkdir -p "$1/$build/tests"
  # shellcheck disable=SC2046
  for part in lock resp port liblock.a redis-server tests/check.o tests/check_host.o tests/support $(parts_of "$2"); do
    if [ -e "$build/$part" ]; then cp -pR "$build/$part" "$1/$build/$part"; fi
  done
  if [ -e "$build/replay/corpus" ]; then ln -s "$PWD/$build/replay/corpus" "$1/$build/replay"; fi
}

# plant PLACE FILE COMMAND: the mutation alone, in the sources at PLACE. False when the command
# changes nothing.
plant() {
  file=$(path_of "$2")
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
