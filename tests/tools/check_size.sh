#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Holds what tests/tools/size.sh has printed for a Cortex-M3 against a page and the last release:
# tests/tools/check_size.sh PRINTED VERSION [PAGE [RELEASED]] Fails when a figure is more than 2 % and
# more than 8 bytes above its line in the page's table, or above a line of 0, or when the table has a
# name that was not printed; and, whatever the page has, when the superloop is more than 64 bytes above
# the last line of RELEASED. What is as far below the page is told and passes. VERSION is the
# compiler's: other versions than the page's make other sizes, and are not compared, neither with the
# page nor with the last release.
set -u
page=${3:-tests/bench/README.md}
released=${4:-boards/released.txt}
superloop='a superloop: start, poll, release'
version=$(sed -n 's/.* with gcc \([0-9][0-9.]*\) .*/\1/p' "$page" | head -n 1)
if [ -z "$version" ]; then
  echo "size: $page names no version of gcc" >&2
  exit 1
fi
if [ ! -r "$released" ]; then
  echo "size: there is no $released, which has what each release took" >&2
  exit 1
fi
case $2. in
  "$version".*) ;;
  *)
    echo "size: not compared, with $page or $released: this is gcc $2, and they are by $version"
    exit 0
    ;;
esac

# Growth that the page has followed step by step, as it has to, shows here.
status=0
awk -v name="$superloop" -v file="$released" '
  FNR == NR { if (/^[0-9]/) { release = $1; was = $2 } next }
  substr($0, 1, length(name) + 1) == name " " { is = substr($0, 45) + 0 }
  END {
    if (was == 0 || is == 0) { printf "size: %s: no figure\n", was == 0 ? file : name; exit 1 }
    printf "size: %s: %d bytes, %+d since %s\n", name, is, is - was, release
    if (is > was + 64) { printf "size: %s: that is more than 64: see %s\n", name, file; exit 1 }
  }' "$released" "$1" || status=1

# Rows of the table: | name | bytes | aim |
awk -F ' *[|] *' -v page="$page" '
  FNR == NR {
    if ($2 == "Cortex-M3, bytes") on = 1
    else if ($0 == "") on = 0
    else if (on && $3 ~ /^[0-9]+$/) { was[$2] = $3; rows++ }
    next
  }
  {
    name = substr($0, 1, 44)
    sub(/ +$/, "", name)
    split(substr($0, 45), word, " ")
    if (word[1] ~ /^[0-9]+$/) is[name] = word[1]
  }
  function far(more, base) { return base == 0 ? more > 0 : more > 8 && more > base / 50 }
  END {
    for (name in was) {
      if (!(name in is)) { printf "size: %s: in %s, but not printed\n", name, page; failed = 1 }
      else if (far(is[name] - was[name], was[name])) {
        printf "size: %s: %d bytes, %d in %s\n", name, is[name], was[name], page
        failed = 1
      } else if (far(was[name] - is[name], was[name]))
        printf "size: %s: only %d bytes; %s can be lowered from %d\n", name, is[name], page, was[name]
    }
    if (rows == 0) { printf "size: %s has no table\n", page; failed = 1 }
    else if (!failed) printf "size: %d figures are those of %s, within 2 %%\n", rows, page
    exit failed
  }' "$page" "$1" || status=1
exit $status
