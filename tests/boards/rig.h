/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Boards in the simulator, as the suites use them: started with an image and arguments, observed by
 * their log, and exposed to faults. A board is a child process that the harness ends with the
 * suite, by its pid.
 */
#ifndef QEMU_RIG_H
#define QEMU_RIG_H

#include "harness.h"

struct board {
  pid_t pid;
  int log;         /* what it writes to its UART     */
  int control;     /* the simulator's own connection */
  bool ended;      /* the log has come to its end    */
  size_t size;     /* bytes in text                  */
  char text[2048]; /* of the log, not looked at yet  */
  char line[128];  /* the last one that was heard    */
};

/* More options of the simulator, for boards that are started from now on. */
extern const char *board_options;

/* Starts an image, such as "station", of a board such as "mps2-an385". arguments: ended by NULL. */
void board_start(struct board *board, const char *name, const char *image,
                 const char *const arguments[]);

/* The same with a serial line, whose other end is line. */
void board_start_with_line(struct board *board, const char *name, const char *image,
                           const char *const arguments[], int line);

/* Starts the gateway between the suite's server and such a serial line. Returns its pid. */
pid_t bridge_start(int line);

/* The same to something else that listens at that port of this host. */
pid_t bridge_start_to(int line, const char *port);

/* The same with a simulated modem, which opens all connections to the suite's server. */
pid_t modem_start_on(int line);

/*
 * Waits for a line that begins with text, and passes over all others. False: it does not come
 * within SOON.
 */
bool board_says(struct board *board, const char *text);

/* The same until then, by now_ms(). */
bool board_says_by(struct board *board, const char *text, int64_t until);

/* Whether a line that begins with text is among those that came so far and were not passed over. */
bool board_said(struct board *board, const char *text);

/* Discards all that it has said so far. */
void board_forget(struct board *board);

/* Plugs the network cable in, or pulls it. */
void board_cable(struct board *board, bool in);

/* Loads the scripts into the suite's server, for boards that do not have their texts. */
bool load_scripts(void);

void board_freeze(const struct board *board);
void board_thaw(const struct board *board);

/* Presses its reset button: it starts anew, and no peer is told. Its RAM stays as it is. */
void board_reset(struct board *board);

/*
 * The end: by itself, with this exit status, or -1; or by a power failure, which no peer is told
 * of.
 */
int board_ends(struct board *board);
void board_power_off(struct board *board);

/*
 * The end of a board whose three tasks share the lock "press" for 50 rounds each: they took turns,
 * and nothing of the lock is left.
 */
void check_shared_press(struct board *board);

/* The end of a board that runs port/conformance, and keeps all of that number of rules. */
void check_conformance(struct board *board, int rules);

#endif
