#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tests/tools/need.sh with an apt-get that only pretends: it waits for a lock, and for nothing else.
# And without apt: it looks for programs, and names what is missing.
# shellcheck source=tests/support/verdicts.sh disable=SC2154,SC2317
set -u
. tests/support/verdicts.sh
unset INSTALL MAKEFLAGS MFLAGS PACKAGES_ASKED

# pretend NAME LINE...: a program of that name, before all others
pretend() {
  name=$1
  shift
  printf '%s\n' '#!/bin/sh' "$@" >"$folder/$name"
  chmod +x "$folder/$name"
}
pretend dpkg-query 'exit 1'
pretend id 'echo 0'
pretend sleep 'echo slept >>"$FOLDER/sleeps"'
export FOLDER="$folder"

# needs NAME STATUS SLEEPS: tests/tools/need.sh has to end so, after so many pauses
needs() {
  rm -f "$folder/sleeps" "$folder/calls"
  env PATH="$folder:$PATH" sh tests/tools/need.sh package >"$folder/log" 2>&1
  status=$?
  sleeps=$(cat "$folder/sleeps" 2>/dev/null | wc -l)
  echo "exit status $status after $sleeps pauses" >>"$folder/log"
  verdict "need: $1" [ "$status $sleeps" = "$2 $3" ]
}

printf '%s\n' 'dlstatus:1:9.2:Retrieving file 1 of 2' 'dlstatus:2:50.0:Retrieving' 'dlstatus:2:60.1:Retrieving' \
  'dlstatus:2:100.0:Retrieving' 'Unpacking a (1) ...' 'pmstatus:a:11.7:Installing a' 'pmstatus:a:33.2:Configuring a' \
  'pmstatus:b:94.1:Installed b' >"$folder/steps"
# Of the three calls there are, update and install fail twice before they work; what only asks for the
# size is asked once.
pretend apt-get 'echo "$*" >>"$FOLDER/calls"' \
  'case "$*" in *--print-uris*) printf "%s\n" "'"'x/a.deb' a.deb 40000000 SHA256:1"'" "'"'x/b.deb' b.deb 5600000 SHA256:2"'"; exit ;; esac' \
  'case $(grep -vc print-uris "$FOLDER/calls") in 3) exit 0 ;; 6) cat "$FOLDER/steps" && exit 0 ;; esac' \
  'echo "E: Could not get lock /var/lib/apt/lists/lock. It is held by process 7 (apt-get)" >&2' 'exit 100'
needs "it waits for another package manager" 0 4
printf '  %s\n' "reading Debian's lists of packages" '45.6 MB to download' 'downloaded: 50 %' 'downloaded: 100 %' \
  'installed: 33 %' 'installed: 94 %' >"$folder/said"
verdict "need: it says how far it is" [ "$(grep '^  ' "$folder/log")" = "$(cat "$folder/said")" ]
pretend apt-get 'echo "E: Could not get lock /var/lib/apt/lists/lock" >&2' 'exit 100'
needs "it does not wait for ever" 1 299
pretend apt-get 'echo "E: Unable to locate package package" >&2' 'exit 100'
needs "it does not wait for a package that is not there" 1 0
verdict "need: it says why" grep -q 'Unable to locate' "$folder/log"

# What will be installed is said before it is; with INSTALL=0 that is all, and the line to run.
pretend apt-get 'cat "$FOLDER/log" >>"$FOLDER/calls"'
needs "it works at once" 0 0
verdict "need: it says first what it installs" [ "$(head -n 1 "$folder/calls")" = 'installing: package' ]
run='apt-get update && apt-get install -y --no-install-recommends package'
for user in 0 7; do
  pretend id "echo $user"
  [ $user = 0 ] || run="sudo sh -c '$run'"
  (
    INSTALL=0
    export INSTALL
    needs "with INSTALL=0 it fails, for user $user" 1 0
    exit $failed
  ) || failed=1
  verdict "need: it says what to run" grep -qF "INSTALL=0; run: $run" "$folder/log"
  verdict "need: it has asked no apt-get" [ ! -e "$folder/calls" ]
  for words in 'env INSTALL=0 make' 'make INSTALL=0'; do
    # shellcheck disable=SC2086
    PATH="$folder:$PATH" $words -s --no-print-directory packages >"$folder/log" 2>&1
    verdict "need: so does $words" [ $? -ne 0 -a ! -e "$folder/calls" ]
    verdict "need: and says so" grep -q 'INSTALL=0; run: .* redis-tools' "$folder/log"
  done
  PATH="$folder:$PATH" make -s --no-print-directory STATIC=1 INSTALL=0 CC=no-such-compiler help >"$folder/log" 2>&1
  verdict "need: and make stops without them" [ $? -ne 0 -a -z "$(grep '^  help ' "$folder/log")" ]
  verdict "need: asked from the Makefile itself, too" grep -q 'INSTALL=0; run: .* musl-tools' "$folder/log"
done
pretend id 'echo 0'

