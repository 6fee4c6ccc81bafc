#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The library by CMake: as a part of another build, fetched, installed, and for a Cortex-M3.
# shellcheck source=tests/support/lib.sh disable=SC2154,SC1091,SC2317
set -u
. tests/support/lib.sh
unset MAKEFLAGS MFLAGS MAKELEVEL MAKEOVERRIDES CMAKE_GENERATOR CMAKE_TOOLCHAIN_FILE CFLAGS LDFLAGS
here=$PWD
module=$PWD/boards/cmake

# posix_program FOLDER: takes the lock of a server, whose port is its argument
posix_program() {
  cat >"$1/program.c" <<'END_OF_C'
#include <fairlock/fairlock.h>
#include <fairlock/port_posix.h>
#include <stdio.h>

static unsigned char receive[FAIRLOCK_RECEIVE_SIZE(8, 0)], send[512];
static const struct fairlock_config config = {
    .receive_buffer = receive, .receive_size = sizeof receive, .send_buffer = send, .send_size = sizeof send};
static struct port_posix server;
static struct fairlock_client client;
static struct fairlock door;

int main(int argc, char **argv)
{
  port_posix_tcp(&server, "127.0.0.1", argv[argc - 1]);
  if (fairlock_client_init(&client, &config, &server.transport) != FAIRLOCK_OK) return 1;
  if (fairlock_init(&door, &client, "door") != FAIRLOCK_OK) return 2;
  if (fairlock_acquire(&door, 1000, FAIRLOCK_RENEW) != FAIRLOCK_OK) return 3;
  printf("token %llu\n", (unsigned long long)fairlock_token(&door));
  return fairlock_release(&door);
}
END_OF_C
}

# page NUMBER: that block of CMake's in boards/cmake/README.md
page() {
  awk -v want=cmake -f tests/release/pages.awk "$module/README.md" |
    awk -v wanted="$1" 'BEGIN { block = 1 } block == wanted; /^target_link_libraries/ { block++ }'
}

# project FOLDER LINE...: a CMakeLists.txt that goes on so after it has made a program
project() {
  folder=$1
  shift
  mkdir -p "$folder"
  posix_program "$folder"
  printf '%s\n' 'cmake_minimum_required(VERSION 3.18...3.25)' 'project(user C)' \
    'add_executable(program program.c)' "$@" >"$folder/CMakeLists.txt"
}

# built_by_cmake FOLDER OPTION...: configures and builds it, without a warning of CMake's
built_by_cmake() {
  folder=$1
  shift
  expect 0 cmake -S "$folder" -B "$folder/build" -Werror=dev "$@"
  ! grep -q Warning "$dir/err" || fail "a warning: $(cat "$dir/err")"
  expect 0 cmake --build "$folder/build"
}

# takes_the_lock PROGRAM
takes_the_lock() {
  expect 0 "$1" "$port"
  printed "token $(redis hget 'fairlock:{door}' token)"
}

# needs_the_scripts PROGRAM: it takes the lock when fairlock load has loaded them, and not before
needs_the_scripts() {
  redis script flush >"$dir/set"
  expect 3 "$1" "$port"
  expect 0 "$fairlock" load
  takes_the_lock "$1"
}

test_without_texts() {
  project "$dir/user" 'set(FAIRLOCK_SCRIPTS hashes)' "add_subdirectory($module fairlock)" \
    'target_link_libraries(program PRIVATE fairlock::fairlock)'
  built_by_cmake "$dir/user"
  needs_the_scripts "$dir/user/build/program"
  sed -i 's/FAIRLOCK_SCRIPTS hashes/FAIRLOCK_SCRIPTS none/' "$dir/user/CMakeLists.txt"
  expect 1 cmake -S "$dir/user" -B "$dir/user/other"
  said 'FAIRLOCK_SCRIPTS=none is not known'
}

# All of it, and nothing else: the same names as make's.
test_part_of_a_build() {
  project "$dir/user" "$(page 1)"
  mkdir "$dir/user/third_party"
  ln -s "$here" "$dir/user/third_party/fairlock"
  built_by_cmake "$dir/user"
  takes_the_lock "$dir/user/build/program"
  nm -g --defined-only "$dir/user/build/fairlock/liblock.a" | awk 'NF == 3 { print $3 }' | grep '^[a-z]*_' | sort -u >"$dir/cmake"
  nm -g --defined-only "$build/liblock.a" | awk 'NF == 3 { print $3 }' | grep '^[a-z]*_' | grep -v '^port_openssl' | sort -u >"$dir/make"
  diff "$dir/make" "$dir/cmake" >"$dir/different" || fail "other names than in make's library: $(cat "$dir/different")"
  [ ! -e "$dir/user/build/fairlock/libfairlock_core.a" ] || fail "it compiles what nobody links"
  diff -r -x port_openssl.h "$build/include" "$dir/user/build/fairlock/include" >"$dir/different" || fail "other headers: $(cat "$dir/different")"
}

