#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Whether the pictures in the pages, tests/demo/timeline.svg and shared.svg, show the lock as it should
# be, and whether the check that says so (picture.sh) finds what is wrong with pictures in which one
# thing was changed.
# shellcheck source=tests/support/verdicts.sh disable=SC2154
set -u
picture=tests/demo/timeline.svg
. tests/support/verdicts.sh

# plant NAME FAULT SCRIPT: the picture, changed by sed's script, is refused, also for the reason
# that the fault names.
plant() {
  sed "$3" "$picture" >"$folder/planted.svg"
  sh tests/demo/picture.sh "$folder/planted.svg" >/dev/null 2>"$folder/log"
  [ $? -eq 1 ] && ! cmp -s "$picture" "$folder/planted.svg" && grep -q "^fault: $2" "$folder/log"
  verdict "demo_picture_planted_$1" [ $? -eq 0 ]
}

# token TURN: the token of that turn's hold
token() {
  sed -n "s/.*data-turn='$1' data-token='\([0-9]*\)'.*/\1/p" "$picture"
}

# row ARRIVAL: where the bars of that contender are
row() {
  sed -n "/data-arrival='$1'/,/<\/g>/s/.*class='waits'.* y='\([0-9]*\)'.*/\1/p" "$picture"
}

sh tests/demo/picture.sh "$picture" >/dev/null 2>"$folder/log"
verdict demo_picture_committed [ $? -eq 0 ]

# The rules of the lock.
plant overlap 'overlaps 5 crowds 0' "/data-turn='2'/s/data-until='/&9/"
plant order 'thread 4: it asked as number 4' "s/arrival='4'/arrival='X'/;s/arrival='5'/arrival='4'/;s/arrival='X'/arrival='5'/"
plant arrival 'thread 6: it asked as number 6' "s/arrival='6'/arrival='7'/"
plant token_falls 'overlaps 0 crowds 0 tokens [1-9]' "/data-turn='3'/s/data-token='[0-9]*'/data-token='1'/"
plant token_again 'overlaps 0 crowds 0 tokens [1-9]' "s/$(token 5)/$(token 4)/"
plant turn 'process 7: its turn is not number 6' "s/data-turn='6'/data-turn='7'/"
plant starved 'process 7: it neither held nor was killed' "/data-turn='6'/d"
plant twice 'thread 2: it holds more than once' "/data-turn='2'/p"
plant missing 'there are 7 contenders' "/data-contender='thread 8'/,/<\/g>/d"
plant no_wait 'thread 4: it does not wait once' "/data-contender='thread 4'/,/<\/g>/{/class='waits'/d}"
plant dead_twice 'process 3: it is killed more than once' "/class='crash' data-at/p"
plant dead_waits 'process 3: it waits on' "/class='crash' data-at/s/data-at='/&1/"
plant lease 'process 5: what is left of its lease' "/class='lease' data/s/data-until='/&1/"
plant no_lease 'process 5: it was killed as holder' "/class='lease' data/d"
plant gap 'thread 4: it does not hold when' "/data-turn='3'/s/data-from='/&1/"
plant verdict 'the verdict is: order broken' "s/order kept/order broken/"

# What is drawn is what the data says.
plant width 'thread 2: a bar is not where' "/data-turn='2'/s/width='/&1/"
plant place 'process 7: a bar is not where' "/data-turn='6'/s/ x='/&1/"
plant row 'thread 2: a bar is not in its row' "/data-turn='2'/s/ y='/&1/"
plant same_row 'thread 4: it is in the row of process 3' \
  "/data-contender='thread 4'/,/<\/g>/s/ y='[0-9]*' w/ y='$(row 3)' w/"
plant backwards 'thread 2: a bar ends before it begins' "/data-turn='2'/s/data-until='[0-9]*'/data-until='1'/"
plant number 'thread 4: the turn written' "s/>turn 3</>turn 2</"
plant token_text 'thread 4: the token written' "/data-contender='thread 4'/,/<\/g>/s/\(class='end token'>\)./\19/"
plant no_token 'thread 4: it has a hold and no token' "/data-contender='thread 4'/,/<\/g>/{/class='end token'/d}"

# It is an SVG that the pages can show, with nothing from outside.
plant malformed 'not well-formed' '$d'
plant script 'something from outside' '$s/^/<script>alert(1)<\/script>/'
plant outside 'something from outside' '$s/^/<image href="picture.png"\/>/'
plant font 'something from outside' 's/<style>/&@import "font.css";/'
plant wide 'wider than 900' "s/viewBox='0 0 /&1/"
plant large 'larger than 30 KB' "\$s/^/<!-- $(printf '%30720s' '') -->/"

# Readers and a writer.
picture=tests/demo/shared.svg
sh tests/demo/picture.sh "$picture" >/dev/null 2>"$folder/log"
verdict demo_picture_shared_committed [ $? -eq 0 ]

plant shared_beside 'overlaps 1 crowds 1' "/data-turn='4'/s/data-until='/&9/"
plant shared_before 'overlaps 3 crowds 0' "/data-turn='5'/s/data-until='/&9/"
plant shared_too_many 'overlaps 1 crowds 2' "/data-turn='1'/s/data-until='/&9/"
plant shared_limit 'there never are 4 that share' "s/data-limit='3'/data-limit='4'/"
plant shared_one_limit 'overlaps 0 crowds [1-9]' "s/data-limit='3'/data-limit='2'/"
plant shared_colour 'reader 2: it is drawn as if it holds' "/data-turn='2'/s/'shares'/'holds'/"
plant shared_writer 'writer 5: it is drawn as if it shares' "/data-turn='5'/s/'holds'/'shares'/"
plant shared_order 'writer 5: it asked as number 5' "s/arrival='5'/arrival='X'/;s/arrival='6'/arrival='5'/;s/arrival='X'/arrival='6'/"
plant shared_token 'overlaps 0 crowds 0 tokens [1-9]' "s/$(token 8)/$(token 7)/"
plant shared_no_lease 'reader 3: it was killed as holder' "/class='lease' data/d"
plant shared_verdict 'the verdict is: order kept, at most 3 at a time, the writer beside others' "s/writer alone/writer beside others/"
exit $failed
