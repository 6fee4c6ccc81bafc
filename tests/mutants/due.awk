# SPDX-License-Identifier: Apache-2.0
# What of found.sh's states the record does not have: those entries, and in the file WHY how many of
# which file, and why. Reads the record, lines of "ENTRY FILE FINDER ...", three sums, and one of "tools
# SUM", and then the states, lines of "ENTRY FILE FINDER|name|file|command". All are due when the sum of
# the tools is not TOOLS_SUM. Before each entry is the order in which they are worth being asked for: how
# much of it has changed, and among equals by chance, another one with each library.
NR == FNR && !states && $1 == "tools" {
  had_tools = 1
  same = $2 == tools
  next
}
NR == FNR && !states {
  records++
  has[$1] = 1
  had[$1, $2] = 1
  found[$1, $2, $3] = 1
  next
}
{
  entry = $0
  sub(/^[^|]*[|]/, "", entry)
  split($0, field, "|")
  split(field[1], sum, " ")
  all++
  of[field[3]]++
  if (same && (sum[1], sum[2], sum[3]) in found) next
  due++
  if (!(sum[1] in has)) rank = 1
  else if (!((sum[1], sum[2]) in had)) rank = 2
  else if (!((sum[1], sum[2], sum[3]) in found)) rank = 3
  else rank = 4
  printf "%d %d %s\n", rank, (sum[1] * 7919 + library) % 1000003, entry
  if (records && !had_tools) reason = "because the record has no sum of the tools"
  else if (had_tools && !same) reason = "because the tools have changed: what makes mutants, and what all tests are built with"
  else if (!(sum[1] in has)) reason = "because they are new or have changed"
  else if (!((sum[1], sum[2]) in had)) reason = "because the file has changed"
  else reason = "because the tests that have to find them have changed"
  count[field[3] "|" reason]++
}
END {
  sort = "sort >" why
  for (key in count) {
    split(key, field, "|")
    printf "# %s: %d of %d entries, %s\n", field[1], count[key], of[field[1]], field[2] | sort
  }
  close(sort)
  printf "# left out: %d of %d, found since their text, file and tests are as they are\n", all - due, all >>why
}
