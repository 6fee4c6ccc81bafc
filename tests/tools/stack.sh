#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
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

named=$(sh tests/tools/named.sh)
roots=$(cat lock/fairlock*.h lock/driver.h lock/engine.h resp/resp.h |
  sed -n 's/^[a-z][^(]*[ *]\(\(fairlock\|resp\)_[a-z_]*\)(.*/\1/p' | sed "$named" | tr '\n' ' ')
# What a program may use: the option, and the files that only those link who do.
options="following=topology.c log=events.c credentials=credentials.c sharing=share.c,downgrade.c"
# column NAME: the depths in a program that uses this of the options alone
column() {
  without=
  for option in $options; do
    files=$(echo "${option#*=}" | tr ',' ' ')
    for file in $files; do [ -e "lock/$file" ]; done
    case $1 in "${option%=*}" | all) ;; *) without="$without $files" ;; esac
  done
  awk -f tests/tools/stack.awk -v whole=1 -v roots="$roots" -v without="$without" lock/calls.txt "$out/objects.taken" \
    "$out"/*.ci >"$out/column"
  sed "s/^/$1 /; s/_[0-9]*_[0-9]*_[0-9]*\(_rc[0-9]*\)*\(_port_single\)* / /" "$out/column"
}
columns="plain $(for option in $options; do printf '%s ' "${option%=*}"; done)all"
for name in $columns; do column "$name"; done >"$out/depths"

table() {
  awk -v kind="$1" -v columns="$columns" '
    $2 == kind { depth[$3, $1] = $4 >= 0 ? $4 : "-"; names[$3] = 1 }
    END {
      count = split(columns, column, " ")
      for (name in names) {
        printf "%-44s", name
        for (i = 1; i <= count; i++) {
          if (!((name, column[i]) in depth)) depth[name, column[i]] = "-"
          printf " %11s", depth[name, column[i]]
        }
        print ""
      }
    }' "$out/depths" >"$out/table"
}
printf '%-44s' "stack, worst of each function, bytes"
# shellcheck disable=SC2086
printf ' %11s' $columns
echo
table call
sort -k2,2nr -k1,1 "$out/table"
echo "what the library does not bring, and how deep the stack is where it is called"
table outside
sort "$out/table"
"$nm" -u "$out"/*.o | awk '$1 == "U" && $2 ~ /^__/ { sub(/_[0-9]+$/, "", $2); print $2 }' | sort -u |
  awk '{ names = names " " $1 } END { if (NR > 0) print "besides, of the compiler, anywhere:" names }'
