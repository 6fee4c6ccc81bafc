#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Looks at the sources without running them: both compilers with warnings as errors, gcc's analyser,
# cppcheck, clang-tidy,
# clang-format, shellcheck, and a few rules of our own. Prints what it finds; the exit status says whether it found any.
set -u
status=0
cores=$(nproc)
checks=
includes="-Iresp -Iport -Iport/posix -Iport/openssl -Ilock"
warnings="-Wall -Wextra -Wpedantic -Wconversion -Wshadow -Wmissing-prototypes -Werror"
library=$(sh tests/tools/sources.sh 'resp/*.c' 'lock/*.c' 'port/posix/*.c' 'port/openssl/*.c' 'boards/service/*.c')
single=port/conformance/conformance.c
template=$(mktemp -d) # the folder of its port_types.h
trap 'rm -rf "$template"' EXIT
cp port/template_types.h "$template/port_types.h"
host=$(sh tests/tools/sources.sh 'boards/fairlock/*.c' 'boards/examples/loops/*.c' 'boards/examples/cluster/*.c' 'tests/*.c' |
  grep -v -e '^tests/boards/[^/]*$' -e '^tests/boards/freertos/' -e '^tests/tls/.*bearssl' -e '^tests/proof/' -e mbedtls -e '^tests/portable/zephyr/' -e '^tests/portable/plus_tcp/' -e '^tests/portable/netx/' -e '^tests/portable/riot/' -e '/fuzz_bearssl' -e '/doors\.c$' -e '/mega\.c$')
scripts=$(sh tests/tools/sources.sh '*.sh')
firmware=$(sh tests/tools/sources.sh 'boards/common/*.c' boards/examples/superloop.c boards/examples/lowpower.c \
  boards/examples/keep/keep.c boards/examples/reset.c 'boards/examples/modem/*.c' 'port/lwip/*.c' port/uart/uart.c tests/boards/contender.c 'tests/boards/*_board.c' tests/boards/station.c \
  tests/boards/handshake.c tests/boards/conformance.c)
kernel=$(sh tests/tools/sources.sh boards/examples/tasks.c 'boards/examples/kernel/*.c')
freertos=$(sh tests/tools/sources.sh 'boards/freertos/*.c' 'port/freertos/*.c' 'port/sockets/*.c' 'tests/boards/freertos/*.c')
beside=$(sh tests/tools/sources.sh port/uart/bridge.c port/conformance/peer.c 'port/sockets/*.c' 'tests/boards/*.c' |
  grep -v -e '_board\.c$' -e '/station\.c$' -e '/handshake\.c$' -e '^tests/boards/conformance' -e '^tests/boards/modem/' -e '/freertos/')
bearssl=$(sh tests/tools/sources.sh 'port/bearssl/*.c')
mbedtls=$(sh tests/tools/sources.sh 'port/mbedtls/*.c')
mbedtls_tests=$(sh tests/tools/sources.sh 'tests/tls/*.c' tests/fuzz/fuzz_mbedtls.c tests/boards/conformance/tls.c |
  grep -v -e openssl -e bearssl -e '/secure\.c$')
bearssl_tests=$(sh tests/tools/sources.sh 'tests/tls/*bearssl*.c' tests/fuzz/fuzz_bearssl.c)

# check WHAT COMMAND...
check() {
  what=$1
  shift
  if "$@"; then echo "lint: $what: clean"; else
    echo "lint: $what: FAILED"
    status=1
  fi
}

# each FILES COMMAND...: the command for each file, as many as there are cores, all of them even if one
# fails. No code is made: what make compiles has the same warnings.
each() {
  files=$1
  shift
  # shellcheck disable=SC2086
  printf '%s\n' $files | xargs -n 1 -P "$cores" "$@"
}

# tidy FILES FLAG...: clang-tidy with these flags for the compiler
tidy() {
  files=$1
  shift
  # shellcheck disable=SC2086
  printf '%s\n' $files | xargs -I '{}' -P "$cores" clang-tidy -quiet $checks '{}' -- "$@"
}

# warnings_of COMPILER: those that it has besides
warnings_of() {
  case $1 in gcc) echo "$warnings -Wlogical-op" ;; *) echo "$warnings" ;; esac
}

