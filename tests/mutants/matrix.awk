# SPDX-License-Identifier: Apache-2.0
# The table of matrix.sh, from lines "suite SUM NAME ...", "mutant NAME" and, for each suite, "cell
# VERDICT SECONDS ...". The first mutant is none: what fails there is no judge.
$1 == "suite" {
  name[++suites] = $3
}
$1 == "mutant" {
  mutant[++mutants] = substr($0, 8)
  column = 0
}
$1 == "cell" {
  column++
  cell[mutants, column] = $2
  if (mutants == 1) seconds[column] = $2 == "none" ? "?" : $3
  if (mutants == 1 && $2 != "alive" && $2 != "none") unfit[column] = 1
}

function mark(verdict) {
  if (verdict == "killed") return "x"
  if (verdict == "alive") return "."
  if (verdict == "once") return "~"
  return verdict == "unlinked" ? " " : "?"
}

END {
  print "x killed   . alive   ~ failed once, and not again   ? not run   blank: not in that program"
  print "columns: the suites in the order of the second table"
  print ""
  for (i = 2; i <= mutants; i++) {
    row = ""
    killers = 0
    for (j = 1; j <= suites; j++) {
      row = row mark(cell[i, j])
      if (cell[i, j] != "killed" || unfit[j]) continue
      killers++
      only = j
      kills[j]++
    }
    if (killers == 1) {
      alone[only]++
      names[only] = names[only] "\n    " mutant[i]
    }
    if (killers == 0) survivors = survivors "\n  " mutant[i]
    for (j = 1; j <= suites; j++) {
      asked[j] += cell[i, j] == "killed" || cell[i, j] == "alive" || cell[i, j] == "once"
    }
    print row "  " mutant[i]
  }
  print ""
  printf "%-14s %6s %6s %6s %8s\n", "suite", "asked", "kills", "alone", "seconds"
  for (j = 1; j <= suites; j++) {
    printf "%-14s %6d %6d %6d %8s%s\n", name[j], asked[j], kills[j], alone[j], seconds[j],
      unfit[j] ? "  fails without a mutant" : ""
  }
  print ""
  print "Killed by one suite alone:"
  for (j = 1; j <= suites; j++) if (alone[j] > 0) print "  " name[j] ":" names[j]
  print ""
  print "Killed by none:" (survivors == "" ? " -" : survivors)
}
