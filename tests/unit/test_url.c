/* SPDX-License-Identifier: Apache-2.0 */
/*
 * URLs of servers: what comes of each, and why others are refused. Nothing is connected. Any bytes are
 * for fuzz_url.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "port_posix.h"

static struct port_posix_server server;

/* What a URL comes to. An empty string stands for NULL. */
struct expected {
  const char *url;
  const char *host, *port; /* port "": host is a path, or there are seeds */
  const char *seeds;
  const char *user, *password;
  uint32_t database;
  const char *service;
  const char *shown;
};

static const struct expected good[] = {
    {"redis://h", "h", "6379", "", "", "", 0, "", "redis://h:6379"},
    {"redis://h/", "h", "6379", "", "", "", 0, "", "redis://h:6379"},
    {"redis://h:1/2", "h", "1", "", "", "", 2, "", "redis://h:1"},
    {"valkey://h:65535/2147483647", "h", "65535", "", "", "", INT32_MAX, "", "valkey://h:65535"},
    {"redis://u:p@h", "h", "6379", "", "u", "p", 0, "", "redis://h:6379"},
    {"redis://:p@h", "h", "6379", "", "", "p", 0, "", "redis://h:6379"},
    {"redis://u@h", "h", "6379", "", "u", "", 0, "", "redis://h:6379"},
    {"redis://u:@h", "h", "6379", "", "u", "", 0, "", "redis://h:6379"},
    {"redis://@h", "h", "6379", "", "", "", 0, "", "redis://h:6379"},
    {"redis://u:a@b:c@h", "h", "6379", "", "u", "a@b:c", 0, "", "redis://h:6379"},
    {"redis://%75:%2F%3a%40%25%ff@%68", "h", "6379", "", "u", "/:@%\377", 0, "", "redis://h:6379"},
    {"redis://[::1]", "::1", "6379", "", "", "", 0, "", "redis://[::1]:6379"},
    {"redis://u:p@[fe80::1%25eth0]:1/3", "fe80::1%eth0", "1", "", "u", "p", 3, "",
     "redis://[fe80::1%eth0]:1"},
    {"redis://a%2Cb", "a,b", "6379", "", "", "", 0, "", "redis://a,b:6379"},
    {"unix:///run/redis.sock", "/run/redis.sock", "", "", "", "", 0, "", "unix:///run/redis.sock"},
    {"unix://u:p@/a@b?db=3", "/a@b", "", "", "u", "p", 3, "", "unix:///a@b"},
    {"unix:///a%3Fb%23", "/a?b#", "", "", "", "", 0, "", "unix:///a?b#"},
    {"redis+sentinel://h/s", "", "", "h:26379", "", "", 0, "s", "redis+sentinel://h:26379/s"},
    {"redis+sentinel://u:p@a,b:1,[::1],[::2]:2/my%2Fmaster/4", "", "",
     "a:26379,b:1,[::1]:26379,[::2]:2", "u", "p", 4, "my/master",
     "redis+sentinel://a:26379,b:1,[::1]:26379,[::2]:2/my/master"},
    {"valkey+sentinel://h/s/", "", "", "h:26379", "", "", 0, "s", "valkey+sentinel://h:26379/s"},
    {"redis+cluster://a,b:1/5", "", "", "a:6379,b:1", "", "", 5, "", "redis+cluster://a:6379,b:1"},
    /* what could steer a terminal, or forge a line of a log, is shown as it is written in a URL */
    {"redis://a%0Ab%1b[2J%7f", "a\nb\033[2J\177", "6379", "", "", "", 0, "",
     "redis://a%0Ab%1B[2J%7F:6379"},
    {"redis+sentinel://h%09/s%0d%C2%9b\302\237\302\240", "", "", "h\t:26379", "", "", 0,
     "s\r\302\233\302\237\302\240", "redis+sentinel://h%09:26379/s%0D%C2%9B%C2%9F\302\240"},
    {"unix:///a%01\303\234", "/a\001\303\234", "", "", "", "", 0, "", "unix:///a%01\303\234"},
    {"valkey+cluster://[a:b]", "", "", "[a:b]:6379", "", "", 0, "", "valkey+cluster://[a:b]:6379"},
};

