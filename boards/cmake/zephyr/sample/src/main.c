/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A device that opens a door while it holds the lock door:7: ten times, for a tenth of a second
 * each. It prints a line for each hold.
 */
#include <stdio.h>
#include <zephyr/kernel.h>

#include "fairlock_zephyr.h"

#define HOLDS   10
#define HOLD_MS 100

static struct fairlock door;

/* Called if the hold ends before its time: close the door. */
static void lost(struct fairlock *handle, const struct fairlock_loss *loss, void *context)
{
  (void)handle;
  (void)loss;
  (void)context;
  printf("lost: the door is closed\n");
}

int main(void)
{
  struct fairlock_client *client = fairlock_zephyr_start(lost, NULL);
  if (client == NULL || fairlock_init(&door, client, "door:7") != FAIRLOCK_OK) return 0;
  for (int holds = 0; holds < HOLDS;) {
    int status = fairlock_acquire(&door, FAIRLOCK_FOREVER, FAIRLOCK_RENEW);
    if (status != FAIRLOCK_OK) {
      printf("not acquired: %s\n", fairlock_status_text(status));
      k_msleep(1000);
      continue;
    }
    holds++;
    printf("held, fencing token %llu\n", (unsigned long long)fairlock_token(&door));
    k_msleep(HOLD_MS); /* the work; before each step of it, ask fairlock_remaining_ms() */
    status = fairlock_release(&door);
    printf("released: %s\n", fairlock_status_text(status));
  }
  printf("done\n");
  return 0;
}
