#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Servers that move: Sentinels and the master they name, a cluster of three masters, replicas that
# have to acknowledge.
# shellcheck source=tests/support/lib.sh disable=SC2034,SC2016,SC2046,SC2086,SC2154,SC1091,SC1003,SC2317
set -u
. tests/support/lib.sh
. tests/command/rights.sh
side=4 # they sleep most of the time

# names_address ADDRESS NAME...: status reads the lock there
names_address() {
  address=$1
  shift
  expect 0 "$fairlock" status --json "$@"
  [ "$(jq -r .server "$dir/out" | sort -u)" = "$address" ] || fail "not read from $address: $(cat "$dir/out")"
  expect 0 "$fairlock" status "$@"
  printed ", read from $address"
}

# the server is Redis 7.0 or newer, or Valkey
is_new() {
  [ "$(redis info server | sed -n 's/^redis_version:\([0-9]*\).*/\1/p')" -ge 7 ]
}

# Sentinels

try_sentinel() {
  sentinel=$(draw_port 16000)
  server_log=$dir/$sentinel/log
  mkdir -p "$dir/$sentinel"
  printf '%s\n' "port $sentinel" 'bind 127.0.0.1' "dir $dir/$sentinel" "$@" >"$dir/$sentinel/conf"
  "$build/redis-server" "$dir/$sentinel/conf" --sentinel >"$server_log" 2>&1 &
  sentinel_pid=$!
  comes_up $sentinel_pid "$server_log" '+monitor master'
}

# start_sentinel LINE...: sets sentinel (its port) and sentinel_pid; the lines are of its configuration
start_sentinel() {
  until_up try_sentinel "$@"
}

# start_sentinels COUNT LINE...: of the master at $port; sets sentinels, "host:port,host:port", and
# sentinel_ports. They are patient, so that none takes a server for dead because the machine is busy.
start_sentinels() {
  count=$1
  shift
  sentinels=
  sentinel_ports=
  while [ $count -gt 0 ]; do
    start_sentinel "sentinel monitor door 127.0.0.1 $port 2" 'sentinel down-after-milliseconds door 200000' \
      'sentinel failover-timeout door 5000' "$@"
    sentinels=$sentinels${sentinels:+,}127.0.0.1:$sentinel
    sentinel_ports="$sentinel_ports $sentinel"
    count=$((count - 1))
  done
}

# miss_the_dead: they promote another master when this one is dead
miss_the_dead() {
  for known in $sentinel_ports; do
    redis-cli -p $known sentinel set door down-after-milliseconds 1000 >"$dir/set"
    [ "$(cat "$dir/set")" = OK ] || fail "$(cat "$dir/set")"
  done
}

# start_replica: of the server at $port; sets replica (its port) and replica_pid
start_replica() {
  master=$port
  master_pid=$server
  start_server --replicaof 127.0.0.1 $master
  replica=$port
  replica_pid=$server
  port=$master
  server=$master_pid
  FAIRLOCK_URL=redis://127.0.0.1:$port
  eventually sh -c "redis-cli -p $replica info replication | grep -q master_link_status:up"
}

knows_all() {
  for known in $sentinel_ports; do
    redis-cli -p $known sentinel master door | tr '\n' ' ' | grep -q 'num-slaves 1 num-other-sentinels 2 ' || return 1
  done
}

# recorded URL NAME: a run writes the history of a lock, which is read from there
recorded() {
  expect 0 "$fairlock" run --history --url "$1" "$2" true
  [ ! -s "$dir/err" ] || fail "$(cat "$dir/err")"
  expect 0 "$fairlock" history --url "$1" "$2"
  printed released
  expect 0 "$fairlock" list --metrics --url "$1"
  grep -q "^fairlock_history_hold_seconds_count.*lock=\"$2\"" "$dir/out" || fail "its times are missing: $(cat "$dir/out")"
}

test_sentinels() {
  start_sentinels 2
  first=${sentinels%%,*}
  for url in "redis+sentinel://$sentinels/door" "valkey+sentinel://$first/door/" "redis+sentinel://127.0.0.1:1,$sentinels/door/0" \
    "redis+sentinel://localhost:${first#*:}/%64oor"; do
    expect 0 "$fairlock" run --url "$url" a true
    FAIRLOCK_URL=$url names_address 127.0.0.1:$port a b
    expect 0 "$fairlock" list --url "$url"
    recorded "$url" h
  done
  recorded "redis+sentinel://$sentinels/door/3" h
  [ "$(redis -n 3 xlen 'fairlock:fairlock:history:{h}')" = 2 ] || fail "it is in another database"
  expect 0 "$fairlock" run --verbose --url "redis+sentinel://$sentinels/door" a true
  said "redis+sentinel://$sentinels/door: redirected: 127.0.0.1:$port"
  said "redis+sentinel://$sentinels/door (127.0.0.1:$port): connected"
  # a wait that is given up is recorded there, too
  run --url "redis+sentinel://$sentinels/door" g sleep 60 &
  eventually held g
  expect 1 "$fairlock" run -q -w 1 --history --url "redis+sentinel://$sentinels/door" g true
  [ ! -s "$dir/err" ] || fail "$(cat "$dir/err")"
  run --history --url "redis+sentinel://$sentinels/door" g true 2>"$dir/err.left" &
  left=$!
  eventually waits 1 g
  kill -TERM $left
  ends 143 $left
  [ ! -s "$dir/err.left" ] || fail "$(cat "$dir/err.left")"
  [ "$(redis xlen 'fairlock:fairlock:history:{g}')" = 2 ] || fail "not both are recorded"
  # in database 3 of the same master
  run --url "redis+sentinel://$sentinels/door/3" a sleep 60 &
  holder=$!
  eventually sh -c "[ \$(redis-cli -p $port -n 3 hlen a) = 1 ]"
  expect 1 "$fairlock" run -n --url redis://127.0.0.1:$port/3 a true
  expect 0 "$fairlock" list --json --url "redis+sentinel://$sentinels/door/3"
  [ "$(jq -r '.name + " " + .server' "$dir/out")" = "a 127.0.0.1:$port" ] || fail "$(cat "$dir/out")"
  expect 0 "$fairlock" break --yes --url "redis+sentinel://$sentinels/door/3" a
  ends 79 $holder
}

