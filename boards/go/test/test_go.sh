#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The module's own tests, under the race detector, which needs cgo; the module does not.
set -u
BUILD=$(cd "${BUILD:-build}" && pwd)
export BUILD GOFLAGS=-mod=mod GOPROXY=off GOTOOLCHAIN=local CGO_ENABLED=1
cd "$BUILD/go/test" || exit 1
go test -race -count=1 -timeout=1200s -v . >said 2>&1
status=$?
sed -n -e 's/^--- PASS: \([A-Za-z]*\).*/ok \1/p' -e 's/^--- FAIL: \([A-Za-z]*\).*/not ok \1/p' -e 's/^--- SKIP: \([A-Za-z]*\).*/skip \1/p' said
[ $status -eq 0 ] || sed 's/^/# /' said
exit $status
