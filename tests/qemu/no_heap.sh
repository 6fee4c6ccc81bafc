#!/bin/sh
# The build of the firmware refuses images with a heap, or that print or exit: tests/qemu/no_heap.sh
# BUILD. Tries the check on an object with each such function, on one without, and on the whole
# library.
# shellcheck disable=SC2317 # functions are called by way of tell
set -eu
build=$1
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
failed=0

# tell NAME COMMAND...: a test line
tell() {
  name=$1
  shift
  if "$@"; then echo "ok $name"; else
    echo "not ok $name"
    failed=1
  fi
}

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
  tell "no_heap_refuses_$function" refused "$function"
done
echo 'void board_exit(void); void freeze(void); void freeze(void) { board_exit(); }' >"$folder/good.c"
arm-none-eabi-gcc -mcpu=cortex-m3 -mthumb -c -o "$folder/good" "$folder/good.c"
tell no_heap_accepts_the_rest accepted "$folder/good"
tell no_heap_in_the_library accepted "$build/firmware/mps2-an385/single.a"
tell no_heap_in_the_library_with_tasks accepted "$build/firmware/mps2-an385/kernel.a"
exit $failed