test_unknown_service() {
  start_sentinels 2
  url=redis+sentinel://$sentinels/window
  for words in "run a true" "status a" "watch a" "break --yes a"; do
    set -- $words
    command=$1
    shift
    expect 76 "$fairlock" $command --url "$url" "$@"
    said "$url"
    said 'unknown service'
  done
}

# The server that refuses is named: the master that the Sentinel has named, not the Sentinel.
test_refusing_master() {
  start_sentinels 1
  redis config set requirepass secret >"$dir/out"
  url=redis+sentinel://wrong:wrong@$sentinels/door
  for words in "run a true" "status a" "break --yes a"; do
    set -- $words
    command=$1
    shift
    expect 77 "$fairlock" $command --url "$url" "$@"
    said "127.0.0.1:$port"
    said WRONGPASS
  done
}

# knows_scripts PORT: all that the last load has printed
knows_scripts() {
  scripts=$(jq -r '.scripts[]' "$dir/out" | sort -u)
  [ "$(redis-cli -p $1 script exists $scripts | grep -c 1)" = "$(echo $scripts | wc -w)" ]
}

# loaded PORT...: the last load has told of these, of each once
loaded() {
  for known in "$@"; do
    knows_scripts $known || fail "$known does not know them: $(cat "$dir/out" "$dir/err")"
    echo "127.0.0.1:$known"
  done | sort >"$dir/wanted"
  jq -r .server "$dir/out" | sort | cmp -s - "$dir/wanted" || fail "$(cat "$dir/out" "$dir/err")"
}

# Into the master, and into its replica, which is to know them when it takes over.
test_load_with_sentinels() {
  start_replica
  start_sentinels 1
  eventually sh -c "redis-cli -p $port role | grep -qx $replica"
  url=redis+sentinel://$sentinels/door
  expect 0 "$fairlock" load --json --url $url
  loaded $port $replica
  expect 0 "$fairlock" load --json
  loaded $port
  redis acl setuser loader on '>pw' +time '+script|load' +role >"$dir/set"
  redis-cli -p $replica acl setuser loader on '>pw' '+script|load' >"$dir/set"
  expect 0 "$fairlock" load --json --url redis+sentinel://loader:pw@$sentinels/door
  redis acl setuser loader -role >"$dir/set"
  expect 77 "$fairlock" load --url redis+sentinel://loader:pw@$sentinels/door
  said role
  kill -9 $replica_pid
  redis script flush >"$dir/set"
  "$fairlock" load --json --url $url >"$dir/out" 2>"$dir/err"
  status=$?
  knows_scripts $port || fail "the master does not: $(cat "$dir/err")"
  case $status in
    0) ;;
    75) said "127.0.0.1:$replica" ;;
    *) fail "exit status $status: $(cat "$dir/err")" ;;
  esac
}

# Users are not replicated, so a replica may refuse ours, and be the master one day. list and load say so.
test_user_of_the_master_alone() {
  start_replica
  start_sentinels 1
  eventually sh -c "redis-cli -p $port role | grep -qx $replica"
  redis acl setuser me on '>pw' '~*' '&*' +@all >"$dir/set"
  redis hset a me:1 1 >"$dir/set"
  redis hset 'fairlock:{a}' token 1 >"$dir/set"
  url=redis+sentinel://me:pw@$sentinels/door
  for words in '77 load' '77 load --json' '0 list' '0 list --json' "0 list --metrics-file $dir/m.prom"; do
    set -- $words
    status=$1
    shift
    expect "$status" "$fairlock" "$@" --url "$url"
    said "(127.0.0.1:$replica): the server refuses this user: WRONGPASS"
    said 'Redis replicates no users: make this one, with the same password and rules, on each server'
    [ "$(wc -l <"$dir/err")" = 2 ] || fail "$(cat "$dir/err")"
  done
  grep -q '^fairlock_list_success{.*} 1$' "$dir/m.prom" || fail "$(cat "$dir/m.prom")"
  expect 0 "$fairlock" list --null --url "$url" # for completion, which is in a hurry
  [ ! -s "$dir/err" ] || fail "$(cat "$dir/err")"
  redis-cli -p $replica acl setuser me on '>pw' '~*' '&*' +@all >"$dir/set"
  for words in load list; do
    expect 0 "$fairlock" $words --url "$url"
    [ ! -s "$dir/err" ] || fail "$(cat "$dir/err")"
  done
}

