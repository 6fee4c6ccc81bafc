/* SPDX-License-Identifier: Apache-2.0 */
/* See events.h: a binary heap. */
#include "events.h"

#include <stdlib.h>
#include <string.h>

static bool before(const struct event *a, const struct event *b)
{
  return a->at < b->at || (a->at == b->at && a->order < b->order);
}

void events_put(struct events *events, struct event event)
{
  if (events->used == events->size) {
    events->size = events->size == 0 ? 1024 : events->size * 2;
    events->heap = realloc(events->heap, events->size * sizeof *events->heap);
    if (events->heap == NULL) abort();
  }
  size_t i = events->used++;
  while (i > 0 && before(&event, &events->heap[(i - 1) / 2])) {
    events->heap[i] = events->heap[(i - 1) / 2];
    i = (i - 1) / 2;
  }
  events->heap[i] = event;
}

uint64_t events_add(struct events *events, int64_t at, event_fn run, void *object, uint32_t stamp)
{
  events_put(events, (struct event){at, events->planned, run, object, stamp});
  return events->planned++;
}

bool events_take(struct events *events, int64_t end, struct event *event)
{
  if (events->used == 0 || events->heap[0].at > end) return false;
  *event = events->heap[0];
  struct event last = events->heap[--events->used];
  size_t i = 0;
  while (2 * i + 1 < events->used) {
    size_t child = 2 * i + 1;
    if (child + 1 < events->used && before(&events->heap[child + 1], &events->heap[child])) child++;
    if (!before(&events->heap[child], &last)) break;
    events->heap[i] = events->heap[child];
    i = child;
  }
  events->heap[i] = last;
  return true;
}

void events_free(struct events *events)
{
  free(events->heap);
  memset(events, 0, sizeof *events);
}
