#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The command with TLS: certificates, options and environment, Sentinels and a cluster that redirect,
# and what is installed with it.
# shellcheck source=tests/support/lib.sh disable=SC2034,SC2016,SC2046,SC2086,SC2154,SC1091,SC2317
set -u
. tests/support/lib.sh
certificates=$build/tls/certificates
[ "${FAIRLOCK:-}" ] || fairlock=$build/tls/fairlock

# tls_options CERTIFICATE: of a server's configuration, a line each
tls_options() {
  printf '%s\n' "tls-port $tls_port" "tls-cert-file $certificates/$1.crt" "tls-key-file $certificates/$1.key" \
    "tls-ca-cert-file $certificates/ca.crt" 'tls-auth-clients no'
}

try_tls() {
  shown=$1
  shift
  tls_port=$(draw_port 16000)
  try_server --tls-port $tls_port --tls-cert-file "$certificates/$shown.crt" --tls-key-file "$certificates/$shown.key" \
    --tls-ca-cert-file "$certificates/ca.crt" --tls-auth-clients no "$@"
}

# start_tls CERTIFICATE OPTION...: a server as start_server's, with TLS at tls_port, too
start_tls() {
  password=
  until_up try_tls "$@"
  FAIRLOCK_URL=rediss://127.0.0.1:$tls_port
  export FAIRLOCK_URL
}

test_commands() {
  stop_server
  start_tls server
  FAIRLOCK_CACERT=$certificates/ca.crt
  export FAIRLOCK_CACERT
  expect 0 "$fairlock" run a sh -c 'echo "$FAIRLOCK_URL $FAIRLOCK_TOKEN"'
  printed "rediss://127.0.0.1:$tls_port $(redis hget 'fairlock:{a}' token)"
  run a sleep 60 &
  holder=$!
  eventually held a
  run a true &
  waiter=$!
  eventually waits 1 a
  expect 0 "$fairlock" status --json a
  [ "$(jq -r '.server, .held, .waiters[0].listens' "$dir/out" | tr '\n' ' ')" = "127.0.0.1:$tls_port true true " ] ||
    fail "$(cat "$dir/out")"
  expect 0 "$fairlock" list
  printed 'a: held by '
  expect 1 "$fairlock" run -n a true
  expect 0 "$fairlock" break --yes a
  ends 79 $holder
  ends 0 $waiter
  # a hold outlasts a break of its connection
  run a sh -c "until [ -e '$dir/end' ]; do sleep 0.1; done" &
  holder=$!
  eventually held a
  redis client kill type normal skipme yes >"$dir/out"
  expect 0 "$fairlock" status a
  touch "$dir/end"
  ends 0 $holder
  for url in valkeys://localhost:$tls_port rediss://localhost:$tls_port/3; do
    expect 0 "$fairlock" run --url $url a true
  done
}

# What the server has closed is not said to be silent.
test_closed() {
  stop_server
  start_tls server
  FAIRLOCK_CACERT=$certificates/ca.crt
  export FAIRLOCK_CACERT
  run --verbose a sleep 60 2>"$dir/err" &
  holder=$!
  eventually grep -q 'a is acquired' "$dir/err"
  redis client kill type pubsub >"$dir/out"
  eventually grep -q ': disconnected: ' "$dir/err"
  said ': disconnected: the server cannot be reached: the server closed TLS'
  kill $holder
  ends 143 $holder
}

