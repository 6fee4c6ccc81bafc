#!/bin/sh
# Sees to it that Debian packages are installed: tests/need.sh PACKAGE...
# As root, or by sudo without a password, it installs what is missing; otherwise it prints the line that does, and fails.
# No package it is used for starts a service.
set -eu
missing=
for package in "$@"; do
  dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || missing="$missing $package"
done
[ -n "$missing" ] || exit 0
install="apt-get install -y --no-install-recommends$missing"
if [ "$(id -u)" = 0 ]; then
  as_root=
elif sudo -n true 2>/dev/null; then
  as_root=sudo
else
  echo "missing packages; run: sudo sh -c 'apt-get update && $install'" >&2
  exit 1
fi
echo "installing:$missing" >&2
# shellcheck disable=SC2086
{ $as_root apt-get update -qq && DEBIAN_FRONTEND=noninteractive $as_root $install -qq; } >/dev/null
