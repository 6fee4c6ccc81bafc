#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The statement of lock/PRODUCTION.md by which a database refuses a former holder, as it stands there,
# in PostgreSQL and SQLite: one writer after the other, two at a time, and many. Statements that are
# almost the same must not pass.
# shellcheck source=tests/support/lib.sh disable=SC2016,SC2086,SC2154,SC1091,SC2317
set -u
. tests/support/lib.sh
root=$build/operators/postgres/root
binaries=$root/usr/lib/postgresql/15/bin
libraries=$(find "$root/usr/lib" "$root/lib" -name '*.so.*' -printf '%h\n' 2>/dev/null | sort -u | paste -sd :)
table='CREATE TABLE valve (name TEXT PRIMARY KEY, state INTEGER, token BIGINT NOT NULL)'

statement() {
  awk -v want=sql -f tests/release/pages.awk lock/PRODUCTION.md
}

# with_libraries COMMAND...
with_libraries() {
  env LD_LIBRARY_PATH="$libraries" "$@"
}

# become COMMAND...: PostgreSQL does not run as root. The folder of the build may be root's alone.
become() {
  [ "$(id -u)" -ne 0 ] || set -- setpriv --reuid 65534 --regid 65534 --clear-groups \
    --inh-caps +dac_override --ambient-caps +dac_override "$@"
  exec env LD_LIBRARY_PATH="$libraries" TZ=UTC "$@"
}

# start_postgresql: at a Unix socket in $data
start_postgresql() {
  data=$top/postgresql
  mkdir "$data"
  [ "$(id -u)" -ne 0 ] || chown 65534:65534 "$data"
  (become "$binaries/initdb" -D "$data" -U postgres -A trust -N -E UTF8 --locale=C) >"$dir/out" 2>&1 || fail "$(cat "$dir/out")"
  become "$binaries/postgres" -D "$data" -F -k "$data" -h '' >"$dir/log" 2>&1 &
  postgresql=$!
  comes_up $postgresql "$dir/log" 'ready to accept' || fail "$(cat "$dir/log")"
}

# A fast shutdown, which leaves no shared memory behind.
stop_postgresql() {
  kill -INT $postgresql
  wait $postgresql
}

# query: runs what stands in stdin, with :name, :state and :token given, and prints what it returns.
# $first and $second: a state, which tells the writers apart, and the token.
query() {
  if [ "$database" = sqlite ]; then
    {
      printf '%s\n' '.timeout 60000' '.parameter init' ".parameter set :name 'door'" \
        ".parameter set :state $1" ".parameter set :token $2"
      cat
    } | sqlite3 -bail "$dir/$case.db" 2>&1
  else
    with_libraries "$binaries/psql" -X -q -A -t -h "$data" -U postgres -v ON_ERROR_STOP=1 \
      -v name="'door'" -v state="$1" -v token="$2" "$case" 2>&1
  fi
}

# writes STATE TOKEN: what the statement returns, which is the token, or nothing
writes() {
  query "$1" "$2" <"$dir/statement"
}

