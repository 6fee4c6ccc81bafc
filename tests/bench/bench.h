/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the benchmarks share. Each prints rows "name: value", most of them ratios whose two sides
 * were measured in turn within one run: the median first, then the least and the largest. Nothing
 * here passes or fails by a time.
 */
#ifndef BENCH_H
#define BENCH_H

#include "server/harness.h"

#include <hiredis/hiredis.h>

/* Values of one row. */
struct series {
  double value[64];
  int count;
};

void add(struct series *series, double value);
double median(struct series *series);

/* Prints "name: median (least .. largest)" and a remark. */
void print_row(const char *name, struct series *series, const char *remark);
void print_value(const char *name, double value, const char *remark);

/* Microseconds since some moment, with fractions. */
double now(void);

/* Ends the program when the condition does not hold, and says what has failed. */
void must(bool condition, const char *what);

/* A client of the library with buffers for many requests at once. */
struct bench_client {
  struct fairlock_client client;
  struct fairlock_config config;
  struct port_posix socket;
  char service[8];
  uint8_t receive[16384];
  uint8_t send[65536];
};

/* _prepare() fills in config, for the caller to change, and _start() connects; _open() is both. */
void bench_client_prepare(struct bench_client *client, int port);
void bench_client_start(struct bench_client *client);
void bench_client_open(struct bench_client *client, int port);
void bench_client_close(struct bench_client *client);

/* A client with a lock and small buffers: many of them fit. */
struct small_client {
  struct fairlock_client client;
  struct port_posix socket;
  struct fairlock_config config;
  struct fairlock door;
  uint8_t receive[256];
  uint8_t send[256];
};

/* Connects. Keeps what the caller has set in config, except for the buffers. service: its port. */
void small_client_open(struct small_client *small, const char *service, const char *name);

/*
 * Acquires, and waits until this client is in the queue (or holds): the order of arrival is the
 * order of these calls.
 */
void small_client_arrive(struct small_client *small);

/* Raises the limit of descriptors as far as the system allows. Returns the limit. */
int most_files(void);

/*
 * Services the client until the operations of all handles of the array have ended. Ends the program
 * if one is not FAIRLOCK_OK.
 */
void finish_all(struct bench_client *client, struct fairlock *handles, int count);

redisContext *hiredis_open(int port);

/* A field of INFO's section as a number. */
double info_number(redisContext *peer, const char *section, const char *field);

/* Bytes received and sent by the server so far, less what asking for it costs. */
double net_bytes(redisContext *peer);

/* Microseconds of a processor that the server has used so far. */
double server_cpu(redisContext *peer);

/*
 * The command that acquires or releases, as hiredis formats it: the same words as the library
 * sends. token 0: acquire.
 */
int format_request(char **text, const char *name, const char *id, unsigned long long token);

/* Sends that request, at the latest when a reply is taken. */
void append_request(redisContext *peer, const char *name, const char *id, unsigned long long token);

/*
 * The reply to a script, which has to begin with this state, or the program ends. Returns the
 * second number.
 */
long long take_reply(redisContext *peer, long long state);

/*
 * System calls of `bench WHAT PORT COUNT`, which acquires and releases so often, as strace counts
 * them. Ends the program when that one fails.
 */
double system_calls(const char *what, int port, int count);

/* What the scripts since the last reset took, and how many commands they called; both for each. */
enum { SCRIPT_BATCH = 50 }; /* how many are measured at one go */
struct script_cost {
  double us, commands;
};
void scripts_reset(redisContext *peer);
struct script_cost scripts_cost(redisContext *peer);

/*
 * The rows of one kind of script: its time, the ratio to a plain script of as many commands, and how
 * many these are.
 */
struct script_rows {
  struct series us, ratio, commands;
};
void add_script_cost(struct script_rows *rows, redisContext *peer, struct script_cost cost);
/* Rows server.NAME.ratio, .us and .commands. */
void print_script_rows(struct script_rows *rows, const char *name, const char *remark);

/* The benchmarks */
void bench_pair(int port);
void bench_handover(int port);
void bench_growth(int port);
void bench_server_time(int port);
void bench_many(int port);
void bench_threads(int port);
void bench_decode(int port);
void bench_wait(int port);
void bench_memory(int port);
void bench_tls(int port);
void bench_waiters(int port);
void bench_keep(int port);
void bench_shared(int port);
int only_kept_pairs(int port, int count);

#endif
