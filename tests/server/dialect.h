/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What servers say in different ways: all that the suites know of it is here, and README.md lists
 * it.
 */
#ifndef DIALECT_H
#define DIALECT_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Redis before 7.0: DEBUG needs no option, no option sets how often it answers clients while it
 * loads, error() in a script takes no table, and a script writes even with too few replicas.
 */
bool dialect_is_old(void);

/*
 * Redis from 7.2 on, and Valkey: a number is written with the fewest digits that represent it, and
 * not with 17.
 */
bool dialect_is_brief(void);

/*
 * The code of an error's text: its first word, or what Redis before 7.0 says about a script that
 * stopped.
 */
void dialect_error_code(const char **text, size_t *size);

/* The error's text says that a right is missing, in a command or in a script. */
bool dialect_denies(const char *text);

/*
 * The object that ACL LOG names is this command; Redis before 7.0 names it without its subcommand.
 */
bool dialect_is_command(const char *object, const char *command);

#endif
