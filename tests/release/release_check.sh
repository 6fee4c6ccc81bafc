#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Whether this commit can be released: tests/release/release_check.sh [STEP]..., from the top folder of
# a clone. Prints a verdict for each step, or for those that are named, and passes if all are good
# and none was left out. QUICK=1 leaves out deb, trixie and the suites.
# shellcheck source=tests/support/verdicts.sh disable=SC2154
set -u
. tests/support/verdicts.sh
quick=${QUICK:-}
unset MAKEFLAGS MFLAGS MAKELEVEL MAKEOVERRIDES BUILD QUICK
version=$(sed -n 's/^.define FAIRLOCK_VERSION *"\(.*\)"$/\1/p' lock/fairlock.h)
today=$(date -u +%Y-%m-%d)
left_out=

# The versions and dates of README.md's changes, newest first: "1.0.0 2026-12-01".
changes() {
  sed -n '/^## Changes/,$ s/^\*\*\([0-9][^*]*\)\*\*\( [0-9-]*\.\)\{0,1\}.*/\1\2/p' README.md | sed 's/\.$//'
}

step_clean() {
  git status --porcelain >"$folder/log" && [ ! -s "$folder/log" ]
}

# There is no tag of this version, or it is of this commit.
step_tag() {
  tagged=$(git rev-parse -q --verify "refs/tags/v$version^{commit}") || return 0
  echo "v$version is $tagged already" >"$folder/log"
  [ "$tagged" = "$(git rev-parse HEAD)" ]
}

step_version() {
  make -s -j2 all build/fairlock.pc >"$folder/log" 2>&1 && sh tests/release/test_version.sh >"$folder/log" 2>&1
}

# Each entry has a date that there is, and none a later one than those above it, or than today.
step_changes() {
  changes >"$folder/changes"
  after=$today
  : >"$folder/log"
  while read -r entry date; do
    if [ "$(date -u -d "$date" +%Y-%m-%d 2>/dev/null)" != "$date" ] || [ -z "$date" ]; then
      echo "$entry: no date, as in **$entry** $today." >>"$folder/log"
    elif [ "$(printf '%s\n' "$date" "$after" | sort | tail -n 1)" != "$after" ]; then
      echo "$entry: $date is after $after" >>"$folder/log"
    else
      after=$date
    fi
  done <"$folder/changes"
  head -n 1 "$folder/changes" | grep -q "^$version " || echo "the first entry is not that of $version" >>"$folder/log"
  [ ! -s "$folder/log" ]
}

# What was out before this version, a release or a candidate, is in tests/interop, and is what its
# commit has, if that is in this clone. The archive names its commit.
step_kept() {
  last=$(sed 's/ .*//; /^#/d' boards/released.txt | grep -vxF "$version" | tail -n 1)
  archive=tests/interop/$last/source.tar.gz
  {
    echo "what was released last, $last, should be in tests/interop/$last: tests/interop/keep.sh"
    commit=$(gzip -dc "$archive" | git get-tar-commit-id) && tar -xzf "$archive" -C "$folder" lock || return 1
    grep "define FAIRLOCK_VERSION *\"$last\"" "$folder"/lock/*.h || return 1
    git cat-file -e "$commit^{commit}" || return 0
    git_dir=$(git rev-parse --absolute-git-dir)
    keep=$(pwd)/tests/interop/keep.sh
    mkdir "$folder/kept"
    (cd "$folder/kept" && GIT_DIR=$git_dir sh "$keep" "$commit" "$last")
  } >"$folder/log" 2>&1
  cmp "$archive" "$folder/kept/$archive" >>"$folder/log" 2>&1
}

# rows SECTION: those of the table below that heading of tests/RELEASE.md, "what|...|last cell"
rows() {
  awk -F ' *[|] *' -v OFS='|' -v heading="## $1" '
    /^## / { on = $0 == heading; line = 0 }
    on && /^[|]/ && ++line > 2 { $1 = ""; NF--; print substr($0, 2) }' tests/RELEASE.md
}

# code COMMIT FILE: without the version, and C without comments
code() {
  git show "$1:$2" 2>/dev/null | case $2 in
    *.[ch] | *.hpp) gcc -fpreprocessed -dD -E -P -x c - 2>/dev/null ;;
    *) cat ;;
  esac | grep -v '^#define FAIRLOCK_VERSION'
}

# What was soaked is what is released, but for the version, comments, and pages. The page names its
# commit. Of the ports, the soak runs that for POSIX.
step_soaked() {
  soaked=$(sed -n 's/.*Soaked: commit `\([0-9a-f]\{7,40\}\)`.*/\1/p' tests/RELEASE.md)
  rows 'The soak' >"$folder/rows"
  {
    [ -s "$folder/rows" ] && [ -n "$soaked" ] || echo "tests/RELEASE.md names no commit, or has no rows"
    grep -e '|-|' -e '|-$' "$folder/rows" | sed 's/|.*/: no figures yet/'
    grep -v '|passed$' "$folder/rows" | sed 's/|.*/: has not passed/'
    if [ -n "$soaked" ] && git cat-file -e "$soaked^{commit}"; then
      git diff --name-only "$soaked" HEAD -- lock resp ':(glob)port/*.h' port/posix boards/fairlock ':!*.md' ':!*.1' |
        while read -r file; do
          [ "$(code "$soaked" "$file")" = "$(code HEAD "$file")" ] || echo "$file is not what was soaked"
        done
    fi
  } >"$folder/log" 2>&1
  [ ! -s "$folder/log" ]
}

# A candidate may be tried first; what it becomes may not be released before all has been seen.
step_seen() {
  rows 'Before 1.0.0' >"$folder/rows"
  case $version in *-rc*) return 0 ;; esac
  [ -s "$folder/rows" ] || { echo "tests/RELEASE.md has no rows" >"$folder/log"; return 1; }
  ! grep -e '|-*$' "$folder/rows" | sed 's/|.*/: not seen yet/' | grep . >"$folder/log"
}

