#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The module for Go keeps lock/FORMAT.md: all checks of tests/interop/peer.py.
set -u
LACKS='force inspection' MOST=4 exec tests/languages/peer.sh "${BUILD:-build}/compat/go/client"
