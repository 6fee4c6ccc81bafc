#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The module for Go at work among all releases while clients and the server fail: tests/interop/test_mixed.py.
set -u
BESIDE="go ${BUILD:-build}/compat/go/client" exec tests/interop/test_mixed.py
