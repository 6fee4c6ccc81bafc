/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The judge of histories as a program. Reads one from standard input (tests/support/history.h has the
 * form), prints what is wrong, and how much: "overlaps 0 crowds 0 tokens 0 order 0 most 3". Exit status
 * 0 if nothing is, 1 if something is, 2 if that is no history.
 */
#include "support/history.h"

int main(void)
{
  struct history history;
  if (!history_read(&history, stdin)) {
    fprintf(stderr, "line %zu is no hold\n", history.count + 1);
    return 2;
  }
  struct verdict verdict = judge(&history);
  printf("overlaps %d crowds %d tokens %d order %d most %d\n", verdict.overlaps, verdict.crowds,
         verdict.tokens, verdict.order, verdict.most);
  return is_good(&verdict) ? 0 : 1;
}
