#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# make release-check finds what a release lacks: each fault is planted in a clone of this one, which
# has what is here, committed or not.
# shellcheck source=tests/support/verdicts.sh disable=SC2154,SC2319
set -u
. tests/support/verdicts.sh
unset MAKEFLAGS MFLAGS MAKELEVEL MAKEOVERRIDES BUILD GIT_DIR
export GIT_AUTHOR_NAME=test GIT_AUTHOR_EMAIL=test@localhost GIT_COMMITTER_NAME=test GIT_COMMITTER_EMAIL=test@localhost
export CFLAGS=-O0
if [ ! -e .git ]; then
  echo "skip release-check: not a clone"
  exit 0
fi
clone=$folder/clone
git clone -q . "$clone" 2>"$folder/log"
git ls-files --cached --others --exclude-standard >"$folder/files"
while read -r file; do
  rm -f "$clone/$file"
  [ ! -e "$file" ] || { mkdir -p "$clone/$(dirname "$file")" && cp "$file" "$clone/$file"; }
done <"$folder/files"
cd "$clone" || exit 1
git add -A
git commit -q --allow-empty -m 'Test'
base=$(git rev-parse HEAD)
version=$(sed -n 's/^.define FAIRLOCK_VERSION *"\(.*\)"$/\1/p' lock/fairlock.h)
git tag -d "v$version" >/dev/null 2>&1

# check STEP...: what it says is in $folder/log
check() {
  sh tests/release/release_check.sh "$@" >"$folder/log" 2>&1
}

# good WHAT STEP: and then all is as it was
good() {
  check "$2" && grep -q "^ok release: $2" "$folder/log"
  verdict "release-check: $1" [ $? -eq 0 ]
  restore
}

# bad WHAT STEP WORDS: the step fails, and says the words
bad() {
  ! check "$2" && grep -q "^not ok release: $2" "$folder/log" && grep -q -e "$3" "$folder/log"
  verdict "release-check: $1" [ $? -eq 0 ]
  restore
}

restore() {
  git tag -d "v$version" >/dev/null 2>&1
  git reset -q --hard "$base"
  git clean -qfd
}

good "a clean tree" clean
echo >>README.md
bad "a changed file" clean 'README.md'
touch untracked
bad "an untracked file" clean 'untracked'

good "no tag yet" tag
git tag "v$version"
good "a tag of this commit" tag
git tag "v$version"
git commit -q --allow-empty -m 'Another'
bad "a tag of another commit" tag "v$version is $base already"

# QUICK is for the check alone: one of its steps runs this suite, which runs the check.
sed -i 's|^step_tag() {|&\n  [ -z "${QUICK+set}" ]; return|' tests/release/release_check.sh
QUICK=1 check tag
verdict "release-check: no step is told to be quick" [ $? -eq 0 ]
restore

# One place of the version at a time.
check version
verdict "release-check: one version everywhere" [ $? -eq 0 ]
restore
sed -i 's/^\(.TH FAIRLOCK 1 "" "fairlock \)[^"]*/\19.8.7/' boards/fairlock/fairlock.1
bad "another version in the manual" version 'not ok version: the manual'
sed -i "s/fairlock-$version\\.tar\\.gz/fairlock-9.8.7.tar.gz/" boards/cmake/README.md
bad "another version on the page of CMake" version 'not ok version: boards/cmake/README.md'
sed -i "s/^\\*\\*$version\\*\\*/**9.8.7**/" README.md
bad "another version under Changes" version 'not ok version: the newest of README.md'
sed -i 's/^\(.define FAIRLOCK_VERSION_NUMBER\).*/\1 9080799L/' lock/fairlock.h
bad "another number to compare" version 'not ok version: the number to compare'

