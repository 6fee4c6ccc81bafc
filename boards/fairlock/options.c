/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parses options. Anything that is not exactly a number is refused, because a misread lease is
 * worse than an error. A password in --url is overwritten in the arguments as soon as it was
 * copied, so that the process list does not show it for long.
 */
#define _DEFAULT_SOURCE 1 /* what -std=c11 hides */

#include "options.h"

#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "command.h"
#include "fairlock.h"
#include "text.h"
#include "url.h"

#define MOST_ROWS   48
#define HELP_INDENT 23
#define LONG_ONLY   256 /* the value of an option without a letter: this, and its index */

#define OF(member) offsetof(struct command_line, member)

/* The options of all subcommands. */
static const struct option_row common[] = {
    {"url", 0, OPTION_URL, OF(url), "URL",
     .help = "the server: redis://[user:password@]host[:port][/db],\n"
             "redis+sentinel://[user:password@]host[:port],.../service[/db],\n"
             "redis+cluster://[user:password@]host[:port],..., or\n"
             "unix:///path. Default: $FAIRLOCK_URL, redis://127.0.0.1:6379.\n"
             "TLS: rediss instead of redis; ?sentinel_tls=false at the end:\n"
             "not to Sentinels; ?sentinel_tls=true: to Sentinels"},
    {"password-file", 0, OPTION_TEXT, OF(password_file), "FILE",
     .help = "read the password from the first line of FILE, at each connection.\n"
             "Default: the URL's, $FAIRLOCK_PASSWORD"},
    {"sentinel-user", 0, OPTION_TEXT, OF(sentinel_user), "USER",
     .help = "the user for the Sentinels. Default: $FAIRLOCK_SENTINEL_USER"},
    {"sentinel-password-file", 0, OPTION_TEXT, OF(sentinel_password_file), "FILE",
     .help = "their password. Default: $FAIRLOCK_SENTINEL_PASSWORD"},
    {"cacert", 0, OPTION_TEXT, OF(tls.ca_file), "FILE",
     .help = "TLS: trust these CAs. Default: $FAIRLOCK_CACERT, the system's"},
    {"cacertdir", 0, OPTION_TEXT, OF(tls.ca_folder), "DIR",
     .help = "TLS: trust the CAs in DIR. Default: $FAIRLOCK_CACERTDIR"},
    {"cert", 0, OPTION_TEXT, OF(tls.certificate), "FILE",
     .help = "TLS: our certificate. Default: $FAIRLOCK_CERT, none"},
    {"key", 0, OPTION_TEXT, OF(tls.key), "FILE",
     .help = "TLS: its key. Default: $FAIRLOCK_KEY, in the same file"},
    {"sni", 0, OPTION_TEXT, OF(tls.name), "NAME",
     .help = "TLS: the server's name. Default: $FAIRLOCK_SNI, the host's"},
    {"insecure", 0, OPTION_FLAG, OF(tls.insecure), NULL,
     .help = "TLS: do not check the server's certificate"},
    {"help", 'h', OPTION_HELP, 0, NULL, .help = "print this"},
    {0},
};

/* All rows of a subcommand, its own first. */
struct rows {
  const struct option_row *row[MOST_ROWS];
  size_t count;
};

static void add_rows(struct rows *rows, const struct option_row *table, unsigned kind)
{
  for (; table->name != NULL && rows->count < MOST_ROWS; table++)
    if (table->only == 0 || (table->only & kind) != 0) rows->row[rows->count++] = table;
}

/* The index of the first row with this letter. */
static size_t index_of(const struct rows *rows, int letter)
{
  size_t i = 0;
  while (i + 1 < rows->count && rows->row[i]->letter != letter)
    i++;
  return i;
}

static bool takes_value(const struct option_row *row)
{
  return row->kind != OPTION_FLAG && row->kind != OPTION_HELP;
}

/* The help */

