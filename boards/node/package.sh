#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Makes the package for Node:
#   sh boards/node/package.sh FOLDER VERSION WASM
# FOLDER/package is what npm unpacks, FOLDER/fairlock-VERSION.tgz the file for `npm install`.
#
# The same files give the same bytes: they have an order, a date and an owner that do not change, and
# nothing says when, where or by whom it was made.
set -eu
folder=$1 version=$2 wasm=$3
here=$(dirname "$0")
package=$folder/package
rm -rf "$package" "$folder"/fairlock-*.tgz
mkdir -p "$package/lib"
cp "$here"/index.* LICENSE "$package/"
cp "$here"/lib/*.js "$package/lib/"
cp "$wasm" "$package/lib/fairlock.wasm"
for file in README.md package.json; do sed "s/@VERSION@/$version/" "$here/$file" >"$package/$file"; done
find "$package" -type f -exec chmod 644 {} +
cd "$folder"
find package -type f | LC_ALL=C sort |
  tar --format=ustar --mtime='1980-01-01 00:00:00 UTC' --owner=0 --group=0 --numeric-owner -cf - -T - |
  gzip -n -9 >"fairlock-$version.tgz"