# A shared object of a larger build, with headers called as ours.
test_in_a_shared_object() {
  project "$dir/user" "add_subdirectory($module fairlock)" 'add_library(plugin MODULE plugin.c)' \
    'target_include_directories(plugin BEFORE PRIVATE .)' \
    'target_link_options(plugin PRIVATE -Wl,-z,text)' 'target_link_libraries(plugin PRIVATE fairlock::fairlock)'
  for name in engine port port_types resp state; do echo '#error the wrong one' >"$dir/user/$name.h"; done
  mv "$dir/user/program.c" "$dir/user/plugin.c"
  echo 'int main(void) { return 0; }' >"$dir/user/program.c"
  built_by_cmake "$dir/user"
}

# As from a server, but from a file: only what the library needs is in it.
test_fetched() {
  tar -czf "$dir/fairlock-$version.tar.gz" -C "$here" lock port resp boards/cmake
  project "$dir/user" "$(page 2 | sed "s|https://...|file://$dir|")"
  built_by_cmake "$dir/user"
  takes_the_lock "$dir/user/build/program"
}

# installed VARIABLE=VALUE...: into $dir/there, and from there to $dir/prefix, as a package manager
# may
installed() {
  expect 0 make -s install BUILD="$build" PREFIX="$dir/there" "$@"
  mv "$dir/there" "$dir/prefix"
}

test_installed() {
  installed
  project "$dir/user" "$(page 3)" "if(NOT fairlock_VERSION STREQUAL \"$version\")" 'message(FATAL_ERROR "version ${fairlock_VERSION}")' 'endif()'
  built_by_cmake "$dir/user" -DCMAKE_PREFIX_PATH="$dir/prefix"
  takes_the_lock "$dir/user/build/program"
}

# As Debian has it.
test_installed_to_other_folders() {
  installed LIBDIR="lib/$(gcc -print-multiarch)" INCLUDEDIR="$dir/there/usr/include"
  project "$dir/user" "$(page 3)"
  built_by_cmake "$dir/user" -DCMAKE_PREFIX_PATH="$dir/prefix"
  takes_the_lock "$dir/user/build/program"
}

# finds WHAT: find_package with these arguments has to find it
finds() {
  printf '%s\n' 'cmake_minimum_required(VERSION 3.19)' 'project(user C)' "find_package(fairlock $1 REQUIRED)" \
    >"$dir/user/CMakeLists.txt"
  cmake -S "$dir/user" -B "$dir/user/build" -DCMAKE_PREFIX_PATH="$dir/prefix" >"$dir/out" 2>"$dir/err"
}

# A candidate counts as what it is a candidate for: CMake can ask for numbers only.
test_installed_versions() {
  installed
  mkdir "$dir/user"
  series=${version%.*}
  numbers=${version%%-*}
  exact=$([ "$numbers" != "$version" ] || echo "$version EXACT")
  for wanted in '' "$numbers" "$exact" "$series" "$series.0" "${version%%.*}...9"; do
    finds "$wanted" || fail "$version is not good enough for '$wanted': $(cat "$dir/err")"
  done
  for wanted in "$series.99" "${version%%.*}.99" 99 "0...<$numbers" 99...100; do
    ! finds "$wanted" || fail "$version is taken for '$wanted'"
    said "version: $version"
  done
  # a later release has what earlier ones with its first number have
  sed -i 's/^set(PACKAGE_VERSION ".*")$/set(PACKAGE_VERSION "1.2.3")/' "$dir"/prefix/lib/cmake/fairlock/fairlockConfigVersion.cmake
  for wanted in 1 1.0 1.0.9 1.2 1.2.3 '1.2.3 EXACT' 1.1...2; do
    finds "$wanted" || fail "1.2.3 is not good enough for '$wanted': $(cat "$dir/err")"
  done
  for wanted in 0.2 1.2.4 1.3 2 2.0 '1.2 EXACT'; do
    ! finds "$wanted" || fail "1.2.3 is taken for '$wanted'"
  done
  ! finds 'COMPONENTS core' || fail "it has found what is not installed"
  said 'has no core'
}

# OpenSSL is asked for by who asks for it.
test_openssl() {
  link='target_link_libraries(program PRIVATE fairlock::openssl)'
  project "$dir/part" 'set(FAIRLOCK_TLS openssl)' "add_subdirectory($module fairlock)" "$link"
  sed -i 's|^int main.*|#include <fairlock/port_openssl.h>\nvoid *volatile used = port_openssl_init;\n&|' "$dir/part/program.c"
  built_by_cmake "$dir/part"
  takes_the_lock "$dir/part/build/program"
  tls=$dir/tls # not in $build, which would go on with TLS
  expect 0 make -s install BUILD="$tls" TLS=openssl PREFIX="$dir/prefix"
  project "$dir/user" 'find_package(fairlock REQUIRED COMPONENTS openssl)' "$link"
  cp "$dir/part/program.c" "$dir/user"
  built_by_cmake "$dir/user" -DCMAKE_PREFIX_PATH="$dir/prefix"
  takes_the_lock "$dir/user/build/program"
}