test_no_sentinel() {
  url=redis+sentinel://127.0.0.1:1,127.0.0.1:2/door
  expect 75 "$fairlock" run -n --url "$url" a true
  said "$url (Sentinel 127.0.0.1:2): the server cannot be reached"
  ! grep -q 'trying again' "$dir/err" || fail "$(cat "$dir/err")"
  # one that waits says at once what it waits for
  expect 75 "$fairlock" run -w 1 --url "$url" a true
  said "$url (Sentinel 127.0.0.1:2): the server cannot be reached: Connection refused; trying again"
  run --url "$url" a true 2>"$dir/err" &
  waiter=$!
  eventually grep -q 'trying again' "$dir/err"
  kill $waiter
  ends 143 $waiter
  # one that is killed leaves no process that goes on trying
  run --url "$url" a true 2>"$dir/err" &
  waiter=$!
  eventually grep -q 'trying again' "$dir/err"
  agent=$(agent_of $waiter)
  kill -9 $waiter
  wait $waiter
  eventually sh -c "! kill -0 $agent 2>/dev/null"
  # a server is not a Sentinel
  expect 76 "$fairlock" run --url redis+sentinel://127.0.0.1:$port/door a true
  said "redis+sentinel://127.0.0.1:$port/door (Sentinel 127.0.0.1:$port): "
  said 'unknown command'
}

# Two servers on their own are no cluster: whoever begins with either of them is refused.
test_no_cluster() {
  first=$port
  start_server
  for seeds in 127.0.0.1:$first,127.0.0.1:$port 127.0.0.1:$port,127.0.0.1:$first; do
    for words in "run a true" "run -n a true" "status a" "list" "break --yes a"; do
      set -- $words
      command=$1
      shift
      expect 76 "$fairlock" $command --url redis+cluster://$seeds "$@"
      said "redis+cluster://$seeds"
      said 'not a node of a cluster'
    done
  done
}

# The master is gone and nobody was promoted: its address is named, not that of the Sentinel.
test_dead_master_is_named() {
  start_sentinels 1
  stop_server
  expect 75 "$fairlock" run -n --url "redis+sentinel://$sentinels/door" a true
  said "redis+sentinel://$sentinels/door (127.0.0.1:$port): the server cannot be reached"
}

# A Sentinel names a master that accepts connections and closes them: that one is named, with its reason.
test_well_sentinel_is_not_blamed() {
  python3 - "$dir/at" <<'END' &
import os, socket, sys
server = socket.create_server(("127.0.0.1", 0))
with open(sys.argv[1] + ".new", "w") as at:
    at.write(str(server.getsockname()[1]))
os.rename(sys.argv[1] + ".new", sys.argv[1])
while True:
    server.accept()[0].close()
END
  ends_with_us $!
  eventually test -s "$dir/at"
  closing=$(cat "$dir/at")
  start_sentinel "sentinel monitor door 127.0.0.1 $closing 1" 'sentinel down-after-milliseconds door 200000'
  for seeds in 127.0.0.1:$sentinel 127.0.0.1:1,127.0.0.1:$sentinel 127.0.0.1:$sentinel,127.0.0.1:1; do
    for words in 'run -n a true' 'run -w 1 a true' 'status a' list; do
      set -- $words
      command=$1
      shift
      expect 75 timeout 100 "$fairlock" $command --url redis+sentinel://$seeds/door "$@"
      # which of the two reasons it is depends on whether it has sent something by then
      grep -q "/door (127.0.0.1:$closing): the server cannot be reached: \(Connection\|the server closed\)" "$dir/err" ||
        fail "$seeds, $words: $(cat "$dir/err")"
      ! grep -q '(Sentinel' "$dir/err" || fail "$seeds, $words: $(cat "$dir/err")"
    done
  done
  said 'Does that server want TLS? Then the URL is rediss+sentinel://.../SERVICE?sentinel_tls=false.'
}

# make_user PORT: by the line of lock/PRODUCTION.md, for all names
make_user() {
  line=$(sed -n "s/^redis-cli ACL SETUSER /redis-cli -p $1 ACL SETUSER /p" lock/PRODUCTION.md)
  [ "$(sh -c "$(echo "$line" | sed 's/job:/a/g')")" = OK ] || fail "the server refuses: $line"
}

sentinel_rights() {
  more_rights 'resetchannels +sentinel'
}

# promote: kills the master, and waits until the replica is known to be the next one. Sets port and server.
promote() {
  stop_server
  miss_the_dead
  eventually sh -c "redis-cli -p $replica role | grep -q master"
  for known in $sentinel_ports; do
    eventually sh -c "redis-cli -p $known sentinel get-master-addr-by-name door | grep -q $replica"
  done
  port=$replica
  server=$replica_pid
}

# With the rights of lock/PRODUCTION.md, on each server.
test_master_killed() {
  start_replica
  make_user $port
  make_user $replica
  start_sentinels 3 "user locks on >watch $(sentinel_rights)"
  eventually knows_all
  export FAIRLOCK_SENTINEL_USER=locks FAIRLOCK_SENTINEL_PASSWORD=watch
  FAIRLOCK_URL=redis+sentinel://locks:PASSWORD@$sentinels/door
  run --lease 30 a sh -c "until [ -e '$dir/end' ]; do sleep 0.1; done" 2>"$dir/err.holder" &
  holder=$!
  eventually held a
  eventually sh -c "[ \$(redis-cli -p $replica hlen a) = 1 ]"
  run a touch "$dir/served" 2>"$dir/err.waiter" &
  waiter=$!
  eventually waits 1 a
  promote
  names_address 127.0.0.1:$replica a
  # the holder's lease is renewed there
  renewed=$(redis pttl a)
  eventually sh -c "[ \$(redis-cli -p $replica pttl a) -gt $renewed ]"
  touch "$dir/end"
  ends 0 $holder
  ends 0 $waiter
  [ -e "$dir/served" ] || fail "the waiter was not served"
  [ ! -s "$dir/err.holder" ] || fail "$(cat "$dir/err.holder")"
}

