#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The library for Arduino and PlatformIO as it is handed on: the rules of arduino-lint and of
# PlatformIO that can be checked here, the same bytes each time, sketches that compile, as C++11 by two
# compilers, and that run against a real server, beside the words that a core defines as macros.
# shellcheck source=tests/support/lib.sh disable=SC2034,SC2046,SC2086,SC2154,SC1091,SC2317
set -u
. tests/support/lib.sh
. tests/portable/arduino/build.sh
board=$core/board.cpp

# property NAME: of library.properties
property() {
  sed -n "s/^$1=//p" "$package/library.properties"
}

# has PROPERTY PATTERN: an extended regular expression for all of it
has() {
  property "$1" | grep -qxE -e "$2" || fail "library.properties: $1=$(property "$1")"
}

test_properties() {
  semver='(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)(-[0-9A-Za-z-]+(\.[0-9A-Za-z-]+)*)?'
  ! grep -vE '^[a-z]+=.+$' "$package/library.properties" || fail "a line is no field"
  [ -z "$(cut -d = -f 1 "$package/library.properties" | sort | uniq -d)" ] || fail "a field twice"
  has name '[A-Za-z][A-Za-z0-9_.-]{0,31}'
  ! property name | grep -qi -e arduino -e library || fail "the name has a superfluous word"
  has version "$semver"
  [ "$(property version)" = "$version" ] || fail "another version"
  has author '.+'
  has maintainer '.+'
  ! property maintainer | grep -qi arduino || fail "maintained by whom?"
  has sentence '.+'
  has paragraph '.+'
  case $(property paragraph) in *"$(property sentence)"*) fail "paragraph repeats sentence" ;; esac
  has category '(Display|Communication|Signal Input/Output|Sensors|Device Control|Timing|Data Storage|Data Processing|Other)'
  has url 'https?://[^ ]+'
  has architectures '\*'
  has includes "$(property name)\.h"
}

# As arduino-lint looks at a folder: nothing stray, no link, nothing executable, names that all systems have.
test_folder() {
  [ "$(property name)" = "$(basename "$package")" ] || fail "the folder is not called as the library"
  [ "$(ls "$package" | tr '\n' ' ')" = "LICENSE README.md examples keywords.txt library.json library.properties src " ] ||
    fail "$(ls "$package")"
  [ "$(ls "$package/src" | tr '\n' ' ')" = "Fairlock.cpp Fairlock.h FairlockSerial.cpp FairlockSerial.h fairlock " ] || fail "$(ls "$package/src")"
  [ -z "$(find "$package" ! -type f ! -type d -o -type f -perm /111 -o -name '.*')" ] || fail "a link, a program, or hidden"
  [ -z "$(cd "$package" && find . | tr '[:upper:]' '[:lower:]' | sort | uniq -d)" ] || fail "names that differ by case"
  [ -z "$(find "$package/src/fairlock" -mindepth 1 -type d)" ] || fail "not flat"
  for sketch in "$package"/examples/*; do
    [ -f "$sketch/$(basename "$sketch").ino" ] && [ "$(ls "$sketch" | wc -l)" = 1 ] || fail "$sketch"
  done
  ! grep -rnE '# *include *["<](arduino|ARDUINO)\.h' "$package/src" || fail "Arduino.h is written so"
  for file in resp/*.[ch] lock/*.[ch] port/*.h port/single/*.h port/uart/*uart.[ch]; do
    [ "$file" != port/template_types.h ] || continue
    cmp "$file" "$package/src/fairlock/$(basename "$file")" || fail "$file is changed"
  done
}

# One tab between a word and its kind; each word is in the header, and each public function a word.
test_keywords() {
  tab=$(printf '\t')
  ! grep -vE -e "^#" -e "^[A-Za-z_]+$tab(KEYWORD1|KEYWORD2|LITERAL1)\$" "$package/keywords.txt" || fail "no keyword"
  sed '/^#/d' "$package/keywords.txt" | cut -f 1 | while read -r word; do
    grep -qrw -e "$word" "$package"/src/*.h "$package"/src/fairlock/fairlock*.h || fail "$word is nowhere"
  done || exit 1
  sed '/^private:/,/^};/d; /^protected:/,/^};/d; s://.*::' "$package/src/Fairlock.h" | grep -oE '^(  )?[a-z].* [*&]?[a-z][A-Za-z]*\(' |
    grep -v -e '^  *[*/]' -e operator | sed 's/.*[ *&]\([A-Za-z]*\)($/\1/' | sort -u >"$dir/functions"
  [ "$(wc -l <"$dir/functions")" -gt 20 ] || fail "no functions"
  while read -r word; do
    grep -q "^$word$tab" "$package/keywords.txt" || case $word in name | native | transport) ;; *) fail "$word is no keyword" ;; esac
  done <"$dir/functions" || exit 1
}

