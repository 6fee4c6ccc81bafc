/* The scripts, as generated into scripts.c from scripts/(common, acquire, release, inspect).lua. Private to the engine. */
#ifndef FAIRLOCK_SCRIPTS_H
#define FAIRLOCK_SCRIPTS_H

#include <stddef.h>
#include <stdint.h>

/* A waiter that was not heard of for so long is dead; a handover is granted for so long. scripts.c checks it. */
#define FAIRLOCK_WINDOW_MS 5000U

enum { FAIRLOCK_SCRIPT_ACQUIRE, FAIRLOCK_SCRIPT_RELEASE, FAIRLOCK_SCRIPT_INSPECT };

/* A script's text is part[0] and then part[1], which may be NULL. */
struct fairlock_script {
  const char *part[2];
  uint16_t size[2];
  char sha1[41];
};

/* acquire and release; inspect stands apart, so that firmware which never inspects does not link it. */
extern const struct fairlock_script fairlock_scripts[2];
extern const struct fairlock_script fairlock_inspect_script;

#endif
