# SPDX-License-Identifier: Apache-2.0
# Tells which images have measured more stack than their bound, in a table that sizes.sh prints, and
# fails if there is one. A bound of 0: there is none.
NR == 1 { for (i = 3; i <= NF; i++) column[$i] = i - 1; next }
$column["bound"] > 0 && $column["measured"] > $column["bound"] {
  print $1 ": " $column["measured"] " bytes of stack measured, and the bound is " $column["bound"] | "cat >&2"
  failed = 1
}
END { exit failed }
