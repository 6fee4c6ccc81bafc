/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The simulated world: a server, or two, a network, devices that run the real engine, waiters that
 * behave like Redisson's, and the checks that the promises are kept. Time is virtual, and
 * everything follows from one seed.
 *
 *   network.c   connections: latency, order, pieces, silence, cuts
 *   device.c    a device: its drifting clock, its engine and the program that services the client
 *   program.c   what the programs on the devices do with their locks
 *   redisson.c  waiters like Redisson's
 *   profile.c   what kind of world it is
 *   faults.c    what goes wrong
 *   failover.c  the second server: replication, and how it takes over
 *   promises.h  what is promised, and who checks it
 *   world.c     puts all that together and ends it
 */
#ifndef SIM_WORLD_H
#define SIM_WORLD_H

#include "engine.h"
#include "events.h"
#include "fairlock_follow.h"
#include "fairlock_keep.h"
#include "fairlock_operate.h"
#include "fairlock_share.h"
#include "promises.h"
#include "random.h"
#include "redis.h"

#define MS     ((int64_t)1000)
#define SECOND (1000 * MS)
#define MINUTE (60 * SECOND)
#define HOUR   (60 * MINUTE)

/* The server's clock shows this at the beginning, in microseconds since the epoch. */
#define EPOCH 1700000000000000

#define HANDLES 4
#define FAULTS  16 /* kinds of them */

/* Kinds of faults, as bits. */
enum {
  /* a connection is cut; what was under way is lost, arrives, or arrives late */
  FAULT_CUT = 1,
  /* a connection goes silent, both ways or one way */
  FAULT_SILENCE = 2,
  /* data is delayed by seconds */
  FAULT_STALL = 4,
  /* a device starts anew; its connection is closed */
  FAULT_CRASH = 8,
  /* the same, but the server is not told */
  FAULT_POWER = 16,
  /* a device does nothing for a while */
  FAULT_FREEZE = 32,
  /* the server restarts with its data */
  FAULT_RESTART = 64,
  /* the server restarts without its data */
  FAULT_WIPE = 128,
  /* the server forgets its scripts */
  FAULT_SCRIPTS = 256,
  /* the server is out of memory for a while */
  FAULT_FULL = 512,
  /* the server refuses scripts for a while: LOADING, READONLY, ... */
  FAULT_REFUSE = 1024,
  /* somebody forces a release */
  FAULT_FORCE = 2048,
  /* the server's clock jumps */
  FAULT_JUMP = 4096,
  /* the server evicts a key */
  FAULT_EVICT = 8192,
  /* the server denies scripts a command for a while */
  FAULT_DENY = 16384,
  /* the server restarts with its data, and its clock is behind by up to an hour */
  FAULT_BEHIND = 32768
};

/* With these, only rising tokens, reported losses and progress are promised. */
#define UNSAFE (FAULT_JUMP | FAULT_EVICT)

/* How clients find the server: there is but one, or two and ... */
enum way {
  ONE_SERVER,
  /* ... both are seeds */
  BY_SEEDS,
  /* ... a Sentinel knows */
  BY_SENTINEL,
  /* ... whoever is not the master of the cluster says so */
  BY_CLUSTER
};

/* Whose scripts half of the devices run. */
enum release {
  RELEASE_THIS,
  /* that of tests/interop */
  RELEASE_KEPT,
  /* one that says more than we know: tests/interop/later.sed */
  RELEASE_LATER
};

/* What a request asks for: the first two are one script of ours, and two of the release kept. */
enum { ASKS_ACQUIRE, ASKS_RELEASE, ASKS_BREAK, ASKS_INSPECT };

/* ASKS_RELEASE, as the request has no lease, or ASKS_ACQUIRE. */
int asks_of_lock(struct text request);

enum { OTHER_RELEASES = RELEASE_LATER };
extern const struct redis_script releases[OTHER_RELEASES][2]; /* acquire, release */

struct profile {
  int devices, locks, handles, redissons;
  int64_t duration;    /* of the time with faults */
  int64_t think, hold; /* means                   */
  int64_t latency;
  int slow;            /* permille of devices whose round trips take seconds */
  int64_t fault_every; /* mean, all over the world */
  unsigned faults;
  int split;    /* permille of sendings that arrive in pieces     */
  int waitless; /* permille of acquisitions that do not queue     */
  int gives_up; /* permille of waits that are cancelled           */
  /* permille of acquisitions before which the handle is taken out and a new one put in */
  int taken_out;
  int denied;  /* permille of re-entries that the server refuses */
  int drift;   /* ppm                                            */
  int patient; /* permille of devices with a waiter timeout of their own */
  /* permille of devices with the shortest waiter timeout, and a longer response timeout */
  int tolerant;
  int keepers; /* permille of devices that keep their locks */
  int claims;  /* permille of devices with a claim of their own */
  int alike;   /* permille of devices whose client_id is a copy, or none */
  int sharing; /* permille of handles that share their lock */
  int others;  /* permille of those that name another limit than the rest */
  int most;    /* the largest limit; 0: there is none */
  enum release other;
  enum way way;
  int64_t move_every;   /* mean; of fail-overs */
  int64_t lag;          /* mean; of replication */
  int64_t skew;         /* by which the clock of the second server is ahead */
  bool synced;          /* holds count when the replica has acknowledged them */
  bool skewed;          /* skew is more than the leases allow for */
  uint32_t least_lease; /* ms */
};

