/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The chain of the optional features that a program uses: see struct fairlock_hooks in internal.h.
 * A program that uses none does not link this file.
 */
#include "internal.h"

/*
 * Inserts a link into the chain, at the place that its hooks say, in whatever order links are
 * inserted. Returns the link that was at this place before and is no longer in the chain, or NULL.
 */
struct fairlock_link *fairlock_links_insert(struct fairlock_engine *engine,
                                            struct fairlock_link *link,
                                            const struct fairlock_hooks *hooks)
{
  struct fairlock_link **outer = &engine->links;
  while (*outer != NULL && (*outer)->hooks->place < hooks->place)
    outer = &(*outer)->inner;
  struct fairlock_link *inner = *outer;
  struct fairlock_link *before = NULL;
  if (inner != NULL && inner->hooks->place == hooks->place) {
    before = inner;
    inner = inner->inner;
  }
  link->hooks = hooks;
  link->inner = inner;
  *outer = link;
  return before;
}
