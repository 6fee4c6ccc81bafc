/* SPDX-License-Identifier: Apache-2.0 */
/*
 * URLs of servers. They are read as they are, or made of parts, encoded, which reading must return. What
 * the command does with a URL is here, too: its password must neither be shown nor left.
 */
#include "port_posix.h"
#include "url.h"
#include "words.h"

static bool inside(const struct port_posix_server *server, const char *text)
{
  return text >= server->text && text < server->text + sizeof server->text &&
         memchr(text, 0, (size_t)(server->text + sizeof server->text - text)) != NULL;
}

static void check_port(const char *port, size_t size)
{
  require(size > 0 && strspn(port, "0123456789") >= size, "the port is digits");
  long value = strtol(port, NULL, 10);
  require(value >= 1 && value <= 65535, "the port is a port");
}

/* "host:port,[host]:port": what stands between commas is one place, not too long. */
static void check_seeds(const struct port_posix_server *server)
{
  require(server->socket.seeds == server->seeds &&
              memchr(server->seeds, 0, sizeof server->seeds) != NULL,
          "the seeds are a string of the server's");
  for (const char *seed = server->seeds; seed != NULL;) {
    bool bracketed = *seed == '[';
    seed += bracketed;
    size_t size = strcspn(seed, bracketed ? ",[]" : ",:[]");
    require(size > 0 && size <= 255, "a seed has a host");
    seed += size;
    require(!bracketed || *seed++ == ']', "a bracket is closed");
    require(*seed++ == ':', "a port follows");
    size = strcspn(seed, ",");
    check_port(seed, size);
    seed = seed[size] != 0 ? seed + size + 1 : NULL;
  }
  require(server->cluster == (server->service == NULL), "they are Sentinels, or nodes");
  require(server->service == NULL || (inside(server, server->service) && server->service[0] != 0),
          "the service is a string of the server's");
}

static void check_server(const struct port_posix_server *server)
{
  const struct port_posix *socket = &server->socket;
  require(server->moves == (socket->seeds != NULL), "what moves has seeds");
  require((socket->host != NULL) != server->moves, "it names a host or a path, or seeds");
  require(server->user == NULL || (inside(server, server->user) && server->user[0] != 0),
          "the user is a string of the server's");
  require(server->password == NULL ||
              (server->password == server->secret && server->secret[0] != 0 &&
               memchr(server->secret, 0, sizeof server->secret) != NULL),
          "so is the password");
  require(server->database <= INT32_MAX, "the database is a number");
  require(server->tls == (server->sentinel_tls || server->server_tls), "TLS is to somebody");
  require(!server->sentinel_tls || server->service != NULL, "Sentinels have a service");
  require(memchr(server->shown, 0, sizeof server->shown) != NULL, "what is shown ends");
  for (const char *c = server->shown; *c != 0; c++)
    require((unsigned char)*c >= ' ' && *c != 0x7f, "and steers no terminal");
  if (server->moves) {
    check_seeds(server);
  } else if (socket->service == NULL) {
    require(inside(server, socket->host) && socket->host[0] == '/' && socket->host[1] != 0,
            "the path is absolute");
  } else {
    require(inside(server, socket->host) && socket->host[0] != 0,
            "the host is a string of the server's");
    check_port(socket->service, strlen(socket->service));
  }
}

/* What is left of a URL names the same servers and user, without a password. */
static void check_dropped(const struct port_posix_server *server, char *text)
{
  static struct port_posix_server again;
  url_drop_password(text);
  require(port_posix_read_url(&again, text) == NULL && again.password == NULL,
          "a URL without its password is one");
  require(strcmp(server->shown, again.shown) == 0 && server->database == again.database &&
              strcmp(server->user != NULL ? server->user : "",
                     again.user != NULL ? again.user : "") == 0,
          "and means the same");
}

/* Takes any text apart; and hides its password, which then is nowhere in what was parsed before. */
static void fuzz_url(const uint8_t *data, size_t size)
{
  static struct port_posix_server server;
  static struct port_posix_server again;
  char *text = string_of(data, size);
  size_t length = strlen(text);
  const char *wrong = port_posix_read_url(&server, text);
  require(wrong == NULL || wrong[0] != 0, "a refusal says why");
  if (wrong == NULL) check_server(&server);
  char *copy = string_of(data, size);
  if (wrong == NULL) check_dropped(&server, copy);
  free(copy);
  /* else more may be hidden than the password */
  bool one = strchr(text, '@') == strrchr(text, '@');
  url_hide_password(text);
  require(strlen(text) == length, "hiding keeps the length");
  if (wrong == NULL && port_posix_read_url(&again, text) == NULL && again.password != NULL) {
    require(strspn(again.password, "*") == strlen(again.password),
            "a hidden password is asterisks");
    require(!one || strcmp(server.shown, again.shown) == 0,
            "and what is shown does not depend on it");
  }
  free(text);
}

/*
 * Writes text, each byte of it that is not a letter or digit as %41; or, now and then, one that is.
 */
