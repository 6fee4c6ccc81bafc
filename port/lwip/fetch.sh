#!/bin/sh
# Gets lwIP as Debian's source package: port/lwip/fetch.sh FOLDER Any user may; apt's own
# configuration, lists and cache stay as they are, and apt checks the signatures as ever. Leaves the
# sources in FOLDER/src.
set -eu
version=2.1.3+dfsg1
package=lwip=$version-2
mkdir -p "$1/apt/parts" "$1/apt/state/lists/partial" "$1/apt/cache/archives/partial"
cd "$1"
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
rm -rf "lwip-$version" src
apt source "$package"
mv "lwip-$version/src" src
rm -rf apt "lwip-$version"