struct world;
struct lock;
struct link;

/* Whoever uses a connection. */
struct link_user {
  void (*opened)(void *owner, struct link *link);
  void (*arrived)(void *owner, struct link *link, const void *data, size_t size);
  void (*broke)(void *owner, struct link *link); /* or could not be opened */
  int64_t (*asleep_until)(void *owner);          /* it takes nothing before */
};

/* A server. */
struct node {
  struct world *world;
  struct redis *redis;
  const char *host;
  int64_t jump; /* of its clock, while it is not the master */
  bool up;
};

enum { NODE_A, NODE_B, NODE_SENTINEL, NODES };

struct link {
  struct world *world;
  struct node *node;
  const struct link_user *user;
  void *owner;
  struct redis_client *server; /* NULL: the server has no such connection (any more) */
  bool open;                   /* at the client's end */
  bool lost_up, lost_down;     /* silently            */
  bool drop_up, drop_down;     /* what is under way is lost */
  int64_t latency, opened;
  uint64_t told;      /* the step in which the server said something last */
  uint64_t sent_step; /* the step in which what arrives at the server just now was sent */
  /* until then, what the client sends may take longer */
  int64_t up_held;
  int waiting; /* packets that have come, and that the client has not taken */
  /* the server has said that the slots are gone; how much of that is under way; and the step in
   * which the client was told, 0: not yet */
  bool gone, ends_slots;
  int gone_pieces;
  uint64_t gone_told;
  int64_t up_free, down_free; /* nothing arrives before: order */
  int64_t up_late;            /* what is under way does not arrive before */
  struct link *next;
};

enum job {
  JOB_IDLE,
  JOB_ACQUIRE,
  JOB_HOLD,
  JOB_REENTER,
  JOB_RELEASE,
  JOB_ASK,
  JOB_REMOVE,
  JOB_REMOVED,
  JOB_GONE
};

/*
 * Somebody who acquires a lock under one id: a handle of a device, or a Redisson waiter. Each
 * promise has its part of it.
 */
struct party {
  struct world *world;
  struct lock *lock;
  struct device *device; /* NULL: a Redisson waiter */
  char id[48];
  bool gone;        /* crashed, or taken out */
  uint64_t granted; /* the token of its last hold, as the server saw it */
  bool shares;      /* the lock, with so many, itself included; 0: any number */
  int limit;
  struct held held, held_before;
  uint64_t revived; /* the token of the hold that the new master knew of */
  struct party *next;

  struct belief belief;
  struct loss loss;
  struct place place;
  struct handover handover;
  struct repetition repetition;
  struct lease lease;
  struct peer peer;
  struct progress progress;
  struct left left;
  struct kept kept;

  /* The program. */
  union {
    struct fairlock handle;
    struct fairlock_shared sharing;
  };
  struct fairlock_target hold; /* that it breaks, or asks for */
  enum job job;
  uint32_t stamp;  /* of the job's next step */
  bool last;       /* the release ends the hold */
  bool downgrades; /* the release is that of a downgrade */
  bool under_way;  /* its operation; told when it has ended */
};

struct lock {
  char text[4][64];
  struct text keys[4];
  int limit; /* of those who share it; 0: any number */
  /* as it stood after the last script, and the one before */
  struct holders now, before;
  uint64_t token;   /* the newest that somebody holds by; 0: nobody, or Redisson's */
  uint64_t revived; /* of the hold that the new master knew of: its release may have been lost */

  struct party *believers;
  struct tokens tokens;
  struct arrivals queue;
  uint64_t ended; /* the token of the last hold, if a release has ended it */
  struct woken woken;
  struct idle idle;
};

struct device {
  struct world *world;
  int index, incarnation;
  bool off;
  char client_id[24];
  struct fairlock_config config;
  struct fairlock_engine engine;
  uint8_t *receive_buffer, *send_buffer;
  int64_t drift; /* ppm */
  uint32_t clock_offset;
  struct link *link;
  bool connecting;
  struct fairlock_topology topology;
  struct fairlock_keeping keep;
  struct fairlock_downgrading sharing;
  char address[16];
  int seed, target; /* the last seed, and where the next connection goes */
  int cut_from;     /* the node that it cannot reach; -1: none */
  int64_t latency;
  bool slow;
  bool named; /* the engine has made its id */
  int64_t timer_at;
  uint32_t timer_stamp;
  unsigned reads; /* since there was last nothing to receive */
  int64_t asleep_until, asleep_total;
  int64_t woke; /* when it last thawed, or will */
  int64_t spin_at;
  int spins;
  int blocked; /* permille of sendings that would block */
  struct party *parties[HANDLES];
};