# untrusted WORDS OPTION...: every subcommand says so, and ends
untrusted() {
  words=$1
  shift
  for command in "run a true" "run -w 600 a true" "status a" "watch a" "list a" "break --yes a"; do
    set -- "$@"
    expect 77 "$fairlock" ${command%% *} "$@" ${command#* }
    said "$FAIRLOCK_URL: the server's certificate is not trusted, or ours is not: $words"
    said '--cacert'
  done
  expect 77 "$fairlock" run --verbose "$@" a true
  said "$FAIRLOCK_URL: not connected: the server's certificate is not trusted, or ours is not: $words"
}

test_trust() {
  stop_server
  start_tls server
  unset SSL_CERT_FILE SSL_CERT_DIR
  untrusted 'self-signed certificate in certificate chain'
  untrusted 'self-signed certificate in certificate chain' --cacert "$certificates/others.crt"
  untrusted 'hostname mismatch' --cacert "$certificates/ca.crt" --sni redis.example
  expect 0 "$fairlock" run --cacert "$certificates/ca.crt" a true
  expect 0 "$fairlock" run --cacertdir "$certificates/hashed" a true
  expect 0 "$fairlock" run --cacert "$certificates/ca.crt" --sni localhost a true
  expect 0 "$fairlock" run --insecure a true
  expect 0 env SSL_CERT_FILE="$certificates/ca.crt" "$fairlock" run a true
  # the environment counts, and options count for more
  expect 0 env FAIRLOCK_CACERTDIR="$certificates/hashed" FAIRLOCK_SNI=localhost "$fairlock" run a true
  expect 77 env FAIRLOCK_CACERT="$certificates/ca.crt" FAIRLOCK_SNI=redis.example "$fairlock" run a true
  expect 0 env FAIRLOCK_CACERT="$certificates/ca.crt" FAIRLOCK_SNI=redis.example "$fairlock" run --sni localhost a true
  expect 77 env FAIRLOCK_CACERTDIR="$certificates/hashed" "$fairlock" run --cacert "$certificates/others.crt" a true
}

test_certificate_of_ours() {
  stop_server
  start_tls server --tls-auth-clients yes
  FAIRLOCK_CACERT=$certificates/ca.crt
  export FAIRLOCK_CACERT
  untrusted 'tlsv13 alert certificate required'
  untrusted 'tlsv1 alert unknown ca' --cert "$certificates/stranger.crt" --key "$certificates/stranger.key"
  expect 0 "$fairlock" run --cert "$certificates/client.crt" --key "$certificates/client.key" a true
  expect 0 "$fairlock" run --cert "$certificates/client.both" a true
  expect 0 env FAIRLOCK_CERT="$certificates/client.crt" FAIRLOCK_KEY="$certificates/client.key" "$fairlock" run a true
  expect 77 env FAIRLOCK_CERT="$certificates/client.crt" FAIRLOCK_KEY="$certificates/client.key" \
    "$fairlock" run --cert "$certificates/stranger.crt" --key "$certificates/stranger.key" a true
}

test_misuse() {
  FAIRLOCK_URL=rediss://127.0.0.1:$port
  expect 66 "$fairlock" run --cacert "$dir/none" a true
  said "cannot use $dir/none for TLS: No such file or directory"
  expect 66 "$fairlock" status --cert "$certificates/client.crt" --key "$certificates/rsa.key" a
  said "cannot use $certificates/rsa.key for TLS"
  expect 66 "$fairlock" status --cert "$certificates/client.crt" --key "$certificates/client.locked" a
  said "cannot use $certificates/client.locked for TLS"
  expect 64 "$fairlock" status --key "$certificates/client.key" a
  said 'no certificate'
  expect 66 "$fairlock" status --cert "$certificates/client.crt" a
  said "cannot use $certificates/client.crt for TLS"
  said 'unless --key names that'
  expect 66 "$fairlock" status --cacertdir "$dir/none" a
  said "cannot use $dir/none for TLS: No such file or directory"
  for option in "--cacert x" "--cacertdir x" "--cert x" "--key x" "--sni x" --insecure; do
    expect 64 "$fairlock" status --url redis://127.0.0.1:$port $option a
    said 'need a URL with TLS'
  done
  expect 64 "$fairlock" status --insecure=x a
  # no TLS there
  expect 75 timeout 60 "$fairlock" run -w 1 a true
  said "$FAIRLOCK_URL: the server cannot be reached"
  said 'Does that port speak TLS?'
  # and none here
  start_tls server
  expect 75 "$fairlock" run -n --url redis://127.0.0.1:$tls_port a true
  said 'Does that port want TLS?'
  # a build without it
  expect 64 "$build/fairlock" run a true
  said "built without TLS"
}

# What makes certificates and keys into C for devices says what it cannot use, and then prints nothing.
test_key_for_devices() {
  key=port/bearssl/key.sh
  expect 64 sh $key
  expect 64 sh $key 'my server' "$certificates/ca.crt"
  said 'usage: key.sh NAME CERTIFICATE'
  expect 1 sh $key CLIENT "$certificates/client.crt" "$certificates/server.key"
  said 'not the key of'
  [ ! -s "$dir/out" ] || fail "it prints half of it"
  expect 0 sh $key CLIENT "$certificates/client.crt" "$certificates/client.key"
  printed CLIENT_KEY
}

# Sentinels speak TLS alone, as they do to the master, whose address they name.
test_sentinel() {
  stop_server
  start_tls server --tls-replication yes
  master=$tls_port
  tls_port=$(draw_port 16000)
  { printf '%s\n' 'port 0' 'tls-replication yes' "sentinel monitor door 127.0.0.1 $master 1" "dir $dir"; tls_options server; } >"$dir/conf"
  "$build/redis-server" "$dir/conf" --sentinel >"$dir/log" 2>&1 &
  ends_with_us $!
  eventually grep -q '+monitor master' "$dir/log"
  url=rediss+sentinel://localhost:$tls_port/door
  expect 0 "$fairlock" run --cacert "$certificates/ca.crt" --url $url a true
  expect 0 "$fairlock" status --cacert "$certificates/ca.crt" --url valkeys+sentinel://127.0.0.1:$tls_port/door a
  printed "read from 127.0.0.1:$master"
  expect 77 "$fairlock" status --url $url a
  # the master's certificate has another name than its address
  redis config set tls-cert-file "$certificates/elsewhere.crt" tls-key-file "$certificates/elsewhere.key" >"$dir/out"
  expect 77 "$fairlock" status --cacert "$certificates/ca.crt" --url $url a
  said "$url (127.0.0.1:$master): "
  said 'IP address mismatch'
}

# start_sentinel_of PORT LINE...: a Sentinel of the master at this port; sets sentinel, its port without TLS
start_sentinel_of() {
  until_up try_sentinel "$@"
}
try_sentinel() {
  sentinel=$(draw_port 22000)
  tls_port=$(draw_port 16000)
  server_log=$dir/$sentinel/log
  mkdir "$dir/$sentinel"
  known=$1
  shift
  { printf '%s\n' "port $sentinel" 'bind 127.0.0.1' "dir $dir/$sentinel" "$@"; tls_options server
    echo "sentinel monitor door 127.0.0.1 $known 1"; } >"$dir/$sentinel/conf"
  "$build/redis-server" "$dir/$sentinel/conf" --sentinel >"$server_log" 2>&1 &
  comes_up $! "$server_log" '+monitor master'
}

# works URL: by the command, all of it, and by a program that gives the URL to port_openssl_url()
works() {
  expect 0 "$fairlock" run --url "$1" a true
  expect 0 "$fairlock" status --url "$1" a
  expect 0 "$fairlock" list --url "$1"
  expect 0 "$fairlock" load --url "$1"
  expect 0 "$build/tls/examples/epoll_tls" "$1" a 1 5000 "$FAIRLOCK_CACERT"
}

# leads URL ADVICE: it cannot be reached, and this is what to do
leads() {
  expect 75 timeout 100 "$fairlock" run -n --url "$1" a true
  said "$2"
}

# Sentinels without TLS, servers with it. Whatever the URL begins with, what is said leads to the right one.
test_sentinels_without_tls() {
  stop_server
  start_tls server
  master=$tls_port
  start_sentinel_of $master 'tls-replication yes'
  FAIRLOCK_CACERT=$certificates/ca.crt
  export FAIRLOCK_CACERT
  right="rediss+sentinel://localhost:$sentinel/door?sentinel_tls=false"
  works "$right"
  works "valkeys+sentinel://127.0.0.1:1,127.0.0.1:$sentinel/door/3?sentinel_tls=false"
  expect 0 "$fairlock" list --metrics --url "rediss+sentinel://localhost:$sentinel/door/3?sentinel_tls=false"
  printed "url=\"rediss+sentinel://localhost:$sentinel/door/3?sentinel_tls=false\""
  form='rediss+sentinel://.../SERVICE?sentinel_tls=false'
  leads "rediss+sentinel://localhost:$sentinel/door" "Does that Sentinel speak TLS? If not, the URL is $form, or, "
  said "(Sentinel localhost:$sentinel): the server cannot be reached: the server does not answer in TLS"
  leads "redis+sentinel://localhost:$sentinel/door" "Does that server want TLS? Then the URL is $form."
  said "(127.0.0.1:$master): the server cannot be reached: "
  leads "redis+sentinel://localhost:$sentinel/door?sentinel_tls=true" \
    'Does that Sentinel speak TLS? If not, the URL is redis+sentinel://.../SERVICE.'
  # the server is still checked
  expect 77 "$fairlock" status --cacert "$certificates/others.crt" --url "$right" a
  said "$right (127.0.0.1:$master): the server's certificate is not trusted"
  # a master that has no TLS
  stop_server
  start_server
  redis-cli -p $sentinel sentinel remove door >"$dir/out"
  redis-cli -p $sentinel sentinel monitor door 127.0.0.1 $port 1 >"$dir/out"
  leads "$right" 'Does that server speak TLS? If not, the URL is redis+sentinel://.../SERVICE.'
  said "(127.0.0.1:$port): the server cannot be reached: the server does not answer in TLS"
  expect 0 "$fairlock" run --url redis+sentinel://localhost:$sentinel/door a true
  # the command that was built without TLS
  expect 64 "$build/fairlock" run --url "$right" a true
  said 'built without TLS'
}

# The reverse: to Sentinels alone.
test_sentinels_alone_with_tls() {
  start_sentinel_of $port
  FAIRLOCK_CACERT=$certificates/ca.crt
  export FAIRLOCK_CACERT
  works "redis+sentinel://localhost:$tls_port/door?sentinel_tls=true"
  leads "redis+sentinel://localhost:$tls_port/door" 'Does that Sentinel want TLS? Then the URL is rediss+sentinel://.../SERVICE, or, '
  said ', redis+sentinel://.../SERVICE?sentinel_tls=true.'
  leads "rediss+sentinel://localhost:$tls_port/door" \
    'Does that server speak TLS? If not, the URL is redis+sentinel://.../SERVICE?sentinel_tls=true.'
  said "(127.0.0.1:$port): the server cannot be reached: the server does not answer in TLS"
  leads "rediss+sentinel://localhost:$tls_port/door?sentinel_tls=false" \
    'Does that Sentinel want TLS? Then the URL is rediss+sentinel://.../SERVICE.'
  expect 77 "$fairlock" status --cacert "$certificates/others.crt" --url "redis+sentinel://localhost:$tls_port/door?sentinel_tls=true" a
  said "(Sentinel localhost:$tls_port): the server's certificate is not trusted"
}

# Two nodes; MOVED names the port of TLS to whom came by TLS.
test_cluster() {
  stop_server
  start_tls server --cluster-enabled yes --tls-cluster yes
  first=$tls_port
  first_plain=$port
  redis cluster addslotsrange 0 8191 >"$dir/out"
  start_tls elsewhere --cluster-enabled yes --tls-cluster yes
  redis cluster addslotsrange 8192 16383 >"$dir/out"
  # the bus of Redis asks for no names
  redis cluster meet 127.0.0.1 $first $((first + 10000)) >"$dir/out"
  for node in $port $first_plain; do
    eventually sh -c "redis-cli -p $node cluster info | grep -q cluster_state:ok"
  done
  FAIRLOCK_CACERT=$certificates/ca.crt
  export FAIRLOCK_CACERT
  # c is in slot 7365, a in 15495
  expect 0 "$fairlock" run --url rediss://127.0.0.1:$first c true
  expect 0 "$fairlock" run --url rediss+cluster://127.0.0.1:$first c true
  expect 77 "$fairlock" run --url rediss+cluster://localhost:$first a true
  said "(127.0.0.1:$tls_port): "
  said 'IP address mismatch'
  expect 77 "$fairlock" list --url rediss+cluster://localhost:$first
  said "(127.0.0.1:$tls_port): "
  said 'IP address mismatch'
  expect 0 "$fairlock" list --insecure --url rediss+cluster://localhost:$first
  expect 0 "$fairlock" run --insecure --history --url rediss+cluster://localhost:$first a true
  expect 0 "$fairlock" history --insecure --url rediss+cluster://localhost:$first a
  printed released
  redis config set tls-cert-file "$certificates/rsa.crt" tls-key-file "$certificates/rsa.key" >"$dir/out"
  expect 0 "$fairlock" run --url valkeys+cluster://127.0.0.1:1,localhost:$first a true
  expect 0 "$fairlock" status --sni localhost --url rediss+cluster://127.0.0.1:$tls_port a c
  printed "read from 127.0.0.1:$first"
}

test_install() {
  stop_server
  start_tls server
  # TLS=openssl stays as it was said last
  expect 0 make install BUILD="$build/tls" PREFIX="$dir/prefix"
  expect 0 "$dir/prefix/bin/fairlock" run --cacert "$certificates/ca.crt" a true
  PKG_CONFIG_PATH=$dir/prefix/lib/pkgconfig
  export PKG_CONFIG_PATH
  cat >"$dir/program.c" <<'EOF'
#include <fairlock/fairlock.h>
#include <fairlock/port_openssl.h>
#include <fairlock/port_posix.h>
#include <stdio.h>

static char receive[512], send[512];
static struct port_posix server;
static struct port_openssl tls;
static struct fairlock_client client;

int main(int argc, char **argv)
{
  struct port_openssl_config trust = {.ca_file = argv[1], .host = port_posix_host};
  struct fairlock_config config = {
    .receive_buffer = receive, .receive_size = sizeof receive, .send_buffer = send, .send_size = sizeof send};
  port_posix_tcp(&server, "127.0.0.1", argv[argc - 1]);
  if (port_openssl_init(&tls, &server.transport, &trust) != NULL) return 1;
  if (fairlock_client_init(&client, &config, &tls.transport) != FAIRLOCK_OK) return 2;
  if (fairlock_connect(&client) != FAIRLOCK_OK) return 3;
  fairlock_client_deinit(&client);
  port_openssl_deinit(&tls);
  return 0;
}
EOF
  expect 0 cc -Wall -Werror -o "$dir/program" "$dir/program.c" $(pkg-config --cflags --libs fairlock-openssl)
  expect 0 "$dir/program" "$certificates/ca.crt" $tls_port
  expect 3 "$dir/program" "$certificates/others.crt" $tls_port
  expect 0 make uninstall BUILD="$build/tls" PREFIX="$dir/prefix"
  [ -z "$(find "$dir/prefix" -type f)" ] || fail "left: $(find "$dir/prefix" -type f)"
}

# ours NAME: our certificate, and its key in the same file
ours() {
  cat "$certificates/$1.crt" "$certificates/$1.key" >"$dir/new"
  mv "$dir/new" "$dir/ours"
}

# Certificates are replaced under a holder and a waiter, which the server cuts off.
test_rotation() {
  stop_server
  start_tls server
  cp "$certificates/ca.crt" "$dir/cas"
  ours client
  redis config set tls-ca-cert-file "$certificates/ca.crt" tls-auth-clients yes >/dev/null
  run --verbose --cacert "$dir/cas" --cert "$dir/ours" a sh -c 'until [ -e "$0/end" ]; do sleep 0.1; done; exit 5' "$dir" 2>"$dir/err" &
  holder=$!
  eventually held a
  token=$(redis hget 'fairlock:{a}' token)
  run -w 100 --cacert "$dir/cas" --cert "$dir/ours" a true 2>"$dir/err1" &
  waiter=$!
  eventually waits 1 a
  redis config set tls-ca-cert-file "$certificates/others.crt" >/dev/null
  redis client kill type normal skipme yes >/dev/null
  redis client kill type pubsub >/dev/null
  eventually grep -q 'not connected: .*tlsv1 alert unknown ca' "$dir/err"
  eventually grep -q 'ours is not: tlsv1 alert unknown ca; trying again' "$dir/err1"
  ours stranger
  eventually listened a
  redis config set tls-cert-file "$certificates/moved.crt" tls-key-file "$certificates/moved.key" >/dev/null
  redis client kill type normal skipme yes >/dev/null
  redis client kill type pubsub >/dev/null
  eventually grep -q 'not connected: .*certificate' "$dir/err"
  cp "$certificates/others.crt" "$dir/cas"
  eventually listened a
  [ "$(redis hget 'fairlock:{a}' token)" = "$token" ] || fail "another holder"
  touch "$dir/end"
  ends 5 $holder
  ends 0 $waiter
}

# listened NAME: a waiter does
listened() {
  [ -n "$(redis pubsub channels "redisson_lock__channel:{$1}*")" ]
}

[ $# -eq 0 ] || run_tests "$@"
run_tests commands closed trust certificate_of_ours rotation misuse key_for_devices sentinel sentinels_without_tls sentinels_alone_with_tls cluster install
