/* SPDX-License-Identifier: Apache-2.0 */
#include "dialect.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifndef REDIS_SERVER
#define REDIS_SERVER "build/redis-server"
#endif

/* Of the server under test: 602 is Redis 6.2. */
static int version(void)
{
  static int known;
  char text[256] = "";
  if (known != 0) return known;
  FILE *output = popen(REDIS_SERVER " --version", "r");
  if (output == NULL) abort();
  if (fgets(text, sizeof text, output) == NULL) text[0] = 0;
  (void)pclose(output);
  const char *at = strstr(text, " v=");
  char *end = text;
  if (at != NULL) known = (int)strtol(at + 3, &end, 10) * 100;
  if (*end != '.') {
    fprintf(stderr, "# %s does not tell its version: %s\n", REDIS_SERVER, text);
    abort();
  }
  known += (int)strtol(end + 1, NULL, 10);
  return known;
}

bool dialect_is_old(void)
{
  return version() < 700;
}

bool dialect_is_brief(void)
{
  return version() >= 702;
}

static bool begins(const char *text, size_t size, const char *words)
{
  size_t length = strlen(words);
  return size >= length && memcmp(text, words, length) == 0;
}

void dialect_error_code(const char **text, size_t *size)
{
  static const char stopped[] = "ERR Error running script (call to f_";
  static const char place[] = "@user_script:"; /* and the line, with or without a space between */
  const char *from = *text;
  const char *end = *text + *size;
  if (begins(from, *size, stopped)) {
    from += sizeof stopped - 1 + 40 + 3; /* SHA-1, "): " */
    while (from < end && begins(from, (size_t)(end - from), place)) {
      from += sizeof place - 1;
      while (from < end && (*from == ' ' || *from == ':' || isdigit((unsigned char)*from)))
        from++;
    }
    if (from < end && *from == '-') from++;
  }
  const char *to = from;
  while (to < end && isupper((unsigned char)*to))
    to++;
  bool code = to > from + 1 && (to == end || *to == ' '); /* not "Unknown command ..." */
  if (!code) {                                            /* ERR, as later servers say it */
    from = *text;
    to = memchr(from, ' ', *size);
    if (to == NULL) to = end;
  }
  *text = from;
  *size = (size_t)(to - from);
}

bool dialect_denies(const char *text)
{
  return strncmp(text, "NOPERM ", 7) == 0 ||                         /* a command, everywhere */
         strncmp(text, "The user executing the script ", 30) == 0 || /* in a script: Redis 6.2, */
         strncmp(text, "ERR The user executing the script ", 34) == 0 || /* 7.0, */
         strncmp(text, "ERR ACL failure in script: ", 27) == 0; /* from 7.2 on, and Valkey */
}

bool dialect_is_command(const char *object, const char *command)
{
  size_t size = dialect_is_old() ? strcspn(command, "|") : strlen(command);
  return strlen(object) == size && memcmp(object, command, size) == 0;
}
