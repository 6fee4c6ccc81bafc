#!/bin/sh
# What fairlock run --metrics-file writes, as a parser of Prometheus's own reads it, and as JSON.
# shellcheck source=tests/support/lib.sh disable=SC2016,SC2034,SC2046,SC2086,SC2154,SC1091,SC2317
set -u
. tests/support/lib.sh

# same WHAT WANTED
same() {
  [ "$1" = "$2" ] || fail "'$1' instead of '$2'"
}

# samples FILE: "name{labels} value" of each sample, in order; every metric has a help text and a type
samples() {
  python prometheus_client -c '
import sys
from prometheus_client.parser import text_fd_to_metric_families
with open(sys.argv[1]) as file:
    for family in text_fd_to_metric_families(file):
        assert family.type in ("counter", "gauge") and family.documentation, family
        for sample in family.samples:
            labels = ",".join("%s=%s" % pair for pair in sorted(sample.labels.items()))
            print("%s{%s} %s" % (sample.name, labels, repr(sample.value)))
' "$1"
}

# has LINE: of $dir/samples
has() {
  grep -qxF -e "$1" "$dir/samples" || fail "no '$1': $(cat "$dir/samples")"
}

# shows LINE: waits until the file has it
shows() {
  eventually sh -c "grep -qxF '$1' '$dir/m.prom'"
}

test_text() {
  expect 0 "$fairlock" run a true # the server knows the scripts from here on
  before=$(date +%s)
  expect 7 "$fairlock" run --metrics-file "$dir/m.prom" a sh -c 'sleep 0.3; exit 7'
  [ ! -s "$dir/err" ] || fail "$(cat "$dir/err")"
  samples "$dir/m.prom" >"$dir/samples" || fail "it cannot be parsed: $(cat "$dir/m.prom")"
  for line in 'fairlock_acquires_total{lock=a} 1.0' 'fairlock_waits_total{lock=a} 0.0' 'fairlock_handovers_total{by=message,lock=a} 0.0' \
    'fairlock_handovers_total{by=asking,lock=a} 0.0' 'fairlock_renewals_total{lock=a} 0.0' 'fairlock_losses_total{lock=a} 0.0' \
    'fairlock_connects_total{lock=a} 1.0' 'fairlock_requests_total{lock=a} 2.0' 'fairlock_held{lock=a} 0.0' 'fairlock_exit_status{lock=a} 7.0'; do
    has "$line"
  done
  same "$(wc -l <"$dir/samples")" 14
  awk -v before="$before" -v after="$(date +%s)" '
    /_wait_seconds/ { good += $2 >= 0 && $2 < 60 }
    /_hold_seconds/ { good += $2 >= 0.3 && $2 < 60 }
    /_start_time_seconds/ { good += $2 >= before; start = $2 }
    /_end_time_seconds/ { good += $2 >= start + 0.3 && $2 <= after + 1 }
    END { exit good != 4 }' "$dir/samples" || fail "$(cat "$dir/samples")"
  # nothing else is left in the folder, and a collector may read the file
  same "$(echo "$dir"/m.prom*)" "$dir/m.prom"
  same "$(cd "$dir" && umask 022 && "$fairlock" run --metrics-file=n.prom a true && stat -c %a n.prom)" 644
}

# While it waits, while it holds, and when it has lost the lock.
test_while_it_runs() {
  run a sleep 60 &
  holder=$!
  eventually held a
  run --lease 1 --kill-after 0.1 --metrics-file "$dir/m.prom" a tail -f /dev/null 2>"$dir/err.waiter" &
  waiter=$!
  shows 'fairlock_held{lock="a"} 0'
  eventually waits 1 a
  kill $holder
  ends 143 $holder
  shows 'fairlock_held{lock="a"} 1'
  samples "$dir/m.prom" >"$dir/samples"
  has 'fairlock_acquires_total{lock=a} 1.0'
  has 'fairlock_waits_total{lock=a} 1.0'
  ! grep -q -e exit_status -e end_time "$dir/samples" || fail "it has not ended: $(cat "$dir/samples")"
  # written again without an event, with what has changed since
  eventually grep -q '^fairlock_renewals_total{lock="a"} [1-9]' "$dir/m.prom"
  redis del a >"$dir/out"
  ends 79 $waiter
  samples "$dir/m.prom" >"$dir/samples"
  has 'fairlock_losses_total{lock=a} 1.0'
  has 'fairlock_held{lock=a} 0.0'
  has 'fairlock_exit_status{lock=a} 79.0'
}

