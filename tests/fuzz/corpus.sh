#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Repacks the corpora: corpus.sh FOLDER TARGET... FOLDER is the one that fuzz.sh has filled. Adds to
# what is committed the learned inputs that reach something new; with nothing learned, the archive
# keeps its bytes: sorted by name, without times and owners.
set -eu
folder=$1
shift
for name in "$@"; do
  corpus=$folder/replay/corpus/$name
  mkdir -p "$folder/learned/$name"
  "$folder/replay/fuzz_$name" -merge=1 "$corpus" "$folder/learned/$name" >"$folder/$name.log" 2>&1 || {
    tail -20 "$folder/$name.log"
    exit 1
  }
  find "$corpus" -type f -printf '%f\n' | LC_ALL=C sort |
    tar -c --format=ustar --mtime=@0 --owner=0 --group=0 --numeric-owner --mode=0644 -C "$corpus" -T - |
    gzip -9 -n >"$folder/$name.tar.gz"
  mv "$folder/$name.tar.gz" "tests/fuzz/corpus/$name.tar.gz"
  echo "$name: $(find "$corpus" -type f | wc -l) inputs"
done
