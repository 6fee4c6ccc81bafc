#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Zephyr's sample on Zephyr itself, a tree of yours: ZEPHYR_BASE names it, and your environment says
# which toolchain (without a word of it, Debian's for ARM), and, outside of a west workspace, by
# ZEPHYR_MODULES which modules: hal/cmsis and crypto/mbedtls. Builds the sample for the board
# mps2_an385, and lets it contend in QEMU with a process on this machine. Nothing is fetched.
# shellcheck source=tests/support/lib.sh disable=SC2154,SC1091,SC2317
set -u
if [ -z "${ZEPHYR_BASE:-}" ]; then
  echo "skip zephyr sample: ZEPHYR_BASE is not set"
  exit 0
fi
. tests/support/lib.sh
unset MAKEFLAGS MFLAGS MAKELEVEL MAKEOVERRIDES CMAKE_GENERATOR CMAKE_TOOLCHAIN_FILE CFLAGS LDFLAGS
module=$PWD/boards/cmake
if [ -z "${ZEPHYR_TOOLCHAIN_VARIANT:-}${ZEPHYR_SDK_INSTALL_DIR:-}" ]; then
  export ZEPHYR_TOOLCHAIN_VARIANT=gnuarmemb GNUARMEMB_TOOLCHAIN_PATH=/usr
fi

# The board's name: mps2/an385 since 3.7.
board() {
  if [ -e "$ZEPHYR_BASE/boards/arm/mps2_an385/mps2_an385.dts" ]; then echo mps2_an385; else echo mps2/an385; fi
}

# build_sample FOLDER OPTION...: where QEMU's network has this machine at 10.0.2.2
build_sample() {
  folder=$1
  shift
  cmake -GNinja -S "$module/zephyr/sample" -B "$folder" -DBOARD="$(board)" "-DCONFIG_FAIRLOCK_SERVER_PORT=$port" \
    '-DCONFIG_FAIRLOCK_SERVER_HOST="10.0.2.2"' '-DCONFIG_NET_CONFIG_MY_IPV4_ADDR="10.0.2.15"' \
    '-DCONFIG_NET_CONFIG_MY_IPV4_GW="10.0.2.2"' "$@" >"$dir/out" 2>"$dir/err" || return 1
  cmake --build "$folder" >>"$dir/out" 2>>"$dir/err"
}

# start_board ELF: its console is $dir/console
start_board() {
  qemu-system-arm -machine mps2-an385 -nographic -vga none -monitor none -serial stdio -nic user,model=lan9118 \
    -icount shift=6,align=off,sleep=on -kernel "$1" <"/dev/null" >"$dir/console" 2>&1 &
  ends_with_us $!
}

# on_console WORDS COUNT: the board has printed them so often
on_console() {
  [ "$(grep -c -e "$1" "$dir/console")" -eq "$2" ]
}

# The board waits in line behind a process, is handed the lock, and has it ten times.
test_sample() {
  build_sample "$dir/build" || fail "it does not build: $(cat "$dir/out" "$dir/err")"
  ! grep -q -e "$module.*warning:" -e "port/zephyr.*warning:" "$dir/out" "$dir/err" || fail "$(cat "$dir/out" "$dir/err")"
  # shellcheck disable=SC2016
  run door:7 -- sh -c 'until [ -e "$0" ]; do sleep 0.05; done' "$dir/enough" &
  holder=$!
  eventually held door:7
  before=$(redis hget 'fairlock:{door:7}' token)
  start_board "$dir/build/zephyr/zephyr.elf"
  eventually waits 1 door:7
  on_console 'held' 0 || fail "two holders: $(cat "$dir/console")"
  touch "$dir/enough"
  ends 0 $holder
  eventually on_console '^done' 1
  on_console '^held, fencing token [0-9]' 10 || fail "not ten holds: $(cat "$dir/console")"
  on_console '^released: done' 10 || fail "not ten releases: $(cat "$dir/console")"
  [ "$(redis hget 'fairlock:{door:7}' token)" -gt "$before" ] || fail "the token has not risen"
  grep -q "token $(redis hget 'fairlock:{door:7}' token)" "$dir/console" || fail "other tokens: $(cat "$dir/console")"
}

# Not built with what it cannot work with.
refuses() {
  ! build_sample "$dir/build-$1" "$@" || fail "it builds with $*"
  grep -q 'FAIRLOCK' "$dir/err" "$dir/out" || fail "it fails for another reason: $(cat "$dir/err")"
}
test_configuration() {
  refuses -DCONFIG_NET_IPV4=n -DCONFIG_NET_CONFIG_NEED_IPV4=n
  refuses -DCONFIG_NET_SOCKETS_POLL_MAX=1
}

[ $# -eq 0 ] || run_tests "$@"
run_tests sample configuration
