/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an operator does to a hold: ends the one that it names and no other, asks its holder to
 * release it, and sees whether the holder is alive.
 */
#include <stdio.h>
#include <string.h>

#include "fairlock_log.h"
#include "harness.h"

static struct client here;  /* holds */
static struct client there; /* the operator's, and the next in line */
static struct fairlock mine, next, tool;
static int asked;

static void count_asked(struct fairlock *handle, const struct fairlock_asking *asking,
                        void *context)
{
  (void)asking;
  CHECK(handle == &mine);
  ++*(int *)context;
}

/* here wants to be asked, or not. */
static void begin_with(bool wants, uint32_t lease_ms)
{
  begin();
  asked = 0;
  client_prepare(&here, server.port);
  here.config.lease_ms = lease_ms;
  here.config.asked = wants ? count_asked : NULL;
  here.config.asked_context = &asked;
  client_start(&here);
  client_open(&there, server.port);
  CHECK_EQUAL(fairlock_init(&mine, &here.client, "broken"), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_init(&next, &there.client, "broken"), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_init(&tool, &there.client, "broken"), FAIRLOCK_OK);
}

static void begin_asked(bool wants)
{
  begin_with(wants, 30000);
}

static void end_asked(void)
{
  CHECK_EQUAL(fairlock_deinit(&mine), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_deinit(&next), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_deinit(&tool), FAIRLOCK_OK);
  client_close(&here);
  client_close(&there);
}

static int force(uint64_t token)
{
  return fairlock_force_release(&there.client, "broken", 6, token);
}

static int ask(uint64_t token)
{
  return fairlock_ask_release(&there.client, "broken", 6, token);
}

static int force_holder(const char *holder)
{
  struct fairlock_target hold = {.holder = holder};
  CHECK_EQUAL(fairlock_start_force_release(&tool, &hold), FAIRLOCK_PENDING);
  return await_result(&there, &tool);
}

static struct fairlock_report report;
static char last_id[64];
static char last_words[256];

static bool note_holder(const struct fairlock_report *told, void *context)
{
  (void)context;
  if (told->place != 0) return true;
  report = *told;
  memset(last_id, 0, sizeof last_id);
  memset(last_words, 0, sizeof last_words);
  if (told->last.id_size > 0) memcpy(last_id, told->last.id, told->last.id_size);
  if (told->last.words_size > 0) memcpy(last_words, told->last.words, told->last.words_size);
  return true;
}

static void look(void)
{
  CHECK_EQUAL(fairlock_inspect(&there.client, "broken", 6, note_holder, NULL), FAIRLOCK_OK);
}

static void test_only_that_hold(void)
{
  begin_asked(false);
  CHECK_EQUAL(force(FAIRLOCK_ANY_TOKEN), FAIRLOCK_NOT_HELD);
  CHECK_EQUAL(fairlock_try_acquire(&mine, FAIRLOCK_RENEW), FAIRLOCK_OK);
  uint64_t token = fairlock_token(&mine);
  CHECK_EQUAL(force(token - 1), FAIRLOCK_NOT_HELD);
  CHECK_EQUAL(force(token + 1), FAIRLOCK_NOT_HELD);
  CHECK_EQUAL(force_holder("somebody:1"), FAIRLOCK_NOT_HELD);
  CHECK_EQUAL(fairlock_release(&mine), FAIRLOCK_OK);
  CHECK_EQUAL(force(token), FAIRLOCK_NOT_HELD);
  CHECK_EQUAL(fairlock_try_acquire(&mine, FAIRLOCK_RENEW), FAIRLOCK_OK);
  CHECK_EQUAL(force(token), FAIRLOCK_NOT_HELD);
  CHECK_EQUAL(force(fairlock_token(&mine)), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_release(&mine), FAIRLOCK_LOST);
  end_asked();
  CHECK(nothing_left(&redis, "broken"));
}

