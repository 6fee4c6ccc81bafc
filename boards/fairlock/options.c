/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parses options. Anything that is not exactly a number is refused, because a misread lease is
 * worse than an error. A password in --url is overwritten in the arguments as soon as it was
 * copied, so that the process list does not show it for long.
 */
#define _DEFAULT_SOURCE 1 /* what -std=c11 hides */

#include "options.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "fairlock.h"
#include "text.h"
#include "url.h"

const char common_help[] =
    "  --url URL            the server: redis://[user:password@]host[:port][/db],\n"
    "                       redis+sentinel://[user:password@]host[:port],.../service[/db],\n"
    "                       redis+cluster://[user:password@]host[:port],..., or\n"
    "                       unix:///path. Default: $FAIRLOCK_URL, redis://127.0.0.1:6379.\n"
    "                       TLS: rediss instead of redis; ?sentinel_tls=false at the end:\n"
    "                       not to Sentinels; ?sentinel_tls=true: to Sentinels\n"
    "  --password-file FILE read the password from the first line of FILE, at each connection.\n"
    "                       Default: the URL's, $FAIRLOCK_PASSWORD\n"
    "  --sentinel-user USER the user for the Sentinels. Default: $FAIRLOCK_SENTINEL_USER\n"
    "  --sentinel-password-file FILE\n"
    "                       their password. Default: $FAIRLOCK_SENTINEL_PASSWORD\n"
    "  --cacert FILE        TLS: trust these CAs. Default: $FAIRLOCK_CACERT, the system's\n"
    "  --cacertdir DIR      TLS: trust the CAs in DIR. Default: $FAIRLOCK_CACERTDIR\n"
    "  --cert FILE          TLS: our certificate. Default: $FAIRLOCK_CERT, none\n"
    "  --key FILE           TLS: its key. Default: $FAIRLOCK_KEY, in the same file\n"
    "  --sni NAME           TLS: the server's name. Default: $FAIRLOCK_SNI, the host's\n"
    "  --insecure           TLS: do not check the server's certificate\n"
    "  -h, --help           print this\n";

static char *take_url(char *argument)
{
  char *copy = strdup(argument);
  url_hide_password(argument);
  if (copy == NULL) {
    complain("out of memory");
    exit(EXIT_SYSTEM);
  }
  return copy;
}

static void print_help(const char *const *help)
{
  for (; *help != NULL; help++)
    fputs(*help, stdout);
  exit(end_output(EXIT_DONE));
}

/* Complains about the option that getopt_long() has just refused. */
static void complain_option(const struct command_line *line, int what, char **argv)
{
  const char *argument = argv[optind - 1];
  int size = (int)strcspn(argument, "=");
  bool is_long = strncmp(argument, "--", 2) == 0;
  if (what == ':' && is_long) misused(line, "%s needs a value", argument);
  else if (what == ':') misused(line, "-%c needs a value", optopt);
  else if (!is_long) misused(line, "there is no option -%c", optopt);
  else if (optopt != 0) misused(line, "%.*s takes no value", size, argument);
  else misused(line, "there is no option %.*s, or it is ambiguous", size, argument);
}

int next_option(struct command_line *line, int argc, char **argv, const char *letters,
                const struct option *options, const char *const *help)
{
  opterr = 0;
  for (;;) {
    int option = getopt_long(argc, argv, letters, options, NULL);
    switch (option) {
    case OPTION_HELP:
      print_help(help);
      break;
    case OPTION_URL:
      free(line->url);
      line->url = take_url(optarg);
      break;
    case OPTION_PASSWORD_FILE:
      line->password_file = optarg;
      break;
    case OPTION_SENTINEL_USER:
      line->sentinel_user = optarg;
      break;
    case OPTION_SENTINEL_PASSWORD_FILE:
      line->sentinel_password_file = optarg;
      break;
    case OPTION_CACERT:
      line->tls.ca_file = optarg;
      break;
    case OPTION_CACERTDIR:
      line->tls.ca_folder = optarg;
      break;
    case OPTION_CERT:
      line->tls.certificate = optarg;
      break;
    case OPTION_KEY:
      line->tls.key = optarg;
      break;
    case OPTION_SNI:
      line->tls.name = optarg;
      break;
    case OPTION_INSECURE:
      line->tls.insecure = true;
      break;
    case '?':
    case ':':
      complain_option(line, option, argv);
      return '?';
    default:
      return option;
    }
  }
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
  char *shown = bytes_shown(name, strlen(name));
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

bool good_id(const struct command_line *line, const char *source, const char *id)
{
  size_t size = strlen(id);
  const char *at = id;
  while (*at > ' ' && *at <= '~' && *at != ':')
    at++;
  if (*at == 0 && size > 0 && size <= FAIRLOCK_ID_MAX) return true;
  char *shown = bytes_shown(id, size);
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

/*
 * Parses a decimal number, which an s may follow, and sets *value to its thousandths, rounded up;
 * UINT64_MAX: it is too large.
 */
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

/* Parses digits. Returns -1 if text has anything else, or is more than `most`. */
static long number_of(const char *text, long most)
{
  size_t size = strlen(text);
  if (size == 0 || size > 4 || strspn(text, "0123456789") != size) return -1;
  long value = strtol(text, NULL, 10);
  return value <= most ? value : -1;
}

bool parse_count(const struct command_line *line, const char *source, const char *text,
                 uint32_t least, uint32_t most, uint32_t *count)
{
  long value = number_of(text, (long)most);
  if (value < (long)least) {
    misused(line, "%s needs a number from %lu to %lu, not '%s'", source, (unsigned long)least,
            (unsigned long)most, text);
    return false;
  }
  *count = (uint32_t)value;
  return true;
}

bool parse_exit_status(const struct command_line *line, const char *option, const char *text,
                       int *status)
{
  long value = number_of(text, 255);
  if (value < 0) {
    misused(line, "%s needs an exit status from 0 to 255, not '%s'", option, text);
    return false;
  }
  *status = (int)value;
  return true;
}