struct redisson;

struct counters {
  uint64_t grants, waits, scripts, losses, unknowns, timeouts, failures, faults, connects,
      redisson_grants, forced, waiting_us, moves, unsynced, strays, asked, kept, taken_back, shares,
      beside, limits, downgrades;
};

struct world {
  uint64_t seed;
  struct profile profile;
  struct random random;
  struct events events;
  int64_t now;
  uint64_t step;
  struct node nodes[NODES];
  struct node *master;
  struct redis *redis;             /* the master's */
  int64_t jump;                    /* of the master's clock */
  struct replication *replication; /* NULL: there is one server */
  int64_t moved_at;                /* the last fail-over */
  bool set_back;                   /* the clock fell behind in a restart */
  int64_t longest;    /* what the slowest device needs for a request, or to be given up for dead */
  bool cut_reply;     /* the connection of the next reply, when a part of that is sent */
  bool cut_next;      /* the next connection on which something is sent, while that is under way */
  uint64_t epoch;     /* of the server's data */
  unsigned struck;    /* kinds of faults that have happened */
  int64_t refused_at; /* the server refused scripts until then; INT64_MAX: it still does */
  int64_t barred_at;  /* the same of refusals that end a release: FAIRLOCK_DENIED, _REFUSED */
  bool calm;          /* no more faults      */
  int64_t calm_at;
  bool ending;   /* no more acquisitions */
  int64_t lived; /* until everybody had finished */
  struct device *devices;
  struct lock *locks;
  struct redisson *redissons;
  struct dict parties; /* by id */
  struct party *all_parties;
  struct link *links;
  struct packet *packets;
  uint64_t trace_from; /* step; UINT64_MAX: no trace */
  bool failed;
  char failure[512];
  struct counters counters;
};

/* network.c */
struct link *link_open(struct world *world, const struct link_user *user, void *owner,
                       int64_t latency, struct node *node);
void link_send(struct link *link, const void *data, size_t size);
void link_close(struct link *link);        /* by the client */
void link_server_close(struct link *link); /* by the server */
void link_reply(struct link *link, const void *data, size_t size);
void link_cut(struct link *link);
void link_silence(struct link *link, bool up, bool down);
void link_stall(struct link *link, int64_t time);
void link_lose(struct link *link);      /* the server loses power */
void link_end_slots(struct link *link); /* the server says that its slots are gone */
void links_free(struct world *world);

/* device.c */
uint32_t device_clock(const struct device *device);
/* how long an operation takes at most when nobody answers */
int64_t device_patience(const struct device *device);
int64_t device_round_trip(const struct device *device);
int64_t device_when(const struct device *device, uint32_t local); /* when its clock shows that */
const struct device *device_of(const struct link *link);          /* NULL: Redisson's, or none */
void device_start(struct device *device);
void device_stop(struct device *device, bool silently);
void device_freeze(struct device *device, int64_t time);
void device_service(struct device *device);
struct party *device_add_party(struct device *device, int place);

/* program.c */
void program_start(struct party *party);
void program_look(struct party *party); /* after each time the client was serviced */

/* redisson.c */
void redisson_start_all(struct world *world);
void redisson_free_all(struct world *world);
void redisson_crash(struct world *world);
void redisson_late(struct world *world);
bool redisson_idle(struct world *world);
const char *redisson_script(int index); /* NULL: there is none */

/* profile.c */

/* From this seed on, some of those in a world share their locks. */
#define SHARING_SEEDS 1000000000000000U

/* From here to SHARING_SEEDS, the worlds of the hunt are those that cut clients off: the others stay as they were. */
#define CUT_OFF_SEEDS 500000000000U

void choose_profile(struct world *world);
void choose_hunt(struct world *world); /* one for the hunt */

/* faults.c */
void faults_start(struct world *world);

/* failover.c */
void failover_start(struct world *world); /* when there are two servers */
void failover_free(struct world *world);
void failover_executed(struct world *world, const struct execution *execution);
bool failover_goes_on(const struct world *world);
/* Changes when the replica loses its master, and when it has all that the master has. */
uint32_t failover_stream(const struct world *world);
/* whoever may be promoted next; NULL: nobody */
struct node *failover_replica(const struct world *world);

/* world.c */
struct party *world_add_party(struct world *world, const char *id, struct lock *lock);
void world_fail(struct world *world, const char *format, ...);
void world_trace(struct world *world, const char *format, ...);
int64_t world_server_micros(const struct world *world);
void world_later(struct world *world, int64_t delay, event_fn run, void *object, uint32_t stamp);
/* hunting: a world of the hunt. True when all promises were kept. */
bool world_run(struct world *world, uint64_t seed, bool hunting);
void world_free(struct world *world);

#define TRACE(world, ...)                                                                          \
  do {                                                                                             \
    if ((world)->step >= (world)->trace_from) world_trace((world), __VA_ARGS__);                   \
  } while (0)

#endif
