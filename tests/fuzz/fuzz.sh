#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs fuzz targets one after the other: fuzz.sh FOLDER SECONDS TARGET... FOLDER/replay holds the
# programs; FOLDER gets what they learn (learned/NAME) and find (found/NAME-...). The exit status
# says whether anything was found.
set -u
folder=$1 seconds=$2
shift 2
status=0
for target in "$@"; do
  name=${target#fuzz_}
  mkdir -p "$folder/learned/$name" "$folder/found"
  set -- "$folder/learned/$name"
  for known in "$folder/replay/corpus/$name" "tests/fuzz/regressions/$name"; do
    [ ! -d "$known" ] || set -- "$@" "$known"
  done
  echo "== $target, $seconds s"
  if "$folder/replay/$target" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=1024 -print_final_stats=1 \
    -artifact_prefix="$folder/found/$name-" "$@" >"$folder/$name.log" 2>&1; then
    grep -E '^(Done|stat::number_of_executed|stat::new_units)' "$folder/$name.log"
  else
    grep -vE '^#[0-9]+' "$folder/$name.log" | tail -60
    echo "$target found something: see $folder/found and $folder/$name.log"
    status=1
  fi
done
exit $status
