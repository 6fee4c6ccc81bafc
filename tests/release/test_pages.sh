#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What the pages (*.md) tell the reader to type does what they say. Each command line of a code
# block is run as it stands, or, if that would take too long or is a suite's own work, looked at:
# `make TARGET` has to be a target. A line that this script does not know fails, and so does a block
# of another kind than C, text (``` text: pictures), CMake (test_cmake.sh tries it), SQL (operators), Java
# and XML (interop), Python (tests/python), JavaScript and TypeScript (boards/node), Go (boards/go),
# Rust (tests/rust), or commands (```).
# shellcheck source=tests/support/lib.sh disable=SC2016,SC2046,SC2086,SC2154,SC1091,SC2317
set -u
. tests/support/lib.sh
sources=$(pwd)
PATH=$build:$PATH
pages=$(sh tests/tools/sources.sh '*.md')

# blocks WHAT PAGE...: see pages.awk
blocks() {
  want=$1
  shift
  for page; do awk -v want="$want" -f "$sources/tests/release/pages.awk" "$page"; done
}

# The Makefile's targets, without running anything.
list_targets() {
  make -npq help BUILD="$build" 2>/dev/null | sed -n 's/^\([A-Za-z][A-Za-z0-9-]*\):.*/\1/p' | sort -u >"$top/targets"
  grep -qx all "$top/targets" || fail "the Makefile's targets cannot be read"
}

# is_target make WORD...: each word is a target, or VARIABLE=value of a variable that the Makefile
# or a script reads, which may have spaces within quotes
is_target() {
  shift
  for word in $(echo "$*" | sed 's/"[^"]*"//g'); do
    case $word in
      *=*)
        grep -rqw --include=Makefile --include='*.mk' --include='*.sh' --exclude=test_pages.sh -e "${word%%=*}" \
          "$sources/Makefile" "$sources/tests" "$sources/boards" || fail "nothing reads ${word%%=*}"
        ;;
      */*) make -C "$sources" -nq BUILD=build "$word" >/dev/null 2>&1 || [ $? -eq 1 ] || fail "make has no target $word" ;;
      *) grep -qx -e "$word" "$top/targets" || fail "make has no target $word" ;;
    esac
  done
}

# The program of README.md, where its command line expects it. What stands for the reader's own
# folder is $dir.
lay_out() {
  ln -s "$build" "$dir/build"
  blocks c "$sources/README.md" >"$dir/program.c"
  cd "$dir" || fail "no $dir"
}

compile() {
  expect 0 sh -c "$1"
  expect 0 ./a.out "$port"
  printed 'held, fencing token '
  printed 'done'
  [ "$(redis hget 'fairlock:{door:7}' token)" -gt 0 ] || fail "there was no hold"
}

# A server where the command looks for one that nobody named. Somebody else's may be there.
try_default_server() {
  mkdir "$dir/default"
  "$build/redis-server" --port 6379 --bind 127.0.0.1 --save '' --dir "$dir/default" >"$dir/default/log" 2>&1 &
  ends_with_us $!
  eventually grep -q -e 'Ready to accept' -e Failed "$dir/default/log"
  grep -q 'Ready to accept' "$dir/default/log" || return
  unset FAIRLOCK_URL
  port=6379
}

# try_line COMMAND: a server that the page starts, at a port of our own
try_line() {
  port=$(draw_port 10000)
  server_log=$dir/line.log
  sh -c "exec $1 --port $port --save ''" >"$server_log" 2>&1 &
  comes_up $! "$server_log" 'ready to accept'
}

# The lines behind it use the server that the test has put where the command looks for one.
server_line() {
  case $1 in *' &') ;; *) fail "it takes the terminal: $1" ;; esac
  before=$port
  line=${1% &}
  until_up try_line "${line% >/dev/null}"
  port=$before
}

# The packages that a newcomer installs: those with which make fresh tries the other targets, less git
# and certificates. make fresh types README.md's lines, too.
packages_line() {
  tried=$(sed -n 's/^packages=//p' "$sources/tests/tools/fresh.sh" | tr ',' '\n' | grep -vx -e git -e ca-certificates | sort)
  [ "$(echo "${1#apt-get install -y --no-install-recommends }" | tr ' ' '\n' | sort)" = "$tried" ] || fail "make fresh tries it with $tried"
}

# The holder, whose sleep goes on until the file `enough` is there.
hold_line() {
  mkdir bin
  printf '%s\n' '#!/bin/sh' 'until [ -e enough ]; do /bin/sleep 0.05; done' >bin/sleep
  chmod +x bin/sleep
  PATH=$(pwd)/bin:$PATH sh -c "$1" >out 2>err
  eventually held backup
}

wait_line() {
  sh -c "$1" >turn 2>err
  eventually waits 1 backup
  [ ! -s turn ] || fail "it has not waited"
}

# Both are shown. The holder's job may end now.
status_line() {
  expect 0 sh -c "$1"
  printed "$(redis hkeys backup)"
  printed "$(redis lindex 'redisson_lock_queue:{backup}' 0)"
}

# While it is held, after which the waiter has its turn.
list_line() {
  expect 0 sh -c "$1"
  printed backup
  touch enough
  eventually grep -qx 'my turn' turn
  eventually unheld backup
}

# It runs its command; another one sees how many may run beside it.
limit_line() {
  expect 0 sh -c "$1"
  printed download
  expect 0 sh -c "${1% -- *} -- fairlock status --json firmware"
  grep -q '"limit":10[,}]' "$dir/out" || fail "it runs without the limit: $(cat "$dir/out")"
}

# What was recorded by the line before it, whenever that was.
history_line() {
  expect 0 sh -c "cd '$dir' && $(echo "$1" | sed 's/--since 2:00/--since 1d/')"
  grep -q '</svg>' "$dir/backup.svg" || fail "it draws nothing"
}

# The commands that a line with rules allows are those without which test_acl says that something
# fails.
same_rights() {
  sed -n '/^static const char \*const commands/,/^}/s/[^"]*"\([a-z|]*\)"[^"]*/\1\n/gp' "$sources/tests/server/test_acl.c" |
    sed '/^[a-z]/!d' | sort >"$dir/needed"
  [ "$(wc -l <"$dir/needed")" -gt 20 ] || fail "test_acl's list cannot be read"
  echo "$1" | tr -d "'" | tr ' ' '\n' | sed -n 's/^+//p' | sort >"$dir/given"
  cmp -s "$dir/needed" "$dir/given" || fail "other rights than in tests/server/test_acl.c: $(diff "$dir/needed" "$dir/given")"
}

