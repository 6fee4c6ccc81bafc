#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# boards/nuttx, as NuttX's apps would use it: its Kconfig, its Makefile and its CMakeLists.txt, with
# stand-ins for what those of apps do (tests/portable/nuttx). The example then runs here, as a program
# of the host's.
# shellcheck source=tests/support/lib.sh disable=SC2154,SC1091,SC2317
set -u
. tests/support/lib.sh
unset MAKEFLAGS MFLAGS MAKELEVEL MAKEOVERRIDES CMAKE_GENERATOR CMAKE_TOOLCHAIN_FILE CFLAGS LDFLAGS VPATH
here=$PWD
stand_in=$PWD/tests/portable/nuttx

# configured OPTION...: NuttX's .config in $dir/apps with these options and what follows from them, and
# its nuttx/config.h. Nothing may be said against the Kconfig.
configured() {
  printf 'CONFIG_%s\n' "$@" >"$dir/apps/.config"
  cp "$stand_in/Kconfig" "$dir/apps/top"
  (cd "$dir/apps" && APPS=$dir/apps/netutils/fairlock KCONFIG_CONFIG=.config expect 0 kconfig-conf --olddefconfig top) || exit 1
  [ ! -s "$dir/err" ] || fail "Kconfig: $(cat "$dir/err")"
  mkdir -p "$dir/apps/nuttx/nuttx"
  sed -n -e 's/^\(CONFIG_[A-Z0-9_]*\)=y$/#define \1 1/p' -e 's/^\(CONFIG_[A-Z0-9_]*\)=\([^y].*\)$/#define \1 \2/p' \
    "$dir/apps/.config" >"$dir/apps/nuttx/nuttx/config.h"
}

# apps: the folders of apps, into which a copy of this repository's library is linked, as a user does it
apps() {
  mkdir -p "$dir/apps/netutils" "$dir/apps/out" "$dir/fairlock/boards/cmake"
  cp -r "$here/lock" "$here/port" "$here/resp" "$dir/fairlock"
  cp -r "$here/boards/nuttx" "$dir/fairlock/boards"
  cp "$here/boards/cmake/sources.cmake" "$dir/fairlock/boards/cmake"
  cp "$stand_in/Make.defs" "$stand_in/Application.mk" "$dir/apps"
  ln -s ../../fairlock/boards/nuttx "$dir/apps/netutils/fairlock"
}

# made TARGET...: by the Makefile, as apps calls it
made() {
  for target in "$@"; do
    expect 0 make -C "$dir/apps/netutils/fairlock" APPDIR="$dir/apps" OUT="$dir/apps/out" "$target"
  done
}

# made_by_cmake: the same by CMake
made_by_cmake() {
  sed -n 's/^\(CONFIG_[A-Z0-9_]*\)=\(.*\)$/set(\1 \2)/p' "$dir/apps/.config" >"$dir/apps/config.cmake"
  printf '%s\n' 'cmake_minimum_required(VERSION 3.16)' 'project(nuttx C)' 'find_package(Threads REQUIRED)' \
    'set(CMAKE_C_STANDARD 11)' "set(OUT $dir/apps/out)" \
    "include($dir/apps/config.cmake)" "include($stand_in/nuttx.cmake)" 'add_subdirectory(netutils/fairlock)' >"$dir/apps/CMakeLists.txt"
  rm -rf "$dir/apps/out/nuttx"
  cp -r "$dir/apps/nuttx" "$dir/apps/out/nuttx"
  expect 0 cmake -S "$dir/apps" -B "$dir/apps/out/cmake" -Werror=dev
  ! grep -q Warning "$dir/err" || fail "a warning: $(cat "$dir/err")"
  expect 0 cmake --build "$dir/apps/out/cmake"
}