# Without an operating system there is the core alone, which needs what `make core` needs.
test_cortex_m3() {
  mkdir "$dir/user"
  cat >"$dir/user/main.c" <<'END_OF_C'
#include <fairlock.h>

static uint8_t receive[FAIRLOCK_RECEIVE_SIZE(4, 0)], send[64];
static const struct fairlock_config config = {receive, sizeof receive, send, sizeof send};
static const struct port_transport transport;
static struct fairlock_client client;
static struct fairlock door;

uint32_t port_clock_ms(void) { return 0; }
void port_idle(uint32_t ms) { (void)ms; }

int main(void)
{
  if (fairlock_client_init(&client, &config, &transport) != FAIRLOCK_OK) return 1;
  if (fairlock_init(&door, &client, "door") != FAIRLOCK_OK) return 2;
  return fairlock_try_acquire(&door, FAIRLOCK_RENEW);
}
END_OF_C
  printf '%s\n' 'cmake_minimum_required(VERSION 3.18...3.25)' 'project(firmware C)' "add_subdirectory($module fairlock)" \
    'add_executable(firmware main.c)' 'target_link_libraries(firmware PRIVATE fairlock::core)' \
    'target_link_options(firmware PRIVATE -Wl,--gc-sections --specs=nosys.specs)' \
    'if(TARGET fairlock::fairlock)' 'message(FATAL_ERROR "there is no POSIX")' 'endif()' >"$dir/user/CMakeLists.txt"
  built_by_cmake "$dir/user" -DCMAKE_TOOLCHAIN_FILE="$module/cortex-m3.cmake" -DCMAKE_BUILD_TYPE=MinSizeRel
  readelf -h -A "$dir/user/build/firmware" >"$dir/elf"
  grep -q 'Tag_CPU_name: "Cortex-M3"\|Tag_CPU_arch: v7' "$dir/elf" || fail "for another processor: $(cat "$dir/elf")"
  arm-none-eabi-nm -g --defined-only "$dir/user/build/fairlock/libfairlock_core.a" |
    awk 'NF == 3 { print $3 }' | grep '^[a-z]*_' | sort -u >"$dir/cmake"
  expect 0 make -s core BUILD="$dir/core" CC=arm-none-eabi-gcc CFLAGS='-mcpu=cortex-m3 -mthumb -Os'
  arm-none-eabi-nm -g --defined-only "$dir/core/core/arm-none-eabi-gcc/liblock.a" |
    awk 'NF == 3 { print $3 }' | grep '^[a-z]*_' | sort -u >"$dir/make"
  diff "$dir/make" "$dir/cmake" >"$dir/different" || fail "other names than in make's library: $(cat "$dir/different")"
}

# With threads of the program's own, whose port_types.h is not one of ours.
test_own_threads() {
  mkdir -p "$dir/user/rtos"
  cat >"$dir/user/rtos/port_types.h" <<'END_OF_C'
#define PORT_THREADS user_rtos
struct port_mutex { int number; };
struct port_event { int number; };
END_OF_C
  printf '%s\n' '#include <fairlock.h>' 'struct port_mutex mutex = {.number = 1};' >"$dir/user/main.c"
  printf '%s\n' 'cmake_minimum_required(VERSION 3.18...3.25)' 'project(firmware C)' \
    'set(FAIRLOCK_THREADS ${CMAKE_CURRENT_SOURCE_DIR}/rtos)' "add_subdirectory($module fairlock)" \
    'add_library(firmware STATIC main.c)' 'target_link_libraries(firmware PRIVATE fairlock::core)' >"$dir/user/CMakeLists.txt"
  built_by_cmake "$dir/user"
  expect 0 cmake --build "$dir/user/build" --target fairlock_core
  ! nm -g --defined-only "$dir/user/build/fairlock/libfairlock_core.a" | grep -q port_mutex_init || fail "it has threads of its own"
}

# FreeRTOS with lwIP, by the lines of its page, with a stand-in for FreeRTOS's headers: the application
# compiles, the core has the port's functions, and nothing of the one is missing in the other.
test_freertos() {
  mkdir -p "$dir/user/third_party"
  ln -s "$here" "$dir/user/third_party/fairlock"
  cp boards/freertos/main.c "$dir/user"
  printf '%s\n' '#define NO_SYS 0' '#define LWIP_DNS 0' >"$dir/user/lwipopts.h"
  mkdir "$dir/user/arch"
  printf '%s\n' 'typedef int sys_sem_t, sys_mutex_t, sys_mbox_t, sys_thread_t, sys_prot_t;' >"$dir/user/arch/sys_arch.h"
  : >"$dir/user/arch/cc.h"
  {
    printf '%s\n' 'cmake_minimum_required(VERSION 3.18...3.25)' 'project(firmware C)' 'add_library(program STATIC main.c)' \
      'add_library(freertos_kernel INTERFACE)' "target_include_directories(freertos_kernel SYSTEM INTERFACE $here/tests/portable/plus_tcp)" \
      'add_library(lwip INTERFACE)' "target_include_directories(lwip SYSTEM INTERFACE . $build/lwip/src/include)"
    awk -v want=cmake -f tests/release/pages.awk boards/freertos/README.md
    echo 'target_compile_options(program PRIVATE -Wall -Wextra -Werror)'
  } >"$dir/user/CMakeLists.txt"
  built_by_cmake "$dir/user"
  expect 0 cmake --build "$dir/user/build" --target fairlock_core
  core=$dir/user/build/fairlock/libfairlock_core.a
  nm -u "$dir/user/build/libprogram.a" | awk '$2 ~ /^(fairlock|resp)_/ { print $2 }' | sort -u >"$dir/needed"
  nm --defined-only "$core" | awk '$2 == "T" { print $3 }' | sort >"$dir/there"
  [ -z "$(comm -23 "$dir/needed" "$dir/there")" ] || fail "it lacks $(comm -23 "$dir/needed" "$dir/there")"
  grep -qx 'fairlock_client_init_.*_port_freertos' "$dir/needed" || fail "it would link with another core"
  grep -qx port_mutex_init "$dir/there" || fail "the core has no threads"
  sed -i 's|port/freertos)|port/lwip)|' "$dir/user/CMakeLists.txt"
  expect 1 cmake -S "$dir/user" -B "$dir/user/other"
  said 'FAIRLOCK_THREADS=port/lwip is no folder with a port_types.h'
}