static bool same(const char *is, const char *expected)
{
  return strcmp(is != NULL ? is : "", expected) == 0;
}

static void check_server(const struct expected *expected, const char *scheme)
{
  const struct port_posix *socket = &server.socket;
  CHECK(same(socket->host, expected->host));
  CHECK(same(socket->service, expected->port));
  CHECK(same(socket->seeds, expected->seeds));
  CHECK((socket->service == NULL) == (*expected->host == '/'));
  CHECK(same(server.user, expected->user));
  CHECK(same(server.password, expected->password));
  CHECK_EQUAL(server.database, expected->database);
  CHECK(same(server.service, expected->service));
  CHECK_EQUAL(server.moves, *expected->seeds != 0);
  CHECK_EQUAL(server.cluster, *expected->seeds != 0 && *expected->service == 0);
  CHECK(strncmp(server.shown, scheme, strlen(scheme)) == 0);
  CHECK(same(strchr(server.shown, ':'), strchr(expected->shown, ':')));
  CHECK_EQUAL(port_posix_fd(socket), -1);
}

/* The memory of the URL is gone by the time that it is looked at. */
static const char *read_copy(const char *url, bool with_tls)
{
  char *copy = strdup(url);
  if (!CHECK(copy != NULL)) return NULL;
  const char *wrong = with_tls ? port_posix_read_url(&server, copy) : port_posix_url(&server, copy);
  memset(copy, '!', strlen(copy));
  free(copy);
  return wrong;
}

static void test_good(void)
{
  for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
    const char *wrong = read_copy(good[i].url, false);
    if (!CHECK(wrong == NULL)) printf("# %s: %s\n", good[i].url, wrong != NULL ? wrong : "");
    if (wrong != NULL) continue;
    CHECK(!server.tls && server.transport == &server.socket.transport);
    check_server(&good[i], "");
  }
}

/* "redis+cluster://h" becomes "rediss+cluster://h"; a path has no TLS. */
static void test_tls(void)
{
  char url[256], scheme[32];
  for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
    size_t name = strspn(good[i].url, "abcdefghijklmnopqrstuvwxyz");
    if (strncmp(good[i].url, "unix", 4) == 0) continue;
    (void)snprintf(url, sizeof url, "%.*ss%s", (int)name, good[i].url, good[i].url + name);
    (void)snprintf(scheme, sizeof scheme, "%.*s", (int)(strstr(url, "://") + 3 - url), url);
    CHECK(same(read_copy(url, false), "it asks for TLS, which this program does not have"));
    CHECK(server.transport == NULL && server.password == NULL);
    CHECK(read_copy(url, true) == NULL);
    CHECK(server.tls && server.transport == NULL);
    check_server(&good[i], scheme);
  }
}

/* A transport that notes when it is called, and takes any address but the empty one. */
struct noting {
  struct port_transport transport;
  unsigned connects, sends, receives, closes;
  const char *aimed;
};

static int note_connect(void *context, uint32_t timeout_ms)
{
  struct noting *noting = context;
  noting->connects++;
  return timeout_ms > 0 ? PORT_OK : PORT_WOULD_BLOCK;
}

static int note_send(void *context, const void *data, size_t size)
{
  struct noting *noting = context;
  (void)data;
  noting->sends++;
  return (int)size;
}

static int note_recv(void *context, void *data, size_t size, uint32_t timeout_ms)
{
  struct noting *noting = context;
  (void)data;
  (void)size;
  (void)timeout_ms;
  noting->receives++;
  return PORT_CLOSED;
}

static void note_close(void *context)
{
  struct noting *noting = context;
  noting->closes++;
}

