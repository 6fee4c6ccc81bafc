/*
 * The chain of the optional features that a program uses: see struct fairlock_hooks. A program that
 * uses none links nothing of it.
 */
#include "internal.h"

/*
 * Puts a link in its place, which is that of its hooks, in whatever order they come. Returns the one
 * that had this place, which is in the chain no longer, or NULL.
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