/* The hold has gone to the next in line: the same request again leaves that one alone. */
static void test_again_after_handover(void)
{
  char holder[FAIRLOCK_HOLDER_ID_SIZE];
  begin_asked(false);
  CHECK_EQUAL(fairlock_try_acquire(&mine, FAIRLOCK_RENEW), FAIRLOCK_OK);
  uint64_t token = fairlock_token(&mine);
  fairlock_id(&mine, holder, FAIRLOCK_HOLDER_ID_SIZE);
  CHECK_EQUAL(fairlock_start_acquire(&next, 15000, FAIRLOCK_RENEW), FAIRLOCK_PENDING);
  AWAIT(queue_length(&redis, "broken") == 1, service_for(&there, 10));
  CHECK_EQUAL(force(token), FAIRLOCK_OK);
  CHECK_EQUAL(force(token), FAIRLOCK_NOT_HELD);
  CHECK_EQUAL(force_holder(holder), FAIRLOCK_NOT_HELD);
  CHECK_EQUAL(await_result(&there, &next), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_release(&mine), FAIRLOCK_LOST);
  CHECK_EQUAL(fairlock_release(&next), FAIRLOCK_OK);
  end_asked();
  CHECK(nothing_left(&redis, "broken"));
}

/* A hold of Redisson's has no token, though the notes still have the last one; it has a holder. */
static void test_redissons_hold(void)
{
  begin_asked(true);
  CHECK_EQUAL(fairlock_try_acquire(&mine, FAIRLOCK_RENEW), FAIRLOCK_OK);
  uint64_t token = fairlock_token(&mine);
  CHECK_EQUAL(fairlock_release(&mine), FAIRLOCK_OK);
  CHECK(raw_run(&redis, "HSET broken peer:1 1") && raw_run(&redis, "PEXPIRE broken 30000"));
  CHECK_EQUAL(force(token), FAIRLOCK_NOT_HELD);
  CHECK_EQUAL(ask(token), FAIRLOCK_NOT_HELD);
  CHECK_EQUAL(ask(FAIRLOCK_ANY_TOKEN), FAIRLOCK_NOT_LISTENING);
  look();
  CHECK(report.kind == FAIRLOCK_KIND_REDISSON && report.life == FAIRLOCK_LIFE_UNKNOWN &&
        !report.listens);
  CHECK_EQUAL(report.lease_ms, 0);
  CHECK_EQUAL(report.unheard_ms, -1);
  CHECK_EQUAL(report.token, 0);
  CHECK_EQUAL(force(report.token), FAIRLOCK_INVALID); /* 0 does not mean whoever holds by now */
  CHECK_EQUAL(ask(report.token), FAIRLOCK_INVALID);
  CHECK_EQUAL(force_holder("peer:2"), FAIRLOCK_NOT_HELD);
  CHECK_EQUAL(force_holder("peer:1"), FAIRLOCK_OK);
  CHECK_EQUAL(force_holder("peer:1"), FAIRLOCK_NOT_HELD);
  CHECK_EQUAL(asked, 0);
  end_asked();
}

/* Services here until its hold is lost. Returns how long that took. */
static int64_t lost_after_ms(int64_t began)
{
  AWAIT(here.losses > 0, service_for(&here, 10));
  CHECK_EQUAL(here.losses, 1);
  return now_ms() - began;
}

/*
 * A holder that listens is told at once, while its next renewal is a third of the lease away: 100 s.
 * Whoever does not listen, or does not renew, finds out as late as ever.
 */
static void test_told(void)
{
  for (int waits = 0; waits < 2; waits++) {
    for (int queued = 0; queued < 2; queued++) {
      begin_with(!waits, 300000);
      CHECK_EQUAL(fairlock_acquire(&mine, waits ? 1000 : 0, FAIRLOCK_RENEW), FAIRLOCK_OK);
      if (queued) {
        CHECK_EQUAL(fairlock_start_acquire(&next, 15000, FAIRLOCK_RENEW), FAIRLOCK_PENDING);
        AWAIT(queue_length(&redis, "broken") == 1, service_for(&there, 10));
      }
      int64_t began = now_ms();
      CHECK_EQUAL(force(fairlock_token(&mine)), FAIRLOCK_OK);
      CHECK(lost_after_ms(began) < 10000);
      CHECK_EQUAL(fairlock_remaining_ms(&mine), 0);
      CHECK_EQUAL(asked, 0);
      CHECK_EQUAL(fairlock_release(&mine), FAIRLOCK_LOST);
      if (queued) {
        CHECK_EQUAL(await_result(&there, &next), FAIRLOCK_OK);
        CHECK_EQUAL(fairlock_release(&next), FAIRLOCK_OK);
      }
      end_asked();
      CHECK(nothing_left(&redis, "broken"));
    }
  }
  for (int listens = 0; listens < 2; listens++) {
    begin_with(listens, 300000);
    CHECK_EQUAL(fairlock_try_acquire(&mine, listens ? 300000 : FAIRLOCK_RENEW), FAIRLOCK_OK);
    CHECK_EQUAL(force(fairlock_token(&mine)), FAIRLOCK_OK);
    service_for(&here, 500);
    CHECK_EQUAL(here.losses, 0);
    CHECK(fairlock_remaining_ms(&mine) > 0);
    CHECK_EQUAL(fairlock_release(&mine), FAIRLOCK_LOST);
    end_asked();
  }
}

