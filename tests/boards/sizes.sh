#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Compares the sizes of the firmware with the committed table: tests/boards/sizes.sh BUILD [TABLE
# [PRINTED]], where PRINTED is what boards/common/sizes.sh has printed. Growth of more than 2 %
# fails, until boards/sizes.txt is changed on purpose (make size-boards TABLE=1), and so does any growth
# beyond 32 KB of flash or 12 KB of RAM, with TLS and a pinned key 62 KB and 20 KB. A part of an
# image may grow by 64 bytes in any case. The measured stack may differ by an interrupt's frame
# besides, because the tick hits its deepest place or does not; above its bound it fails always.
# Without PRINTED, measuring is tried, too.
set -u
table=${2:-boards/sizes.txt}
new=$(mktemp)
trap 'rm -f "$new" "$new.why"' EXIT
status=0
if [ $# -gt 2 ]; then cat "$3" >"$new"; else
  sh boards/common/sizes.sh "$1" >"$new" || status=$?
  if [ ! -s "$new" ]; then
    echo "not ok sizes: boards/common/sizes.sh prints nothing, exit status $status"
    exit 1
  fi
fi
BEYOND=$(awk -f boards/common/bound.awk "$new" 2>&1) || true
export BEYOND
awk '
  BEGIN {
    split("codec engine scripts client port lwip tls other", name, " ")
    for (i in name) part[name[i]]
  }
  BEGIN { aim["flash"] = 32768; aim["ram"] = 12288; tls["flash"] = 63488; tls["ram"] = 20480 }
  NR == 1 { for (i = 3; i <= NF; i++) column[i - 1] = $i; next }
  FNR == 1 || /^#/ { next }
  NR == FNR { for (i = 2; i <= NF; i++) was[$1, i] = $i; known[$1] = NF; next }
  {
    bad = ""
    for (i = 2; i <= NF; i++) {
      limit = was[$1, i] * 1.02 + (column[i] == "measured" ? 36 : 0)
      if (column[i] in part && limit < was[$1, i] + 64) limit = was[$1, i] + 64
      most = $1 ~ /_pinned$/ ? tls[column[i]] : aim[column[i]]
      if (column[i] in aim && $1 !~ /_(ca|mbedtls)$/ && was[$1, i] <= most && limit > most) limit = most
      if ($i > limit) bad = bad sprintf("# %s %s: %d bytes, %d in the table\n", $1, column[i], $i, was[$1, i])
    }
    if (index("\n" ENVIRON["BEYOND"], "\n" $1 ": ")) bad = bad "# more stack measured than its bound\n"
    if (!($1 in known) || known[$1] != NF) bad = bad "# " $1 ": not in the table\n"
    printf "%s%s size_%s\n", bad, (bad == "" ? "ok" : "not ok"), $1
    seen[$1] = 1
    if (bad != "") failed = 1
  }
  END {
    for (row in known) if (!(row in seen)) { print "# was not built\nnot ok size_" row; failed = 1 }
    exit failed
  }' "$table" "$new"
failed=$?
[ $# -eq 1 ] || exit $failed

# verdict NAME STATUS PATTERN BOARD:IMAGE: measure_stack ends so, and stdout or stderr has that
verdict() {
  "$build/tests/boards/measure_stack" "$4" >"$new" 2>"$new.why"
  found=$?
  if [ $found -eq "$2" ] && grep -q "$3" "$new" "$new.why" && { [ "$2" -eq 0 ] || [ ! -s "$new" ]; }; then echo "ok $1"; else
    sed 's/^/# /' "$new" "$new.why"
    echo "not ok $1: exit status $found"
    failed=1
  fi
}
build=$1
verdict size_without_texts_and_nobody_who_has_them 0 '^mps2-an385:superloop_hashes [1-9]' mps2-an385:superloop_hashes
verdict size_says_why_it_is_not_measured 1 '^measure_stack: mps2-an385:none: no "done" before its end' mps2-an385:none
exit $failed
