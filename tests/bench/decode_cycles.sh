#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Instructions that the decoder takes for a script's reply, counted by callgrind: repeatable, unlike
# time. Fails when they have grown by more than 5 % over the committed figure;
# `tests/bench/decode_cycles.sh accept` commits to a new one.
set -eu
figure=tests/bench/decode.cycles
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

cat >"$dir/replies.c" <<'END'
#include "resp.h"
#include <string.h>
int main(void)
{
  static const char reply[] = "*3\r\n:1\r\n:1763664000000000\r\n:1763664000000\r\n";
  struct resp_decoder decoder;
  struct resp_event event;
  unsigned last = 0;
  resp_decoder_init(&decoder, 256);
  for (int i = 0; i < 1000; i++) {
    size_t start = 0, used;
    while (resp_decode(&decoder, reply + start, sizeof reply - 1 - start, &used, &event) == RESP_EVENT) {
      start += used;
      last += event.last;
    }
  }
  return last != 1000;
}
END
gcc -std=c11 -O2 -Iresp "$dir/replies.c" resp/decode.c -o "$dir/replies"
valgrind --tool=callgrind --callgrind-out-file="$dir/out" --toggle-collect=main "$dir/replies" 2>"$dir/log" ||
  { cat "$dir/log" && echo "not ok the decoder's instructions are counted" && exit 1; }
total=$(sed -n 's/^summary: //p' "$dir/out")
each=$((total / 1000))
echo "# decode.cycles: $each instructions per reply of a script"
if [ "${1:-}" = accept ]; then
  echo "$each" >"$figure"
  exit
fi
known=$(cat "$figure")
if [ $((each * 100)) -le $((known * 105)) ]; then
  echo "ok the decoder takes no more instructions than it did ($each, $known committed)"
else
  echo "not ok the decoder takes $each instructions for a reply, $known committed"
  exit 1
fi
