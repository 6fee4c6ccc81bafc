#!/bin/sh
# Prints what the library costs: tests/tools/size.sh CC [FLAG...] Flash (text) by part, RAM by
# public struct, and the worst stack of each public function along the call graph, without what is
# called through pointers (the port, the caller's own functions), each beside its aim.
set -eu
cc=$1
shift
case $cc in *-gcc) size=${cc%gcc}size nm=${cc%gcc}nm ;; *) size=size nm=nm ;; esac
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
flags="-std=c11 -Os -ffunction-sections -fdata-sections -Iresp -Iport -Iport/single -Ilock"
for source in resp/*.c lock/*.c; do
  # shellcheck disable=SC2086
  "$cc" $flags "$@" -fcallgraph-info=su -c -o "$out/$(basename "$source" .c).o" "$source"
done

text() {
  (cd "$out" && for part in "$@"; do echo "$part.o"; done | xargs "$size" | awk 'NR > 1 {sum += $1} END {print sum + 0}')
}

# object_size FILE NAME: what the object of this name in FILE.c takes
object_size() {
  echo $((0x$("$nm" -S "$out/$1.o" | awk -v name="$2" '$4 == name {print $2}')))
}

data() {
  (cd "$out" && "$size" ./*.o | awk 'NR > 1 {sum += $2 + $3} END {print sum + 0}')
}

# row NAME BYTES [AIM]
row() {
  if [ $# -eq 3 ]; then
    printf '%-44s %6d   aim %5d   %+d\n' "$1" "$2" "$3" $(($2 - $3))
  else
    printf '%-44s %6d\n' "$1" "$2"
  fi
}

codec=$(text decode encode)
engine=$(text engine handle request reply)
scripts=$(text scripts)
client=$(text client)
inspect=$(text inspect)
words=$(text status)
inspect_text=$(($(object_size scripts inspect) + $(object_size scripts nothing) + \
  $(object_size scripts fairlock_inspect_script)))
echo "flash, bytes of text ($cc $*)"
row "codec" "$codec" 1536
row "engine" "$engine"
row "scripts acquire and release" $((scripts - inspect_text))
row "blocking and polling functions" "$client"
row "whole client without inspection and words" $((codec + engine + scripts - inspect_text + client)) 8192
row "inspection, if it is used" $((inspect + inspect_text))
row "statuses in words, if they are used" "$words"
row "data and bss of the library" "$(data)" 0

cat >"$out/structs.c" <<'END'
#include "fairlock.h"
char size_of_fairlock_client[sizeof(struct fairlock_client)];
char size_of_fairlock[sizeof(struct fairlock)];
char size_of_fairlock_engine[sizeof(struct fairlock_engine)];
char size_of_resp_decoder[sizeof(struct resp_decoder)];
char size_of_resp_writer[sizeof(struct resp_writer)];
char receive_16[FAIRLOCK_RECEIVE_SIZE(16, 32)];
END
# shellcheck disable=SC2086
"$cc" $flags "$@" -fno-common -c -o "$out/structs.o" "$out/structs.c"
client_ram=$(object_size structs size_of_fairlock_client)
lock_ram=$(object_size structs size_of_fairlock)
receive_ram=$(object_size structs receive_16)
echo "RAM, bytes"
row "struct fairlock_client" "$client_ram"
row "struct fairlock, each lock" "$lock_ram" 96
row "receive buffer, names of up to 16 bytes" "$receive_ram"
row "client, one lock, that and 256 to send" $((client_ram + lock_ram + receive_ram + 256)) 1024

echo "stack, worst of each public function, bytes"
cat "$out"/*.ci | awk -v FS='"' '
  /^node:/ {
    name = $2
    label = $4
    if (match(label, /[0-9]+ bytes/)) own[name] = substr(label, RSTART, RLENGTH - 6) + 0
    next
  }
  /^edge:/ { if (!(($2, $4) in seen)) { seen[$2, $4] = 1; callees[$2] = callees[$2] "\n" $4 } }
  function deepest(name,  list, n, i, most, depth, next_name) {
    if (name in worst) return worst[name]
    if (name in busy) { recursion = recursion " " name; return 0 }
    busy[name] = 1
    n = split(callees[name], list, "\n")
    most = 0
    for (i = 2; i <= n; i++) {
      depth = deepest(list[i])
      if (depth > most) { most = depth; next_name = list[i] }
    }
    delete busy[name]
    via[name] = next_name
    return worst[name] = own[name] + most
  }
  END {
    for (name in own) if (name ~ /^fairlock_/ || name ~ /^resp_/) print deepest(name), name
    if (recursion != "") print "recursion:" recursion
  }' | sort -rn >"$out/stack"
grep '^recursion' "$out/stack" && exit 1
grep -v fairlock_engine "$out/stack" | head -5 | while read -r bytes name; do row "$name" "$bytes" 400; done