# asks PACKAGE... -- WORD...: make WORD... says once that it lacks these, each once, before it makes
# anything
asks() {
  lacks=
  while [ "$1" != -- ]; do
    lacks="$lacks $1"
    shift
  done
  shift
  PATH="$folder:$PATH" make -s --no-print-directory INSTALL=0 BUILD="$folder/asks" "$@" >"$folder/log" 2>&1
  [ $? -ne 0 ] && [ ! -e "$folder/asks" ] && [ "$(grep -c recommends "$folder/log")" = 1 ] &&
    [ "$(sed -n 's/.*recommends \([^'\'']*\).*/\1/p' "$folder/log")" = "${lacks# }" ]
}
verdict "need: what suites need that other makes build" asks libmbedtls-dev libssl-dev openssl -- test PART=boards/conformance
verdict "need: what several goals need, each once" asks g++ libmbedtls-dev libssl-dev libuv1-dev openssl -- test loops PART=boards/conformance
verdict "need: what a target of a folder needs" asks g++ -- "$folder/asks/examples/guard"
verdict "need: a compiler that is there is not asked for" asks redis-tools -- demo
verdict "need: and one that is not" asks gcc libc6-dev redis-tools -- demo CC=no-such-compiler
PATH="$folder:$PATH" make -n INSTALL=0 BUILD="$folder/asks" test PART=boards/conformance >"$folder/log" 2>&1
verdict "need: make -n asks for nothing" [ $? -eq 0 ]

# A machine without apt has all programs of this one but dpkg's and apt's.
there=$folder/there
mkdir "$there"
IFS=:
for path in $PATH; do
  for program in "$path"/*; do
    case ${program##*/} in
      dpkg* | apt* | dnf | apk | pacman | brew | pkg) ;;
      *) [ ! -x "$program" ] || ln -s "$program" "$there" 2>/dev/null ;;
    esac
  done
done
unset IFS

# elsewhere COMMAND...: on that machine, whose output is in $folder/log
elsewhere() {
  env -u MAKEFLAGS -u MFLAGS -u BUILD -u SERVER -u INSTALL PATH="$there" "$@" >"$folder/log" 2>&1
}

# says LINE...: these are the output
says() {
  printf '%s\n' "$@" | diff - "$folder/log"
}

# Of what the tests need, each thing that the packages have is found; so each line of packages.txt
# that the suites need looks for the right thing.
needed=$(make -s print-packages TARGET=test-all)
verdict "need: the Makefile's list can be read" [ "$(echo "$needed" | wc -w)" -gt 20 ]
# shellcheck disable=SC2086
if dpkg-query -W $needed >/dev/null 2>&1; then
  # shellcheck disable=SC2086
  ! elsewhere sh tests/tools/need.sh $needed
  verdict "need: without apt all is found but apt" [ "$(head -n 1 "$folder/log")" = \
    "missing, by the names of Debian's packages: dpkg-dev" ]
  verdict "need: what that is for is said" grep -q 'make test PART=server/ .* do without' "$folder/log"
fi
sed -n 's/^\([^# ]*\) .*/\1/p' tests/tools/packages.txt >"$folder/listed"
make -s print-packages | tr ' ' '\n' | sed 's/.*=//' | grep -v -x -f "$folder/listed" >"$folder/log"
verdict "need: packages.txt has all packages that are asked for" [ ! -s "$folder/log" ]
verdict "need: each line of it has seven words" awk '!/^#/ && NF != 7 { exit 1 }' tests/tools/packages.txt

# What make demo needs is there: it goes on. It has a build of its own, whose server is in $there.
elsewhere make -s --no-print-directory BUILD="$folder/build" demo
verdict "need: without apt make demo shows what it shows" [ $? -eq 0 ]

# Not there: redis, jq, and what is nowhere else.
rm -f "$there/jq" "$there"/redis-* "$there/original-awk"
missing="missing, by the names of Debian's packages: redis-tools jq original-awk"

# names MANAGER LINE: alone on that machine, it is asked for them so
names() {
  printf '#!/bin/sh\necho ran >>"%s"\n' "$folder/ran" >"$there/$1"
  chmod +x "$there/$1"
  elsewhere sh tests/tools/need.sh git redis-tools jq gcc original-awk
  status=$?
  rm "$there/$1"
  verdict "need: in the words of $1" says "$missing" "  $2" "  not by $1, as far as is known here: original-awk"
  verdict "need: it fails and runs no $1" [ "$status" -eq 1 -a ! -e "$folder/ran" ]
}
names dnf 'as root: dnf install jq redis'
names apk 'as root: apk add jq redis'
names pacman 'as root: pacman -S jq valkey'
names brew 'brew install jq redis'
names pkg 'as root: pkg install jq redis'
elsewhere sh tests/tools/need.sh jq
verdict "need: in the words of all, if there is none" says "missing, by the names of Debian's packages: jq" \
  '  as root: dnf install jq' '  as root: apk add jq' '  as root: pacman -S jq' '  brew install jq' '  as root: pkg install jq'
elsewhere make -s --no-print-directory BUILD="$folder/build" demo
verdict "need: make demo stops, and says why" grep -q "packages: redis-tools" "$folder/log"

# What calls itself otherwise will do.
for program in valkey-server redis-cli; do ln -s /bin/true "$there/$program"; done
elsewhere sh tests/tools/need.sh redis-tools
verdict "need: Valkey is found, too" [ $? -eq 0 ]
exit $failed
