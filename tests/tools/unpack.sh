#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Unpacks packages of another suite of Debian, and installs nothing: tests/tools/unpack.sh SUITE
# FOLDER PACKAGE... leaves them in FOLDER/root. apt checks their signatures, with a configuration,
# lists and a cache of its own. Prints the command that their programs are to be run by: the loader
# of that suite, with its libraries. So the C library has to be among the packages.
set -eu
suite=$1
mkdir -p "$2"
cd "$2"
here=$(pwd)
shift 2

# The system's own source of packages, for that suite.
mkdir -p apt/parts apt/state/lists/partial apt/cache/archives/partial root
system=/etc/apt/sources.list.d/debian.sources
if [ -f "$system" ]; then
  awk -v RS= '!/security/' "$system" |
    sed -e "s/^Suites: .*/Suites: $suite/" -e 's/^Types: .*/Types: deb/' >apt/parts/debian.sources
else
  sed -n "/security/d; s|^deb \(\[[^]]*\] \)\{0,1\}\([^ ]*\) .*|deb \1\2 $suite main|p" /etc/apt/sources.list |
    head -n 1 >apt/parts/debian.list
fi
: >apt/status
for command in update "download $*"; do
  # shellcheck disable=SC2086
  apt-get -qq -o Dir::Etc::SourceList=/dev/null -o Dir::Etc::SourceParts="$here/apt/parts" \
    -o Dir::State="$here/apt/state" -o Dir::State::status="$here/apt/status" -o Dir::Cache="$here/apt/cache" \
    -o Debug::NoLocking=1 -o APT::Sandbox::User="$(id -un)" -o Acquire::Retries=3 -o Acquire::Languages=none \
    -o Acquire::IndexTargets::deb::DEP-11::DefaultEnabled=false $command >&2
done
for package in *.deb; do dpkg -x "$package" root; done
rm -rf apt ./*.deb
loader=$(find "$here/root" -name 'ld-linux*' -type f)
libraries=$(find "$here"/root/usr/lib* "$here"/root/lib* -name '*.so.*' 2>/dev/null | sed 's|/[^/]*$||' | sort -u | paste -sd :)
echo "$loader --library-path $libraries"