# dated DATE: the newest entry
dated() {
  sed -i "s/^\\*\\*$version\\*\\*.*/**$version**$1 What is new./" README.md
}
good "dated entries" changes
dated " $(date -u +%Y-%m-%d)."
good "an entry of today" changes
dated ''
bad "no date" changes "$version: no date"
dated ' 2027.'
bad "a year alone" changes "$version: no date"
dated ' 2026-02-30.'
bad "a date that there is not" changes "$version: no date"
dated " $(date -u -d '3 days' +%Y-%m-%d)."
bad "a date to come" changes "$version: .* is after"
dated ' 2001-01-01.'
bad "an entry that is older than the one before" changes ' is after 2001-01-01'
sed -i "/^\\*\\*$version\\*\\*/,/^\$/d" README.md
bad "no entry" changes "the first entry is not that of $version"

good "the last release is kept" kept
sed -i "/^$version /!s/^[0-9][^ ]*/1.0.0-rc0/" boards/released.txt
bad "it is a candidate, and it is not" kept 'released last, 1.0.0-rc0, should be in tests/interop/1.0.0-rc0'
rm -r tests/interop/[0-9]*
bad "it is not" kept 'should be in tests/interop/'
kept=$(ls -d tests/interop/[0-9]* | tail -n 1)
: >"$kept/source.tar.gz"
bad "an empty archive" kept 'should be in tests/interop/'
if git cat-file -e "$(gzip -dc "$kept/source.tar.gz" | git get-tar-commit-id)" 2>/dev/null; then
  gzip -dc "$kept/source.tar.gz" | sed 's/The license\|the License/THE LICENSE/' | gzip -9n >"$folder/changed.gz"
  mv "$folder/changed.gz" "$kept/source.tar.gz"
  bad "an archive that its commit does not make" kept 'differ'
else
  echo "# the commit of $kept is not in this clone"
fi

# soaked COMMIT: the page, filled in, names it
soaked() {
  sed -i "/^## The soak/,\$ { s/Soaked: commit .*/Soaked: commit \`$1\`/; s/| [^|]* | [^|]* | [^|]* |\$/| 1 | 2 | passed |/ }" \
    tests/RELEASE.md
}
# changed FILE TEXT: a commit in which the file ends with another line
changed() {
  soaked "$base"
  printf '%s\n' "$2" >>"$1"
  git add -A
  git commit -qm 'Change'
}
soaked "$base"
good "what was soaked is released" soaked
for file in lock/handle.c lock/scripts/lock.lua resp/resp.h port/posix/clock.c boards/fairlock/main.c; do
  changed "$file" 'int another_line;'
  bad "another $file was soaked" soaked "^# $file is not what was soaked"
done
changed lock/handle.c '/* another line */'
good "a comment may change" soaked
changed port/lwip/tcp.c 'int another_line;'
good "and a port that the soak does not run" soaked
changed lock/FORMAT.md 'Another line.'
good "a page may change" soaked
changed tests/sim/main.c '/* another line */'
good "and a test" soaked
soaked "$base"
sed -i "s/^\(#define FAIRLOCK_VERSION .*\)\"$version\"/\1\"9.8.7\"/; s/^\(#define FAIRLOCK_VERSION_NUMBER\).*/\1 9080799L/" lock/fairlock.h
sed -i 's/^\(.TH FAIRLOCK 1 "" "fairlock \)[^"]*/\19.8.7/' boards/fairlock/fairlock.1
git commit -qam 'Another version'
good "and the version" soaked
soaked "$base"
sed -i "s/^\(#define FAIRLOCK_VERSION .*\)\"$version\"/\1\"9.8.7\"/; s/^#define FAIRLOCK_FORMAT .*/#define FAIRLOCK_FORMAT 2/" lock/fairlock.h
git commit -qam 'Another format'
bad "but not what stands beside it" soaked 'lock/fairlock.h is not what was soaked'
soaked -
bad "no commit was soaked" soaked 'names no commit'
soaked 0123456789abcdef0123456789abcdef01234567
bad "nobody has the commit" soaked 'Not a valid object name'
soaked "$base"
sed -i 's/| 2 | passed |$/| - | passed |/' tests/RELEASE.md
bad "no figures" soaked 'no figures yet'
soaked "$base"
sed -i '/^| the same, other seeds/s/passed |$/failed |/' tests/RELEASE.md
bad "a soak that failed" soaked 'the same, other seeds: has not passed'
sed -i '/^## The soak/,$ d' tests/RELEASE.md
bad "no soak" soaked 'has no rows'

