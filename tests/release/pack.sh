#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Prints a tar archive of a commit, the same bytes for everybody: tests/release/pack.sh COMMIT PREFIX
# [PATH]..., in a clone. Each name begins with PREFIX; without paths all is packed. The files have the
# commit's time, and root as their owner. git would also follow the settings and attributes of the user, the
# machine and the clone (tar.umask, core.autocrlf, export-ignore, replaced objects), so it reads the
# objects from an empty repository, where there are none.
set -eu
commit=$(GIT_NO_REPLACE_OBJECTS=1 git rev-parse --verify "$1^{commit}")
prefix=$2
shift 2
objects=$(cd "$(git rev-parse --git-path objects)" && pwd)
empty=$(mktemp -d)
trap 'rm -rf "$empty"' EXIT
trap 'exit 1' INT TERM HUP
for variable in $(git rev-parse --local-env-vars); do unset "$variable"; done
export GIT_CONFIG_NOSYSTEM=1 GIT_CONFIG_GLOBAL=/dev/null GIT_ATTR_NOSYSTEM=1 GIT_NO_REPLACE_OBJECTS=1
export HOME="$empty" XDG_CONFIG_HOME="$empty" # for a git older than GIT_CONFIG_GLOBAL
git init -q --bare --template= "$empty"
mkdir -p "$empty/objects/info"
echo "$objects" >"$empty/objects/info/alternates"
git --git-dir="$empty" archive --format=tar --prefix="$prefix" "$commit" "$@"
