#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# make abi fails for what lock/STABILITY.md forbids between two releases, and for nothing else: each
# line of abi_changes.txt makes a release of a copy of the public headers and the manual.
# shellcheck source=tests/support/verdicts.sh disable=SC2154,SC2319
set -u
. tests/support/verdicts.sh
build=${BUILD:-build}
headers=$(ls boards/fairlock/fairlock.1 resp/*.h lock/*.h port/port.h port/posix/*.h port/openssl/*.h)

# release NAME VERSION: $folder/NAME, with this tree's headers and manual
release() {
  rm -rf "${folder:?}/$1"
  for file in $headers; do
    mkdir -p "$folder/$1/$(dirname "$file")"
    cp "$file" "$folder/$1/$file"
  done
  call_it "$1" "$2"
}

call_it() {
  sed -i "s/^\\(.define FAIRLOCK_VERSION *\\)\".*\"/\\1\"$2\"/" "$folder/$1/lock/fairlock.h"
}

# compare OLD NEW [LIBRARY]: its output is in $folder/log
compare() {
  python3 tests/release/abi.py "$folder/$1" "$folder/$2" ${3:+"$3"} >"$folder/log" 2>&1
}

release old 1.0.0
while IFS='|' read -r verdict what header expression words <&3; do
  case $verdict in '' | \#*) continue ;; esac
  release new 1.1.0
  cp "$folder/new/$header" "$folder/before"
  sed "$expression" "$folder/before" >"$folder/new/$header"
  verdict "abi: the plant is in its place: $what" sh -c "! cmp -s '$folder/before' '$folder/new/$header'"
  compare old new
  status=$?
  grep -q "$words" "$folder/log"
  found=$?
  case $verdict in
    forbidden)
      [ $status -eq 1 ] && [ $found -eq 0 ] && grep -q "^forbidden: .*$words" "$folder/log"
      ;;
    *) [ $status -eq 0 ] && [ $found -eq 0 ] && ! grep -q ^forbidden "$folder/log" ;;
  esac
  verdict "abi: $verdict: $what" [ $? -eq 0 ]
done 3<tests/release/abi_changes.txt

# Who is bound by what.
release new 1.1.0
sed -i '/^int fairlock_try_acquire/d' "$folder/new/lock/fairlock.h"
for pair in '1.0.0 1.1.0 1' '1.4.2 1.10.0 1' '1.0.0 1.1.0-rc1 1' \
  '1.0.0 2.0.0 0' '0.2.0 1.0.0 0' '0.2.0 0.3.0 0' '1.0.0-rc1 1.0.0 0'; do
  # shellcheck disable=SC2086
  set -- $pair
  call_it old "$1"
  call_it new "$2"
  compare old new
  [ $? -eq "$3" ] && grep -q 'function fairlock_try_acquire is gone' "$folder/log"
  verdict "abi: from $1 to $2 a function $([ "$3" = 1 ] && echo 'must not' || echo may) go" [ $? -eq 0 ]
done

# What counts as public: the headers that are installed, and what they do not call private.
python3 - >"$folder/public" 2>"$folder/log" <<'END'
import os, sys
sys.dont_write_bytecode = True  # not into the tree
sys.path.insert(0, "tests/release")
import abi
release = abi.Release(os.getcwd())
print("headers:", *sorted(os.path.relpath(path) for path in release.headers))
print("private:", *sorted(name for name, struct in release.structs.items()
                         if struct.private and "anonymous" not in name))
print("in part:", *sorted(f"{name}({len(struct.members)})" for name, struct in release.structs.items()
                          if name in ("fairlock_log", "fairlock_rest", "fairlock_topology", "port_openssl", "port_posix")))
END
# Of C, that is: fairlock.hpp is not compared.
installed=$(make -s --no-print-directory BUILD="$build" TLS=openssl print-headers | tr ' ' '\n' | grep '\.h$' | sort | tr '\n' ' ')
verdict "abi: public headers are those that are installed" grep -qx "headers: ${installed% }" "$folder/public"
cp "$folder/public" "$folder/log"
verdict "abi: these structs are private" grep -qx "$folder/public" -e \
  'private: fairlock fairlock_client fairlock_credentials_state fairlock_downgrading_state fairlock_engine fairlock_inquiry fairlock_keeping_state fairlock_link fairlock_log_state fairlock_place fairlock_request fairlock_rest_state fairlock_shared_state fairlock_target_state fairlock_topology_state port_event port_mutex resp_decoder'
verdict "abi: and the rest of these" \
  grep -qx 'in part: fairlock_log(2) fairlock_rest(4) fairlock_topology(8) port_openssl(1) port_posix(1)' "$folder/public"

# The library has what the headers declare.
release old 1.0.0
release new 1.1.0
compare old new "$build/liblock.a"
verdict "abi: the library has all functions" [ $? -eq 0 ]
cp "$build/liblock.a" "$folder/liblock.a"
ar d "$folder/liblock.a" status.o
! compare old new "$folder/liblock.a" && grep -q 'not in the library: .*fairlock_status_text' "$folder/log"
verdict "abi: one that it lacks is noticed" [ $? -eq 0 ]

# What make abi takes for the last release.
make -s --no-print-directory BUILD="$build" abi >"$folder/log" 2>&1
verdict "abi: make abi passes" [ $? -eq 0 ]

# Names that have gone since a candidate are in STABILITY.md's table of them. From a release none goes.
sed -n 's/^not promised: .* \([A-Za-z_]*\) is gone$/\1/p' "$folder/log" >"$folder/gone"
sed -n '/^## Names since/,$p' lock/STABILITY.md >"$folder/table"
while read -r name; do
  grep -q "^|.*\`\(struct \)\{0,1\}${name}[(\`]" "$folder/table" || echo "$name"
done <"$folder/gone" | grep -v '_state$' >"$folder/log" # whose own comments called them private
verdict "abi: each name that has gone is in STABILITY.md" [ ! -s "$folder/log" ]

# The newest one, by version.
mkdir -p "$folder/kept/tests/release" "$folder/kept/tests/interop"
cp tests/release/abi.* "$folder/kept/tests/release"
cp -R resp port lock "$folder/kept"
for version in 1.2.0 1.10.0-rc1 1.10.0 1.9.3; do
  release made $version
  mkdir -p "$folder/kept/tests/interop/$version"
  tar -czf "$folder/kept/tests/interop/$version/source.tar.gz" -C "$folder/made" resp port lock
done
cp "$build/liblock.a" "$folder/liblock.a"
(cd "$folder/kept" && sh tests/release/abi.sh "$folder/liblock.a") >"$folder/log" 2>&1
grep -q ' functions of 1\.10\.0 and' "$folder/log"
verdict "abi: the last release is the newest that is kept" [ $? -eq 0 ]
exit $failed
