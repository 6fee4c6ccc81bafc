#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs the image of a suite on a simulated AVR, and prints its lines: tests/portable/avr.sh IMAGE An
# ATmega2560 with all the memory that it can address. QEMU's own boards have only its 8 KB, too
# little for the suites; so this is a processor alone, with its memory in a file, and what the suite
# has to say is read there (see avr.c).
set -eu
image=$1
folder=$(mktemp -d)
simulator=
trap 'if [ -n "$simulator" ]; then kill -9 "$simulator" 2>/dev/null || true; fi; rm -rf "$folder"' EXIT
trap 'echo "# ended by a signal"; exit 1' INT TERM HUP

# place NAME: where a variable is in the file. The program begins at 0, the data at 0x800000, as in
# the image.
place() {
  echo $((0x$(avr-nm "$image" | awk -v name="$1" '$3 == name { print $1 }')))
}

# status: avr_status, a byte
status() {
  od -An -tu1 -j "$status_at" -N 1 "$folder/memory" | tr -d ' '
}

status_at=$(place avr_status)
log_at=$(place avr_log)
truncate -s 9M "$folder/memory"
qemu-system-avr -M none,memory-backend=memory -cpu avr6-avr-cpu -m 9M \
  -object "memory-backend-file,id=memory,size=9M,mem-path=$folder/memory,share=on" \
  -device "loader,file=$image" -display none -monitor none -serial none </dev/null &
simulator=$!
tries=3000
while [ "$(status)" = 0 ]; do
  tries=$((tries - 1))
  if [ $tries -eq 0 ] || ! kill -0 "$simulator" 2>/dev/null; then
    echo "not ok $image: it did not come to its end"
    break
  fi
  sleep 0.1
done
tail -c "+$((log_at + 1))" "$folder/memory" | head -c 8192 | tr -d '\000'
[ "$(status)" = 1 ]
