/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The small Redis of the simulator against the real one: random commands, conversions between Lua
 * and replies, and random sequences of the lock's own scripts and Redisson's, with the contents of
 * all keys, and what a client is told that has the queue tracked, compared after each step.
 *
 * Both get the same commands, in the same millisecond or nearly so. The scripts take the time from
 * their last two arguments, and what is left of a lease is rounded, so that nothing depends on how
 * fast this runs. The real server is a private one, and is ended whatever happens.
 */
#include "check.h"
#include "dialect.h"
#include "random.h"
#include "redis.h"
#include "sha1.h"
#include "support/clock.h"
#include "support/loopback.h"
#include "support/server.h"
#include "world.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

#define BUFFER 262144

/* The real server */

static struct {
  struct server server;
  int commands, listener, tracker; /* connections */
} real;

static bool start_server(void)
{
  if (real.server.pid > 0) return true;
  server_start(&real.server, NULL);
  real.commands = dial(real.server.port);
  real.listener = dial(real.server.port);
  real.tracker = dial(real.server.port);
  return real.commands >= 0 && real.listener >= 0 && real.tracker >= 0;
}

/* The small one */

static struct redis *mini;
static struct redis_client *mini_commands, *mini_listener, *mini_tracker;
static char told[BUFFER]; /* what the listener was sent */
static size_t told_size;
static char tracked[BUFFER]; /* what the tracker was sent */
static size_t tracked_size;

static int64_t wall_micros(void *context)
{
  struct timeval now;
  (void)context;
  gettimeofday(&now, NULL);
  return (int64_t)now.tv_sec * 1000000 + now.tv_usec;
}

static void on_output(void *context, struct redis_client *to, const void *data, size_t size)
{
  (void)context;
  if (to == mini_tracker && tracked_size + size <= sizeof tracked) {
    memcpy(tracked + tracked_size, data, size);
    tracked_size += size;
  }
  if (to != mini_listener || told_size + size > sizeof told) return;
  memcpy(told + told_size, data, size);
  told_size += size;
}

static bool start(void)
{
  const struct redis_host host = {.micros = wall_micros, .output = on_output};
  if (!CHECK(start_server())) return false;
  if (mini != NULL) return true;
  mini = redis_new(&host);
  mini_commands = redis_connect(mini, NULL);
  mini_listener = redis_connect(mini, NULL);
  mini_tracker = redis_connect(mini, NULL);
  return true;
}

/* Replies as text: the same text means the same reply */

static size_t put(char *text, size_t used, const char *data, size_t size)
{
  if (used + size + 1 > BUFFER) abort();
  memcpy(text + used, data, size);
  text[used + size] = 0;
  return used + size;
}

/* Of an error only the code counts. */
static size_t put_value(char *text, size_t used, char type, const char *data, size_t size,
                        int64_t integer)
{
  char number[32];
  if (type == '-') dialect_error_code(&data, &size);
  used = put(text, used, &type, 1);
  if (data == NULL) {
    snprintf(number, sizeof number, "%lld", (long long)integer);
    data = number;
    size = strlen(number);
  }
  used = put(text, used, data, size);
  return put(text, used, "\n", 1);
}

static void mini_text(const struct reply *reply, char *text)
{
  static const char types[] = {'_', ':', '$', '+', '-', '*', '*'};
  size_t used = 0;
  text[0] = 0;
  for (uint32_t i = 0; i < reply->used; i++) {
    const struct value *value = &reply->values[i];
    used = put_value(text, used, types[value->kind], value->text.data, value->text.size,
                     value->integer);
  }
}

static bool real_text(char *text)
{
  static char buffer[BUFFER];
  size_t end = 0;
  size_t begin = 0;
  size_t used = 0;
  struct resp_decoder decoder;
  struct resp_event event = {.last = false};
  resp_decoder_init(&decoder, 65536);
  text[0] = 0;
  while (!event.last) {
    size_t taken;
    int status = resp_decode(&decoder, buffer + begin, end - begin, &taken, &event);
    begin += taken;
    if (status < 0) return false;
    if (status == RESP_EVENT) {
      char type = event.type == RESP_NULL ? '_' : (char)event.type;
      used = put_value(text, used, type, (const char *)event.data, event.size,
                       event.type == RESP_NULL ? 0 : event.integer);
      continue;
    }
    ssize_t got = read(real.commands, buffer + end, sizeof buffer - end);
    if (got <= 0) return false;
    end += (size_t)got;
  }
  return begin == end;
}