static void print_row(const struct option_row *row, bool with_letter)
{
  char names[64];
  const char letter[] = {'-', (char)row->letter, ',', ' ', 0};
  bool spaced = row->value != NULL && row->kind != OPTION_MAYBE;
  int size = snprintf(names, sizeof names, "  %s--%s%s%s", with_letter ? letter : "", row->name,
                      spaced ? " " : "", row->value != NULL ? row->value : "");
  fputs(names, stdout);
  if (size < HELP_INDENT) printf("%*s", HELP_INDENT - size, "");
  else printf("\n%*s", HELP_INDENT, "");
  for (const char *at = row->help; *at != 0; at++) {
    putchar(*at);
    if (*at == '\n') printf("%*s", HELP_INDENT, "");
  }
  putchar('\n');
}

static void print_help(const struct command_line *line, const struct rows *rows)
{
  printf("usage: %s\n%s\n", line->usage, line->about);
  for (size_t i = 0; i < rows->count; i++) {
    const struct option_row *row = rows->row[i];
    bool with_letter = row->letter != 0 && index_of(rows, row->letter) == i;
    if (row->help != NULL) print_row(row, with_letter);
  }
  printf(
      "\n%s\n%s", line->statuses,
      "64 usage, 66 no password file, 71 no output, 75 server unreachable or unable to serve, 76\n"
      "protocol error, 77 denied, 78 a replica, or the wrong node of a cluster.\n");
  exit(end_output(EXIT_DONE));
}

/* Values */

static char *take_url(char *argument)
{
  char *copy = copied(argument, strlen(argument));
  url_hide_password(argument);
  return copy;
}

/* Parses a decimal number, perhaps with an s, to thousandths; UINT64_MAX: it is too large. */
static bool parse_thousandths(const char *text, uint64_t *value)
{
  uint64_t sum = 0;
  uint64_t unit = 1000; /* after the point: the value of a 1 in the next place */
  bool point = false;
  bool digits = false;
  bool more = false;
  for (; *text != 0; text++) {
    if (*text == '.' && !point) {
      point = true;
    } else if (*text == 's' && digits && text[1] == 0) {
      break;
    } else if (*text < '0' || *text > '9') {
      return false;
    } else {
      uint64_t digit = (uint64_t)(*text - '0');
      digits = true;
      if (!point) {
        if (sum > UINT64_MAX / 20) sum = UINT64_MAX / 20;
        sum = 10 * sum + 1000 * digit;
      } else {
        unit /= 10;
        if (unit == 0 && digit > 0) more = true;
        sum += unit * digit;
      }
    }
  }
  *value = sum + more;
  return digits;
}

bool parse_seconds(const struct command_line *line, const char *option, const char *text,
                   uint32_t least, uint32_t most, uint32_t *ms)
{
  uint64_t value = 0;
  if (!parse_thousandths(text, &value)) {
    misused(line, "%s needs a number of seconds, such as 10, 0.5 or 10s, not '%s'", option, text);
    return false;
  }
  if (value < least || value > most) {
    misused(line, "%s needs %g to %lu seconds, not '%s'", option, least / 1000.0,
            (unsigned long)(most / 1000), text);
    return false;
  }
  *ms = (uint32_t)value;
  return true;
}

bool parse_count(const struct command_line *line, const char *source, const char *what,
                 const char *text, uint32_t least, uint32_t most, uint32_t *count)
{
  size_t size = strlen(text);
  bool digits = size > 0 && size <= (most > 9999 ? 9U : 4U) && strspn(text, "0123456789") == size;
  unsigned long value = digits ? strtoul(text, NULL, 10) : 0;
  if (digits && value >= least && value <= most) {
    *count = (uint32_t)value;
    return true;
  }
  misused(line, "%s needs %s from %lu to %lu, not '%s'", source, what, (unsigned long)least,
          (unsigned long)most, text);
  return false;
}

/* Parses the name of a choice, in any case; that of a signal may begin with SIG. */
static bool parse_choice(const struct command_line *line, const char *option, const char *text,
                         const struct choice *choices, int *number)
{
  char names[96];
  size_t size = 0;
  const char *name = strncasecmp(text, "sig", 3) == 0 ? text + 3 : text;
  for (const struct choice *at = choices; at->name != NULL && size < sizeof names; at++) {
    const char *before = at == choices ? "" : at[1].name == NULL ? " or " : ", ";
    size += (size_t)snprintf(names + size, sizeof names - size, "%s%s", before, at->name);
    if (strcasecmp(name, at->name) != 0) continue;
    *number = at->number;
    return true;
  }
  misused(line, "%s needs %s, not '%s'", option, names, text);
  return false;
}

