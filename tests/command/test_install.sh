#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# make install, and a program that is built only with what it has installed.
# shellcheck source=tests/support/lib.sh disable=SC2016,SC2046,SC2086,SC2154,SC1091,SC1003,SC2317
set -u
. tests/support/lib.sh

# install FOLDER VARIABLE=VALUE...: with its pkg-config files in FOLDER
install() {
  PKG_CONFIG_PATH=$1/pkgconfig
  export PKG_CONFIG_PATH
  shift
  expect 0 make install BUILD="$build" "$@"
}

# program >FILE: takes the lock of the server whose port is its argument
program() {
  cat <<'EOF'
#include <fairlock/fairlock.h>
#include <fairlock/port_posix.h>
#include <stdio.h>

static char receive[512], send[512];
static struct port_posix server;
static struct fairlock_client client;
static struct fairlock lock;

int main(int argc, char **argv)
{
  struct fairlock_config config = {
    .receive_buffer = receive, .receive_size = sizeof receive, .send_buffer = send, .send_size = sizeof send};
  port_posix_tcp(&server, "127.0.0.1", argv[argc - 1]);
  if (fairlock_client_init(&client, &config, &server.transport) != FAIRLOCK_OK) return 1;
  if (fairlock_init(&lock, &client, "a") != FAIRLOCK_OK) return 2;
  if (fairlock_acquire(&lock, 1000, FAIRLOCK_RENEW) != FAIRLOCK_OK) return 3;
  printf("token %llu\n", (unsigned long long)fairlock_token(&lock));
  if (fairlock_release(&lock) != FAIRLOCK_OK) return 4;
  if (fairlock_deinit(&lock) != FAIRLOCK_OK) return 5;
  fairlock_client_deinit(&client);
  return 0;
}
EOF
}

# works OPTION... FILE: that program, compiled so
works() {
  rm -f "$dir/program"
  eval expect 0 cc -Wall -Werror -o '"$dir/program" "$@"' "$(pkg-config --libs fairlock)"
  expect 0 "$dir/program" $port
  printed "token $(redis hget 'fairlock:{a}' token)"
}

test_install() {
  install "$dir/prefix/lib" PREFIX="$dir/prefix"
  expect 0 "$dir/prefix/bin/fairlock" run a true
  [ -s "$dir/prefix/share/man/man1/fairlock.1" ] || fail "no manual"
  expect 0 pkg-config --modversion fairlock
  printed "$version"
  program >"$dir/program.c"
  works $(pkg-config --cflags fairlock) "$dir/program.c"
  printf '#include <fairlock/fairlock.h>\nint main() { return FAIRLOCK_OK; }\n' >"$dir/program.cc"
  ! command -v c++ >"$dir/out" ||
    expect 0 c++ -Wall -o "$dir/program++" "$dir/program.cc" $(pkg-config --cflags fairlock)
}

# Headers of the program's own that are called as ours, with the guards that such headers have.
test_headers_of_the_same_names() {
  install "$dir/prefix/lib" PREFIX="$dir/prefix"
  mkdir "$dir/own"
  for header in "$dir"/prefix/include/fairlock/*.h; do
    name=$(basename "$header" .h)
    [ "$name" != port_posix ] || continue
    guard=$(echo "$name" | tr a-z A-Z)_H
    [ "$name" != fairlock ] || guard=OWN_H
    printf '%s\n' "#ifndef $guard" "#define $guard" "struct own_$name { int own; };" '#endif' >"$dir/own/$name.h"
    echo "#include \"$name.h\"" >>"$dir/includes"
    echo "struct own_$name own_$name;" >>"$dir/uses"
  done
  [ "$(wc -l <"$dir/uses")" -ge 6 ] || fail "only $(cat "$dir/uses")"
  program | cat "$dir/includes" - "$dir/uses" >"$dir/before.c"
  program | cat - "$dir/includes" "$dir/uses" >"$dir/after.c"
  for file in before after; do
    works -I"$dir/own" $(pkg-config --cflags fairlock) "$dir/$file.c"
    works $(pkg-config --cflags fairlock) -I"$dir/own" "$dir/$file.c"
  done
}

# What a compiler finds by itself is not named.
test_prefix_of_the_system() {
  install "$dir/root/usr/lib" DESTDIR="$dir/root" PREFIX=/usr
  expect 0 pkg-config --cflags fairlock
  [ -z "$(tr -d ' \n' <"$dir/out")" ] || fail "$(cat "$dir/out")"
}

# removes VARIABLE=VALUE...: uninstall, told of the same folders, all and nothing else
removes() {
  find "$dir" -type d '(' -name pkgconfig -o -path '*/fairlock' ')' >"$dir/folders"
  while read -r folder; do echo kept >"$folder/fairlock-other.pc"; done <"$dir/folders"
  expect 0 make uninstall BUILD="$build" "$@"
  find "$dir" -mindepth 2 -type f ! -name fairlock-other.pc ! -path "$dir/$port/*" >"$dir/left"
  [ ! -s "$dir/left" ] || fail "left: $(cat "$dir/left")"
  [ "$(find "$dir" -name fairlock-other.pc | wc -l)" = 3 ] || fail "it removed what is not its own"
}

