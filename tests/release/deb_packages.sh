# SPDX-License-Identifier: Apache-2.0
# The Debian packages, made once for a suite, and used where they are installed. Each reads it with
# ". tests/release/deb_packages.sh" from the top folder, after tests/support/lib.sh.
# shellcheck shell=sh disable=SC2046,SC2086,SC2154
unset SOURCE_DATE_EPOCH DEB_BUILD_OPTIONS

# packages: sets debs, the folder that has them. Whoever makes them is not warned of anything.
packages() {
  debs=$top/build/deb
  [ ! -e "$debs" ] || return 0
  expect 0 make deb BUILD="$top/build"
  ! grep -i warning "$dir/out" "$dir/err" >"$dir/warnings" || fail "make deb warns: $(cat "$dir/warnings")"
}

# of PACKAGE: its file
of() {
  ls "$debs/$1"_*.deb
}

# use_command ROOT: that below this folder
use_command() {
  expect 0 "$1/usr/bin/fairlock" --version
  printed "$version"
  expect 0 "$1/usr/bin/fairlock" run a "$1/usr/bin/fairlock" status a
  printed 'a: held by '
}

# use_library ROOT: README.md's program, by pkg-config and by CMake; two variables say where those look
use_library() {
  awk -v want=c -f tests/release/pages.awk README.md >"$dir/program.c"
  expect 0 cc -o "$dir/program" "$dir/program.c" $(pkg-config --cflags --libs fairlock)
  expect 0 "$dir/program" "$port"
  printed 'done'
  printf '%s\n' 'cmake_minimum_required(VERSION 3.18...3.25)' 'project(user C)' 'find_package(fairlock 1.0 REQUIRED)' \
    'add_executable(program program.c)' 'target_link_libraries(program PRIVATE fairlock::fairlock)' >"$dir/CMakeLists.txt"
  expect 0 cmake -S "$dir" -B "$dir/cmake" ${1:+-DCMAKE_PREFIX_PATH="$1/usr"}
  expect 0 cmake --build "$dir/cmake"
  expect 0 "$dir/cmake/program" "$port"
  printed 'done'
}
