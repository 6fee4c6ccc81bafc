#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Gets MicroPython, for tests alone, as the source package of Debian 13, because Debian 12 has none:
# boards/micropython/test/fetch.sh FOLDER leaves it in FOLDER/source.
set -eu
version=1.25.0+ds
sh tests/tools/source.sh "$1" micropython $version 1 trixie
rm -rf "$1/source"
mv "$1/micropython-$version" "$1/source"
rm -f "$1"/micropython_*