test_platformio() {
  python3 - "$package" "$version" <<'END' || fail "library.json"
import json, os, re, sys
package, version = sys.argv[1:]
has = json.load(open(package + "/library.json"))
properties = dict(line.rstrip("\n").split("=", 1) for line in open(package + "/library.properties"))
known = {"name", "version", "description", "keywords", "authors", "homepage", "license", "frameworks", "platforms", "headers"}
assert set(has) == known, set(has) ^ known
assert has["version"] == version and has["name"] == properties["name"]
assert re.fullmatch(r"[\w\-\+\.]+", has["version"])
assert has["homepage"] == properties["url"] and has["license"] == properties["license"]
assert has["headers"] == properties["includes"] and os.path.isfile(package + "/src/" + has["headers"])
assert 0 < len(has["description"]) <= 1000 and has["frameworks"] == "arduino" and has["platforms"] == "*"
assert has["keywords"] and all(re.fullmatch(r"[a-z0-9\-]+", word) for word in has["keywords"])
assert has["authors"][0]["maintainer"] and "%(name)s <%(email)s>" % has["authors"][0] == properties["maintainer"]
END
  head -3 LICENSE | grep -q 'Apache License' && cmp LICENSE "$package/LICENSE" || fail "the licence"
}

# A second zip, made elsewhere, at another time, in another time zone, has the same bytes.
test_same_bytes_twice() {
  files=$(cd "$package/src/fairlock" && ls)
  sources=$(for file in $files; do ls resp/$file lock/$file port/$file port/single/$file port/uart/$file 2>/dev/null | head -n 1; done)
  mkdir "$dir/other"
  (umask 077 && TZ=Asia/Tokyo sh boards/arduino/package.sh "$dir/other" "$version" $sources) || fail "package.sh"
  cmp "$build/arduino/Fairlock-$version.zip" "$dir/other/Fairlock-$version.zip" || fail "other bytes"
  diff -r "$package" "$dir/other/Fairlock" || fail "another folder"
  mkdir "$dir/unpacked"
  unzip -q -d "$dir/unpacked" "$build/arduino/Fairlock-$version.zip"
  diff -r "$package" "$dir/unpacked/Fairlock" || fail "the zip has something else"
  [ "$(ls "$dir/unpacked")" = Fairlock ] || fail "more than one folder"
  ! grep -raF -e "$PWD" -e "$(hostname)" -e "$build" "$package" || fail "it says where it was made"
}

