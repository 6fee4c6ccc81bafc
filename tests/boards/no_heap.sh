#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The build of the firmware refuses images with a heap, or that print or exit: tests/boards/no_heap.sh
# BUILD. Tries the check on an object with each such function, on one without, and on the whole
# library.
# shellcheck source=tests/support/verdicts.sh disable=SC2154,SC2317 # functions are called by verdict()
set -eu
build=$1
. tests/support/verdicts.sh

refused() {
  echo "void $1(void); void f(void); void f(void) { $1(); }" >"$folder/$1.c"
  arm-none-eabi-gcc -w -fno-builtin -mcpu=cortex-m3 -mthumb -c -o "$folder/image" "$folder/$1.c"
  ! sh boards/common/forbidden.sh arm-none-eabi-nm "$folder/image" 2>/dev/null && [ ! -e "$folder/image" ]
}

accepted() {
  cp "$1" "$folder/image"
  sh boards/common/forbidden.sh arm-none-eabi-nm "$folder/image" && [ -e "$folder/image" ]
}

for function in malloc calloc realloc free _malloc_r _free_r _sbrk printf snprintf fprintf puts exit abort _exit; do
  verdict "no_heap_refuses_$function" refused "$function"
done
echo 'void board_exit(void); void freeze(void); void freeze(void) { board_exit(); }' >"$folder/good.c"
arm-none-eabi-gcc -mcpu=cortex-m3 -mthumb -c -o "$folder/good" "$folder/good.c"
verdict no_heap_accepts_the_rest accepted "$folder/good"
verdict no_heap_in_the_library accepted "$build/firmware/mps2-an385/single.a"
verdict no_heap_in_the_library_with_tasks accepted "$build/firmware/mps2-an385/kernel.a"
exit $failed