# listed FILE NAME...: FILE names these sources once each, all of the core, and nothing else
listed() {
  file=$1
  shift
  for source in "$here"/resp/*.c "$here"/lock/*.c "$@"; do echo "$source"; done | sort >"$dir/wanted"
  sort "$file" | diff "$dir/wanted" - >"$dir/different" || fail "other sources: $(cat "$dir/different")"
}

# without_texts FILE NAME...: the same, but for the scripts' texts
without_texts() {
  file=$1
  shift
  { grep -v -x -e "$here/lock/scripts/hashes.c" "$file"; echo "$here/lock/scripts.c"; echo "$here/lock/texts.c"; } >"$dir/with"
  grep -qx "$here/lock/scripts/hashes.c" "$file" || fail "no hashes: $(cat "$file")"
  listed "$dir/with" "$@"
}

# headers_of_the_example FOLDER: what it includes of ESP-IDF's, as far as it uses that
headers_of_the_example() {
  for name in esp_event esp_netif nvs_flash protocol_examples_common; do
    printf '#include <esp_err.h>\n' >"$1/$name.h"
  done
  echo 'typedef int esp_err_t;
#define ESP_ERROR_CHECK(call) ((void)(call))' >"$1/esp_err.h"
  echo 'esp_err_t esp_event_loop_create_default(void);' >>"$1/esp_event.h"
  echo 'esp_err_t esp_netif_init(void);' >>"$1/esp_netif.h"
  echo 'esp_err_t nvs_flash_init(void);' >>"$1/nvs_flash.h"
  echo 'esp_err_t example_connect(void); void app_main(void);' >>"$1/protocol_examples_common.h"
  echo '#include <stdio.h>
#define ESP_LOGE(tag, ...) (printf("%s: ", tag), printf(__VA_ARGS__))
#define ESP_LOGW ESP_LOGE
#define ESP_LOGI ESP_LOGE' >"$1/esp_log.h"
  sh tests/portable/kconfig.sh "$module/esp-idf/fairlock/Kconfig" >"$1/sdkconfig.h"
}

# The component of ESP-IDF, with its functions as little more than a note of what they are called
# with; there is no ESP-IDF here. It reads a component twice: as a script, then in the build. Its
# headers are where ESP-IDF has them: FreeRTOS's in freertos/, and poll() in sys/poll.h alone. The example compiles
# with it, and both also with TLS, by this machine's Mbed TLS.
test_component_of_esp_idf() {
  component=$module/esp-idf/fairlock
  mkdir "$dir/user"
  cat >"$dir/idf.cmake" <<'END_OF_CMAKE'
function(write_list file)
  file(WRITE "${file}" "")
  foreach(entry ${ARGN})
    get_filename_component(entry "${entry}" ABSOLUTE)
    file(APPEND "${file}" "${entry}\n")
  endforeach()
endfunction()
macro(idf_component_register)
  cmake_parse_arguments(heard "" "" "SRCS;INCLUDE_DIRS;REQUIRES;PRIV_REQUIRES" ${ARGN})
  if(heard_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "not known: ${heard_UNPARSED_ARGUMENTS}")
  endif()
  write_list("${OUT}" ${heard_SRCS})
  if(CMAKE_SCRIPT_MODE_FILE)
    return()
  endif()
  set(COMPONENT_LIB component)
  add_library(component INTERFACE)
  target_include_directories(component INTERFACE ${heard_INCLUDE_DIRS})
  add_library(port STATIC ${heard_SRCS})
  target_compile_definitions(port PRIVATE ESP_PLATFORM _DEFAULT_SOURCE)
  target_compile_options(port PRIVATE -Wall -Wextra -Werror)
  target_include_directories(port PRIVATE ${OUT}.headers ${heard_INCLUDE_DIRS})
endmacro()
END_OF_CMAKE
  printf 'include(%s)\ninclude(%s)\n' "$dir/idf.cmake" "$component/CMakeLists.txt" >"$dir/script.cmake"
  (cd "$component" && expect 0 cmake -DOUT="$dir/script" -P "$dir/script.cmake") || exit 1
  listed "$dir/script" "$here/port/freertos/threads.c" "$here/port/sockets/names.c" "$here/port/sockets/sockets.c" "$component/clock.c"
  headers=$dir/build.headers
  mkdir -p "$headers/freertos"
  echo '#include <stdint.h>
int64_t esp_timer_get_time(void);' >"$headers/esp_timer.h"
  echo '#error there is sys/poll.h alone' >"$headers/poll.h"
  cat >"$headers/freertos/FreeRTOS.h" <<'END_OF_C'
#include <stdint.h>
typedef uint32_t TickType_t;
#define portMAX_DELAY UINT32_MAX
#define pdMS_TO_TICKS(ms) ((TickType_t)(ms) / 10U)
END_OF_C
  cat >"$headers/freertos/semphr.h" <<'END_OF_C'
typedef struct { int count; } StaticSemaphore_t, *SemaphoreHandle_t;
SemaphoreHandle_t xSemaphoreCreateMutexStatic(StaticSemaphore_t *memory);
SemaphoreHandle_t xSemaphoreCreateBinaryStatic(StaticSemaphore_t *memory);
int xSemaphoreTake(SemaphoreHandle_t semaphore, TickType_t ticks);
int xSemaphoreGive(SemaphoreHandle_t semaphore);
void vSemaphoreDelete(SemaphoreHandle_t semaphore);
END_OF_C
  cat >"$headers/freertos/task.h" <<'END_OF_C'
#define pdPASS 1
void *xTaskGetCurrentTaskHandle(void);
int xTaskCreate(void (*task)(void *), const char *name, uint32_t stack, void *context, unsigned priority, void **handle);
void vTaskDelay(TickType_t ticks);
void vTaskDelete(void *task);
END_OF_C
  headers_of_the_example "$headers"
  printf '%s\n' 'cmake_minimum_required(VERSION 3.18...3.25)' 'project(esp C)' "set(OUT $dir/build)" \
    "include($dir/idf.cmake)" "add_subdirectory($component fairlock)" \
    "add_library(main STATIC $module/esp-idf/example/main/main.c)" \
    'target_compile_options(main PRIVATE -Wall -Wextra -Werror)' 'target_compile_definitions(main PRIVATE ESP_PLATFORM)' "target_include_directories(main PRIVATE $headers)" \
    'target_link_libraries(main PRIVATE component)' >"$dir/user/CMakeLists.txt"
  built_by_cmake "$dir/user"
  listed "$dir/build" "$here/port/freertos/threads.c" "$here/port/sockets/names.c" "$here/port/sockets/sockets.c" "$component/clock.c"
  sed -i '2i set(CONFIG_FAIRLOCK_HASHES_ONLY y)' "$dir/user/CMakeLists.txt"
  built_by_cmake "$dir/user"
  without_texts "$dir/build" "$here/port/freertos/threads.c" "$here/port/sockets/names.c" "$here/port/sockets/sockets.c" "$component/clock.c"
  sed -i 2d "$dir/user/CMakeLists.txt"
  printf '#include <stddef.h>\nvoid esp_fill_random(void *data, size_t size);\n' >"$headers/esp_random.h"
  echo '#define CONFIG_FAIRLOCK_TLS 1' >>"$headers/sdkconfig.h"
  sed -i '2i set(CONFIG_FAIRLOCK_TLS y)' "$dir/user/CMakeLists.txt"
  built_by_cmake "$dir/user"
  listed "$dir/build" "$here"/port/mbedtls/*.c "$here/port/freertos/threads.c" "$here/port/sockets/names.c" "$here/port/sockets/sockets.c" \
    "$component/clock.c" "$component/tls.c"
}

# on_stand_in FOLDER SOURCE: a CMake project of this program and Zephyr's module, with functions that
# stand in for Zephyr's, and its calls on POSIX
on_stand_in() {
  mkdir -p "$1"
  sh tests/portable/kconfig.sh "$module/zephyr/Kconfig" |
    sed -e "s/\(SERVER_PORT\) .*/\1 $port/" -e 's/\(SERVER_HOST\) .*/\1 "127.0.0.1"/' >"$1/autoconf.h"
  cat >"$1/CMakeLists.txt" <<END_OF_CMAKE
cmake_minimum_required(VERSION 3.18...3.25)
project(zephyr C CXX)
set(CMAKE_C_STANDARD 11)
set(CONFIG_FAIRLOCK y)
set(CONFIG_FAIRLOCK_CLIENT y)
find_package(Threads REQUIRED)
add_library(zephyr INTERFACE)
target_include_directories(zephyr INTERFACE $here/tests/portable/zephyr)
target_compile_definitions(zephyr INTERFACE _DEFAULT_SOURCE CONFIG_ARCH_POSIX CONFIG_FAIRLOCK_LOG_LEVEL=3)
target_compile_options(zephyr INTERFACE -include $1/autoconf.h -Wall -Wextra -Werror)
target_link_libraries(zephyr INTERFACE Threads::Threads)
macro(zephyr_library_named name)
  set(library \${name})
  add_library(\${name} STATIC)
  target_link_libraries(\${name} PUBLIC zephyr)
endmacro()
function(zephyr_library_sources)
  target_sources(\${library} PRIVATE \${ARGN})
  string(REPLACE ";" "\\n" list "\${ARGN}")
  file(APPEND $1/sources "\${list}\\n")
endfunction()
function(zephyr_library_sources_ifdef condition)
  if(\${condition})
    zephyr_library_sources(\${ARGN})
  endif()
endfunction()
function(zephyr_include_directories)
  target_include_directories(zephyr INTERFACE \${ARGN})
endfunction()
file(REMOVE $1/sources)
add_subdirectory($module/zephyr module)
add_executable(program $2 $here/tests/portable/zephyr/stand_in.c)
target_link_libraries(program PRIVATE fairlock zephyr)
END_OF_CMAKE
}

