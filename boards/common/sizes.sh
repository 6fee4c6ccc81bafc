#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Prints what the superloop costs on each board: boards/common/sizes.sh BUILD. The images must have
# been built. Bytes of flash by part, and in all; of RAM, the stack's 2 KB included; of stack: the
# worst of the library's public functions, the bound of the whole image (boards/common/bound.sh), and
# the deepest that was measured on the running board. With TLS, the thousands of instructions of a
# handshake. Fails, when all is printed, if a board has measured more than its bound.
set -eu
build=$1
rows=
for run in "$build"/firmware/*/run; do
  folder=${run%/run}
  for image in "$folder"/superloop*.elf; do
    image=${image%.elf}
    rows="$rows ${folder##*/}:${image##*/}"
  done
done
measured=$(mktemp)
trap 'rm -f "$measured" "$measured".*' EXIT
# shellcheck disable=SC2086
"$build/tests/boards/measure_stack" $rows >"$measured"
sh boards/common/bound.sh "$build" check
echo "# image codec engine scripts client port lwip tls other flash ram stack bound measured handshake" >"$measured.table"
for row in $rows; do
  folder=$build/firmware/${row%:*}
  flash=$(awk -f boards/common/sizes.awk -v row="$row" "$folder/${row#*:}.map")
  stack=$(sh boards/common/bound.sh "$build" "$row")
  echo "$flash $stack $(sed -n "s/^$row //p" "$measured")" >>"$measured.table"
done
awk '{for (i = 1; i <= NF; i++) if (i == 1) printf "%-28s", ($1 == "#" ? $1 " " $2 : $1)
  else if ($1 != "#" || i > 2) printf " %8s", $i; print ""}' "$measured.table"
awk -f boards/common/bound.awk "$measured.table"
