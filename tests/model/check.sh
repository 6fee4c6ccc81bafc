#!/bin/sh
# Checks the models exhaustively, and that they find each mutant; and that what they say they stand
# for is still there. check.sh [NAME]: only runs whose name contains NAME. BUILD: where to work (build).
set -u
only=${1:-}
folder=${BUILD:-build}/tests/model
models=$(pwd)/tests/model
model=$models/fairlock.pml
mkdir -p "$folder"
failed=0

# explore DEFINITION...: all states within the definitions; what pan says of them is left in
# $folder/$name.log
explore() {
  log=$name.log
  (
    cd "$folder" && rm -rf "$name" && mkdir "$name" && cd "$name" &&
      spin -a "$@" "$model" >/dev/null &&
      gcc "$optimise" -w -DSAFETY -DNOREDUCE -DMEMLIM=2500 -o pan pan.c &&
      ./pan -m100000 -w24
  ) >"$folder/$log" 2>&1
}

figures() {
  sed -n 's/^ *\([0-9]*\) states, stored.*/# \1 states/p; s/^ *\([0-9.]*\).total actual memory usage/# \1 MB/p' \
    "$folder/$log" | paste -s -d ' '
}

# wanted NAME: it was asked for
wanted() {
  name=$1
  case $name in *"$only"*) return 0 ;; esac
  return 1
}

# holds NAME DEFINITION...: the claims hold in all states
holds() {
  wanted "$1" || return 0
  shift
  optimise=-O1
  explore "$@"
  if grep -q 'errors: 0$' "$folder/$log" && ! grep -q -e 'not completed' -e 'depth too small' "$folder/$log"; then
    echo "ok model_$name"
    figures
  else
    echo "not ok model_$name"
    grep -e '^pan' -e '[Ee]rror' "$folder/$log" | sed 's/^/# /'
    echo "# what happened: cd $folder/$name && spin -t -p -g -k ${model##*/}.trail $* $model"
    failed=1
  fi
}

# finds BUG TEXT DEFINITION...: the mutant leads to a state in which the claim that TEXT is of fails
finds() {
  wanted "bug_$1" || return 0
  bug=$1
  claim=$2
  shift 2
  optimise=-O0
  explore "-DBUG_$bug" "$@"
  if grep -q "^pan.*assertion violated.*$claim" "$folder/$log"; then
    echo "ok model_$name"
  else
    echo "not ok model_$name: not found"
    grep -e '^pan' -e 'rror' "$folder/$log" | sed 's/^/# /'
    failed=1
  fi
}

# Each note "[file: text]" of the models names a text that stands in that file.
notes() {
  wanted notes || return 0
  bad=0
  sed 's/\[lock\//\nlock\//g' "$models"/*.pml | sed -n 's/^\(lock\/[^ ]*: .*\)\][^]]*$/\1/p' >"$folder/notes"
  while IFS= read -r note; do
    grep -qF -- "${note#*: }" "${note%%: *}" && continue
    echo "# not there any more: $note"
    bad=1
  done <"$folder/notes"
  if [ $bad = 0 ] && [ "$(wc -l <"$folder/notes")" -gt 30 ]; then echo "ok model_notes"; else
    echo "not ok model_notes"
    failed=1
  fi
}

again="-DCANCEL=1 -DEXTRA=1 -DLATE=1"
slow="-DSLOW=1 -DLOSE_HOLD=1 -DLATE=1"

notes
# shellcheck disable=SC2086 # lists of definitions
{
  holds faults -DCRASH=1 -DLOSE_REPLY=1 -DLATE=1
  holds again $again
  holds slow $slow
  holds hurry -DHURRY=1 -DEXTRA=1 -DLATE=1

  one_holder='state\[.\]!='
  finds TOKEN "$one_holder" $again
  finds GHOST_LEAVE "$one_holder" $again
  finds FORGET_LEAVE "$one_holder" $again
  finds LEAVE_UNDER_WAY "$one_holder" $again
  finds MARGIN "$one_holder" $slow
  finds BELIEVE_LATE "$one_holder" $slow
  finds NO_POLL 'quiet<=2' -DCRASH=1
  finds NO_SKIP ' 0 ' -DCRASH=1
  finds GHOST_ACQUIRE queue $again
  finds RELEASE_SETTLES queue $again
  finds VOID queue $again
  finds NO_WAKE ' 0 '
  finds SUBSCRIBE_LATE ' 0 '
  finds NO_CONFIRM claim $again
  finds OWED claim $again
  finds PHASE "r_token>newest" $again

  model=$models/failover.pml
  holds failover -DACK=1
  holds failover_split -DACK=1 -DSPLIT=1
  finds NO_ACK 'believes\[' -DACK=0
  finds RENEWAL_UNSYNCED 'believes\[' -DACK=1
  finds NOT_ENOUGH 'newest' -DACK=1
  finds TOKEN_FORGOTTEN 'newest' -DACK=1
}
exit $failed