# The module of Zephyr likewise. With the calls of its kernel and sockets on POSIX, it runs here: a
# program with a client of its own, and the sample, whose client is Kconfig's.
test_module_of_zephyr() {
  on_stand_in "$dir/user" program.c
  posix_program "$dir/user"
  sed -i -e 's|fairlock/port_posix\.h|port_zephyr.h|' -e 's|fairlock/fairlock\.h|fairlock.h|' \
    -e 's/port_posix/port_zephyr/' "$dir/user/program.c"
  built_by_cmake "$dir/user"
  listed "$dir/user/sources" "$here/port/zephyr/threads.c" "$here/port/zephyr/sockets.c" "$module/zephyr/client.c"
  takes_the_lock "$dir/user/build/program"
  sed -i '2i set(CONFIG_FAIRLOCK_HASHES_ONLY y)' "$dir/user/CMakeLists.txt"
  built_by_cmake "$dir/user"
  without_texts "$dir/user/sources" "$here/port/zephyr/threads.c" "$here/port/zephyr/sockets.c" "$module/zephyr/client.c"
  needs_the_scripts "$dir/user/build/program"
  nm -g --defined-only "$dir/user/build/module/libfairlock.a" |
    awk 'NF == 3 && $3 !~ /^(fairlock|resp|port)_/ { print $3 }' >"$dir/foreign"
  [ ! -s "$dir/foreign" ] || fail "names that a program may have as well: $(cat "$dir/foreign")"
  for path in $(sed -n -e 's/^ *\(cmake\|kconfig\): //p' -e 's/^ *- //p' "$module/zephyr/module.yml"); do
    [ -e "$module/$path" ] || fail "module.yml names $path, which is not there"
  done
}

