#!/bin/sh
# The library without an operating system, as `make core` builds it: by three compilers, for three
# processors. It needs nothing but what the program brings and what moves memory.
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
  static const struct port_transport transport = {none, NULL, NULL, shut, NULL, NULL};
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

test_cortex_m() {
  core arm-none-eabi-gcc '-mcpu=cortex-m3 -mthumb -Os -ffunction-sections'
  link arm-none-eabi-gcc -mcpu=cortex-m3 -mthumb -Wl,--gc-sections --specs=nosys.specs
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
run_tests cortex_m risc_v clang template
