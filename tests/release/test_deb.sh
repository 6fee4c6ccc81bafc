#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The Debian packages that `make deb` makes. They are installed below a folder, by a dpkg whose list
# of packages is a copy of this machine's: what they depend on has to be on it, and nothing of it is
# changed.
# shellcheck source=tests/support/lib.sh source=tests/release/deb_packages.sh disable=SC2046,SC2086,SC2154,SC1091,SC2317
set -u
. tests/support/lib.sh
. tests/release/deb_packages.sh

# debian_root WORD...: dpkg, for the folder $root
debian_root() {
  expect 0 dpkg --root="$root" "$@"
}

test_two_packages() {
  packages
  [ "$(find "$debs" -name '*.deb' | wc -l)" = 2 ] || fail "$(ls "$debs")"
  debian=$(echo "$version" | sed 's/-rc/~rc/')-1
  multiarch=$(gcc -print-multiarch)
  for package in fairlock libfairlock-dev; do
    [ "$(dpkg-deb -f $(of $package) Version)" = "$debian" ] || fail "version $(dpkg-deb -f $(of $package) Version)"
    dpkg-deb -c $(of $package) | awk '{ print $6 }' | grep -v -e '/$' -e ./usr/share/doc/ -e ./usr/share/lintian/ >"$dir/$package"
  done
  [ "$(wc -l <"$dir/fairlock")" = 4 ] || fail "the command's: $(cat "$dir/fairlock")"
  # what operators need, as it is here: neither Prometheus nor Grafana reads .gz
  for document in lock/PRODUCTION.md boards/examples/operators/alerts.yml boards/examples/operators/dashboard.json; do
    dpkg-deb --fsys-tarfile $(of fairlock) | tar -xOf - "./usr/share/doc/fairlock/${document##*/}" >"$dir/document" 2>&1
    cmp "$document" "$dir/document" || fail "${document##*/}: $(cat "$dir/document")"
  done
  ! grep -v -e '^./usr/include/fairlock/' -e "^./usr/lib/$multiarch/" "$dir/libfairlock-dev" >"$dir/out" || fail "$(cat "$dir/out")"
}

test_lintian_has_nothing_to_say() {
  packages
  expect 0 lintian --allow-root --pedantic --display-info --fail-on error,warning "$debs"/*.changes
  [ ! -s "$dir/out" ] || fail "$(cat "$dir/out")"
}

# Elsewhere, with another time zone and another umask.
test_same_bytes_again() {
  packages
  (umask 077 && TZ=Asia/Tokyo expect 0 make deb BUILD="$dir/again") || exit 1
  for package in fairlock libfairlock-dev; do
    expect 0 cmp $(of $package) "$dir/again/deb/$(basename "$(of $package)")"
  done
}

test_used_and_removed() {
  [ "$(id -u)" = 0 ] || {
    echo "skip used_and_removed: dpkg asks for root"
    exit 0
  }
  packages
  root=$dir/root
  mkdir -p "$root/var/lib/dpkg"
  cp /var/lib/dpkg/status "$root/var/lib/dpkg"
  debian_root -i $(of fairlock) $(of libfairlock-dev)

  use_command "$root"
  expect 0 env FAIRLOCK="$root/usr/bin/fairlock" sh tests/tls/test_command.sh commands

  multiarch=$root/usr/lib/$(gcc -print-multiarch)
  PKG_CONFIG_SYSROOT_DIR=$root
  PKG_CONFIG_LIBDIR=$multiarch/pkgconfig
  export PKG_CONFIG_SYSROOT_DIR PKG_CONFIG_LIBDIR
  use_library "$root"

  debian_root -P fairlock libfairlock-dev
  find "$root" -mindepth 1 ! -path "$root/var*" >"$dir/left"
  [ ! -s "$dir/left" ] || fail "left: $(cat "$dir/left")"
}

[ $# -eq 0 ] || run_tests "$@"
run_tests two_packages lintian_has_nothing_to_say same_bytes_again used_and_removed