static char asking_words[256];

static void note_asking(struct fairlock *handle, const struct fairlock_asking *asking,
                        void *context)
{
  count_asked(handle, asking, context);
  memset(asking_words, 0, sizeof asking_words);
  if (asking->size > 0) memcpy(asking_words, asking->words, asking->size);
}

static char breaking_words[256];

static void note_breaking(enum fairlock_log_event event, int status, const char *text,
                          void *context)
{
  (void)status;
  (void)context;
  if (event == FAIRLOCK_LOG_BROKEN)
    (void)snprintf(breaking_words, sizeof breaking_words, "%s", text);
}

/* Who asks, or breaks, and why: for the holder, and for who looks at the lock then. */
static void test_words(void)
{
  static const char words[] = "anna@ops-1 stuck, \"since\" 4\n";
  static struct fairlock_log log = {.function = note_breaking};
  struct fairlock_target hold = {.token = FAIRLOCK_ANY_TOKEN, .words = words};
  begin();
  asked = 0;
  breaking_words[0] = 0;
  client_prepare(&here, server.port);
  here.config.asked = note_asking;
  here.config.asked_context = &asked;
  client_start(&here);
  client_open(&there, server.port);
  CHECK_EQUAL(fairlock_set_log(&here.client, &log), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_init(&mine, &here.client, "broken"), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_init(&next, &there.client, "broken"), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_init(&tool, &there.client, "broken"), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_try_acquire(&mine, FAIRLOCK_RENEW), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_start_ask_release(&tool, &hold), FAIRLOCK_PENDING);
  CHECK_EQUAL(await_result(&there, &tool), FAIRLOCK_OK);
  AWAIT(asked > 0, service_for(&here, 10));
  CHECK_BYTES(asking_words, strlen(asking_words), words, strlen(words));
  CHECK_EQUAL(fairlock_start_force_release(&tool, &hold), FAIRLOCK_PENDING);
  CHECK_EQUAL(await_result(&there, &tool), FAIRLOCK_OK);
  AWAIT(here.losses > 0, service_for(&here, 10));
  CHECK_EQUAL(here.losses, 1);
  CHECK_BYTES(breaking_words, 2, "0 ", 2);
  CHECK_BYTES(breaking_words + 2, strlen(breaking_words + 2), words, strlen(words));
  look();
  CHECK_EQUAL(report.last.end, FAIRLOCK_LAST_BROKEN);
  CHECK_BYTES(last_words, strlen(last_words), words, strlen(words));
  CHECK_EQUAL(fairlock_release(&mine), FAIRLOCK_LOST);
  end_asked();
}

/* Words that the holder has no room for: it is told all the same, and who looks sees them. */
static void test_words_without_room(void)
{
  static char words[64 + 1 + 128 + 1];
  struct fairlock_target hold = {.token = FAIRLOCK_ANY_TOKEN, .words = words};
  memset(words, 'x', sizeof words - 1);
  words[64] = ' ';
  begin();
  client_prepare(&here, server.port);
  here.config.lease_ms = 300000;
  here.config.receive_size = FAIRLOCK_RECEIVE_SIZE(6U, 0U);
  client_start(&here);
  client_open(&there, server.port);
  CHECK_EQUAL(fairlock_init(&mine, &here.client, "broken"), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_init(&next, &there.client, "broken"), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_init(&tool, &there.client, "broken"), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_acquire(&mine, 1000, FAIRLOCK_RENEW), FAIRLOCK_OK);
  int64_t began = now_ms();
  CHECK_EQUAL(fairlock_start_force_release(&tool, &hold), FAIRLOCK_PENDING);
  CHECK_EQUAL(await_result(&there, &tool), FAIRLOCK_OK);
  CHECK(lost_after_ms(began) < 10000);
  look();
  CHECK_BYTES(last_words, strlen(last_words), words, strlen(words));
  CHECK_EQUAL(fairlock_release(&mine), FAIRLOCK_LOST);
  end_asked();
}