# A database with the empty table. All that is written to it, in order, is in `history`.
new_database() {
  case=case$((${case#case} + 1))
  {
    echo "$table;"
    if [ "$database" = sqlite ]; then
      echo 'PRAGMA journal_mode = wal;'
      echo 'CREATE TABLE history (step INTEGER PRIMARY KEY, state INTEGER, token BIGINT);'
      for event in INSERT UPDATE; do
        echo "CREATE TRIGGER on_$event AFTER $event ON valve BEGIN INSERT INTO history (state, token) VALUES (new.state, new.token); END;"
      done
    else
      echo 'CREATE TABLE history (step BIGSERIAL PRIMARY KEY, state INTEGER, token BIGINT);'
      echo 'CREATE FUNCTION note() RETURNS trigger AS $$ BEGIN INSERT INTO history (state, token) VALUES (new.state, new.token); RETURN new; END $$ LANGUAGE plpgsql;'
      echo 'CREATE TRIGGER on_write AFTER INSERT OR UPDATE ON valve FOR EACH ROW EXECUTE FUNCTION note();'
    fi
  } >"$dir/new"
  [ "$database" = sqlite ] || with_libraries "$binaries/createdb" -h "$data" -U postgres "$case" || fail "no database"
  query 0 0 <"$dir/new" >"$dir/out" || fail "$(cat "$dir/out")"
}

# holds WHAT WANTED GOT
holds() {
  [ "$2" = "$3" ] || {
    echo "# $database: $1: '$3' instead of '$2'"
    return 1
  }
}

stored() {
  echo 'SELECT state, token FROM valve;' | query 0 0
}

# One after the other.
in_turn() {
  new_database
  holds 'the first write' 7 "$(writes 1 7)" &&
    holds 'the same holder once more' 7 "$(writes 2 7)" &&
    holds 'what it has written' '2|7' "$(stored)" &&
    holds 'the next holder' 9 "$(writes 3 9)" &&
    holds 'a former holder' '' "$(writes 4 7)" &&
    holds 'one in between' '' "$(writes 5 8)" &&
    holds 'the holder itself' 9 "$(writes 6 9)" &&
    holds 'what is left' '6|9' "$(stored)" &&
    holds 'a token of today' 1795671325765449 "$(writes 7 1795671325765449)"
}

blocked() {
  [ "$(echo "SELECT count(*) FROM pg_stat_activity WHERE datname = '$case' AND wait_event_type = 'Lock';" | query 0 0)" = 1 ]
}

# overlap FIRST END SECOND: one holds a transaction open with its write, and ends it while the other waits to
# write. Prints what the other gets.
overlap() {
  mkfifo "$dir/$case.$1.$3"
  query 10 "$1" <"$dir/$case.$1.$3" >"$dir/open" &
  other=$!
  exec 4>"$dir/$case.$1.$3"
  {
    echo "BEGIN;"
    cat "$dir/statement"
    echo "SELECT 'written';"
  } >&4
  eventually grep -q written "$dir/open"
  writes 20 "$3" >"$dir/second" 4>&- &
  second=$!
  # SQLite tells nobody who waits for it
  if [ "$database" = postgresql ]; then eventually blocked; else sleep 0.3; fi
  echo "$2;" >&4
  exec 4>&-
  wait $other $second
  cat "$dir/second"
}

# Two at a time: without a row, and with one.
two_at_a_time() {
  for before in '' 5; do
    for trial in '8 COMMIT 7 ' '7 COMMIT 8 8' '8 ROLLBACK 7 7' '7 COMMIT 7 7'; do
      new_database
      [ -z "$before" ] || holds 'before' 5 "$(writes 0 5)" || return
      wanted=${trial##* }
      holds "two, '$before' before, $trial" "$wanted" "$(overlap ${trial% *})" || return
    done
  done
}

# Many: what is written never goes back, and who was told that it has written has.
many() {
  new_database
  for writer in 1 2 3 4; do
    for token in $(seq 1 12 | shuf); do
      writes $writer $token || return 1
    done >"$dir/writer.$writer" &
    writers="${writers:-} $!"
  done
  wait $writers
  writers=
  holds 'the last state' 12 "$(stored | cut -d '|' -f 2)" &&
    holds 'steps back' 0 "$(echo 'SELECT count(*) FROM history a JOIN history b ON b.step > a.step WHERE b.token < a.token;' | query 0 0)" &&
    holds 'written, as they were told' "$(cat "$dir"/writer.* | sort -n)" "$(echo 'SELECT token FROM history ORDER BY token;' | query 0 0)"
}

# passes: the statement, in all ways
passes() {
  in_turn && two_at_a_time && many
}

# try_database: the page's statement passes, and no other
try_database() {
  case=case0
  statement >"$dir/statement"
  passes || fail "the statement of lock/PRODUCTION.md does not do what it says there"
  # sets no token, refuses the holder itself, refuses nobody
  for change in 's/, token = excluded.token//' 's/<=/</' '/^WHERE/d'; do
    statement | sed "$change" >"$dir/statement"
    ! statement | cmp -s - "$dir/statement" || fail "$change changes nothing"
    ! (in_turn && two_at_a_time) >"$dir/out" || fail "it passes with $change, too"
  done
}

test_postgresql_refuses_a_former_holder() {
  database=postgresql
  start_postgresql
  try_database
  stop_postgresql
}

test_sqlite_refuses_a_former_holder() {
  database=sqlite
  try_database
}

[ $# -eq 0 ] || run_tests "$@"
run_tests postgresql_refuses_a_former_holder sqlite_refuses_a_former_holder
