#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Looks at the layout of the C sources that differ from what is committed, and only at those, as it
# runs after each edit; `make lint` looks at all. From the top folder of a clone.
set -u
log=$(mktemp)
trap 'rm -f "$log"' EXIT
files=$(
  git diff --name-only --relative --diff-filter=d HEAD -- '*.c' '*.h' '*.hpp' 'boards/*.cc'
  git ls-files --others --exclude-standard '*.c' '*.h' '*.hpp' 'boards/*.cc'
)
# shellcheck disable=SC2086
if [ -z "$files" ] || clang-format --dry-run -Werror $files 2>"$log"; then
  echo "ok layout: of $(echo "$files" | grep -c .) changed files"
else
  sed 's/^/# /' "$log"
  echo "not ok layout: run make format"
  exit 1
fi
