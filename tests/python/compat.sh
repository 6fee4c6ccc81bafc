#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The peer of `make compat` with the Python package: tests/python/compat.sh PYTHON [CHECK...]
# What it does not ask of this client, because the package has no such call, is no test that was
# skipped.
set -u
python=$1
shift
log=$(mktemp)
trap 'rm -f "$log"' EXIT
tests/interop/peer.py "$@" -- "$python" tests/python/compat.py >"$log" 2>&1
status=$?
sed -e 's/^skip force: /# force: /' -e 's/^skip inspection: /# inspection: /' "$log"
exit $status
