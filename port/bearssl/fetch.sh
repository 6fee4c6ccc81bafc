#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Gets BearSSL as Debian's source package: port/bearssl/fetch.sh FOLDER Leaves the headers in
# FOLDER/inc and the sources in FOLDER/src.
set -eu
version=0.6+dfsg.1
sh tests/tools/source.sh "$1" bearssl $version 3
rm -rf "$1/inc" "$1/src"
mv "$1/bearssl-$version/inc" "$1/bearssl-$version/src" "$1"
rm -rf "$1/bearssl-$version"
