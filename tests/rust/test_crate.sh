#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The crate for Rust, from its file alone: its own tests against a real server, its page's example, the
# format, and what Rust's tools say of it. The C in it is compiled for each set of features, so there are few.
# shellcheck source=tests/support/lib.sh disable=SC2154,SC1091,SC2317
set -u
. tests/support/lib.sh
sources=$(pwd)
crate=$build/rust/fairlock-$version.crate
CARGO_TARGET_DIR=$build/rust/target
FAIRLOCK_REDIS_SERVER=$build/redis-server
export CARGO_TARGET_DIR FAIRLOCK_REDIS_SERVER

# alone: into what the file alone gives
alone() {
  cd "$build/rust/alone/fairlock-$version" || fail "there is no fairlock-$version in it"
}

test_the_same_bytes_each_time() {
  sum=$(sha256sum <"$crate")
  touch boards/rust/build.rs
  expect 0 make -s rust BUILD="$build"
  [ "$(sha256sum <"$crate")" = "$sum" ] || fail "it differs"
}

test_links_of_the_page() {
  alone=$build/rust/alone/fairlock-$version
  expect 0 sh tests/languages/links.sh "$alone/README.md" "$alone"
}

test_its_own_tests_and_the_page() {
  alone
  REDIS_URL=$FAIRLOCK_URL
  export REDIS_URL
  expect 0 timeout 900 cargo test -q --features embedded
  [ "$(grep -c '^test result: ok. [1-9]' "$dir/out")" -ge 3 ] || fail "not all were run: $(cat "$dir/out")"
}

test_the_format() {
  alone
  expect 0 cargo build -q --features embedded --example driver
  cd "$sources" || fail "no $sources"
  LACKS='force inspection' expect 0 tests/languages/peer.sh "$CARGO_TARGET_DIR/debug/examples/driver"
  ! grep '^skip' "$dir/out" || fail "more is skipped than the page says"
}

test_clippy() {
  alone
  expect 0 cargo clippy -q --all-targets --features embedded -- -D warnings
  expect 0 cargo clippy -q --no-default-features --features embassy-time -- -D warnings
}

test_documentation() {
  alone
  RUSTDOCFLAGS='-D warnings' expect 0 cargo doc -q --no-deps --features embedded
}

test_layout() {
  expect 0 rustfmt --check --edition 2021 --config-path boards/rust boards/rust/build.rs boards/rust/src/lib.rs \
    boards/rust/tests/*.rs boards/rust/examples/*.rs boards/rust/firmware/src/main.rs
}

try_tls() {
  tls_port=$(draw_port 16000)
  try_server --tls-port "$tls_port" --tls-cert-file "$certificates/server.crt" --tls-key-file "$certificates/server.key" \
    --tls-ca-cert-file "$certificates/ca.crt" --tls-auth-clients no
}

test_tls() {
  certificates=$build/tls/certificates
  until_up try_tls
  alone
  TLS_URL=rediss://127.0.0.1:$tls_port TLS_CA=$certificates/ca.crt
  export TLS_URL TLS_CA
  expect 0 cargo test -q --features openssl --test tls
  printed '1 passed'
}

run_tests the_same_bytes_each_time layout links_of_the_page its_own_tests_and_the_page the_format clippy documentation tls
