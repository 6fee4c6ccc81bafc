#!/bin/sh
# Prints the worst stack of each public function, in bytes: tests/tools/stack.sh CC [FLAG...] A bound
# by the frames that the compiler has laid out and all paths of the call graph, those through pointers
# included (lock/calls.txt), for programs that use of the library's options none (plain), one, or all.
# Of what the library calls and does not bring, the frame comes on top of the depth at which it is
# called. Fails when something has no bound, or is not listed: see stack.awk. KEEP=FOLDER: leaves the
# graphs there.
set -eu
cc=$1
shift
out=${KEEP:-$(mktemp -d)}
[ -n "${KEEP:-}" ] || trap 'rm -rf "$out"' EXIT
case $cc in *-gcc) nm=${cc%gcc}nm objdump=${cc%gcc}objdump ;; *) nm=nm objdump=objdump ;; esac
for source in resp/*.c lock/*.c; do
  "$cc" -std=c11 -Os -ffunction-sections -fdata-sections -fno-common -Iresp -Iport -Iport/single -Ilock "$@" \
    -fcallgraph-info=su -c -o "$out/$(basename "$source" .c).o" "$source"
done

# Functions whose address is taken: what refers to them, and is no call. Processors whose relocations
# do not tell one from the other have none here.
for object in "$out"/*.o; do
  "$objdump" -r "$object" | awk -v file="$(basename "$object" .o).c" '
    /^RELOCATION RECORDS/ { passed = /\[\.(debug|eh_frame|ARM)/ }
    !passed && ($2 == "R_ARM_ABS32" || $2 == "R_RISCV_32" || $2 == "R_RISCV_HI20") {
      sub(/^\.text\./, "", $3)
      sub(/[+-]0x.*/, "", $3)
      print file, $3
    }'
done | sort -u >"$out/objects.taken"

roots=$(cat lock/fairlock.h lock/engine.h resp/resp.h |
  sed -n 's/^[a-z][^(]*[ *]\(\(fairlock\|resp\)_[a-z_]*\)(.*/\1/p' | tr '\n' ' ')
# column NAME WITHOUT: the depths, of a program without these files
column() {
  awk -f tests/tools/stack.awk -v whole=1 -v roots="$roots" -v without="$2" lock/calls.txt "$out/objects.taken" \
    "$out"/*.ci >"$out/column"
  sed "s/^/$1 /" "$out/column"
}
{
  column plain 'topology.c events.c credentials.c'
  column following 'events.c credentials.c'
  column log 'topology.c credentials.c'
  column credentials 'topology.c events.c'
  column all ''
} >"$out/depths"

table() {
  awk -v kind="$1" '
    $2 == kind { depth[$3, $1] = $4 >= 0 ? $4 : "-"; names[$3] = 1 }
    END {
      columns = split("plain following log credentials all", column, " ")
      for (name in names) {
        printf "%-44s", name
        for (i = 1; i <= columns; i++) {
          if (!((name, column[i]) in depth)) depth[name, column[i]] = "-"
          printf " %11s", depth[name, column[i]]
        }
        print ""
      }
    }' "$out/depths" >"$out/table"
}
printf '%-44s %11s %11s %11s %11s %11s\n' "stack, worst of each function, bytes" plain following log credentials all
table call
sort -k6,6nr -k1,1 "$out/table"
echo "what the library does not bring, and how deep the stack is where it is called"
table outside
sort "$out/table"
"$nm" -u "$out"/*.o | awk '$1 == "U" && $2 ~ /^__/ { sub(/_[0-9]+$/, "", $2); print $2 }' | sort -u |
  awk '{ names = names " " $1 } END { if (NR > 0) print "besides, of the compiler, anywhere:" names }'