/* A message that comes for nothing ends no hold: the renewal finds it as it was. */
static void test_told_in_vain(void)
{
  char holder[FAIRLOCK_HOLDER_ID_SIZE];
  struct fairlock_counters counters = {0};
  begin_with(true, 300000);
  CHECK_EQUAL(fairlock_try_acquire(&mine, FAIRLOCK_RENEW), FAIRLOCK_OK);
  fairlock_id(&mine, holder, FAIRLOCK_HOLDER_ID_SIZE);
  CHECK(raw_run(&redis, "PEXPIRE broken 60000"));
  CHECK(raw_run(&redis, "PUBLISH redisson_lock__channel:{broken}:%s 0", holder));
  AWAIT(counters.renewals > 0,
        (service_for(&here, 10), fairlock_read_counters(&here.client, &counters, sizeof counters)));
  CHECK_EQUAL(counters.renewals, 1);
  CHECK_EQUAL(here.losses, 0);
  look();
  CHECK(report.ttl_ms > 60000);
  CHECK_EQUAL(fairlock_release(&mine), FAIRLOCK_OK);
  end_asked();
}

static void test_ask(void)
{
  begin_asked(true);
  CHECK_EQUAL(ask(FAIRLOCK_ANY_TOKEN), FAIRLOCK_NOT_HELD);
  CHECK_EQUAL(fairlock_try_acquire(&mine, FAIRLOCK_RENEW), FAIRLOCK_OK);
  uint64_t token = fairlock_token(&mine);
  CHECK_EQUAL(ask(token - 1), FAIRLOCK_NOT_HELD);
  CHECK_EQUAL(ask(token), FAIRLOCK_OK);
  AWAIT(asked > 0, service_for(&here, 10));
  CHECK_EQUAL(asked, 1); /* messages keep their order: the first request sent none */
  CHECK_EQUAL(ask(FAIRLOCK_ANY_TOKEN), FAIRLOCK_OK);
  AWAIT(asked > 1, service_for(&here, 10));
  CHECK_EQUAL(asked, 2);
  look();
  CHECK(report.listens && report.token == token);
  CHECK(fairlock_remaining_ms(&mine) > 0);
  CHECK_EQUAL(fairlock_release(&mine), FAIRLOCK_OK);
  CHECK_EQUAL(ask(token), FAIRLOCK_NOT_HELD);
  end_asked();
  CHECK(nothing_left(&redis, "broken"));
}

/* One that has no `asked` listens only if it has waited, and ignores what it is told. */
static void test_ask_in_vain(void)
{
  begin_asked(false);
  CHECK_EQUAL(fairlock_try_acquire(&mine, FAIRLOCK_RENEW), FAIRLOCK_OK);
  CHECK_EQUAL(ask(fairlock_token(&mine)), FAIRLOCK_NOT_LISTENING);
  CHECK_EQUAL(fairlock_release(&mine), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_acquire(&mine, 1000, FAIRLOCK_RENEW), FAIRLOCK_OK);
  CHECK_EQUAL(ask(fairlock_token(&mine)), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_release(&mine), FAIRLOCK_OK); /* the message comes before this is answered */
  CHECK_EQUAL(asked, 0);
  end_asked();
}

