#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The links of a package's page, which its reader has without the rest of the sources:
#   sh tests/languages/links.sh PAGE FOLDER
# Each leads to a heading of the page, to a file of the package, which is FOLDER, or to another place by https. Those
# that do not are printed.
# shellcheck disable=SC2013,SC2016
set -u
page=$1 folder=$2
headings=$(sed -n '/^```/,/^```/d; s/^##* //p' "$page" | tr '[:upper:]' '[:lower:]' | sed 's/[^a-z0-9 _-]//g; s/ /-/g')
bad=0
for link in $(sed '/^```/,/^```/d' "$page" | grep -o ']([^) ]*)' | sed 's/^](\(.*\))$/\1/'); do
  case $link in
  https://*) continue ;;
  '#'*) ! echo "$headings" | grep -qxF -e "${link#?}" || continue ;;
  *) [ ! -e "$folder/${link%%#*}" ] || continue ;;
  esac
  echo "$link leads nowhere"
  bad=1
done
exit $bad
