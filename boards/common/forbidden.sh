#!/bin/sh
# Fails, and removes the image, if it contains a heap, or functions that print or exit: boards/common/forbidden.sh NM IMAGE
set -eu
found=$("$1" "$2" | awk '$NF ~ /^_?(malloc|calloc|realloc|free|memalign|sbrk|_sbrk|v?[dfs]?n?i?printf|puts|putchar|exit|abort|atexit|assert|_assert|__assert_func)(_r)?$/ {printf " %s", $NF}')
[ -n "$found" ] || exit 0
echo "$2: must not contain$found" >&2
rm -f "$2"
exit 1