/* A holder in a cluster listens by shard. */
static void test_ask_by_shard(void)
{
  static struct raw other;
  char holder[FAIRLOCK_HOLDER_ID_SIZE];
  char token[24];
  begin_asked(false);
  CHECK_EQUAL(fairlock_try_acquire(&mine, FAIRLOCK_RENEW), FAIRLOCK_OK);
  fairlock_id(&mine, holder, FAIRLOCK_HOLDER_ID_SIZE);
  (void)snprintf(token, sizeof token, "%llu", (unsigned long long)fairlock_token(&mine));
  CHECK(raw_open(&other, server.port));
  if (raw_run(&other, "SSUBSCRIBE redisson_lock__channel:{broken}:%s", holder)) {
    CHECK_EQUAL(ask(FAIRLOCK_ANY_TOKEN), FAIRLOCK_OK);
    if (CHECK(raw_reply(&other)))
      CHECK_BYTES(other.element[other.count - 1].text, strlen(token), token, strlen(token));
  } else {
    printf("# this server has no shard channels\n");
  }
  raw_close(&other);
  CHECK_EQUAL(fairlock_release(&mine), FAIRLOCK_OK);
  end_asked();
}

/* What is left of the lease, as if the holder had been silent until now. */
static void leave_ms(int ms)
{
  CHECK(raw_run(&redis, "PEXPIRE broken %d", ms));
}

/* A holder that renews is dead when two renewals are missing, and alive again when it renews. */
static void test_alive(void)
{
  begin_asked(false);
  CHECK_EQUAL(fairlock_try_acquire(&mine, FAIRLOCK_RENEW), FAIRLOCK_OK);
  look();
  CHECK(report.life == FAIRLOCK_LIFE_ALIVE && report.renews);
  CHECK_EQUAL(report.lease_ms, 30000);
  CHECK(report.unheard_ms >= 0 && report.unheard_ms < 20000);
  leave_ms(9900);
  look();
  CHECK(report.life == FAIRLOCK_LIFE_DEAD && report.unheard_ms >= 20100 &&
        report.unheard_ms <= 30000);
  CHECK_EQUAL(fairlock_try_acquire(&mine, FAIRLOCK_RENEW), FAIRLOCK_OK);
  look();
  CHECK(report.life == FAIRLOCK_LIFE_ALIVE && report.unheard_ms < 20000);
  CHECK_EQUAL(fairlock_release(&mine), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_release(&mine), FAIRLOCK_OK);
  look();
  CHECK(report.id == NULL && report.lease_ms == 0 && report.unheard_ms == -1);
  end_asked();
}

/* So is one that began to renew by a re-entry; but what is left of a longer lease says nothing. */
static void test_alive_reentered(void)
{
  begin_asked(false);
  CHECK_EQUAL(fairlock_try_acquire(&mine, 10000), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_try_acquire(&mine, FAIRLOCK_RENEW), FAIRLOCK_OK);
  look();
  CHECK(report.life == FAIRLOCK_LIFE_ALIVE && report.renews);
  CHECK_EQUAL(report.lease_ms, 30000);
  leave_ms(9900);
  look();
  CHECK(report.life == FAIRLOCK_LIFE_DEAD);
  CHECK_EQUAL(fairlock_release(&mine), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_release(&mine), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_try_acquire(&mine, 3600000), FAIRLOCK_OK);
  for (int times = 0; times < 2; times++) {
    CHECK_EQUAL(fairlock_try_acquire(&mine, FAIRLOCK_RENEW), FAIRLOCK_OK);
    leave_ms(40000);
    look();
    CHECK(report.life == FAIRLOCK_LIFE_UNKNOWN && !report.renews);
  }
  for (int times = 0; times < 3; times++)
    CHECK_EQUAL(fairlock_release(&mine), FAIRLOCK_OK);
  end_asked();
}

/* The same of one that is silent indeed, for as long as its lease lasts. */
static void test_silent(void)
{
  begin_with(false, 9000);
  CHECK_EQUAL(fairlock_try_acquire(&mine, FAIRLOCK_RENEW), FAIRLOCK_OK);
  AWAIT((look(), report.life == FAIRLOCK_LIFE_DEAD), sleep_ms(10));
  CHECK(report.unheard_ms > 6000 && report.unheard_ms <= 9000 && report.ttl_ms < 3000);
  (void)fairlock_release(&mine);
  end_asked();
}