static bool add_text(const struct command_line *line, const char *option, uint32_t most,
                     const char **texts, const char *text)
{
  uint32_t count = 0;
  while (texts[count] != NULL)
    count++;
  if (count < most) texts[count] = text;
  else (void)misused(line, "%s can be given %u times, not more", option, (unsigned)most);
  return count < most;
}

/* Stores the value of an option; value is NULL if it has none. Returns false after a complaint. */
static bool take(const struct command_line *line, const struct option_row *row, void *target,
                 char *value)
{
  char option[64];
  if (row->letter != 0) snprintf(option, sizeof option, "-%c", row->letter);
  else snprintf(option, sizeof option, "--%s", row->name);
  switch (row->kind) {
  case OPTION_FLAG:
    *(bool *)target = true;
    return true;
  case OPTION_TEXT:
    *(const char **)target = value;
    return true;
  case OPTION_LIST:
    return add_text(line, option, row->most, target, value);
  case OPTION_URL:
    free(*(char **)target);
    *(char **)target = take_url(value);
    return true;
  case OPTION_SECONDS:
    return parse_seconds(line, option, value, row->least,
                         row->most > 0 ? row->most : FAIRLOCK_DURATION_MAX_MS, target);
  case OPTION_COUNT:
    return parse_count(line, option, "a number", value, row->least, row->most, target);
  case OPTION_MAYBE:
    *(uint32_t *)target = row->without;
    return value == NULL ||
           parse_count(line, option, "a number", value, row->least, row->most, target);
  case OPTION_STATUS:
    return parse_count(line, option, "an exit status", value, 0, 255, target);
  case OPTION_CHOICE:
    return parse_choice(line, option, value, row->choices, target);
  default:
    return false;
  }
}

/* The command line */

/* Complains about the option that getopt_long() has just refused. */
static int complain_of_option(const struct command_line *line, int what, char **argv)
{
  const char *argument = argv[optind - 1];
  int size = (int)strcspn(argument, "=");
  bool is_long = strncmp(argument, "--", 2) == 0;
  if (what == ':' && is_long) return misused(line, "%s needs a value", argument);
  if (what == ':') return misused(line, "-%c needs a value", optopt);
  if (!is_long) return misused(line, "there is no option -%c", optopt);
  if (optopt != 0) return misused(line, "%.*s takes no value", size, argument);
  return misused(line, "there is no option %.*s, or it is ambiguous", size, argument);
}

/* What getopt_long() has to know of the rows; letters has room for two characters more a row. */
static void describe(const struct rows *rows, bool name_ends, char *letters, struct option *options)
{
  if (name_ends) *letters++ = '+';
  *letters++ = ':';
  for (size_t i = 0; i < rows->count; i++) {
    const struct option_row *row = rows->row[i];
    bool value = takes_value(row);
    options[i] = (struct option){.name = row->name,
                                 .has_arg = row->kind == OPTION_MAYBE ? optional_argument
                                            : value                   ? required_argument
                                                                      : no_argument,
                                 .val = row->letter != 0 ? row->letter : LONG_ONLY + (int)i};
    if (row->letter == 0) continue;
    *letters++ = (char)row->letter;
    if (value) *letters++ = ':';
  }
  *letters = 0;
}