static bool note_aim(void *context, const char *address)
{
  struct noting *noting = context;
  noting->aimed = address;
  return address != NULL && *address != 0;
}

static void make_noting(struct noting *noting, struct port_transport *as)
{
  memset(noting, 0, sizeof *noting);
  as->connect = note_connect;
  as->send = note_send;
  as->recv = note_recv;
  as->close = note_close;
  as->aim = note_aim;
  as->context = noting;
}

/* One connection by the server's transport: it is made by this one, and not by that one. */
static void check_connection(struct noting *by, struct noting *not_by)
{
  const struct port_transport *transport = server.transport;
  unsigned connects = by->connects, sends = by->sends, closes = by->closes;
  struct noting other = *not_by;
  CHECK_EQUAL(transport->connect(transport->context, 0), PORT_WOULD_BLOCK);
  CHECK_EQUAL(transport->connect(transport->context, 1), PORT_OK);
  CHECK_EQUAL(transport->send(transport->context, "x", 1), 1);
  /* the next address is known before the connection is closed */
  const char *aimed = by->aimed != NULL ? by->aimed : not_by->aimed;
  CHECK(transport->aim(transport->context, "next:1"));
  CHECK_EQUAL(transport->send(transport->context, "x", 1), 1);
  CHECK_EQUAL(transport->recv(transport->context, NULL, 0, 0), PORT_CLOSED);
  transport->close(transport->context);
  transport->close(transport->context);
  CHECK(transport->aim(transport->context, aimed) == (aimed != NULL));
  CHECK_EQUAL(by->connects, connects + 2);
  CHECK_EQUAL(by->sends, sends + 2);
  CHECK_EQUAL(by->closes, closes + 2);
  CHECK(other.connects == not_by->connects && other.sends == not_by->sends &&
        other.receives == not_by->receives && other.closes == not_by->closes);
}

/* A Sentinel, the server that it names, and a Sentinel again. */
static void check_split(const char *url, bool sentinel_tls, bool server_tls, const char *shown)
{
  struct port_transport own;
  struct noting tls, plain;
  if (!CHECK(read_copy(url, true) == NULL)) return;
  CHECK_EQUAL(server.tls, sentinel_tls || server_tls);
  CHECK_EQUAL(server.sentinel_tls, sentinel_tls);
  CHECK_EQUAL(server.server_tls, server_tls);
  CHECK(same(server.shown, shown));
  make_noting(&plain, &server.socket.transport);
  make_noting(&tls, &own);
  if (server.tls) port_posix_use_tls(&server, &own);
  for (int round = 0; round < 2; round++) {
    CHECK(!server.transport->aim(server.transport->context, NULL));
    CHECK(!server.transport->aim(server.transport->context, "")); /* it is still to a Sentinel */
    tls.aimed = plain.aimed = NULL;
    check_connection(sentinel_tls ? &tls : &plain, sentinel_tls ? &plain : &tls);
    CHECK(server.transport->aim(server.transport->context, "m:3"));
    tls.aimed = plain.aimed = "m:3";
    check_connection(server_tls ? &tls : &plain, server_tls ? &plain : &tls);
    tls.aimed = plain.aimed = NULL;
  }
}

static void test_split(void)
{
  check_split("redis+sentinel://h/s?sentinel_tls=true", true, false,
              "redis+sentinel://h:26379/s?sentinel_tls=true");
  check_split("rediss+sentinel://u:p@h:1/s/2?sentinel_tls=false", false, true,
              "rediss+sentinel://h:1/s?sentinel_tls=false");
  CHECK(same(server.user, "u") && same(server.password, "p") && server.database == 2);
  check_split("valkeys+sentinel://h/s/?sentinel_tls=true", true, true,
              "valkeys+sentinel://h:26379/s");
  check_split("redis+sentinel://h/s?sentinel_tls=false", false, false,
              "redis+sentinel://h:26379/s");
  CHECK(same(read_copy("redis+sentinel://h/s?sentinel_tls=true", false),
             "it asks for TLS, which this program does not have"));
  /* who has no aim() cannot follow, which fairlock_follow() then says */
  struct port_transport fixed = {0};
  CHECK(port_posix_read_url(&server, "rediss+sentinel://h/s?sentinel_tls=false") == NULL);
  port_posix_use_tls(&server, &fixed);
  CHECK(server.transport->aim == NULL);
  CHECK(port_posix_read_url(&server, "rediss://h") == NULL);
  port_posix_use_tls(&server, &fixed);
  CHECK(server.transport == &fixed);
}

