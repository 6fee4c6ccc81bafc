#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The examples of the manual: each is run, or at least read by the program that it is for.
# shellcheck source=tests/support/lib.sh disable=SC1003,SC2016,SC2034,SC2046,SC2086,SC2154,SC1091,SC2317
set -u
. tests/support/lib.sh

# example NAME: writes it to a file of that name in $dir
example() {
  sed 's/\\-/-/g' boards/fairlock/fairlock.1 | sed -n '/^\.\\" example: '"$1"'$/,/^\.EE$/p' | sed '1,2d;$d' >"$dir/$1"
  [ -s "$dir/$1" ] || fail "the manual has no example $1"
  ! grep -q '\\' "$dir/$1" || fail "roff is left: $(cat "$dir/$1")"
}

# program NAME...: each is a script in $dir that notes its name and arguments, and the token, in $dir/ran
program() {
  for name in "$@"; do
    printf '#!/bin/sh\necho "%s${*:+ }$*" >>"%s/ran"\n[ "$FAIRLOCK_TOKEN" ] || exit 99\n' "$name" "$dir" >"$dir/$name"
    chmod +x "$dir/$name"
  done
}

# with_fairlock: what the examples call fairlock is ours
with_fairlock() {
  ln -s "$fairlock" "$dir/fairlock"
  PATH=$dir:$PATH
}

ran() {
  [ "$(cat "$dir/ran" 2>/dev/null)" = "$1" ] || fail "'$(cat "$dir/ran")' was run instead of '$1'"
}

test_shell() {
  with_fairlock
  program backup.sh job
  example shell
  cd "$dir" || fail "no $dir"
  expect 0 sh -e ./shell
  [ "$(cat out)" = "$(printf 'started\n[]')" ] || fail "$(cat out)"
  ran "$(printf 'backup.sh\njob')"
  run nightly sleep 60 &
  eventually held nightly
  run backup sleep 60 &
  eventually held backup
  sed -i 's/-w 60/-w 0.1/' shell
  expect 0 sh ./shell
  printed 'runs elsewhere'
  printed 'backup: held by '
}

test_download() {
  with_fairlock
  program download.sh replace.sh
  example download
  cd "$dir" || fail "no $dir"
  expect 0 sh -e ./download
  ran "$(printf 'download.sh\nreplace.sh\ndownload.sh')"
  [ ! -s out ] || fail "$(cat out)"
  for holder in 1 2 3 4 5 6 7 8 9 10; do
    run --limit 10 firmware sleep 60 &
    eventually sh -c "'$fairlock' status --json firmware | grep -q '\"holder_count\":$holder,'"
  done
  sed -i 1,2d download
  expect 0 sh ./download
  printed 'ten download now'
  ran "$(printf 'download.sh\nreplace.sh\ndownload.sh')"
}

test_sentinel() {
  example sentinel
  expect 0 sh -n "$dir/sentinel"
  expect 64 env $(sed -n 's/^export //p' "$dir/sentinel") "$fairlock" run --replicas 2 --lease 60
  said 'the NAME of a lock is missing'
  expect 64 env $(sed -n 's/^export //p' "$dir/sentinel") "$fairlock" status --sentinel-user x a # it has Sentinels
  said 'a user for the Sentinels but no password'
}

# What hangs has its time from when it holds the lock, however long it has waited. What hangs in another process group is
# ended, too.
test_hangs() {
  with_fairlock
  program nightly
  echo 'setsid sh -c "echo \$\$ >moved; exec sleep 600" & wait' >>"$dir/nightly"
  example hangs
  cd "$dir" || fail "no $dir"
  sed -i 's/3600/2/' hangs
  run nightly sleep 3 &
  eventually held nightly
  expect 83 timeout -s KILL 100 sh ./hangs
  ran nightly
  dead "$(cat moved)" || fail "a part of the job runs without the lock"
  unheld nightly || fail 'it is still held'
}