test_destdir_and_uninstall() {
  install "$dir/root/opt/fair/lib" DESTDIR="$dir/root" PREFIX=/opt/fair
  grep -q '^prefix=/opt/fair$' "$dir/root/opt/fair/lib/pkgconfig/fairlock.pc" || fail "the prefix is wrong"
  [ "$(find "$dir/root" -type f | wc -l)" = 24 ] || fail "files: $(find "$dir/root" -type f)"
  removes DESTDIR="$dir/root" PREFIX=/opt/fair
}

# Debian's folder of libraries, below PREFIX.
test_libdir() {
  install "$dir/prefix/lib/x86_64-linux-gnu" PREFIX="$dir/prefix" LIBDIR=lib/x86_64-linux-gnu
  expect 0 pkg-config --libs fairlock
  printed "-L$dir/prefix/lib/x86_64-linux-gnu "
  [ ! -e "$dir/prefix/lib/liblock.a" ] && [ ! -e "$dir/prefix/lib/pkgconfig" ] || fail "there is something in lib, too"
  program >"$dir/program.c"
  works $(pkg-config --cflags fairlock) "$dir/program.c"
  removes PREFIX="$dir/prefix" LIBDIR=lib/x86_64-linux-gnu
}

# Each folder by its own path.
test_all_folders() {
  set -- PREFIX="$dir/prefix" BINDIR="$dir/1" LIBDIR="$dir/2" INCLUDEDIR="$dir/3" DATADIR="$dir/4" MANDIR="$dir/5"
  install "$dir/2" "$@"
  [ ! -e "$dir/prefix" ] || fail "in the prefix: $(find "$dir/prefix")"
  for file in 1/fairlock 2/liblock.a 3/fairlock/fairlock.h 4/bash-completion/completions/fairlock 5/man1/fairlock.1; do
    [ -s "$dir/$file" ] || fail "no $file"
  done
  program >"$dir/program.c"
  works $(pkg-config --cflags fairlock) "$dir/program.c"
  removes "$@"
}

# Spaces, and what sed and the shell take for their own.
test_paths_with_spaces() {
  prefix="$dir/my own/&'s prefix"
  install "$prefix/lib/my libs" PREFIX="$prefix" LIBDIR='lib/my libs' MANDIR="$dir/my man"
  expect 0 "$prefix/bin/fairlock" run a true
  [ -s "$dir/my man/man1/fairlock.1" ] || fail "no manual"
  [ "$(pkg-config --variable=libdir fairlock)" = "$prefix/lib/my libs" ] || fail "libdir is $(pkg-config --variable=libdir fairlock)"
  program >"$dir/program.c"
  eval works "$(pkg-config --cflags fairlock)" '"$dir/program.c"'
  removes PREFIX="$prefix" LIBDIR='lib/my libs' MANDIR="$dir/my man"
}

test_destdir_with_spaces() {
  install "$dir/my root/opt/my prefix/lib" DESTDIR="$dir/my root" PREFIX='/opt/my prefix'
  grep -qx 'prefix=/opt/my prefix' "$dir/my root/opt/my prefix/lib/pkgconfig/fairlock.pc" || fail "the prefix is wrong"
  [ "$(find "$dir/my root" -type f | wc -l)" = 24 ] || fail "files: $(find "$dir/my root" -type f)"
  removes DESTDIR="$dir/my root" PREFIX='/opt/my prefix'
}

[ $# -eq 0 ] || run_tests "$@"
run_tests install headers_of_the_same_names prefix_of_the_system destdir_and_uninstall libdir all_folders paths_with_spaces \
  destdir_with_spaces