# All that a sketch and other libraries see of it are two names in the include path.
test_beside_others() {
  for compiler in g++ clang++; do
    for header in "$package"/src/fairlock/*.h; do
      echo "#include <$(basename "$header")>" >"$dir/other.cpp"
      ! "$compiler" -std=c++11 -I"$core" -I"$package/src" -fsyntax-only "$dir/other.cpp" 2>/dev/null || fail "$header is met"
    done
  done
  mkdir "$dir/sketch"
  for name in port state resp engine internal share timing texts port_types; do
    echo "#error a header of the sketch" >"$dir/sketch/$name.h"
  done
  echo '#include <fairlock/fairlock.h>
#include <Fairlock.h>' >"$dir/sketch/sketch.cpp"
  expect 0 g++ -std=c++11 $strict -I"$dir/sketch" -I"$core" -I"$package/src" -c -o "$dir/sketch.o" "$dir/sketch/sketch.cpp"
  for file in "$package"/src/*.cpp; do
    expect 0 g++ -std=c++11 $strict -I"$dir/sketch" -I"$core" -I"$package/src" -c -o "$dir/sketch.o" "$file"
  done
}

# The words of systems for devices are macros (words.txt), behind the stand-in's own.
test_beside_macros() {
  {
    printf '%s\n' '#include <Arduino.h>' '#include <Client.h>' '#include <string.h>'
    sed '/^#/d; s/^[^:]*: //' tests/portable/words.txt | tr ' ' '\n' | sed '/^$/d; s/.*/#undef &\n#define & @/'
  } >"$dir/words.h"
  [ "$(wc -l <"$dir/words.h")" -gt 500 ] || fail "words.txt cannot be read"
  for compiler in g++ clang++; do
    for file in "$package"/src/*.cpp; do
      expect 0 $compiler -std=c++11 $strict -I"$core" -I"$package/src" -include "$dir/words.h" -c -o "$dir/object.o" "$file"
    done
  done
}

# sketches COMPILER CXX: all of them
sketches() {
  c_of "$1" -O1
  for sketch in "$package"/examples/*; do
    program "$(basename "$sketch")" "$sketch/$(basename "$sketch").ino" "$2" -O1
  done
}

test_sketches_with_gcc() {
  sketches gcc g++
  [ "$(ls "$package/examples" | wc -l)" -gt 2 ] || fail "no sketches"
}

test_sketches_with_clang() {
  sketches clang clang++
}

# What stands on the package's page is a sketch, too.
test_page() {
  c_of gcc -O1
  {
    echo 'byte mac[6]; const IPAddress address(192, 168, 1, 7); void moveTheDoor() {}'
    awk '/^```/ { inside = /cpp/; next } inside' "$package/README.md"
  } >"$dir/page.ino"
  program page "$dir/page.ino" g++ -O1
  ! grep -q '@' "$package/README.md" "$package"/library.* | grep -v example.org || fail "a version is missing"
}

prepare() {
  c_of gcc -O1
  program "$1" "$package/examples/$1/$1.ino" g++ -O1
}

# runs SKETCH NUMBER: in the background, on a board whose console is $dir/NUMBER
runs() {
  SERVER_PORT=$port BUTTON=$dir/button$2 "$dir/$1" >"$dir/$2" 2>&1 &
  ends_with_us $!
}

says() {
  grep -qF -e "$2" "$dir/$1"
}

# Two doors and a host: one at a time, in the order in which they ask.
test_door() {
  prepare Door
  runs Door 1
  first=$!
  runs Door 2
  "$fairlock" run door:7 -- sh -c 'echo host; until [ -e "$1" ]; do sleep 0.05; done' sh "$dir/go" >"$dir/host" &
  host=$!
  eventually grep -q host "$dir/host"
  for board in 1 2; do
    touch "$dir/button$board"
    eventually waits $board door:7
    rm "$dir/button$board"
  done
  says 1 waiting && says 2 waiting && ! says 1 held && ! says 2 held || fail "not in line"
  touch "$dir/go"
  ends 0 $host
  eventually says 1 'pin 3 high'
  ! says 2 'pin 3 high' || says 1 'done' || fail "two doors move"
  eventually says 2 'pin 3 low'
  says 1 'done' && says 2 'done' || fail "not done"
  one=$(sed -n 's/held, token //p' "$dir/1")
  two=$(sed -n 's/held, token //p' "$dir/2")
  [ "$one" -lt "$two" ] || fail "tokens $one, $two"
  [ "$(grep -v -e waiting -e held -e 'pin 3' -e 'done' "$dir/1")" = "" ] || fail "$(cat "$dir/1")"
  kill $first
}

# An operator ends the hold while the door moves: the motor stops when the next renewal tells, long
# before the door has moved for its time, which is longer here.
test_door_stops_at_a_loss() {
  c_of gcc -O1
  sed 's/MOVE_MS = 2000/MOVE_MS = 600000/; s/lease_ms = 20000/lease_ms = 5000/' "$package/examples/Door/Door.ino" >"$dir/long.ino"
  program long "$dir/long.ino" g++ -O1
  runs long 1
  touch "$dir/button1"
  eventually says 1 'pin 3 high'
  rm "$dir/button1"
  expect 0 "$fairlock" break --yes door:7
  eventually says 1 'lost the lock: stopped'
  [ "$(grep -A 1 'pin 3 low' "$dir/1" | tail -n 1)" = 'lost the lock: stopped' ] || fail "$(cat "$dir/1")"
}

# holders NAME: how many there are
holders() {
  "$fairlock" status --json "$1" | python3 -c 'import json, sys; print(len(json.loads(sys.stdin.read())["holders"]))'
}

# Four boards and a host that counts them: at most two at a time.
test_download() {
  prepare Download
  for board in 1 2 3 4; do runs Download $board; done
  most=0
  finished=0
  until [ $finished = 4 ]; do
    count=$(holders firmware)
    [ "$count" -le 2 ] || fail "$count download"
    [ "$count" -le $most ] || most=$count
    finished=$(grep -l '^done' "$dir"/[1234] | wc -l)
  done
  [ $most = 2 ] || fail "never two at a time"
}

# It holds and is connected only between its sleeps.
test_sleep_between() {
  prepare SleepBetween
  runs SleepBetween 1
  eventually says 1 'done'
  eventually unheld channel:4
  eventually sh -c "[ \$(redis-cli -p $port client list | grep -c lib-ver=) -le 1 ] && ! redis-cli -p $port client list | grep -q resp=3"
  [ "$(grep -cx 512 "$dir/1")" = 10 ] || fail "$(cat "$dir/1")"
}

[ $# -eq 0 ] || run_tests "$@"
run_tests properties folder keywords platformio same_bytes_twice beside_others beside_macros sketches_with_gcc sketches_with_clang \
  page door door_stops_at_a_loss download sleep_between