# What takes it, from the steps of CI that the manual has, and what releases it. Each step is a shell of its own.
test_ci() {
  with_fairlock
  printf '#!/bin/sh\nredis-cli -p %s hlen deploy >>"%s/ran"\n' $port "$dir" >"$dir/deploy.sh"
  chmod +x "$dir/deploy.sh"
  for name in github.yaml gitlab.yaml Jenkinsfile hold.sh; do example $name; done
  cd "$dir" || fail "no $dir"
  RUNNER_TEMP=$dir CI_BUILDS_DIR=$dir CI_JOB_ID=7 WORKSPACE_TMP=$dir
  export RUNNER_TEMP CI_BUILDS_DIR CI_JOB_ID WORKSPACE_TMP
  expect 0 python yaml -c '
import sys, yaml
print("\n".join(step["run"] for step in yaml.safe_load(open("github.yaml"))["steps"]))'
  cp out steps
  while read -r step; do expect 0 sh -c "$step"; done <steps
  ran 1
  eventually unheld deploy
  expect 0 python yaml -c '
import yaml
job = yaml.safe_load(open("gitlab.yaml"))["deploy"]
print("\n".join(job["before_script"] + job["script"]))'
  cp out script
  rm ran
  expect 0 sh -e ./script
  ran 1
  eventually unheld deploy
  sed -n "s/.*sh '\(.*\)'.*/\1/p" Jenkinsfile >steps
  [ "$(wc -l <steps)" = 3 ] || fail "$(cat steps)"
  rm ran
  while read -r step; do expect 0 sh -c "$step"; done <steps
  ran 1
  unheld deploy || fail "it is still held"
  rm ran
  expect 0 bash ./hold.sh
  ran 1
  eventually unheld deploy
}

test_cron() {
  with_fairlock
  program nightly
  example cron
  cd "$dir" || fail "no $dir"
  [ "$(grep -c '^[A-Z_]*=[^ ]*$' cron)" = 1 ] || fail "$(cat cron)"
  job=$(sed -n 's/^[0-9*]* [0-9*]* [0-9*]* [0-9*]* [0-9*]*  *//p' cron)
  case $job in *%*) fail "a % is the end of a line to cron" ;; esac
  job=$(echo "$job" | sed 's/at-least 60/at-least 5/')
  /bin/sh -c "$job" >out 2>err &
  first=$!
  eventually grep -qx nightly ran
  expect 1 /bin/sh -c "$job" # a minute fast
  ends 0 $first
  unheld nightly || fail "it is held"
  ran nightly
  [ ! -s out ] || fail "mail: $(cat out)"
  [ ! -s err ] || fail "mail: $(cat err)"
}

# The script locks itself once, with its arguments and exit status; while it runs, another is turned
# away; and one that is started under another lock takes its own.
test_script() {
  with_fairlock
  example nightly.sh
  cd "$dir" || fail "no $dir"
  chmod +x nightly.sh
  expect 0 ./nightly.sh 'a b' '$(c)'
  [ "$(cat out)" = "nightly a b \$(c), token $(redis hget 'fairlock:{nightly}' token)" ] || fail "$(cat out)"
  echo '[ $# -lt 2 ] || exit 7; touch began; tail -f /dev/null' >>nightly.sh
  expect 7 ./nightly.sh 1 2
  env --default-signal ./nightly.sh &
  first=$!
  eventually test -e began
  rm began
  expect 1 ./nightly.sh
  kill $first
  ends 143 $first
  # one that starts it, and another that comes back to a lock that waits for it
  head -n 2 nightly.sh | sed 's/nightly/outer/g' >outer.sh
  echo '[ "$1" = back ] || ./nightly.sh 1 2; echo "inner $?, $FAIRLOCK_NAME"' >>outer.sh
  head -n 2 nightly.sh | sed 's/nightly/between/g' >between.sh
  echo './outer.sh back' >>between.sh
  sed -i 's|^\[ "$1" = back.*|&; [ "$1" = back ] \|\| ./between.sh; echo "between $?"|; s/run -n/run/' outer.sh
  chmod +x outer.sh between.sh
  expect 0 ./outer.sh one
  [ "$(sed 's/, token .*//' out)" = "$(printf 'nightly 1 2\ninner 7, outer\nbetween 80')" ] || fail "$(cat out)"
}

# unit NAME: an example with paths in $dir, as systemd accepts it
unit() {
  example "$1"
  sed -i "s|/usr/local/bin|$dir|g; s|/etc/fairlock|$dir|; s|/var/lib/prometheus/node-exporter|$dir|" "$dir/$1"
}

# start_of UNIT: the command that it executes
start_of() {
  sed -n 's/^ExecStart=//p' "$dir/$1"
}

