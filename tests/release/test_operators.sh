#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What operators get, as the tools that it is for see it: promtool reads the metrics, the alerts and the
# dashboard's queries, Kubernetes' schemas the manual's CronJob. systemd's units are in
# tests/command/test_examples.sh.
# shellcheck source=tests/support/lib.sh disable=SC2016,SC2086,SC2154,SC1091,SC2317
set -u
. tests/support/lib.sh
promtool=$build/operators/promtool
alerts=boards/examples/operators/alerts.yml

# is_good FILE: promtool can read it, and has nothing to say about its names and types
is_good() {
  "$promtool" check metrics <"$1" >"$dir/out" 2>"$dir/err" || fail "$(cat "$dir/out" "$dir/err" "$1")"
  [ ! -s "$dir/out" ] && [ ! -s "$dir/err" ] || fail "$(cat "$dir/out" "$dir/err")"
}

# record: into $dir/*.prom, of a server with locks of several kinds, of one that cannot be reached, and of runs that
# wait, hold and have ended.
record() {
  "$fairlock" run --metrics-file "$dir/holds.prom" 'a"b\c' sleep 60 &
  eventually held 'a"b\c'
  "$fairlock" run --metrics-file "$dir/waits.prom" 'a"b\c' sleep 60 &
  eventually waits 1 'a"b\c'
  "$fairlock" run --limit 2 shared sleep 60 &
  eventually "$fairlock" status --quiet shared
  expect 3 "$fairlock" run --history --metrics-file "$dir/ended.prom" ended sh -c 'exit 3'
  redis hset r redisson:1 1 >"$dir/out"
  redis rpush 'redisson_lock_queue:{r}' redisson:2 >"$dir/out"
  expect 0 "$fairlock" list --metrics-file "$dir/list.prom"
  expect 75 "$fairlock" list --metrics-file "$dir/none.prom" --url redis://127.0.0.1:1
}

# Each metric that an alert is about is among them.
test_metrics() {
  record
  for file in holds waits ended list none; do
    is_good "$dir/$file.prom"
    grep -v '^#' "$dir/$file.prom"
  done >"$dir/samples"
  [ "$(wc -l <"$dir/samples")" -gt 50 ] || fail "$(cat "$dir/samples")"
  sed -n 's/^ *expr: //p' $alerts | grep -o 'fairlock_[a-z_]*' | sort -u >"$dir/asked"
  [ "$(wc -l <"$dir/asked")" -ge 7 ] || fail "$(cat "$dir/asked")"
  while read -r metric; do
    grep -q "^$metric{" "$dir/samples" || fail "nothing writes $metric"
  done <"$dir/asked"
  # promtool would complain
  sed 's/ gauge$/ gouge/' "$dir/list.prom" >"$dir/bad.prom"
  ! "$promtool" check metrics <"$dir/bad.prom" >"$dir/out" 2>&1 || fail "it takes anything"
}

test_alerts() {
  expect 0 "$promtool" check rules --lint=all --lint-fatal $alerts
  expect 0 "$promtool" test rules tests/release/alerts.yml
  # each is tested
  sed -n 's/^ *- alert: //p' $alerts | sort >"$dir/alerts"
  sed -n '/exp_alerts/{x;s/^ *alertname: //p;x};h' tests/release/alerts.yml | sort -u | cmp -s - "$dir/alerts" || fail "not all are tested"
}

# Each query of the dashboard finds something in what the command writes, and one that asks for what it does not write
# would be found.
test_dashboard() {
  dashboard=boards/examples/operators/dashboard.json
  record
  expect 0 python3 tests/release/dashboard.py $dashboard "$dir"/*.prom
  mv "$dir/out" "$dir/good.yml"
  expect 0 "$promtool" test rules "$dir/good.yml"
  for change in s/fairlock_lock_waiters/fairlock_lock_waits/ s/by.\(lock\)/by/ 's/state=..held/&s/'; do
    sed "$change" $dashboard >"$dir/bad.json"
    expect 0 python3 tests/release/dashboard.py "$dir/bad.json" "$dir"/*.prom
    mv "$dir/out" "$dir/bad.yml"
    expect 1 "$promtool" test rules "$dir/bad.yml"
  done
  sed 's/"x": 12/"x": 13/' $dashboard >"$dir/bad.json"
  expect 1 python3 tests/release/dashboard.py "$dir/bad.json"
}

test_cronjob() {
  sed 's/\\-/-/g' boards/fairlock/fairlock.1 | sed -n '/^\.\\" example: cronjob.yaml$/,/^\.EE$/p' | sed '1,2d;$d' >"$dir/cronjob.yaml"
  cat >"$dir/check.py" <<'END'
import json, jsonschema, sys, yaml
schema = json.load(open(sys.argv[1]))
schema["$ref"] = "#/$defs/io.k8s.api.batch.v1.CronJob"
jsonschema.Draft202012Validator(schema).validate(yaml.safe_load(open(sys.argv[2])))
END
  for change in '' '/schedule/d' 's/image:/imago:/' 's/backoffLimit: 2/backoffLimit: two/' 's/defaultMode/mode/' 's/readOnly: true/readOnly: 1/'; do
    sed "$change" "$dir/cronjob.yaml" >"$dir/changed.yaml"
    wanted=$([ -z "$change" ] && echo 0 || echo 1)
    expect "$wanted" python jsonschema,yaml "$dir/check.py" "$build/operators/kubernetes.json" "$dir/changed.yaml"
  done
}

[ $# -eq 0 ] || run_tests "$@"
run_tests metrics alerts dashboard cronjob