# The begin is written to the old master, the end to the new one.
test_history_of_a_failover() {
  start_replica
  start_sentinels 3
  eventually knows_all
  FAIRLOCK_URL=redis+sentinel://$sentinels/door
  run --history a sh -c "until [ -e '$dir/end' ]; do sleep 0.1; done" 2>"$dir/err.holder" &
  holder=$!
  eventually sh -c "[ \$(redis-cli -p $replica xlen 'fairlock:fairlock:history:{a}') = 1 ]"
  promote
  touch "$dir/end"
  ends 0 $holder
  [ ! -s "$dir/err.holder" ] || fail "$(cat "$dir/err.holder")"
  expect 0 "$fairlock" history --json a
  [ "$(jq -r .end "$dir/out")" = released ] || fail "$(cat "$dir/out")"
}

# Redis does not replicate users: one that was made on the master alone is unknown after a fail-over,
# until the page's line has been run there, too.
test_user_on_the_master_alone() {
  start_replica
  make_user $port
  start_sentinels 3
  eventually knows_all
  FAIRLOCK_URL=redis+sentinel://locks:PASSWORD@$sentinels/door
  expect 0 "$fairlock" run a true
  promote
  expect 77 "$fairlock" run a true
  said "(127.0.0.1:$replica)"
  said WRONGPASS
  make_user $replica
  expect 0 "$fairlock" run a true
}

# A command that is started while the master is dead and no replica has been promoted waits for the
# next master.
test_begun_in_failover() {
  start_replica
  start_sentinels 3
  eventually knows_all
  FAIRLOCK_URL=redis+sentinel://$sentinels/door
  expect 0 "$fairlock" run a true
  stop_server
  expect 75 "$fairlock" run -n a true
  said "(127.0.0.1:$port): the server cannot be reached"
  run a redis-cli -p $replica exists a >"$dir/out" 2>"$dir/err" &
  waiter=$!
  eventually grep -qF "(127.0.0.1:$port): the server cannot be reached: Connection refused; trying again" "$dir/err"
  miss_the_dead
  ends 0 $waiter
  printed 1
  port=$replica
  server=$replica_pid
}

test_sentinel_passwords() {
  redis acl setuser lock on '>data' allkeys allchannels +@all >"$dir/out"
  redis config set requirepass data >"$dir/out"
  start_sentinels 1 'sentinel auth-pass door data' 'user default off' 'user warden on >watch +@all' \
    "user lock on >pw $(sentinel_rights)"
  url=redis+sentinel://lock:data@$sentinels/door
  expect 77 "$fairlock" status --url "$url" a
  said "redis+sentinel://$sentinels/door (Sentinel $sentinels): the server refuses this user"
  (umask 077 && echo pw >"$dir/password" && echo data >"$dir/data" && echo watch >"$dir/watch")
  expect 0 env FAIRLOCK_SENTINEL_USER=lock FAIRLOCK_SENTINEL_PASSWORD=pw "$fairlock" run --url "$url" a true
  expect 0 env FAIRLOCK_SENTINEL_USER=nobody FAIRLOCK_SENTINEL_PASSWORD=pw "$fairlock" run --sentinel-user warden --url "$url" \
    --sentinel-password-file "$dir/watch" a true
  expect 0 "$fairlock" status --sentinel-user lock --sentinel-password-file "$dir/password" --url "$url" a
  expect 0 "$fairlock" status --sentinel-user lock --sentinel-password-file "$dir/password" \
    --url "redis+sentinel://lock@$sentinels/door" --password-file "$dir/data" a
  expect 77 "$fairlock" status --sentinel-user lock --sentinel-password-file "$dir/data" --url "$url" a
  said WRONGPASS
  expect 66 "$fairlock" status --sentinel-password-file "$dir/none" --url "$url" a
  said "$dir/none"
  expect 64 "$fairlock" status --sentinel-user lock --url "$url" a
  said 'a user for the Sentinels but no password'
  expect 64 "$fairlock" status --sentinel-user lock a
  said 'need a URL that begins with redis+sentinel://'
  expect 64 "$fairlock" status --sentinel-password-file "$dir/password" a
  # the command gets neither password
  expect 0 env FAIRLOCK_SENTINEL_USER=lock FAIRLOCK_SENTINEL_PASSWORD=pw FAIRLOCK_URL="$url" "$fairlock" run a env
  ! grep -q -e PASSWORD -e data "$dir/out" || fail "$(cat "$dir/out")"
  printed "FAIRLOCK_URL=redis+sentinel://lock@$sentinels/door"
}

# A rotation

# note NAME PASSWORD: it is in the file
note() {
  echo "$2" >"$dir/new"
  chmod 600 "$dir/new"
  mv "$dir/new" "$dir/$1"
}

# hold_and_wait OPTION...: sets holder, whose command ends with status 5 when $dir/end is there, and waiter
hold_and_wait() {
  run --verbose "$@" a sh -c 'until [ -e "$0/end" ]; do sleep 0.1; done; exit 5' "$dir" 2>"$dir/err" &
  holder=$!
  eventually held a
  token=$(redis hget 'fairlock:{a}' token)
  run -w 100 "$@" a true 2>"$dir/err1" &
  waiter=$!
  eventually listened a
  eventually waits 1 a # it takes its place when it listens
}

