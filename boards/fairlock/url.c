/*
 * Parses URLs. What is not exactly right is refused with a reason, with one exception: a password
 * may have an unescaped '@' in it, because the last '@' before the path ends it.
 */
#define _DEFAULT_SOURCE 1 /* what -std=c11 hides */

#include "url.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define UNIX "unix://"

/* The longest name of a host. */
#define MOST_HOST 255

enum kind { SERVER, SENTINEL, CLUSTER };

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
};

static bool begins(const char *text, const char *with)
{
  return strncmp(text, with, strlen(with)) == 0;
}

/*
 * The end of "user:password@host:port"; and the end of "user:password" in it, NULL if it has none.
 */
static char *end_of_authority(char *authority)
{
  return authority + strcspn(authority, "/?#");
}

static char *end_of_user(char *authority)
{
  char *at = NULL;
  for (char *c = authority; c < end_of_authority(authority); c++) {
    if (*c == '@') at = c;
  }
  return at;
}

void url_hide_password(char *text)
{
  char *authority = strstr(text, "://");
  if (authority == NULL) return;
  authority += 3;
  /* a password with an unescaped slash makes the URL wrong, but must not be shown either */
  char *at = strrchr(authority, '@');
  char *password = at != NULL ? memchr(authority, ':', (size_t)(at - authority)) : NULL;
  if (password != NULL) memset(password + 1, '*', (size_t)(at - password - 1));
}

/* Where "user:password@..." begins. */
static char *authority_of(char *text)
{
  char *mark = strstr(text, "://");
  return mark != NULL ? mark + 3 : text;
}

void url_drop_password(char *text)
{
  struct url url;
  char *authority = authority_of(text);
  /* in a URL that is wrong, any '@' may be the end of a password, so take the last */
  char *at = url_parse(&url, text) == NULL ? end_of_user(authority) : strrchr(authority, '@');
  char *colon = at != NULL ? memchr(authority, ':', (size_t)(at - authority)) : NULL;
  if (colon == NULL) return;
  /* if there is no user, the '@' goes, too */
  char *rest = colon > authority ? at : at + 1;
  memmove(colon, rest, strlen(rest) + 1);
}

