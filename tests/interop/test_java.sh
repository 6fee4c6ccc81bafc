#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The page for Java (lock/JAVA.md), as it stands there: Maven compiles its program with its dependency,
# and the program takes turns with ours as its user; and the page's rights are enough for Redisson,
# with one server and with a Sentinel, and each is used. REDISSON="VERSION...": those that `make interop` has got.
# shellcheck source=tests/support/lib.sh disable=SC2016,SC2046,SC2086,SC2154,SC2254,SC1091,SC2317
set -u
. tests/support/lib.sh
page=lock/JAVA.md

# block KIND: of the page
block() {
  awk -v want="$1" -f tests/release/pages.awk $page
}

# make_user: by the lines of both pages
make_user() {
  for from in lock/PRODUCTION.md $page; do
    line=$(sed -n "s/^redis-cli ACL SETUSER /redis-cli -p $port ACL SETUSER /p" $from)
    [ "$(sh -c "$line")" = OK ] || fail "the server refuses: $line"
  done
  redis config resetstat >"$dir/out"
  redis acl log reset >"$dir/out"
}

# What was refused, but for the key that Redisson does without, as the page says.
refused() {
  redis acl log | awk '/^object$/ { getline; if ($0 != "test1") print }'
}

test_program() {
  make_user
  mkdir -p "$dir/src/main/java"
  block java | sed "s/127\.0\.0\.1:6379/127.0.0.1:$port/" >"$dir/src/main/java/Job.java"
  {
    echo '<project><modelVersion>4.0.0</modelVersion><groupId>page</groupId><artifactId>page</artifactId><version>1</version>'
    echo '<properties><maven.compiler.source>17</maven.compiler.source><maven.compiler.target>17</maven.compiler.target>'
    echo '<project.build.sourceEncoding>UTF-8</project.build.sourceEncoding></properties><dependencies>'
    block xml
    echo '</dependencies></project>'
  } >"$dir/pom.xml"
  expect 0 mvn -q -B -Dstyle.color=never -f "$dir/pom.xml" compile
  # the same version as in the tests, so that its libraries are here
  libraries=$build/interop/$(block xml | sed -n 's/.*<version>\(.*\)<.*/\1/p')/lib
  [ -d "$libraries" ] || fail "no $libraries: make interop"
  FAIRLOCK_URL=redis://locks:PASSWORD@127.0.0.1:$port
  run job:7 sleep 600 &
  first=$!
  eventually held job:7
  java -cp "$dir/target/classes:$libraries/*" Job >"$dir/java" 2>"$dir/err.java" &
  java=$!
  eventually waits 1 job:7
  run -w 300 job:7 sh -c "cp '$dir/java' '$dir/before'" &
  last=$!
  eventually waits 2 job:7
  id=$(sed -n 's/ is .*//p' "$dir/java")
  [ -n "$id" ] || fail "it names no id: $(cat "$dir/java")"
  expect 0 "$fairlock" status --json job:7
  printed "\"$id:"
  thread=$(grep -o "\"$id:[0-9]*\"" "$dir/out" | tr -d '"' | sed 's/.*://')
  jstack $java | grep -q "\"main\" #$thread " || fail "jstack has no main thread #$thread"
  kill $first
  ends 0 $java
  ends 0 $last
  grep -qx held "$dir/before" || fail "ours came before Redisson, which came before: $(cat "$dir/before")"
  eventually unheld job:7
  [ -z "$(refused)" ] || fail "refused: $(refused | tr '\n' ' ')"
}

# tell PARTY VERB [NUMBER...]: the driver's answer, in $answer
tell() {
  party=$1
  shift
  before=$(grep -c "^$party " "$dir/answers")
  echo "$party job:8 $*" >&4
  eventually answered
  answer=$(grep "^$party " "$dir/answers" | tail -n 1 | cut -d ' ' -f 2-)
}
answered() {
  [ "$(grep -c "^$party " "$dir/answers")" -gt "$before" ]
}

# answers WANTED PARTY VERB [NUMBER...]
answers_with() {
  wanted=$1
  shift
  tell "$@"
  case $answer in
    $wanted) ;;
    *) fail "$version: $*: $answer instead of $wanted" ;;
  esac
}

renewed() {
  now=$(redis pttl job:8)
  [ "$now" -gt "$left" ] || ! left=$now
}

