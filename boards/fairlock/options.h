/* SPDX-License-Identifier: Apache-2.0 */
/* What the command lines of all subcommands have in common. */
#ifndef OPTIONS_H
#define OPTIONS_H

#include <getopt.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "port_openssl.h"

/* Values of the options that every subcommand has, for getopt_long(). */
enum {
  OPTION_HELP = 'h',
  OPTION_URL = 256,
  OPTION_PASSWORD_FILE,
  OPTION_SENTINEL_USER,
  OPTION_SENTINEL_PASSWORD_FILE,
  OPTION_CACERT,
  OPTION_CACERTDIR,
  OPTION_CERT,
  OPTION_KEY,
  OPTION_SNI,
  OPTION_INSECURE,
  OPTION_OWN
};

#define COMMON_OPTIONS                                                                             \
  {"help", no_argument, NULL, OPTION_HELP}, {"url", required_argument, NULL, OPTION_URL},          \
      {"password-file", required_argument, NULL, OPTION_PASSWORD_FILE},                            \
      {"sentinel-user", required_argument, NULL, OPTION_SENTINEL_USER},                            \
      {"sentinel-password-file", required_argument, NULL, OPTION_SENTINEL_PASSWORD_FILE},          \
      {"cacert", required_argument, NULL, OPTION_CACERT},                                          \
      {"cacertdir", required_argument, NULL, OPTION_CACERTDIR},                                    \
      {"cert", required_argument, NULL, OPTION_CERT},                                              \
      {"key", required_argument, NULL, OPTION_KEY}, {"sni", required_argument, NULL, OPTION_SNI},  \
  {                                                                                                \
    "insecure", no_argument, NULL, OPTION_INSECURE                                                 \
  }

/* The help text of these options. */
extern const char common_help[];

/* A command line while it is parsed. */
struct command_line {
  const char *command;                /* name of the subcommand                   */
  const char *usage;                  /* its synopsis                             */
  char *url;                          /* of --url; NULL: FAIRLOCK_URL or the default */
  const char *password_file;          /* NULL: none                               */
  const char *sentinel_user;          /* NULL: FAIRLOCK_SENTINEL_USER, or none    */
  const char *sentinel_password_file; /* NULL: none                      */
  uint32_t replicas;                  /* how many have to acknowledge             */
  const char *id;                     /* NULL: the host's name and our process id */
  struct port_openssl_config tls;     /* from options; the rest is NULL           */
};

/*
 * Returns the next option that is not common to all subcommands, as getopt_long() does; -1: there
 * are no more; '?': an option was wrong, and a complaint was printed. For --help it prints `help`,
 * a NULL-terminated list of texts, and ends the program.
 */
int next_option(struct command_line *line, int argc, char **argv, const char *letters,
                const struct option *options, const char *const *help);

/* Complains about the command line, and refers to --help. Returns EXIT_USAGE. */
#if defined __GNUC__
__attribute__((format(printf, 2, 3)))
#endif
int misused(const struct command_line *line, const char *format, ...);

/* Returns true if name can be the name of a lock; otherwise complains. */
bool good_name(const struct command_line *line, const char *name);

/* Returns true if id can begin the ids of a client; otherwise complains. source: as below. */
bool good_id(const struct command_line *line, const char *source, const char *id);

/*
 * Parses seconds, with or without a fraction and a final s, into milliseconds, rounded up.
 * Complains and returns false unless the value is from `least` to `most` ms.
 */
bool parse_seconds(const struct command_line *line, const char *option, const char *text,
                   uint32_t least, uint32_t most, uint32_t *ms);

/* The same for a whole number. source: the option, or the environment variable. */
bool parse_count(const struct command_line *line, const char *source, const char *text,
                 uint32_t least, uint32_t most, uint32_t *count);

/* The same for an exit status, from 0 to 255. */
bool parse_exit_status(const struct command_line *line, const char *option, const char *text,
                       int *status);

#endif
