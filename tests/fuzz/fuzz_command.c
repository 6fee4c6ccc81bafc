/*
 * What the fairlock command reads and prints: URLs, numbers, options, and names that anybody may
 * have chosen.
 *
 * The first byte of an input says which. A URL is parsed as it is, or made of parts, encoded, which
 * parsing must return; its password must neither be shown nor left in the arguments. Numbers are
 * compared with a reference. What is printed of any bytes must be well-formed, and the bytes must
 * be readable from it.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "options.h"
#include "port_posix.h"
#include "text.h"
#include "url.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition, const char *what)
{
  if (condition) return;
  printf("violated: %s\n", what);
  (void)fflush(stdout);
  abort();
}

/* What the command would print to stderr goes nowhere. */
void complain(const char *format, ...)
{
  require(format[0] != 0, "a complaint says something");
}

int end_output(int status)
{
  return status;
}

/* A string of the bytes up to the first NUL, in memory of exactly its size. */
static char *string_of(const uint8_t *data, size_t size)
{
  size_t length = 0;
  while (length < size && data[length] != 0)
    length++;
  char *text = malloc(length + 1);
  require(text != NULL, "there is memory");
  if (length > 0) memcpy(text, data, length);
  text[length] = 0;
  return text;
}

/* URLs */

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
  require(memchr(server->shown, 0, sizeof server->shown) != NULL, "what is shown ends");
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
  (void)snprintf(text + used, sizeof text - used, "/%u", database);
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

/* Numbers */

/*
 * Milliseconds of digits with at most one point among them, and perhaps an s behind them, rounded
 * up; UINT64_MAX: not that, or too many.
 */
static uint64_t reference_ms(const char *text)
{
  size_t whole = strspn(text, "0123456789");
  size_t part = text[whole] == '.' ? strspn(text + whole + 1, "0123456789") : 0;
  const char *end = text + whole + (text[whole] == '.' ? 1 + part : 0);
  if (whole + part == 0 || (*end != 0 && strcmp(end, "s") != 0)) return UINT64_MAX;
  while (whole > 1 && *text == '0') {
    text++;
    whole--;
  }
  if (whole > 12) return UINT64_MAX;
  uint64_t ms = 1000 * strtoull(text, NULL, 10);
  for (size_t i = 0, unit = 100; i < 3 && i < part; i++, unit /= 10)
    ms += unit * (uint64_t)(text[whole + 1 + i] - '0');
  for (size_t i = 3; i < part; i++) {
    if (text[whole + 1 + i] != '0') return ms + 1;
  }
  return ms;
}

static void fuzz_numbers(const uint8_t *data, size_t size)
{
  const struct command_line line = {.command = "test", .usage = "fairlock test"};
  uint32_t ms = 7;
  int status = -7;
  char *text = string_of(data, size);
  uint64_t expected = reference_ms(text);
  bool good = parse_seconds(&line, "-w", text, 100, 0x3fffffff, &ms);
  require(good == (expected >= 100 && expected <= 0x3fffffff),
          "seconds are taken only in their range");
  require(ms == (good ? expected : 7), "seconds are what they were");
  good = parse_exit_status(&line, "-E", text, &status);
  require(!good || (status >= 0 && status <= 255 && strtol(text, NULL, 10) == status),
          "a status is what it was");
  require(good || status == -7, "nothing comes of what is refused");
  (void)good_name(&line, text);
  free(text);
}

/* Options: the words are separated by line ends. */
static void fuzz_options(const uint8_t *data, size_t size)
{
  enum { WORDS = 16 };
  static const struct option options[] = {COMMON_OPTIONS,
                                          {"wait", required_argument, NULL, OPTION_OWN},
                                          {"json", no_argument, NULL, OPTION_OWN + 1},
                                          {NULL, 0, NULL, 0}};
  static const char *const help[] = {"help", NULL};
  struct command_line line = {.command = "test", .usage = "fairlock test"};
  char program[] = "test";
  char *words[WORDS + 2] = {program};
  int count = 1;
  bool helps = false;
  for (size_t start = 0; start < size && count <= WORDS; count++) {
    const uint8_t *end = memchr(data + start, '\n', size - start);
    size_t length = end != NULL ? (size_t)(end - data) - start : size - start;
    words[count] = string_of(data + start, length);
    helps = helps || strncmp(words[count], "--h", 3) == 0; /* which ends the program */
    start += length + 1;
  }
  words[count] = NULL;
  optind = 0; /* start over */
  for (int turn = 0; !helps; turn++) {
    int option = next_option(&line, count, words, "+:w:n", options, help);
    require(turn <= 4096, "options end");
    if (option == -1 || option == '?') break;
    require(option == 'w' || option == 'n' || option >= OPTION_OWN, "an option is one of ours");
  }
  require(helps || (optind >= 1 && optind <= count), "the operands are among the words");
  free(line.url);
  for (int i = 1; i < count; i++)
    free(words[i]);
}

/* Printing */

/* The bytes that a printed text stands for. */
static size_t read_printed(const char *text, uint8_t *to)
{
  size_t size = 0;
  for (; *text != 0; text++) {
    unsigned value = (unsigned char)*text;
    require(value >= ' ' && value != 0x7f, "what is printed has no controls");
    if (value == '\\' && text[1] == 'x') {
      char digits[3] = {text[2], text[2] != 0 ? text[3] : 0, 0};
      require(strspn(digits, "0123456789abcdef") == 2, "a byte is two digits");
      value = (unsigned)strtoul(digits, NULL, 16);
      text += 3;
    } else if (value == '\\') {
      require(*++text == '\\', "a backslash is two");
    }
    to[size++] = (uint8_t)value;
  }
  return size;
}

static void fuzz_printing(const uint8_t *data, size_t size)
{
  char *text = printable(data, size);
  uint8_t *again = malloc(4 * size + 1);
  require(text != NULL && again != NULL, "there is memory");
  require(read_printed(text, again) == size && (size == 0 || memcmp(data, again, size) == 0),
          "the bytes can be read");
  free(again);
  free(text);

  char *json = NULL;
  size_t length = 0;
  FILE *stream = open_memstream(&json, &length);
  require(stream != NULL, "there is memory");
  print_json_bytes(stream, "name", data, size);
  (void)fclose(stream);
  bool quoted = false;
  for (size_t i = 0; i < length; i++) {
    require((unsigned char)json[i] >= ' ', "JSON has no controls");
    if (json[i] == '\\' && quoted) i++;
    else if (json[i] == '"') quoted = !quoted;
  }
  require(!quoted, "JSON's strings end");
  free(json);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
  static void (*const targets[])(const uint8_t *data, size_t size) = {
      fuzz_url, fuzz_parts, fuzz_numbers, fuzz_options, fuzz_printing};
  static FILE *nowhere;
  if (nowhere == NULL) nowhere = fopen("/dev/null", "w");
  if (size == 0 || nowhere == NULL) return 0;
  FILE *errors = stderr;
  stderr = nowhere;
  targets[data[0] % 5](data + 1, size - 1);
  stderr = errors;
  return 0;
}
