#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The library as programs link it: all of it can be used from C++, it takes no names but its own,
# and it can become a part of a shared object.
# shellcheck source=tests/support/lib.sh disable=SC2046,SC2086,SC2154,SC1091,SC2317
set -u
. tests/support/lib.sh

# compile_cxx COMPILER OPTION...: tests/portable/all.cc, with the public headers alone
compile_cxx() {
  expect 0 "$@" -std=c++11 -Wall -Wextra -Wpedantic -Werror -I"$build/include" -c -o "$dir/all.o" tests/portable/all.cc
}

use_from_cxx() {
  compile_cxx "$1"
  tls=
  [ ! -e "$build/include/fairlock/port_openssl.h" ] || tls="-lssl -lcrypto"
  expect 0 "$1" -o "$dir/all" "$dir/all.o" "$build/liblock.a" $tls -pthread
  expect 0 "$dir/all" "$port"
}

test_used_from_cxx_with_gcc() {
  use_from_cxx g++
}

test_used_from_cxx_with_clang() {
  use_from_cxx clang++
}

# What the headers declare, as the compiler sees it: "/* FILE:LINE:NC */ extern int NAME (...);"
declared() {
  for header in "$build"/include/fairlock/*.h; do echo "#include <fairlock/${header##*/}>"; done >"$dir/headers.c"
  expect 0 gcc -std=c11 -I"$build/include" -aux-info "$dir/declared" -c -o "$dir/headers.o" "$dir/headers.c"
  grep -F "/* $build/include/fairlock/" "$dir/declared" | sed 's/^[^*]*\*[^*]*\*\/ *//; s/ (.*//; s/.*[ *]//' | sort -u
}

test_all_functions_are_used_from_cxx() {
  compile_cxx g++ -O0
  declared >"$dir/names"
  grep -qx fairlock_acquire "$dir/names" && grep -qx resp_decode "$dir/names" || fail "no names: $(head -3 "$dir/declared")"
  nm -u "$dir/all.o" | awk '{ print $NF }' | sort -u >"$dir/used"
  unused=$(comm -23 "$dir/names" "$dir/used" | tr '\n' ' ')
  [ -z "$unused" ] || fail "tests/portable/all.cc does not use $unused"
}

# A program that defines a function of the same name as one inside the library would be linked with
# the wrong one.
test_symbols_have_a_prefix() {
  nm -g --defined-only "$build/liblock.a" | awk 'NF == 3 { print $3 }' | sort -u >"$dir/symbols"
  grep -qx fairlock_acquire "$dir/symbols" || fail "no symbols"
  others=$(grep -v -e '^fairlock_' -e '^resp_' -e '^port_' "$dir/symbols" | tr '\n' ' ')
  [ -z "$others" ] || fail "symbols without a prefix: $others"
}

