#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Sees to it that Debian packages are installed: tests/tools/need.sh PACKAGE... PROGRAM=PACKAGE is one
# that is needed only where nothing else has brought PROGRAM. As root, or by sudo without a password,
# it installs what is missing, and says how far it is; otherwise it prints the line that does, and
# fails. So it does for
# everybody with INSTALL=0 in the environment. It waits for 10 minutes for another package manager to
# end. No package it is used for starts a service. Where there is no apt, it looks for what the
# packages have, by packages.txt, and installs nothing: if anything is missing, it says how that
# package manager is asked for it.
set -eu
missing=
for package; do
  shift
  case $package in
    *=*) if command -v "${package%%=*}" >/dev/null; then continue; fi ;;
  esac
  case " $* " in
    *" ${package#*=} "*) ;; # once
    *) set -- "$@" "${package#*=}" ;;
  esac
done

# there ENTRY: what the second column of packages.txt says is on this machine
there() {
  for thing in $(echo "$1" | tr , ' '); do
    case $thing in
      /*) [ -e "$thing" ] || return 1 ;;
      *%*)
        for python in "${thing%%%*}" "/usr/bin/${thing%%%*}"; do
          if "$python" -c "import ${thing#*%}" 2>/dev/null; then continue 2; fi
        done
        return 1
        ;;
      *'<'*) echo "#include <${thing#*<}" | "${thing%%<*}" -E -x c - >/dev/null 2>&1 || return 1 ;;
      *)
        for program in $(echo "$thing" | tr '|' ' '); do
          if command -v "$program" >/dev/null; then continue 2; fi
        done
        return 1
        ;;
    esac
  done
}

# names MANAGER PACKAGE...: what it calls them, each once
names() {
  column=$(sed -n 's/^# package //p' "$list" | tr ' ' '\n' | grep -n -x -e "$1" | cut -d : -f 1)
  shift
  for package; do
    awk -v package="$package" -v column="$column" '$1 == package { print $(column + 1) }' "$list"
  done | grep -v -x -e - | sort -u | tr '\n' ' ' | sed 's/ $//'
}

# unknown MANAGER PACKAGE...: those that it has no name for
unknown() {
  manager=$1
  shift
  for package; do [ -n "$(names "$manager" "$package")" ] || printf ' %s' "$package"; done
}

# how MANAGER PACKAGE...: prints the line that installs them there
how() {
  case $1 in
    apk) line="as root: apk add" ;;
    pacman) line="as root: pacman -S" ;;
    brew) line="brew install" ;;
    *) line="as root: $1 install" ;;
  esac
  known=$(names "$@")
  rest=$(unknown "$@")
  [ -z "$known" ] || echo "  $line $known"
  [ -z "$rest" ] || echo "  not by $1, as far as is known here:$rest"
}

# without_apt PACKAGE...
without_apt() {
  list=$(dirname "$0")/packages.txt
  for package; do
    look=$(awk -v package="$package" '$1 == package { print $2 }' "$list")
    if [ -z "$look" ] || ! there "$look"; then missing="$missing $package"; fi
  done
  [ -n "$missing" ] || exit 0
  echo "missing, by the names of Debian's packages:$missing" >&2
  case "$missing " in
    *' dpkg-dev '*)
      echo "  dpkg-dev is Debian's alone: lwIP and BearSSL for the boards come as its source packages." >&2
      echo "  make unit, make test PART=server/ and PART=command/ do without" >&2
      ;;
  esac
  # shellcheck disable=SC2086
  for manager in dnf apk pacman brew pkg; do
    if command -v $manager >/dev/null; then
      how $manager $missing >&2
      exit 1
    fi
  done
  # shellcheck disable=SC2086
  for manager in dnf apk pacman brew pkg; do how $manager $missing >&2; done
  exit 1
}

if ! command -v apt-get >/dev/null || ! command -v dpkg-query >/dev/null; then without_apt "$@"; fi
for package in "$@"; do
  dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || missing="$missing $package"
done
[ -n "$missing" ] || exit 0
line="apt-get update && apt-get install -y --no-install-recommends$missing"
[ "$(id -u)" = 0 ] || line="sudo sh -c '$line'"
if [ "${INSTALL-}" = 0 ]; then
  echo "missing packages, and INSTALL=0; run: $line" >&2
  exit 1
elif [ "$(id -u)" = 0 ]; then
  as_root=
elif sudo -n true 2>/dev/null; then
  as_root=sudo
else
  echo "missing packages; run: $line" >&2
  exit 1
fi
echo "installing:$missing" >&2
errors=$(mktemp)
trap 'rm -f "$errors" "$errors.status"' EXIT
trap 'exit 1' INT TERM HUP
tries=300

# progress: of what apt-get says of its steps, each quarter of the two that take long
progress() {
  was='' next=25
  while IFS=: read -r kind _ percent _; do
    case $kind,$percent in
      dlstatus,[0-9]*) what=downloaded ;;
      pmstatus,[0-9]*) what=installed ;;
      *) continue ;;
    esac
    [ "$what" = "$was" ] || next=25
    was=$what
    percent=${percent%%.*}
    [ "$percent" -ge "$next" ] || continue
    echo "  $what: $percent %" >&2
    next=$((percent - percent % 25 + 25))
  done
}

silence() {
  cat >/dev/null
}

# patiently READER WORD...: apt-get, whose steps READER gets, again and again while a lock is all that
# it lacks. By itself it waits for dpkg's lock only, not for that of the lists.
patiently() {
  reader=$1
  shift
  while :; do
    { $as_root env LC_ALL=C DEBIAN_FRONTEND=noninteractive apt-get -qq -o DPkg::Lock::Timeout=600 -o APT::Status-Fd=1 "$@" \
      2>"$errors" && : >"$errors.status"; } | "$reader"
    [ ! -e "$errors.status" ] || break
    tries=$((tries - 1))
    if [ $tries -le 0 ] || ! grep -q 'Could not get lock' "$errors"; then
      cat "$errors" >&2
      exit 1
    fi
    sleep 2
  done
  rm "$errors.status"
  cat "$errors" >&2
}

echo "  reading Debian's lists of packages" >&2
patiently silence update
# shellcheck disable=SC2086
env LC_ALL=C apt-get -qq --print-uris install --no-install-recommends $missing 2>/dev/null |
  awk '{ sum += $3 } END { if (sum > 0) printf "  %.1f MB to download\n", sum / 1000000 }' >&2
# shellcheck disable=SC2086
patiently progress install -y --no-install-recommends $missing
