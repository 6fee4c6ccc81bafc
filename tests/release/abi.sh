#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Holds the public headers and the library against the newest release kept in tests/interop:
# tests/release/abi.sh LIBRARY, from the top folder.
set -eu
newest=$(ls tests/interop/*/source.tar.gz | sed 's/-rc/~rc/' | sort -V | sed 's/~rc/-rc/' | tail -n 1)
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
trap 'exit 1' INT TERM HUP
tar -xzf "$newest" -C "$folder"
python3 tests/release/abi.py "$folder" . "$1"
