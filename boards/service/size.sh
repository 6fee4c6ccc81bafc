#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Prints what the client for other languages takes in a program, in bytes of code and constants:
# boards/service/size.sh BUILD AR. Those of OpenSSL itself are not ours.
set -eu
build=$(cd "$1" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# text OBJECT...: bytes of their code and constants
text() {
  size -A "$@" | awk '$1 ~ /^\.(text|rodata)/ { sum += $2 } END { print sum + 0 }'
}

# of PART NAME...: a row for these objects of liblock.a
of() {
  part=$1
  shift
  printf '%-34s %6d\n' "$part" "$(cd "$work" && text "$@")"
}

(cd "$work" && "$2" x "$build/liblock.a")
printf '%-34s %6d\n' "the service itself" "$(text "$build/boards/service/service.o")"
of "locks that are shared" share.o
of "keep_ms" keep.o
of "replicas, Sentinel, Cluster" topology.o
of "giving up" abandon.o
of "URLs" url.o
if [ -e "$work/openssl.o" ]; then of "TLS, without OpenSSL itself" openssl.o openssl_url.o; fi
of "the rest of the library" engine.o handle.o reply.o request.o pipeline.o schedule.o turns.o links.o \
  scripts.o texts.o status.o version.o client.o socket.o resolve.o threads.o process.o clock.o
