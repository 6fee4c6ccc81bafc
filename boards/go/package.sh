#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Makes the module for Go:
#   sh boards/go/package.sh FOLDER VERSION WASM
# FOLDER/module is the module, FOLDER/proxy what a module proxy has of it, and FOLDER/fairlock-vVERSION.zip the module's zip, as
# a proxy serves it. WASM is the engine, with the names of its functions.
set -eu
folder=$1 version=$2 wasm=$3
here=$(dirname "$0")
module=$folder/module
rm -rf "$module" "$folder/proxy" "$folder"/fairlock-*.zip
mkdir -p "$module"
cp "$here"/*.go "$here/go.mod" LICENSE "$module/"
sed "s/@VERSION@/v$version/" "$here/README.md" >"$module/README.md"
(cd "$here/tools" && go build -o "$folder/tools/" ./translate ./pack)
"$folder/tools/translate" "$wasm" fairlock >"$module/engine.go"
"$folder/tools/pack" "$module" "v$version" "$folder/proxy"
cp "$folder/proxy/example.org/fairlock/@v/v$version.zip" "$folder/fairlock-v$version.zip"
