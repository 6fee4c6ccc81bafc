#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Fails, and removes the image, if it contains a heap, or functions that print or exit: forbidden.sh
# NM IMAGE
set -eu
heap='malloc|calloc|realloc|free|memalign|sbrk|_sbrk'
output='v?[dfs]?n?i?printf|puts|putchar'
end='exit|abort|atexit|assert|_assert|__assert_func'
found=$("$1" "$2" | awk -v names="^_?($heap|$output|$end)(_r)?\$" '$NF ~ names {printf " %s", $NF}')
[ -n "$found" ] || exit 0
echo "$2: must not contain$found" >&2
rm -f "$2"
exit 1
