#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# make site: links of its pages lead to what is there, and one that does not is found.
# shellcheck source=tests/support/verdicts.sh disable=SC2154,SC2317
set -u
. tests/support/verdicts.sh
site=$folder/site

# holds: nothing is wrong with the site, which is not empty
holds() {
  python3 tests/release/site_links.py "$site" >"$folder/log" 2>&1
  grep -v '^# ' "$folder/log" >"$folder/wrong"
  [ ! -s "$folder/wrong" ] && awk '$1 == "#" { many = $2 > 40 && $4 > 1000 } END { exit !many }' "$folder/log"
}

make -s --no-print-directory site SITE="$site" >"$folder/log" 2>&1
verdict "site: make site makes it" [ $? -eq 0 ]
verdict "site: each link leads to a file and an anchor, nothing comes from elsewhere" holds
has() { grep -q -e "$2" "$site/$1" 2>"$folder/log"; }
verdict "site: the first page" has index.html '<h1 id="fairlock-a-fair-distributed-lock-that-firmware-can-hold">'
verdict "site: its tables" has index.html '<table>'
verdict "site: its pictures" has index.html '<img src="tests/demo/timeline.svg"'
verdict "site: a picture is the one of the page" cmp -s tests/demo/timeline.svg "$site/tests/demo/timeline.svg"
verdict "site: the manual" has boards/fairlock/fairlock.1.html 'id="EXIT_STATUS"'
verdict "site: the page for operators" has lock/PRODUCTION.html '<h2 id="draining-a-host">'
verdict "site: the format" has lock/FORMAT.html '<h1'
verdict "site: a source as it is" has lock/fairlock.h.html '#include &lt;stdint.h&gt;'

# finds NAME FROM TO: a change of the first page is found
finds() {
  cp "$site/index.html" "$folder/kept"
  sed "s|$2|$3|" "$folder/kept" >"$site/index.html"
  ! cmp -s "$folder/kept" "$site/index.html" && ! holds && [ "$(wc -l <"$folder/wrong")" = 1 ]
  verdict "site: the check finds $1" [ $? -eq 0 ]
  cp "$folder/kept" "$site/index.html"
}
finds "a link to nowhere" 'href="lock/JAVA.html"' 'href="lock/JAWA.html"'
finds "an anchor that is not there" 'href="#what-is-guaranteed"' 'href="#what-is-granted"'
finds "what is loaded from elsewhere" 'src="tests/demo/timeline' 'src="https://example.org/timeline'
finds "a script" '</main>' '<script>1</script>'

# A link to what is not there makes no site, here of as few pages as there may be.
mkdir -p "$folder/few/boards/fairlock" "$folder/few/lock" "$folder/few/tests/tools"
cp tests/tools/sources.sh "$folder/few/tests/tools/"
for page in README.md lock/README.md lock/PRODUCTION.md lock/FORMAT.md tests/README.md boards/fairlock/fairlock.1; do
  echo '# [A page](#a-page)' >"$folder/few/$page"
done
few() { (cd "$folder/few" && python3 "$script" "$site") >"$folder/log" 2>&1; }
script=$(pwd)/tests/release/site.py
few
verdict "site: few pages are one" [ $? -eq 0 ]
echo '[nowhere](lock/NOWHERE.md)' >>"$folder/few/README.md"
few
verdict "site: a link to a file that is not there fails" [ $? -eq 1 ]
verdict "site: and is named" grep -qx 'README.md has a link to lock/NOWHERE.md, which is not there' "$folder/log"
exit $failed
