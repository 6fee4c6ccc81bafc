#!/bin/sh
# A tarball is all that its reader needs: tests/dist/check.sh TARBALL, from the top folder of a
# clone. Unpacks it elsewhere, and there builds, installs and runs the unit suites, with a git that
# only notes that it was called.
set -u
version=$(basename "$1" .tar.gz)
version=${version#fairlock-}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
trap 'exit 1' INT TERM HUP
failed=0
# This make's variables are not its reader's.
unset MAKEFLAGS MFLAGS MAKELEVEL MAKEOVERRIDES BUILD WERROR CC CFLAGS CPPFLAGS LDFLAGS

# verdict NAME STATUS
verdict() {
  if [ "$2" -eq 0 ]; then echo "ok tarball: $1"; else
    sed 's/^/# /' "$folder/log" | tail -n 40
    echo "not ok tarball: $1"
    failed=1
  fi
}

tar -xzf "$1" -C "$folder" >"$folder/log" 2>&1
verdict "it unpacks" $?
git ls-tree -r --name-only HEAD | grep -e '\.[ch]$' -e '\.md$' -e '\.sh$' | sort >"$folder/committed"
[ -d "$folder/fairlock-$version" ]
verdict "into a folder named after its version" $?
cd "$folder/fairlock-$version" || exit 1

mkdir "$folder/bin"
printf '%s\n' '#!/bin/sh' "echo \"git \$*\" >>'$folder/git'" 'exit 1' >"$folder/bin/git"
chmod +x "$folder/bin/git"
PATH=$folder/bin:$PATH

sh tests/tools/sources.sh '*.c' '*.h' '*.md' '*.sh' | diff "$folder/committed" - >"$folder/log" 2>&1
verdict "tests/tools/sources.sh lists what git lists" $?
make all >"$folder/log" 2>&1
verdict "it builds" $?
! grep -e -Werror "$folder/log" >"$folder/found"
verdict "a warning is no error" $?
make install DESTDIR="$folder/root" PREFIX=/usr >"$folder/log" 2>&1 &&
  [ "$("$folder/root/usr/bin/fairlock" --version)" = "fairlock $version" ]
verdict "it installs a command of that version" $?
make help >"$folder/log" 2>&1 && grep -q '^  unit ' "$folder/log"
verdict "make help lists its targets" $?
make unit >"$folder/log" 2>&1 && grep -q '^[1-9][0-9]* passed, 0 failed' "$folder/log"
verdict "make unit passes: $(tail -n 1 "$folder/log")" $?
! cp "$folder/git" "$folder/log" 2>/dev/null
verdict "it asks nothing of git" $?
exit $failed
