#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A C header with what the options of a Kconfig file are by default: tests/portable/kconfig.sh FILE
# Defaults that have a condition are left out.
set -eu
awk '$1 == "config" { name = $2 } $1 == "default" && !/ if / { sub(/^[ \t]*default /, ""); print name, $0 }' "$1" |
  sed -e 's/ y$/ 1/' -e 's/^/#define CONFIG_/'
