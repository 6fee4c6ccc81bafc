#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The gates of sizes fail beyond their thresholds, and pass below: tests/tools/check_size.sh, and that
# of the boards, tests/boards/sizes.sh. The bound of the stack counts what it should, and fails where it
# would be none: tests/tools/stack.sh, with faults planted in the lists and in the source.
# shellcheck source=tests/support/verdicts.sh disable=SC2154,SC2319
set -u
. tests/support/verdicts.sh

printf '%-44s %6d   aim %5d   %+d\n' 'a superloop: start, poll, release' 10200 10240 -40 \
  'struct fairlock, each lock' 104 96 8 'data and bss of the library' 0 0 0 >"$folder/printed"
echo 'flash, bytes of text (cc)' >>"$folder/printed"

# size SUPERLOOP LOCK DATA [VERSION [RELEASED]]: with a page of these lines, after a release of that size
size() {
  printf '%s\n' '# version bytes' "0.1.0 9000" "0.2.0 ${5:-10200}" >"$folder/released.txt"
  printf '%s\n' 'For a Cortex-M3 with gcc 12.2 and such.' '' '| Cortex-M3, bytes | | aim |' '| --- | --- | --- |' \
    "| a superloop: start, poll, release | $1 | 10240 |" "| struct fairlock, each lock | $2 | 96 |" \
    "| data and bss of the library | $3 | 0 |" '' '| row | 7 | other table |' >"$folder/page.md"
  sh tests/tools/check_size.sh "$folder/printed" "${4:-12.2.1}" "$folder/page.md" "$folder/released.txt" >"$folder/log" 2>&1
}
size 10200 104 0
verdict "size: what the page has passes" [ $? -eq 0 ]
verdict "size: it says how many it compared" grep -q '^size: 3 figures' "$folder/log"
size 10010 96 0
verdict "size: 1.9 % more, and 8 bytes, pass" [ $? -eq 0 ]
! size 9990 96 0
verdict "size: 2.1 % more fails" [ $? -eq 0 ]
verdict "size: it says where" grep -q '^size: a superloop: start, poll, release: 10200 bytes, 9990 in' "$folder/log"
! size 10200 95 0
verdict "size: 9 bytes that are more than 2 % fail" [ $? -eq 0 ]
sed -i.old 's/library  *0/library                       4/' "$folder/printed"
! size 10200 104 0
verdict "size: anything above 0 fails" [ $? -eq 0 ]
mv "$folder/printed.old" "$folder/printed"
size 10420 104 0
verdict "size: less passes" [ $? -eq 0 ]
verdict "size: but is told" grep -q 'only 10200 bytes' "$folder/log"
size 9000 104 0 12.3.1
verdict "size: another compiler's is not compared" [ $? -eq 0 ]
verdict "size: which is said" grep -q 'not compared' "$folder/log"
! sh tests/tools/check_size.sh "$folder/printed" 12.2.1 "$folder/page.md" "$folder/none" >"$folder/log" 2>&1 &&
  [ "$(cat "$folder/log")" = "size: there is no $folder/none, which has what each release took" ]
verdict "size: without a list of releases it fails, and says so" [ $? -eq 0 ]
size 10200 104 0 12.2.1 10136
verdict "size: 64 bytes more than in the last release pass" [ $? -eq 0 ]
verdict "size: it says how many" grep -q '10200 bytes, +64 since 0.2.0$' "$folder/log"
! size 10200 104 0 12.2.1 10135
verdict "size: 65 fail, though the page has them" [ $? -eq 0 ]
verdict "size: it says so" grep -q '^size: a superloop: start, poll, release: that is more than 64' "$folder/log"
! size 10200 104 0 12.2.1 x
verdict "size: a release without a figure fails" [ $? -eq 0 ]
sed '/^a superloop/d' "$folder/printed" >"$folder/without"
! sh tests/tools/check_size.sh "$folder/without" 12.2.1 "$folder/page.md" "$folder/released.txt" >"$folder/log" 2>&1
verdict "size: a superloop that is not printed fails" [ $? -eq 0 ]
sed '/^struct/d' "$folder/printed" >"$folder/fewer"
mv "$folder/fewer" "$folder/printed"
! size 10200 104 0
verdict "size: a line that is not printed fails" [ $? -eq 0 ]
echo 'with gcc 12.2 ' >"$folder/page.md"
! sh tests/tools/check_size.sh "$folder/printed" 12.2.1 "$folder/page.md" "$folder/released.txt" >"$folder/log" 2>&1
verdict "size: a page without a table fails" [ $? -eq 0 ]