# listened NAME: a waiter does
listened() {
  [ -n "$(
    redis pubsub channels "redisson_lock__channel:{$1}*"
    redis pubsub shardchannels "redisson_lock__channel:{$1}*" | grep -v ERR
  )" ]
}

# goes_on: the holder holds, and the waiter waits, as before
goes_on() {
  eventually listened a
  held a || fail "the hold is gone"
  [ "$(redis hget 'fairlock:{a}' token)" = "$token" ] || fail "another holder"
  eventually waits 1 a # one that has lost its connection listens before it asks for its place
}

end_both() {
  : >"$dir/end"
  ends 5 $holder
  ends 0 $waiter
  ! grep -q secret "$dir/err" "$dir/err1" || fail "a password in its messages: $(grep -h secret "$dir/err" "$dir/err1")"
}

# Sentinel and master change their passwords, and each file comes at another time.
test_sentinel_rotation() {
  redis acl setuser lock on '>secret' allkeys allchannels +@all >"$dir/out"
  start_sentinels 1 'user default off' 'user warden on >watch +@all' "user lock on >pw $(sentinel_rights)"
  note ours secret
  note theirs pw
  hold_and_wait --url "redis+sentinel://lock@$sentinels/door" --sentinel-user lock --password-file "$dir/ours" \
    --sentinel-password-file "$dir/theirs"
  for i in 1 2 3 4; do
    redis-cli -p $sentinel --no-auth-warning --user warden --pass watch acl setuser lock resetpass ">secret$i" >"$dir/out"
    redis acl setuser lock resetpass ">secret$i" >"$dir/out"
    redis client kill user lock >"$dir/out"
    [ $i -gt 1 ] || eventually grep -qF "(Sentinel $sentinels): refused: WRONGPASS" "$dir/err"
    note theirs "secret$i"
    [ $i -gt 1 ] || eventually grep -qF "(127.0.0.1:$port): refused: WRONGPASS" "$dir/err"
    note ours "secret$i"
    goes_on
  done
  end_both
  said "redis+sentinel://$sentinels/door (Sentinel $sentinels): refused: WRONGPASS"
  said "redis+sentinel://$sentinels/door (127.0.0.1:$port): refused: WRONGPASS"
}

# A cluster

# start_cluster: three masters instead of the server; sets first, second, third (their ports) and servers
start_cluster() {
  stop_server
  start_server --cluster-enabled yes
  first=$port
  servers=$server
  start_server --cluster-enabled yes
  second=$port
  servers="$servers $server"
  start_server --cluster-enabled yes
  third=$port
  servers="$servers $server"
  redis-cli --cluster create 127.0.0.1:$first 127.0.0.1:$second 127.0.0.1:$third --cluster-yes >"$dir/out" 2>&1 ||
    fail "$(cat "$dir/out")"
  for node in $first $second $third; do
    eventually sh -c "redis-cli -p $node cluster info | grep -q cluster_state:ok"
  done
}

# on_node NAME: the port of the node that has the lock
on_node() {
  slot=$(redis cluster keyslot "$1")
  if [ $slot -le 5460 ]; then echo $first; elif [ $slot -le 10922 ]; then echo $second; else echo $third; fi
}

stop_cluster() {
  for pid in $servers; do
    kill -9 $pid
    wait $pid 2>/dev/null
  done
  server=$(echo $servers | sed 's/.* //')
}