test_not_acquired() {
  run a sleep 60 &
  eventually held a
  expect 1 "$fairlock" run -w 0.2 --metrics-file "$dir/m.prom" a true
  samples "$dir/m.prom" >"$dir/samples"
  has 'fairlock_acquires_total{lock=a} 0.0'
  has 'fairlock_hold_seconds{lock=a} 0.0'
  has 'fairlock_exit_status{lock=a} 1.0'
  grep -q '^fairlock_wait_seconds{lock=a} 0\.[2-9]' "$dir/samples" || fail "$(cat "$dir/samples")"
  stop_server
  expect 75 "$fairlock" run -n --metrics-file "$dir/m.prom" a true
  samples "$dir/m.prom" >"$dir/samples"
  has 'fairlock_connects_total{lock=a} 0.0'
  has 'fairlock_exit_status{lock=a} 75.0'
}

test_json() {
  expect 0 "$fairlock" run a true
  expect 3 "$fairlock" run --metrics-file "$dir/m.json" a sh -c 'jq -c "[.acquires, .held, .exit_status, .end_time_seconds]" "$0" >"$0.held"; exit 3' "$dir/m.json"
  same "$(jq -c 'del(.wait_seconds, .hold_seconds, .start_time_seconds, .end_time_seconds)' "$dir/m.json")" \
    '{"name":"a","acquires":1,"waits":0,"granted":0,"polled":0,"renewals":0,"losses":0,"connects":1,"requests":2,"held":false,"exit_status":3}'
  same "$(jq -c '[.wait_seconds >= 0, .hold_seconds > 0, .end_time_seconds - .start_time_seconds < 60]' "$dir/m.json")" '[true,true,true]'
}

# Any bytes: as a terminal would show them, with quotes and backslashes escaped as the format
# requires.
test_names() {
  for name in 'a"b\c' "$(printf 'new\nline\t\377')" 'Tür 7 ✓'; do
    expect 0 "$fairlock" run --metrics-file "$dir/m.prom" -- "$name" true
    samples "$dir/m.prom" >"$dir/samples" || fail "it cannot be parsed: $(cat "$dir/m.prom")"
    same "$(wc -l <"$dir/samples")" 14
    expect 0 "$fairlock" run --metrics-file "$dir/m.json" -- "$name" true
    jq -e '.exit_status == 0' "$dir/m.json" >"$dir/out" || fail "no JSON: $(cat "$dir/m.json")"
  done
  has 'fairlock_acquires_total{lock=Tür 7 ✓} 1.0'
  expect 0 "$fairlock" run --metrics-file "$dir/m.prom" 'a"b' true
  samples "$dir/m.prom" >"$dir/samples"
  has 'fairlock_acquires_total{lock=a"b} 1.0'
}

# A file that cannot be written only leads to a message.
test_no_file() {
  expect 5 "$fairlock" run --metrics-file "$dir/none/m.prom" a sh -c 'exit 5'
  same "$(cat "$dir/err")" "fairlock: cannot write metrics to $dir/none/m.prom: No such file or directory"
  mkdir "$dir/folder.prom"
  expect 0 "$fairlock" run --metrics-file "$dir/folder.prom" a true
  said "cannot write metrics to $dir/folder.prom: "
  same "$(find "$dir" -name 'folder.prom*' | wc -l)" 1
  expect 64 "$fairlock" run --metrics-file '' a true
  # the end of the file, or nothing: a reader that reads all the time sees whole files
  run --metrics-file "$dir/m.json" a sleep 1 &
  runner=$!
  eventually test -s "$dir/m.json"
  while kill -0 $runner 2>/dev/null; do
    jq -e .name "$dir/m.json" >"$dir/out" || fail "half a file"
  done
  wait $runner
}

# What is no file is not replaced by one: root would lose /dev/stdout, which is a link, or /dev/null.
test_no_regular_file() {
  mkfifo "$dir/pipe"
  ln -s /dev/null "$dir/link"
  : >"$dir/there"
  ln -s there "$dir/to_file"
  for kind in pipe link to_file; do
    expect 3 "$fairlock" run --metrics-file "$dir/$kind" a sh -c 'exit 3'
    same "$(cat "$dir/err")" "fairlock: cannot write metrics to $dir/$kind: Not a regular file"
  done
  [ -p "$dir/pipe" ] || fail "no pipe any more"
  [ -L "$dir/link" ] || fail "no link any more"
  [ -L "$dir/to_file" ] || fail "no link to a file any more"
  same "$(wc -c <"$dir/there")" 0
  expect 0 "$fairlock" run --metrics-file "$dir/there" a true
  [ -s "$dir/there" ] || fail "the file is not written"
}

[ $# -eq 0 ] || run_tests "$@"
run_tests text while_it_runs not_acquired json names no_file no_regular_file