# boards NAME COLUMN FACTOR ADDED: passes when that column of one image is so much larger
boards() {
  awk -v name="$1" -v column="$2" -v factor="$3" -v added="$4" '
    NR == 1 { for (i = 3; i <= NF; i++) if ($i == column) at = i - 1 }
    $1 == name { $at = int($at * factor + added) }
    { print }' boards/sizes.txt >"$folder/boards"
  sh tests/boards/sizes.sh build boards/sizes.txt "$folder/boards" >"$folder/log" 2>&1
}
image=mps2-an385:superloop
boards $image flash 1 0
verdict "size: a board's table passes itself" [ $? -eq 0 ]
boards $image flash 1.019 0
verdict "size: 1.9 % more flash of a board passes" [ $? -eq 0 ]
! boards $image flash 1.021 0
verdict "size: 2.1 % more fails" [ $? -eq 0 ]
verdict "size: for that image alone" [ "$(grep '^not ok' "$folder/log")" = "not ok size_$image" ]
! boards $image stack 1.03 0
verdict "size: 3 % more stack fails" [ $? -eq 0 ]
boards $image client 1 64
verdict "size: 64 bytes more of a part pass" [ $? -eq 0 ]
! boards $image client 1 65
verdict "size: 65 fail where they are more than 2 %" [ $? -eq 0 ]
boards $image lwip 1 200
verdict "size: 200 pass where they are less" [ $? -eq 0 ]
awk -v name=$image '$1 == name { $11 = 12200 } { print }' boards/sizes.txt >"$folder/table"
for ram in 12288 12289; do
  awk -v name=$image -v ram=$ram '$1 == name { $11 = ram } { print }' boards/sizes.txt >"$folder/boards"
  sh tests/boards/sizes.sh build "$folder/table" "$folder/boards" >"$folder/log" 2>&1
  echo $? >>"$folder/statuses"
done
verdict "size: 12 KB of RAM pass, and a byte more fails" [ "$(tr '\n' ' ' <"$folder/statuses")" = "0 1 " ]

# measured BOUND BYTES: the table of a board that has measured so much, held against itself
measured() {
  printf '# image flash ram stack bound measured\nboard:superloop 30000 9000 400 %d %d\n' "$1" "$2" >"$folder/boards"
  sh tests/boards/sizes.sh build "$folder/boards" "$folder/boards" >"$folder/log" 2>&1
}
measured 868 868
verdict "size: a stack that is as deep as its bound passes" [ $? -eq 0 ]
! measured 868 872
verdict "size: one that is deeper fails, whatever the table says" [ $? -eq 0 ]
verdict "size: it says so" grep -q '^# more stack measured than its bound' "$folder/log"
measured 0 3904
verdict "size: an image without a bound passes" [ $? -eq 0 ]

# The bound of the stack.
mkdir "$folder/graphs"
KEEP=$folder/graphs sh tests/tools/stack.sh arm-none-eabi-gcc -mcpu=cortex-m3 -mthumb >"$folder/stack" 2>"$folder/log"
verdict "stack: the library has a bound" [ $? -eq 0 ]
# of NAME COLUMN: what the table says
of() {
  awk -v name="$1" -v column="$2" '$1 == name { print $column }' "$folder/stack"
}
missing=$(sed -n 's/^[a-z][^(]*[ *]\(fairlock_[a-z_]*\)(.*/\1/p' lock/fairlock*.h | while read -r name; do
  [ -n "$(of "$name" 2)" ] || echo "$name"; done)
verdict "stack: each public function has a line" [ -z "$missing" ]
verdict "stack: what is followed is called through pointers" [ "$(of fairlock_start_acquire 3)" -gt "$(of fairlock_start_acquire 2)" ]
verdict "stack: the depth of a callback is told" [ "$(of caller:lost 2)" -gt 100 ]
verdict "stack: a log is not called by who keeps none" [ "$(of caller:log 2)" = - ]