test_systemd() {
  with_fairlock
  program backup scheduler
  units='backup.service backup.timer scheduler.service fairlock-metrics.service fairlock-metrics.timer fairlock-load.service fairlock-load.timer'
  for name in $units; do unit $name; done
  expect 0 systemd-analyze verify --man=no $(printf "$dir/%s " $units)
  [ ! -s "$dir/err" ] || fail "$(cat "$dir/err")"
  for timer in backup fairlock-metrics; do
    expect 0 systemd-analyze calendar "$(sed -n 's/^OnCalendar=//p' "$dir/$timer.timer")"
  done
  # systemd would complain of a setting that it does not know
  sed 's/^KillMode=/KillModus=/' "$dir/backup.service" >"$dir/wrong.service"
  systemd-analyze verify --man=no "$dir/wrong.service" >"$dir/out" 2>"$dir/err"
  said KillModus
  (umask 077 && echo secret >"$dir/password")
  redis config set requirepass secret >"$dir/out"
  export CREDENTIALS_DIRECTORY="$dir"
  expect 0 sh -c "$(start_of backup.service)"
  ran backup
  [ ! -s "$dir/err" ] || fail "$(cat "$dir/err")"
  expect 0 sh -c "$(start_of fairlock-metrics.service)"
  grep -q '^fairlock_list_success{.*} 1$' "$dir/fairlock.prom" || fail "$(cat "$dir/fairlock.prom")"
  expect 0 sh -c "$(start_of fairlock-load.service)"
  printed "127.0.0.1:$port: lock "
  "$fairlock" run --password-file "$dir/password" backup tail -f /dev/null &
  password=secret
  eventually held backup
  success=$(sed -n 's/^SuccessExitStatus=//p' "$dir/backup.service")
  expect "$success" sh -c "$(start_of backup.service | sed 's/-w 3600/-w 0.1/')"
}

# KillMode=mixed: only fairlock gets the signal to end, and leaves nothing that would have to be
# killed.
test_stopped_service() {
  with_fairlock
  unit scheduler.service
  printf '#!/bin/sh\nexec tail -f /dev/null\n' >"$dir/scheduler"
  chmod +x "$dir/scheduler"
  env --default-signal $(start_of scheduler.service) &
  leader=$!
  eventually held scheduler
  agent=$(agent_of $leader)
  kill $leader
  ends 143 $leader
  unheld scheduler || fail "it is held"
  eventually dead "$agent"
}

test_leader() {
  with_fairlock
  unit scheduler.service
  printf '#!/bin/sh\necho $$ >>"%s/leaders"\nexec tail -f /dev/null\n' "$dir" >"$dir/scheduler"
  chmod +x "$dir/scheduler"
  env $(start_of scheduler.service) &
  first=$!
  eventually held scheduler
  eventually test -s "$dir/leaders"
  env $(start_of scheduler.service) &
  second=$!
  eventually waits 1 scheduler
  [ "$(wc -l <"$dir/leaders")" = 1 ] || fail "two lead"
  agent=$(agent_of $first)
  kill -9 "$agent" $first # all of the machine, but for the guard, which is to end what is left
  eventually sh -c "[ \$(wc -l <'$dir/leaders') = 2 ]"
  dead "$(head -n 1 "$dir/leaders")" || fail "the first scheduler runs"
  kill $second
  ends 143 $second
}

test_cronjob() {
  with_fairlock
  program nightly
  example cronjob.yaml
  expect 0 python yaml -c '
import sys, yaml
job = yaml.safe_load(open(sys.argv[1]))
pod = job["spec"]["jobTemplate"]["spec"]["template"]["spec"]
(container,), (volume,) = pod["containers"], pod["volumes"]
(mount,) = container["volumeMounts"]
assert mount["name"] == volume["name"] and volume["secret"]["defaultMode"] == 0o400, pod
assert mount["mountPath"] + "/password" in container["command"], container
print("\n".join(container["command"]))
' "$dir/cronjob.yaml"
  cp "$dir/out" "$dir/command"
  cd "$dir" || fail "no $dir"
  sed -i "s|^/redis/|$dir/|" command
  while read -r argument; do set -- "$@" "$argument"; done <./command
  redis config set requirepass secret >out
  (umask 077 && echo secret >password)
  expect 0 "$@"
  ran nightly
}

test_make() {
  with_fairlock
  program deploy.sh
  example Makefile
  cd "$dir" || fail "no $dir"
  expect 0 make -s deploy SITE=north
  ran 'deploy.sh north'
  redis hexists 'fairlock:{deploy-north}' token >out
  printed 1
}

[ $# -eq 0 ] || run_tests "$@"
run_tests shell download sentinel hangs ci cron script systemd stopped_service leader cronjob make
