/*
 * What one server says in another way than the next: everything about it that the suites know is
 * here, and README.md lists it.
 */
#ifndef DIALECT_H
#define DIALECT_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Redis before 7.0: DEBUG needs no option, no option says how often clients are answered while it
 * loads, error() in a script takes no table, and a script writes although too few replicas are
 * there.
 */
bool dialect_is_old(void);

/*
 * Redis from 7.2 on, and Valkey: a number is written with the fewest digits that say it, and not
 * with 17.
 */
bool dialect_is_brief(void);

/*
 * Of an error's text, the code: its first word, or what Redis before 7.0 says about a script that
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
