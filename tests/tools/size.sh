#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Prints what the library costs: tests/tools/size.sh CC [FLAG...] Flash (text) by part, and of linked
# programs; RAM by public struct, each beside its aim; the worst stack of each public function
# (stack.sh). Then, in a clone, what has changed since the last commit, symbol by symbol.
set -eu
cc=$1
shift
case $cc in *-gcc) size=${cc%gcc}size nm=${cc%gcc}nm ;; *) size=size nm=nm ;; esac
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
flags="-std=c11 -Os -ffunction-sections -fdata-sections -fno-common -Iresp -Iport -Iport/single -Ilock"

# compile FOLDER FLAG...: the library of the present folder
compile() {
  folder=$1
  shift
  mkdir -p "$folder"
  for source in resp/*.c lock/*.c; do
    # shellcheck disable=SC2086
    "$cc" $flags "$@" -c -o "$folder/$(basename "$source" .c).o" "$source"
  done
}

compile "$out" "$@"

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
engine=$(text engine handle turns schedule pipeline request reply)
scripts=$(text scripts texts)
client=$(text client)
inspect=$(text inspect)
words=$(text status)
inspect_text=$(($(object_size scripts inspect) + $(object_size scripts nothing) + \
  $(object_size scripts fairlock_inspect_script)))
break_text=$(($(object_size scripts break_before) + $(object_size scripts break_after) + \
  $(object_size scripts fairlock_break_script)))
# What a program has of shared.lua and downgrade.lua has common.lua and hand_over.lua, too, as every program.
shared_text=$(($(object_size scripts share) + $(object_size scripts shared) + \
  $(object_size scripts fairlock_shared_script)))
downgrade_text=$(($(object_size scripts downgrade) + $(object_size scripts fairlock_downgrade_script)))
echo "flash, bytes of text ($cc $*)"
row "codec" "$codec" 1536
row "engine" "$engine"
row "scripts acquire and release" $((scripts - inspect_text - break_text - shared_text - downgrade_text))
row "blocking and polling functions" "$client"
row "inspection, if it is used" $((inspect + inspect_text))
row "breaking, if it is used" $(($(text break) + break_text))
row "servers that move, if they are followed" "$(text topology)" 1228
row "locks that are kept, if they are" "$(text keep)"
row "locks that are shared, if they are" $(($(text share) + shared_text))
row "from alone to shared, if that is used" $(($(text downgrade) + downgrade_text))
row "several locks at once, if that is used" "$(text several)"
row "a log, if it is kept" "$(text events)"
row "statuses in words, if they are used" "$words"
row "data and bss of the library" "$(data)" 0

# What a linked program has of the library: all that the linker keeps for these functions.
cat >"$out/program.c" <<'END'
#include "fairlock_follow.h"
#include "fairlock_keep.h"
#include "fairlock_share.h"
uint32_t port_clock_ms(void) { return 0; }
void port_idle(uint32_t ms) { (void)ms; }
/* what the compiler cannot know */
const struct fairlock_config *volatile config;
const struct port_transport *volatile transport;
struct fairlock_topology *volatile topology;
struct fairlock_keeping *volatile keeper;
const char *volatile name;
volatile uint32_t number;
void _start(void);
void _start(void)
{
  static struct fairlock_client client;
  static struct fairlock door;
  static struct fairlock_shared shared;
  (void)client;
  (void)door;
  (void)shared;
#ifdef USES
  number += (unsigned)fairlock_client_init(&client, config, transport);
  number += (unsigned)fairlock_init(&door, &client, name);
  for (;;) number += (unsigned)(USES);
#endif
}
END

sources=$(echo resp/*.c lock/*.c)

# linked USES FLAG...: the size of a program with these calls, and of $sources what it needs
linked() {
  uses=$1
  shift
  # shellcheck disable=SC2086
  "$cc" $flags "$@" ${uses:+"-DUSES=$uses"} -nostartfiles -static -Wl,--gc-sections -Wl,-e,_start -Wl,--allow-multiple-definition \
    -o "$out/linked" "$out/program.c" $sources 2>"$out/errors" || { cat "$out/errors" >&2; exit 1; }
  "$size" "$out/linked" | awk 'NR > 1 {print $1}'
}

# bytes_of NAME...: what these functions take in the last linked program
bytes_of() {
  "$nm" -S --radix=d "$out/linked" | awk -v names="$*" '
    BEGIN { n = split(names, name, " "); for (i = 1; i <= n; i++) asked[name[i]] }
    $4 in asked { sum += $2 }
    END { print sum + 0 }'
}

# program NAME AIM AIM_LTO USES FLAG...: less what the program has without the library
program() {
  name=$1 aim=$2 aim_lto=$3 uses=$4
  shift 4
  row "$name" $(($(linked "$uses" "$@") - $(linked '' "$@"))) ${aim:+"$aim"}
  row "$name, -flto" $(($(linked "$uses" "$@" -flto) - $(linked '' "$@" -flto))) ${aim_lto:+"$aim_lto"}
}

case $cc in
*-elf-gcc | *-eabi-gcc) # elsewhere all of a C library for an operating system would count
loop='fairlock_start_acquire(&door, number, number) + fairlock_start_release(&door) + fairlock_result(&door)'
loop="$loop + (int)fairlock_poll(&client, number) + (int)fairlock_remaining_ms(&door)"
echo "linked programs, bytes of text: the library, and what of the C library it needs"
program "a superloop: start, poll, release" 13250 '' "$loop" "$@"
linked "$loop" "$@" >/dev/null
row "of that, memcpy, memset and strlen" "$(bytes_of memcpy memset strlen)"
row "of that, the measuring program" "$(bytes_of _start)"
program "try and release alone" '' '' 'fairlock_try_acquire(&door, number) + fairlock_release(&door)' "$@"
sources="$(echo resp/*.c lock/*.c | tr ' ' '\n' | grep -v -e /scripts.c -e /texts.c) lock/scripts/hashes.c"
program "the superloop, without the scripts' texts" 11000 '' "$loop" "$@"
sources=$(echo resp/*.c lock/*.c)
program "the superloop, following servers" '' '' "fairlock_follow(&client, topology) + $loop" "$@"
program "the superloop, keeping its lock" '' '' "fairlock_use_keeping(&client, keeper) + $loop" "$@"
share='fairlock_init_shared_bytes(&shared, &client, name, number, number)'
program "the superloop, sharing its lock" '' '' "$share + $(echo "$loop" | sed 's/&door/\&shared.handle/g')" "$@"
;;
esac

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

sh tests/tools/stack.sh "$cc" "$@"

git rev-parse -q --verify HEAD >"$out/commit" 2>/dev/null || exit 0
mkdir "$out/before"
git archive HEAD resp lock port | tar -x -C "$out/before"
# shellcheck disable=SC2094
(cd "$out/before" && compile "$out/before/objects" "$@")
symbols() {
  for object in "$1"/*.o; do
    "$nm" -S "$object" | awk -v file="$(basename "$object" .o)" 'NF == 4 {print file "." $4, $2}'
  done | sed 's/\.[a-z]*\.[0-9]* / /; s/\.[0-9]* / /; s/_[0-9]*_[0-9]*_[0-9]*\(_rc[0-9]*\)*\(_port_single\)* / /'
}
rm -f "$out/structs.o"
symbols "$out/before/objects" >"$out/was"
symbols "$out" >"$out/is"
echo "changed since the last commit, bytes"
awk '
  function hex(text,  i, n) {
    text = tolower(text)
    for (i = 1; i <= length(text); i++) n = 16 * n + index("0123456789abcdef", substr(text, i, 1)) - 1
    return n + 0
  }
  NR == FNR {was[$1] += hex($2); next}
  {is[$1] += hex($2)}
  END {
    for (name in is) if (is[name] != was[name]) change(name)
    for (name in was) if (!(name in is)) change(name)
    printf "%+6d in all\n", sum
  }
  function change(name) {
    printf "%+6d %s\n", is[name] - was[name], name
    sum += is[name] - was[name]
  }' "$out/was" "$out/is" | sort -n
