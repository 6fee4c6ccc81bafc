#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tests/tools/source.sh asks for Debian 12's sources on any Debian, in both forms of apt's lists; and the
# boards' demo asks for nothing of TLS.
# shellcheck source=tests/support/verdicts.sh disable=SC2154
set -u
. tests/support/verdicts.sh
tool=$(pwd)/tests/tools/source.sh

# An apt-get that shows what it would get, and from where.
mkdir -p "$folder/bin" "$folder/etc/sources.list.d"
cat >"$folder/bin/apt-get" <<'END'
#!/bin/sh
cat apt/parts/*
for last; do :; done
echo "asked for $last"
END
chmod +x "$folder/bin/apt-get"

# gets: as on a machine with the lists of $folder/etc
gets() {
  rm -rf "$folder/there"
  PATH="$folder/bin:$PATH" ETC="$folder/etc" sh "$tool" "$folder/there" lwip 2.1.3 2 ${suite:+"$suite"} >"$folder/log" 2>&1
}

printf '%s\n' 'deb http://deb.example/debian trixie main' 'deb http://deb.example/debian trixie-updates main' \
  'deb http://deb.example/debian-security trixie-security main' >"$folder/etc/sources.list"
gets
verdict "source: by sources.list" grep -qx 'deb-src http://deb.example/debian bookworm main' "$folder/log"
verdict "source: the version that is wanted" grep -qx 'asked for lwip=2.1.3-2' "$folder/log"
! grep -q -e trixie -e security "$folder/log"
verdict "source: nothing of another Debian" [ $? -eq 0 ]

printf '%s\n' 'Types: deb' 'URIs: http://deb.example/debian' 'Suites: trixie trixie-updates' 'Components: main' \
  'Signed-By: /usr/share/keyrings/debian-archive-keyring.pgp' '' 'Types: deb' 'URIs: http://deb.example/debian-security' \
  'Suites: trixie-security' 'Components: main' >"$folder/etc/sources.list.d/debian.sources"
gets
verdict "source: by debian.sources" grep -qx 'Suites: bookworm' "$folder/log"
verdict "source: as sources" grep -qx 'Types: deb-src' "$folder/log"
verdict "source: with its key" grep -q '^Signed-By: ' "$folder/log"
! grep -q -e trixie -e security "$folder/log"
verdict "source: nothing of another Debian there" [ $? -eq 0 ]

suite=sid
gets
verdict "source: of another suite" grep -qx 'Suites: sid' "$folder/log"

make -n board-demo BUILD="$folder/build" >"$folder/log" 2>&1
verdict "demo: it builds the superloop" grep -q 'superloop\.elf' "$folder/log"
! grep -q -e 'fetch.sh.*bearssl' -e 'fetch.sh.*mbedtls' -e superloop_ca "$folder/log"
verdict "demo: and nothing of TLS" [ $? -eq 0 ]
make -n firmware BOARD=riscv-virt BUILD="$folder/build" >"$folder/log" 2>&1
! grep -q -e 'fetch.sh.*bearssl' -e 'fetch.sh.*mbedtls' "$folder/log"
verdict "firmware: a board without TLS does not ask for it" [ $? -eq 0 ]
exit $failed
