#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Clients in all languages in one queue with C and each other: in order, killed, stopped (tests/interop/test_releases.py);
# and at work among all releases while programs are killed and stopped and the server fails (test_mixed.py).
set -u
languages='go node python rust'
LANGUAGES=$languages tests/interop/test_releases.py || failed=1
BESIDE=$(for one in $languages; do echo "$one ${BUILD:-build}/compat/$one/client"; done) TIME=${TIME:-30} \
  tests/interop/test_mixed.py || failed=1
exit "${failed:-0}"
