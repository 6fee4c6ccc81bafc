/* Tells a forked process from the one it was forked from. Private to port/posix. */
#ifndef PORT_POSIX_PROCESS_H
#define PORT_POSIX_PROCESS_H

#include <stdbool.h>

/*
 * Notes this process, for port_posix_forked(), until port_posix_forget_process() gets the note, here
 * or in a forked process. May be called by any thread at any time.
 */
long port_posix_note_process(void);
void port_posix_forget_process(long note);

/* Whether this process was forked from the one that is noted. 0 is the note of no process. */
bool port_posix_forked(long note);

/* A system without processes needs none of this, and not process.c. */
#ifdef PORT_POSIX_NO_THREADS
#define port_posix_note_process()       1L
#define port_posix_forget_process(note) ((void)(note))
#define port_posix_forked(note)         ((void)(note), false)
#endif

#endif
