#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Prints a sed script: for each function of lock/ whose name port.h makes longer, what the linker calls it
# in a program of one task.
set -eu
release=$(sed -n 's/^#define PORT_RELEASE //p' port/port.h)
cat lock/*.h | sed -n "s/^#define \([a-z_]*\) *PORT_NAMED(\1)\$/s,^\1\$,\&_${release}_port_single,/p
  s/^#define \([a-z_]*\) *PORT_RELEASED(\1)\$/s,^\1\$,\&_${release},/p"