test_cluster() {
  start_cluster
  # a name on each node, from each node
  : >"$dir/nodes"
  for name in a b c d '{x}y' '{a}b'; do
    node=$(on_node "$name")
    echo $node >>"$dir/nodes"
    for url in redis+cluster://127.0.0.1:$first,127.0.0.1:$second redis+cluster://127.0.0.1:1,127.0.0.1:$third \
      valkey+cluster://127.0.0.1:$second/0 redis://127.0.0.1:$first valkey://127.0.0.1:$third; do
      expect 0 "$fairlock" run --url $url "$name" true
      FAIRLOCK_URL=$url names_address 127.0.0.1:$node "$name"
      recorded $url "$name"
    done
  done
  node=$(on_node a)
  for other in $first $second $third; do
    expect 0 "$fairlock" run --verbose --url redis://127.0.0.1:$other a true
    said "redis://127.0.0.1:$other: connected"
    [ $other -eq $node ] || said "redis://127.0.0.1:$other: redirected: 127.0.0.1:$node"
    [ $other -eq $node ] || said "redis://127.0.0.1:$other (127.0.0.1:$node): connected"
    ! grep -q MOVED "$dir/err" || fail "$(cat "$dir/err")"
  done
  # several at once need one slot; of others none is left
  url=redis+cluster://127.0.0.1:$first
  expect 0 "$fairlock" run --url $url --and '{x}b' '{x}a' true
  expect 78 "$fairlock" run --url $url -w 60 --and b a true
  expect 0 "$fairlock" status --url $url a b
  [ "$(grep -c ': free, .*nobody waits' "$dir/out")" = 2 ] || fail "$(cat "$dir/out")"
  [ $(sort -u "$dir/nodes" | wc -l) -eq 3 ] || fail "these names are not on all nodes: $(cat "$dir/nodes")"
  # nodes that do not know their own addresses: MOVED names a port and no host
  for node in $first $second $third; do
    redis-cli -p $node config set cluster-preferred-endpoint-type unknown-endpoint >"$dir/set" 2>&1
  done
  if grep -q OK "$dir/set"; then # Redis 7.0
    for name in a b c; do
      for url in redis://localhost:$first redis+cluster://localhost:$first; do
        expect 0 "$fairlock" run --url $url $name true
        FAIRLOCK_URL=$url names_address localhost:$(on_node $name) $name
      done
    done
  fi
  for node in $first $second $third; do
    redis-cli -p $node config set cluster-preferred-endpoint-type ip >"$dir/set" 2>&1
  done
  # several names in one command
  expect 0 "$fairlock" status --url redis://127.0.0.1:$first --json a b c d
  jq -r .server "$dir/out" >"$dir/read"
  for name in a b c d; do echo "127.0.0.1:$(on_node $name)"; done | cmp -s - "$dir/read" ||
    fail "$(cat "$dir/out")"
  # held and waited for from different seeds, and broken from a third
  run --url redis+cluster://127.0.0.1:$first a sleep 60 &
  holder=$!
  eventually sh -c "[ \$(redis-cli -p $(on_node a) hlen a) = 1 ]"
  run --url redis://127.0.0.1:$second a touch "$dir/served" &
  waiter=$!
  eventually sh -c "[ \$(redis-cli -p $(on_node a) llen 'redisson_lock_queue:{a}') = 1 ]"
  expect 1 "$fairlock" run -n --url redis://127.0.0.1:$third a true
  expect 0 "$fairlock" break --yes --url redis+cluster://127.0.0.1:$third a
  ends 79 $holder
  ends 0 $waiter
  # shared from each seed
  for seed in $first $second $third; do
    run --limit 3 --lease 6 --url redis://127.0.0.1:$seed a sleep 60 2>"$dir/err.$seed" &
    holder=$!
    eventually sh -c "'$fairlock' status --json --url redis://127.0.0.1:$third a | grep -q '\\.$holder\\.'"
  done
  expect 1 "$fairlock" run --limit 3 -n --url redis://127.0.0.1:$second a true
  expect 1 "$fairlock" run --limit 5 -n --url redis://127.0.0.1:$second a true
  expect 0 "$fairlock" break --yes --url redis://127.0.0.1:$second a
  printed 'a: 3 of 3 holds ended; 0 waiting'
  ends 79 $holder
  # a Unix socket has one address
  socket=$dir/$first/socket
  for name in a b c d; do
    if [ $(on_node $name) -eq $first ]; then expect 0 "$fairlock" run --url "unix://$socket" $name true
    else
      expect 78 "$fairlock" run --url "unix://$socket" $name true
      said "unix://$socket: another node of the cluster has this lock: MOVED"
      said 'redis+cluster://'
    fi
  done
  expect 76 "$fairlock" status --url redis+cluster://127.0.0.1:$first/3 a
  said "redis+cluster://127.0.0.1:$first"
  stop_cluster
}

# fairlock list asks each master for its own keys, and finds each lock once.
# All nodes change the password, one after the other, and send us from one to the other.
test_cluster_rotation() {
  start_cluster
  on_nodes acl setuser lock on '>secret' allkeys allchannels +@all
  note ours secret
  port=$(on_node a)
  other=$first
  [ $other -ne $port ] || other=$second
  hold_and_wait --url "redis+cluster://lock@127.0.0.1:$other" --password-file "$dir/ours"
  for i in 1 2 3 4; do
    on_nodes acl setuser lock resetpass ">secret$i"
    redis client kill user lock >"$dir/out"
    [ $i -gt 1 ] || eventually grep -qF "127.0.0.1:$other: refused: WRONGPASS" "$dir/err"
    note ours "secret$i"
    goes_on
  done
  end_both
  said "127.0.0.1:$other: refused: WRONGPASS"
}

# on_nodes WORD...: the command, on each node of the cluster
on_nodes() {
  for node in $first $second $third; do
    redis-cli -p $node "$@" >"$dir/out" || fail "$(cat "$dir/out")"
  done
}

test_list_in_cluster() {
  start_cluster
  names='a b c d {x}y plain'
  : >"$dir/nodes"
  for name in $names; do
    on_node "$name" >>"$dir/nodes"
    run --url redis://127.0.0.1:$second "$name" sleep 60 &
    eventually sh -c "[ \$(redis-cli -p $(on_node "$name") hlen '$name') = 1 ]"
  done
  [ "$(sort -u "$dir/nodes" | wc -l)" -eq 3 ] || fail "these names are not on all nodes: $(cat "$dir/nodes")"
  run --url redis://127.0.0.1:$third a true &
  eventually sh -c "[ \$(redis-cli -p $(on_node a) llen 'redisson_lock_queue:{a}') = 1 ]"
  for node in $first $second $third; do
    for tag in a b c d; do
      [ "$(on_node $tag)" -ne $node ] ||
        redis-cli -p $node eval "for i = 1, 2000 do redis.call('hset', '{$tag}' .. i, 'a', 1) end" 1 "{$tag}" >"$dir/out"
    done
  done
  for node in $first $second $third; do # as MOVED, CLUSTER SLOTS may name no host
    for kind in ip unknown-endpoint; do
      redis-cli -p $node config set cluster-preferred-endpoint-type $kind >"$dir/set" 2>&1
      for url in redis://127.0.0.1:$node redis+cluster://127.0.0.1:$node,127.0.0.1:1; do
        expect 0 "$fairlock" list --json --url $url
        for name in $names; do echo "$name 127.0.0.1:$(on_node "$name")"; done | sort >"$dir/wanted"
        jq -r '.name + " " + .server' "$dir/out" | sort | cmp -s - "$dir/wanted" || fail "$(cat "$dir/out")"
        [ "$(jq -r 'select(.waiter_count == 1) | .name' "$dir/out")" = a ] || fail "$(cat "$dir/out")"
      done
    done
  done
  expect 0 "$fairlock" list --json --url redis+cluster://127.0.0.1:$first '[ab]'
  [ "$(jq -r .name "$dir/out" | sort | tr '\n' ' ')" = 'a b ' ] || fail "$(cat "$dir/out")"
  # one of the masters does not know the user
  for node in $first $third; do
    redis-cli -p $node acl setuser me on '>pw' '~*' '&*' +@all >"$dir/set"
  done
  expect 77 "$fairlock" list --url redis://me:pw@127.0.0.1:$first
  said "(127.0.0.1:$second): the server refuses this user: WRONGPASS"
  said 'Redis replicates no users'
  stop_cluster
}

