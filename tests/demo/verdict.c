/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the records prove. Pure functions of the records: nothing here knows how the story was meant
 * to go.
 */
#include "demo.h"

#include <stdio.h>

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

static bool check_arrivals(const struct contender *all, char *why, size_t size)
{
  for (int i = 0; i < CONTENDERS; i++) {
    const char *fault = NULL;
    if (all[i].arrival == 0) fault = "never arrived";
    else if (!granted(&all[i]) && all[i].killed_at == 0)
      fault = "was not killed, but never granted the lock";
    if (fault == NULL) continue;
    snprintf(why, size, "%s %s", all[i].name, fault);
    return false;
  }
  return true;
}

/* Two who share may be let in at once: then they learn it in any order. */
static bool shared(const struct contender *one, const struct contender *other)
{
  return one->limit > 0 && other->limit > 0;
}

bool order_kept(const struct contender *all, char *why, size_t size)
{
  const struct contender *order[CONTENDERS];
  int count = grants(all, order);
  if (!check_arrivals(all, why, size)) return false;
  for (int i = 1; i < count; i++) {
    const char *fault = NULL;
    if (order[i]->arrival <= order[i - 1]->arrival)
      fault = "was granted the lock before, but arrived after";
    else if (order[i]->token == order[i - 1]->token) fault = "has the same token as";
    else if (!shared(order[i], order[i - 1]) && order[i]->granted_at <= order[i - 1]->granted_at)
      fault = "has a smaller token, but a later grant, than";
    if (fault == NULL) continue;
    snprintf(why, size, "%s %s %s", order[i - 1]->name, fault, order[i]->name);
    return false;
  }
  return true;
}

/* It was granted the lock, and believed to hold it when the other was granted it. */
static bool held_at_grant(const struct contender *self, const struct contender *other)
{
  return granted(self) && granted(other) && self->granted_at <= other->granted_at &&
         other->granted_at < end_of_hold(self);
}

int holders_at_once(const struct contender *all)
{
  int most = 0;
  for (int i = 0; i < CONTENDERS; i++) {
    int holders = 0;
    for (int j = 0; j < CONTENDERS; j++)
      holders += held_at_grant(&all[j], &all[i]);
    if (holders > most) most = holders;
  }
  return most;
}

bool alone_kept(const struct contender *all)
{
  for (int i = 0; i < CONTENDERS; i++) {
    for (int j = 0; j < CONTENDERS; j++) {
      if (i != j && !shared(&all[i], &all[j]) && held_at_grant(&all[j], &all[i])) return false;
    }
  }
  return true;
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
