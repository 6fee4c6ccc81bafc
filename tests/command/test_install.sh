#!/bin/sh
# make install, and a program that is built only with what it has installed.
# shellcheck source=tests/support/lib.sh disable=SC2016,SC2046,SC2086,SC2154,SC1091,SC1003,SC2317
set -u
. tests/support/lib.sh

test_install() {
  expect 0 make install BUILD="$build" PREFIX="$dir/prefix"
  expect 0 "$dir/prefix/bin/fairlock" run a true
  [ -s "$dir/prefix/share/man/man1/fairlock.1" ] || fail "no manual"
  PKG_CONFIG_PATH=$dir/prefix/lib/pkgconfig
  export PKG_CONFIG_PATH
  expect 0 pkg-config --modversion fairlock
  printed "$version"
  cat >"$dir/program.c" <<'EOF'
#include <fairlock.h>
#include <port_posix.h>
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
  cd "$dir" || fail "no $dir"
  expect 0 cc -Wall -Werror -o program program.c $(pkg-config --cflags --libs fairlock)
  expect 0 ./program $port
  printed "token $(redis hget 'fairlock:{a}' token)"
  printf '#include <fairlock.h>\nint main() { return FAIRLOCK_OK; }\n' >program.cc
  ! command -v c++ >out || expect 0 c++ -Wall -o program++ program.cc $(pkg-config --cflags fairlock)
}

test_destdir_and_uninstall() {
  expect 0 make install BUILD="$build" DESTDIR="$dir/root" PREFIX=/opt/fair
  grep -q '^prefix=/opt/fair$' "$dir/root/opt/fair/lib/pkgconfig/fairlock.pc" || fail "the prefix is wrong"
  [ "$(find "$dir/root" -type f | wc -l)" = 16 ] || fail "files: $(find "$dir/root" -type f)"
  expect 0 make uninstall BUILD="$build" DESTDIR="$dir/root" PREFIX=/opt/fair
  [ -z "$(find "$dir/root" -type f)" ] || fail "left: $(find "$dir/root" -type f)"
}

[ $# -eq 0 ] || run_tests "$@"
run_tests install destdir_and_uninstall
