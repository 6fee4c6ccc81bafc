#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Completion for bash and zsh: the installed files offer what the command's help lists, and the names
# of locks, which are typed into interactive shells.
# shellcheck source=tests/support/lib.sh disable=SC2016,SC2034,SC2086,SC2089,SC2090,SC2154,SC1091,SC2317
set -u
. tests/support/lib.sh

# in_bash WORD...: what completes the last word, sorted, in $dir/offered
in_bash() {
  expect 0 bash -c '. boards/fairlock/completion.bash
    COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMP_LINE="$*"
    complete -p fairlock >/dev/null || exit 2
    _fairlock "$1" "${!#}"
    printf "%s\n" "${COMPREPLY[@]}"' bash "$@"
  sort "$dir/out" >"$dir/offered"
}

# in_zsh WORD...: the same; zsh's own functions are replaced by ones that note what they are asked
in_zsh() {
  expect 0 zsh -f -c 'compadd() { [[ $1 != -- ]] || shift; print -l -- ${(M)@:#$words[CURRENT]*}; }
    _files() { print "files $*"; }
    _command_names() { print commands; }
    words=("$@") CURRENT=$#
    . boards/fairlock/_fairlock || :' zsh "$@"
  sort "$dir/out" >"$dir/offered"
}

# offers COMPLETE: subcommands, and of each all options that its help lists
offers() {
  "$1" "$fairlock" ''
  for subcommand in run hold acquire release status watch list break history load; do
    grep -qx $subcommand "$dir/offered" || fail "not $subcommand: $(cat "$dir/offered")"
  done
  "$1" "$fairlock" st
  [ "$(cat "$dir/offered")" = status ] || fail "$(cat "$dir/offered")"
  for subcommand in run hold acquire release status watch list break history load; do
    "$fairlock" $subcommand --help | grep -o -e '^ *\(-., \)*--[a-z-]*' | sed 's/.* //' | sort >"$dir/options"
    [ "$(wc -l <"$dir/options")" -gt 10 ] || fail "no options: $(cat "$dir/options")"
    "$1" "$fairlock" $subcommand --
    cmp -s "$dir/options" "$dir/offered" || fail "$subcommand: $(diff "$dir/options" "$dir/offered")"
    while read -r option; do # a line of the help's text may begin like one
      "$fairlock" $subcommand "$option" </dev/null >"$dir/said" 2>&1
      ! grep -q 'there is no option' "$dir/said" || fail "$subcommand has no $option"
    done <"$dir/options"
  done
  "$1" "$fairlock" run --on-lost ''
  [ "$(tr '\n' ' ' <"$dir/offered")" = 'ignore kill term ' ] || fail "$(cat "$dir/offered")"
  "$1" "$fairlock" run --on-ask ''
  [ "$(tr '\n' ' ' <"$dir/offered")" = 'hup ignore int kill quit term usr1 usr2 ' ] || fail "$(cat "$dir/offered")"
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

# a_lock NAME...: each is held by nobody in particular
a_lock() {
  for name in "$@"; do
    redis hset "$name" me:1 1 >"$dir/set"
    redis hset "fairlock:{$name}" token 1 >"$dir/set"
  done
}

# with_programs: fairlock is ours, but what completion does not run notes its arguments; and timeout
# gives more time, so that no test depends on the speed of the machine
with_programs() {
  mkdir "$dir/bin" "$dir/here"
  cat >"$dir/bin/fairlock" <<EOF
#!/bin/sh
case " \$* " in
  *' list --null '* | *' --help '*) exec "$fairlock" "\$@" ;;
esac
printf '%s\0' "\$@" >"$dir/arguments.new"
mv "$dir/arguments.new" "$dir/arguments"
EOF
  cat >"$dir/bin/timeout" <<EOF
#!/bin/sh
[ "\$1" = 1 ] || echo "timeout \$*" >>"$dir/wrong"
shift
exec $(command -v timeout) 20 "\$@"
EOF
  chmod +x "$dir/bin/fairlock" "$dir/bin/timeout"
  PATH=$dir/bin:$PATH
}

# types SHELL: the lines of $dir/lines, each followed by TAB and return. $dir/got has the arguments of
# fairlock for each.
types() {
  case $1 in
    bash) set -- "bind 'set bell-style none'; . '$PWD/boards/fairlock/completion.bash'" bash --norc --noprofile -i ;;
    zsh) set -- "fpath=('$PWD/boards/fairlock' \$fpath); autoload -U compinit; compinit -u -D; unsetopt beep" zsh -f -i ;;
  esac
  { echo "cd '$dir/here'; $1" && cat "$dir/lines"; } >"$dir/typed"
  shift
  TERM=vt100 LC_ALL=C.UTF-8 python3 tests/command/type.py "$dir" "$@" <"$dir/typed" >"$dir/got" || fail "$1: $(cat "$dir/got")"
  [ ! -e "$dir/wrong" ] || fail "$(cat "$dir/wrong")"
  [ -z "$(ls -A "$dir/here")" ] || fail "something was executed: $(ls "$dir/here")"
}