/* A lease that is not renewed says nothing of its holder; nor does one of another client's. */
static void test_alive_unknown(void)
{
  begin_asked(false);
  CHECK_EQUAL(fairlock_try_acquire(&mine, 30000), FAIRLOCK_OK);
  leave_ms(9900);
  look();
  CHECK(report.life == FAIRLOCK_LIFE_UNKNOWN && !report.renews);
  CHECK_EQUAL(report.lease_ms, 30000);
  CHECK(report.unheard_ms >= 20100 && report.unheard_ms <= 30000);
  CHECK_EQUAL(fairlock_release(&mine), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_try_acquire(&mine, FAIRLOCK_RENEW), FAIRLOCK_OK);
  CHECK(raw_run(&redis, "HSET fairlock:{broken} lease %s", "1700000000000000 90000+"));
  look();
  CHECK(report.life != FAIRLOCK_LIFE_DEAD && report.token == fairlock_token(&mine));
  CHECK_EQUAL(report.lease_ms, 0);
  CHECK_EQUAL(report.unheard_ms, -1);
  CHECK_EQUAL(fairlock_release(&mine), FAIRLOCK_OK);
  end_asked();
}

/* A handover says nothing of the lease; its confirmation does, and so does a re-entry. */
static void test_lease_after_handover(void)
{
  begin_asked(false);
  CHECK_EQUAL(fairlock_acquire(&next, 0, FAIRLOCK_RENEW), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_start_acquire(&mine, 15000, FAIRLOCK_RENEW), FAIRLOCK_PENDING);
  AWAIT(queue_length(&redis, "broken") == 1, service_for(&here, 10));
  CHECK_EQUAL(fairlock_release(&next), FAIRLOCK_OK);
  look();
  CHECK_EQUAL(report.hold_count, 0);
  CHECK_EQUAL(report.lease_ms, 0);
  CHECK_EQUAL(await_result(&here, &mine), FAIRLOCK_OK);
  AWAIT((look(), report.hold_count == 1), service_for(&here, 10));
  CHECK(report.renews && report.life != FAIRLOCK_LIFE_DEAD);
  CHECK_EQUAL(report.lease_ms, 30000);
  CHECK_EQUAL(fairlock_try_acquire(&mine, FAIRLOCK_RENEW), FAIRLOCK_OK);
  look();
  CHECK_EQUAL(report.hold_count, 2);
  CHECK_EQUAL(report.lease_ms, 30000);
  CHECK(report.renews && report.unheard_ms < 20000);
  /* also within the millisecond in which the lease began */
  for (int i = 0; i < 50; i++) {
    CHECK_EQUAL(fairlock_try_acquire(&mine, FAIRLOCK_RENEW), FAIRLOCK_OK);
    look();
    CHECK_EQUAL(report.lease_ms, 30000);
  }
  for (int i = 0; i < 52; i++)
    CHECK_EQUAL(fairlock_release(&mine), FAIRLOCK_OK);
  end_asked();
}

static void look_at(const char *field, const char *value)
{
  CHECK(raw_run(&redis, "HSET fairlock:{broken} %s %s", field, value));
  look();
  CHECK(report.kind == FAIRLOCK_KIND_FAIRLOCK && report.id != NULL);
}

/*
 * What no client writes into the notes is not known: the rest is shown, and the hold can be broken.
 */
static void test_unreadable(void)
{
  static const char *const tokens[] = {"",
                                       "abc",
                                       "-5",
                                       "1e15",
                                       "12 ",
                                       "9007199254740993",
                                       "9223372036854775808",
                                       "99999999999999999999999999"};
  char token[24];
  char lease[48];
  begin_asked(false);
  CHECK_EQUAL(fairlock_try_acquire(&mine, FAIRLOCK_RENEW), FAIRLOCK_OK);
  (void)snprintf(token, sizeof token, "%llu", (unsigned long long)fairlock_token(&mine));
  for (size_t i = 0; i < sizeof tokens / sizeof tokens[0]; i++) {
    look_at("token", tokens[i]);
    CHECK_EQUAL((int64_t)report.token, 0);
    CHECK_EQUAL(report.lease_ms, 0);
  }
  look_at("token", token);
  CHECK_EQUAL(report.lease_ms, 30000);
  (void)snprintf(lease, sizeof lease, "%s 40000+ and more", token); /* of a later release */
  look_at("lease", lease);
  CHECK(report.lease_ms == 40000 && report.renews);
  (void)snprintf(lease, sizeof lease, "%s 4294967296+", token);
  look_at("lease", lease);
  CHECK_EQUAL(report.lease_ms, 0);
  (void)snprintf(lease, sizeof lease, "%s 9999999999+", token);
  look_at("lease", lease);
  CHECK_EQUAL(report.lease_ms, 0);
  CHECK(report.life != FAIRLOCK_LIFE_DEAD);
  CHECK(raw_run(&redis, "HDEL fairlock:{broken} token"));
  look();
  CHECK_EQUAL((int64_t)report.token, 0);
  CHECK_EQUAL(force(FAIRLOCK_ANY_TOKEN), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_release(&mine), FAIRLOCK_LOST);
  end_asked();
}