# Whoever reads a call of a function that no public header declares knows which file to open; engine.h says
# it of its own.
test_private_functions_have_the_name_of_their_file() {
  declared >"$dir/names"
  sed -n 's/^[a-z][^(]*[ *]\(fairlock_engine_[a-z_]*\)(.*/\1/p' lock/engine.h >>"$dir/names"
  nm -A -g --defined-only "$build/liblock.a" | sed -n 's/.*:\([a-z_0-9]*\)\.o:.* T \(fairlock_\)/\1 \2/p' >"$dir/defined"
  grep -q '^handle fairlock_' "$dir/defined" || fail "no functions"
  others=$(awk 'FNR == NR { public[$1]; next }
    !($2 in public) && index($2, "fairlock_" ($1 == "texts" ? "script" : $1) "_") != 1 { print $1 ".c:" $2 }' \
    "$dir/names" "$dir/defined" | tr '\n' ' ')
  [ -z "$others" ] || fail "without the name of their file: $others"
}

# python_with_headers: the first Python that has them
python_with_headers() {
  for python in python3 /usr/bin/python3; do
    headers=$($python -c 'import sysconfig; print(sysconfig.get_path("include"))')
    [ ! -e "$headers/Python.h" ] || return 0
  done
  fail "no Python has its headers"
}

# module OPTION...: one of Python's. -z text: nothing in its code is changed when it is loaded.
module() {
  expect 0 cc -shared -fPIC -Wall -Wextra -Werror -I"$build/include" -I"$headers" -o "$dir/doors.so" tests/portable/doors.c \
    -L"$build" -llock -pthread -Wl,-z,text "$@"
}

# With two threads that take turns over one client. It may show what it has of the library, or not.
test_in_a_shared_object() {
  python_with_headers
  module
  module -Wl,--exclude-libs,ALL
  nm -D --defined-only "$dir/doors.so" | awk '{ print $NF }' >"$dir/symbols"
  [ "$(cat "$dir/symbols")" = PyInit_doors ] || fail "it shows $(tr '\n' ' ' <"$dir/symbols")"
  cat >"$dir/turns.py" <<'EOF'
import sys, threading
import doors
doors.open(sys.argv[1])
tokens = [], []
def take(tokens):
    for turn in range(100):
        tokens.append(doors.turn())
threads = [threading.Thread(target=take, args=[list]) for list in tokens]
for thread in threads: thread.start()
for thread in threads: thread.join()
assert all(list == sorted(list) for list in tokens)
print(len(set(tokens[0] + tokens[1])), "turns", max(tokens[0] + tokens[1]))
EOF
  PYTHONPATH=$dir expect 0 timeout 60 $python "$dir/turns.py" "$port"
  printed "200 turns $(redis hget 'fairlock:{door}' token)"
}

# headers_of WHAT: in $dir/WHAT, the public headers of another release, or for other threads
headers_of() {
  mkdir -p "$dir/$1"
  cp -r "$build/include/fairlock" "$dir/$1"
  case $1 in
    release) sed -i 's/^#define PORT_RELEASE .*/#define PORT_RELEASE 1_0_9/' "$dir/$1/fairlock/port.h" ;;
    threads) cp port/single/port_types.h "$dir/$1/fairlock" ;;
  esac
}

# Each line, alone in an object, gives the library memory whose size the headers say.
gives_memory() {
  cat <<'END'
fairlock_client_init(&client, &config, &transport)
fairlock_init(&handle, &client, "door")
fairlock_init_bytes(&handle, &client, "door", 4)
fairlock_init_shared(&shared, &client, "door", 0)
fairlock_init_shared_bytes(&shared, &client, "door", 4, 0)
fairlock_follow(&client, &topology)
fairlock_set_log(&client, &log)
fairlock_use_credentials(&client, &credentials)
fairlock_use_keeping(&client, &keeping)
fairlock_use_downgrading(&client, &downgrading)
fairlock_abandon(&handle, &rest)
fairlock_start_force_release(&handle, &target)
fairlock_start_ask_release(&handle, &target)
fairlock_engine_init(&engine, &config)
fairlock_engine_add(&engine, &handle, "door", 4)
fairlock_engine_add_shared(&engine, &shared, "door", 4, 0)
port_posix_tcp(&socket, "127.0.0.1", "1")
port_posix_unix(&socket, "door")
port_posix_url(&server, "redis://door")
port_posix_read_url(&server, "redis://door")
END
}

# program CALL: in $dir/program.c, one that makes it
program() {
  cat >"$dir/program.c" <<END
#include <fairlock/driver.h>
#include <fairlock/fairlock_abandon.h>
#include <fairlock/fairlock_credentials.h>
#include <fairlock/fairlock_follow.h>
#include <fairlock/fairlock_keep.h>
#include <fairlock/fairlock_log.h>
#include <fairlock/fairlock_operate.h>
#include <fairlock/port_posix.h>
static struct fairlock_client client;
static struct fairlock_engine engine;
static struct fairlock_config config;
static struct port_transport transport;
static struct port_posix socket;
static struct port_posix_server server;
static struct fairlock handle;
static struct fairlock_shared shared;
static struct fairlock_topology topology;
static struct fairlock_log log;
static struct fairlock_credentials credentials;
static struct fairlock_keeping keeping;
static struct fairlock_downgrading downgrading;
static struct fairlock_rest rest;
static struct fairlock_target target;
const void *const all[] = {&client, &engine, &config, &transport, &socket, &server, &handle, &shared, &topology, &log,
                           &credentials, &keeping, &downgrading, &rest, &target};
int main(void)
{
  (void)$1;
  return 0;
}
END
}

