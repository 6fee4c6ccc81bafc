#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Builds a release for the tests of this folder: tests/interop/build.sh RELEASE FOLDER, from the top
# folder, into FOLDER/client (client.c with that release's library) and FOLDER/fairlock. RELEASE is
# "this", a folder beside this file with a source.tar.gz, or the name of an invented release, which
# RELEASE.sed makes of this one.
set -eu
here=tests/interop
release=$1
folder=$2
source=$folder/source
rm -rf "$source"
mkdir -p "$source"

if [ -f "$here/$release/source.tar.gz" ]; then
  tar -xzf "$here/$release/source.tar.gz" -C "$source"
else
  mkdir -p "$source/port" "$source/boards"
  cp -R resp lock "$source"
  cp -R port/*.h port/posix port/openssl "$source/port"
  cp -R boards/fairlock "$source/boards"
fi
if [ -f "$here/$release.sed" ]; then
  sh $here/change.sh "$release" "$source"
  sh "$source/lock/scripts/generate.sh" >"$folder/scripts.c"
  mv "$folder/scripts.c" "$source/lock/scripts.c"
fi

includes="-I$source/resp -I$source/port -I$source/port/posix -I$source/port/openssl -I$source/lock"
options="-std=c11 -O1 -g -w -D_DEFAULT_SOURCE"
library="$source/resp/*.c $source/lock/*.c $source/port/posix/*.c"
# shellcheck disable=SC2086
${CC:-cc} $options $includes -o "$folder/client.new" $here/client.c $library -pthread
# shellcheck disable=SC2086
${CC:-cc} $options $includes -o "$folder/fairlock" $source/boards/fairlock/*.c $source/boards/fairlock/tls/none.c $library -pthread
mv "$folder/client.new" "$folder/client"