# use_rights URL: as the user of a page's line
use_rights() {
  expect 0 fairlock run --url "$1" job:7 -- true
  expect 0 fairlock status --url "$1" job:7
  expect 77 fairlock status --url "$1" window
  said NOPERM
}

acl_line() {
  same_rights "$1"
  [ "$(sh -c "redis-cli -p $port ${1#redis-cli}")" = OK ] || fail "the server refuses: $1"
  use_rights "redis://locks:PASSWORD@127.0.0.1:$port"
  [ "$(redis hget 'fairlock:{job:7}' token)" -gt 0 ] || fail "there was no hold"
}

# A line of an aclfile: with a server that has it, at a Unix socket.
aclfile_line() {
  same_rights "$1"
  echo "$1" >"$dir/users.acl"
  "$build/redis-server" --port 0 --unixsocket "$dir/acl.sock" --aclfile "$dir/users.acl" --save '' --dir "$dir" >"$dir/acl.log" 2>&1 &
  ends_with_us $!
  eventually test -S "$dir/acl.sock"
  use_rights "unix://locks:PASSWORD@$dir/acl.sock"
}

# A lock that somebody looks after; its holder has the id that the page names. On a terminal, break would ask.
stuck_line() {
  fairlock run --id web1.4950 nightly sleep 60 &
  holder=$!
  eventually held nightly
  case $1 in
    *\ status\ *) expect 0 sh -c "$1" && printed 'held by web1.4950.' && kill $holder ;;
    *\ --ask\ *) expect 0 sh -c "$1" ;;
    *) expect 0 sh -c "$1 --yes" ;;
  esac
  eventually unheld nightly
}

# It asks all who hold something on that host, and nobody else.
drain_line() {
  fairlock run --id web1.1 'first lock' sleep 60 &
  fairlock run --id web1.2 --limit 2 shared sleep 60 &
  fairlock run --id web10.3 --limit 2 shared sleep 60 &
  eventually held 'first lock'
  for holder in web1.2 web10.3; do eventually sh -c "fairlock status shared | grep -qF $holder."; done
  expect 0 sh -c "$1"
  printed 'first lock: the hold has ended'
  printed 'shared: the hold has ended'
  expect 0 sh -c "$1"
  [ ! -s "$dir/out" ] || fail "$(cat "$dir/out")"
  expect 0 fairlock status shared
  printed 'web10.3.'
}