static void test_transport(void)
{
  char host[PORT_POSIX_HOST_SIZE];
  CHECK(port_posix_url(&server, "redis+sentinel://h:1,[::1]:2/s") == NULL);
  port_posix_host(server.transport->context, host, PORT_POSIX_HOST_SIZE);
  CHECK(same(host, "h"));
  CHECK(server.transport->aim(server.transport->context, NULL)); /* there is one more */
  CHECK(!server.transport->aim(server.transport->context, NULL));
  port_posix_host(server.transport->context, host, PORT_POSIX_HOST_SIZE);
  CHECK(same(host, "::1"));
  CHECK(server.transport->aim(server.transport->context, "m:3"));
  port_posix_host(server.transport->context, host, PORT_POSIX_HOST_SIZE);
  CHECK(same(host, "m"));
}

/* Refused, each with words that tell why. Many of them have a password, which no words have. */
static const struct {
  const char *url, *words;
} bad[] = {
    {"", "does not begin with"},
    {"h", "does not begin with"},
    {"http://h", "does not begin with"},
    {"redis:", "does not begin with"},
    {"REDIS://h", "does not begin with"},
    {"redis+other://h", "does not begin with"},
    {"127.0.0.1:6379", "does not begin with"},
    {"u:secret@h", "does not begin with"},
    {"unix:", "does not begin with"},
    {"rediss+unix:///p", "does not begin with"},
    {" redis://h", "does not begin with"},
    {"redis://", "it names no host"},
    {"redis:///1", "it names no host"},
    {"redis://:1", "it names no host"},
    {"redis://u:secret@", "it names no host"},
    {"redis://[]", "it names no host"},
    {"redis+sentinel:///s", "it names no host"},
    {"redis+sentinel://h,/s", "it names no host"},
    {"redis+sentinel://,h/s", "it names no host"},
    {"redis+cluster://h,,h", "it names no host"},
    {"redis+cluster://", "it names no host"},
    {"redis://h:", "its port"},
    {"redis://h:0", "its port"},
    {"redis://h:65536", "its port"},
    {"redis://h:99999999999999999999", "its port"},
    {"redis://h:-1", "its port"},
    {"redis://h:x", "its port"},
    {"redis://h:%31", "its port"},
    {"redis+cluster://h:x,h", "its port"},
    {"redis+cluster://h,h:1x", "its port"},
    {"redis://::1", "has to be in brackets"},
    {"redis+sentinel://::1/s", "has to be in brackets"},
    {"redis://[::1", "has no ']'"},
    {"redis+cluster://h,[::1", "has no ']'"},
    {"redis://[::1]x", "only a port may follow"},
    {"redis://a,b", "several hosts"},
    {"redis+sentinel://h%2Ch/s", "which no host can have"},
    {"redis+sentinel://h%3A1/s", "which no host can have"},
    {"redis+cluster://[a%2Cb]", "which no host can have"},
    {"redis+cluster://[a%5D]", "which no host can have"},
    {"redis+cluster://a%5B", "which no host can have"},
    {"redis://h/x", "its database"},
    {"redis://h/-1", "its database"},
    {"redis://h/1/2", "its database"},
    {"redis://h/2147483648", "its database"},
    {"redis+sentinel://h/s/x", "its database"},
    {"redis+cluster://h/s", "its database"},
    {"redis://h?x=1", "this scheme has no parameters"},
    {"rediss://h:1/0?ssl_cert_reqs=none", "this scheme has no parameters"},
    {"redis+cluster://h,i?x=1", "this scheme has no parameters"},
    {"redis+cluster://h?sentinel_tls=false", "this scheme has no parameters"},
    {"redis+sentinel://h/s?x=1", "only ?sentinel_tls=false or"},
    {"redis+sentinel://h/s#x", "only ?sentinel_tls=false or"},
    {"rediss+sentinel://h/s?sentinel_tls=no", "only ?sentinel_tls=false or"},
    {"rediss+sentinel://h/s?sentinel_tls=false&x=1", "only ?sentinel_tls=false or"},
    {"rediss+sentinel://h?sentinel_tls=false", "it names no service"},
    {"rediss+sentinel://u:secret?sentinel_tls=false@h/s", "a '?' or '#' in a password"},
    {"redis://h/1#x", "this scheme has no parameters"},
    {"redis://u:secret?secret@h", "a '?' or '#' in a password"},
    {"redis://u:secret#secret@h", "a '?' or '#' in a password"},
    {"redis://u:secret/secret@h", "a '/' in a password"},
    {"redis+sentinel://u:secret/b@h/s", "a '/' in a password"},
    {"redis+sentinel://h", "it names no service"},
    {"redis+sentinel://h/", "it names no service"},
    {"redis+sentinel://h//1", "it names no service"},
    {"redis+sentinel://h/%zz", "its service has a '%'"},
    {"redis://%zz", "its host has a '%'"},
    {"redis://%00", "its host has a '%'"},
    {"redis://h%4", "its host has a '%'"},
    {"redis://h%", "its host has a '%'"},
    {"redis+cluster://a,%g0", "its host has a '%'"},
    {"redis://%:secret@h", "its user has a '%'"},
    {"redis://u%0@h", "its user has a '%'"},
    {"unix://%G0:secret@/p", "its user has a '%'"},
    {"redis://u:secret%@h", "its password has a '%'"},
    {"redis://u:%secret@h", "its password has a '%'"},
    {"redis://u:secret%4@h", "its password has a '%'"},
    {"redis://u:%00secret@h", "its password has a '%'"},
    {"unix://u:secret%4x@/p", "its password has a '%'"},
    {"unix://", "no absolute path"},
    {"unix:///", "no absolute path"},
    {"unix://path", "no absolute path"},
    {"unix://u:secret@path", "no absolute path"},
    {"unix:///p%0", "its path has a '%'"},
    {"unix:///p?x=1", "only ?db=NUMBER"},
    {"unix:///p?db=", "only ?db=NUMBER"},
    {"unix:///p?db=1&x", "only ?db=NUMBER"},
    {"unix:///p#x", "only ?db=NUMBER"},
    {"redis://h\n", "control character"},
    {"redis://u:secret\t@h", "control character"},
    {"unix:///p\x7f", "control character"},
    {"redis://h ", "ends in a space"},
};

