#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Gets Mbed TLS as Debian's source package: port/mbedtls/fetch.sh FOLDER Leaves the headers in
# FOLDER/include and the sources in FOLDER/library.
set -eu
version=2.28.3
sh tests/tools/source.sh "$1" mbedtls $version 1
rm -rf "$1/include" "$1/library"
mv "$1/mbedtls-$version/include" "$1/mbedtls-$version/library" "$1"
rm -rf "$1/mbedtls-$version"