/* What is told of the last hold of the lock, which is free. */
static bool last_was(struct fairlock *handle, uint64_t token, enum fairlock_last_end end)
{
  char holder[FAIRLOCK_HOLDER_ID_SIZE];
  fairlock_id(handle, holder, FAIRLOCK_HOLDER_ID_SIZE);
  look();
  return CHECK(report.id == NULL && report.holder_count == 0 && report.token == 0) &&
         CHECK_EQUAL(report.last.token, token) && CHECK_EQUAL(report.last.end, end) &&
         CHECK_BYTES(last_id, strlen(last_id), holder, strlen(holder));
}

static void test_last(void)
{
  begin_asked(false);
  look();
  CHECK(report.id == NULL && report.last.id == NULL && report.last.token == 0);
  CHECK_EQUAL(fairlock_try_acquire(&mine, FAIRLOCK_RENEW), FAIRLOCK_OK);
  look();
  CHECK(report.id != NULL && report.last.id == NULL); /* it is held */
  uint64_t token = fairlock_token(&mine);
  sleep_ms(100);
  CHECK_EQUAL(fairlock_release(&mine), FAIRLOCK_OK);
  CHECK(last_was(&mine, token, FAIRLOCK_LAST_RELEASED));
  int64_t lasted_ms = report.last.lasted_ms;
  CHECK(lasted_ms >= 100 && lasted_ms < 100000);
  sleep_ms(100);
  look();
  CHECK_EQUAL(report.last.lasted_ms, lasted_ms);

  CHECK_EQUAL(fairlock_try_acquire(&mine, FAIRLOCK_RENEW), FAIRLOCK_OK);
  token = fairlock_token(&mine);
  sleep_ms(100);
  CHECK_EQUAL(force(token), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_release(&mine), FAIRLOCK_LOST);
  CHECK(last_was(&mine, token, FAIRLOCK_LAST_BROKEN));
  CHECK(report.last.lasted_ms >= 99 && report.last.lasted_ms < 100000);
  CHECK_EQUAL(report.last.words_size, 0);

  CHECK_EQUAL(fairlock_try_acquire(&mine, FAIRLOCK_RENEW), FAIRLOCK_OK);
  token = fairlock_token(&mine);
  CHECK(raw_run(&redis, "DEL broken"));
  CHECK(last_was(&mine, token, FAIRLOCK_LAST_EXPIRED));
  CHECK_EQUAL(report.last.lasted_ms, -1);
  CHECK_EQUAL(fairlock_release(&mine), FAIRLOCK_LOST);
  end_asked();
}

/* A release that hands over says nothing, as another hold begins; who gives a claim back says it. */
static void test_last_after_handover(void)
{
  begin_asked(false);
  CHECK_EQUAL(fairlock_try_acquire(&mine, FAIRLOCK_RENEW), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_start_acquire(&next, 15000, FAIRLOCK_RENEW), FAIRLOCK_PENDING);
  AWAIT(queue_length(&redis, "broken") == 1, service_for(&there, 10));
  CHECK_EQUAL(fairlock_release(&mine), FAIRLOCK_OK);
  CHECK(raw_run(&redis, "DEL broken"));
  look();
  CHECK_EQUAL(report.last.end, FAIRLOCK_LAST_EXPIRED);
  CHECK_EQUAL(report.last.lasted_ms, -1);
  (void)await_result(&there, &next);
  (void)fairlock_release(&next);
  end_asked();
}