test_sample_of_zephyr() {
  on_stand_in "$dir/user" "$module/zephyr/sample/src/main.c"
  built_by_cmake "$dir/user"
  expect 0 "$dir/user/build/program"
  printed '<inf> fairlock: connected'
  printed 'done'
  [ "$(grep -c '^held, fencing token [0-9]' "$dir/out")" -eq 10 ] || fail "not ten holds: $(cat "$dir/out")"
  printed "token $(redis hget 'fairlock:{door:7}' token)"
  [ "$(grep -c '^released: done' "$dir/out")" -eq 10 ] || fail "not ten releases: $(cat "$dir/out")"
  sed -i 's/\(FAIRLOCK_WAITER_MS\) .*/\1 1/' "$dir/user/autoconf.h"
  built_by_cmake "$dir/user"
  expect 0 "$dir/user/build/program"
  printed '<err> fairlock: CONFIG_FAIRLOCK_...: '
}

# page_takes_the_lock FILE: the program of the page, as it stands there
page_takes_the_lock() {
  on_stand_in "$dir/user" "$1"
  awk -v want=c -f tests/release/pages.awk "$module/zephyr/README.md" >"$dir/user/$1"
  built_by_cmake "$dir/user"
  expect 0 "$dir/user/build/program"
  [ "$(redis hget 'fairlock:{door:7}' token)" -gt 0 ] || fail "there was no hold"
  [ "$(redis exists door:7)" = 0 ] || fail "it still holds"
}

test_page_of_zephyr() {
  page_takes_the_lock program.c
}

# As an application with CONFIG_CPP has it.
test_page_of_zephyr_in_cxx() {
  page_takes_the_lock program.cc
}

