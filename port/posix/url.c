/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Servers by URL. What is not exactly right is refused with a reason, with one exception: a password
 * may have an unescaped '@' in it, because the last '@' before the path ends it. No reason has a part
 * of the URL in it, which may be a password.
 */
#include "port_posix.h"

#include <stdio.h>
#include <string.h>

enum kind { SERVER, SENTINEL, CLUSTER, PATH };

static const struct {
  const char *begin;
  enum kind kind;
  bool tls;
} schemes[] = {
    {"redis://", SERVER, false},
    {"valkey://", SERVER, false},
    {"redis+sentinel://", SENTINEL, false},
    {"valkey+sentinel://", SENTINEL, false},
    {"redis+cluster://", CLUSTER, false},
    {"valkey+cluster://", CLUSTER, false},
    {"rediss://", SERVER, true},
    {"valkeys://", SERVER, true},
    {"rediss+sentinel://", SENTINEL, true},
    {"valkeys+sentinel://", SENTINEL, true},
    {"rediss+cluster://", CLUSTER, true},
    {"valkeys+cluster://", CLUSTER, true},
    {"unix://", PATH, false},
};

static bool begins(const char *text, const char *with)
{
  return strncmp(text, with, strlen(with)) == 0;
}

/* Where "user:password@host:port" begins, and its size. */
static const char *authority_of(const char *url)
{
  const char *mark = strstr(url, "://");
  return mark != NULL ? mark + 3 : url;
}

static size_t size_of_authority(const char *authority)
{
  return strcspn(authority, "/?#");
}

/* The size of "user:password" in it; -1: there is no '@'. */
static ptrdiff_t size_of_login(const char *authority)
{
  ptrdiff_t at = (ptrdiff_t)size_of_authority(authority) - 1;
  while (at >= 0 && authority[at] != '@')
    at--;
  return at;
}

