#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The Debian packages as people have them: installed by apt into a whole system, used there, removed,
# and purged without a trace. For a system that goes away afterwards: make fresh TARGET=deb-installed.
# shellcheck source=tests/support/lib.sh source=tests/release/deb_packages.sh disable=SC2046,SC2086,SC2154,SC1091,SC2317
set -u
. tests/support/lib.sh
. tests/release/deb_packages.sh

# all_files: those of the system, but for what is ours and what apt and dpkg note of their work; and
# what dpkg knows of our packages
all_files() {
  find / \( -path /proc -o -path /sys -o -path /dev -o -path /run -o -path /tmp -o -path /root -o -path "$(pwd)" -o \
    -path /var/cache -o -path /var/log -o -path /var/lib/apt -o -path '/var/lib/dpkg/[alst]*' \) -prune -o -print | sort
  dpkg-query -W '*fairlock*' 2>&1
}

apt() {
  DEBIAN_FRONTEND=noninteractive expect 0 apt-get -q -y -o Dpkg::Use-Pty=0 "$@"
}

# gone_by HOW: remove or purge; neither leaves anything, because the packages have no configuration
gone_by() {
  apt "$1" fairlock libfairlock-dev
  all_files >"$dir/after"
  diff "$dir/before" "$dir/after" >"$dir/left" || fail "left by apt-get $1: $(cat "$dir/left")"
}

install() {
  apt install $(of fairlock) $(of libfairlock-dev)
  printed ' 2 newly installed'
}

test_installed_used_and_purged() {
  [ "$(id -u)" = 0 ] || fail "apt asks for root"
  packages
  all_files >"$dir/before"
  install
  expect 0 dpkg -V fairlock libfairlock-dev
  [ ! -s "$dir/out" ] || fail "not as packed: $(cat "$dir/out")"
  expect 0 dpkg -L fairlock libfairlock-dev
  printed /fairlock.pc
  printed /man1/fairlock.1.gz
  [ "$(command -v fairlock)" = /usr/bin/fairlock ] || fail "fairlock is $(command -v fairlock)"
  use_command ''
  use_library ''
  gone_by remove
  install
  gone_by purge
}

if [ -e /usr/bin/fairlock ] || [ "$(dpkg-query -W -f '${db:Status-Status}' fairlock 2>/dev/null)" = installed ]; then
  echo "fairlock is installed here, and this would remove it: make fresh TARGET=deb-installed" >&2
  exit 1
fi
run_tests installed_used_and_purged
