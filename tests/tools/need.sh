#!/bin/sh
# Sees to it that Debian packages are installed: tests/tools/need.sh PACKAGE... As root, or by sudo
# without a password, it installs what is missing; otherwise it prints the line that does, and
# fails. It waits for 10 minutes for another package manager to end. No package it is used for
# starts a service.
set -eu
missing=
for package in "$@"; do
  dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || missing="$missing $package"
done
[ -n "$missing" ] || exit 0
if [ "$(id -u)" = 0 ]; then
  as_root=
elif sudo -n true 2>/dev/null; then
  as_root=sudo
else
  echo "missing packages; run: sudo sh -c 'apt-get update && apt-get install -y --no-install-recommends$missing'" >&2
  exit 1
fi
echo "installing:$missing" >&2
errors=$(mktemp)
trap 'rm -f "$errors"' EXIT
trap 'exit 1' INT TERM HUP
tries=300

# patiently WORD...: apt-get, again and again while a lock is all that it lacks. By itself it waits
# for dpkg's lock only, not for that of the lists.
patiently() {
  while ! $as_root env LC_ALL=C DEBIAN_FRONTEND=noninteractive apt-get -qq -o DPkg::Lock::Timeout=600 "$@" \
    >/dev/null 2>"$errors"; do
    tries=$((tries - 1))
    if [ $tries -le 0 ] || ! grep -q 'Could not get lock' "$errors"; then
      cat "$errors" >&2
      exit 1
    fi
    sleep 2
  done
  cat "$errors" >&2
}

patiently update
# shellcheck disable=SC2086
patiently install -y --no-install-recommends $missing
