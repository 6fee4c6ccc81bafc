#!/bin/sh
# Runs test programs and adds up their lines: tests/run.sh PROGRAM...
# A program prints "ok NAME", "not ok NAME" or "skip NAME" for each test, "# ..." for what explains it; it may print
# anything else. One that ends with an error but names no failed test counts as a failed test itself. With CI=true a
# skipped test counts as failed. TEST_TIMEOUT: seconds for one program (default 900). RUNNER: what to run compiled
# programs with, such as valgrind.
set -u
log=$(mktemp)
trap 'rm -f "$log"' EXIT
passed=0 failed=0 skipped=0 failures=
for program in "$@"; do
  echo "== $program"
  runner=
  case $program in *.sh | *' '*) ;; *) runner=${RUNNER:-} ;; esac
  # shellcheck disable=SC2086
  timeout -k 10 "${TEST_TIMEOUT:-900}" $runner $program >"$log" 2>&1 </dev/null
  status=$?
  grep -v '^ok ' "$log"
  ok=$(grep -c '^ok ' "$log")
  bad=$(grep -c '^not ok ' "$log")
  skip=$(grep -c '^skip ' "$log")
  if [ "$status" -ne 0 ] && [ "$bad" -eq 0 ]; then
    echo "not ok $program: exit status $status"
    bad=1
  elif [ $((ok + bad + skip)) -eq 0 ]; then
    echo "not ok $program: it ran no test"
    bad=1
  fi
  if [ "$skip" -gt 0 ] && [ "${CI:-}" = true ]; then
    bad=$((bad + skip)) skip=0
  fi
  echo "   $ok ok, $bad not ok, $skip skipped"
  [ "$bad" -eq 0 ] || failures="$failures $program"
  passed=$((passed + ok)) failed=$((failed + bad)) skipped=$((skipped + skip))
done
[ -z "$failures" ] || echo "failed in:$failures"
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
