#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Gets FreeRTOS's kernel, for tests alone: tests/boards/freertos/fetch.sh FOLDER No Debian package has
# it. A Rust crate does, version 11.2.0 as it was released; cargo brings and checks it, with what
# that crate depends on, and nothing is built but the kernel. Leaves the sources in FOLDER/kernel.
set -eu
crate=freertos-next
version=0.12.0
checksum=b7824fb42660c16e1b3b573eef99c2fe5c5cba6294a631c309084635f6bfcbb0
rm -rf "$1" && mkdir -p "$1/crates" && cd "$1/crates"
: >lib.rs
cat >Cargo.toml <<EOF
[package]
name = "none"
version = "0.0.0"
[lib]
path = "lib.rs"
[dependencies]
$crate = "=$version"
[workspace]
EOF
cargo vendor -q --versioned-dirs all >/dev/null
grep -q "^checksum = \"$checksum\"\$" Cargo.lock
mv "all/$crate-$version/FreeRTOS-Kernel" ../kernel
cd .. && rm -rf crates
