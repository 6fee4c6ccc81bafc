/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the fairlock command reads and prints: numbers, options, and names that anybody may have chosen.
 *
 * The first byte of an input says which. Numbers are compared with a reference. What is printed of any
 * bytes must be well-formed, and the bytes must be readable from it.
 */
#include <getopt.h>

#include "command.h"
#include "options.h"
#include "text.h"
#include "words.h"

/* What the command would print to stderr goes nowhere. */
void complain(const char *format, ...)
{
  require(format[0] != 0, "a complaint says something");
}

int end_output(int status)
{
  return status;
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
  uint32_t status = 777;
  char *text = string_of(data, size);
  uint64_t expected = reference_ms(text);
  bool good = parse_seconds(&line, "-w", text, 100, 0x3fffffff, &ms);
  require(good == (expected >= 100 && expected <= 0x3fffffff),
          "seconds are taken only in their range");
  require(ms == (good ? expected : 7), "seconds are what they were");
  good = parse_count(&line, "-E", "an exit status", text, 0, 255, &status);
  require(!good || (status <= 255 && strtoul(text, NULL, 10) == status), "a status is what it was");
  require(good || status == 777, "nothing comes of what is refused");
  (void)good_name(&line, text);
  free(text);
}

/* Options: the words are separated by line ends. */
static void fuzz_options(const uint8_t *data, size_t size)
{
  enum { WORDS = 16 };
  struct {
    uint32_t wait_ms;
    bool json;
    int choice;
  } target = {.wait_ms = 7, .choice = -7};
  static const struct choice choices[] = {{"term", 1}, {"ignore", 2}, {NULL, 0}};
  const struct option_row options[] = {
      {"wait", 'w', OPTION_SECONDS, (size_t)((char *)&target.wait_ms - (char *)&target), "SECONDS",
       .least = 100, .most = 1000},
      {"json", 'n', OPTION_FLAG, (size_t)((char *)&target.json - (char *)&target), NULL,
       .help = "JSON"},
      {"on", 0, OPTION_CHOICE, (size_t)((char *)&target.choice - (char *)&target), "ACTION",
       .choices = choices},
      {0}};
  struct command_line line = {
      .command = "test", .usage = "fairlock test", .options = options, .name_ends = true};
  char program[] = "test";
  char *words[WORDS + 2] = {program};
  int count = 1;
  bool helps = false;
  for (size_t start = 0; start < size && count <= WORDS; count++) {
    const uint8_t *end = memchr(data + start, '\n', size - start);
    size_t length = end != NULL ? (size_t)(end - data) - start : size - start;
    words[count] = string_of(data + start, length);
    /* which ends the program */
    helps = helps || (words[count][0] == '-' && strchr(words[count], 'h') != NULL);
    start += length + 1;
  }
  words[count] = NULL;
  optind = 0; /* start over */
  int status = helps ? EXIT_USAGE : parse_options(&line, &target, count, words);
  require(target.wait_ms == 7 || (target.wait_ms >= 100 && target.wait_ms <= 1000),
          "seconds are in their range");
  require(target.choice == -7 || target.choice == 1 || target.choice == 2, "a choice is one");
  require(status == EXIT_USAGE || (line.count >= 0 && line.count < count &&
                                   line.arguments + line.count == words + count),
          "the operands are the last words");
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
  static void (*const targets[])(const uint8_t *data, size_t size) = {fuzz_numbers, fuzz_options,
                                                                      fuzz_printing};
  static FILE *nowhere;
  if (nowhere == NULL) nowhere = fopen("/dev/null", "w");
  if (size == 0 || nowhere == NULL) return 0;
  FILE *errors = stderr;
  stderr = nowhere;
  targets[data[0] % 3](data + 1, size - 1);
  stderr = errors;
  return 0;
}