static int hexadecimal(char c)
{
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

#define MALFORMED SIZE_MAX

/*
 * Decodes %41 and the like in size bytes, which may be in place, and adds an end mark. Returns the size
 * of what that comes to, of which to has as much as fits into room; or MALFORMED.
 */
static size_t decode_to(char *to, size_t room, const char *text, size_t size)
{
  size_t used = 0;
  for (size_t at = 0; at < size; at++, used++) {
    char c = text[at];
    if (c == '%') {
      int high = at + 2 < size ? hexadecimal(text[at + 1]) : -1;
      int low = at + 2 < size ? hexadecimal(text[at + 2]) : -1;
      if (high < 0 || low < 0 || (high | low) == 0) return MALFORMED;
      c = (char)(high << 4 | low);
      at += 2;
    }
    if (used < room) to[used] = c;
  }
  if (used < room) to[used] = 0;
  return used;
}

static bool decode(char *text)
{
  size_t size = strlen(text);
  return decode_to(text, size + 1, text, size) != MALFORMED;
}

static bool number(const char *text, uint32_t most, uint32_t *value)
{
  uint64_t sum = 0;
  if (*text == 0) return false;
  for (; *text != 0; text++) {
    if (*text < '0' || *text > '9') return false;
    sum = 10 * sum + (uint64_t)(*text - '0');
    if (sum > most) return false;
  }
  *value = (uint32_t)sum;
  return true;
}

/* Parses "user:", 0-terminated, or "user", whose password comes from elsewhere. */
static const char *parse_user(struct port_posix_server *server, char *text)
{
  text[strcspn(text, ":")] = 0;
  if (!decode(text))
    return "its user has a '%' without two hexadecimal digits other than 00 after it";
  if (*text != 0) server->user = text;
  return NULL;
}

/* A host and a port, as they are in a URL. */
struct place {
  char *host;
  const char *port;
  bool bracketed;
};

/* Parses "host:port", 0-terminated, in place. The host may be an IPv6 address in brackets. */
static const char *parse_place(struct place *place, char *text)
{
  uint32_t port;
  char *rest;
  place->host = text;
  place->bracketed = *text == '[';
  if (place->bracketed) {
    place->host = text + 1;
    rest = strchr(text, ']');
    if (rest == NULL) return "its '[' has no ']'";
    *rest++ = 0;
    if (*rest != 0 && *rest != ':') return "only a port may follow its ']'";
  } else {
    rest = text + strcspn(text, ":");
    if (strchr(text, ':') != strrchr(text, ':'))
      return "an IPv6 address has to be in brackets: redis://[::1]:6379";
  }
  if (*rest == ':') {
    *rest = 0;
    place->port = rest + 1;
    if (!number(place->port, 65535, &port) || port == 0)
      return "its port is not a number from 1 to 65535";
  }
  if (!decode(place->host))
    return "its host has a '%' without two hexadecimal digits other than 00 after it";
  if (strlen(place->host) >= PORT_POSIX_HOST_SIZE)
    return "a host in it has more than 255 characters";
  return *place->host == 0 ? "it names no host" : NULL;
}

/* How many bytes a control character at text has: also those of UTF-8 from U+0080 on. 0: it is none. */
static int size_of_control(const char *text)
{
  unsigned char first = (unsigned char)text[0];
  unsigned char second = (unsigned char)(first == 0xc2 ? text[1] : 0);
  if (second >= 0x80 && second < 0xa0) return 2;
  return first < ' ' || first == 0x7f;
}

/*
 * Adds to what messages show, with control characters as in a URL: they could steer a terminal, or
 * forge a line of a log. What there is no room for is left out.
 */
static void show(struct port_posix_server *server, const char *text)
{
  int controls = 0;
  for (size_t used = strlen(server->shown); *text != 0; text++, used = strlen(server->shown)) {
    if (controls == 0) controls = size_of_control(text);
    (void)snprintf(server->shown + used, sizeof server->shown - used,
                   controls > 0 ? "%%%02X" : "%c", (unsigned char)*text);
    if (controls > 0) controls--;
  }
}

static const char *parse_host(struct port_posix_server *server, char *text)
{
  struct place place = {.port = "6379"};
  if (strchr(text, ',') != NULL)
    return "several hosts need redis+sentinel:// or redis+cluster://, or a ',' written %2C";
  const char *wrong = parse_place(&place, text);
  if (wrong != NULL) return wrong;
  bool brackets = strchr(place.host, ':') != NULL;
  show(server, brackets ? "[" : "");
  show(server, place.host);
  show(server, brackets ? "]:" : ":");
  show(server, place.port);
  port_posix_tcp(&server->socket, place.host, place.port);
  return NULL;
}

/* Parses "host:port,host:port", 0-terminated. */
static const char *parse_seeds(struct port_posix_server *server, char *text, const char *port)
{
  size_t used = 0;
  for (char *next = text; next != NULL; text = next) {
    struct place place = {.port = port};
    next = strchr(text, ',');
    if (next != NULL) *next++ = 0;
    const char *wrong = parse_place(&place, text);
    if (wrong != NULL) return wrong;
    if (place.host[strcspn(place.host, place.bracketed ? ",[]" : ",:[]")] != 0)
      return "one of its hosts has a ',', ':' or bracket, which no host can have";
    used += (size_t)snprintf(server->seeds + used, sizeof server->seeds - used, "%s%s%s%s:%s",
                             used > 0 ? "," : "", place.bracketed ? "[" : "", place.host,
                             place.bracketed ? "]" : "", place.port);
    if (used >= sizeof server->seeds) return "it is too long";
  }
  server->moves = true;
  show(server, server->seeds);
  (void)port_posix_seeds(&server->socket, server->seeds); /* each place has been checked */
  return NULL;
}

/* Parses "service/db": takes the service, and makes *path point to "db". */
static const char *parse_service(struct port_posix_server *server, char **path)
{
  char *service = *path;
  char *end = strchr(service, '/');
  *path = end != NULL ? end + 1 : service + strlen(service);
  if (end != NULL) *end = 0;
  if (!decode(service))
    return "its service has a '%' without two hexadecimal digits other than 00 after it";
  if (*service == 0) return "it names no service: redis+sentinel://host:26379/service";
  server->service = service;
  return NULL;
}

/* Takes "user@" from where *authority begins. */
static const char *parse_login(struct port_posix_server *server, char **authority)
{
  char *user = *authority;
  ptrdiff_t size = size_of_login(user);
  if (size < 0) return NULL;
  user[size] = 0;
  *authority += size + 1;
  return parse_user(server, user);
}

#define PLAIN_SENTINELS "?sentinel_tls=false"
#define SAFE_SENTINELS  "?sentinel_tls=true"

/* Parses what begins at a '?' or '#', or is empty. */
static const char *parse_parameter(struct port_posix_server *server, const char *text,
                                   enum kind kind)
{
  if (*text == 0) return NULL;
  if (strchr(text, '@') != NULL) return "a '?' or '#' in a password has to be written %3F or %23";
  bool plain = strcmp(text, PLAIN_SENTINELS) == 0;
  if (kind == SENTINEL && (plain || strcmp(text, SAFE_SENTINELS) == 0)) {
    server->sentinel_tls = !plain;
    return NULL;
  }
  if (kind == SENTINEL)
    return "only " PLAIN_SENTINELS " or " SAFE_SENTINELS " may follow its service and database: a "
           "database is written /1, and TLS rediss; in a name, write %3F for '?' and %23 for '#'";
  return "it has a '?' or '#', and this scheme has no parameters: a database is written /1, and "
         "TLS "
         "rediss; in a name, write %3F or %23";
}

static const char *parse_redis(struct port_posix_server *server, char *authority, enum kind kind)
{
  char *end = authority + size_of_authority(authority);
  char *mark = end + strcspn(end, "?#");
  const char *wrong = parse_parameter(server, mark, kind);
  if (wrong != NULL) return wrong;
  *mark = 0;
  char *path = *end == '/' ? end + 1 : end;
  *end = 0;
  if (strchr(path, '@') != NULL) return "a '/' in a password has to be written %2F";
  if (kind == SENTINEL) wrong = parse_service(server, &path);
  if (wrong != NULL) return wrong;
  if (*path != 0 && !number(path, INT32_MAX, &server->database))
    return "its database, after the '/', is not a number";
  wrong = parse_login(server, &authority);
  if (wrong != NULL) return wrong;
  if (kind == SERVER) return parse_host(server, authority);
  server->cluster = kind == CLUSTER;
  wrong = parse_seeds(server, authority, kind == SENTINEL ? "26379" : "6379");
  if (wrong != NULL || kind != SENTINEL) return wrong;
  show(server, "/");
  show(server, server->service);
  if (server->sentinel_tls != server->server_tls)
    show(server, server->sentinel_tls ? SAFE_SENTINELS : PLAIN_SENTINELS);
  return NULL;
}

static const char *parse_unix(struct port_posix_server *server, char *path)
{
  const char *wrong = parse_login(server, &path);
  if (wrong != NULL) return wrong;
  char *end = path + strcspn(path, "?#");
  if (*end != 0 && (!begins(end, "?db=") || !number(end + 4, INT32_MAX, &server->database)))
    return "only ?db=NUMBER may follow its path; in the path, write %3F for '?' and %23 for '#'";
  *end = 0;
  if (*path != '/' || path[1] == 0)
    return "it names no absolute path: unix:///run/redis/redis.sock";
  if (!decode(path))
    return "its path has a '%' without two hexadecimal digits other than 00 after it";
  show(server, path);
  if (!port_posix_unix(&server->socket, path))
    return "its path is longer than the system allows that of a socket to be";
  return NULL;
}

/* Finds characters that a message would not show. An editor or a file of secrets may add them. */
static const char *find_invisible(const char *text)
{
  for (const char *c = text; *c != 0; c++) {
    if ((unsigned char)*c < ' ' || *c == 0x7f)
      return "it has a line break, or another control character, in it; one that belongs to a "
             "password is written %0A, %09 and so on";
    if (*c == ' ' && c[1] == 0) return "it ends in a space; one that belongs to it is written %20";
  }
  return NULL;
}

static const char *parse_password(struct port_posix_server *server, const char *text, size_t size)
{
  size_t decoded = decode_to(server->secret, sizeof server->secret, text, size);
  if (decoded == MALFORMED)
    return "its password has a '%' without two hexadecimal digits other than 00 after it";
  if (decoded >= sizeof server->secret) return "its password has more than 16384 bytes";
  if (decoded > 0) server->password = server->secret;
  return NULL;
}

/* Copies the URL, but for the password, which is parsed at once: it may be longer than all the rest. */
static const char *take(struct port_posix_server *server, const char *url)
{
  const char *authority = authority_of(url);
  ptrdiff_t login = size_of_login(authority);
  const char *end = login >= 0 ? authority + login : authority;
  const char *password = memchr(authority, ':', (size_t)(end - authority));
  password = password != NULL ? password + 1 : end;
  size_t before = (size_t)(password - url);
  size_t after = strlen(end);
  if (before + after >= sizeof server->text) return "it is too long";
  memcpy(server->text, url, before);
  memcpy(server->text + before, end, after + 1);
  return parse_password(server, password, (size_t)(end - password));
}

static const char *parse(struct port_posix_server *server, const char *url)
{
  const char *wrong = url != NULL ? find_invisible(url) : "it is not set";
  if (wrong == NULL) wrong = take(server, url);
  if (wrong != NULL) return wrong;
  for (size_t i = 0; i < sizeof schemes / sizeof schemes[0]; i++) {
    if (!begins(url, schemes[i].begin)) continue;
    show(server, schemes[i].begin);
    server->server_tls = schemes[i].tls;
    server->sentinel_tls = schemes[i].tls && schemes[i].kind == SENTINEL;
    char *rest = server->text + strlen(schemes[i].begin);
    wrong = schemes[i].kind == PATH ? parse_unix(server, rest)
                                    : parse_redis(server, rest, schemes[i].kind);
    server->tls = server->server_tls || server->sentinel_tls;
    return wrong;
  }
  return "it does not begin with redis://, redis+sentinel://, redis+cluster:// (or the same with "
         "rediss, valkey or valkeys), or unix://";
}

/* The transport of a URL with TLS to Sentinels alone, or to the servers that they name alone */

/* That of the connection there is, or was last. */
static const struct port_transport *used(const struct port_posix_server *server)
{
  bool tls = server->to_server ? server->server_tls : server->sentinel_tls;
  return tls ? server->safe : &server->socket.transport;
}

static int split_connect(void *context, uint32_t timeout_ms)
{
  struct port_posix_server *server = context;
  if (!server->open) server->to_server = server->aimed;
  server->open = true; /* or about to be: until close() */
  return used(server)->connect(used(server)->context, timeout_ms);
}

static int split_send(void *context, const void *data, size_t size)
{
  const struct port_transport *transport = used(context);
  return transport->send(transport->context, data, size);
}

static int split_recv(void *context, void *data, size_t size, uint32_t timeout_ms)
{
  const struct port_transport *transport = used(context);
  return transport->recv(transport->context, data, size, timeout_ms);
}

static void split_close(void *context)
{
  struct port_posix_server *server = context;
  used(server)->close(used(server)->context);
  server->open = false;
}

/* Only a Sentinel names an address, and what it names is a server. */
static bool split_aim(void *context, const char *address)
{
  struct port_posix_server *server = context;
  bool done = server->safe->aim(server->safe->context, address);
  if (address == NULL || done) server->aimed = address != NULL;
  return done;
}

/* One of the two waits; both are the same below. */
static void split_wake(void *context)
{
  const struct port_posix_server *server = context;
  const struct port_transport *below = &server->socket.transport;
  below->wake(below->context);
}

void port_posix_use_tls(struct port_posix_server *server, struct port_transport *tls)
{
  server->transport = tls;
  if (server->service == NULL || server->sentinel_tls == server->server_tls) return;
  server->safe = tls;
  server->split.connect = split_connect;
  server->split.send = split_send;
  server->split.recv = split_recv;
  server->split.close = split_close;
  server->split.context = server;
  server->split.aim = tls->aim != NULL ? split_aim : NULL;
  server->split.wake = split_wake;
  server->transport = &server->split;
}

const char *port_posix_read_url(struct port_posix_server *server, const char *url)
{
  memset(server, 0, sizeof *server);
  const char *wrong = parse(server, url);
  if (wrong != NULL) memset(server, 0, sizeof *server);
  else if (!server->tls) server->transport = &server->socket.transport;
  return wrong;
}

const char *port_posix_url(struct port_posix_server *server, const char *url)
{
  const char *wrong = port_posix_read_url(server, url);
  if (wrong != NULL || !server->tls) return wrong;
  memset(server, 0, sizeof *server);
  return "it asks for TLS, which this program does not have";
}
