#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The wheel for aarch64, from the file alone: what each call does, in Debian's Python for that processor, by qemu-user.
# Only the packages are unpacked, which needs no kernel's help, and the system's OpenSSL 3 is among them.
# shellcheck source=tests/support/lib.sh disable=SC2154,SC1091,SC2317
set -u
. tests/support/lib.sh
wheel=$build/python/fairlock-$(echo "$version" | tr -d -)-cp39-abi3-manylinux2014_aarch64.whl
root=$top/root

# As this machine gets its packages.
unpack_debian() {
  . /etc/os-release
  apt-config dump | grep -E '^Acquire::(https?|Check-[A-Za-z-]*|Retries|ForceIPv[46])(::[^ ]*)? ".+";$' >"$top/settings"
  set --
  for file in /etc/apt/sources.list /etc/apt/sources.list.d/debian.sources; do
    [ ! -s "$file" ] || set -- "$@" "$file"
  done
  mmdebstrap --quiet --arch=arm64 --variant=extract --aptopt="$top/settings" \
    --include=python3-minimal,libpython3-stdlib,python3-cffi-backend "$VERSION_CODENAME" "$root" "$@" >"$top/log" 2>&1 || cat "$top/log"
}
unpack_debian

emulated() {
  PYTHONPATH=$root/wheel timeout 600 qemu-aarch64 -L "$root" "$(readlink -f "$root/usr/bin/python3")" "$@"
}

test_loads_with_tls() {
  python3 -m zipfile -e "$wheel" "$root/wheel"
  expect 0 emulated -c 'import platform, fairlock; print(platform.machine(), fairlock._c.lib.fairlock_tls, fairlock.__file__)'
  printed "aarch64 1 $root/wheel/"
}

test_threads() {
  expect 0 emulated tests/python/test_use.py
}

test_asyncio() {
  expect 0 emulated tests/python/test_aio.py
}

[ $# -eq 0 ] || run_tests "$@"
run_tests loads_with_tls threads asyncio
