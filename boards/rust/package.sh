#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Makes the crate, with the library's sources in it:
#   sh boards/rust/package.sh FOLDER VERSION FILE...
# The files are the lock's own, in C: they keep their places, in c/. FOLDER/fairlock is what is packed, and a
# package of Cargo's as it stands. No lock file goes with it: that would name what a registry had at the time,
# and who builds a program has one of their own. So the same files give the same bytes, by one Cargo.
set -eu
folder=$1 version=$2
shift 2
here=$(dirname "$0")
package=$folder/fairlock
rm -rf "$package" "$folder"/fairlock-*.crate
for file; do
  mkdir -p "$package/c/$(dirname "$file")"
  cp "$file" "$package/c/$file"
done
cp -R "$here/Cargo.toml" "$here/build.rs" "$here/csrc" "$here/src" "$here/examples" "$here/tests" LICENSE "$package/"
sed "s/@VERSION@/$version/" "$here/README.md" >"$package/README.md"
chmod -R u=rwX,go=rX "$package"
cd "$package"
CARGO_TARGET_DIR=$folder/packing cargo package -q --no-verify --allow-dirty --exclude-lockfile
mv "$folder/packing/package/fairlock-$version.crate" "$folder/"
rm -rf "$folder/packing"
