#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Clients in all languages at work among all releases, while programs are killed and stopped and the server fails
# (tests/interop/test_mixed.py). REDISSON="VERSION...": with threads of these, too, as `make interop` runs it.
set -u
exec env BESIDE="$(for one in go node python rust; do echo "$one ${BUILD:-build}/compat/$one/client"; done)" TIME="${TIME:-30}" \
  tests/interop/test_mixed.py
