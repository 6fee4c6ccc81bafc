#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Other systems: library, command and boards/service compiled for each, with warnings as errors, and the
# objects of the core for Windows. Programs for Linux on other processors run, too: qemu-user
# translates them, and they contend with this machine's for one lock on a real server. Of the others
# only that they compile and link is shown.
# shellcheck source=tests/support/lib.sh disable=SC2154,SC1091,SC2317
set -u
. tests/support/lib.sh
zig=$build/zig/ziglang/zig
ZIG_GLOBAL_CACHE_DIR=$top/zig
ZIG_LOCAL_CACHE_DIR=$top/zig
export ZIG_GLOBAL_CACHE_DIR ZIG_LOCAL_CACHE_DIR
includes='-Iresp -Iport -Iport/posix -Iport/openssl -Ilock'
warnings='-Wall -Wextra -Wpedantic -Wconversion -Wshadow -Wmissing-prototypes -Werror'

# compile TARGET: $dir/TARGET, the command, and with it the client for other languages
compile() {
  # shellcheck disable=SC2086
  expect 0 "$zig" cc -target "$1" -std=c11 -Os $warnings $includes -o "$dir/$1" \
    resp/*.c lock/*.c port/posix/*.c boards/fairlock/*.c boards/fairlock/tls/none.c boards/service/*.c
}

# is FILE WORDS: what file(1) says of the program
is() {
  file -b "$1" >"$dir/out"
  printed "$2"
}

test_macos() {
  for processor in aarch64 x86_64; do
    compile "$processor-macos"
    is "$dir/$processor-macos" 'Mach-O 64-bit'
  done
}

test_freebsd() {
  compile x86_64-freebsd
  is "$dir/x86_64-freebsd" 'for FreeBSD'
}

test_netbsd() {
  compile x86_64-netbsd
  is "$dir/x86_64-netbsd" 'for NetBSD'
}

test_openbsd() {
  compile x86_64-openbsd
  is "$dir/x86_64-openbsd" 'for OpenBSD'
}

# Objects: to link a program, zig would first compile all of Windows' C library, for minutes.
test_windows_core() {
  for source in resp/*.c lock/*.c; do
    # shellcheck disable=SC2086
    expect 0 "$zig" cc -target x86_64-windows-gnu -std=c11 -Os $warnings -Iresp -Iport -Iport/single -Ilock \
      -c -o "$dir/object.o" "$source"
    is "$dir/object.o" 'COFF object file'
  done
}

# contends TARGET EMULATOR WORDS: a program for TARGET, of which file(1) says WORDS, takes turns with
# this machine's
contends() {
  compile "$1"
  is "$dir/$1" "$3"
  other=$dir/other
  printf '%s\n' '#!/bin/sh' "exec $2 $dir/$1 \"\$@\"" >"$other"
  chmod +x "$other"
  expect 0 "$other" run turns "$fairlock" status turns
  printed 'turns: held by'
  expect 0 "$fairlock" run turns "$other" status --json turns
  printed '"turns"'

  # Its lease is renewed: this machine's waits in line, for longer than that lease.
  "$other" run --lease 6 turns sh -c "until [ -e '$dir/end' ]; do sleep 0.05; done" &
  holder=$!
  eventually held turns
  expect 1 "$fairlock" run -n turns true
  "$fairlock" run -w 60 turns true &
  waiter=$!
  eventually waits 1 turns
  sleep 8
  waits 1 turns || fail "the waiter did not wait for the whole hold"
  touch "$dir/end"
  ends 0 $holder
  ends 0 $waiter

  # In the order in which they queue, this machine's and the other in turn, behind one that holds.
  "$fairlock" run turns sh -c "until [ -e '$dir/go' ]; do sleep 0.05; done" &
  pids=$!
  eventually held turns
  for place in 1 2 3 4 5 6; do
    command=$fairlock
    [ $((place % 2)) -eq 0 ] || command=$other
    # shellcheck disable=SC2016
    "$command" run -w 60 turns sh -c 'echo "begins $1" >>"$2"; sleep 0.1; echo "ends $1" >>"$2"' - $place "$dir/turns" &
    pids="$pids $!"
    eventually waits $place turns
  done
  touch "$dir/go"
  for pid in $pids; do ends 0 "$pid"; done
  for place in 1 2 3 4 5 6; do printf 'begins %d\nends %d\n' $place $place; done >"$dir/wanted"
  cmp -s "$dir/wanted" "$dir/turns" || fail "they held in this order: $(tr '\n' ',' <"$dir/turns")"
}

test_arm() {
  contends arm-linux-musleabihf qemu-arm 'ELF 32-bit LSB'
}

test_riscv64() {
  contends riscv64-linux-musl qemu-riscv64 'UCB RISC-V'
}

# big-endian, 32 bits
test_mips() {
  contends mips-linux-musleabihf qemu-mips 'ELF 32-bit MSB'
}

[ $# -eq 0 ] || run_tests "$@"
run_tests macos freebsd netbsd openbsd windows_core arm riscv64 mips