# What it upgrades and starts again are others.
upgrade_line() {
  mkdir "$dir/bin"
  for program in apt-get systemctl; do
    printf '%s\n' '#!/bin/sh' 'echo "${0##*/} $*"' >"$dir/bin/$program"
    chmod +x "$dir/bin/$program"
  done
  expect 0 env PATH="$dir/bin:$PATH" sh -c "$1"
  printed 'apt-get install -y fairlock'
  printed 'systemctl restart worker'
}

# A line at the head of a script, which locks itself.
script_line() {
  printf '%s\n' '#!/bin/sh' "$1" 'echo "token $FAIRLOCK_TOKEN of $FAIRLOCK_NAME, $*"' >"$dir/itself.sh"
  chmod +x "$dir/itself.sh"
  expect 0 "$dir/itself.sh" a b
  printed ' of nightly, a b'
  expect 1 fairlock run nightly -- env -u FAIRLOCK_NAME -u FAIRLOCK_HOLDERS "$dir/itself.sh"
}

# A line that makes C of a certificate, beside one.
key_line() {
  [ -e "$dir/ca.crt" ] || {
    ln -s "$sources/port" "$dir/port"
    expect 0 openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN=page \
      -keyout "$dir/client.key" -out "$dir/client.crt"
    cp "$dir/client.crt" "$dir/server.crt"
    cp "$dir/client.crt" "$dir/ca.crt"
  }
  expect 0 sh -c "cd '$dir' && $1"
  expect 0 cc -std=c11 -Wall -Wextra -Werror -fsyntax-only -x c "$dir/${1##*>}"
}

# A line that writes below build/.
cmake_line() {
  expect 0 sh -c "cd '$sources' && $(echo "$1" | sed "s| build/| $dir/|")"
}