try_sentinel() {
  sentinel=$(draw_port 16000)
  server_log=$dir/sentinel.log
  printf '%s\n' "port $sentinel" 'bind 127.0.0.1' "dir $dir" "sentinel monitor door 127.0.0.1 $port 1" >"$dir/sentinel.conf"
  "$build/redis-server" "$dir/sentinel.conf" --sentinel >"$server_log" 2>&1 &
  comes_up $! "$server_log" '+monitor master'
}

knows_replica() {
  redis-cli -p $sentinel sentinel master door | tr '\n' ' ' | grep -q 'num-slaves 1 '
}

# start_sentinel: of the server at $port, and of a replica of it, which has the user, too
start_sentinel() {
  master=$port
  start_server --replicaof 127.0.0.1 $master
  make_user
  replica=$port
  port=$master
  make_user
  eventually sh -c "redis-cli -p $port role | grep -qx $replica"
  until_up try_sentinel
  eventually knows_replica
}

# start_driver PORT [OPTION]: of $version, as the page's user; sets java. It ends when 4 is closed.
start_driver() {
  rm -f "$dir/in"
  mkfifo "$dir/in"
  java -cp "$build/interop/$version/classes:$build/interop/$version/lib/*" Driver "$@" watchdog=6000 user=locks:PASSWORD \
    <"$dir/in" >"$dir/answers" 2>"$dir/err.java" &
  java=$!
  exec 4>"$dir/in"
  eventually grep -q '^ready ' "$dir/answers"
}

# All that the fair lock can do, beside ours; a lease of 6 s that is renewed after 2 s.
story() {
  start_driver $sentinel sentinel=door
  answers_with '[0-9]*' a lock
  answers_with '[0-9]*' a lock
  answers_with 2 a count
  answers_with '[0-9]* [0-9]*' a unlock
  answers_with 1 b locked
  answers_with '[0-9]*' b ttl
  answers_with 0 b try
  answers_with '0 *' b wait 300 -1
  left=$(redis pttl job:8)
  eventually renewed
  echo 'b job:8 lock' >&4
  eventually waits 1 job:8
  run -w 300 job:8 touch "$dir/served.$version" 4>&- &
  ours=$!
  eventually waits 2 job:8
  answers_with '[0-9]* [0-9]*' a unlock
  eventually held job:8
  answers_with 'not-held' a unlock
  [ ! -e "$dir/served.$version" ] || fail "ours came before Redisson"
  tell b unlock
  ends 0 $ours
  run job:8 sleep 600 4>&- &
  ours=$!
  eventually held job:8
  echo 'a job:8 wait 60000 20000' >&4
  eventually waits 1 job:8
  kill $ours
  eventually grep -q '^a 1 ' "$dir/answers"
  answers_with 1 b force
  exec 4>&-
  ends 0 $java
}

# With a replica: Redisson then asks it to acknowledge.
test_rights() {
  start_sentinel
  for version in $REDISSON; do
    FAIRLOCK_URL=redis://locks:PASSWORD@127.0.0.1:$port
    story
    [ -z "$(refused)" ] || fail "$version: refused: $(refused | tr '\n' ' ')"
  done
  port=$replica
  [ -z "$(refused)" ] || fail "the replica has refused: $(refused | tr '\n' ' ')"
  port=$master
  # what the page adds, and nobody has used (PING and INFO have others, too)
  redis info commandstats | sed -n 's/^cmdstat_\([^:]*\):.*/\1/p' | sort >"$dir/used"
  block commands | grep -o '+[a-z|]*' | tr -d + | sort >"$dir/given"
  [ "$(wc -l <"$dir/given")" -gt 5 ] || fail "no rights on the page"
  [ -z "$(comm -23 "$dir/given" "$dir/used")" ] || fail "no version has used: $(comm -23 "$dir/given" "$dir/used" | tr '\n' ' ')"
}

refuses() {
  refused | grep -qF "$1"
}

# Without one of the keys that the page adds, a release is refused by the newest version.
test_keys_are_needed() {
  version=${REDISSON##* }
  for key in $(block commands | grep -o '~[a-z_:{]*'); do
    redis acl deluser locks >"$dir/out"
    make_user
    rules=$(redis acl getuser locks | tr ' ' '\n' | grep '^~' | grep -vxF "$key*" | tr '\n' ' ')
    set -f
    redis acl setuser locks resetkeys $rules >"$dir/out"
    set +f
    start_driver $port
    answers_with '[0-9]*' a lock
    echo 'a job:8 unlock' >&4
    name=${key#'~'}
    eventually refuses "${name%job:}"
    exec 4>&-
    ends 0 $java
    redis del job:8 >"$dir/out"
  done
}

[ $# -eq 0 ] || run_tests "$@"
run_tests program rights keys_are_needed
