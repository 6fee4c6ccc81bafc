#!/bin/sh
# tests/tools/need.sh with an apt-get that only pretends: it waits for a lock, and for nothing else.
# shellcheck source=tests/support/verdicts.sh disable=SC2154
set -u
. tests/support/verdicts.sh

# pretend NAME LINE...: a program of that name, before all others
pretend() {
  name=$1
  shift
  printf '%s\n' '#!/bin/sh' "$@" >"$folder/$name"
  chmod +x "$folder/$name"
}
pretend dpkg-query 'exit 1'
pretend id 'echo 0'
pretend sleep 'echo slept >>"$FOLDER/sleeps"'
export FOLDER="$folder"

# needs NAME STATUS SLEEPS: tests/tools/need.sh has to end so, after so many pauses
needs() {
  rm -f "$folder/sleeps" "$folder/calls"
  env PATH="$folder:$PATH" sh tests/tools/need.sh package >"$folder/log" 2>&1
  status=$?
  sleeps=$(cat "$folder/sleeps" 2>/dev/null | wc -l)
  echo "exit status $status after $sleeps pauses" >>"$folder/log"
  verdict "need: $1" [ "$status $sleeps" = "$2 $3" ]
}

# Each of the two calls there are, update and install, fails twice before it works.
pretend apt-get 'echo "$*" >>"$FOLDER/calls"' \
  'case $(wc -l <"$FOLDER/calls") in 3 | 6) exit 0 ;; esac' \
  'echo "E: Could not get lock /var/lib/apt/lists/lock. It is held by process 7 (apt-get)" >&2' 'exit 100'
needs "it waits for another package manager" 0 4
pretend apt-get 'echo "E: Could not get lock /var/lib/apt/lists/lock" >&2' 'exit 100'
needs "it does not wait for ever" 1 299
pretend apt-get 'echo "E: Unable to locate package package" >&2' 'exit 100'
needs "it does not wait for a package that is not there" 1 0
verdict "need: it says why" grep -q 'Unable to locate' "$folder/log"
exit $failed