int parse_options(struct command_line *line, void *target, int argc, char **argv)
{
  struct rows rows = {0};
  struct option options[MOST_ROWS + 1] = {{0}};
  char letters[2 * MOST_ROWS + 3];
  add_rows(&rows, line->options, line->kind);
  size_t own = rows.count;
  add_rows(&rows, common, 0);
  describe(&rows, line->name_ends, letters, options);
  opterr = 0;
  for (;;) {
    int option = getopt_long(argc, argv, letters, options, NULL);
    if (option == -1) break;
    if (option == '?' || option == ':') return complain_of_option(line, option, argv);
    size_t i = option >= LONG_ONLY ? (size_t)(option - LONG_ONLY) : index_of(&rows, option);
    char *base = i < own ? target : (void *)line;
    if (i >= rows.count) return EXIT_USAGE;
    if (rows.row[i]->kind == OPTION_HELP) print_help(line, &rows);
    if (!take(line, rows.row[i], base + rows.row[i]->target, optarg)) return EXIT_USAGE;
  }
  line->count = argc - optind;
  line->arguments = argv + optind;
  return EXIT_DONE;
}

int size_of_common_option(const char *argument)
{
  size_t size = strcspn(argument, "=");
  if (size < 2 || strncmp(argument, "--", 2) != 0) return 0;
  for (const struct option_row *row = common; row->kind != OPTION_HELP; row++) {
    if (strlen(row->name) != size - 2 || strncmp(argument + 2, row->name, size - 2) != 0) continue;
    return takes_value(row) && argument[size] == 0 ? 2 : 1;
  }
  return 0;
}

int misused(const struct command_line *line, const char *format, ...)
{
  va_list arguments;
  va_start(arguments, format);
  fprintf(stderr, "fairlock %s: ", line->command);
  vfprintf(stderr, format, arguments);
  va_end(arguments);
  fprintf(stderr, "\nusage: %s\nTry 'fairlock %s --help'.\n", line->usage, line->command);
  return EXIT_USAGE;
}

/* True if name looks like a key of another lock: it has the prefix, and a '{' after that. */
static bool is_other_key(const char *name, const char *prefix)
{
  size_t size = strlen(prefix);
  return strncmp(name, prefix, size) == 0 && strchr(name + size, '{') != NULL;
}

/* Complains and returns true if a lock of this name would use keys of another lock. */
static bool is_taken(const struct command_line *line, const char *name)
{
  static const char *const prefixes[] = {
      "fairlock:", "redisson_lock_queue:", "redisson_lock_timeout:"};
  char *shown = printable(name, strlen(name));
  bool taken = name[0] == '{' && name[strlen(name) - 1] == '}' && strchr(name + 1, '{') == NULL;
  if (taken)
    misused(line,
            "the NAME %s is wholly in braces, and shares the queue of the lock without them, "
            "but not its holder: take %s:lock",
            shown, shown);
  for (size_t i = 0; !taken && i < sizeof prefixes / sizeof prefixes[0]; i++) {
    taken = is_other_key(name, prefixes[i]);
    if (taken) misused(line, "the NAME %s is a key in which another lock keeps its state", shown);
  }
  free(shown);
  return taken;
}

bool good_name(const struct command_line *line, const char *name)
{
  size_t size = strlen(name);
  if (size > 0 && size <= FAIRLOCK_NAME_MAX) return !is_taken(line, name);
  if (size == 0) misused(line, "the NAME of a lock cannot be empty");
  else
    misused(line, "the NAME of a lock has at most %u bytes, this one has %zu", FAIRLOCK_NAME_MAX,
            size);
  return false;
}

const char *only_name(const struct command_line *line)
{
  if (line->count == 0) misused(line, "the NAME of a lock is missing");
  else if (line->count > 1)
    misused(line, "one lock at a time: '%s' is one too many", line->arguments[1]);
  else if (good_name(line, line->arguments[0])) return line->arguments[0];
  return NULL;
}

bool good_id(const struct command_line *line, const char *source, const char *id)
{
  size_t size = strlen(id);
  const char *at = id;
  while (*at > ' ' && *at <= '~' && *at != ':')
    at++;
  if (*at == 0 && size > 0 && size <= FAIRLOCK_ID_MAX) return true;
  char *shown = printable(id, size);
  if (*at != 0)
    misused(line, "%s takes printable ASCII characters, but no space and no colon: not %s", source,
            shown);
  else if (size == 0) misused(line, "%s cannot be empty", source);
  else
    misused(line, "%s takes at most %u characters, and %s has %zu", source, FAIRLOCK_ID_MAX, shown,
            size);
  free(shown);
  return false;
}