static bool real_send(int fd, const struct text *argv, int argc)
{
  static char buffer[BUFFER];
  struct resp_writer writer;
  resp_writer_init(&writer, buffer, sizeof buffer, 0);
  resp_write_header(&writer, RESP_ARRAY, argc);
  for (int i = 0; i < argc; i++)
    resp_write_bulk(&writer, argv[i].data, argv[i].size);
  return write(fd, buffer, writer.used) == (ssize_t)writer.used;
}

static void print_difference(const struct text *argv, int argc, const char *ours,
                             const char *theirs)
{
  printf("# asked:");
  for (int i = 0; i < argc; i++)
    printf(" %.*s", (int)(argv[i].size < 60 ? argv[i].size : 60), argv[i].data);
  printf("\n# small:\n%s# real:\n%s", ours, theirs);
}

static char ours[BUFFER], theirs[BUFFER]; /* the last replies */

/* The texts are the same, or strings in them write the same number. */
static bool same(const char *one, const char *two)
{
  if (!dialect_is_brief()) return strcmp(one, two) == 0;
  while (*one != 0 && *two != 0) {
    size_t size = strcspn(one, "\n") + 1;
    size_t length = strcspn(two, "\n") + 1;
    char *end, *other;
    bool equal = size == length && memcmp(one, two, size) == 0;
    if (!equal && (*one != '$' || *two != '$')) return false;
    if (!equal && strtod(one + 1, &end) != strtod(two + 1, &other)) return false;
    if (!equal && (end + 1 != one + size || other + 1 != two + length || size < 3 || length < 3))
      return false;
    one += size;
    two += length;
  }
  return *one == *two;
}

/* Asks both, and compares. */
static bool ask(const struct text *argv, int argc)
{
  static struct reply reply;
  if (!real_send(real.commands, argv, argc) || !real_text(theirs))
    return CHECK("the real server does not answer" == NULL);
  redis_execute(mini_commands, argv, argc, &reply);
  mini_text(&reply, ours);
  if (same(ours, theirs)) return true;
  print_difference(argv, argc, ours, theirs);
  return CHECK("the replies differ" == NULL);
}

static bool flush_both(void)
{
  return ask(&(struct text){"FLUSHALL", 8}, 1);
}

/* Commands */

static struct random random_state = {20};

static struct text any(char *room, int64_t kind)
{
  static const char *const words[] = {"a", "b",  "c",  "x:1",    "y:2",    "",   "token",
                                      "0", "XX", "NX", "MAXLEN", "numsub", "nan"};
  struct random *random = &random_state;
  switch (kind) {
  case 0:
    snprintf(room, 32, "%lld", (long long)random_between(random, -5, 12));
    break;
  case 1:
    snprintf(room, 32, "%lld.%lld", (long long)random_below(random, 100),
             (long long)random_below(random, 100));
    break;
  case 2:
    snprintf(room, 32, "170000%07lld", (long long)random_below(random, 10000000));
    break;
  default:
    return text_of(words[random_below(random, 13)]);
  }
  return text_of(room);
}