# compiles SOURCE...: all of the library and of the port of POSIX was compiled, once, these too, and
# nothing else
compiles() {
  (cd "$dir/fairlock" && ls "$PWD"/resp/*.c "$PWD"/lock/*.c "$PWD"/port/posix/*.c) >"$dir/all"
  for source in "$@"; do echo "$dir/fairlock/$source"; done >>"$dir/all"
  sort "$dir/all" >"$dir/wanted"
  sort "$dir/apps/out/sources" | diff "$dir/wanted" - >"$dir/different" || fail "other sources: $(cat "$dir/different")"
}

# without_texts: the same list, as if it had the texts in place of the hashes
without_texts() {
  grep -q '/lock/scripts/hashes\.c$' "$dir/apps/out/sources" || fail "no hashes: $(cat "$dir/apps/out/sources")"
  sed -i -e "s|/lock/scripts/hashes\.c\$|/lock/scripts.c|" "$dir/apps/out/sources"
  echo "$dir/fairlock/lock/texts.c" >>"$dir/apps/out/sources"
}

# has_headers FOLDER: those that make installs
has_headers() {
  diff -r -x port_openssl.h "$build/include/fairlock" "$1" >"$dir/different" || fail "other headers: $(cat "$dir/different")"
}

# contends PROGRAM: with the command, for a lock that both have to give up in turn
contends() {
  "$1" 127.0.0.1 "$port" a 5 50 >"$dir/demo" 2>&1 &
  demo=$!
  ends_with_us $demo
  for _ in 1 2 3 4 5; do
    "$fairlock" run a -- sh -c 'echo "$FAIRLOCK_TOKEN" >>"$0"; sleep 0.05' "$dir/tokens" || fail "the command: $?"
  done
  ends 0 $demo
  grep -qx 'connected' "$dir/demo" || fail "not connected: $(cat "$dir/demo")"
  grep -qx 'done: 5 of 5 rounds' "$dir/demo" || fail "not five rounds: $(cat "$dir/demo")"
  sed -n 's/^held, fencing token \([0-9]*\),.*/\1/p' "$dir/demo" >>"$dir/tokens"
  [ "$(sort -u "$dir/tokens" | wc -l)" -eq 10 ] || fail "not ten tokens: $(cat "$dir/tokens")"
  [ "$(redis exists a)" = 0 ] || fail "it is still held"
}

# With what Kconfig has for the server and the lock.
holds_by_default() {
  expect 0 "$1"
  printed "held, fencing token $(redis hget 'fairlock:{barrier}' token)," # of the last of ten
  [ "$(grep -c '^released: done' "$dir/out")" -eq 10 ] || fail "not ten releases: $(cat "$dir/out")"
}

example() {
  configured NETUTILS_FAIRLOCK=y EXAMPLES_FAIRLOCK=y 'EXAMPLES_FAIRLOCK_HOST="127.0.0.1"' \
    EXAMPLES_FAIRLOCK_PORT="$port" 'EXAMPLES_FAIRLOCK_NAME="barrier"' "$@"
}

test_make() {
  apps
  example EXAMPLES_FAIRLOCK_STACKSIZE=5000
  made context all
  compiles
  has_headers "$dir/fairlock/boards/nuttx/include/fairlock"
  [ "$(cat "$dir/apps/out/registered")" = 'fairlock_demo 100 5000 y' ] || fail "registered: $(cat "$dir/apps/out/registered")"
  contends "$dir/apps/out/fairlock_demo"
  holds_by_default "$dir/apps/out/fairlock_demo"
  made distclean
  [ ! -e "$dir/fairlock/boards/nuttx/include" ] || fail "its headers are left"
}

test_cmake() {
  apps
  example EXAMPLES_FAIRLOCK_STACKSIZE=5000
  made_by_cmake
  compiles
  has_headers "$dir/apps/out/cmake/netutils/fairlock/include/fairlock"
  [ "$(cat "$dir/apps/out/registered")" = 'fairlock_demo 100 5000 y' ] || fail "registered: $(cat "$dir/apps/out/registered")"
  contends "$dir/apps/out/fairlock_demo"
  holds_by_default "$dir/apps/out/fairlock_demo"
}

# The program waits until somebody has loaded the scripts.
needs_the_scripts() {
  without_texts
  compiles
  redis script flush >"$dir/set"
  stdbuf -oL "$dir/apps/out/fairlock_demo" >"$dir/demo" 2>&1 &
  demo=$!
  ends_with_us $demo
  eventually grep -q 'run fairlock load' "$dir/demo"
  ! grep -q '^held' "$dir/demo" || fail "it has scripts: $(cat "$dir/demo")"
  expect 0 "$fairlock" load
  ends 0 $demo
}

test_without_texts() {
  apps
  example NETUTILS_FAIRLOCK_HASHES_ONLY=y
  made context all
  needs_the_scripts
}

test_without_texts_by_cmake() {
  apps
  example NETUTILS_FAIRLOCK_HASHES_ONLY=y
  made_by_cmake
  needs_the_scripts
}

# keeps_a_rule: the test of the port runs, to its own peer; all of its rules are tested elsewhere
keeps_a_rule() {
  "$build/conformance-peer" >"$dir/peer" &
  comes_up $! "$dir/peer" 'port [0-9]' || fail "no peer"
  expect 0 "$dir/apps/out/fairlock_conformance" 127.0.0.1 "$(sed 's/port //' "$dir/peer")" bytes
  printed 'ok bytes arrive as they were sent'
  expect 1 "$dir/apps/out/fairlock_conformance"
}

test_conformance() {
  apps
  example EXAMPLES_FAIRLOCK_CONFORMANCE=y
  made context all
  compiles port/conformance/conformance.c
  [ "$(wc -l <"$dir/apps/out/registered")" -eq 2 ] || fail "registered: $(cat "$dir/apps/out/registered")"
  keeps_a_rule
}

test_conformance_by_cmake() {
  apps
  configured NETUTILS_FAIRLOCK=y EXAMPLES_FAIRLOCK_CONFORMANCE=y
  made_by_cmake
  [ ! -e "$dir/apps/out/fairlock_demo" ] || fail "there is an example, too"
  keeps_a_rule
}

# has LINE...: in .config
has() {
  for line in "$@"; do grep -qxF -e "$line" "$dir/apps/.config" || fail "no $line in $(cat "$dir/apps/.config")"; done
}

# What it needs of NuttX is chosen with it, and without TCP or threads it is not offered.
test_configuration() {
  apps
  configured NETUTILS_FAIRLOCK=y
  has CONFIG_NETUTILS_FAIRLOCK=y CONFIG_LIBC_NETDB=y CONFIG_LIBC_GAISTRERROR=y CONFIG_NET_SOCKOPTS=y CONFIG_NET_SOLINGER=y \
    '# CONFIG_EXAMPLES_FAIRLOCK is not set'
  configured NETUTILS_FAIRLOCK=y NET_USRSOCK_TCP=y '# CONFIG_NET_TCP is not set'
  sed -i '/NET_TCP/d' "$dir/apps/.config"
  for without in DISABLE_PTHREAD=y NET_TCP=n NET_TCP_WRITE_BUFFERS=n; do
    configured NETUTILS_FAIRLOCK=y "$without"
    ! grep -q FAIRLOCK "$dir/apps/.config" || fail "it is offered with $without"
  done
  configured NETUTILS_FAIRLOCK=y NET_TCP=n NET_USRSOCK_TCP=y
  has CONFIG_NETUTILS_FAIRLOCK=y
  configured NET_TCP=y
  has '# CONFIG_NETUTILS_FAIRLOCK is not set'
}

# Each option that is read, or that the page names, is one of Kconfig's, and each of Kconfig's is read.
test_options() {
  nuttx=$here/boards/nuttx
  sed -n 's/^\(menu\)\{0,1\}config /CONFIG_/p' "$nuttx/Kconfig" | sort -u >"$dir/there"
  cat "$nuttx"/*.c "$nuttx/Makefile" "$nuttx/Make.defs" "$nuttx/CMakeLists.txt" | grep -o 'CONFIG_[A-Z]*_FAIRLOCK[A-Z_]*' | sort -u >"$dir/read"
  diff "$dir/there" "$dir/read" >"$dir/different" || fail "in Kconfig, or read: $(cat "$dir/different")"
  grep -o 'CONFIG_[A-Z]*_FAIRLOCK[A-Z_]*[A-Z]' "$nuttx/README.md" | sort -u >"$dir/named"
  [ -s "$dir/named" ] || fail "the page names none"
  [ -z "$(comm -13 "$dir/there" "$dir/named")" ] || fail "not in Kconfig: $(comm -13 "$dir/there" "$dir/named")"
}

[ $# -eq 0 ] || run_tests "$@"
run_tests make cmake without_texts without_texts_by_cmake conformance conformance_by_cmake configuration options
