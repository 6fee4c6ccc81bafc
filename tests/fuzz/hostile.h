/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A hostile server's words, made from a fuzzer's input: raw bytes, well-formed answers and messages
 * with the fuzzer's numbers, redirections, and, so that a client gets far, what an honest server
 * would say.
 */
#ifndef HOSTILE_H
#define HOSTILE_H

#include "witness.h"

enum { HOSTILE_SIZE = 512 };

struct hostile {
  const uint8_t *input;
  size_t left;
  const struct witness *witness;
  int64_t now;                    /* the server's time, ms */
  bool selects;                   /* the greeting has a SELECT */
  uint64_t tokens[WITNESS_LOCKS]; /* of the handles */
};

enum hostile_words {
  HOSTILE_RAW,
  HOSTILE_ERROR,
  HOSTILE_PUSH,
  HOSTILE_ANSWER,
  HOSTILE_HONEST,
  HOSTILE_GREETING,
  HOSTILE_INSPECTION,
  HOSTILE_MOVE
};

/* The next byte of the input; 0 after its end. */
unsigned hostile_next(struct hostile *hostile);

/* Writes what the server says to text; returns its size. */
size_t hostile_say(struct hostile *hostile, enum hostile_words words, uint8_t text[HOSTILE_SIZE]);

#endif
