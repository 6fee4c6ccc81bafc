#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tests/tools/run.sh counts what suites print, says how far it is, and passes only if each suite ran
# a test and none failed. Each suite is in one of the three parts of `make test-all`.
# shellcheck source=tests/support/verdicts.sh disable=SC2154,SC2317
set -u
. tests/support/verdicts.sh
unset CI JOBS QUIET RETRY RUNNER TEST_TIMEOUT MAKEFLAGS MFLAGS MAKELEVEL

# suite NAME LINE...: a program
suite() {
  name=$folder/$1.sh
  shift
  printf '%s\n' '#!/bin/sh' "$@" >"$name"
  chmod +x "$name"
}
suite good 'echo ok one' 'echo ok two'
suite bad 'echo ok one' 'echo not ok two'
suite broken 'echo ok one' 'exit 3'
suite silent 'exit 1'
suite killed 'echo ok one' 'kill -9 $$'
suite endless 'echo ok one' 'sleep 100'
suite lost 'sleep 1' 'kill -9 "$(cut -d " " -f 4 "/proc/$PPID/stat")"'
suite empty :
suite skips 'echo ok one' 'echo skip two'
suite flaky "[ -e $folder/seen ] || { : >$folder/seen; echo '# why it failed'; echo not ok one; exit; }" 'echo ok one' 'echo ok two'

# runs NAME STATUS LAST-LINE SUITE...
runs() {
  name=$1 status=$2 last=$3
  shift 3
  for suite; do
    shift
    set -- "$@" "$folder/$suite.sh"
  done
  sh tests/tools/run.sh "$@" >"$folder/log" 2>&1
  found=$?
  verdict "run: $name" [ "$found $(tail -n 1 "$folder/log")" = "$status $last" ]
}
runs "what is good passes" 0 '4 passed, 0 failed, 0 skipped' good good
runs "a failed test fails" 1 '3 passed, 1 failed, 0 skipped' good bad
verdict "run: its suite is named, and was run again" grep -qx "failed twice: $folder/bad.sh" "$folder/log"
runs "what passes alone has failed all the same" 1 '2 passed, 1 failed, 0 skipped' good flaky
verdict "run: and is told from a fault" grep -qx "failed once, passed alone, a race or a deadline: $folder/flaky.sh" "$folder/log"
rm "$folder/seen"
RETRY=1
export RETRY
runs "with RETRY=1 it passes" 0 '4 passed, 0 failed, 0 skipped' good flaky
verdict "run: and is named, with what it said" [ "$(grep -cx -e "failed once, passed alone, a race or a deadline: $folder/flaky.sh" \
  -e '# why it failed' -e '\[alone\].*' "$folder/log")" -eq 3 ]
runs "but a fault fails" 1 '3 passed, 1 failed, 0 skipped' good bad
runs "where many fail, none is run again" 1 '6 passed, 6 failed, 0 skipped' bad bad bad bad bad bad
verdict "run: and each is named" [ "$(grep -cx "failed: $folder/bad.sh" "$folder/log")" -eq 6 ]
unset RETRY
runs "an exit status fails" 1 '1 passed, 1 failed, 0 skipped' broken
verdict "run: and it says which, and after what" grep -qxF \
  "not ok $folder/broken.sh: exit status 3, after the line: ok one" "$folder/log"
runs "a suite that says nothing fails" 1 '0 passed, 1 failed, 0 skipped' silent
verdict "run: and is said to say nothing" grep -qxF \
  "not ok $folder/silent.sh: exit status 1, and it printed nothing" "$folder/log"
runs "a signal fails" 1 '1 passed, 1 failed, 0 skipped' killed
verdict "run: and it says which" grep -qxF "not ok $folder/killed.sh: ended by SIGKILL, after the line: ok one" "$folder/log"
TEST_TIMEOUT=1
export TEST_TIMEOUT
runs "a suite that takes too long fails" 1 '1 passed, 1 failed, 0 skipped' endless
unset TEST_TIMEOUT
verdict "run: and it says so" grep -qxF "not ok $folder/endless.sh: it took longer than 1 s, after the line: ok one" "$folder/log"
runs "one whose result is lost fails" 1 '2 passed, 0 failed, 0 skipped' good lost
verdict "run: and is named" grep -qxF "no result, what ran it was ended: $folder/lost.sh" "$folder/log"
runs "a suite without a test fails" 1 '2 passed, 1 failed, 0 skipped' good empty
runs "a skipped test passes" 0 '1 passed, 0 failed, 1 skipped' skips
CI=true
export CI
runs "but not in CI" 1 '1 passed, 1 failed, 0 skipped' skips
unset CI

# Suites that end at the same time get a number each.
runs "twelve of them" 0 '24 passed, 0 failed, 0 skipped' good good good good good good good good good good good good
grep -o '^\[[0-9]*/12\] /' "$folder/log" | sort -u >"$folder/numbers"
verdict "run: it says how far it is, with each number once" [ "$(wc -l <"$folder/numbers")" -eq 12 ]
QUIET=1 sh tests/tools/run.sh "$folder/good.sh" "$folder/bad.sh" >"$folder/log" 2>&1
verdict "run: QUIET shows what failed alone" [ "$(grep -c '^\[[0-9]' "$folder/log")" -eq 1 ]

# lists TARGET: the programs that it runs, without what stands around their names
lists() {
  make -npq help 2>/dev/null | sed -n "s/^$1 := //p" | tr -d '"' | tr ' ' '\n' |
    grep -v -e '^$' -e '^nice$' -e '^env$' -e '^TIME=' -e '^ROTATIONS=' -e '^killed_master$' \
      -e '^this' -e '^in_order$' | sort
}
for target in SUITES TESTED TESTED_ALL LANGUAGE_TESTS TESTED_RELEASE; do lists $target >"$folder/$target"; done
: >"$folder/log"
sort -u "$folder/TESTED" "$folder/TESTED_ALL" "$folder/LANGUAGE_TESTS" "$folder/TESTED_RELEASE" | cmp - "$folder/SUITES" >"$folder/log"
verdict "run: make test-all, which begins with make test, runs each suite" [ $? -eq 0 ]
comm -12 "$folder/TESTED" "$folder/TESTED_ALL" | grep -v -e '/chaos/chaos$' -e '/failover/test_sentinel$' \
  -e '/failover/test_cluster$' -e '^tests/interop/' >"$folder/log"
verdict "run: and none twice but those of which make test has a part" \
  [ ! -s "$folder/log" -a "$(wc -l <"$folder/TESTED")" -gt 20 ]
sort "$folder/TESTED" "$folder/TESTED_ALL" "$folder/LANGUAGE_TESTS" | comm -12 - "$folder/TESTED_RELEASE" | grep -v '/server/test_rotation$' >"$folder/log"
verdict "run: what a release asks for besides is in neither, but for a part" \
  [ ! -s "$folder/log" -a "$(wc -l <"$folder/TESTED_RELEASE")" -gt 8 ]
sort -u "$folder/TESTED" | cmp - "$folder/TESTED" >"$folder/log"
verdict "run: which is once for each suite, too" [ $? -eq 0 ]
! make -n help ONLY_ALL="tests/tools/test_nothing.sh" >"$folder/log" 2>&1
verdict "run: a suite that is none fails" [ $? -eq 0 ]
exit $failed
