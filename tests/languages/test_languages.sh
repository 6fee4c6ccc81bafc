#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Clients in all languages in one queue with C and each other: in order, killed, stopped (tests/interop/test_releases.py);
# and at work among all releases (mixed.sh).
set -u
LANGUAGES='go node python rust' tests/interop/test_releases.py || failed=1
REDISSON='' tests/languages/mixed.sh || failed=1
exit "${failed:-0}"
