#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Prints the project's own files, without what was built: tests/tools/sources.sh PATTERN..., from
# the top folder. A * stands for folders, too. In a clone git knows them; in an unpacked tarball
# they are all that is not in build/.
set -eu
if [ -e .git ]; then exec git ls-files --cached --others --exclude-standard "$@"; fi
for pattern; do
  set -- "$@" -o -path "./$pattern"
  shift
done
shift # the first -o
find . -path ./build -prune -o -type f \( "$@" \) -print | sed 's|^\./||' | sort