# Each option that is read or set is one of Kconfig's, and the sample sets what Kconfig asks for, and
# enough of a stack for what it calls.
test_configuration_of_zephyr() {
  sample=$module/zephyr/sample
  sed -n 's/^\(menu\)\{0,1\}config /CONFIG_/p' "$module/zephyr/Kconfig" | sort -u >"$dir/there"
  grep -oh 'CONFIG_FAIRLOCK[A-Z_]*[A-Z]' "$module"/zephyr/*.c "$module"/zephyr/*.h "$module"/zephyr/CMakeLists.txt \
    "$module/zephyr/README.md" "$sample/README.md" "$sample/prj.conf" | grep -vx CONFIG_FAIRLOCK_LOG_LEVEL | sort -u >"$dir/named"
  [ "$(wc -l <"$dir/named")" -gt 10 ] || fail "only $(cat "$dir/named")"
  [ -z "$(comm -13 "$dir/there" "$dir/named")" ] || fail "not in Kconfig: $(comm -13 "$dir/there" "$dir/named")"
  for option in FAIRLOCK NETWORKING NET_TCP NET_SOCKETS NET_IPV4; do
    grep -qx "CONFIG_$option=y" "$sample/prj.conf" || fail "the sample does not set CONFIG_$option"
  done
  depends=$(grep 'depends on' "$module/zephyr/Kconfig")
  for option in NET_TCP NET_SOCKETS NET_IPV4 'NET_SOCKETS_POLL_MAX != 1'; do
    echo "$depends" | grep -qF "$option" || fail "nothing depends on $option"
  done
  ! echo "$depends" | grep -q POSIX_API || fail "it asks for POSIX_API"
  [ "$(sed -n 's/^CONFIG_MAIN_STACK_SIZE=//p' "$sample/prj.conf")" -ge 2048 ] || fail "main() has too small a stack"
}

# stand_in_of_the_sdk FOLDER: as little of pico_time and pico_cyw43_arch as the target and its example
# use, and of lwIP's arch/cc.h. Time passes in waits alone; what is called is noted.
stand_in_of_the_sdk() {
  mkdir -p "$1/pico" "$1/arch"
  cat >"$1/pico/time.h" <<'END_OF_C'
#include <stdbool.h>
#include <stdint.h>
typedef uint64_t absolute_time_t;
uint64_t time_us_64(void);
absolute_time_t make_timeout_time_ms(uint32_t ms);
bool time_reached(absolute_time_t time);
bool best_effort_wfe_or_timeout(absolute_time_t until);
END_OF_C
  cat >"$1/pico/cyw43_arch.h" <<'END_OF_C'
#include "pico/time.h"
#define CYW43_AUTH_WPA2_AES_PSK 4
int cyw43_arch_init(void);
void cyw43_arch_deinit(void);
void cyw43_arch_enable_sta_mode(void);
int cyw43_arch_wifi_connect_timeout_ms(const char *ssid, const char *password, uint32_t auth, uint32_t ms);
void cyw43_arch_poll(void);
void cyw43_arch_wait_for_work_until(absolute_time_t until);
void cyw43_arch_lwip_begin(void);
void cyw43_arch_lwip_end(void);
END_OF_C
  printf '#include "pico/time.h"\nbool stdio_init_all(void);\n' >"$1/pico/stdlib.h"
  printf '#define LWIP_PLATFORM_DIAG(x)\n#define LWIP_PLATFORM_ASSERT(x)\n#define LWIP_RAND() 4\ntypedef int sys_prot_t;\n' >"$1/arch/cc.h"
  cat >"$1/stand_in.c" <<'END_OF_C'
#include "pico/cyw43_arch.h"
#include "pico/stdlib.h"
#include "stand_in.h"
char called[64];
uint64_t now = 5000000000000U;
uint32_t sys_now(void);
int sys_arch_protect(void);
void sys_arch_unprotect(int state);
int sys_arch_protect(void) { return 0; }
void sys_arch_unprotect(int state) { (void)state; }
static void note(char what) { for (int i = 0; i < 60; i++) if (called[i] == 0) { called[i] = what; return; } }
uint32_t sys_now(void) { return (uint32_t)(now / 1000U); }
uint64_t time_us_64(void) { return now; }
absolute_time_t make_timeout_time_ms(uint32_t ms) { return now + ms * 1000ULL; }
bool time_reached(absolute_time_t time) { return now >= time; }
bool best_effort_wfe_or_timeout(absolute_time_t until) { note('e'); now = until; return true; }
int cyw43_arch_init(void) { return 0; }
void cyw43_arch_deinit(void) { note('d'); }
void cyw43_arch_enable_sta_mode(void) { note('s'); }
int cyw43_arch_wifi_connect_timeout_ms(const char *ssid, const char *password, uint32_t auth, uint32_t ms)
{ (void)ssid; (void)password; (void)auth; (void)ms; return 0; }
void cyw43_arch_poll(void) { note('p'); }
void cyw43_arch_wait_for_work_until(absolute_time_t until) { note('w'); now = until; }
void cyw43_arch_lwip_begin(void) { note('b'); }
void cyw43_arch_lwip_end(void) { note('f'); }
bool stdio_init_all(void) { return true; }
END_OF_C
  printf '#include <stdint.h>\nextern char called[64];\nextern uint64_t now;\n' >"$1/stand_in.h"
}

# targets_of_the_sdk FOLDER: a CMake project of the SDK's targets, and the example on both of them
targets_of_the_sdk() {
  mkdir -p "$1"
  cat >"$1/CMakeLists.txt" <<END_OF_CMAKE
cmake_minimum_required(VERSION 3.18...3.25)
project(pico C)
set(CMAKE_C_STANDARD 11)
file(GLOB lwip $build/lwip/src/core/*.c $build/lwip/src/core/ipv4/*.c $build/lwip/src/netif/ethernet.c)
add_library(pico_stdlib INTERFACE)
foreach(architecture poll threadsafe_background)
  add_library(pico_cyw43_arch_lwip_\${architecture} INTERFACE)
  target_sources(pico_cyw43_arch_lwip_\${architecture} INTERFACE \${lwip} $dir/sdk/stand_in.c)
  target_include_directories(pico_cyw43_arch_lwip_\${architecture} SYSTEM INTERFACE $dir/sdk $build/lwip/src/include)
  target_compile_definitions(pico_cyw43_arch_lwip_\${architecture} INTERFACE CYW43_LWIP=1)
endforeach()
target_compile_definitions(pico_cyw43_arch_lwip_poll INTERFACE PICO_CYW43_ARCH_POLL=1)
target_compile_definitions(pico_cyw43_arch_lwip_threadsafe_background INTERFACE PICO_CYW43_ARCH_THREADSAFE_BACKGROUND=1)
add_subdirectory($module/pico-sdk fairlock)
get_target_property(sources fairlock_pico INTERFACE_SOURCES)
string(REPLACE ";" "\n" sources "\${sources}")
file(WRITE $1/sources "\${sources}\n")
foreach(architecture poll threadsafe_background)
  add_executable(\${architecture} $2)
  target_include_directories(\${architecture} PRIVATE $module/pico-sdk/example)
  target_compile_definitions(\${architecture} PRIVATE WIFI_SSID="net" WIFI_PASSWORD="secret" SERVER="redis.example:6379")
  target_compile_options(\${architecture} PRIVATE -Wall -Wextra -Werror)
  target_link_libraries(\${architecture} PRIVATE fairlock_pico pico_stdlib pico_cyw43_arch_lwip_\${architecture})
endforeach()
END_OF_CMAKE
}

# Both architectures of the pico-sdk, for the processor of a Pico W, with the example and all of lwIP.
# The SDK is a stand-in, but lwIP is not.
test_target_of_the_pico_sdk() {
  stand_in_of_the_sdk "$dir/sdk"
  targets_of_the_sdk "$dir/user" "$module/pico-sdk/example/main.c"
  sed 's/cortex-m3/cortex-m0plus/' "$module/cortex-m3.cmake" >"$dir/m0plus.cmake"
  built_by_cmake "$dir/user" -DCMAKE_TOOLCHAIN_FILE="$dir/m0plus.cmake" -DCMAKE_BUILD_TYPE=MinSizeRel \
    -DCMAKE_EXE_LINKER_FLAGS='-Wl,--gc-sections --specs=nosys.specs'
  listed "$dir/user/sources" "$here"/port/lwip/*.c "$module/pico-sdk/fairlock_pico.c"
  for architecture in poll threadsafe_background; do
    readelf -h -A "$dir/user/build/$architecture" >"$dir/elf"
    grep -q 'Tag_CPU_name: "Cortex-M0+"\|Tag_CPU_arch: v6S-M' "$dir/elf" || fail "for another processor: $(cat "$dir/elf")"
    arm-none-eabi-nm "$dir/user/build/$architecture" | grep -q ' T fairlock_acquire$' || fail "without the lock: $architecture"
  done
  sed -i '2i set(FAIRLOCK_SCRIPTS hashes)' "$dir/user/CMakeLists.txt"
  built_by_cmake "$dir/user" -DCMAKE_TOOLCHAIN_FILE="$dir/m0plus.cmake" -DCMAKE_EXE_LINKER_FLAGS='--specs=nosys.specs'
  without_texts "$dir/user/sources" "$here"/port/lwip/*.c "$module/pico-sdk/fairlock_pico.c"
}

# waits_as BINARY TURN WAIT IDLE: what is called in a turn without a wait, in one with, and by port_idle()
waits_as() {
  expect 0 "$1"
  printf 'turn: %s\nwait: %s\nidle: %s\n' "$2" "$3" "$4" | diff - "$dir/out" >"$dir/different" || fail "$(cat "$dir/different")"
}

# A wait comes before the poll, as what the poll has brought is looked at after it. The clock goes on
# beyond 32 bits of microseconds, and of milliseconds.
test_waits_of_the_pico_sdk() {
  stand_in_of_the_sdk "$dir/sdk"
  cat >"$dir/waits.c" <<'END_OF_C'
#include "fairlock_pico.h"
#include "stand_in.h"
#include <stdio.h>
#include <string.h>
static void show(const char *what, uint64_t from, uint64_t us)
{
  printf("%s: %s%s\n", what, called, now - from == us ? "" : " for another time");
  memset(called, 0, sizeof called);
}
int main(void)
{
  uint64_t from = now;
  if (port_clock_ms() != (uint32_t)5000000000ULL) return 1;
  fairlock_pico_hooks.lock();
  fairlock_pico_hooks.turn(0);
  fairlock_pico_hooks.unlock();
  show("turn", from, 0);
  fairlock_pico_hooks.turn(100);
  show("wait", from, 100000);
  port_idle(7);
  show("idle", from, 107000);
  return port_clock_ms() == (uint32_t)5000000107ULL ? 0 : 1;
}
END_OF_C
  targets_of_the_sdk "$dir/user" "$dir/waits.c"
  built_by_cmake "$dir/user"
  waits_as "$dir/user/build/poll" bpf wp wp
  waits_as "$dir/user/build/threadsafe_background" bf e e
}

# Without Wi-Fi there are no such targets of the SDK, and that is said.
test_pico_sdk_without_wifi() {
  mkdir "$dir/user"
  printf '%s\n' 'cmake_minimum_required(VERSION 3.18...3.25)' 'project(pico C)' "add_subdirectory($module/pico-sdk fairlock)" >"$dir/user/CMakeLists.txt"
  expect 1 cmake -S "$dir/user" -B "$dir/user/build"
  grep -q 'needs Wi-Fi' "$dir/err" || fail "not said: $(cat "$dir/err")"
}

[ $# -eq 0 ] || run_tests "$@"
run_tests part_of_a_build without_texts in_a_shared_object fetched installed installed_to_other_folders installed_versions openssl cortex_m3 own_threads freertos \
  component_of_esp_idf module_of_zephyr sample_of_zephyr page_of_zephyr page_of_zephyr_in_cxx \
  configuration_of_zephyr target_of_the_pico_sdk waits_of_the_pico_sdk pico_sdk_without_wifi