check "headers as installed" make -s --no-print-directory build/include/fairlock
for compiler in gcc clang; do
  # shellcheck disable=SC2046,SC2086
  check "$compiler, library" each "$library" $compiler -std=c11 $(warnings_of $compiler) $includes -fsyntax-only
  # shellcheck disable=SC2046,SC2086
  check "$compiler, ports" each "$single" $compiler -std=c11 $(warnings_of $compiler) -Iresp -Iport -Iport/single -Ilock -fsyntax-only
  # shellcheck disable=SC2046,SC2086
  check "$compiler, template" each port/template.c $compiler -std=c11 $(warnings_of $compiler) -Iport -I"$template" -fsyntax-only
  # shellcheck disable=SC2046,SC2086
  check "$compiler, library for one task" each "$(echo lock/*.c)" $compiler -std=c11 $(warnings_of $compiler) -Iresp -Iport -Iport/single -Ilock -fsyntax-only
  # shellcheck disable=SC2046,SC2086
  check "$compiler, host and tests" each "$host" $compiler -std=c11 $(warnings_of $compiler) $includes -Ibuild/include -Itests -Itests/server -Itests/failover -Iboards/fairlock -Iboards/service -Iboards/examples/modem -Iport/conformance -Iport/sockets \
    -I/usr/include/lua5.1 -D_DEFAULT_SOURCE -fsyntax-only
done
# stand_in SYSTEM FILES ANALYSED FLAG...: what is compiled for a system, against headers that stand in for
# its own. ANALYSED: which of the files gcc's analyser looks at; '': none.
stand_in() {
  system=$1
  sources=$2
  analysed=$3
  shift 3
  for compiler in gcc clang; do
    # shellcheck disable=SC2046
    check "$compiler, $system" each "$sources" $compiler -std=c11 $(warnings_of $compiler) "$@" -fsyntax-only
  done
  # shellcheck disable=SC2086
  [ -z "$analysed" ] ||
    check "gcc -fanalyzer, $system" each "$analysed" gcc -std=c11 $warnings "$@" -O2 -fanalyzer -c -o /dev/null
  check "clang-tidy, $system" tidy "$sources" -std=c11 "$@"
}

mkdir -p build/lint/nuttx
sh tests/portable/kconfig.sh boards/cmake/zephyr/Kconfig >build/lint/autoconf.h
stand_in Zephyr "$(sh tests/tools/sources.sh 'port/zephyr/*.c' 'boards/cmake/zephyr/*.c' 'tests/portable/zephyr/*.c')" \
  "port/zephyr/threads.c port/zephyr/sockets.c" -Itests/portable/zephyr -Iport/zephyr -Iport -Iresp -Ilock -Itests \
  -Iboards/cmake/zephyr -include build/lint/autoconf.h -DCONFIG_ARCH_POSIX -DCONFIG_DNS_RESOLVER \
  -DCONFIG_FAIRLOCK_LOG_LEVEL=3 -D_DEFAULT_SOURCE
stand_in FreeRTOS-Plus-TCP "$(sh tests/tools/sources.sh 'port/freertos_plus_tcp/*.c' 'tests/portable/plus_tcp/*.c')" \
  "$(echo port/freertos_plus_tcp/*.c)" -Itests/portable/plus_tcp -Iport/freertos_plus_tcp -Iport/freertos -Iport -Itests \
  -D_DEFAULT_SOURCE
stand_in "NetX Duo" "$(sh tests/tools/sources.sh 'port/netx/*.c' 'tests/portable/netx/*.c')" \
  "$(echo port/netx/*.c)" -Itests/portable/netx -Iport/netx -Iport -Iresp -Ilock -Itests -D_DEFAULT_SOURCE
# With lwIP's own headers.
check "lwIP's sources" make -s --no-print-directory build/lwip/src
stand_in RIOT "$(sh tests/tools/sources.sh 'port/riot/*.c' 'boards/riot/example/*.c' 'tests/portable/riot/*.c')" '' \
  -Itests/portable/riot -Iport/riot -Iport/lwip -Iport -Iresp -Ilock -isystem build/lwip/src/include -D_DEFAULT_SOURCE