static size_t encode(char *to, const char *text, unsigned salt)
{
  static const char digits[] = "0123456789ABCDEF";
  size_t size = 0;
  for (; *text != 0; text++, salt = salt * 5 + 1) {
    unsigned char c = (unsigned char)*text;
    bool plain = (c >= '0' && c <= '9') || ((c | 32) >= 'a' && (c | 32) <= 'z');
    if (plain && salt % 8 != 0) {
      to[size++] = *text;
      continue;
    }
    to[size++] = '%';
    to[size++] = digits[c >> 4];
    to[size++] = digits[c & 15];
  }
  to[size] = 0;
  return size;
}

/* Makes a URL of Sentinels or nodes: the host three times, the service, a port and a database. */
static void fuzz_seeds(const char *host, const char *service, unsigned port, unsigned database)
{
  static struct port_posix_server server;
  char text[2048];
  char expected[1024];
  bool sentinels = database % 2 == 0;
  size_t used = (size_t)snprintf(text, sizeof text, "%s+%s://u:p@", port % 2 ? "redis" : "valkey",
                                 sentinels ? "sentinel" : "cluster");
  used += encode(text + used, host, 1);
  used += (size_t)snprintf(text + used, sizeof text - used, ":%u,[", port);
  used += encode(text + used, host, 2);
  used += (size_t)snprintf(text + used, sizeof text - used, "],");
  used += encode(text + used, host, 3);
  if (sentinels) text[used++] = '/';
  if (sentinels) used += encode(text + used, service, 4);
  (void)snprintf(text + used, sizeof text - used, "/%u%s", database,
                 !sentinels     ? ""
                 : port % 3 > 0 ? "?sentinel_tls=true"
                                : "?sentinel_tls=false");
  const char *wrong = port_posix_read_url(&server, text);
  bool good = port > 0 && host[0] != 0 && strpbrk(host, ",:[]") == NULL;
  if (sentinels && service[0] == 0) good = false;
  require((wrong == NULL) == good, "seeds are refused only if a part is missing or cannot be one");
  if (wrong != NULL) return;
  check_server(&server);
  (void)snprintf(expected, sizeof expected, "%s:%u,[%s]:%s,%s:%s", host, port, host,
                 sentinels ? "26379" : "6379", host, sentinels ? "26379" : "6379");
  require(strcmp(server.seeds, expected) == 0, "the seeds come out again");
  require((server.service != NULL) == sentinels, "only Sentinels have a service");
  require(!sentinels || strcmp(server.service, service) == 0, "so does the service");
  require(server.database == database, "and the database");
  require(server.sentinel_tls == (sentinels && port % 3 > 0) && !server.server_tls,
          "and who has TLS");
  require(strcmp(server.user, "u") == 0 && strcmp(server.password, "p") == 0, "and who we are");
}

/* Makes a URL of three strings, a port and a database, and requires that they come out again. */
static void fuzz_parts(const uint8_t *data, size_t size)
{
  static struct port_posix_server server;
  char text[1024];
  char *parts[3];
  if (size < 6) return;
  unsigned salt = data[0];
  unsigned port = (unsigned)(data[1] << 8 | data[2]);
  unsigned database = data[3];
  bool with_port = port > 0 && data[4] & 1;
  data += 5;
  size -= 5;
  size_t used = 0;
  for (int i = 0; i < 3; i++) {
    size_t part = size / 3 < 60 ? size / 3 : 60;
    parts[i] = string_of(data + (size_t)i * part, part);
  }
  used += (size_t)snprintf(text, sizeof text, "redis://");
  used += encode(text + used, parts[0], salt);
  text[used++] = ':';
  used += encode(text + used, parts[1], salt / 2);
  text[used++] = '@';
  used += encode(text + used, parts[2], salt / 4);
  if (with_port) used += (size_t)snprintf(text + used, sizeof text - used, ":%u", port);
  (void)snprintf(text + used, sizeof text - used, "/%u", database);
  const char *wrong = port_posix_read_url(&server, text);
  require((wrong == NULL) == (parts[2][0] != 0), "a URL is refused only if it names no host");
  if (wrong == NULL) {
    check_server(&server);
    require(strcmp(server.socket.host, parts[2]) == 0, "the host comes out again");
    require(strcmp(server.user != NULL ? server.user : "", parts[0]) == 0, "so does the user");
    require(strcmp(server.password != NULL ? server.password : "", parts[1]) == 0,
            "so does the password");
    require(server.database == database, "so does the database");
    require(strtoul(server.socket.service, NULL, 10) == (with_port ? port : 6379),
            "so does the port");
  }
  fuzz_seeds(parts[2], parts[1], port, database);
  for (int i = 0; i < 3; i++)
    free(parts[i]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
  if (size == 0) return 0;
  if (data[0] % 2 == 0) fuzz_url(data + 1, size - 1);
  else fuzz_parts(data + 1, size - 1);
  return 0;
}