/* What the notes may have. */
static void test_last_unreadable(void)
{
  static const struct {
    const char *notes;
    uint64_t token;
    int64_t lasted_ms;
    enum fairlock_last_end end;
    const char *words;
  } rows[] = {
      {"token 1700000000000000 holder h:1", 1700000000000000, -1, FAIRLOCK_LAST_EXPIRED, ""},
      /* released by an earlier release */
      {"token 1700000000000000 holder h:1 released 1700000000000000", 1700000000000000, -1,
       FAIRLOCK_LAST_RELEASED, ""},
      /* shared, so another hold was the last */
      {"token 1700000000000000 holder h:1 ended 1600000000000000%b1700000002500000",
       1700000000000000, 2500, FAIRLOCK_LAST_RELEASED, ""},
      {"token 1700000000000000 holder h:1 ended 1600000000000000%b1600000002500000",
       1700000000000000, -1, FAIRLOCK_LAST_EXPIRED, ""},
      /* the later one counts */
      {"token 1700000000000000 holder h:1 ended 1%b1700000002500000 broken 2%b1700000003000%bx@y",
       1700000000000000, 3000, FAIRLOCK_LAST_BROKEN, "x@y"},
      {"token 1700000000000000 holder h:1 ended 1%b1700000002500000 broken 2%b1700000001000%bx@y",
       1700000000000000, 2500, FAIRLOCK_LAST_RELEASED, ""},
      /* a token ahead of the clock */
      {"token 1700000000000000 holder h:1 broken 1700000000000000%b1600000000000", 1700000000000000,
       0, FAIRLOCK_LAST_BROKEN, ""},
      {"token 1700000000000000 holder h:1 ended abc broken 1700000000000000", 1700000000000000, -1,
       FAIRLOCK_LAST_EXPIRED, ""},
      {"token 1700000000000000 holder h%b1 ended 1%b1700000002500000", 0, 0, FAIRLOCK_LAST_EXPIRED,
       ""},
      {"token x holder h:1 ended x%b1700000002500000", 0, 0, FAIRLOCK_LAST_EXPIRED, ""},
      {"holder h:1", 0, 0, FAIRLOCK_LAST_EXPIRED, ""},
      {"token 1700000000000000", 0, 0, FAIRLOCK_LAST_EXPIRED, ""},
  };
  begin_asked(false);
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    static const char space[] = " ";
    const size_t one = 1;
    (void)raw_run(&redis, "DEL fairlock:{broken}");
    char format[256];
    (void)snprintf(format, sizeof format, "HSET fairlock:{broken} %s", rows[i].notes);
    CHECK(raw_run(&redis, format, space, one, space, one, space, one));
    look();
    CHECK(report.id == NULL);
    CHECK_EQUAL(report.last.id == NULL, rows[i].token == 0);
    CHECK_EQUAL(report.last.token, rows[i].token);
    CHECK_EQUAL(report.last.lasted_ms, rows[i].lasted_ms);
    CHECK_EQUAL(report.last.end, rows[i].end);
    CHECK_BYTES(last_words, strlen(last_words), rows[i].words, strlen(rows[i].words));
  }
  (void)raw_run(&redis, "DEL fairlock:{broken}");
  end_asked();
}

const struct check_test check_tests[] = {
    {"break: only that hold", test_only_that_hold},
    {"break: again after a handover", test_again_after_handover},
    {"break: a hold of Redisson's", test_redissons_hold},
    {"break: who listens is told at once", test_told},
    {"break: who is told for nothing holds", test_told_in_vain},
    {"break: who does it, and why", test_words},
    {"break: words without room", test_words_without_room},
    {"ask: the holder is told", test_ask},
    {"ask: one that does not listen, or ignores it", test_ask_in_vain},
    {"ask: by shard", test_ask_by_shard},
    {"alive: as long as it renews", test_alive},
    {"alive: one that began to renew by a re-entry", test_alive_reentered},
    {"alive: until it is silent", test_silent},
    {"alive: not known", test_alive_unknown},
    {"alive: after a handover", test_lease_after_handover},
    {"look: what cannot be read", test_unreadable},
    {"look: the last hold", test_last},
    {"look: the last hold after a handover", test_last_after_handover},
    {"look: what the notes may say of the last hold", test_last_unreadable},
    {NULL, NULL},
};
