#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The module for MicroPython keeps lock/FORMAT.md: all checks of tests/interop/peer.py.
set -u
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
trap 'exit 1' INT TERM HUP
MOST=4 # a hundred programs that start at once would take each other's time, and be late
export MOST
tests/interop/peer.py -- "${BUILD:-build}/micropython/run" boards/micropython/compat.py >"$folder/said"
status=$?
# what the module does not have
sed -e '/^skip force: no force$/d' -e '/^skip inspection: no inspection$/d' -e '/^skip reentry: no re-entry$/d' "$folder/said"
exit $status
