/* SPDX-License-Identifier: Apache-2.0 */
/* Tells a forked process from its parent. Private to port/posix. */
#ifndef PORT_POSIX_PROCESS_H
#define PORT_POSIX_PROCESS_H

#include <stdbool.h>

/*
 * Returns a note of this process, for port_posix_forked(). It is valid until it is passed to
 * port_posix_forget_process(), here or in a forked process. Any thread may call this at any time.
 */
long port_posix_note_process(void);
void port_posix_forget_process(long note);

/* True if this process was forked from that of the note. 0 is the note of no process. */
bool port_posix_forked(long note);

/* A system without fork() does not need process.c. */
#ifdef PORT_POSIX_NO_THREADS
#define port_posix_note_process()       1L
#define port_posix_forget_process(note) ((void)(note))
#define port_posix_forked(note)         ((void)(note), false)
#endif

/* A signal has ended a wait of the calling thread: port_task_interrupted() will say so. In threads.c. */
void port_posix_note_signal(void);

#endif
