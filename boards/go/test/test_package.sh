#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The module for Go as it is handed on: the same bytes each time, what is in it, the README's example with the zip
# alone in an empty folder, by a proxy and unpacked; its layout, and what go vet says, on each system; and that it needs
# no cgo.
# shellcheck source=tests/support/lib.sh disable=SC2034,SC2046,SC2086,SC2154,SC1091,SC2317
set -u
. tests/support/lib.sh
sources=$(pwd)
zip=$build/go/fairlock-v$version.zip
module=$build/go/module

# Nothing comes from a network.
export GOFLAGS=-mod=mod GOPROXY=off GONOSUMDB=example.org/fairlock GOTOOLCHAIN=local CGO_ENABLED=0

test_the_same_bytes() {
  expect 0 sh boards/go/package.sh "$dir" "$version" "$build/go/fairlock.wasm"
  cmp "$dir/fairlock-v$version.zip" "$zip" || fail "other bytes"
  cmp "$dir/fairlock-v$version.zip" "$build/go/proxy/example.org/fairlock/@v/v$version.zip" || fail "the proxy has another"
  [ "$(cd "$module" && echo *)" = "LICENSE README.md cause.go cause_before.go client.go clock_linux.go clock_other.go \
core.go doc.go engine.go errors.go example_test.go go.mod hold.go idle.go socket_other.go socket_unix.go url.go" ] || fail "$(ls "$module")"
  ! grep -rn '@VERSION@' "$module" || fail "a version is missing"
}

# example: the README's program, for the test's own server
example() {
  mkdir "$dir/app"
  awk -v want=go -f tests/release/pages.awk "$module/README.md" | sed "s|127.0.0.1:6379|127.0.0.1:$port|" >"$dir/app/main.go"
  grep -q "$port" "$dir/app/main.go" || fail "no example"
}

# in_app COMMAND...: in the folder of the program
in_app() {
  (cd "$dir/app" && GOMODCACHE=$dir/cache "$@") >"$dir/out" 2>&1 || fail "$*: $(cat "$dir/out")"
}

runs() {
  in_app go build -o program .
  in_app ./program
  grep -q '^held, fencing token [1-9]' "$dir/out" || fail "$(cat "$dir/out")"
  [ "$(redis exists invoice:7)" = 0 ] || fail "it still holds"
  chmod -R u+w "$dir/cache" 2>/dev/null || :
}

test_by_a_proxy() {
  start_server
  example
  in_app go mod init app
  in_app env GOPROXY="file://$build/go/proxy" go get "example.org/fairlock@v$version"
  [ "$(grep -c '^require\|^	' "$dir/app/go.mod")" = 1 ] || fail "$(cat "$dir/app/go.mod")"
  runs
}

test_unpacked() {
  start_server
  example
  python3 -m zipfile -e "$zip" "$dir/unpacked" || fail "no zip"
  mkdir "$dir/app/third_party"
  mv "$dir/unpacked/example.org/fairlock@v$version" "$dir/app/third_party/fairlock"
  in_app go mod init app
  in_app go mod edit "-require=example.org/fairlock@v$version" -replace=example.org/fairlock=./third_party/fairlock
  runs
}

test_links_of_the_readme() {
  expect 0 sh tests/languages/links.sh "$module/README.md" "$module"
}

test_on_other_systems() {
  (cd boards/go/tools && go build -o "$dir/typecheck" ./typecheck) || fail "no typecheck"
  expect 0 "$dir/typecheck" "$module" windows/amd64 darwin/arm64 freebsd/amd64 linux/arm64
}

test_layout() {
  [ -z "$(gofmt -l boards/go "$module")" ] || fail "gofmt: $(gofmt -l boards/go "$module")"
  for folder in "$module" "$build/go/test" boards/go/tools; do
    (cd "$folder" && go vet ./...) >"$dir/out" 2>&1 || fail "go vet: $(cat "$dir/out")"
  done
}

run_tests the_same_bytes by_a_proxy unpacked links_of_the_readme on_other_systems layout
