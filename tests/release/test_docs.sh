#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# make docs makes pages of all public headers, without a warning, and fails for what has no comment.
# shellcheck source=tests/support/verdicts.sh disable=SC2154
set -u
. tests/support/verdicts.sh
copy=$folder/copy
mkdir "$copy"
cp -R Makefile lock resp port boards tests "$copy"
html=$copy/build/docs/html

# docs: in the copy; its output is in $folder/log
docs() {
  make -s --no-print-directory -C "$copy" BUILD=build docs >"$folder/log" 2>&1
}

docs
verdict "docs: make docs has nothing to say but where they are" [ "$(cat "$folder/log")" = build/docs/html/index.html ]

# All but those that are private to the library, or to a port.
missing=
for header in lock/*.h lock/*.hpp resp/*.h port/*.h port/*/*.h; do
  case $header in */port_types.h | port/template_types.h | port/port_flash.h | port/netx/ticks.h | port/posix/cancel.h | port/posix/process.h | port/posix/resolve.h | lock/engine.h | lock/internal.h | lock/state.h | lock/scripts.h | lock/share.h | lock/texts.h | lock/timing.h) continue ;; esac
  page=$(basename "$header" | sed 's/_/__/g; s/\./_8/').html
  [ -e "$html/$page" ] || missing="$missing $header"
done
echo "none for$missing" >"$folder/log"
verdict "docs: each public header has a page" [ -z "$missing" ]
verdict "docs: what is laid out stays so" grep -q '^ *FAIRLOCK_BUSY  *wait_ms was 0' "$html/fairlock_8h.html"
verdict "docs: one comment is that of all that follow" \
  [ "$(grep -c '^<p>A non-recursive mutex' "$html/port_8h.html")" = 4 ]
verdict "docs: what is private is left out" sh -c "! grep -rq subscribe_sequence '$html'"

# Each line is put where the mark stands, into a copy of the header, whose comment is not for it.
# refuses NAME HEADER MARK LINE WORDS
refuses() {
  cp "$2" "$folder/header.h"
  sed "s|^$3|$4\\n&|" "$folder/header.h" >"$copy/$2"
  verdict "docs: the plant is in its place: $1" sh -c "! cmp -s '$2' '$copy/$2'"
  ! docs && grep -q "$5" "$folder/log"
  verdict "docs: $1" [ $? -eq 0 ]
  cp "$2" "$copy/$2"
}
refuses "a function without a comment fails" lock/fairlock.h '/\* Counts since fairlock_client_init' \
  'int fairlock_undescribed(int number);\n' 'fairlock_undescribed.*is not documented'
refuses "a member without a comment fails" lock/fairlock.h '  const char \*user;' \
  '  const char *undescribed;\n' 'undescribed (variable) of struct fairlock_config is not documented'
refuses "a status without a comment fails" lock/fairlock.h '  FAIRLOCK_OK = 0' \
  '  FAIRLOCK_UNDESCRIBED = 9,\n' 'fairlock.h:[0-9]*: .*has_no_comment'
refuses "a function of C++ without a comment fails" lock/fairlock.hpp '  /\* fairlock_token() \*/' \
  '  int undescribed() noexcept;\n' 'undescribed.*is not documented'
refuses "a macro without a comment fails" resp/resp.h '/\* Room for the digits' \
  '#define RESP_UNDESCRIBED 1\n' 'RESP_UNDESCRIBED.*is not documented'
refuses "a struct without a comment fails" port/port.h '/\* A non-recursive mutex' \
  'struct port_undescribed {\n  int number;\n};\n' 'port_undescribed is not documented'
refuses "a name that is not there fails" port/port.h '/\* A non-recursive mutex' \
  '/* See @ref port_nowhere(). */\nint port_undescribed(void);\n' 'port_nowhere'
exit $failed