# As a program of the host's.
sh tests/portable/kconfig.sh boards/nuttx/Kconfig >build/lint/nuttx/config.h
stand_in NuttX "$(sh tests/tools/sources.sh 'boards/nuttx/*.c')" '' \
  -Ibuild/lint -Ibuild/include -Iport/conformance -Iport -Iport/posix -D_DEFAULT_SOURCE
# The core for languages, natively and for WebAssembly.
core="-Iboards/core -Iresp -Iport -Ilock"
# shellcheck disable=SC2086
check "gcc, core" gcc -std=c11 $warnings -Wlogical-op $core -O2 -fanalyzer -c -o /dev/null boards/core/core.c
# shellcheck disable=SC2086
check "clang-tidy, core" tidy "$(echo boards/core/*.c)" --target=wasm32 -ffreestanding -mbulk-memory -std=c11 $core
# shellcheck disable=SC2086
check "cppcheck, core" cppcheck -q --std=c11 --enable=warning,performance,portability --inline-suppr --error-exitcode=1 \
  --suppress=missingIncludeSystem --suppress=comparePointers $core boards/core/core.c boards/core/memory.c
# What the crate for Rust has in C, for one task and for POSIX.
for threads in single posix; do
  # shellcheck disable=SC2086
  check "gcc, boards/rust, port/$threads" gcc -std=c11 $warnings -Iresp -Iport -Iport/$threads -Ilock -O2 -fanalyzer \
    -Wno-missing-prototypes -c -o /dev/null boards/rust/csrc/embedded.c
done
# shellcheck disable=SC2086
check "gcc, boards/rust/csrc/service.c" gcc -std=c11 $warnings -Iboards/service -fsyntax-only boards/rust/csrc/service.c
# TLS, with BearSSL's headers as Debian installs them.
check "keys as C" make -s --no-print-directory build/tests/tls/keys/keys.h
tls="-Itests -Itests/tls -Iport/bearssl -Ibuild/tests/tls/keys -D_DEFAULT_SOURCE"
for compiler in gcc clang; do
  # shellcheck disable=SC2046,SC2086
  check "$compiler, BearSSL" each "$bearssl $bearssl_tests" $compiler -std=c11 $(warnings_of $compiler) $includes $tls -fsyntax-only
done
# shellcheck disable=SC2086
check "gcc -fanalyzer, BearSSL" each "$bearssl" gcc -std=c11 $warnings $includes $tls -O2 -fanalyzer -c -o /dev/null
# shellcheck disable=SC2086
check "clang-tidy, BearSSL" tidy "$bearssl" -std=c11 $includes $tls
# shellcheck disable=SC2086
check "cppcheck, BearSSL" cppcheck -q -j "$cores" --std=c11 --enable=warning,performance,portability --inline-suppr \
  --error-exitcode=1 --suppress=missingIncludeSystem $includes $tls $bearssl
# shellcheck disable=SC2086
check "C99, port/bearssl/port_bearssl.h" gcc -std=c99 -pedantic-errors -Wall $includes -Iport/bearssl -fsyntax-only \
  -x c port/bearssl/port_bearssl.h
# The same with Mbed TLS's.
by="-Itests -Itests/server -Iport/conformance -Iport/mbedtls -DWITH_MBEDTLS -D_DEFAULT_SOURCE"
for compiler in gcc clang; do
  # shellcheck disable=SC2046,SC2086
  check "$compiler, Mbed TLS" each "$mbedtls $mbedtls_tests" $compiler -std=c11 $(warnings_of $compiler) $includes $by -fsyntax-only
done
# shellcheck disable=SC2086
check "gcc -fanalyzer, Mbed TLS" each "$mbedtls" gcc -std=c11 $warnings $includes $by -O2 -fanalyzer -c -o /dev/null
# shellcheck disable=SC2086
check "clang-tidy, Mbed TLS" tidy "$mbedtls" -std=c11 $includes $by
# shellcheck disable=SC2086
check "cppcheck, Mbed TLS" cppcheck -q -j "$cores" --std=c11 --enable=warning,performance,portability --inline-suppr \
  --error-exitcode=1 --suppress=missingIncludeSystem $includes $by $mbedtls
