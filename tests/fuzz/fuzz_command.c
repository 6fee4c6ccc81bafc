/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the fairlock command reads and prints: numbers, options, and names that anybody may have chosen.
 *
 * The first byte of an input says which. Numbers are compared with a reference. What is printed of any
 * bytes must be well-formed, and the bytes must be readable from it.
 */
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
