#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The module for MicroPython at work among all releases while clients and the server fail: tests/interop/test_mixed.py.
set -u
BESIDE="micropython ${BUILD:-build}/micropython/run boards/micropython/compat.py" exec tests/interop/test_mixed.py