step_abi() {
  make -s abi >"$folder/log" 2>&1
}

# A superloop's part is written down with each release.
step_sizes() {
  sed -n '$s/ .*//p' boards/released.txt | grep -qxF "$version" ||
    { echo "boards/released.txt has no line for this version" >"$folder/log"; return 1; }
  make -s size >"$folder/log" 2>&1 && make -s build/tests/boards/sizes >"$folder/log" 2>&1 &&
    build/tests/boards/sizes >"$folder/log" 2>&1
}

# The tarball is the same wherever it is made, what is said of it is true, and it can be built.
step_dist() {
  { make -s dist dist-check && make -s test PART="release/test_dist release/test_abi release/test_release"; } >"$folder/log" 2>&1
}

# On a Debian where nothing of this has ever been.
step_deb() {
  mkdir -p build
  make -s fresh RELEASE=bookworm TARGET=deb-installed >build/release-deb.log 2>&1 </dev/null
  status=$?
  tail -n 40 build/release-deb.log >"$folder/log"
  return $status
}

step_suites() {
  { CI=true bash .ci/run && CI=true make test-release && CI=true make model LARGE=1; } >build/release-check.log 2>&1 </dev/null
  status=$?
  tail -n 40 build/release-check.log >"$folder/log"
  return $status
}

# CI left out those mutants and planted faults that this record has.
step_mutants() {
  sh tests/mutants/found.sh --complete >"$folder/log" 2>&1
  status=$?
  echo "make mutants-found finds all and writes them down, to be committed" >>"$folder/log"
  return $status
}

# The counts are shown, whether they pass or not.
step_misra() {
  make -s misra >"$folder/log" 2>&1
  status=$?
  sed 's/^/# /' "$folder/log"
  return $status
}

# On the Debian after the one that CI has: newer servers, compilers, simulators and libraries of TLS.
step_trixie() {
  mkdir -p build
  make -s fresh RELEASE=trixie TARGET='test firmware board-demo' >build/release-trixie.log 2>&1 </dev/null
  status=$?
  tail -n 40 build/release-trixie.log >"$folder/log"
  return $status
}

[ -e .git ] || { echo "make release-check needs a clone of the repository: it looks at a commit" >&2; exit 1; }
echo "fairlock $version, commit $(git rev-parse --short HEAD)"
[ $# -gt 0 ] || set -- clean tag version changes kept soaked seen abi sizes misra mutants dist deb trixie suites clean
for step; do
  if [ "$quick" = 1 ] && case $step in deb | trixie | suites) ;; *) false ;; esac; then
    echo "skip release: $step"
    left_out="$left_out $step"
    continue
  fi
  rm -f "$folder/log"
  verdict "release: $step" "step_$step"
done
if [ -n "$left_out" ]; then
  echo "this is no pass: left out:$left_out" >&2
  failed=1
fi
exit $failed
