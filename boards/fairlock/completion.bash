# Completion of fairlock for bash. What it offers comes from the command's help.
_fairlock()
{
  local word=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]} offered=
  if ((COMP_CWORD == 1)); then
    offered="run status watch list break --help --version"
  elif [[ $previous == --on-lost ]]; then
    offered="term kill ignore"
  elif [[ $previous =~ ^--(password-file|sentinel-password-file|metrics-file|cacert|cert|key)$ ]]; then
    mapfile -t COMPREPLY < <(compgen -f -- "$word")
    return
  elif [[ $previous == --cacertdir ]]; then
    mapfile -t COMPREPLY < <(compgen -d -- "$word")
    return
  elif [[ $word == -* ]]; then
    offered=$("${COMP_WORDS[0]}" "${COMP_WORDS[1]}" --help 2>/dev/null |
      sed -n 's/^ *\(-[a-zA-Z], \)\{0,1\}\(--[a-z-]*\).*/\2/p')
  elif [[ ${COMP_WORDS[1]} == run ]]; then
    mapfile -t COMPREPLY < <(compgen -c -- "$word")
    return
  fi
  mapfile -t COMPREPLY < <(compgen -W "$offered" -- "$word")
}
complete -F _fairlock fairlock