static int hexadecimal(char c)
{
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

/* Decodes %41 and the like in place. */
static bool decode(char *text)
{
  char *to = text;
  for (; *text != 0; text++) {
    char c = *text;
    if (c == '%') {
      int high = hexadecimal(text[1]);
      int low = high < 0 ? -1 : hexadecimal(text[2]);
      if (low < 0 || (high | low) == 0) return false;
      c = (char)(high << 4 | low);
      text += 2;
    }
    *to++ = c;
  }
  *to = 0;
  return true;
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

/*
 * Parses "user:password", 0-terminated. "user" alone means that the password comes from elsewhere.
 */
static const char *parse_user(struct url *url, char *text)
{
  char *colon = strchr(text, ':');
  if (colon != NULL) {
    *colon = 0;
    if (!decode(colon + 1))
      return "its password has a '%' without two hexadecimal digits other than 00 after it";
    if (colon[1] != 0) url->password = colon + 1;
  }
  if (!decode(text))
    return "its user has a '%' without two hexadecimal digits other than 00 after it";
  if (*text != 0) url->user = text;
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
  return *place->host == 0 ? "it names no host" : NULL;
}

static const char *parse_host(struct url *url, char *text)
{
  struct place place = {.port = "6379"};
  if (strchr(text, ',') != NULL)
    return "several hosts need redis+sentinel:// or redis+cluster://, or a ',' written %2C";
  const char *wrong = parse_place(&place, text);
  if (wrong != NULL) return wrong;
  url->host = place.host;
  url->port = place.port;
  const char *brackets = strchr(url->host, ':') != NULL ? "[]" : "";
  size_t used = strlen(url->shown);
  snprintf(url->shown + used, sizeof url->shown - used, "%.1s%s%s:%s", brackets, url->host,
           brackets + (*brackets != 0), url->port);
  return NULL;
}

/* Parses "host:port,host:port", 0-terminated. */
static const char *parse_seeds(struct url *url, char *text, const char *port)
{
  size_t used = 0;
  for (char *next = text; next != NULL; text = next) {
    struct place place = {.port = port};
    next = strchr(text, ',');
    if (next != NULL) *next++ = 0;
    const char *wrong = parse_place(&place, text);
    if (wrong != NULL) return wrong;
    if (strlen(place.host) > MOST_HOST) return "one of its hosts has more than 255 characters";
    if (place.host[strcspn(place.host, place.bracketed ? ",[]" : ",:[]")] != 0)
      return "one of its hosts has a ',', ':' or bracket, which no host can have";
    used += (size_t)snprintf(url->places + used, sizeof url->places - used, "%s%s%s%s:%s",
                             used > 0 ? "," : "", place.bracketed ? "[" : "", place.host,
                             place.bracketed ? "]" : "", place.port);
    if (used >= sizeof url->places) return "it is too long";
  }
  url->seeds = url->places;
  used = strlen(url->shown);
  snprintf(url->shown + used, sizeof url->shown - used, "%s", url->seeds);
  return NULL;
}

/* Parses "service/db": takes the service, and makes *path point to "db". */
static const char *parse_service(struct url *url, char **path)
{
  char *service = *path;
  char *end = strchr(service, '/');
  *path = end != NULL ? end + 1 : service + strlen(service);
  if (end != NULL) *end = 0;
  if (!decode(service))
    return "its service has a '%' without two hexadecimal digits other than 00 after it";
  if (*service == 0) return "it names no service: redis+sentinel://host:26379/service";
  url->service = service;
  return NULL;
}

static const char *parse_redis(struct url *url, char *authority, enum kind kind)
{
  const char *wrong = NULL;
  char *at = end_of_user(authority);
  char *end = end_of_authority(authority);
  if (end[strcspn(end, "?#")] != 0)
    return "it has a '?' or '#', which mean nothing here; in a password, write %3F or %23";
  char *path = *end == '/' ? end + 1 : end;
  *end = 0;
  if (strchr(path, '@') != NULL) return "a '/' in a password has to be written %2F";
  if (kind == SENTINEL) wrong = parse_service(url, &path);
  if (wrong != NULL) return wrong;
  if (*path != 0 && !number(path, INT32_MAX, &url->database))
    return "its database, after the '/', is not a number";
  if (at != NULL) {
    *at = 0;
    wrong = parse_user(url, authority);
    if (wrong != NULL) return wrong;
    authority = at + 1;
  }
  if (kind == SERVER) return parse_host(url, authority);
  wrong = parse_seeds(url, authority, kind == SENTINEL ? "26379" : "6379");
  if (wrong != NULL || kind != SENTINEL) return wrong;
  size_t used = strlen(url->shown);
  snprintf(url->shown + used, sizeof url->shown - used, "/%s", url->service);
  return NULL;
}

static const char *parse_unix(struct url *url, char *authority)
{
  char *at = end_of_user(authority);
  if (at != NULL) {
    *at = 0;
    const char *wrong = parse_user(url, authority);
    if (wrong != NULL) return wrong;
    authority = at + 1;
  }
  char *end = authority + strcspn(authority, "?#");
  if (*end != 0) {
    if (!begins(end, "?db=") || !number(end + 4, INT32_MAX, &url->database)) {
      return "only ?db=NUMBER may follow its path; in the path, write %3F for '?' and %23 for '#'";
    }
    *end = 0;
  }
  if (*authority != '/' || authority[1] == 0)
    return "it names no absolute path: unix:///run/redis/redis.sock";
  if (!decode(authority))
    return "its path has a '%' without two hexadecimal digits other than 00 after it";
  url->path = authority;
  snprintf(url->shown, sizeof url->shown, UNIX "%s", authority);
  return NULL;
}

/* The size of the password in bytes, as it is written in text. */
static size_t password_size(char *text)
{
  char *authority = authority_of(text);
  char *at = end_of_user(authority);
  char *colon = at != NULL ? memchr(authority, ':', (size_t)(at - authority)) : NULL;
  return colon != NULL ? (size_t)(at - colon - 1) : 0;
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

const char *url_parse(struct url *url, const char *text)
{
  memset(url, 0, sizeof *url);
  size_t size = strlen(text);
  const char *wrong = find_invisible(text);
  if (wrong != NULL) return wrong;
  if (size >= sizeof url->storage) return "it is too long";
  memcpy(url->storage, text, size + 1);
  if (size - password_size(url->storage) >= URL_SIZE) return "it is too long";
  for (size_t i = 0; i < sizeof schemes / sizeof schemes[0]; i++) {
    size_t length = strlen(schemes[i].begin);
    if (!begins(text, schemes[i].begin)) continue;
    memcpy(url->shown, text, length);
    url->tls = schemes[i].tls;
    return parse_redis(url, url->storage + length, schemes[i].kind);
  }
  if (begins(text, UNIX)) return parse_unix(url, url->storage + strlen(UNIX));
  return "it does not begin with redis://, redis+sentinel://, redis+cluster:// (or the same with "
         "rediss, valkey or valkeys), or unix://";
}