static bool random_command(void)
{
  /*
   * A command, and its arguments: k key, m member, i integer, s score, l a long time, * anything.
   */
  static const char *const forms[] = {
      "hget km",    "hset kmi",   "hset kmimm", "hset k*",     "hdel km",    "hdel kmm",
      "hmget kmmm", "hexists km", "hlen k",     "hincrby kmi", "rpush km",   "lpush km",
      "rpush kmm",  "lpop k",     "llen k",     "lindex ki",   "lrange kii", "lpos km",
      "lpos kmXi",  "lrem kim",   "zadd ksm",   "zadd kYsm",   "zscore km",  "zincrby ksm",
      "zrem km",    "zcard k",    "zrange kii", "exists k",    "del k",      "pexpire kl",
      "persist k",  "publish km", "time *",     "lindex k*",   "hset k",     "zadd km*",
      "nonsense k", "exists kk",  "zadd k*m",   "lrem k*m",
  };
  struct random *random = &random_state;
  char room[12][32];
  struct text argv[16] = {text_of("EVAL"), text_of("return redis.call(unpack(ARGV))"),
                          text_of("0")};
  int argc = 3;
  const char *form = forms[random_below(random, sizeof forms / sizeof forms[0])];
  size_t name = strcspn(form, " ");
  static const char *const keys[] = {"k1", "k2", "k3"};
  static const char *const options[] = {"XX", "NX", "GT"};
  argv[argc++] = (struct text){form, name};
  for (const char *at = form + name + 1; *at != 0; at++) {
    char *space = room[argc - 4];
    switch (*at) {
    case 'k':
      argv[argc++] = text_of(keys[random_below(random, 3)]);
      break;
    case 'i':
      argv[argc++] = any(space, 0);
      break;
    case 's':
      argv[argc++] = any(space, random_below(random, 3));
      break;
    case 'l':
      argv[argc++] = text_of(random_chance(random, 100) ? "-1" : "90000000");
      break;
    case 'X':
      argv[argc++] = text_of("MAXLEN");
      break;
    case 'Y':
      argv[argc++] = text_of(options[random_below(random, 3)]);
      break;
    case 'm':
      argv[argc++] = any(space, random_chance(random, 200) ? 0 : 9);
      break;
    default:
      argv[argc++] = any(space, random_below(random, 4));
      break;
    }
  }
  return ask(argv, argc);
}

/* All that a key holds, in an order that does not depend on tables. */
static const char dump_script[] =
    "local all = {}\n"
    "for _, key in ipairs(KEYS) do\n"
    "  local kind = redis.pcall('llen', key)\n"
    "  local part = {redis.call('exists', key), math.ceil(redis.call('pttl', key) / 10000)}\n"
    "  if type(kind) == 'number' then\n"
    "    for _, item in ipairs(redis.call('lrange', key, 0, -1)) do part[#part + 1] = item end\n"
    "  end\n"
    "  local fields = redis.pcall('hgetall', key)\n"
    "  if not fields.err then\n"
    "    local names = {}\n"
    "    for i = 1, #fields, 2 do names[#names + 1] = fields[i] end\n"
    "    table.sort(names)\n"
    "    for _, field in ipairs(names) do\n"
    "      local value = redis.call('hget', key, field)\n"
    "      local pairs = {}\n"
    "      for pair in value:gmatch('%d+ %d+') do pairs[#pairs + 1] = pair end\n"
    "      table.sort(pairs)\n"
    "      part[#part + 1] = field\n"
    "      part[#part + 1] = field == 'shared' and table.concat(pairs, ' ') or value\n"
    "    end\n"
    "  end\n"
    "  local members = redis.pcall('zrange', key, 0, -1)\n"
    "  if not members.err then\n"
    "    for _, member in ipairs(members) do\n"
    "      part[#part + 1] = member\n"
    "      part[#part + 1] = redis.call('zscore', key, member)\n"
    "    end\n"
    "  end\n"
    "  all[#all + 1] = part\n"
    "end\n"
    "return all\n";

static bool same_contents(const struct text *keys, int count)
{
  struct text argv[16] = {text_of("EVAL"), text_of(dump_script), text_of(count == 3 ? "3" : "4")};
  memcpy(argv + 3, keys, (size_t)count * sizeof *keys);
  return ask(argv, 3 + count);
}

static void test_commands(void)
{
  const struct text keys[] = {text_of("k1"), text_of("k2"), text_of("k3")};
  if (!start()) return;
  for (int i = 0; i < 200; i++) {
    if (!flush_both()) return;
    for (int j = 0; j < 60; j++) {
      if (!random_command() || !same_contents(keys, 3)) return;
    }
  }
}

/* Conversions */

