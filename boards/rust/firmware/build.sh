#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Builds the example for firmware: sh boards/rust/firmware/build.sh FOLDER. Where this Rust has the target, as
# after `rustup target add thumbv7m-none-eabi`, by that. Debian's has not, but `core` as a source, which is
# compiled first; Cargo does that for a nightly only, unless it is told to be one.
set -eu
folder=$1
target=thumbv7m-none-eabi
cd "$(dirname "$0")"
# Whoever has a Rust beside Debian's that has neither.
has() {
  command -v "$1" >/dev/null && [ -e "$("$1" --print sysroot)/$2" ]
}
for rustc in rustc /usr/bin/rustc none; do
  if [ $rustc = none ]; then
    echo "Rust has neither $target nor the sources of core: rustup target add $target, or Debian's rust-web-src" >&2
    exit 1
  elif has $rustc lib/rustlib/$target/lib; then
    set --
    break
  elif has $rustc lib/rustlib/src/rust/library/core; then
    set -- -Z build-std=core
    RUSTC_BOOTSTRAP=1
    export RUSTC_BOOTSTRAP
    break
  fi
done
RUSTC=$(command -v $rustc)
export RUSTC
CARGO_TARGET_DIR=$folder "${RUSTC%/*}/cargo" build -q --release "$@"
