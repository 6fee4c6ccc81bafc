#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The package for Node as it is handed on: the same bytes each time, what is in it, installed from the file alone in
# an empty folder, by import and require, the README's examples, and its types by tsc.
# shellcheck source=tests/support/lib.sh disable=SC2034,SC2046,SC2086,SC2154,SC1091,SC2317
set -u
. tests/support/lib.sh
sources=$(pwd)
tools=$build/node/tools/node_modules
package=$build/node/package
tgz=$build/node/fairlock-$version.tgz
app=$top/app

# Without a registry.
mkdir "$app"
(cd "$app" && npm install --silent --offline --no-audit --no-fund "$tgz")

test_the_same_bytes() {
  expect 0 sh boards/node/package.sh "$dir" "$version" "$build/core/core.wasm"
  cmp "$dir/fairlock-$version.tgz" "$tgz" || fail "other bytes"
  ! tar -tvzf "$tgz" | grep -v '^-rw-r--r-- 0/0 .* 1980-01-01 00:00 package/' || fail "stray"
  [ "$(ls "$package" "$package/lib" | tr '\n' ' ')" = "$package: LICENSE README.md index.d.mts index.d.ts index.js index.mjs \
lib package.json  $package/lib: client.js clock.js core.js engine.js errors.js fairlock.wasm url.js " ] || fail "$(ls "$package" "$package/lib")"
  ! grep -rn '@VERSION@' "$package" || fail "a version is missing"
}

test_the_same_wasm_in_another_folder() {
  expect 0 make -s BUILD="$dir/build" wasm
  cmp "$dir/build/core/core.wasm" "$package/lib/fairlock.wasm" || fail "other bytes"
}

test_wasm_imports_nothing() {
  expect 0 node -e 'const fs = require("fs"); const wasm = new WebAssembly.Module(fs.readFileSync(process.argv[1]))
    process.exit(WebAssembly.Module.imports(wasm).length)' "$package/lib/fairlock.wasm"
}

test_installed_by_import_and_require() {
  [ -d "$app/node_modules/fairlock" ] || fail "not installed"
  [ "$(ls "$app/node_modules" | tr '\n' ' ')" = "fairlock " ] || fail "it brings $(ls "$app/node_modules")"
  cat >"$app/both.mjs" <<'END'
import * as imported from 'fairlock'
import { createRequire } from 'node:module'
const required = createRequire(import.meta.url)('fairlock')
for (const name of Object.keys(required)) if (imported[name] !== required[name]) throw new Error(name)
if (Object.keys(imported).length !== Object.keys(required).length) throw new Error(`${Object.keys(imported)}`)
console.log(required.version, createRequire(import.meta.url)('fairlock/package.json').version)
END
  expect 0 node "$app/both.mjs"
  printed "$version $version"
}

# example KIND: of the README, for the test's own server
example() {
  awk -v want="$1" -f tests/release/pages.awk "$app/node_modules/fairlock/README.md" | sed "s|127.0.0.1:6379|127.0.0.1:$port|"
}

test_examples_of_the_readme() {
  start_server
  example js >"$app/example.mjs"
  grep -q "$port" "$app/example.mjs" || fail "no example"
  expect 0 node "$app/example.mjs"
  printed 'held, fencing token '
  [ "$(redis hget 'fairlock:{invoice:7}' token)" -gt 0 ] || fail "there was no hold"
  example ts >"$app/example.mts"
  grep -q "$port" "$app/example.mts" || fail "no example in TypeScript"
  compile example.mts --module nodenext
  expect 0 node "$app/out/example.mjs"
  printed 'held, fencing token '
  [ "$(redis exists invoice:7)" = 0 ] || fail "it still holds"
}

test_links_of_the_readme() {
  expect 0 sh tests/languages/links.sh "$package/README.md" "$package"
}

# compile FILE OPTION...: strictly, with the types of the oldest Node, as both kinds of library of the compiler
compile() {
  file=$1
  shift
  [ -e "$app/node_modules/@types" ] || ln -s "$tools/@types" "$app/node_modules/@types"
  cd "$app" || fail "no $app"
  "$tools/.bin/tsc" --strict --noUncheckedIndexedAccess --exactOptionalPropertyTypes --target es2022 --lib es2022,esnext.disposable \
    --types node --typeRoots "$tools/@types" --outDir out "$@" "$file" >"$dir/out" 2>&1 || fail "$(cat "$dir/out")"
  cd "$sources" || fail "no $sources"
}

test_types() {
  start_server
  for kind in mts cts; do
    cp boards/node/test/types.ts "$app/types.$kind"
    compile "types.$kind" --module nodenext
    expect 0 node "$app/out/types.${kind%ts}js" "redis://127.0.0.1:$port"
    printed "FAIRLOCK_TIMEOUT 7 bigint number true $version"
  done
}

test_layout() {
  expect 0 "$tools/.bin/prettier" --config boards/node/test/tools/prettier.json --check \
    $(sh tests/tools/sources.sh 'boards/node/*.js' 'boards/node/*.mjs' 'boards/node/*.ts' 'boards/node/*.mts')
}

run_tests the_same_bytes the_same_wasm_in_another_folder wasm_imports_nothing installed_by_import_and_require examples_of_the_readme links_of_the_readme types layout
