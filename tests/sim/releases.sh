#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Prints releases.c: the scripts of other releases, as the simulator's devices may use them.
# tests/sim/releases.sh KEPT LATER: two folders of scripts.
set -eu
whole() { # FOLDER SCRIPT: with what it includes
  awk -v folder="$1" '
    match($0, /^ *-- include /) {
      file = folder "/" substr($0, RLENGTH + 1)
      while ((getline line <file) > 0) print line
      close(file)
      next
    }
    { print }' "$1/$2.lua"
}
digest() {
  sha1sum | cut -d ' ' -f 1
}
text() {
  echo "static const char $1[] = {"
  od -An -v -tx1 | sed 's/ \(..\)/0x\1,/g'
  echo '};'
}
entry() {
  echo "{{$1, sizeof $1}, \"$2\"},"
}
echo '#include "world.h"'
for script in acquire release; do
  whole "$1" $script | text kept_$script
done
whole "$2" lock | text later_lock
echo 'const struct redis_script releases[OTHER_RELEASES][2] = {'
printf '[RELEASE_KEPT - 1] = {'
for script in acquire release; do
  entry kept_$script "$(whole "$1" $script | digest)"
done
printf '},\n[RELEASE_LATER - 1] = {'
entry later_lock "$(whole "$2" lock | digest)" # acquires
entry later_lock "$(whole "$2" lock | digest)" # and releases
echo '}};'
