/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The command line of a subcommand. Each option is a row of a table, from which getopt_long(), the
 * help and, through the help, the completion of shells know it.
 */
#ifndef OPTIONS_H
#define OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "port_openssl.h"

/* What the value of an option is, and so what it is stored in. */
enum option_kind {
  OPTION_FLAG = 1, /* it has none: a bool becomes true                                      */
  OPTION_TEXT,     /* const char *: any text                                                */
  OPTION_LIST,     /* const char *[], ending with NULL: any texts, `most` of them           */
  OPTION_URL,      /* char *, allocated. The argument's password is overwritten             */
  OPTION_SECONDS,  /* uint32_t, in ms, from `least` to `most` (0: what the library takes)   */
  OPTION_COUNT,    /* uint32_t: a whole number from `least` to `most`                       */
  OPTION_MAYBE,    /* the same; without "=" and a number, `without`                         */
  OPTION_STATUS,   /* uint32_t: an exit status                                              */
  OPTION_CHOICE,   /* int: the number of one of `choices`                                   */
  OPTION_HELP      /* it has none: the help is printed                                      */
};

struct choice {
  const char *name; /* NULL: the list ends */
  int number;
};

struct option_row {
  const char *name; /* without dashes; NULL: the table ends                          */
  int letter;       /* 0: none. A later row with the same one is another name for it */
  enum option_kind kind;
  size_t target;     /* the offset of what it sets, in the subcommand's struct        */
  const char *value; /* what the help calls its value; NULL: it has none              */
  const char *help;  /* what the help says, in lines; NULL: it does not mention it    */
  uint32_t least, most, without;
  const struct choice *choices;
  unsigned only; /* the bits of command_line.kind that have it; 0: all */
};

/* What a uint32_t is before the command line, if it matters whether that sets it. */
#define NOT_GIVEN UINT32_MAX

/* A command line. The subcommand fills in the first members. */
struct command_line {
  const char *command;          /* its name                                                */
  const char *usage;            /* its synopsis                                            */
  const char *about, *statuses; /* what the help says before its options, and at the end */
  const struct option_row *options;
  unsigned kind;  /* for `only`; 0: they are for it alone                    */
  bool name_ends; /* options end at the first argument that is none       */

  int count; /* the arguments that are no options                     */
  char **arguments;
  char *url;                          /* of --url; NULL: FAIRLOCK_URL or the default      */
  const char *password_file;          /* NULL: none                                       */
  const char *sentinel_user;          /* NULL: FAIRLOCK_SENTINEL_USER, or none            */
  const char *sentinel_password_file; /* NULL: none                                       */
  uint32_t replicas;                  /* how many have to acknowledge                     */
  const char *id;                     /* NULL: the host's name and our process id         */
  struct port_openssl_config tls;     /* from options; the rest is NULL                   */
};

/* Parses options into *line and *target, the subcommand's struct. Returns an exit status. */
int parse_options(struct command_line *line, void *target, int argc, char **argv);

/*
 * How many arguments an option of all subcommands takes: 1, or 2 if its value is the next one. 0: it
 * is none, or --help.
 */
int size_of_common_option(const char *argument);

/* Complains about the command line, and refers to --help. Returns EXIT_USAGE. */
#if defined __GNUC__
__attribute__((format(printf, 2, 3)))
#endif
int misused(const struct command_line *line, const char *format, ...);

/* Returns true if name can be the name of a lock; otherwise complains. */
bool good_name(const struct command_line *line, const char *name);

/* Returns the only argument, which is the name of a lock; or NULL after a complaint. */
const char *only_name(const struct command_line *line);

/* Returns true if id can begin the ids of a client; otherwise complains. source: as below. */
bool good_id(const struct command_line *line, const char *source, const char *id);

/*
 * Parses seconds, with or without a fraction and a final s, into ms, rounded up. Complains and
 * returns false unless they are from `least` to `most`.
 */
bool parse_seconds(const struct command_line *line, const char *option, const char *text,
                   uint32_t least, uint32_t most, uint32_t *ms);

/*
 * Parses a whole number. Complains and returns false unless it is from `least` to `most`. source:
 * the option, or the environment variable; what: "a number", for example.
 */
bool parse_count(const struct command_line *line, const char *source, const char *what,
                 const char *text, uint32_t least, uint32_t most, uint32_t *count);

#endif