# wanted JSON...: what $dir/got has to be, a line each
wanted() {
  printf '%s\n' "$@" | jq -c . >"$dir/wanted"
  jq -c . "$dir/got" | cmp -s - "$dir/wanted" || fail "$shell: $(jq -c . "$dir/got" | diff - "$dir/wanted" | tr '\n' ' ')"
}

# Any name arrives as it is, and does nothing else: in the server anybody may have put one.
test_hostile_names() {
  with_programs
  a_lock 'n1$(touch x)' 'n2`touch x`' 'n3; touch x' "$(printf 'n4\ntouch x\n.')" "n5'\"\\n" 'n6 a b' 'n7|touch x&' 'n8>x' \
    "$(printf 'n9\033[2J\rtouch x\r')" 'nA$x$HOME~*?' 'nB#!!x' 'Tür ✓' 'door:7:1' 'a=b@c' '-rf' '%s%n'
  for i in 1 2 3 4 5 6 7 8 9 A B; do echo "fairlock status n$i"; done >"$dir/lines"
  printf 'fairlock %s\n' 'status T' 'status door:7' 'status door:7:' 'status a=' 'status %' 'watch -i 1 door' 'break door' \
    'status x door' 'status -- door' >>"$dir/lines"
  for shell in bash zsh; do
    types $shell
    wanted '["status","n1$(touch x)"]' '["status","n2`touch x`"]' '["status","n3; touch x"]' '["status","n4\ntouch x\n."]' \
      '["status","n5\u0027\"\\n"]' '["status","n6 a b"]' '["status","n7|touch x&"]' '["status","n8>x"]' \
      '["status","n9\u001b[2J\rtouch x\r"]' '["status","nA$x$HOME~*?"]' '["status","nB#!!x"]' '["status","Tür ✓"]' \
      '["status","door:7:1"]' '["status","door:7:1"]' '["status","a=b@c"]' '["status","%s%n"]' '["watch","-i","1","door:7:1"]' \
      '["break","door:7:1"]' '["status","x","door:7:1"]' '["status","--","door:7:1"]'
  done
}

# In quotes; for run, which has one name, also after options; and of the server that the line names.
test_names_where() {
  with_programs
  a_lock other
  url=redis://127.0.0.1:$port
  start_server --requirepass secret
  password=secret
  a_lock 'name x' 'long:name y'
  (umask 077 && echo secret >"$dir/password")
  that="--url redis://127.0.0.1:$port --password-file $dir/password"
  FAIRLOCK_URL=$url
  printf 'fairlock %s\n' "$that status nam" "status $that nam" "status --url=redis://:secret@127.0.0.1:$port long:n" \
    "run -n $that -w 3 --lease=4 nam" "status $that 'nam" "status $that \"long:n" 'status ot' "status --url '$url' ot" 'watch --ur' 'run --and ot' 'run --and other ot' >"$dir/lines"
  that=$(echo "$that" | sed 's/[^ ][^ ]*/"&"/g; s/ /,/g')
  for shell in bash zsh; do
    types $shell
    wanted "[$that,\"status\",\"name x\"]" "[\"status\",$that,\"name x\"]" \
      "[\"status\",\"--url=redis://:secret@127.0.0.1:$port\",\"long:name y\"]" \
      "[\"run\",\"-n\",$that,\"-w\",\"3\",\"--lease=4\",\"name x\"]" "[\"status\",$that,\"name x\"]" "[\"status\",$that,\"long:name y\"]" \
      '["status","other"]' "[\"status\",\"--url\",\"$url\",\"other\"]" '["watch","--url"]' \
      '["run","--and","other"]' '["run","--and","other","other"]'
  done
}

# No names: what an option takes, what follows the name, an address that takes an expansion, a pipe,
# and a server that does not answer in time.
test_no_names() {
  with_programs
  a_lock name
  mkfifo "$dir/pipe"
  for shell in bash zsh; do
    in_$shell fairlock status na
    grep -qx name "$dir/offered" || fail "$shell: $(cat "$dir/offered")"
    in_$shell fairlock run -E 3 na
    grep -qx name "$dir/offered" || fail "$shell: $(cat "$dir/offered")"
    for words in -E 'name' '--url $(touch' '--url "`touch x`"' '--url $URL' "--password-file $dir/pipe" --metrics-file --on-lost; do
      set -f
      in_$shell fairlock run $words na
      set +f
      ! grep -qx name "$dir/offered" || fail "$shell: $words: $(cat "$dir/offered")"
    done
  done
  [ ! -e x ] || fail "something was executed"
  rm "$dir/bin/timeout"
  kill -STOP $server
  for shell in bash zsh; do
    began=$(now_ms)
    in_$shell fairlock status na
    [ $(($(now_ms) - began)) -lt 8000 ] || fail "$shell waited for $(($(now_ms) - began)) ms"
    ! grep . "$dir/offered" "$dir/err" || fail "$shell does not keep quiet"
  done
}

[ $# -eq 0 ] || run_tests "$@"
run_tests bash zsh hostile_names names_where no_names
