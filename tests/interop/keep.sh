#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Keeps a release for the tests of this folder: tests/interop/keep.sh COMMIT VERSION, from the top
# folder of a clone. Writes tests/interop/VERSION/source.tar.gz: what it takes to build the library
# and the command of that commit, and its licence. The same commit gives the same bytes, by the same
# gzip.
set -eu
[ $# -eq 2 ] || { echo "usage: tests/interop/keep.sh COMMIT VERSION" >&2; exit 64; }
commit=$(git rev-parse --verify "$1^{commit}")
folder=tests/interop/$2

# Public headers, sources, scripts, the manual; no other pages, no TLS, and of other ports the headers.
files=$(git ls-tree -r --name-only "$commit" resp lock port boards/fairlock LICENSE |
  grep -e '\.[ch]$' -e '\.hpp$' -e '\.lua$' -e '^LICENSE$' -e '^boards/fairlock/fairlock\.1$' |
  grep -v '/tls/openssl\.c$' | awk '/^port\/posix\// || !/^port\/.*\.c$/')
mkdir -p "$folder"
# shellcheck disable=SC2086
sh "$(dirname "$0")/../release/pack.sh" "$commit" '' $files | gzip -9n >"$folder/source.tar.gz.new"
mv "$folder/source.tar.gz.new" "$folder/source.tar.gz"
echo "$folder/source.tar.gz: $commit, $(wc -c <"$folder/source.tar.gz") bytes"
