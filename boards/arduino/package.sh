#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Makes the library for Arduino and PlatformIO, and a zip of it:
#   sh boards/arduino/package.sh FOLDER VERSION FILE...
# The files are the lock's own, in C. They go to src/fairlock/, all in one folder, where they find each
# other as they are: only src/ is in a sketch's include path, so no sketch, and no other library, meets
# a state.h or a port.h of ours, and a program includes <fairlock/fairlock.h>, as everywhere.
#
# The same files give the same bytes: each has the same date, and nothing says when, where or by whom
# the zip was made.
set -eu
folder=$1 version=$2
shift 2
here=$(dirname "$0")
package=$folder/Fairlock
rm -rf "$package" "$folder"/Fairlock-*.zip
mkdir -p "$package/src/fairlock"
cp "$@" "$package/src/fairlock/"
cp "$here"/*.h "$here"/*.cpp "$package/src/"
cp -R "$here/examples" "$here/keywords.txt" LICENSE "$package/"
for file in README.md library.properties library.json; do
  sed "s/@VERSION@/$version/" "$here/$file" >"$package/$file"
done
chmod -R u=rwX,go=rX "$package"
cd "$folder"
find Fairlock -exec touch -d '1980-01-01 00:00:00 UTC' {} +
find Fairlock -type f | LC_ALL=C sort | TZ=UTC zip -q -X -9 "Fairlock-$version.zip" -@
