#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Gets the sources of a Debian source package: tests/tools/source.sh FOLDER NAME VERSION REVISION [SUITE]
# Any user may; apt's own configuration, lists and cache stay as they are, and apt checks the
# signatures as ever. The versions are those of Debian 12, or of SUITE, whichever Debian this is, so that
# all machines build the same. Leaves them in FOLDER/NAME-VERSION. ETC=: in place of /etc/apt, for a test.
set -eu
folder=$1 name=$2 version=$3 revision=$4
suite=${5:-bookworm}
mkdir -p "$folder/apt/parts" "$folder/apt/state/lists/partial" "$folder/apt/cache/archives/partial"
cd "$folder"
# The system's own source of packages, for that suite.
sources=${ETC:-/etc/apt}/sources.list.d/debian.sources
if [ -f "$sources" ]; then
  awk -v RS= '!/security/ { print $0 "\n" }' "$sources" |
    sed -e "s/^Suites: .*/Suites: $suite/" -e 's/^Types: .*/Types: deb-src/' >apt/parts/debian.sources
else
  sed -n "/security/d; s|^deb \(\[[^]]*\] \)\{0,1\}\([^ ]*\) .*|deb-src \1\2 $suite main|p" "${ETC:-/etc/apt}/sources.list" |
    head -n 1 >apt/parts/debian.list
fi
apt() {
  apt-get -q -o Dir::Etc::SourceList=/dev/null -o Dir::Etc::SourceParts="$PWD/apt/parts" \
    -o Dir::State="$PWD/apt/state" -o Dir::State::status=/var/lib/dpkg/status -o Dir::Cache="$PWD/apt/cache" \
    -o Debug::NoLocking=1 -o Acquire::Languages=none -o APT::Sandbox::User="$(id -un)" "$@"
}
apt update
rm -rf "$name-$version"
apt source "$name=$version-$revision"
rm -rf apt
