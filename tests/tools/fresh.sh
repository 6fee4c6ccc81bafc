#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What a stranger's first commands do, on a machine that has nothing yet: tests/tools/fresh.sh FOLDER
# [TARGET]... Each TARGET is the words of one make command, '' for make alone, and has a root of its
# own: a minimal Debian, release RELEASE (bookworm), with make, a compiler and git, and a clone of
# this commit. README.md as TARGET is all that this page says to type, as it stands, in a minimal
# Debian without any of these. Of this machine it has apt's sources and proxies, CA certificates and
# names of hosts, because packages have to come from somewhere, and nothing else. FOLDER keeps the minimal Debians,
# which are made once; a TARGET works in an overlay above one, or in a copy where there is no overlay,
# which is removed in the end. It fails if a TARGET fails, or asks for packages more than once.
set -eu
release=${RELEASE:-bookworm}
packages=make,gcc,libc6-dev,man-db,git,ca-certificates
lines=$(dirname "$0")/../release/pages.awk

# type_page: what README.md says, at a stranger's pace: a line after the other in one shell, whatever
# they leave in the background
type_page() {
  awk -v want=commands -f "$lines" "$top/root/fairlock/README.md" >"$top/root/lines"
  awk -v want=c -f "$lines" "$top/root/fairlock/README.md" >"$top/root/fairlock/program.c"
  # shellcheck disable=SC2016
  chroot "$top" sh -c 'cd /root/fairlock && while IFS= read -r line <&3; do
    echo "\$ $line"
    eval "$line" 3<&- || { echo "exit status $?: $line" && exit 1; }
    sleep 1
  done 3</root/lines'
}

# What runs in mounts and processes of its own, with PID 1: enter ROOT BASE WORD...
if [ "${1:-}" = --enter ]; then
  root=$2 base=$3
  shift 3
  mkdir "$root/upper" "$root/work" "$root/top"
  mount -t overlay overlay -o "lowerdir=$base,upperdir=$root/upper,workdir=$root/work" "$root/top" 2>/dev/null ||
    cp -a "$base/." "$root/top"
  top=$root/top
  cp /etc/hosts /etc/resolv.conf "$top/etc"
  git -c advice.detachedHead=false clone -q --no-hardlinks . "$top/root/fairlock"
  mount -t proc proc "$top/proc"
  mount -t sysfs -o ro sysfs "$top/sys"
  mount -t tmpfs tmpfs "$top/dev"
  mkdir "$top/dev/pts" "$top/dev/shm"
  mount -t devpts -o newinstance,ptmxmode=666,mode=620,gid=5 devpts "$top/dev/pts"
  mount -t tmpfs tmpfs "$top/dev/shm"
  for device in null zero full random urandom tty; do
    : >"$top/dev/$device"
    mount --bind "/dev/$device" "$top/dev/$device"
  done
  ln -s pts/ptmx "$top/dev/ptmx"
  ln -s /proc/self/fd "$top/dev/fd"
  for number in 0:stdin 1:stdout 2:stderr; do ln -s "/proc/self/fd/${number%:*}" "$top/dev/${number#*:}"; done
  if [ "$*" = README.md ]; then
    type_page
    exit
  fi
  # Not exec: a first process that is no shell would not bury orphans.
  # shellcheck disable=SC2016
  chroot "$top" sh -c 'cd /root/fairlock && make "$@"' make "$@"
  exit
fi

folder=$1
shift
if [ "$(id -u)" != 0 ]; then
  echo "make fresh mounts file systems and changes its root, so only root can run it" >&2
  exit 1
fi
if [ ! -e .git ]; then
  echo "make fresh needs a clone of the repository: it tries a commit" >&2
  exit 1
fi
git diff --quiet HEAD || echo "not all is committed: what is not is left out" >&2
mkdir -p "$folder"
folder=$(cd "$folder" && pwd)
root=
inside=
making=
# The namespace of processes ends with its first, and its mounts with it.
clean() {
  [ -z "$inside" ] || kill -9 "$inside" 2>/dev/null || true
  [ -z "$inside" ] || wait "$inside" 2>/dev/null || true
  # shellcheck disable=SC2086
  rm -rf ${root:+"$root"} ${making:+"$making"} || { sleep 1 && rm -rf ${root:+"$root"} ${making:+"$making"}; }
}
trap clean EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

