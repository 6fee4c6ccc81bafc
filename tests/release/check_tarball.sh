#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A tarball is all that its reader needs: tests/release/check_tarball.sh TARBALL, from the top folder of a
# clone. Unpacks it elsewhere, and there builds, installs and runs the unit suites, with a git that
# only notes that it was called.
# shellcheck source=tests/support/verdicts.sh disable=SC2154,SC2319
set -u
version=$(basename "$1" .tar.gz)
version=${version#fairlock-}
. tests/support/verdicts.sh
# This make's variables are not its reader's.
unset MAKEFLAGS MFLAGS MAKELEVEL MAKEOVERRIDES BUILD WERROR CC CFLAGS CPPFLAGS LDFLAGS

tar -xzf "$1" -C "$folder" >"$folder/log" 2>&1
verdict "tarball: it unpacks" [ $? -eq 0 ]
git ls-tree -r --name-only HEAD | grep -e '\.[ch]$' -e '\.md$' -e '\.sh$' | sort >"$folder/committed"
[ -d "$folder/fairlock-$version" ]
verdict "tarball: into a folder named after its version" [ $? -eq 0 ]
cd "$folder/fairlock-$version" || exit 1

mkdir "$folder/bin"
printf '%s\n' '#!/bin/sh' "echo \"git \$*\" >>'$folder/git'" 'exit 1' >"$folder/bin/git"
chmod +x "$folder/bin/git"
PATH=$folder/bin:$PATH

sh tests/tools/sources.sh '*.c' '*.h' '*.md' '*.sh' | diff "$folder/committed" - >"$folder/log" 2>&1
verdict "tarball: tests/tools/sources.sh lists what git lists" [ $? -eq 0 ]
make all >"$folder/log" 2>&1
verdict "tarball: it builds" [ $? -eq 0 ]
! grep -e -Werror "$folder/log" >"$folder/found"
verdict "tarball: a warning is no error" [ $? -eq 0 ]
make install DESTDIR="$folder/root" PREFIX=/usr >"$folder/log" 2>&1 &&
  [ "$("$folder/root/usr/bin/fairlock" --version)" = "fairlock $version, format 1" ]
verdict "tarball: it installs a command of that version" [ $? -eq 0 ]
make help-all >"$folder/log" 2>&1 && grep -q '^  unit ' "$folder/log"
verdict "tarball: make help-all lists its targets" [ $? -eq 0 ]
make unit >"$folder/log" 2>&1 && grep -q '^[1-9][0-9]* passed, 0 failed' "$folder/log"
status=$?
verdict "tarball: make unit passes: $(tail -n 1 "$folder/log")" [ $status -eq 0 ]
! cp "$folder/git" "$folder/log" 2>/dev/null
verdict "tarball: it asks nothing of git" [ $? -eq 0 ]
exit $failed
