/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tokens rise: those that the server gives, and those that are believed in.
 */
#include "world.h"

/* A hold of ours begins on the server. */
void check_token_given(const struct party *party, uint64_t token)
{
  struct lock *lock = party->lock;
  if (token <= lock->tokens.given) {
    world_fail(party->world, "%s gets token %llu of %s after %llu", party->id,
               (unsigned long long)token, lock->text[0], (unsigned long long)lock->tokens.given);
  }
  lock->tokens.given = token;
}

/* A handle's tokens rise in every world, but for a hold that was kept and is taken back. */
void check_token_own(const struct party *party, uint64_t token)
{
  if (party->device == NULL || token > party->belief.token) return;
  if (token == party->belief.token && kept_hold(party, token)) return;
  world_fail(party->world, "%s believes in token %llu of %s after %llu of its own", party->id,
             (unsigned long long)token, party->lock->text[0],
             (unsigned long long)party->belief.token);
}

/* The old master gave newer tokens, and all that was lost. */
static bool brought_back(const struct party *party, uint64_t token)
{
  return !world_strict(party->world) && hold_revived(party, token);
}

/*
 * Of all that is believed in; a belief that is excused is not compared. Those who share hold beside
 * each other, and learn of it in any order.
 */
void check_token_believed(struct party *party, uint64_t token)
{
  struct lock *lock = party->lock;
  if (party->device == NULL || belief_excused(party) || brought_back(party, token)) return;
  uint64_t highest = party->shares ? lock->tokens.alone : lock->tokens.believed;
  if (token == highest && kept_hold(party, token)) return;
  if (token <= highest) {
    world_fail(party->world, "%s believes in token %llu of %s after %llu", party->id,
               (unsigned long long)token, lock->text[0], (unsigned long long)highest);
  }
  if (token > lock->tokens.believed) lock->tokens.believed = token;
  if (!party->shares) lock->tokens.alone = token;
}
