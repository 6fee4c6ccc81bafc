#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Whether each mutant and planted fault still changes its file, which whoever changes that wants to
# know at once.
set -u
. tests/mutants/mutate.sh
unset ONLY ENTRIES
listed || exit
changed=$(mktemp)
trap 'rm -f "$changed"' EXIT
mutants | {
  status=0
  while IFS= read -r line; do
    rest=${line#*|}
    file=$(path_of "${rest%%|*}")
    if ! sed "${rest#*|}" "$file" >"$changed" || cmp -s "$changed" "$file"; then
      echo "not ok mutant changes $file: ${line%%|*}"
      status=1
    fi
  done
  [ $status -ne 0 ] || echo "ok each mutant changes its file"
  exit $status
}
