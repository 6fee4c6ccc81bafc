#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs test programs and adds up their lines: tests/tools/run.sh PROGRAM... A program prints "ok
# NAME", "not ok NAME" or "skip NAME" for each test, "# ..." for what explains it; it may print
# anything else. One that ends with an error but names no failed test counts as a failed test
# itself, with how it ended and the last line that it printed. With CI=true a skipped test counts as
# failed. TEST_TIMEOUT: seconds for one program (default 2400). RUNNER: what to run compiled programs with, such as valgrind. JOBS: how many run
# side by side (default 2; most of them wait most of the time). Before each program's lines is how
# far it is: [12/48], the twelfth that has ended. QUIET=1: says nothing of a program whose tests all
# passed.
#
# What failed runs once more at the end, alone, to tell a fault from a race or a deadline. It counts as
# failed all the same; with RETRY=1 only if it fails twice, and what passed alone is named in the
# last lines, for whoever calls this to count. Where many fail, it is not chance, and none is run again.
set -u

# ending STATUS LOG: how a program ended, and the last line that it, and not the shell, has printed
ending() {
  if [ "$1" -eq 124 ] || [ "$1" -eq 137 ] && [ "$took" -ge "$limit" ]; then
    printf '%s' "it took longer than $limit s"
  elif [ "$1" -gt 128 ] && [ "$1" -lt 193 ]; then
    printf '%s' "ended by SIG$(kill -l $(($1 - 128)) 2>/dev/null || echo " $(($1 - 128))")"
  else printf '%s' "exit status $1"; fi
  awk 'NF > 0 && !/^(Killed|Terminated|Aborted|Segmentation fault)/ { last = ", after the line: " $0 } END { print (last == "" ? ", and it printed nothing" : last) }' "$2"
}

if [ "${1:-}" = --one ]; then
  all=$3
  program=$4
  unset JOBS # which is ours, not that of a suite
  log=$(mktemp "$2/log.XXXXXX")
  runner=
  case $program in *.sh | *' '*) ;; *) runner=${RUNNER:-} ;; esac
  began=$(date +%s)
  limit=${TEST_TIMEOUT:-2400}
  # shellcheck disable=SC2086
  timeout -k 10 "$limit" $runner $program >"$log" 2>&1 </dev/null
  status=$?
  took=$(($(date +%s) - began))
  times >"$log.times" # the second line: of what ran
  busy=$(sed -n '2s/[ms]/ /gp' "$log.times" | awk '{ printf "%.0f", 60 * ($1 + $3) + $2 + $4 }')
  ok=$(grep -c '^ok ' "$log")
  bad=$(grep -c '^not ok ' "$log")
  skip=$(grep -c '^skip ' "$log")
  if [ "$status" -ne 0 ] && [ "$bad" -eq 0 ]; then
    echo "not ok $program: $(ending "$status" "$log")" >>"$log"
    bad=1
  elif [ $((ok + bad + skip)) -eq 0 ]; then
    echo "not ok $program: it ran no test" >>"$log"
    bad=1
  fi
  if [ "$skip" -gt 0 ] && [ "${CI:-}" = true ]; then
    bad=$((bad + skip)) skip=0
  fi
  ended=1
  until mkdir "$2/ended.$ended" 2>/dev/null; do ended=$((ended + 1)); done # each number once
  [ "$all" = alone ] && heading="[alone]" || heading="[$ended/$all]"
  { # in one go, so that what runs beside it does not come between
    echo "$heading $program"
    grep -v '^ok ' "$log"
    echo "   $ok ok, $bad not ok, $skip skipped, $took s, $busy s of a processor"
  } >"$log.shown"
  if [ "${QUIET:-}" != 1 ] || [ $((bad + skip)) -gt 0 ]; then
    dd bs=1048576 <"$log.shown" 2>/dev/null # where the output is a file, two cats overwrite each other
  fi
  echo "$ok $bad $skip $program" >"$log.counts"
  exit 0
fi
logs=$(mktemp -d)
trap 'rm -rf "$logs"' EXIT
printf '%s\n' "$@" | xargs -d '\n' -n 1 -P "${JOBS:-2}" sh "$0" --one "$logs" $#
cat "$logs"/*.counts >"$logs/counts"
printf '%s\n' "$@" | sort >"$logs/asked"
cut -d ' ' -f 4- "$logs/counts" | sort | comm -23 "$logs/asked" - >"$logs/unknown"
awk '$2 > 0 { sub(/^[0-9]+ [0-9]+ [0-9]+ /, ""); print }' "$logs/counts" >"$logs/failed"
: >"$logs/passed"
if [ "$(wc -l <"$logs/failed")" -le 5 ]; then
  while IFS= read -r program; do
    mkdir "$logs/alone"
    sh "$0" --one "$logs/alone" alone "$program" </dev/null
    if grep -q '^[0-9]* 0 ' "$logs"/alone/*.counts; then
      echo "$program" >>"$logs/passed"
      [ "${RETRY:-}" != 1 ] || cat "$logs"/alone/*.counts >>"$logs/counts.alone"
    fi
    rm -r "$logs/alone"
  done <"$logs/failed"
fi
if [ -f "$logs/counts.alone" ]; then # in place of those of the first run
  awk 'NR == FNR { passed[$0]; next }
    { name = $0; sub(/^[0-9]+ [0-9]+ [0-9]+ /, "", name) } !(name in passed)' "$logs/passed" "$logs/counts" >"$logs/rest"
  cat "$logs/rest" "$logs/counts.alone" >"$logs/counts"
fi
count() {
  awk -v field="$1" '{ sum += $field } END { print sum + 0 }' "$logs/counts"
}
while IFS= read -r program; do
  if grep -qxF -e "$program" "$logs/passed"; then echo "failed once, passed alone, a race or a deadline: $program"
  elif [ "$(wc -l <"$logs/failed")" -le 5 ]; then echo "failed twice: $program"
  else echo "failed: $program"; fi
done <"$logs/failed"
sed 's/^/no result, what ran it was ended: /' "$logs/unknown"
echo "$(count 1) passed, $(count 2) failed, $(count 3) skipped"
[ "$(count 2)" -eq 0 ] && [ "$(count 1)" -gt 0 ] && [ ! -s "$logs/unknown" ]
