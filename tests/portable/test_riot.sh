#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# boards/riot, as a build of RIOT's would use it, with stand-ins for its Makefiles and its kernel
# (tests/portable/riot), and lwIP's headers. What port/riot does is tested by its own suites.
# shellcheck source=tests/support/lib.sh disable=SC2154,SC1091,SC2317
set -u
. tests/support/lib.sh
unset MAKEFLAGS MFLAGS MAKELEVEL MAKEOVERRIDES CFLAGS LDFLAGS VPATH
here=$PWD

# application SETTING...: builds the example with these settings
application() {
  mkdir -p "$dir/made"
  expect 0 make -C "$here/boards/riot/example" RIOTBASE="$here/tests/portable/riot" OUT="$dir/made" BOARD=native64 \
    LWIP="-isystem $build/lwip/src/include" "$@"
}

# compiles SOURCE...: all of the library, of port/lwip and port/riot was compiled, once, these too, and
# nothing else; and what calls what is there
compiles() {
  for source in "$here"/resp/*.c "$here"/lock/*.c "$here"/port/lwip/*.c "$here"/port/riot/*.c "$@"; do echo "$source"; done | sort >"$dir/wanted"
  sort "$dir/made/sources" | diff "$dir/wanted" - >"$dir/different" || fail "other sources: $(cat "$dir/different")"
  expect 0 ld -r -o "$dir/all" "$dir"/made/*.o
  ! nm -u "$dir/all" | grep ' \(fairlock\|resp\|port\)_' >"$dir/missing" || fail "it lacks $(cat "$dir/missing")"
}

uses() {
  for name in "$@"; do grep -qw "$name" "$dir/made/used" || fail "it does not ask for $name: $(cat "$dir/made/used")"; done
}

test_example() {
  application SERVER=192.0.2.7 ADDRESS=192.0.2.8 NETMASK=255.255.255.0
  compiles
  uses lwip lwip_tcp lwip_ipv4 sema ztimer_msec
  grep -q 192.0.2.7 "$dir/made/application.o" || fail "not the server's address"
  ! grep -qw lwip_dhcp_auto "$dir/made/used" || fail "it asks for DHCP, too"
}

test_dhcp() {
  application
  compiles
  uses lwip_dhcp_auto
}

test_conformance() {
  application CONFORMANCE=1
  compiles "$here/port/conformance/conformance.c"
  nm "$dir/made/application.o" | grep -q 'U port_conformance_run' || fail "it does not test the port"
}

test_without_texts() {
  application --eval 'USEMODULE += fairlock_hashes_only'
  grep -qx "$here/lock/scripts/hashes.c" "$dir/made/sources" || fail "no hashes: $(cat "$dir/made/sources")"
  sed -i "s|/lock/scripts/hashes\.c\$|/lock/scripts.c|" "$dir/made/sources"
  echo "$here/lock/texts.c" >>"$dir/made/sources"
  compiles
}

[ $# -eq 0 ] || run_tests "$@"
run_tests example dhcp conformance without_texts
