#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The library beside other headers: its sources and public headers compile after all the words that
# systems for devices define as macros (words.txt), and every public header can be included from C++.
# shellcheck source=tests/support/lib.sh disable=SC2046,SC2086,SC2154,SC1091,SC2317
set -u
. tests/support/lib.sh
strict="-Wall -Wextra -Wpedantic -Wconversion -Wshadow -Werror"

# What is not ours comes first, and each word then means a syntax error.
words() {
  sed '/^#/d; s/^[^:]*: //' tests/portable/words.txt | tr ' ' '\n' | sed '/^$/d; s/.*/#undef &\n#define & @/'
}

# prepare INCLUDE-LINE...: the words, behind these headers
prepare() {
  printf '%s\n' '#include <stdbool.h>' '#include <stddef.h>' '#include <stdint.h>' '#include <string.h>' "$@" >"$dir/words.h"
  words >>"$dir/words.h"
  [ "$(wc -l <"$dir/words.h")" -gt 500 ] || fail "words.txt cannot be read"
}

# compile SOURCES COMPILER FLAG...: each of them, as that compiler sees it
compile() {
  sources=$1
  shift
  for source in $sources; do
    expect 0 "$@" $strict -Iresp -Iport -Ilock -include "$dir/words.h" -c -o "$dir/object.o" "$source"
  done
}

test_core() {
  prepare
  for compiler in gcc clang 'arm-none-eabi-gcc -mcpu=cortex-m3 -mthumb'; do
    compile "$(echo resp/*.c lock/*.c port/uart/uart.c port/conformance/conformance.c)" $compiler -std=c11 \
      -Iport/single
  done
}

# Transports, after what their own headers bring.
test_transports() {
  prepare '#define _DEFAULT_SOURCE 1' '#include <sys/socket.h>' '#include <errno.h>' '#include <fcntl.h>' '#include <netdb.h>' \
    '#include <netinet/in.h>' '#include <netinet/tcp.h>' '#include <poll.h>' '#include <stdatomic.h>' '#include <stdio.h>' \
    '#include <unistd.h>'
  sed -i '/_DEFAULT_SOURCE/d' "$dir/words.h"
  compile "$(echo port/sockets/*.c)" gcc -std=c11 -D_DEFAULT_SOURCE=1 -Iport/single
  prepare '#include "lwip/dns.h"' '#include "lwip/ip_addr.h"' '#include "lwip/tcp.h"' '#include "lwip/opt.h"'
  compile "$(echo port/lwip/*.c)" gcc -std=c11 -Iport/single -Iboards/common -isystem "$build/lwip/src/include"
  prepare '#include <stdatomic.h>' '#include "FreeRTOS.h"' '#include "semphr.h"' '#include "task.h"' '#include "FreeRTOS_IP.h"' \
    '#include "FreeRTOS_DNS.h"' '#include "FreeRTOS_Sockets.h"'
  compile "$(echo port/freertos_plus_tcp/*.c)" gcc -std=c11 -D_DEFAULT_SOURCE=1 -Iport/freertos -isystem tests/portable/plus_tcp
}

# Some of the words are ThreadX's types, which port/netx uses.
but_types() {
  sed -i -E '/^#(undef|define) (UINT|ULONG|VOID)( |$)/d' "$dir/words.h"
}

# port/netx, on the stand-in for ThreadX and NetX Duo.
test_netx() {
  prepare '#include <nxd_dns.h>'
  but_types
  compile "$(echo port/netx/*.c)" gcc -std=c11 -D_DEFAULT_SOURCE=1 -Iport/netx -isystem tests/portable/netx
}

# The least of FreeRTOS that its port's headers ask for.
stand_in() {
  echo 'typedef struct { void *all[10]; } StaticSemaphore_t; typedef void *SemaphoreHandle_t;' >"$dir/semphr.h"
  : >"$dir/FreeRTOS.h"
}

# theirs HEADER: the lines that include what is not ours
theirs() {
  grep -h '^#include' "$1" | grep -v -e '"port' -e '"fairlock' -e '"engine' -e '"resp' -e '"state'
}

