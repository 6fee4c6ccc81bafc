# Completion of fairlock for bash. What it offers comes from the command's help and, for the NAME of
# a lock, from the server that the line or FAIRLOCK_URL names, within a second. Anybody may have
# chosen such a name: it is quoted, and goes through no expansion.

# _fairlock_join: sets words. Bash splits them at colons and the like, too; here only blanks do.
_fairlock_join()
{
  local line=$COMP_LINE part
  for part in "${COMP_WORDS[@]:0:COMP_CWORD+1}"; do
    if [[ ${#words[@]} -eq 0 || $line == [[:space:]]* ]]; then words+=("$part"); else words[-1]+=$part; fi
    line=${line#"${line%%[![:space:]]*}"}
    line=${line#"$part"}
  done
}

# _fairlock_plain WORD: sets plain to what the shell will make of it, unless that takes an expansion
_fairlock_plain()
{
  plain=$1
  case $1 in
    \'*\') plain=${1:1:-1} && [[ $plain != *\'* ]] ;;
    \"*\") plain=${1:1:-1} && [[ $plain != *[\"\$\`\\]* ]] ;;
    *) [[ $1 != *[\"\'\$\`\\\(\)\{\}\<\>\;\&\|\~\*\?]* ]] ;;
  esac
}

# _fairlock_give OPTION VALUE: the server is asked with it. A pipe's password can be read only once.
_fairlock_give()
{
  local plain
  _fairlock_plain "$2" && [[ $1 != *password-file || -f $plain ]] || return
  given+=("$1" "$plain")
}

# _fairlock_names WORD: those that begin with it; the last word ends with WORD, and only that part of
# it is replaced
_fairlock_names()
{
  local typed=${words[-1]} pattern='*' name shown
  local before=${typed%"$1"}
  [[ $typed == *[!A-Za-z0-9:._/-]* ]] || pattern="$typed*"
  while shown='' && IFS= read -r -d '' name; do
    case $typed in
      \'*) [[ $name == *[\'[:cntrl:]]* ]] || shown=\'$name ;;
      \"*) [[ $name == *[\"\$\`\\![:cntrl:]]* ]] || shown=\"$name ;;
      *) printf -v shown %q "$name" ;;
    esac
    [[ $name != -* && $shown == "$before"* ]] || continue
    [[ $shown != "$typed"* && $name != "$typed"* ]] || COMPREPLY+=("${shown#"$before"}")
  done < <(timeout 1 "${words[0]}" list --null "${given[@]}" -- "$pattern" </dev/null 2>/dev/null)
}

_fairlock()
{
  local words=() given=() subcommand='' valued='' operands=0 known=1 i word
  _fairlock_join
  local last=$((${#words[@]} - 1))
  for ((i = 1; i < last; i++)); do
    word=${words[i]}
    case $word in
      --url | --password-file | --sentinel-user | --sentinel-password-file | --cacert | --cacertdir | --cert | --key | --sni)
        ((++i >= last)) || _fairlock_give "$word" "${words[i]}" || known=0
        ;;
      --url=* | --password-file=* | --sentinel-user=* | --sentinel-password-file=* | --cacert=* | --cacertdir=* | --cert=* | --key=* | --sni=*)
        _fairlock_give "${word%%=*}" "${word#*=}" || known=0
        ;;
      --insecure) given+=("$word") ;;
      -*) [[ $valued != *" $word "* ]] || ((++i)) ;;
      *)
        if [[ -n $subcommand ]]; then
          ((++operands))
          [[ $subcommand != run ]] || break
        else
          subcommand=$word
          valued=$("${words[0]}" "$word" --help 2>/dev/null |
            sed -n 's/^ *\(\(-[a-zA-Z], \)\{0,1\}--[a-z-]* \)[A-Z].*/ \1/p' | tr -d '\n,')
        fi
        ;;
    esac
  done
  word=${words[last]}
  local offered=
  if [[ ${words[last - 1]} == --on-lost ]]; then
    offered="term kill ignore"
  elif [[ ${words[last - 1]} == --on-ask ]]; then
    offered="term int hup quit usr1 usr2 kill ignore"
  elif [[ ${words[last - 1]} =~ ^--(password-file|sentinel-password-file|metrics-file|cacert|cert|key|state|svg)$ || $subcommand$operands == release0 && $word != -* ]]; then
    mapfile -t COMPREPLY < <(compgen -f -- "$word")
    return
  elif [[ ${words[last - 1]} == --cacertdir ]]; then
    mapfile -t COMPREPLY < <(compgen -d -- "$word")
    return
  elif ((i > last)) && [[ ${words[last - 1]} != --and ]]; then
    return # the value of an option
  elif [[ -z $subcommand ]]; then
    offered="run hold acquire release status watch list break history load --help --version"
  elif [[ $word == -* && ($subcommand != run || $operands == 0) ]]; then
    offered=$("${words[0]}" "$subcommand" --help 2>/dev/null |
      sed -n 's/^ *\(-[a-zA-Z0-9], \)\{0,1\}\(--[a-z-]*\).*/\2/p')
  elif [[ $subcommand == run && $operands != 0 ]]; then
    mapfile -t COMPREPLY < <(compgen -c -- "$word")
    return
  elif [[ ${words[last - 1]} == --and || $subcommand == status || ($subcommand =~ ^(run|hold|acquire|watch|break|history)$ && $operands == 0) ]]; then
    ((known == 0)) || _fairlock_names "$2"
    return
  fi
  mapfile -t COMPREPLY < <(compgen -W "$offered" -- "$word")
}
complete -F _fairlock fairlock
