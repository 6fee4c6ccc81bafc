#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The command without what only Linux has (FAIRLOCK_PLAIN_POSIX): it has to build, and still to end
# the commands that it must.
set -u
build=${BUILD:-build}
if ! make -s BUILD="$build/plain" CPPFLAGS=-DFAIRLOCK_PLAIN_POSIX "$build/plain/fairlock"; then
  echo "not ok builds"
  exit 1
fi
echo "ok builds"
FAIRLOCK=$(cd "$build/plain" && pwd)/fairlock
export FAIRLOCK
failed=0
sh tests/command/test_run.sh status_of_command environment agent_closes_what_it_inherits || failed=1
sh tests/command/test_lost.sh fairlock_is_killed agent_is_killed both_are_killed adopted_zombies_are_reaped \
  agent_is_stopped both_are_stopped fairlock_is_killed_and_agent_stopped both_are_killed_with_children \
  guard_ends_with_its_agent agent_is_stopped_at_the_end fairlock_is_killed_and_nobody_can_tell || failed=1
exit $failed