# beside HEADER: the folder of the port_types.h that it goes with, and what else it needs
beside() {
  case $1 in
    port/posix/* | port/openssl/* | lock/*.hpp) echo "-Iport/posix" ;;
    port/lwip/*) echo "-Iport/single -Iboards/common -isystem $build/lwip/src/include" ;;
    port/freertos/*) echo "-Iport/freertos -Iport/lwip -Iboards/common -isystem $build/lwip/src/include -isystem $dir" ;;
    port/freertos_plus_tcp/*) echo "-Iport/freertos -isystem tests/portable/plus_tcp" ;;
    port/riot/*) echo "-Iport/riot -Iport/lwip -Iboards/common -isystem $build/lwip/src/include -isystem tests/portable/riot" ;;
    port/zephyr/*) echo "-Iport/zephyr -isystem tests/portable/zephyr" ;;
    port/netx/*) echo "-Iport/netx -isystem tests/portable/netx" ;;
    *) echo "-Iport/single" ;;
  esac
}

# port_types.h comes with port.h.
headers() {
  for header in port/*/port_*.h port/conformance/conformance.h resp/resp.h lock/driver.h lock/engine.h lock/fairlock*.h lock/fairlock.hpp; do
    case $header in *port_types.h) ;; *) echo "$header" ;; esac
  done
}

# lwIP's sockets are macros with arguments, as in its sys/socket.h. A program may include that first;
# the sources do not.
sockets() {
  for name in 'accept(s, a, l)' 'bind(s, a, l)' 'close(s)' 'connect(s, a, l)' 'fcntl(s, c, v)' 'ioctl(s, c, a)' 'listen(s, b)' \
    'poll(f, n, t)' 'read(s, m, l)' 'recv(s, m, l, f)' 'select(m, r, w, e, t)' 'send(s, d, l, f)' 'shutdown(s, h)' \
    'socket(d, t, p)' 'write(s, d, l)'; do
    echo "#define $name @"
  done
}

# Alone, as the first that a program includes, and after the words.
test_headers_from_cxx() {
  stand_in
  for header in $(headers); do
    echo "#include \"$header\"" >"$dir/alone.cc"
    for compiler in 'g++ -Weffc++ -Wlogical-op' clang++; do
      : >"$dir/words.h"
      compile "$dir/alone.cc" $compiler -std=c++11 -I. $(beside "$header")
      prepare '#include <chrono>' '#include <mutex>' '#include <new>' '#include <system_error>' "$(theirs "$header")"
      case $header in port/netx/*) but_types ;; esac
      case $header in *.hpp) ;; *) sockets >>"$dir/words.h" ;; esac # it has close(), as C++'s own streams do
      compile "$dir/alone.cc" $compiler -std=c++11 -I. $(beside "$header")
    done
  done
}

# What a C++ program calls is what C has compiled.
test_functions_are_c() {
  stand_in
  for header in $(headers | grep -v '\.hpp$'); do
    echo "#include \"$header\"" >"$dir/all.c"
    expect 0 gcc -std=c11 -D_DEFAULT_SOURCE -I. -Iresp -Iport -Ilock $(beside "$header") -aux-info "$dir/declared" -c -o "$dir/all.o" "$dir/all.c"
    grep -F "/* ./$header:" "$dir/declared" | sed 's/^[^*]*\*[^*]*\*\/ *//; s/ (.*//; s/.*[ *]//' | sort -u >"$dir/names"
    {
      cat "$dir/all.c"
      echo 'typedef void (*function)();'
      while read -r name; do echo "extern const function use_$name = reinterpret_cast<function>($name);"; done <"$dir/names"
    } >"$dir/all.cc"
    expect 0 g++ -std=c++11 -I. -Iresp -Iport -Ilock $(beside "$header") -c -o "$dir/all.o" "$dir/all.cc"
    nm -u "$dir/all.o" | awk '{ print $NF }' | sort -u >"$dir/used"
    mangled=$(grep '^_Z' "$dir/used" | tr '\n' ' ')
    [ -z "$mangled" ] || fail "$header: $mangled"
    cat "$dir/used" >>"$dir/all_used"
  done
  grep -qx port_sockets_host "$dir/all_used" && grep -qx fairlock_acquire "$dir/all_used" || fail "no functions"
}

# A word that the library uses has to be found.
test_words_fail() {
  prepare
  echo '#define fairlock_acquire @' >>"$dir/words.h"
  ! (compile lock/client.c gcc -std=c11 -Iport/single) >"$dir/log" 2>&1 || fail "it passes"
}

[ $# -eq 0 ] || run_tests "$@"
run_tests core transports netx headers_from_cxx functions_are_c words_fail
