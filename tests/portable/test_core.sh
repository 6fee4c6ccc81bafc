#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The library without an operating system, as `make core` builds it: by three compilers, for three
# processors. It needs nothing but what the program brings and what moves memory, and a program gets
# no more of it than it uses, with the line that boards/README.md gives.
# shellcheck source=tests/support/lib.sh disable=SC2154,SC1091,SC2317
set -u
. tests/support/lib.sh

# A program with the least in it: a transport that reaches nobody, and a clock.
cat >"$top/main.c" <<'END'
#include "fairlock.h"

static uint8_t receive[FAIRLOCK_RECEIVE_SIZE(4, 0)], send[64];
static const struct fairlock_config config = {receive, sizeof receive, send, sizeof send};
static uint32_t now;

uint32_t port_clock_ms(void) { return now += 10; }
void port_idle(uint32_t ms) { now += ms; }

static int none(void *context, uint32_t timeout_ms)
{
  (void)context;
  (void)timeout_ms;
  return PORT_UNREACHABLE;
}

static void shut(void *context) { (void)context; }

int main(void)
{
  static const struct port_transport transport = {none, NULL, NULL, shut, NULL, NULL, NULL};
  static struct fairlock_client client;
  static struct fairlock door;
  if (fairlock_client_init(&client, &config, &transport) != FAIRLOCK_OK) return 1;
  if (fairlock_init(&door, &client, "door") != FAIRLOCK_OK) return 2;
  return fairlock_try_acquire(&door, FAIRLOCK_RENEW) == FAIRLOCK_UNREACHABLE ? 0 : 3;
}
END

# core COMPILER FLAGS: builds it, and a program of it, in a folder of its own
core() {
  library=$dir/build/core/$1/liblock.a
  expect 0 make -s core BUILD="$dir/build" CC="$1" CFLAGS="$2"
  nm -u "$library" | awk 'NF == 2 { print $2 }' | sort -u >"$dir/needed"
  nm --defined-only "$library" | awk 'NF == 3 { print $3 }' | sort -u >"$dir/there"
  missing=$(comm -23 "$dir/needed" "$dir/there" | grep -v -e '^port_clock_ms$' -e '^port_idle$' \
    -e '^mem[a-z]*$' -e '^str[a-z]*$' -e '^__' | tr '\n' ' ')
  [ -z "$missing" ] || fail "it needs $missing"
}

# link COMPILER FLAGS...
link() {
  compiler=$1
  shift
  expect 0 "$compiler" -std=c11 "$@" -Iresp -Iport -Iport/single -Ilock -o "$dir/program" "$top/main.c" "$library"
}

cortex_m3='-mcpu=cortex-m3 -mthumb'

link_cortex_m3() {
  # shellcheck disable=SC2086
  link arm-none-eabi-gcc $cortex_m3 -Wl,--gc-sections --specs=nosys.specs "$@"
}

flash() {
  arm-none-eabi-size "$dir/program" | awk 'NR == 2 { print $1 }'
}

test_cortex_m() {
  grep -qxF "make core CC=arm-none-eabi-gcc CFLAGS=\"$cortex_m3\"" boards/README.md || fail "the page has another line"
  core arm-none-eabi-gcc "$cortex_m3"
  link_cortex_m3
  small=$(flash)
  rm -r "$dir/build"
  core arm-none-eabi-gcc "$cortex_m3 -Os -ffunction-sections -fdata-sections"
  link_cortex_m3
  [ "$small" -eq "$(flash)" ] || fail "$small bytes as the page says, and $(flash) with all flags for size"
}

# Without the scripts' texts: a library of its own, and the one with them stays as it was.
test_without_texts() {
  core arm-none-eabi-gcc "$cortex_m3"
  link_cortex_m3
  with=$(flash)
  expect 0 make -s core BUILD="$dir/build" CC=arm-none-eabi-gcc CFLAGS="$cortex_m3" SCRIPTS=hashes
  library=$dir/build/core/arm-none-eabi-gcc-hashes/liblock.a
  link_cortex_m3
  [ "$(flash)" -lt $((with - 2000)) ] || fail "$(flash) bytes without the texts, $with with them"
  without=$(flash)
  library=$dir/build/core/arm-none-eabi-gcc/liblock.a
  compile=$(grep -x 'arm-none-eabi-gcc .* -c lock/scripts/hashes.c' boards/README.md)
  # shellcheck disable=SC2086
  expect 0 $compile -o "$dir/hashes.o"
  link_cortex_m3 "$dir/hashes.o"
  # another order of objects may pad otherwise
  [ "$(flash)" -le $((without + 8)) ] && [ "$(flash)" -ge $((without - 8)) ] || fail "$(flash) bytes with the page's command, $without with SCRIPTS=hashes"
  expect 2 make -s core BUILD="$dir/build" SCRIPTS=none
  said 'SCRIPTS=none is not known'
}

# What was built with other flags is not mixed in; what nothing has changed for stays.
test_other_flags() {
  core arm-none-eabi-gcc "$cortex_m3"
  link_cortex_m3
  small=$(flash)
  cp "$library" "$dir/before.a"
  core arm-none-eabi-gcc "$cortex_m3"
  [ -z "$(find "$library" -newer "$dir/before.a")" ] || fail "it was built again for nothing"
  core arm-none-eabi-gcc "$cortex_m3 -O3"
  link_cortex_m3
  [ "$(flash)" -gt "$small" ] || fail "-O3 was not obeyed: $(flash) bytes, as for size"
}

