#!/bin/sh
# Compares the sizes of the firmware with the committed table: tests/qemu/sizes.sh BUILD [TABLE
# [PRINTED]], where PRINTED is what boards/common/sizes.sh has printed. Growth of more than 2 %
# fails, until boards/sizes.txt is changed on purpose (make size-table), and so does any growth
# beyond 32 KB of flash or 12 KB of RAM, with TLS and a pinned key 62 KB and 20 KB. A part of an
# image may grow by 64 bytes in any case. The measured stack may differ by an interrupt's frame
# besides, because the tick hits its deepest place or does not; above its bound it fails always.
set -eu
table=${2:-boards/sizes.txt}
new=$(mktemp)
trap 'rm -f "$new"' EXIT
if [ $# -gt 2 ]; then cat "$3" >"$new"; else sh boards/common/sizes.sh "$1" >"$new" || [ -s "$new" ]; fi
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