# shellcheck disable=SC2086
check "C99, port/mbedtls/port_mbedtls.h" gcc -std=c99 -pedantic-errors -Wall $includes -Iport/mbedtls -fsyntax-only \
  -x c port/mbedtls/port_mbedtls.h
# The firmware, for one board with each processor. Its makefile compiles it with the same warnings
# by gcc.
lwip="-Iboards/common -isystem build/lwip/src/include"
check "BearSSL's sources" make -s --no-print-directory build/bearssl/src
check "Mbed TLS's sources" make -s --no-print-directory build/mbedtls/library build/tests/tls/keys/ca_der.h
mbedtls_here="-Iport/mbedtls -Iboards/common -isystem build/mbedtls/include -DMBEDTLS_CONFIG_FILE=<mbedtls_config.h>"
# shellcheck disable=SC2086
check "arm-none-eabi-gcc, Mbed TLS without certificates" each "$mbedtls" arm-none-eabi-gcc -std=c11 $warnings -Iport -Iport/single \
  $mbedtls_here -DBY_PSK -mcpu=cortex-m3 -mthumb -Os -c -o /dev/null
check "FreeRTOS's kernel" make -s --no-print-directory build/freertos/kernel

# setting BOARD VARIABLE: what the board's fragment says.
setting() {
  sed -n "s/^$2 := //p" "boards/$1/board.mk"
}

# look BOARD FILES FLAGS...: at files as that board compiles them. Its registers have numbers for
# addresses.
look() {
  board=$1
  files=$2
  shift 2
  defines=$(setting "$board" DEFINES | sed 's/[^ ]*=/-D&/g')
  # shellcheck disable=SC2086
  set -- "$@" -Iresp -Iport -Ilock -Iport/lwip -Iport/uart -Iboards/examples/modem -Iport/bearssl -Iport/conformance -Itests -Ibuild/tests/tls/keys \
    -isystem build/bearssl/inc $mbedtls_here $lwip $defines
  # shellcheck disable=SC2086
  check "clang, $board" each "$files" clang -std=c11 $warnings "$@" -fsyntax-only
  # shellcheck disable=SC2086
  checks=-checks=-performance-no-int-to-ptr
  check "clang-tidy, $board" tidy "$files" -std=c11 "$@"
  checks=
}

arm="--target=armv7m-none-eabi -mcpu=cortex-m3 -isystem /usr/include/newlib"
rv32="--target=riscv32 -march=rv32imac -isystem /usr/lib/picolibc/riscv64-unknown-elf/include"
riscv=$(setting riscv-virt DRIVERS | sed 's|[^ ]*|boards/common/&.c|g')
for file in $riscv; do firmware=$(echo "$firmware" | grep -v -x "$file"); done
# shellcheck disable=SC2086
look mps2-an385 "$firmware" $arm -Iport/single
# shellcheck disable=SC2086
look mps2-an385 "$kernel" $arm -Iboards/examples/kernel
# shellcheck disable=SC2086
look mps2-an385 "$freertos" $arm -Itests/boards/freertos -Itests/boards/freertos/posix -Iport/freertos -Iport/sockets \
  -isystem build/lwip/src/include/compat/posix -isystem build/freertos/kernel/include \
  -isystem build/freertos/kernel/portable/GCC/ARM_CM3
# shellcheck disable=SC2086
check "arm-none-eabi-gcc, template" each port/template.c arm-none-eabi-gcc -std=c11 $warnings -Iport -I"$template" -Os -c -o /dev/null
# shellcheck disable=SC2086
check "arm-none-eabi-gcc, conformance" each "$single" arm-none-eabi-gcc -std=c11 $warnings -Iport -Iport/single -Os -c -o /dev/null
# shellcheck disable=SC2086
look riscv-virt "$riscv" $rv32 -Iport/single
# Symbols of the linker are no objects of C's, and compared all the same.
# shellcheck disable=SC2086
check "cppcheck, firmware" cppcheck -q -j "$cores" --std=c11 --enable=warning,performance,portability --inline-suppr \
  --error-exitcode=1 --suppress=missingIncludeSystem --suppress=comparePointers \
  $includes -Iport/uart -Iboards/examples/modem -Iport/lwip -Iport/conformance -Iboards/common $firmware $kernel $riscv $freertos $beside
