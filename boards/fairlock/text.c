/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names and ids may be any bytes, chosen by anybody. Printed as they are, they could send commands
 * to a terminal or break JSON. So only well-formed, printable UTF-8 is printed unchanged.
 */
#define _DEFAULT_SOURCE 1 /* what -std=c11 hides */

#include "text.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "command.h"

void *grown(void *memory, size_t size)
{
  void *more = realloc(memory, size);
  if (more != NULL) return more;
  complain("out of memory");
  exit(EXIT_SYSTEM);
}

void *with_room(void *array, size_t count, size_t *room, size_t size)
{
  if (count < *room) return array;
  *room = *room > 0 ? 2 * *room : 16;
  return grown(array, *room * size);
}

char *copied(const void *bytes, size_t size)
{
  char *copy = grown(NULL, size + 1);
  if (size > 0) memcpy(copy, bytes, size);
  copy[size] = 0;
  return copy;
}

/* Decodes the first character. Returns its size in bytes; 0: it is not well-formed UTF-8. */
static size_t decode(const unsigned char *bytes, size_t size, uint32_t *character)
{
  static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
  unsigned char first = bytes[0];
  size_t length = first < 0x80       ? 1
                  : first >> 5 == 6  ? 2
                  : first >> 4 == 14 ? 3
                  : first >> 3 == 30 ? 4
                                     : 0;
  if (length == 0 || length > size) return 0;
  uint32_t value = length == 1 ? first : first & (0x7fU >> length);
  for (size_t i = 1; i < length; i++) {
    if (bytes[i] >> 6 != 2) return 0;
    value = value << 6 | (bytes[i] & 0x3fU);
  }
  if (value < least[length] || value > 0x10ffff || (value >= 0xd800 && value <= 0xdfff)) return 0;
  *character = value;
  return length;
}

/*
 * Characters that cannot be seen, so that two names would look the same: control characters, line
 * separators, changes of direction, and all others with Default_Ignorable_Code_Point.
 */
static const struct {
  uint32_t first, last;
} unseen[] = {
    {0x0000, 0x001f}, {0x007f, 0x009f}, {0x00ad, 0x00ad},   {0x034f, 0x034f},   {0x061c, 0x061c},
    {0x115f, 0x1160}, {0x17b4, 0x17b5}, {0x180b, 0x180f},   {0x200b, 0x200f},   {0x2028, 0x202e},
    {0x2060, 0x206f}, {0x3164, 0x3164}, {0xfe00, 0xfe0f},   {0xfeff, 0xfeff},   {0xffa0, 0xffa0},
    {0xfff0, 0xfffb}, {0xfffe, 0xffff}, {0x1bca0, 0x1bca3}, {0x1d173, 0x1d17a}, {0xe0000, 0xe0fff},
};

static bool is_printable(uint32_t character)
{
  for (size_t i = 0; i < sizeof unseen / sizeof unseen[0]; i++)
    if (character >= unseen[i].first && character <= unseen[i].last) return false;
  return true;
}

char *printable(const void *bytes, size_t size)
{
  static const char digits[] = "0123456789abcdef";
  const unsigned char *from = bytes;
  char *text = grown(NULL, 4 * size + 1);
  char *to = text;
  while (size > 0) {
    uint32_t character = 0;
    size_t length = decode(from, size, &character);
    bool shown = length > 0 && is_printable(character);
    if (length == 0) length = 1;
    if (character == '\\') *to++ = '\\';
    for (size_t i = 0; i < length; i++) {
      if (!shown) {
        *to++ = '\\';
        *to++ = 'x';
        *to++ = digits[from[i] >> 4];
      }
      *to++ = shown ? (char)from[i] : digits[from[i] & 15];
    }
    from += length;
    size -= length;
  }
  *to = 0;
  return text;
}

/* An escape of JSON has 16 bits. A character with more bits becomes two surrogates. */
static void print_json_escape(FILE *to, uint32_t character)
{
  uint32_t beyond = character - 0x10000;
  if (character < 0x10000) fprintf(to, "\\u%04x", (unsigned)character);
  else
    fprintf(to, "\\u%04x\\u%04x", (unsigned)(0xd800 | beyond >> 10),
            (unsigned)(0xdc00 | (beyond & 0x3ff)));
}

/* Prints the contents of a JSON string. Returns false if some bytes had to be replaced. */
static bool print_json_text(FILE *to, const unsigned char *bytes, size_t size)
{
  bool whole = true;
  while (size > 0) {
    uint32_t character = 0;
    size_t length = decode(bytes, size, &character);
    if (length == 0) {
      fputs("\\ufffd", to);
      length = 1;
      whole = false;
    } else if (character == '"' || character == '\\') {
      fprintf(to, "\\%c", (int)character);
    } else if (!is_printable(character)) {
      print_json_escape(to, character);
    } else {
      fwrite(bytes, 1, length, to);
    }
    bytes += length;
    size -= length;
  }
  return whole;
}

void print_json_bytes(FILE *to, const char *key, const void *bytes, size_t size)
{
  const unsigned char *from = bytes;
  fprintf(to, "\"%s\":\"", key);
  bool whole = print_json_text(to, from, size);
  fputc('"', to);
  if (whole) return;
  fprintf(to, ",\"%s_hex\":\"", key);
  for (size_t i = 0; i < size; i++)
    fprintf(to, "%02x", from[i]);
  fputc('"', to);
}

/* "2 d 5 h", of a number of parts. */
static void two_units(char text[SPAN_SIZE], int64_t parts, int64_t of, const char *one,
                      const char *other)
{
  snprintf(text, SPAN_SIZE, "%" PRId64 "%s%" PRId64 "%s", parts / of, one, parts % of, other);
}

void span_text(char text[SPAN_SIZE], int64_t ms)
{
  int64_t s = ms / 1000;
  if (s < 10) two_units(text, ms / 100, 10, ".", " s");
  else if (s < 60) snprintf(text, SPAN_SIZE, "%" PRId64 " s", s);
  else if (s < 3600) two_units(text, s, 60, " min ", " s");
  else if (s < 86400) two_units(text, s / 60, 60, " h ", " min");
  else two_units(text, s / 3600, 24, " d ", " h");
}

void print_span(FILE *to, int64_t ms)
{
  char text[SPAN_SIZE];
  span_text(text, ms);
  fputs(text, to);
}

static bool shows_colours(FILE *to)
{
  const char *none = getenv("NO_COLOR");
  const char *kind = getenv("TERM");
  if (none != NULL && *none != 0) return false;
  return isatty(fileno(to)) && kind != NULL && *kind != 0 && strcmp(kind, "dumb") != 0;
}

const char *paint(FILE *to, enum paint how)
{
  static const char *const codes[] = {
      [PLAIN] = "\033[0m",     [STRONG] = "\033[1m", [GOOD] = "\033[32m",
      [DOUBTFUL] = "\033[33m", [BAD] = "\033[31m",
  };
  return shows_colours(to) ? codes[how] : "";
}

bool has_word(const char *list, const char *word, size_t size)
{
  while (*list != 0) {
    size_t length = strcspn(list, " ");
    if (length == size && memcmp(list, word, size) == 0) return true;
    list += length;
    list += strspn(list, " ");
  }
  return false;
}
