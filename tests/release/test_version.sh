#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Each place that names the version names that of lock/fairlock.h: run from the top folder.
set -u
build=${BUILD:-build}
failed=0

# expand TEXT: what TEXT comes to for a program that includes fairlock.h
expand() {
  printf '#include "fairlock.h"\n%s\n' "$1" | ${CC:-cc} -E -P -Iresp -Iport -Iport/posix -Ilock -x c - | tail -n 1 | tr -d ' "'
}
version=$(expand FAIRLOCK_VERSION)

# names WHERE TEXT: the version that stands WHERE
names() {
  if [ -n "$2" ] && [ "$2" = "$version" ]; then echo "ok version: $1"; else
    echo "# FAIRLOCK_VERSION of lock/fairlock.h is '$version'; here it is '$2'"
    echo "not ok version: $1"
    failed=1
  fi
}
numbers=$(expand FAIRLOCK_VERSION_MAJOR.FAIRLOCK_VERSION_MINOR.FAIRLOCK_VERSION_PATCH)
case $version in *-rc*) last=${version##*-rc} ;; *) last=99 ;; esac
names "the header's numbers" "$numbers$(echo "$version" | sed 's/^[0-9.]*//')"
number=$(echo "$numbers" | awk -F . -v last="$last" '{ print $1 * 1000000 + $2 * 10000 + $3 * 100 + last "L" }')
names "the number to compare, $number" "$([ "$(expand FAIRLOCK_VERSION_NUMBER)" = "$number" ] && echo "$version")"
names "port.h, in the names of functions" "$(sed -n 's/^#define PORT_RELEASE //p' port/port.h | sed 's/_rc/-rc/; s/_/./g')"
names "the Makefile, by what it writes to fairlock.pc" "$(sed -n 's/^Version: //p' "$build/fairlock.pc")"
names "fairlock --version, from fairlock_version()" \
  "$("$build/fairlock" --version | sed "s/^fairlock \(.*\), format $(expand FAIRLOCK_FORMAT)\$/\1/")"
names "the manual" "$(sed -n 's/^\.TH FAIRLOCK 1 "" "fairlock \([^"]*\)".*/\1/p' boards/fairlock/fairlock.1)"
names "boards/cmake/esp-idf/fairlock/idf_component.yml" \
  "$(sed -n 's/^version: "\(.*\)"$/\1/p' boards/cmake/esp-idf/fairlock/idf_component.yml)"
names "boards/rust/Cargo.toml" "$(sed -n 's/^version = "\(.*\)"$/\1/p' boards/rust/Cargo.toml)"
names "boards/cmake/README.md, the tarball to fetch" \
  "$(sed -n 's/.*fairlock-\([0-9].*\)\.tar\.gz.*/\1/p' boards/cmake/README.md)"
names "boards/cmake/README.md, what find_package() asks for" \
  "$([ "$(sed -n 's/^find_package(fairlock \([0-9.]*\) .*/\1/p' boards/cmake/README.md)" = "${numbers%.*}" ] && echo "$version")"
names "the newest of README.md's changes" \
  "$(sed -n '/^## Changes/,$ s/^\*\*\([0-9.]*\(-rc[0-9]*\)*\)\*\*.*/\1/p' README.md | head -n 1)"
exit $failed
