#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tests/tools/fresh.sh with a project of a few lines: what it hands in, what fails, and that it leaves
# nothing behind, however it ends.
# shellcheck source=tests/support/verdicts.sh disable=SC2154,SC2319
set -u
. tests/support/verdicts.sh
if [ "$(id -u)" != 0 ]; then
  echo "skip fresh: only root can change its root"
  exit 0
fi
tool=$(pwd)/tests/tools/fresh.sh
roots=$(cd "${BUILD:-build}" && pwd)/fresh
mkdir "$folder/project"
cd "$folder/project" || exit 1
printf '%s\n' 'all: ; @echo none' 'seen:' '	@env; pwd; ls; echo "processes: $$(ls -d /proc/[1-9]* | wc -l)"' \
  'bad: ; @echo tried; exit 3' 'twice: ; @echo installing: a; echo installing: b' \
  'slow: ; @setsid sleep 3600 & sleep 3601 & echo began; wait' >Makefile
git init -q . && git add . && git -c user.name=none -c user.email=none commit -q -m none
echo new >uncommitted

# fresh TARGET...: with a variable that has to stay outside
fresh() {
  OUTSIDE=yes BUILD=elsewhere sh "$tool" "$roots" "$@" >"$folder/log" 2>&1
}

# nothing_left: no root of a process that has ended
nothing_left() {
  for root in "$roots"/root.*; do
    [ ! -e "$root" ] || kill -0 "${root##*.}" 2>/dev/null || return
  done
}

fresh seen
verdict "fresh: a target passes" [ $? -eq 0 ]
verdict "fresh: in a clone" grep -qx Makefile "$folder/log"
! grep -q uncommitted "$folder/log"
verdict "fresh: without what is not committed" [ $? -eq 0 ]
! grep -q -e OUTSIDE -e elsewhere "$folder/log"
verdict "fresh: without variables of ours" [ $? -eq 0 ]
seen=$(sed -n 's/^processes: //p' "$folder/log")
verdict "fresh: without processes of ours" [ "${seen:-99}" -lt 10 ]
fresh ''
verdict "fresh: make alone" grep -qx none "$folder/log"
! fresh bad ''
verdict "fresh: a target that fails fails" [ $? -eq 0 ]
verdict "fresh: it says which" grep -qx 'failed on a fresh bookworm: make bad' "$folder/log"
verdict "fresh: and tries the others" grep -qx none "$folder/log"
printf '%s\n' '```' 'command -v make gcc git || true  # none' 'kept=yes' 'test "$kept" = yes && echo kept' '```' \
  '```c' 'int here;' '```' '```' 'cat program.c' '```' >README.md
git add . && git -c user.name=none -c user.email=none commit -q -m page
fresh README.md
verdict "fresh: what a page says passes" [ $? -eq 0 ]
verdict "fresh: its lines are typed into one shell, with its program beside them" \
  [ "$(grep -v '^[#$]' "$folder/log" | tr '\n' ' ')" = 'making a minimal Debian, bookworm kept int here; ' -o \
  "$(grep -v '^[#$]' "$folder/log" | tr '\n' ' ')" = 'kept int here; ' ]
sed -i 's/kept=yes/false/' README.md
git -c user.name=none -c user.email=none commit -q -a -m page
! fresh README.md
verdict "fresh: a line that fails fails" [ $? -eq 0 ]
verdict "fresh: it says which line" grep -qx 'exit status 1: false' "$folder/log"
verdict "fresh: and of which page" grep -qx 'failed on a fresh bookworm: what README.md says' "$folder/log"
! fresh twice
verdict "fresh: to ask for packages twice fails" [ $? -eq 0 ]
verdict "fresh: it says so" grep -q 'asked for packages 2 times' "$folder/log"
verdict "fresh: nothing is left" nothing_left

# alive: what slow has started
alive() {
  for process in /proc/[1-9]*; do
    { tr '\0' ' ' <"$process/cmdline"; } 2>/dev/null | grep -x 'sleep 360[01] ' && return
  done
  return 1
}
for signal in KILL TERM; do
  rm -f "$folder/log"
  # Not by fresh(), whose shell would get the signal in its place.
  setsid sh "$tool" "$roots" slow >"$folder/log" 2>&1 &
  process=$!
  tries=600
  until grep -q began "$folder/log" || [ $tries -eq 0 ]; do
    tries=$((tries - 1))
    sleep 0.1
  done
  kill -s "$signal" "$process"
  wait "$process"
  tries=600
  while alive >/dev/null && [ $tries -gt 0 ]; do
    tries=$((tries - 1))
    sleep 0.1
  done
  ! alive >"$folder/alive"
  verdict "fresh: SIG$signal ends what runs inside" [ $? -eq 0 ]
done
verdict "fresh: nothing is left of that, either" nothing_left
exit $failed