static void test_conversions(void)
{
  static const char *const scripts[] = {
      "return 3.99",
      "return -3.99",
      "return 1e15",
      "return 2^53",
      "return true",
      "return false",
      "return nil",
      "return {}",
      "return {1, 2, nil, 4}",
      "return {1, 2.5, 'x', true, false, {3, {4}}}",
      "return {err = 'BAD thing'}",
      "return {ok = 'fine'}",
      "return {ok = 'fine', 1, 2}",
      "return {[1] = 1, [3] = 3}",
      "return 'a\\0b'",
      "return {a = 1}",
      "return redis.call('hget', 'none', 'x')",
      "return {redis.call('hget', 'none', 'x')}",
      "return type(redis.call('hget', 'none', 'x'))",
      "return redis.call('hmget', 'none', 'x', 'y')",
      "return redis.call('lpush', 'l', 1e14, 1.5, 0.1, -0.0, 1e16)",
      "return redis.call('lpush', 'l', 123456789012345678, 1e100, 1/3, 3)",
      "return redis.call('lrange', 'l', 0, -1)",
      "return redis.call('lrange', 'l', 0.5, -1)",
      "return redis.call('zadd', 'z', 1700000000000 + 0.5, 'a')",
      "return redis.call('zscore', 'z', 'a')",
      "return redis.call('zincrby', 'z', 0.25, 'a')",
      "return redis.call('zadd', 'z', 1e300, 'b')",
      "return redis.call('zscore', 'z', 'b')",
      "return redis.call('zadd', 'z', '-inf', 'c')",
      "return redis.call('zscore', 'z', 'c')",
      "return redis.call('zadd', 'z', 2^60, 'd')",
      "return redis.call('zscore', 'z', 'd')",
      "return type(redis.call('zscore', 'z', 'd'))",
      "return redis.call('zadd', 'z', 'nan', 'e')",
      "return redis.call('zadd', 'z', 'x', 'e')",
      "return redis.call('hset', 'z', 'a', 1)",
      "return redis.pcall('hset', 'z', 'a', 1)",
      "return type(redis.pcall('hset', 'z', 'a', 1))",
      "return redis.pcall('hset', 'z', 'a', 1)['err'] ~= nil",
      "return redis.call('hget', 'z')",
      "return redis.call('nothing')",
      "return redis.call()",
      "return redis.call('exists', true)",
      "return redis.call('exists', {})",
      "x = 1 return x",
      "return undefined",
      "return 1 + {}",
      "error('own')",
      "error({err = 'OWN text'})",
      "return tonumber(nil)",
      "return tonumber(false or 0)",
      "return tostring(2^53)",
      "return string.format('%.0f', 2^53)",
      "return #ARGV",
      "return ARGV[1]",
      "return KEYS[2]",
      "return {KEYS[1], ARGV[1], ARGV[2]}",
      "return redis.call('ping')",
      "return {redis.call('ping')}",
      "return redis.call('ping')['ok']",
      "return redis.call('time')[3]",
      "return #redis.call('time')",
      "return redis.call('pttl', 'none')",
      "return redis.call('pttl', 'z')",
      "return redis.call('pexpire', 'none', 1000)",
      "return redis.call('pexpire', 'z', 1000.5)",
      "return redis.call('pexpire', 'z', 0)",
      "return redis.call('exists', 'z')",
      "return {pcall(redis.call, 'hget', 'l', 'x')}[1]",
      "return redis.call('pubsub', 'numsub', 'nobody')",
      "return math.floor(-0.5)",
      "return string.sub('abc', 2)",
      "local a = redis.call('hgetall', 'none') return {#a, a[1] or 'none'}",
      "this is no Lua",
      "return redis.call('HGET', 'none', 'x')",
  };
  if (!start() || !flush_both()) return;
  for (size_t i = 0; i < sizeof scripts / sizeof scripts[0]; i++) {
    if (dialect_is_old() && strncmp(scripts[i], "error({", 7) == 0) continue;
    struct text argv[] = {text_of("EVAL"), text_of(scripts[i]), text_of("1"),
                          text_of("key"),  text_of("one"),      text_of("two")};
    ask(argv, 6);
  }
  struct text unknown[] = {text_of("EVALSHA"), text_of("0123456789012345678901234567890123456789"),
                           text_of("0")};
  ask(unknown, 3);
}

