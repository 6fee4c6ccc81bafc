#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Prints how deep the stack of an image can get, by the call graphs of all that is linked into it,
# in bytes: boards/common/bound.sh BUILD BOARD:IMAGE prints the worst of the library's public
# functions, without what they call of the program and its port, and the bound of all: the program
# from its start, and on it the interrupt that there is, of Cortex-M the tick's. 0: with TLS there
# is no bound, as the calls through pointers of BearSSL and Mbed TLS are not listed. BUILD check:
# whether boards/common/calls.txt names what is there, in the objects of the board that has all
# images.
set -eu
build=$1
row=$2
lists="lock/calls.txt boards/common/calls.txt"
if [ "$row" = check ]; then
  folder=$build/firmware/mps2-an385
  [ -d "$folder" ] || exit 0 # only another board is built
  # shellcheck disable=SC2046,SC2086
  exec awk -f tests/tools/stack.awk -v check=1 $lists $(find "$folder/single" "$folder/lwip" -name '*.ci')
fi
folder=$build/firmware/${row%:*}
image=$folder/${row#*:}
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT

# What is linked: the program's objects, and the members of the two archives.
{
  sed -n 's/^LOAD \(.*\)\.o$/\1.ci/p' "$image.map"
  sed -n 's/^.*\/\(single\|lwip\)\.a(\([a-z0-9_]*\)\.o)$/\1 \2/p' "$image.map" | sort -u | while read -r archive name; do
    find "$folder/$archive" -name "$name.ci" ! -path '*/tests/*' \( ! -path '*/examples/*' -o -path '*/examples/modem/*' \)
  done
} >"$place/graphs"
case $row in
  riscv*) nm=riscv64-unknown-elf-nm roots=board_start frame=0 ;;
  # what the processor saves, aligned to 8 bytes
  *) nm=arm-none-eabi-nm roots="board_reset cortex_m.c:board_tick" frame=36 ;;
esac
# Static functions of several files have the same name, and of some files little is linked: the map tells
# which section, that of one function, is from where. The address of what is left out is 0.
awk '
  /^Linker script and memory map/ { begun = 1 }
  begun && $1 ~ /^\.text\./ { name = $1; $1 = "" }
  begun && name != "" && NF >= 3 {
    sub(/^\.text\.(unlikely\.)?/, "", name)
    sub(/\.o\)?$/, ".c", $NF)
    sub(/^.*[\/(]/, "", $NF)
    if ($(NF - 2) !~ /^0x0+$/) print $NF ":" name
    name = ""
  }' "$image.map" >"$place/sections"
$nm "$image.elf" | awk -v sections="$place/sections" '
  BEGIN { while ((getline line <sections) > 0) { print line; sub(/^.*:/, "", line); placed[line] = 1 } }
  $2 ~ /[TW]/ || ($2 ~ /[tw]/ && !($3 in placed)) { print $3 }' >"$place/functions.linked"
named=$(sh tests/tools/named.sh)
calls=$(cat lock/fairlock*.h lock/driver.h lock/engine.h | sed -n 's/^[a-z][^(]*[ *]\(fairlock_[a-z_]*\)(.*/\1/p' |
  sed "$named" |
  grep -xF -f "$place/functions.linked" | tr '\n' ' ')
# of the library, the files that are linked
# shellcheck disable=SC2046
awk -f tests/tools/stack.awk -v roots="$calls" lock/calls.txt "$place/functions.linked" \
  $(grep "^$folder/single/\(lock\|resp\)/" "$place/graphs") >"$place/calls"
stack=$(awk '$1 == "call" && $3 > most { most = $3 } END { print most + 0 }' "$place/calls")
case $row in *_pinned | *_ca | *_mbedtls)
  echo "$stack 0"
  exit
  ;;
esac
# shellcheck disable=SC2046,SC2086
awk -f tests/tools/stack.awk -v image=1 -v roots="$roots" $lists "$place/functions.linked" "$image.map" \
  $(cat "$place/graphs") >"$place/image"
echo "$stack $(awk -v sum="$frame" '{ sum += $NF } END { print sum }' "$place/image")"
