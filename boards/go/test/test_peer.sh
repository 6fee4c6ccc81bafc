#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The module for Go keeps lock/FORMAT.md: all checks of tests/interop/peer.py.
set -u
build=${BUILD:-build}
said=$(mktemp)
trap 'rm -f "$said"' EXIT
MOST=4 tests/interop/peer.py -- "$build/compat/go/client" >"$said"
status=$?
# what the package does not have
sed -e '/^skip force: no force$/d' -e '/^skip inspection: no inspection$/d' "$said"
exit $status