/* By SHA-1: both name a script alike. */
static void test_hash(void)
{
  if (!start()) return;
  for (int size = 0; size < 200; size++) {
    char script[256] = "return '";
    char digest[41];
    struct text by_text[] = {text_of("EVAL"), {0}, text_of("0")};
    struct text by_hash[] = {text_of("EVALSHA"), {digest, 40}, text_of("0")};
    memset(script + 8, 'x', (size_t)size);
    snprintf(script + 8 + size, 2, "'");
    by_text[1] = text_of(script);
    sha1_hex(script, strlen(script), digest);
    if (!ask(by_text, 3) || !ask(by_hash, 3) || theirs[0] != '$') return;
  }
}

/* Expiry */

static void test_expiry(void)
{
  struct text set[] = {text_of("HSET"), text_of("e"), text_of("f"), text_of("1")};
  struct text expire[] = {text_of("PEXPIRE"), text_of("e"), text_of("30")};
  struct text exists[] = {text_of("EXISTS"), text_of("e")};
  struct text pttl[] = {text_of("PTTL"), text_of("e")};
  if (!start() || !flush_both() || !ask(set, 4) || !ask(pttl, 2) || !ask(expire, 3)) return;
  sleep_ms(100);
  ask(exists, 2);
  ask(pttl, 2);
  ask(set, 4);
  ask(pttl, 2);
}

/* The scripts */

/* Redisson's are the four from THEIRS on. */
enum { LOCK, INSPECT, THEIRS, BREAK = THEIRS + 4, SHARED, DOWNGRADE, SCRIPTS };

static char *sources[SCRIPTS];
static size_t source_sizes[SCRIPTS];

static char *read_file(const char *path, size_t *size)
{
  FILE *file = fopen(path, "r");
  char *data = malloc(65536);
  if (file == NULL || data == NULL) abort();
  *size = fread(data, 1, 65535, file);
  fclose(file);
  data[*size] = 0;
  return data;
}

static char *replaced(char *text, const char *from, const char *to)
{
  char *at = strstr(text, from);
  while (at != NULL) {
    size_t head = (size_t)(at - text);
    size_t all = strlen(text) - strlen(from) + strlen(to);
    char *next = malloc(all + 1);
    if (next == NULL) abort();
    snprintf(next, all + 1, "%.*s%s%s", (int)head, text, to, at + strlen(from));
    free(text);
    text = next;
    at = strstr(text + head + strlen(to), from);
  }
  return text;
}

/*
 * What a script begins with that is the same however fast both are: times to live are set to 5 s more
 * than a multiple of 10 s, and read so. A millisecond, and what is no time, stay.
 */
static const char even[] =
    "local function even(ms) return ms > 1 and math.floor(ms / 10000) * 10000 + 5000 or ms end\n"
    "local function expire(_, key, ms) return redis.call('pexpire', key, even(tonumber(ms))) end\n"
    "local function left(_, key) return even(redis.call('pttl', key)) end\n";

/* Time from the arguments. */
static char *timeless(char *text)
{
  size_t size = strlen(text) + sizeof even;
  char *whole = malloc(size);
  if (whole == NULL) abort();
  text = replaced(text, "call('time')", "{ARGV[#ARGV - 1], ARGV[#ARGV]}");
  text = replaced(text, "redis.pcall('pexpire', ", "expire('', ");
  text = replaced(text, "redis.call('pexpire', ", "expire('', ");
  text = replaced(text, "call('pexpire', ", "expire('', ");
  text = replaced(text, "redis.call('pttl', ", "left('', ");
  text = replaced(text, "call('pttl', ", "left('', ");
  snprintf(whole, size, "%s%s", even, text);
  free(text);
  return whole;
}

/* Puts the text of another file where the text names it. */
static char *included(char *text, const char *name)
{
  char line[40];
  char path[60];
  size_t size;
  snprintf(line, sizeof line, "-- include %s", name);
  snprintf(path, sizeof path, "lock/scripts/%s", name);
  char *other = read_file(path, &size);
  text = replaced(text, line, other);
  free(other);
  return text;
}

