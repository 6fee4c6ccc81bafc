#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The package for Node, installed from the file alone, keeps lock/FORMAT.md: all checks of tests/interop/peer.py.
# shellcheck source=tests/support/lib.sh disable=SC2154,SC1091
set -u
. tests/support/lib.sh
sources=$(pwd)
mkdir "$top/app"
cd "$top/app" || exit 1
npm install --silent --offline --no-audit --no-fund "$build/node/fairlock-$version.tgz" || exit 1
cd "$sources" || exit 1
PACKAGE=$top/app/node_modules/fairlock
LACKS='force inspection'
MOST=4 # a hundred programs that start at once would take each other's time, and be late
export PACKAGE LACKS MOST
tests/languages/peer.sh node "$sources/boards/node/compat.mjs"
