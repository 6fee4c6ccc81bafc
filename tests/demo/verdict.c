/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the records prove, by the judge of histories. Pure functions of the records: nothing here knows
 * how the story was meant to go.
 */
#include "demo.h"

static bool granted(const struct contender *contender)
{
  return contender->granted_at != 0;
}

/* A killed holder believed to the end of its validity: nobody could tell it that it is dead. */
int64_t end_of_hold(const struct contender *contender)
{
  return contender->left_at != 0 ? contender->left_at : contender->believed_until;
}

int grants(const struct contender *all, const struct contender *order[CONTENDERS])
{
  int count = 0;
  for (int i = 0; i < CONTENDERS; i++) {
    if (!granted(&all[i])) continue;
    int at = count++;
    for (; at > 0 && order[at - 1]->token > all[i].token; at--)
      order[at] = order[at - 1];
    order[at] = &all[i];
  }
  return count;
}

const struct contender *first_unserved(const struct contender *all)
{
  for (int i = 0; i < CONTENDERS; i++) {
    bool served = granted(&all[i]) || all[i].killed_at != 0;
    if (all[i].arrival == 0 || !served) return &all[i];
  }
  return NULL;
}

/* Who was granted nothing leaves no hold. */
struct verdict verdict_of(const struct contender *all, bool quiet)
{
  struct hold holds[CONTENDERS];
  struct history history = {.holds = holds, .quiet = quiet};
  for (int i = 0; i < CONTENDERS; i++) {
    if (!granted(&all[i])) continue;
    holds[history.count++] = (struct hold){.written = true,
                                           .client = i + 1,
                                           .shares = all[i].limit > 0,
                                           .limit = (int)all[i].limit,
                                           .token = all[i].token,
                                           .called_us = all[i].asked_at,
                                           .queued_us = all[i].arrived_at,
                                           .start_us = all[i].granted_at,
                                           .until_us = end_of_hold(&all[i])};
  }
  return judge(&history);
}

bool order_kept(const struct contender *all, const struct verdict *verdict)
{
  return first_unserved(all) == NULL && verdict->tokens + verdict->order == 0;
}

int most_at_once(const struct contender *all)
{
  uint32_t most = 1;
  for (int i = 0; i < CONTENDERS; i++) {
    if (all[i].limit > most) most = all[i].limit;
  }
  return (int)most;
}

int64_t handover_us(const struct contender *all, const struct contender *self)
{
  const struct contender *order[CONTENDERS];
  int count = grants(all, order);
  for (int i = 1; i < count; i++) {
    const struct contender *before = order[i - 1];
    if (order[i] != self) continue;
    if (self->limit > 0 || before->limit > 0) return -1;
    int64_t ended = before->left_at != 0 ? before->left_at : before->killed_at;
    return ended != 0 ? self->granted_at - ended : -1;
  }
  return -1;
}
