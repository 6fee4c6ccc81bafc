#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Each test that tests/README.md names, in quotation marks, is there; so is each target of the
# fuzzer.
set -u
status=0
tr '\n' ' ' <tests/README.md | tr -s ' ' | grep -o '"[^"]*"' | tr -d '"' | sed 's/ *\.\.\.$//' | sort -u |
  {
    while IFS= read -r name; do
      grep -qrF -e "{\"$name" --include='test_*.c' --include='hostile_keys.c' tests && continue
      grep -q "^\([a-z]*: \)*$name|" tests/mutants/mutants.txt && continue
      echo "# no test is called: $name"
      status=1
    done
    exit $status
  } || status=1
for target in $(grep -o '\*fuzz_[a-z]*\*' tests/README.md | tr -d '*' | sort -u); do
  [ -f "tests/fuzz/$target.c" ] || { echo "# no target is called: $target"; status=1; }
done
[ "$status" -eq 0 ] && echo 'ok the tests that tests/README.md names' || echo 'not ok the tests that tests/README.md names'
exit $status
