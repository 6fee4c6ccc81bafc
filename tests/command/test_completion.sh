#!/bin/sh
# Completion for bash and zsh: the installed files offer what the command's help lists.
# shellcheck source=tests/support/lib.sh disable=SC2016,SC2086,SC2154,SC1091,SC2317
set -u
. tests/support/lib.sh

# in_bash WORD...: what completes the last word, sorted, in $dir/offered
in_bash() {
  expect 0 bash -c '. boards/fairlock/completion.bash
    COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
    complete -p fairlock >/dev/null || exit 2
    _fairlock
    printf "%s\n" "${COMPREPLY[@]}"' bash "$@"
  sort "$dir/out" >"$dir/offered"
}

# in_zsh WORD...: the same; zsh's own functions are replaced by ones that note what they are asked
in_zsh() {
  expect 0 zsh -f -c 'compadd() { [[ $1 != -- ]] || shift; print -l -- ${(M)@:#$words[CURRENT]*}; }
    _files() { print "files $*"; }
    _command_names() { print commands; }
    words=("$@") CURRENT=$#
    . boards/fairlock/_fairlock' zsh "$@"
  sort "$dir/out" >"$dir/offered"
}

# offers COMPLETE: subcommands, and of each all options that its help lists
offers() {
  "$1" "$fairlock" ''
  for subcommand in run status watch list break; do
    grep -qx $subcommand "$dir/offered" || fail "not $subcommand: $(cat "$dir/offered")"
  done
  "$1" "$fairlock" st
  [ "$(cat "$dir/offered")" = status ] || fail "$(cat "$dir/offered")"
  for subcommand in run status watch list break; do
    "$fairlock" $subcommand --help | grep -o -e '^ *\(-., \)*--[a-z-]*' | sed 's/.* //' | sort >"$dir/options"
    [ "$(wc -l <"$dir/options")" -gt 10 ] || fail "no options: $(cat "$dir/options")"
    "$1" "$fairlock" $subcommand --
    cmp -s "$dir/options" "$dir/offered" || fail "$subcommand: $(diff "$dir/options" "$dir/offered")"
  done
  "$1" "$fairlock" run --on-lost ''
  [ "$(tr '\n' ' ' <"$dir/offered")" = 'ignore kill term ' ] || fail "$(cat "$dir/offered")"
}

test_bash() {
  offers in_bash
  in_bash "$fairlock" run --cacert boards/fairlock/comp
  grep -qx boards/fairlock/completion.bash "$dir/offered" || fail "$(cat "$dir/offered")"
  in_bash "$fairlock" run name tru
  grep -qx true "$dir/offered" || fail "$(cat "$dir/offered")"
}

test_zsh() {
  offers in_zsh
  in_zsh "$fairlock" run --cacert ''
  grep -q '^files' "$dir/offered" || fail "$(cat "$dir/offered")"
  in_zsh "$fairlock" run name ''
  grep -qx commands "$dir/offered" || fail "$(cat "$dir/offered")"
}

[ $# -eq 0 ] || run_tests "$@"
run_tests bash zsh
