#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Gets what proves: tests/proof/get_cbmc.sh FOLDER leaves in FOLDER/bin the programs of CBMC 6.6 and
# the SAT solver CaDiCaL, of Debian 13. Nothing is installed: they run beside the C library of that
# suite (tests/tools/unpack.sh).
set -eu
tools=$(cd "$(dirname "$0")/../tools" && pwd)
rm -rf "$1" && mkdir -p "$1/bin" && cd "$1"
here=$(pwd)
by=$(sh "$tools/unpack.sh" trixie . cbmc cadical minisat libc6 libgcc-s1 libstdc++6 zlib1g)
for program in cbmc goto-cc goto-instrument cadical; do
  printf '#!/bin/sh\nexec %s %s "$@"\n' "$by" "$here/root/usr/bin/$program" >"bin/$program"
  chmod +x "bin/$program"
done
bin/cbmc --version | grep -q '^6\.6\.' || {
  echo "this is no CBMC 6.6: $(bin/cbmc --version 2>&1)" >&2
  rm -rf bin
  exit 1
}
