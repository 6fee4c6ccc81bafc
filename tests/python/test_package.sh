#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The files of the Python package: they are the same each time; the wheel, from the file alone, works
# in an empty environment without a compiler; its page and its types say what is so.
# shellcheck source=tests/support/lib.sh disable=SC2154,SC1091,SC2317
set -u
. tests/support/lib.sh
made=$build/python
used=$made/used/bin
package=fairlock-$(echo "$version" | tr -d -)
config=boards/python/pyproject.toml

test_same_bytes() {
  expect 0 sh boards/python/package.sh "$dir/again" "$version" "$made/tools/bin/python"
  expect 0 env ZIG_CACHE="$made/zig" sh boards/python/package.sh "$dir/again" "$version" "$made/tools/bin/python" "$build/zig/ziglang/zig"
  for file in "$package.tar.gz" "$package-cp39-abi3-manylinux2014_x86_64.whl" "$package-cp39-abi3-manylinux2014_aarch64.whl"; do
    cmp "$made/$file" "$dir/again/$file" || fail "other bytes: $file"
  done
}

# asks_for_little BINARY: nothing newer than glibc 2.17, no library but libc's and, in one of the two,
# OpenSSL's; and it has one name that others may see
asks_for_little() {
  readelf -W --version-info "$1" | grep -o 'GLIBC_[0-9.]*' | sort -u >"$dir/asked"
  [ "$({ cat "$dir/asked" && echo GLIBC_2.17; } | sort -V | tail -n 1)" = GLIBC_2.17 ] || fail "$(cat "$dir/asked")"
  tls=
  [ "$module" = _fairlock ] || tls='libcrypto.so.3 libssl.so.3 '
  asked=$(readelf -d "$1" | sed -n 's/.*NEEDED.*\[\(.*\)\]/\1/p' | grep -v -e '^libc\.so' -e '^libpthread\.so' -e '^ld-linux' | sort | tr '\n' ' ')
  [ "$asked" = "$tls" ] || fail "$module needs $asked"
  [ "$(readelf -W --dyn-syms "$1" | awk '$5 == "GLOBAL" && $7 != "UND" { print $8 }')" = "PyInit_$module" ] || fail "other names"
  readelf -h "$1" | grep -qi "machine:.*$(echo "$processor" | tr _ -)" || fail "not for $processor"
}

test_what_the_wheels_ask_for() {
  for processor in x86_64 aarch64; do
    mkdir "$dir/$processor"
    "$used/python" -m zipfile -e "$made/$package-cp39-abi3-manylinux2014_$processor.whl" "$dir/$processor"
    for module in _fairlock _fairlock_tls; do asks_for_little "$dir/$processor/fairlock/$module.abi3.so"; done
    grep -qx "Version: $(echo "$version" | tr -d -)" "$dir/$processor/$package.dist-info/METADATA" || fail "another version"
  done
}

# page: the blocks of README.md, each a program, with the port of this test's server
page() {
  awk -v folder="$dir" -v port="$port" '/^```python/ { n++; on = 1; next } /^```/ { on = 0 }
    on { sub("redis://localhost", "redis://localhost:" port); print >(folder "/page" n ".py") }' boards/python/README.md
}

test_wheel_alone() {
  start_server
  page
  python3 -m venv "$dir/empty"
  expect 0 env CC=false PATH="$dir/empty/bin" "$dir/empty/bin/python" -m pip install -q --disable-pip-version-check \
    --only-binary :all: "$made/$package-cp39-abi3-manylinux2014_x86_64.whl"
  for number in 1 2 3; do
    expect 0 "$dir/empty/bin/python" -W error "$dir/page$number.py"
    [ $number -eq 3 ] || printed 'held, fencing token '
  done
  [ "$(redis hget 'fairlock:{door:7}' token)" -gt 0 ] || fail "there was no hold"
  expect 0 "$dir/empty/bin/python" tests/python/test_servers.py tls # the system has an OpenSSL 3
  expect 1 env FAIRLOCK_TLS=0 "$dir/empty/bin/python" -c "import fairlock; fairlock.Client('rediss://localhost')"
  said 'fairlock.Unsupported: this build has no TLS'
}

# The page goes into the wheel, too, as what an index shows: alone.
test_links_of_the_page() {
  mkdir "$dir/nothing"
  tar -xzOf "$made/$package.tar.gz" "$package/README.md" >"$dir/page.md"
  grep -q '^## From redis-py' "$dir/page.md" || fail "it does not say how to come here"
  expect 0 sh tests/languages/links.sh "$dir/page.md" "$dir/nothing"
  "$used/python" -m zipfile -e "$made/$package-cp39-abi3-manylinux2014_x86_64.whl" "$dir/wheel"
  tail -n "$(wc -l <"$dir/page.md")" "$dir/wheel/$package.dist-info/METADATA" | cmp - "$dir/page.md" || fail "the wheel has another page"
}

test_versions() {
  expect 0 "$used/python" -c 'import fairlock, importlib.metadata as of; print(fairlock.__version__, of.version("fairlock"))'
  printed "$(echo "$version $version" | tr -d -)"
}

# It may be used by programs that are strict with types: the page's own.
test_types() {
  start_server
  page
  expect 0 "$used/mypy" --strict --cache-dir "$dir/cache" boards/python/src/fairlock
  for number in 1 2 3; do expect 0 "$used/mypy" --strict --cache-dir "$dir/cache" "$dir/page$number.py"; done
}

test_layout() {
  expect 0 "$used/ruff" check --no-cache --config "$config" boards/python tests/python
  expect 0 "$used/ruff" format --no-cache --check --config "$config" boards/python tests/python
}

[ $# -eq 0 ] || run_tests "$@"
run_tests same_bytes what_the_wheels_ask_for wheel_alone links_of_the_page versions types layout