static void check_refused(const char *url, const char *words)
{
  static const struct port_posix_server nothing;
  const char *wrong = read_copy(url, true);
  bool told = wrong != NULL && strstr(wrong, words) != NULL;
  if (!CHECK(told)) printf("# %.60s: %s\n", url, wrong != NULL ? wrong : "is taken");
  CHECK(wrong == NULL || strstr(wrong, "secret") == NULL);
  CHECK(memcmp(&server, &nothing, sizeof server) == 0); /* nor is it left anywhere */
}

static void test_bad(void)
{
  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
    check_refused(bad[i].url, bad[i].words);
  CHECK(same(port_posix_url(&server, NULL), "it is not set"));
  CHECK(server.transport == NULL);
}

/* "BEFORE", count times "WHAT", "AFTER" */
static const char *make(const char *before, size_t count, const char *what, const char *after)
{
  static char url[4 * PORT_POSIX_PASSWORD_SIZE];
  size_t used = (size_t)snprintf(url, sizeof url, "%s", before);
  for (; count > 0; count--)
    used += (size_t)snprintf(url + used, sizeof url - used, "%s", what);
  (void)snprintf(url + used, sizeof url - used, "%s", after);
  return url;
}

/* Each limit is reached, and passed by one. */
static void test_long_parts(void)
{
  enum { PATH_MOST = 91 }; /* what any system allows */
  CHECK(read_copy(make("redis://", 255, "h", ""), false) == NULL);
  CHECK_EQUAL(strlen(server.socket.host), 255);
  check_refused(make("redis://", 256, "h", ""), "more than 255 characters");
  CHECK(read_copy(make("redis+cluster://h,", 255, "h", ":1"), false) == NULL);
  check_refused(make("redis+cluster://h,", 256, "h", ":1"), "more than 255 characters");
  CHECK(read_copy(make("redis+sentinel://h/", 2047 - 19, "s", ""), false) == NULL);
  CHECK_EQUAL(strlen(server.service), 2047 - 19);
  CHECK_EQUAL(strlen(server.shown), 2047 + strlen(":26379"));
  check_refused(make("redis+sentinel://h/", 2048 - 19, "s", ""), "it is too long");
  CHECK(read_copy(make("unix:///", PATH_MOST, "p", ""), false) == NULL);
  check_refused(make("unix:///", 1000, "p", ""), "longer than the system allows");
}

