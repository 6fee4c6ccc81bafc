#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Whether the files of lock/ call each other as lock/layers.txt says, by the symbols of the library
# that is built: what calls upward, what is not listed, and what is listed and gone.
set -u
build=${BUILD:-build}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
failed=0

verdict() {
  if [ "$2" -eq 0 ]; then echo "ok layers: $1"; else
    echo "not ok layers: $1"
    failed=1
  fi
}

# calls FOLDER: "file callee" for each call from one of its objects to another
calls() {
  for object in "$1"/*.o; do
    nm -g "$object" | awk -v file="$(basename "$object" .o)" '{ print file, $(NF - 1), $NF }'
  done | awk '
    $2 == "U" { uses[++n] = $1 " " $3 }
    $2 != "U" { owner[$3] = $1 }
    END {
      for (i = 1; i <= n; i++) {
        split(uses[i], use, " ")
        if ((use[2] in owner) && owner[use[2]] != use[1]) print use[1], owner[use[2]]
      }
    }' | sort -u
}

# holds CALLS LIST: tells what is wrong
holds() {
  awk '
    FNR == NR { calls[$1, $2] = 1; next }
    /^#/ || NF == 0 { next }
    $1 == "together:" { for (i = 2; i <= NF; i++) group[$i] = FNR; next }
    { file = $1; sub(/:$/, "", file); line[file] = FNR
      for (i = 2; i <= NF; i++) listed[file, $i] = 1 }
    END {
      for (call in calls) {
        split(call, part, SUBSEP)
        if (!(call in listed)) print part[1] " calls " part[2] ", which is not listed"
      }
      for (call in listed) {
        split(call, part, SUBSEP)
        if (!(call in calls)) print part[1] " does not call " part[2] " any more"
        if (line[part[2]] >= line[part[1]] && !(group[part[1]] > 0 && group[part[1]] == group[part[2]]))
          print part[1] " calls upward: " part[2]
      }
    }' "$1" "$2" >"$folder/said"
  sort "$folder/said" | sed 's/^/# /'
  [ ! -s "$folder/said" ]
}

calls "$build/lock" >"$folder/calls"
[ "$(wc -l <"$folder/calls")" -gt 30 ]
verdict "the objects have calls" $?
holds "$folder/calls" lock/layers.txt
verdict "each file calls what is listed, and nobody above it" $?
for source in lock/*.c; do basename "$source" .c; done | sort >"$folder/files"
sed -n 's/^\([a-z]*\):.*/\1/p' lock/layers.txt | grep -v together | sort | cmp -s - "$folder/files"
verdict "each file is listed" $?

# And it sees what it is for.
(cat "$folder/calls" && echo schedule handle) >"$folder/upward"
holds "$folder/upward" lock/layers.txt >"$folder/log"
[ $? -eq 1 ] && grep -q 'schedule calls handle, which is not listed' "$folder/log"
verdict "a call that is not listed fails" $?
sed 's/^schedule:.*/schedule: handle/' lock/layers.txt >"$folder/list"
holds "$folder/upward" "$folder/list" >"$folder/log"
[ $? -eq 1 ] && grep -q 'schedule calls upward: handle' "$folder/log"
verdict "a leaf that calls upward fails, listed or not" $?
grep -v '^pipeline ' "$folder/calls" >"$folder/fewer"
holds "$folder/fewer" lock/layers.txt >"$folder/log"
[ $? -eq 1 ] && grep -q 'pipeline does not call schedule any more' "$folder/log"
verdict "a call that is gone fails" $?
exit $failed
