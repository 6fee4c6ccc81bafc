#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Makes an invented release of a copy of this one: tests/interop/change.sh RELEASE FOLDER applies the
# expressions of RELEASE.sed to the files of FOLDER. Each stands in a line of its own below
# "## FILE", and has to change something.
set -eu
list=$(dirname "$0")/$1.sed
folder=$2
sed -n 's/^## //p' "$list" | while IFS= read -r file; do
  sed -n "\\|^## $file\$|,/^## /{/^##/d;/^\$/d;p;}" "$list" | while IFS= read -r expression; do
    sed "$expression" "$folder/$file" >"$folder/changed"
    if cmp -s "$folder/changed" "$folder/$file"; then
      echo "$list changes nothing in $file: $expression" >&2
      exit 1
    fi
    mv "$folder/changed" "$folder/$file"
  done
done