# Each master, and each replica.
test_load_into_cluster() {
  start_cluster
  start_server --cluster-enabled yes
  servers="$servers $server"
  eventually sh -c "redis-cli --cluster add-node 127.0.0.1:$port 127.0.0.1:$first --cluster-slave"
  for node in $first $second $third; do
    eventually sh -c "redis-cli -p $node cluster slots | grep -qx $port"
  done
  for url in redis+cluster://127.0.0.1:$second redis://127.0.0.1:$first; do
    on_nodes script flush
    expect 0 "$fairlock" load --json --url $url
    loaded $first $second $third $port
  done
  stop_cluster
}

# found ADDRESS...: fairlock list has found the locks of these masters, and of no others
found() {
  for address in "$@"; do echo "127.0.0.1:$address"; done | sort >"$dir/wanted"
  jq -r .server "$dir/out" | sort -u | cmp -s - "$dir/wanted" || fail "$(cat "$dir/out" "$dir/err")"
}

# One master is dead: the locks of the others are listed, and that some are missing is said.
test_list_without_a_master() {
  start_cluster
  for name in a b c d; do
    redis-cli -c -p $first hset $name somebody:1 1 >"$dir/set"
    redis-cli -c -p $first hset "fairlock:{$name}" token 1 >"$dir/set"
  done
  url=redis+cluster://127.0.0.1:$first,127.0.0.1:$second,127.0.0.1:$third
  expect 0 "$fairlock" list --json --url $url
  found $first $second $third
  set -- $servers
  for node in "$first $1 $second $third" "$second $2 $first $third" "$third $3 $first $second"; do
    set -- $node
    kill -STOP $2
    expect 75 timeout 120 "$fairlock" list --json --url redis+cluster://127.0.0.1:$3,127.0.0.1:$4
    kill -CONT $2
    found $3 $4
    said "(127.0.0.1:$1): the server cannot be reached"
    said "some or all locks of 127.0.0.1:$1 are missing"
    eventually sh -c "redis-cli -p $3 cluster info | grep -q cluster_state:ok"
    eventually sh -c "redis-cli -p $4 cluster info | grep -q cluster_state:ok"
  done
  # a lock that cannot be read does not hide that
  redis-cli -c -p $first del a b c d >"$dir/out"
  for name in a b c d; do redis-cli -c -p $first set $name 1 >"$dir/out"; done
  set -- $servers
  kill -9 $2
  for seed in $first $third $second,127.0.0.1:$first; do
    expect 75 "$fairlock" list --url redis+cluster://127.0.0.1:$seed
    said "some or all locks of 127.0.0.1:$second are missing"
    said WRONGTYPE
    for node in $first $third; do
      ! grep -q "some or all locks of 127.0.0.1:$node " "$dir/err" || fail "$(cat "$dir/err")"
    done
  done
  expect 75 "$fairlock" list --metrics --url redis+cluster://127.0.0.1:$first
  printed "fairlock_list_success{url=\"redis+cluster://127.0.0.1:$first\"} 0"
  printed 'state="held"} 0'
  # the others have noticed, and serve no key
  for node in $first $third; do redis-cli -p $node config set cluster-node-timeout 1000 >"$dir/out"; done
  for node in $first $third; do eventually sh -c "redis-cli -p $node cluster info | grep -q cluster_state:fail"; done
  expect 75 timeout 120 "$fairlock" list --url $url
  for node in $first $second $third; do said "some or all locks of 127.0.0.1:$node are missing"; done
  said CLUSTERDOWN
  stop_cluster
}

cluster_rules() {
  more_rights +ssubscribe
}

# allow RULE...: the user "lock" has these rules, on all nodes, and those of the page
allow() {
  set -f
  for node in $first $second $third; do
    redis-cli -p $node acl setuser $(rights) "$@" >"$dir/out"
    [ "$(cat "$dir/out")" = OK ] || fail "$(cat "$dir/out")"
  done
  set +f
}

# logged COMMAND: the owner has refused it
logged() {
  redis-cli -p $owner acl log | grep -qi -x -e "$1" -e "${1%|*}"
}

