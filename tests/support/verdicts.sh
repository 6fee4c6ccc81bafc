# SPDX-License-Identifier: Apache-2.0
# What suites in shell share that judge one thing after the other: each reads it with
# ". tests/support/verdicts.sh" from the top folder, and ends with "exit $failed". $folder goes with
# the suite; what is in $folder/log is shown with a failure.
# shellcheck shell=sh disable=SC2034
folder=$(mktemp -d)
failed=0
trap 'rm -rf "$folder"' EXIT
trap 'echo "# ended by a signal"; exit 1' INT TERM HUP

# verdict NAME COMMAND...: an ok line if the command succeeds
verdict() {
  name=$1
  shift
  if "$@"; then echo "ok $name"; else
    [ ! -e "$folder/log" ] || tail -n 40 "$folder/log" | sed 's/^/# /'
    echo "not ok $name"
    failed=1
  fi
}
