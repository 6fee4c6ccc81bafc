/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A witness between the engine and a hostile server: it reads both directions of the connection
 * with decoders of its own, keeps the list of requests that wait for an answer, and says what the
 * engine may make of what it was told. It shares nothing with the engine except the codec, which is
 * fuzzed separately.
 */
#ifndef WITNESS_H
#define WITNESS_H

#include "engine.h"

enum { WITNESS_REQUESTS = 4096, WITNESS_TEXT = 12288, WITNESS_ELEMENTS = 16, WITNESS_HOLDS = 64 };

/* The locks: one name has nothing special, one has a brace, one a NUL and a line's end. */
enum { WITNESS_LOCKS = 3 };

/* Room for the id of a client. */
enum { WITNESS_ID = FAIRLOCK_ID_MAX + FAIRLOCK_ID_SUFFIX };

struct witness_lock {
  const char *name;
  size_t size;
  const char *channel; /* without the handle's id */
  size_t channel_size;
};

extern const struct witness_lock witness_locks[WITNESS_LOCKS];

/* A script, a SUBSCRIBE or an UNSUBSCRIBE that was sent. */
struct witness_request {
  uint32_t number; /* of the handle's id; 0 for an inspection, which names none */
  /*
   * 'a' acquire, 'r' release, 'i' inspect; 's' SUBSCRIBE, 'u' UNSUBSCRIBE; 'w' WAIT; 'A' AUTH; 'c'
   * CLIENT, 'e' EXISTS
   */
  char script;
  int64_t expires, mode, lease, token;
  uint32_t from;    /* of a downgrade: the number of the handle that holds; 0: it is none */
  uint64_t newer;   /* of a downgrade: the token behind the limit; 0: none */
  unsigned order;   /* how many scripts were sent up to this one */
  uint32_t seen_at; /* when its first byte was seen, which is not before it was written */
  /*
   * those handles that may have sent a script, a bit for each number: all handles of the lock if the
   * script names none
   */
  uint64_t senders;
};

/*
 * A belief that the server's words allow: whose, in which hold (0: the one there is), and until
 * when.
 */
struct witness_hold {
  uint32_t number;
  uint64_t token;
  uint32_t until;
};

/* What a handle that shares acquires: see witness_inherits(). */
struct witness_heir {
  uint32_t from;  /* the number of the handle whose hold it is to get; 0: an acquire of its own */
  uint64_t token; /* of that hold */
  uint64_t newer; /* the token of its own last hold, if that is larger; or 0 */
  unsigned sent_before; /* the last script that may belong to what it did before */
  bool waits;           /* as the program that runs the witness says at each step */
  bool doubted;         /* a downgrade was sent, and not answered while it waited */
};

/* An element of a message. */
struct witness_element {
  bool is_number;
  int64_t number;
  size_t size;
  uint8_t text[256]; /* the beginning of it */
};

/* One direction, and the message under way in it. */
struct witness_stream {
  struct resp_decoder decoder;
  size_t used;
  uint8_t buffer[WITNESS_TEXT + RESP_OVERHEAD];
  struct witness_element elements[WITNESS_ELEMENTS];
  uint32_t count;  /* elements so far, also those that are not kept */
  int64_t integer; /* of a message that is a number */
  enum resp_type type;
  bool open;
  uint32_t begun_at; /* when the first byte of it was seen */
};

struct witness {
  struct witness_stream sent, received;
  uint32_t now;
  uint32_t numbers[WITNESS_LOCKS]; /* of the handles, one for each lock; 0: there is none */
  unsigned names[WITNESS_LOCKS];   /* their names, as indices of witness_locks */
  int limits[WITNESS_LOCKS];       /* of those handles that share; -1: of the others */
  struct witness_heir heirs[WITNESS_LOCKS];
  char id[WITNESS_ID]; /* of the client, as witness_knows() was told */
  size_t id_size;

  struct witness_request requests[WITNESS_REQUESTS]; /* first to last - 1 wait for an answer */
  size_t first, last;
  unsigned scripts;       /* sent since the engine was made */
  bool subscribing;       /* a SUBSCRIBE was sent, and the script that belongs to it was not yet */
  uint32_t subscribed_at; /* when that was begun */
  uint32_t early;         /* whose SUBSCRIBE was answered before all of it was sent; 0: nobody's */

  /* answers to the greeting: how many there will be, how many there were */
  unsigned greetings, greeted;
  bool greeting;        /* the greeting was seen ... */
  uint32_t greeting_at; /* ... the last of it, which is TIME, then */
  uint32_t start;       /* when the engine was made */
  /*
   * the largest difference between a time at which the engine asked and the time it was told then
   */
  int64_t offset;

  /* as the program that runs the witness says */
  uint32_t replicas; /* what each WAIT asks for; 0: there is none */
  bool sharded;      /* channels belong to shards */
  bool sentinel;     /* the connection is to a Sentinel */
  bool credentials;  /* a function gives them */
  bool late;         /* this device was frozen: what it reads may have come long ago */

  /* locks that are kept: whether it may, and is said to, be told of each queue */
  bool keeps;
  bool tracks;               /* CLIENT was never refused on this connection */
  unsigned arming;           /* 0, or how much of an arming was seen: CACHING 1, EXISTS 2 */
  bool armed[WITNESS_LOCKS]; /* of each name: nobody waited, and no push has come since */
  bool invalidates;          /* the push under way does */

  bool wait_due;                 /* a script was sent that needs a WAIT, and nothing since */
  bool waits;                    /* the answer to a script has come, and the WAIT's has not: */
  struct witness_request waiter; /* the script */
  int64_t granted;               /* the token, when it may have begun a hold; or -1 */

  struct witness_hold holds[WITNESS_HOLDS]; /* what the bytes of this step allow */
  unsigned allowed;
  uint64_t answered; /* the handles that got a useful answer in this step, a bit for each number */
  uint64_t messages; /* those that got a message */
  uint64_t repeats;  /* those that may have to ask again, after an answer that was read late */
  uint64_t refused;  /* those to whose downgrade it says in this step that the hold is gone */
};

/* A new engine; a new connection of it, with so many commands in its greeting; a new step. */
void witness_init(struct witness *witness, uint32_t now);
void witness_connected(struct witness *witness, unsigned greetings);
void witness_step(struct witness *witness);

/* The first greeting was answered: the client's id is made. */
void witness_knows(struct witness *witness, const char *id, size_t size);

/*
 * The handle begins an acquire: of its own, or, if from is not 0, of the hold with this token that the
 * handle with that number has. last: the token of its own last hold.
 */
void witness_inherits(struct witness *witness, unsigned which, uint32_t from, uint64_t token,
                      uint64_t last);

/* Writes the channel of the lock's handle with this number; returns its size. */
size_t witness_channel(const struct witness *witness, unsigned lock, uint32_t number,
                       char *channel);

/*
 * Bytes that the engine wants to send, each told once. False when they are not what an engine may
 * say.
 */
bool witness_sent(struct witness *witness, const uint8_t *data, size_t size, uint32_t now);

/* Bytes that the engine is going to get. */
void witness_received(struct witness *witness, const uint8_t *data, size_t size, uint32_t now);

/*
 * True when the bytes of this step allow number to begin to believe in a hold with token, or, with
 * token 0, to go on with the one it has; until *until at the latest.
 */
bool witness_allows(const struct witness *witness, uint32_t number, uint64_t token,
                    uint32_t *until);

#endif