for compiler in gcc clang; do
  # shellcheck disable=SC2046,SC2086
  check "$compiler, beside the firmware" each "$beside" $compiler -std=c11 $(warnings_of $compiler) $includes -Itests -Itests/server \
    -Itests/tls -Iport/uart -Iboards/examples/modem -Iport/lwip -Iport/sockets -Iport/conformance -Itests/boards/lwip $lwip -D_DEFAULT_SOURCE -fsyntax-only
done
# shellcheck disable=SC2086
check "gcc -fanalyzer, firmware's ports" each "port/lwip/tcp.c port/uart/uart.c boards/examples/modem/modem.c" gcc -std=c11 $warnings $includes \
  -Iport/lwip -Iport/uart -Iboards/examples/modem -Itests/boards/lwip $lwip -O2 -fanalyzer -c -o /dev/null
for header in $(sh tests/tools/sources.sh resp/resp.h lock/driver.h lock/engine.h 'lock/fairlock*.h' port/port.h port/posix/port_posix.h \
  port/openssl/port_openssl.h port/conformance/conformance.h boards/service/service.h); do
  # shellcheck disable=SC2086
  check "C99, $header" gcc -std=c99 -pedantic-errors -Wall $includes -fsyntax-only -x c "$header"
done
# shellcheck disable=SC2086
check "gcc -fanalyzer" each "$library" gcc -std=c11 $warnings $includes -O2 -fanalyzer -c -o /dev/null
# shellcheck disable=SC2086
check cppcheck cppcheck -q -j "$cores" --std=c11 --enable=warning,performance,portability --inline-suppr --error-exitcode=1 \
  --suppress=missingIncludeSystem $includes $library port/template.c $single
# shellcheck disable=SC2086
check clang-tidy tidy "$library" -std=c11 $includes
# shellcheck disable=SC2046
check clang-format clang-format --dry-run -Werror $(sh tests/tools/sources.sh '*.c' '*.h' '*.hpp' '*.cpp' 'boards/*.cc')
# shellcheck disable=SC2086
check shellcheck shellcheck -S warning -s sh $scripts

# What a suite in shell does not name at its end is never run; test_plain.sh names one more.
all_named() {
  result=0
  for file in $(grep -l '^run_tests ' $scripts); do
    for name in $(sed -n 's/^test_\([a-z0-9_]*\)() {.*/\1/p' "$file"); do
      { sed -n '/^run_tests /,$p' "$file"; cat tests/command/test_plain.sh; } | grep -qw "$name" && continue
      echo "$file: test_$name is not run"
      result=1
    done
  done
  return $result
}
# Each source says its licence, so that it can be copied alone.
all_licensed() {
  ! sh tests/tools/sources.sh '*.c' '*.h' '*.hpp' '*.cc' '*.cpp' '*.lua' '*.sh' '*.py' '*.awk' '*.mk' '*.pml' |
    xargs grep -L '^[^ ]* SPDX-License-Identifier: Apache-2.0' | grep .
}
check "each source says its licence" all_licensed
check "tests in shell are run" all_named

# A suite is run as a program.
all_executable() {
  result=0
  for file in $({ grep -l '^run_tests ' $scripts; printf '%s\n' $scripts | grep '/test_[^/]*$'; } | sort -u); do
    [ -x "$file" ] && continue
    echo "$file: not executable"
    result=1
  done
  return $result
}
check "suites in shell are executable" all_executable
check "shellcheck, .ci/run" shellcheck -S warning -s bash .ci/run
check "no heap, no output, no exit in the library" sh -c \
  "! grep -nE '\\<(malloc|calloc|realloc|free|printf|puts|exit|abort)[(]' $(echo $library | sed -E 's/(port|boards)[^ ]*//g')"
check "no platform ifdef outside port and boards" sh -c \
  "! grep -nE '^#[[:space:]]*(if|ifdef|ifndef).*(__linux|_WIN32|__APPLE__|__arm|__riscv|__unix)' resp/* lock/*.[ch]"
exit $status
