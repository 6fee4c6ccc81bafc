#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The picture of boards/README.md, drawn again: clients in five languages are served in order, and it is like the
# committed one but for places and times. And no picture shows what is wrong.
# shellcheck source=tests/support/lib.sh disable=SC2154,SC1091,SC2317
set -u
. tests/support/lib.sh

structure() {
  sed -e '/grid\|tick/d' -e 's/[0-9][0-9.]*/0/g' "$1"
}

test_picture() {
  expect 0 tests/languages/picture.py "$dir/fresh.svg"
  expect 0 xmllint --nonet --noout "$dir/fresh.svg"
  structure boards/languages.svg >"$dir/committed"
  structure "$dir/fresh.svg" | cmp "$dir/committed" - || fail "another picture: make demo-picture SCENE=languages"
}

test_what_is_wrong() {
  expect 0 python3 - <<'END'
import sys
sys.path.insert(0, "tests/languages")
sys.dont_write_bytecode = True
from picture import Turn, wrong
first, second = Turn(0, 0, 1, 2, 7, 1), Turn(1, 0, 3, 4, 8, 2)
assert wrong([first, second]) == ""
assert wrong([first, second._replace(got=1.5)]) == "two holders"
assert wrong([first, second._replace(token=7)]) == "a token falls"
assert wrong([first._replace(place=3), second]) == "overtaken"
END
}

[ $# -eq 0 ] || run_tests "$@"
run_tests picture what_is_wrong