# The hint names the compiler and the C library, whichever of them is missing.
test_missing_compiler() {
  mkdir "$dir/bin"
  printf '%s\n' '#!/bin/sh' 'exit 1' >"$dir/bin/arm-none-eabi-gcc"
  cp "$dir/bin/arm-none-eabi-gcc" "$dir/bin/dpkg-query"
  chmod +x "$dir"/bin/*
  PATH="$dir/bin:$PATH" INSTALL=0 expect 2 make -s core BUILD="$dir/build" CC=arm-none-eabi-gcc CFLAGS="$cortex_m3"
  cat "$dir/out" >>"$dir/err"
  for package in gcc-arm-none-eabi libnewlib-arm-none-eabi; do said $package; done
}

# For tasks, the library has the functions of the port that is named. Of headers and a library that are
# for different threads the linker misses a function, and nothing else tells them apart.
test_threads() {
  ports='port/single port/posix port/freertos/ boards/examples/kernel'
  for threads in $ports; do
    expect 0 make -s core BUILD="$dir/build" CC=cc CFLAGS='-isystem tests/portable/plus_tcp' THREADS="$threads"
  done
  for threads in $ports; do
    library=$dir/build/core/cc$(basename "$threads" | sed 's/^/-/; s/^-single$//')/liblock.a
    for headers in $ports; do
      cc -std=c11 -Iresp -Iport -I"$headers" -Ilock -isystem tests/portable/plus_tcp -c -o "$dir/main.o" "$top/main.c"
      cc -o "$dir/program" "$dir/main.o" "$library" -pthread >"$dir/out" 2>"$dir/err"
      missing=$(grep -o "undefined .*fairlock_client_init[a-z0-9_]*" "$dir/err")
      case $threads:$missing in
        "$headers:" | *:*client_init*) ;;
        *) fail "a library for $threads links with headers of $headers: $(cat "$dir/err")" ;;
      esac
      [ "$threads" != "$headers" ] || [ -z "$missing" ] || fail "with $threads: $missing"
    done
  done
  library=$dir/build/core/cc-posix/liblock.a
  expect 0 cc -std=c11 -Iresp -Iport -Iport/posix -Ilock -o "$dir/program" "$top/main.c" "$library" -pthread
  expect 0 "$dir/program"
  nm --defined-only "$dir/build/core/cc-freertos/liblock.a" | grep -q ' T port_mutex_init$' || fail "it has no threads of FreeRTOS's"
  expect 2 make -s core BUILD="$dir/build" THREADS=port/lwip
  said 'THREADS=port/lwip is no folder with a port_types.h'
}

test_risc_v() {
  flags='--specs=picolibc.specs -misa-spec=2.2 -march=rv32imac -mabi=ilp32 -Os'
  core riscv64-unknown-elf-gcc "$flags"
  # shellcheck disable=SC2086
  link riscv64-unknown-elf-gcc $flags
}

# The host's own, which can run the program, too.
test_clang() {
  core clang '-O2'
  link clang
  expect 0 "$dir/program"
}

# The port to copy, copied: it compiles without a warning by each, and a program of it runs.
test_template() {
  mkdir "$dir/mine"
  cp port/template.c "$dir/mine/mine.c"
  cp port/template_types.h "$dir/mine/port_types.h"
  cat >"$dir/mine/main.c" <<'END'
#include "fairlock.h"

struct template_transport {
  struct port_transport transport;
  const char *address;
  int socket;
};

void template_transport_init(struct template_transport *template, const char *address);

static uint8_t receive[FAIRLOCK_RECEIVE_SIZE(4, 0)], send[64];
static const struct fairlock_config config = {receive, sizeof receive, send, sizeof send};

int main(void)
{
  static struct template_transport mine;
  static struct fairlock_client client;
  static struct fairlock door;
  template_transport_init(&mine, "192.0.2.7");
  if (fairlock_client_init(&client, &config, &mine.transport) != FAIRLOCK_OK) return 1;
  if (fairlock_init(&door, &client, "door") != FAIRLOCK_OK) return 2;
  return fairlock_try_acquire(&door, FAIRLOCK_RENEW) == FAIRLOCK_UNREACHABLE ? 0 : 3;
}
END
  for compiler in cc clang arm-none-eabi-gcc; do
    expect 0 "$compiler" -std=c11 -Wall -Wextra -Wpedantic -Wconversion -Wshadow -Wmissing-prototypes \
      -Werror -Iport -I"$dir/mine" -c -o "$dir/mine.o" "$dir/mine/mine.c"
  done
  expect 0 cc -std=c11 -Iresp -Iport -I"$dir/mine" -Ilock -o "$dir/program" "$dir"/mine/*.c resp/*.c lock/*.c
  expect 0 "$dir/program"
}

[ $# -eq 0 ] || run_tests "$@"
run_tests cortex_m without_texts other_flags missing_compiler threads risc_v clang template
