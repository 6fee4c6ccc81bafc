#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Gets lwIP as Debian's source package: port/lwip/fetch.sh FOLDER Leaves the sources in FOLDER/src.
set -eu
version=2.1.3+dfsg1
sh tests/tools/source.sh "$1" lwip $version 2
rm -rf "$1/src"
mv "$1/lwip-$version/src" "$1/src"
rm -rf "$1/lwip-$version"