/* A script of ours, with what it includes. */
static char *own_script(const char *name)
{
  char path[60];
  size_t size;
  snprintf(path, sizeof path, "lock/scripts/%s.lua", name);
  char *text = read_file(path, &size);
  static const char *const parts[] = {"common.lua", "hand_over.lua", "share.lua"};
  for (int i = 0; i < 3; i++)
    text = included(text, parts[i]);
  return timeless(text);
}

static void load_sources(void)
{
  sources[LOCK] = own_script("lock");
  sources[INSPECT] = own_script("inspect");
  sources[BREAK] = own_script("break");
  sources[SHARED] = own_script("shared");
  sources[DOWNGRADE] = own_script("downgrade");
  for (int i = 0; i < 4; i++)
    sources[THEIRS + i] = timeless(strdup(redisson_script(i)));
  for (int i = 0; i < SCRIPTS; i++)
    source_sizes[i] = strlen(sources[i]);
}

/* Those who want the lock alone, those who share it, and Redisson's. */
enum { SHARERS = 3, PEERS = 7, IDS = 9 };

static struct {
  int64_t micros;
  int64_t tokens[IDS];
  bool listens[IDS];
  int limit;  /* of those who share */
  int beside; /* how often one has come beside another */
  int holds;
} play;

static const char *const ids[IDS] = {"aa:1", "bb:1", "cc:2",       "aa:4",      "bb:5",
                                     "cc:6", "ff:3", "redisson:1", "redisson:2"};
static const char *const key_names[4] = {"L", "redisson_lock_queue:{L}",
                                         "redisson_lock_timeout:{L}", "fairlock:{L}"};

static bool listen_to(int id, bool on)
{
  static struct reply reply;
  char channel[80];
  char got[256];
  snprintf(channel, sizeof channel, "redisson_lock__channel:{L}:%s", ids[id]);
  struct text argv[] = {text_of(on ? "SUBSCRIBE" : "UNSUBSCRIBE"), text_of(channel)};
  redis_execute(mini_listener, argv, 2, &reply);
  play.listens[id] = on;
  /* The confirmation, so that the real one is known to have done it. */
  if (!real_send(real.listener, argv, 2)) return CHECK("no listener" == NULL);
  size_t end = 0;
  while (end < told_size) {
    ssize_t size =
        read(real.listener, got, told_size - end < sizeof got ? told_size - end : sizeof got);
    if (size <= 0) return CHECK("the listener is gone" == NULL);
    if (memcmp(got, told + end, (size_t)size) != 0) return CHECK("the messages differ" == NULL);
    end += (size_t)size;
  }
  told_size = 0;
  return true;
}

/*
 * The published messages are the same in both. A subscription that changes nothing marks their end.
 */
static bool same_messages(void)
{
  return listen_to(0, play.listens[0]);
}

/* Tells both trackers, as bytes, so that all they are sent is in the order in which it is. */
static bool tell_tracker(const char *words)
{
  char text[200];
  struct text argv[8];
  int argc = 0;
  uint8_t bytes[400];
  struct resp_writer writer;
  snprintf(text, sizeof text, "%s", words);
  for (char *word = strtok(text, " "); word != NULL; word = strtok(NULL, " "))
    argv[argc++] = text_of(word);
  resp_writer_init(&writer, bytes, sizeof bytes, 0);
  resp_write_header(&writer, RESP_ARRAY, argc);
  for (int i = 0; i < argc; i++)
    resp_write_bulk(&writer, argv[i].data, argv[i].size);
  return redis_receive(mini_tracker, bytes, writer.used) && real_send(real.tracker, argv, argc);
}

/* Both trackers were sent the same since the last time. A PING marks the end. */
static bool same_tracked(void)
{
  static char got[BUFFER];
  size_t end = 0;
  if (!tell_tracker("PING")) return CHECK("no tracker" == NULL);
  while (end < tracked_size) {
    ssize_t size = read(real.tracker, got + end, tracked_size - end);
    if (size <= 0) return CHECK("the tracker is gone" == NULL);
    end += (size_t)size;
  }
  bool equal = memcmp(got, tracked, tracked_size) == 0;
  if (!equal) printf("# small:\n%.*s# real:\n%.*s", (int)end, tracked, (int)end, got);
  tracked_size = 0;
  return CHECK(equal);
}

