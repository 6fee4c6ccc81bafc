/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The programs of the peers and of their servers: each reads commands from stdin and answers with
 * lines, as README.md says. What the tables have in common is here, too. A program that does not
 * answer ends the run.
 */
#ifndef PROGRAMS_H
#define PROGRAMS_H

#include "support/raw.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

/* In an answer, at most. */
#define NUMBERS 6000

struct program {
  const char *name; /* of its peer, for messages */
  pid_t pid;
  int in, out;
  size_t used;
  char buffer[NUMBERS * 20];
};

/*
 * Starts a peer's program by a shell, which gets the port as $1, and waits until it is ready.
 * version: what it says, and for ours the environment's COMMIT, if there is one.
 */
void program_start(struct program *program, const char *name, const char *command, int port,
                   char version[32]);

/* Sends it "VERB COUNT". */
void program_tell(struct program *program, const char *verb, int count);

/* Waits for "done BYTES". */
int64_t program_done(struct program *program);

/* The numbers of the next line. Returns how many, at most NUMBERS. */
int program_numbers(struct program *program, int64_t *numbers);

/* Ends the run, with a message about the peer, unless the condition holds. */
void must(bool condition, const char *peer, const char *what);

/*
 * Starts a server by a shell, which gets the port as $1 and another free one as $2, and waits until
 * it listens there.
 */
pid_t server_by_shell(const char *name, const char *shell, int port);

/* The processor time of a process, as the kernel counts it. */
double cpu_us(pid_t pid);

/* Sorts the values. */
double median_of(double *values, size_t count);

/* The number with as many digits as such a run can tell; valid until four later calls. */
const char *short_number(double value);

/* Writes the line below a table. load_before: of load_now(), which is the machine's load average. */
void write_circumstances(FILE *file, struct raw *redis, double load_before);
double load_now(void);

/* Whether the peer is to be measured: no words are given, or its name contains one of them. */
bool chosen(const char *name, char *const *words);

#endif