test_cluster_rules() {
  is_new || { echo 'skip cluster_rules: the server has no shard channels'; return; }
  start_cluster
  url=redis+cluster://lock:pw@127.0.0.1:$first,127.0.0.1:$second
  owner=$(on_node a)
  [ "$(cluster_rules | wc -w)" -eq 3 ] || fail "the page has '$(cluster_rules)'"
  allow $(cluster_rules)
  redis-cli -p $owner acl log reset >"$dir/out"
  run --url "$url" a sleep 60 &
  holder=$!
  eventually sh -c "[ \$(redis-cli -p $owner hlen a) = 1 ]"
  run --url "$url" a true &
  waiter=$!
  eventually sh -c "[ \$(redis-cli -p $owner llen 'redisson_lock_queue:{a}') = 1 ]"
  expect 0 "$fairlock" status --url "$url" --json a
  [ "$(jq -c '.waiters|map([.alive,.listens])' "$dir/out")" = '[[true,true]]' ] || fail "$(cat "$dir/out")"
  expect 77 "$fairlock" list --url "$url"
  said NOPERM
  for node in $first $second $third; do redis-cli -p $node acl setuser lock $(more_rights +scan) >"$dir/out"; done
  redis-cli -p $owner acl log reset >"$dir/out"
  expect 0 "$fairlock" list --url "$url"
  printed 'a: held by '
  expect 0 "$fairlock" break --yes --url "$url" a
  ends 79 $holder
  ends 0 $waiter
  [ -z "$(redis-cli -p $owner acl log)" ] || fail "refused: $(redis-cli -p $owner acl log | tr "\n" " ")"
  expect 77 "$fairlock" run --url "$url" b true
  said NOPERM
  # without one of them, that one is refused; the command ends before it would unsubscribe
  for rule in +ssubscribe +spublish; do
    allow "$(echo $rule | sed 's/+/-/')"
    for other in $(cluster_rules); do [ $other = $rule ] || allow $other "$(echo $rule | sed 's/+/-/')"; done
    redis-cli -p $owner acl log reset >"$dir/out"
    run --url "$url" a sleep 60 2>"$dir/err.holder" &
    holder=$!
    eventually sh -c "[ \$(redis-cli -p $owner hlen a) = 1 ]"
    word=$(echo $rule | sed 's/+//')
    run --url "$url" -w 60 a true 2>"$dir/err.waiter" &
    waiter=$!
    if [ "$word" = ssubscribe ]; then eventually logged "$word"; else eventually sh -c "[ \$(redis-cli -p $owner llen 'redisson_lock_queue:{a}') = 1 ]"; fi
    kill $holder
    wait $holder
    wait $waiter
    eventually logged "$word"
    eventually sh -c "[ \$(redis-cli -p $owner exists a) = 0 ]"
  done
  stop_cluster
}

# Replicas

test_replicas() {
  FAIRLOCK_REPLICAS=1
  export FAIRLOCK_REPLICAS
  expect 75 "$fairlock" run -n a true
  said "redis://127.0.0.1:$port: too few replicas acknowledge"
  said 'ask for fewer with --replicas'
  [ "$(redis exists a)" = 0 ] || fail "it left a hold"
  expect 0 "$fairlock" run --replicas 0 a true
  start_replica
  eventually "$fairlock" run -n a true # a replica has 500 ms to acknowledge, and with the shortest leases 250
  expect 0 "$fairlock" run -w 60 --lease 3 a true
  expect 0 "$fairlock" run -s -w 60 --lease 3 a true
  expect 75 "$fairlock" run -n --replicas 2 a true
  [ "$(redis exists a)" = 0 ] || fail "it left a hold"
  # one that waits says why, once, and leaves nothing when it gives up
  expect 75 "$fairlock" run -w 5 --replicas 2 a true
  [ "$(redis exists a)" = 0 ] || fail "it left a hold"
  said 'too few replicas acknowledge; trying again'
  [ "$(grep -c 'trying again' "$dir/err")" = 1 ] || fail "$(cat "$dir/err")"
  # a holder whose replica goes away
  for options in '' -s; do
    run $options --lease 6 a sleep 60 2>"$dir/err" &
    holder=$!
    eventually "$fairlock" status --quiet a
    kill -STOP $replica_pid
    ends 79 $holder
    kill -CONT $replica_pid
    said 'a could not be renewed in time: '
    said 'too few replicas acknowledge; ending the command'
  done
}

# The server refuses to renew, in words of its own.
test_refused_renewal() {
  is_new || { echo 'skip refused_renewal: the server lets scripts write without replicas'; return; }
  run --lease 6 a sleep 60 2>"$dir/err" &
  holder=$!
  eventually held a
  redis config set min-replicas-to-write 1 >"$dir/out"
  ends 79 $holder
  said "a could not be renewed in time: redis://127.0.0.1:$port: the server refuses writes: NOREPLICAS"
}

test_replicas_rules() {
  start_replica
  set -f
  redis acl setuser $(rights) >"$dir/out"
  expect 77 "$fairlock" run --replicas 1 -n --url redis://lock:pw@127.0.0.1:$port a true
  said NOPERM
  said wait
  redis acl setuser lock $(more_rights +wait) >"$dir/out"
  expect 0 "$fairlock" run --replicas 1 --url redis://lock:pw@127.0.0.1:$port a true
}

[ $# -eq 0 ] || run_tests "$@"
run_tests sentinels unknown_service refusing_master load_with_sentinels user_of_the_master_alone no_sentinel no_cluster dead_master_is_named well_sentinel_is_not_blamed master_killed history_of_a_failover user_on_the_master_alone begun_in_failover sentinel_passwords sentinel_rotation cluster cluster_rotation \
  list_in_cluster load_into_cluster list_without_a_master cluster_rules replicas refused_renewal replicas_rules