/* The queue is tracked from now on, in some cases. */
static bool track(void)
{
  if (!random_chance(&random_state, 300)) return true;
  return tell_tracker("CLIENT CACHING YES") && tell_tracker("EXISTS redisson_lock_queue:{L}");
}

/* What HELLO says depends on the server. */
static bool begin_tracking(void)
{
  char got[4096];
  if (mini_tracker->tracks) return true;
  if (!tell_tracker("HELLO 3")) return false;
  struct pollfd poll_fd = {.fd = real.tracker, .events = POLLIN};
  do {
    if (read(real.tracker, got, sizeof got) <= 0) return false;
  } while (poll(&poll_fd, 1, 100) > 0);
  tracked_size = 0;
  return tell_tracker("CLIENT TRACKING ON OPTIN") && same_tracked();
}

static bool run_script(int script, const char *const *arguments, bool ours_too)
{
  char seconds[24];
  char micros[24];
  struct text argv[24] = {
      text_of("EVAL"), {sources[script], source_sizes[script]}, text_of(ours_too ? "4" : "3")};
  int argc = 3;
  for (int i = 0; i < (ours_too ? 4 : 3); i++)
    argv[argc++] = text_of(key_names[i]);
  for (; *arguments != NULL; arguments++)
    argv[argc++] = text_of(*arguments);
  snprintf(seconds, sizeof seconds, "%lld", (long long)(play.micros / 1000000));
  snprintf(micros, sizeof micros, "%lld", (long long)(play.micros % 1000000));
  if (ours_too) {
    argv[argc++] = text_of(seconds);
    argv[argc++] = text_of(micros);
  }
  return ask(argv, argc);
}

/* Keeps the token that an acquire gave, for later releases. */
static void note_token(int id)
{
  long long token;
  if (sscanf(ours, "*3\n:1\n:%lld\n", &token) != 1 && sscanf(ours, "*3\n:1\n$%lld\n", &token) != 1)
    return;
  play.tokens[id] = token;
  play.holds++;
}

static bool step_of_ours(int id)
{
  struct random *random = &random_state;
  static const int leases[] = {25000, 95000, 1005000};
  static const int timeouts[] = {5000, 25000, 65000};
  char argument[200];
  int64_t expires = play.micros / 1000 + (random_chance(random, 50) ? -1 : 2000);
  int64_t token = random_chance(random, 200) ? 0 : play.tokens[id];
  bool acquires = random_chance(random, 600);
  int64_t kind = random_below(random, acquires ? 4 : 10);
  int64_t mode = 0;
  int lease = acquires ? leases[random_below(random, 3)] : 0;
  if (acquires && kind > 1)
    mode = kind == 2 ? -random_between(random, 1, 3) : timeouts[random_below(random, 3)];
  bool breaks = !acquires && kind < 2;
  if (breaks) mode = -random_between(random, 1, 2);
  bool names = acquires ? mode < 0 || random_chance(random, 200) : kind > 2 || kind == 0;
  /* several who are asked are told in the order of the hash, which differs */
  bool any = breaks && (mode == -1 || (names && token != 0)) && random_chance(random, 700);
  size_t size = (size_t)snprintf(argument, sizeof argument, "%s %lld %lld %d%s",
                                 any ? "*" : ids[id], (long long)expires, (long long)mode, lease,
                                 acquires && random_chance(random, 500) ? "+" : "");
  if (names && token != 0)
    snprintf(argument + size, sizeof argument - size, " %lld", (long long)token);
  bool shares = id >= SHARERS && !breaks;
  char limit[12];
  snprintf(limit, sizeof limit, "%d", random_chance(random, 20) ? 7 : play.limit);
  const char *const arguments[] = {argument, shares ? limit : NULL, NULL};
  if (!run_script(breaks ? BREAK : shares ? SHARED : LOCK, arguments, true)) return false;
  if (acquires) note_token(id);
  return true;
}