/* Ports that the URL leaves out make it longer. */
static void test_long_lists(void)
{
  CHECK(read_copy(make("redis+cluster://a", 291, ",a", ""), false) == NULL);
  CHECK_EQUAL(strlen(server.socket.seeds), 292 * strlen("a:6379,") - 1);
  check_refused(make("redis+cluster://a", 292, ",a", ""), "it is too long");
  CHECK(read_copy(make("redis+sentinel://a", 255, ",a", "/s"), false) == NULL);
  check_refused(make("redis+sentinel://a", 256, ",a", "/s"), "it is too long");
}

/* However it is written, and beside the longest of the rest. */
static void test_long_passwords(void)
{
  enum { MOST = PORT_POSIX_PASSWORD_SIZE - 1 };
  static char rest[PORT_POSIX_URL_SIZE];
  static const char *const ways[] = {"p", "%70"};
  memset(rest, 's', sizeof rest - 1);
  memcpy(rest, "@h/", 3);
  rest[sizeof rest - 1 - strlen("redis+sentinel://:")] = 0;
  for (size_t i = 0; i < 2; i++) {
    CHECK(read_copy(make("redis+sentinel://:", MOST, ways[i], rest), false) == NULL);
    CHECK_EQUAL(strlen(server.password), MOST);
    CHECK_EQUAL(strspn(server.password, "p"), MOST);
    check_refused(make("redis://:", MOST + 1, ways[i], "@h"), "more than 16384 bytes");
  }
  check_refused(make("redis://:", 2 * MOST, "p", "@h"), "more than 16384 bytes");
  check_refused(make("redis://:", MOST + 1, "p", "%@h"), "its password has a '%'");
  check_refused(make("redis://:", 3 * MOST, "%", "@h"), "its password has a '%'");
}

const struct check_test check_tests[] = {
    {"url: what it says comes out", test_good},
    {"url: with TLS, to who has it, and is refused to others", test_tls},
    {"url: TLS to Sentinels alone, or to servers alone", test_split},
    {"url: its transport goes to the servers it names", test_transport},
    {"url: what is wrong is told, and nothing of it kept", test_bad},
    {"url: parts as long as they may be, and longer", test_long_parts},
    {"url: lists as long as they may be, and longer", test_long_lists},
    {"url: passwords as long as they may be, and longer", test_long_passwords},
    {0}};