# released VERSION SEEN: and what was seen before
released() {
  sed -i "s/^\(.define FAIRLOCK_VERSION  *\)\".*/\1\"$1\"/" lock/fairlock.h
  sed -i "/^## Before 1.0.0/,/^## The soak/ s/| [^|]* |\$/| $2 |/" tests/RELEASE.md
}
released 1.0.0-rc9 -
good "a candidate may be released unseen" seen
released 1.0.0 2027-01-31
good "what was seen" seen
released 1.0.0 -
bad "but nothing else" seen 'A client by .*: not seen yet'
released 1.0.0 2027-01-31
sed -i '/^| Each need/s/| 2027-01-31 |$/|  |/' tests/RELEASE.md
bad "one thing that was not seen" seen '^# Each need.*: not seen yet'
sed -i '/^## Before 1.0.0/,/^## The soak/ d' tests/RELEASE.md
released 1.0.0 -
bad "nothing that has to be seen" seen 'has no rows'

# written LIBRARY: a record of mutants that nobody has run; only the sums are looked at here
written() {
  sh tests/mutants/found.sh --due >"$folder/due" 2>&1
  {
    echo "library $1"
    echo "tools $(cat build/mutants/run/tools)"
    sed 's/|/ 0 /; s/|.*//' build/mutants/run/states
  } >"$folder/record"
  echo "sum $(cksum <"$folder/record" | cut -d ' ' -f 1)" >>"$folder/record"
  cp "$folder/record" tests/mutants/found.txt
}
library=$(find lock resp port -name '*.[ch]' -o -name '*.lua' | sort | xargs cat | cksum | cut -d ' ' -f 1)
rm -f tests/mutants/found.txt
bad "no record of mutants" mutants 'none is left out'
written "$library"
good "all mutants were found" mutants
written "$library"
echo >>tests/sim/kept.c
bad "not since a check of the simulator has changed" mutants 'handle.c: .* because the tests'
written 1
bad "all mutants were found in another library" mutants 'for another library'

# fresh STATUS: a root that is not made; it says of what release it should be
fresh() {
  printf '%s\n' 'shift' 'echo "make $* on $RELEASE"' "exit $1" >tests/tools/fresh.sh
}
fresh 0
good "make test passes on the next Debian" trixie
fresh 1
bad "it fails" trixie 'make test firmware board-demo on trixie'
fresh 0
good "the packages leave a Debian as they found it" deb
fresh 1
bad "they do not" deb 'make deb-installed on bookworm'

# Whoever names no step gets all that there are.
sed -i 's/^step_[a-z]*() {/&\n  return 0/' tests/release/release_check.sh
check && sed -n 's/^step_\([a-z]*\)() {$/ok release: \1/p' tests/release/release_check.sh | sort >"$folder/steps" &&
  grep '^ok release: ' "$folder/log" | sort -u | cmp - "$folder/steps"
verdict "release-check: no step is left out" [ $? -eq 0 ]
restore

! QUICK=1 check clean deb trixie suites && grep -q '^skip release: trixie' "$folder/log" &&
  grep -q '^skip release: suites' "$folder/log" && grep -q 'this is no pass: left out: deb trixie suites' "$folder/log"
verdict "release-check: without the suites it does not pass" [ $? -eq 0 ]
sed -i 's|^step_suites() {|&\n  return 0|' tests/release/release_check.sh
git commit -qam 'Suites that pass'
check clean suites
verdict "release-check: with them it does" [ $? -eq 0 ]
restore
sed -i 's|^step_suites() {|&\n  return 1|' tests/release/release_check.sh
bad "suites that fail" suites 'not ok release: suites'
exit $failed