/* One who has the lock alone shares it from now on, with another id of the same client. */
static bool step_down(int from)
{
  int to = SHARERS + from;
  char argument[200];
  char limit[12], newer[24]; /* after a fail-over */
  snprintf(argument, sizeof argument, "%s %lld -%s 25000+ %lld", ids[to],
           (long long)(play.micros / 1000 + 2000), strchr(ids[from], ':') + 1,
           (long long)play.tokens[from]);
  snprintf(limit, sizeof limit, "%d", play.limit);
  snprintf(newer, sizeof newer, "%lld", (long long)(play.tokens[from] + 1000000));
  const char *const arguments[] = {argument, limit,
                                   random_chance(&random_state, 200) ? newer : NULL, NULL};
  if (!run_script(DOWNGRADE, arguments, true)) return false;
  note_token(to);
  return true;
}

static bool step_of_peer(int id)
{
  struct random *random = &random_state;
  char now[24];
  snprintf(now, sizeof now, "%lld", (long long)(play.micros / 1000));
  switch (random_below(random, 6)) {
  case 0:
  case 1:
    return run_script(THEIRS + 1,
                      (const char *const[]){ids[id], "redisson_lock__channel:{L}:", now, NULL},
                      false);
  case 2:
    return run_script(THEIRS + 2, (const char *const[]){ids[id], "300000", NULL}, false);
  case 3:
    return run_script(THEIRS + 3, (const char *const[]){ids[id], "35000", NULL}, false);
  default:
    return run_script(THEIRS, (const char *const[]){ids[id], "35000", "300000", now, NULL}, false);
  }
}

static bool random_step(void)
{
  struct random *random = &random_state;
  int64_t kind = random_below(random, 100);
  int id = (int)random_below(random, IDS);
  if (kind < 15) return listen_to(id, random_chance(random, 700));
  if (kind < 20) return run_script(INSPECT, (const char *const[]){NULL}, true);
  if (kind < 25)
    return ask((const struct text[]){text_of("DEL"), text_of(key_names[0])},
               2); /* the lease ends */
  if (kind < 26) {
    return ask((const struct text[]){text_of("DEL"), text_of(key_names[random_below(random, 4)])},
               2); /* an eviction */
  }
  if (kind < 30 && id < SHARERS) return step_down(id);
  return id < PEERS ? step_of_ours(id) : step_of_peer(id);
}

static bool shared_by_several(void)
{
  const struct key *hash = store_find(redis_store(mini), text_of(key_names[0]));
  return hash != NULL && hash->dict.used > 2;
}

static void test_scripts(void)
{
  struct random *random = &random_state;
  struct text keys[4];
  if (!start() || !CHECK(begin_tracking())) return;
  load_sources();
  for (int i = 0; i < 4; i++)
    keys[i] = text_of(key_names[i]);
  for (int i = 0; i < 300; i++) {
    if (!flush_both()) return;
    memset(play.tokens, 0, sizeof play.tokens);
    play.micros = 1700000000000000 + random_below(random, 1000000000);
    play.limit = (int)random_below(random, 4);
    for (int j = 0; j < IDS; j++) {
      if (!listen_to(j, random_chance(random, 500))) return;
    }
    for (int j = 0; j < 50; j++) {
      play.micros += random_around(random, random_chance(random, 100) ? 4000000 : 100000);
      if (!track() || !random_step() || !same_contents(keys, 4) || !same_messages()) return;
      if (!same_tracked()) return;
      play.beside += shared_by_several();
    }
  }
  printf("# %d times held, %d times by several\n", play.holds, play.beside);
  CHECK(play.holds > 500 && play.beside > 400);
}

const struct check_test check_tests[] = {
    {"small and real Redis: commands", test_commands},
    {"small and real Redis: values to and from Lua", test_conversions},
    {"small and real Redis: names of scripts", test_hash},
    {"small and real Redis: expiry", test_expiry},
    {"small and real Redis: the lock's scripts and Redisson's", test_scripts},
    {0},
};
