#!/bin/sh
# The gates of sizes fail beyond their thresholds, and pass below: tests/tools/check_size.sh, and that
# of the boards, tests/qemu/sizes.sh.
# shellcheck source=tests/support/verdicts.sh disable=SC2154,SC2319
set -u
. tests/support/verdicts.sh

printf '%-44s %6d   aim %5d   %+d\n' 'a superloop: start, poll, release' 10200 10240 -40 \
  'struct fairlock, each lock' 104 96 8 'data and bss of the library' 0 0 0 >"$folder/printed"
echo 'flash, bytes of text (cc)' >>"$folder/printed"

# size SUPERLOOP LOCK DATA [VERSION]: with a page of these lines
size() {
  printf '%s\n' 'For a Cortex-M3 with gcc 12.2 and such.' '' '| Cortex-M3, bytes | | aim |' '| --- | --- | --- |' \
    "| a superloop: start, poll, release | $1 | 10240 |" "| struct fairlock, each lock | $2 | 96 |" \
    "| data and bss of the library | $3 | 0 |" '' '| row | 7 | other table |' >"$folder/page.md"
  sh tests/tools/check_size.sh "$folder/printed" "${4:-12.2.1}" "$folder/page.md" >"$folder/log" 2>&1
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
sed '/^struct/d' "$folder/printed" >"$folder/fewer"
mv "$folder/fewer" "$folder/printed"
! size 10200 104 0
verdict "size: a line that is not printed fails" [ $? -eq 0 ]
echo 'with gcc 12.2 ' >"$folder/page.md"
! sh tests/tools/check_size.sh "$folder/printed" 12.2.1 "$folder/page.md" >"$folder/log" 2>&1
verdict "size: a page without a table fails" [ $? -eq 0 ]

# boards NAME COLUMN FACTOR ADDED: passes when that column of one image is so much larger
boards() {
  awk -v name="$1" -v column="$2" -v factor="$3" -v added="$4" '
    NR == 1 { for (i = 3; i <= NF; i++) if ($i == column) at = i - 1 }
    $1 == name { $at = int($at * factor + added) }
    { print }' boards/sizes.txt >"$folder/boards"
  sh tests/qemu/sizes.sh build boards/sizes.txt "$folder/boards" >"$folder/log" 2>&1
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
  sh tests/qemu/sizes.sh build "$folder/table" "$folder/boards" >"$folder/log" 2>&1
  echo $? >>"$folder/statuses"
done
verdict "size: 12 KB of RAM pass, and a byte more fails" [ "$(tr '\n' ' ' <"$folder/statuses")" = "0 1 " ]
exit $failed