# obey LINE: what a reader does with it
obey() {
  case $1 in
    make | make\ *) is_target $1 ;;
    apt-get\ update) ;; # make fresh runs it
    apt-get\ install\ *) packages_line "$1" ;;
    build/redis-server*) server_line "$1" ;;
    cc\ *) compile "$1" ;;
    fairlock\ run\ --limit\ 10\ *) limit_line "$1" ;;
    fairlock\ run\ *\ upgrade\ *) upgrade_line "$1" ;;
    fairlock\ run\ -w\ *) wait_line "$1" ;;
    fairlock\ run\ --history\ *) expect 0 sh -c "$1" ;;
    fairlock\ history\ *) history_line "$1" ;;
    fairlock\ run\ *) hold_line "$1" ;;
    fairlock\ status\ nightly | fairlock\ break\ *) stuck_line "$1" ;;
    fairlock\ status\ *) status_line "$1" ;;
    fairlock\ list\ --json\ *) drain_line "$1" ;;
    fairlock\ list | fairlock\ list\ *) list_line "$1" ;;
    redis-cli\ ACL\ SETUSER\ locks\ *redisson_unlock_latch*) ;; # tests/interop tries it
    redis-cli\ ACL\ SETUSER\ *) acl_line "$1" ;;
    user\ *) aclfile_line "$1" ;;
    '[ '*) script_line "$1" ;;
    sh\ port/bearssl/key.sh\ *) key_line "$1" ;;
    cmake\ *) cmake_line "$1" ;;
    arm-none-eabi-gcc\ *) expect 0 $1 -o "$dir/object.o" ;;
    version=* | git\ * | gpg\ * | ssh-keygen\ * | sed\ *release-key* | sha256sum\ * | sh\ tests/interop/keep.sh\ *) ;; # tests/release tries these
    gh\ *) ;; # speaks to GitHub
    pip\ install\ *fairlock) ;; # tests/python installs the files
    tests/*/test_*) [ -x "${1%% *}" ] || fail "no such suite: $1" ;;
    *) fail "what is to be done with this line? $1" ;;
  esac
}

# obey_all PAGE...: and there is at least one
obey_all() {
  blocks commands "$@" >"$dir/lines"
  [ -s "$dir/lines" ] || fail "no lines in $*"
  while read -r line <&3; do obey "$line"; done 3<"$dir/lines"
}

test_make_builds_what_the_readme_says() {
  expect 0 make BUILD="$build"
  for file in liblock.a fairlock include/fairlock/fairlock.h include/fairlock/port_types.h; do
    [ -e "$build/$file" ] || fail "no $file"
  done
}

test_lines_of_the_readme() {
  list_targets
  try_default_server
  lay_out
  obey_all "$sources/README.md"
}

test_lines_of_the_other_pages() {
  list_targets
  obey_all $(echo "$pages" | grep -vx README.md)
}

# In the text: `make firmware`. A line may end within.
test_targets_in_the_text() {
  list_targets
  for page in $pages; do tr '\n' ' ' <"$page" | grep -o '`make [^`]*`'; done | tr -d '`' | sort -u >"$dir/lines"
  [ "$(wc -l <"$dir/lines")" -gt 20 ] || fail "only $(wc -l <"$dir/lines") found"
  while read -r line; do is_target $line; done <"$dir/lines"
}

test_kinds_of_blocks() {
  blocks kinds $pages | sort -u >"$dir/kinds"
  ! grep -vx -e '' -e python -e rust -e c -e cmake -e cpp -e go -e java -e js -e sql -e text -e ts -e xml "$dir/kinds" >"$dir/out" || fail "$(cat "$dir/out")"
}

# Declarations and calls that stand in no function are put into one.
test_c_of_the_ports_page_compiles() {
  blocks c port/README.md >"$dir/block"
  grep -q . "$dir/block" || fail "no C"
  {
    grep '^#' "$dir/block"
    echo 'void example(void);'
    echo 'void example(void) {'
    grep -v '^#' "$dir/block"
    echo '}'
  } >"$dir/example.c"
  expect 0 make "$dir/tls/include/fairlock" BUILD="$dir/tls" TLS=openssl
  expect 0 cc -std=c11 -Wall -Wextra -Werror -I"$dir/tls/include" -Iport -Iport/posix -Iport/conformance \
    -c -o "$dir/example.o" "$dir/example.c"
}

# What a board of one's own takes and has to write, as boards/README.md lists it: its C compiles with
# the include paths that stand there, and links with what it calls of the board, and nothing else.
test_a_board_of_ones_own() {
  step=$(awk '/^1\. / { on = 1 } /^2\. / { on = 0 } on' boards/README.md | tr '\n' ' ')
  includes=$(echo "$step" | grep -o -e '-I[a-z/]*' | tr '\n' ' ')
  for file in 'resp/*.c' 'lock/*.c' port/lwip/tcp.c port/uart/uart.c port/single/ examples/kernel/threads.c; do
    echo "$step" | grep -qF "\`$file\`" || fail "the page does not name $file"
  done
  cat >"$dir/hardware.c" <<'EOF'
#include <stddef.h>
#include <stdint.h>

uint32_t timer_ms(void);
void sleep_until_interrupt(uint32_t ms);
size_t uart_read(void *data, size_t size);
size_t uart_write(const void *data, size_t size);

uint32_t timer_ms(void)
{
  return *(volatile uint32_t *)0x40028018;
}

void sleep_until_interrupt(uint32_t ms)
{
  (void)ms;
}

size_t uart_read(void *data, size_t size)
{
  (void)data;
  return size - size;
}

size_t uart_write(const void *data, size_t size)
{
  (void)data;
  return size;
}
EOF
  {
    printf '%s\n' '#include "fairlock.h"' '#include "port_uart.h"'
    grep '^[a-z].*);$' "$dir/hardware.c"
    blocks c boards/README.md
    cat <<'EOF'

int main(void)
{
  static const struct port_uart_line line = {line_read, line_write, line_wait, NULL};
  static unsigned char received[FAIRLOCK_RECEIVE_SIZE(16, 0)], sent[FAIRLOCK_SEND_MIN];
  static const struct fairlock_config config = {
      .receive_buffer = received,
      .receive_size = sizeof received,
      .send_buffer = sent,
      .send_size = sizeof sent,
      .client_id = "board-1-1",
  };
  static struct port_uart link;
  static struct fairlock_client client;
  static struct fairlock door;
  port_uart_init(&link, &line, 1);
  if (fairlock_client_init(&client, &config, &link.transport) != FAIRLOCK_OK) return 1;
  if (fairlock_init(&door, &client, "door:7") != FAIRLOCK_OK) return 1;
  fairlock_start_acquire(&door, FAIRLOCK_FOREVER, FAIRLOCK_RENEW);
  while (fairlock_result(&door) == FAIRLOCK_PENDING)
    fairlock_poll(&client, 0);
  return fairlock_remaining_ms(&door) > 0 && fairlock_token(&door) > 0 ? fairlock_start_release(&door) : 1;
}
EOF
  } >"$dir/board.c"
  arm="arm-none-eabi-gcc -mcpu=cortex-m3 -mthumb -std=c11 -Wall -Wextra -Wno-unused-parameter -Werror -Os -ffunction-sections $includes"
  for file in resp/*.c lock/*.c port/uart/uart.c "$dir/board.c" "$dir/hardware.c"; do
    expect 0 $arm -Iport/uart -Iport/single -c -o "$dir/$(basename "$file" .c).o" "$file"
  done
  expect 0 $arm -nostartfiles -Wl,--gc-sections,--entry=main -o "$dir/board" "$dir"/*.o
  for file in resp/*.c lock/*.c port/lwip/tcp.c boards/examples/kernel/threads.c; do
    expect 0 $arm -Iport/lwip -Iboards/examples/kernel -Iboards/common -isystem "$build/lwip/src/include" \
      -c -o "$dir/object.o" "$file"
  done
}

# The first table of boards/README.md has the figures of boards/sizes.txt, within 2 %, less the stack;
# what is left for that is more than the library takes, and with TLS than all of it took.
test_figures_of_the_boards() {
  sed -n 's/^| .*(`\(superloop[a-z_]*\)`) |/\1 |/p' boards/README.md >"$dir/quoted"
  [ "$(wc -l <"$dir/quoted")" -eq 6 ] || fail "another table: $(cat "$dir/quoted")"
  limits=$(sed -n 's/^The stack that a call needs is below \([0-9]*\) bytes; with TLS, .* below \([0-9]*\)\.$/\1 \2/p' boards/README.md)
  tr -d ' ' <"$dir/quoted" | awk -F '|' -v limits="${limits:-0 0}" '
    function near(is, was) { return is + 0 >= was * 0.98 && is + 0 <= was * 1.02 }
    BEGIN { split(limits, limit, " "); FS = " " }
    FNR == NR { if (sub(/^mps2-an385:/, "")) { for (i = 2; i <= NF; i++) figure[$1, i] = $i }; next }
    FNR == 1 { FS = "|"; $0 = $0 }
    {
      tls = figure[$1, 8]
      library = figure[$1, 2] + figure[$1, 3] + figure[$1, 4] + figure[$1, 5]
      ram = figure[$1, 11] - (tls > 0 ? 5120 : 2048)
      stack = tls > 0 ? figure[$1, 14] : figure[$1, 12]
      if (!(near($2, library) && near($3, figure[$1, 6]) && near($4, figure[$1, 7]) && near($5, tls) && near($6, ram) &&
        stack > 0 && stack < limit[tls > 0 ? 2 : 1]))
        printf "%s: %d %d %d %d, RAM %d, stack %d\n", $1, library, figure[$1, 6], figure[$1, 7], tls, ram, stack
    }' boards/sizes.txt - >"$dir/out"
  [ ! -s "$dir/out" ] || fail "boards/sizes.txt says $(cat "$dir/out")"
}

# The operator's page names each alert, and no other.
test_alerts() {
  sed -n 's/.*- alert: //p' boards/examples/operators/alerts.yml | sort >"$dir/there"
  grep -o '\<Fairlock[A-Z][A-Za-z]*' lock/PRODUCTION.md | sort -u >"$dir/named"
  [ -s "$dir/there" ] && cmp -s "$dir/there" "$dir/named" || fail "$(diff "$dir/there" "$dir/named")"
}

# The test itself: what it does not know, and what is wrong, must not pass.
refuses() {
  printf '%s\n' '```' "$1" '```' >"$dir/page.md"
  ! (obey_all "$dir/page.md") >"$dir/out" || fail "it passes: $1"
  grep -qF -e "$2" "$dir/out" || fail "it fails for another reason: $1: $(cat "$dir/out")"
}
test_unknown_lines_fail() {
  list_targets
  refuses 'rm -rf fairlock' 'what is to be done'
  refuses 'make fairlok' 'no target fairlok'
  refuses 'apt-get install make gcc' 'make fresh tries it with'
  refuses 'make build/tests/unit/test_enigne' 'no target build/tests/unit/test_enigne'
  refuses 'make sim SEEED=17' 'nothing reads SEEED'
  refuses '' 'no lines'
  printf '%s\n' '```' 'make sim    # a world' '```' >"$dir/page.md"
  obey_all "$dir/page.md"
}

[ $# -eq 0 ] || run_tests "$@"
run_tests make_builds_what_the_readme_says lines_of_the_readme lines_of_the_other_pages targets_in_the_text \
  kinds_of_blocks c_of_the_ports_page_compiles a_board_of_ones_own figures_of_the_boards alerts \
  unknown_lines_fail
