#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The package for Node at work among all releases while clients and the server fail: tests/interop/test_mixed.py.
set -u
BESIDE="node node boards/node/compat.mjs" exec tests/interop/test_mixed.py
