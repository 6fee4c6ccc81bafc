#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The module for MicroPython keeps lock/FORMAT.md: all checks of tests/interop/peer.py.
set -u
LACKS='force inspection reentry'
MOST=4 # a hundred programs that start at once would take each other's time, and be late
export LACKS MOST
exec tests/languages/peer.sh "${BUILD:-build}/micropython/run" boards/micropython/compat.py
