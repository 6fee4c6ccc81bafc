#!/bin/sh
# Gets the sources of a Debian source package: tests/tools/source.sh FOLDER NAME VERSION REVISION
# Any user may; apt's own configuration, lists and cache stay as they are, and apt checks the
# signatures as ever. Leaves them in FOLDER/NAME-VERSION.
set -eu
folder=$1 name=$2 version=$3 revision=$4
mkdir -p "$folder/apt/parts" "$folder/apt/state/lists/partial" "$folder/apt/cache/archives/partial"
cd "$folder"
sources=/etc/apt/sources.list.d/debian.sources
if [ -f "$sources" ]; then
  sed 's/^Types: .*/Types: deb-src/' "$sources" >apt/parts/debian.sources
else
  sed -n 's/^deb /deb-src /p' /etc/apt/sources.list >apt/parts/debian.list
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
