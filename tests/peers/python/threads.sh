#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# threads.py with a server of its own: tests/peers/python/threads.sh BUILD
set -eu
export BUILD="$1"
# shellcheck source=tests/support/lib.sh disable=SC1091,SC2034
. tests/support/lib.sh
# shellcheck disable=SC2154,SC2034
dir=$top
start_server
# shellcheck disable=SC2154
PYTHONPATH=$build/peers/python "$build/python/used/bin/python" tests/peers/python/threads.py "$port"