# Objects of other headers do not link with this library: nothing else would tell.
test_other_headers_do_not_link() {
  for headers in release threads; do headers_of $headers; done
  gives_memory | while read -r call; do
    program "$call"
    function=${call%%(*}
    expect 0 gcc -I"$build/include" -o "$dir/program" "$dir/program.c" "$build/liblock.a" -pthread
    for headers in release threads; do
      expect 0 gcc -I"$dir/$headers" -c -o "$dir/object.o" "$dir/program.c"
      # that of an engine, or of a transport, is the same for all threads ports
      case $headers:$function in threads:port_* | threads:fairlock_engine_*) continue ;; esac
      expect 1 gcc -o "$dir/program" "$dir/object.o" "$build/liblock.a" -pthread
      case $headers in release) end=_1_0_9 ;; *) end='_[0-9a-z_]*_port_single' ;; esac
      grep -q "undefined .*$function$end" "$dir/err" || fail "$(cat "$dir/err")"
    done
  done || exit 1
}

# Two objects of C++ that have a handle in common, of which one has other headers.
test_other_headers_do_not_link_from_cxx() {
  for headers in release threads; do headers_of $headers; done
  echo '#include <fairlock/fairlock.hpp>
std::uint64_t token_of(fair::handle &door) { return door.token(); }' >"$dir/part.cc"
  echo '#include <fairlock/fairlock.hpp>
std::uint64_t token_of(fair::handle &door);
int main(int, char **arguments) { return (int)token_of(*(fair::handle *)arguments); }' >"$dir/main.cc"
  for compiler in g++ clang++; do
    expect 0 $compiler -std=c++11 -I"$build/include" -c -o "$dir/main.o" "$dir/main.cc"
    expect 0 $compiler -std=c++11 -I"$build/include" -c -o "$dir/part.o" "$dir/part.cc"
    expect 0 $compiler -o "$dir/program" "$dir/main.o" "$dir/part.o" "$build/liblock.a" -pthread
    for headers in release threads; do
      expect 0 $compiler -std=c++11 -I"$dir/$headers" -c -o "$dir/part.o" "$dir/part.cc"
      expect 1 $compiler -o "$dir/program" "$dir/main.o" "$dir/part.o" "$build/liblock.a" -pthread
      said token_of
    done
  done
}

# A program that loads the library finds out before it gives it memory.
test_loaded_library_of_another_release() {
  headers_of release
  expect 0 cc -shared -o "$dir/lock.so" -Wl,--whole-archive "$build/liblock.a" -Wl,--no-whole-archive -pthread
  cat >"$dir/loads.c" <<'END'
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <fairlock/fairlock.h>
int main(int count, char **arguments)
{
  void *library = dlopen(arguments[count - 1], RTLD_NOW);
  const char *(*version)(void);
  *(void **)&version = dlsym(library, PORT_SYMBOL(fairlock_version));
  bool same = strcmp(version(), FAIRLOCK_VERSION) == 0;
  printf("%s %s\n", same ? "same" : "other", dlsym(library, PORT_SYMBOL(fairlock_client_init)) ? "there" : "missing");
  return 0;
}
END
  expect 0 cc -Wall -Wextra -Werror -I"$build/include" -o "$dir/loads" "$dir/loads.c" -ldl
  expect 0 "$dir/loads" "$dir/lock.so"
  printed 'same there'
  sed -i 's/^#define FAIRLOCK_VERSION .*/#define FAIRLOCK_VERSION "1.0.9"/' "$dir/release/fairlock/fairlock.h"
  expect 0 cc -Wall -Wextra -Werror -I"$dir/release" -o "$dir/loads" "$dir/loads.c" -ldl
  expect 0 "$dir/loads" "$dir/lock.so"
  printed 'other missing'
}

[ $# -eq 0 ] || run_tests "$@"
run_tests used_from_cxx_with_gcc used_from_cxx_with_clang all_functions_are_used_from_cxx symbols_have_a_prefix \
  private_functions_have_the_name_of_their_file \
  in_a_shared_object other_headers_do_not_link other_headers_do_not_link_from_cxx loaded_library_of_another_release