# graphs OPTION...: the analysis of those graphs
graphs() {
  awk -f tests/tools/stack.awk -v whole=1 "$@" "$folder/graphs/objects.taken" "$folder"/graphs/*.ci >"$folder/result" 2>"$folder/log"
}
# planted NAME SED TEXT: the list with this change fails, and why
planted() {
  sed "$2" lock/calls.txt >"$folder/calls.txt"
  ! cmp -s lock/calls.txt "$folder/calls.txt" && ! graphs -v roots=fairlock_poll "$folder/calls.txt"
  verdict "stack: $1 fails" [ $? -eq 0 ]
  verdict "stack: $1: it says so" grep -q "$3" "$folder/log"
}
graphs -v roots=fairlock_poll lock/calls.txt
verdict "stack: the list as it is passes" [ $? -eq 0 ]
planted "a call that is not listed" '/^client.c:attend/d' 'that no list has: client.c:attend send (lock/client.c:'
planted "a line whose call is gone" 's/^client.c:attend | send/client.c:attend | send_all/' 'no such call any more: client.c:attend send_all'
planted "a target that is gone" 's/topology.c:on_closed$/topology.c:closes/' 'no such function: topology.c:closes'
planted "a target that is forgotten" 's/ events.c:on_event credentials/ credentials/' 'its address is taken.*events.c:on_event'
planted "a call that is listed twice" '/^client.c:attend/{p;}' 'twice: client.c:attend send'
planted "recursion through a pointer" 's/caller:log$/fairlock_engine_tick events.c:on_event/' '^stack: recursion: .*events.c:on_event'

# with TEXT NAME WHY: the library with this function, too, fails
with() {
  echo "$1" >"$folder/more.c"
  (cd "$folder" && arm-none-eabi-gcc -mcpu=cortex-m3 -mthumb -Os -fcallgraph-info=su -c more.c)
  ! graphs -v roots="fairlock_poll more" lock/calls.txt "$folder/more.ci"
  verdict "stack: $2 fails" [ $? -eq 0 ]
  verdict "stack: $2: it says so" grep -q "$3" "$folder/log"
}
with 'void more(unsigned n) { volatile char text[n + 1]; text[n] = 0; }' "a frame that depends on an argument" \
  'more: a frame whose size is not fixed: .*dynamic'
with 'unsigned more(unsigned n) { volatile unsigned text[4] = {n}; return n > 9 ? n : text[more(n + 1) & 3]; }' "recursion" \
  'recursion: more'

# A whole program: each frame has to be known.
echo 'void known(void); void unknown(void); void more(void) { volatile char text[40] = {0}; known(); unknown(); text[0] = 1; }' \
  >"$folder/more.c"
(cd "$folder" && arm-none-eabi-gcc -mcpu=cortex-m3 -mthumb -Os -fcallgraph-info=su -c more.c)
echo 'known | frame | 100' >"$folder/frames.txt"
! awk -f tests/tools/stack.awk -v image=1 -v roots=more "$folder/frames.txt" "$folder/more.ci" >"$folder/result" 2>"$folder/log"
verdict "stack: a frame that is not known fails" [ $? -eq 0 ]
verdict "stack: it says whose" grep -q 'its frame is not known: unknown' "$folder/log"
echo 'unknown | frame | 200' >>"$folder/frames.txt"
awk -f tests/tools/stack.awk -v image=1 -v roots=more "$folder/frames.txt" "$folder/more.ci" >"$folder/result" 2>"$folder/log"
verdict "stack: one that is listed counts" [ "$(awk '$1 == "call" { print $3 - 200 }' "$folder/result")" = \
  "$(sed -n 's/.*n\([0-9]*\) bytes (static).*/\1/p' "$folder/more.ci")" ]
echo ' libgcc.a(_new.o)' >"$folder/more.map"
! awk -f tests/tools/stack.awk -v image=1 -v roots=more "$folder/frames.txt" "$folder/more.map" "$folder/more.ci" \
  >"$folder/result" 2>"$folder/log"
verdict "stack: an object of the compiler's whose frame is not known fails" [ $? -eq 0 ]
printf '%s\n' 'struct table { int (*run)(int); };' 'int more(const struct table *table, int n)' '{' \
  '  return n + table->run(n);' '}' >"$folder/more.c"
arm-none-eabi-gcc -mcpu=cortex-m3 -mthumb -Os -fcallgraph-info=su -o "$folder/more.o" -c "$folder/more.c"
! awk -f tests/tools/stack.awk -v image=1 -v roots=more "$folder/frames.txt" "$folder/more.ci" >"$folder/result" 2>"$folder/log"
verdict "stack: a program's call through a pointer that is not listed fails" [ $? -eq 0 ]
verdict "stack: it says which" grep -q 'that no list has: more.c:more run' "$folder/log"
echo 'more.c:more | run | caller:any_one' >>"$folder/frames.txt"
! awk -f tests/tools/stack.awk -v image=1 -v roots=more "$folder/frames.txt" "$folder/more.ci" >"$folder/result" 2>"$folder/log"
verdict "stack: a callback of which no list says what it is fails" [ $? -eq 0 ]
echo 'caller:any_one | any | -' >>"$folder/frames.txt"
awk -f tests/tools/stack.awk -v image=1 -v roots=more "$folder/frames.txt" "$folder/more.ci" >"$folder/result" 2>"$folder/log"
verdict "stack: one that there is not passes" [ $? -eq 0 ]

# Of two static functions of one name, one is linked.
for file in small large; do
  size=8
  [ $file = small ] || size=400
  printf '%s\n' "static int run(int n) { volatile char text[$size] = {0}; return text[0] + n; }" \
    "extern int (*const $file)(int);" "int (*const $file)(int) = run;" >"$folder/$file.c"
  (cd "$folder" && arm-none-eabi-gcc -mcpu=cortex-m3 -mthumb -Os -fcallgraph-info=su -c $file.c)
done
echo 'more.c:more | run | small.c:run large.c:run' >"$folder/calls.txt"
# deep NAME...: the stack of more(), if these are linked
deep() {
  printf '%s\n' "$@" >"$folder/more.linked"
  awk -f tests/tools/stack.awk -v roots=more "$folder/calls.txt" "$folder/more.linked" "$folder/more.ci" "$folder/small.ci" \
    "$folder/large.ci" 2>"$folder/log" | sed -n 's/^call more //p'
}
verdict "stack: a static function that is not linked does not count" [ "$(deep more small.c:run)" -lt 100 ]
verdict "stack: one that is linked counts" [ "$(deep more large.c:run)" -gt 400 ]
verdict "stack: one whose file is not known counts" [ "$(deep more run)" -gt 400 ]
exit $failed