# sources: Debian's, as this machine gets them, but of that release
sources() {
  (
    # shellcheck source=/dev/null
    . /etc/os-release
    [ "$ID" = debian ] || exit 0
    for file in /etc/apt/sources.list /etc/apt/sources.list.d/debian.sources; do
      [ ! -e "$file" ] || sed "s/\\<$VERSION_CODENAME\\>/$release/g" "$file"
    done
  )
}

# settings: how this machine's apt reaches them
settings() {
  apt-config dump 2>/dev/null | grep -E '^Acquire::(https?|Check-[A-Za-z-]*|Retries|ForceIPv[46])(::[^ ]*)? ".+";$' || true
}

# make_base BASE PACKAGES: it is made anew each month, because what it lacks of upgrades each TARGET has
# to get.
make_base() {
  base=$1 included=$2
  making=$folder/new.$$
  mkdir "$making"
  sources >"$making/sources"
  settings >"$making/settings"
  echo "making a minimal Debian, $release" >&2
  set -- --quiet --mode=root --variant=minbase --include="$included" --aptopt="$making/settings"
  if [ -e /usr/local/share/ca-certificates ]; then
    # shellcheck disable=SC2016
    set -- "$@" --customize-hook='cp -R /usr/local/share/ca-certificates "$1/usr/local/share" && chroot "$1" update-ca-certificates'
  fi
  set -- "$@" "$release" "$making/root"
  if [ -s "$making/sources" ]; then
    # By the name that Debian gives it, and our scripts look for.
    # shellcheck disable=SC2016
    set -- --customize-hook='cd "$1/etc/apt/sources.list.d" && if [ -e 0000sources.sources ]; then mv 0000sources.sources debian.sources; fi' "$@" "$making/sources"
  fi
  mmdebstrap "$@" >"$making/log" 2>&1 || { cat "$making/log" >&2 && exit 1; }
  mv -T "$making/root" "$base" || [ -e "$base" ]
  rm -rf "$making"
  making=
}
# What runs that were killed have left.
for root in "$folder"/root.*; do
  kill -0 "${root##*.}" 2>/dev/null || rm -rf "$root"
done
root=

key=$({ date +%Y-%m && cat "$0" && sources && settings; } | sha256sum | cut -c 1-12)

# base_for WORD...: sets base, what this TARGET begins with
base_for() {
  case $* in
    README.md) base=$folder/bare.$release.$key included=ca-certificates ;;
    *) base=$folder/base.$release.$key included=$packages ;;
  esac
  [ -e "$base" ] || make_base "$base" "$included"
}

# try WORD...: make WORD... in a root of its own
try() {
  base_for "$@"
  began=$(date +%s)
  root=$folder/root.$$
  mkdir "$root"
  log=$root/log
  : >"$log"
  case $* in README.md) what="what README.md says" ;; *) what="make $*" ;; esac
  echo "### $what on a fresh $release"
  # shellcheck disable=SC2016
  setpriv --pdeathsig KILL unshare --mount --pid --ipc --uts --fork --kill-child \
    env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8 ${CI:+CI="$CI"} ${RETRY:+RETRY="$RETRY"} \
    ${http_proxy:+http_proxy="$http_proxy"} ${https_proxy:+https_proxy="$https_proxy"} ${no_proxy:+no_proxy="$no_proxy"} \
    sh "$0" --enter "$root" "$base" "$@" >"$log" 2>&1 </dev/null &
  inside=$!
  tail -n +1 -f --pid="$inside" "$log" &
  shown=$!
  status=0
  wait "$inside" || status=$?
  wait "$shown" || true
  inside=
  asked=$(grep -c '^installing: ' "$log" || true)
  if [ "$asked" -gt 1 ]; then
    echo "it asked for packages $asked times:"
    grep '^installing: ' "$log"
    status=1
  fi
  [ "$status" -eq 0 ] || failed="$failed, $what"
  echo "### $what on a fresh $release: exit status $status, $(($(date +%s) - began)) s"
  rm -rf "$root"
  root=
}

failed=
for target; do
  # shellcheck disable=SC2086
  try $target
done
[ -z "$failed" ] || { echo "failed on a fresh $release:${failed#,}" >&2 && exit 1; }
