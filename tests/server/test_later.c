/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What another release may have written: waiters whose notes say more, or cannot be read, and
 * fields that this one does not know.
 */
#include "fairlock_share.h"
#include "harness.h"

#include <string.h>

static struct client client;
static struct fairlock holder;

static void begin_later(void)
{
  begin();
  client_open(&client, server.port);
  CHECK_EQUAL(fairlock_init(&holder, &client.client, "later"), FAIRLOCK_OK);
}

static void end_later(void)
{
  CHECK_EQUAL(fairlock_deinit(&holder), FAIRLOCK_OK);
  client_close(&client);
}

/* Puts a waiter of another release last in line, with this note. */
static void line_up_other(const char *id, const char *note)
{
  CHECK(raw_run(&redis, "ZADD redisson_lock_timeout:{later} 9000000000000 %s", id));
  CHECK(raw_run(&redis, "RPUSH redisson_lock_queue:{later} %s", id));
  CHECK(raw_run(&redis, "HSET fairlock:{later} %s %s", id, note));
}

/* The next message on the channel begins with this text. */
static bool told(struct raw *raw, const char *text)
{
  return raw_reply_within(raw, SOON) && raw->count == 4 &&
         strncmp(raw->element[3].text, text, strlen(text)) == 0;
}

/*
 * A waiter whose note cannot be read is not dead: it is told to ask, as Redisson's are, and has as
 * long to come. If it does not, it is forgotten, and its note, too.
 */
static void forget_unless_it_comes(const char *note)
{
  static struct raw other;
  begin_later();
  CHECK(raw_open(&other, server.port));
  CHECK(raw_run(&other, "SUBSCRIBE redisson_lock__channel:{later}:other:1"));
  CHECK_EQUAL(fairlock_try_acquire(&holder, 60000), FAIRLOCK_OK);
  line_up_other("other:1", note);
  struct picture picture = inspect(&client, "later");
  CHECK(picture.ours == 1 && picture.later == 1 && picture.alive == 1 && picture.listening == 1);
  CHECK_EQUAL(fairlock_release(&holder), FAIRLOCK_OK);
  CHECK(told(&other, "0"));
  CHECK_EQUAL(fairlock_try_acquire(&holder, 60000), FAIRLOCK_BUSY);
  CHECK_EQUAL(queue_length(&redis, "later"), 1);
  CHECK_EQUAL(fairlock_acquire(&holder, 20000, 60000), FAIRLOCK_OK); /* after 5 s */
  CHECK_EQUAL(raw_number(&redis, "HEXISTS fairlock:{later} other:1"), 0);
  CHECK_EQUAL(fairlock_release(&holder), FAIRLOCK_OK);
  raw_close(&other);
  end_later();
  CHECK(nothing_left(&redis, "later"));
}

static void test_note_that_cannot_be_read(void)
{
  forget_unless_it_comes("at 1700000000 for 5000");
}

/* Redis would refuse that number as a lease, and stop the script. */
static void test_note_with_leading_zeros(void)
{
  forget_unless_it_comes("9999999999 0 005000");
}

/* A note may say more than we read. */
static void test_note_that_says_more(void)
{
  static struct raw other;
  begin_later();
  CHECK(raw_open(&other, server.port));
  CHECK(raw_run(&other, "SUBSCRIBE redisson_lock__channel:{later}:other:1"));
  CHECK_EQUAL(fairlock_try_acquire(&holder, 60000), FAIRLOCK_OK);
  line_up_other("other:1", "9000000000 0 5000 and more");
  struct picture picture = inspect(&client, "later");
  CHECK(picture.ours == 1 && picture.later == 0 && picture.alive == 1 && picture.listening == 1);
  CHECK_EQUAL(fairlock_release(&holder), FAIRLOCK_OK);
  CHECK(told(&other, "1")); /* until 2033 the token begins with it */
  CHECK_EQUAL(raw_number(&redis, "HGET later other:1"), 0);
  raw_close(&other);
  end_later();
}

/* What waiters have left behind is dropped after a while; what a later release keeps is not. */
static void test_fields_of_a_later_release(void)
{
  begin_later();
  CHECK(raw_run(&redis, "HSET fairlock:{later} token 1000000 later yes a:1 1 suspect:b:1 1 c:1 1"));
  CHECK(raw_run(&redis, "HSET fairlock:{later} d:1 1 e:1 1"));
  CHECK_EQUAL(fairlock_try_acquire(&holder, 60000), FAIRLOCK_OK);
  CHECK_EQUAL(raw_number(&redis, "HEXISTS fairlock:{later} later"), 1);
  CHECK_EQUAL(raw_number(&redis, "HLEN fairlock:{later}"), 5);
  CHECK_EQUAL(fairlock_release(&holder), FAIRLOCK_OK);
  end_later();
  CHECK(nothing_left(&redis, "later"));
}

/* The report of the holder says that a later release uses the lock. */
static bool note_outdated(const struct fairlock_report *report, void *context)
{
  if (report->place == 0) *(bool *)context = report->outdated;
  return true;
}

static bool shown_outdated(void)
{
  bool outdated = false;
  CHECK_EQUAL(fairlock_inspect(&client.client, "later", 5, note_outdated, &outdated), FAIRLOCK_OK);
  return outdated;
}

/* Who comes now is told, with the words, and changes nothing. */
static void check_barred(void)
{
  static struct client newcomer;
  static struct fairlock_downgrading sharing;
  static struct fairlock_shared shared;
  struct fairlock handle;
  client_open(&newcomer, server.port);
  fairlock_use_downgrading(&newcomer.client, &sharing);
  CHECK_EQUAL(fairlock_init(&handle, &newcomer.client, "later"), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_init_shared(&shared, &newcomer.client, "later", 2), FAIRLOCK_OK);
  int64_t fields = raw_number(&redis, "HLEN fairlock:{later}");
  int64_t holders = raw_number(&redis, "HLEN later");
  int64_t waiters = queue_length(&redis, "later");
  for (int i = 0; i < 2; i++) {
    struct fairlock *one = i == 0 ? &handle : &shared.handle;
    CHECK_EQUAL(fairlock_try_acquire(one, 60000), FAIRLOCK_OUTDATED);
    CHECK(strcmp(client_error(&newcomer), "NEEDS several words") == 0);
    CHECK_EQUAL(fairlock_acquire(one, 60000, FAIRLOCK_RENEW), FAIRLOCK_OUTDATED);
  }
  CHECK_EQUAL(fairlock_force_release(&newcomer.client, "later", 5, FAIRLOCK_ANY_TOKEN),
              FAIRLOCK_OUTDATED);
  CHECK(shown_outdated());
  CHECK_EQUAL(fairlock_deinit(&shared.handle), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_deinit(&handle), FAIRLOCK_OK);
  client_close(&newcomer);
  CHECK_EQUAL(raw_number(&redis, "HLEN fairlock:{later}"), fields);
  CHECK_EQUAL(raw_number(&redis, "HLEN later"), holders);
  CHECK_EQUAL(queue_length(&redis, "later"), waiters);
}

/* A later release keeps those off that do not know its words; who holds or waits goes on, to the end. */
static void test_needs(void)
{
  static struct client second;
  char id[FAIRLOCK_HOLDER_ID_SIZE];
  struct fairlock waiter;
  begin_later();
  client_open(&second, server.port);
  CHECK_EQUAL(fairlock_init(&waiter, &second.client, "later"), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_acquire(&holder, 0, 60000), FAIRLOCK_OK);
  CHECK(!shown_outdated());
  CHECK_EQUAL(fairlock_start_acquire(&waiter, SOON, FAIRLOCK_RENEW), FAIRLOCK_PENDING);
  service_until_queued(&second, "later", 1);
  CHECK(raw_run(&redis, "HSET fairlock:{later} needs %s", "several words"));
  check_barred();
  fairlock_id(&waiter, id, sizeof id);
  CHECK_EQUAL(raw_number(&redis, "PUBLISH redisson_lock__channel:{later}:%s 0", id), 1);
  service_for(&second, 100); /* it asks */
  CHECK_EQUAL(fairlock_result(&waiter), FAIRLOCK_PENDING);
  CHECK_EQUAL(fairlock_acquire(&holder, 0, 60000), FAIRLOCK_OK); /* it re-enters */
  CHECK_EQUAL(fairlock_release(&holder), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_release(&holder), FAIRLOCK_OK);
  CHECK_EQUAL(hold_count_of(&redis, "later", id), 0); /* at once */
  CHECK_EQUAL(await_result(&second, &waiter), FAIRLOCK_OK);
  service_for(&second, 100); /* it confirms */
  CHECK_EQUAL(hold_count_of(&redis, "later", id), 1);
  check_barred();
  CHECK(raw_run(&redis, "DEL later"));
  CHECK_EQUAL(fairlock_release(&waiter), FAIRLOCK_LOST); /* and not OUTDATED */
  check_barred();                                        /* of a free lock, too */
  CHECK_EQUAL(fairlock_deinit(&waiter), FAIRLOCK_OK);
  client_close(&second);
  CHECK(raw_run(&redis, "HDEL fairlock:{later} needs"));
  CHECK_EQUAL(fairlock_try_acquire(&holder, 60000), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_release(&holder), FAIRLOCK_OK);
  end_later();
}

/* A waiter leaves that has lost its place: it does not hand the free lock to others by rules of its own. */
static void test_needs_late_leave(void)
{
  static struct client second;
  static struct raw other;
  struct fairlock waiter;
  begin_later();
  client_open(&second, server.port);
  CHECK(raw_open(&other, server.port));
  CHECK(raw_run(&other, "SUBSCRIBE redisson_lock__channel:{later}:other:1"));
  CHECK_EQUAL(fairlock_init(&waiter, &second.client, "later"), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_acquire(&holder, 0, 60000), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_start_acquire(&waiter, SOON, FAIRLOCK_RENEW), FAIRLOCK_PENDING);
  service_until_queued(&second, "later", 1);
  CHECK(raw_run(&redis, "DEL later redisson_lock_queue:{later} redisson_lock_timeout:{later}"));
  line_up_other("other:1", "9000000000 0 5000");
  CHECK(raw_run(&redis, "HSET fairlock:{later} needs x"));
  (void)fairlock_cancel(&waiter);
  CHECK_EQUAL(await_result(&second, &waiter), FAIRLOCK_CANCELLED);
  CHECK_EQUAL(fairlock_release(&holder), FAIRLOCK_LOST);
  CHECK_EQUAL(raw_number(&redis, "EXISTS later"), 0);
  CHECK_EQUAL(queue_length(&redis, "later"), 1);
  CHECK_EQUAL(fairlock_deinit(&waiter), FAIRLOCK_OK);
  client_close(&second);
  raw_close(&other);
  end_later();
}

/* A share that the lock has not become is none of those who hold: the exclusive hold is released. */
static void test_needs_downgrade(void)
{
  static struct fairlock_downgrading sharing;
  static struct fairlock_shared shared;
  char id[FAIRLOCK_HOLDER_ID_SIZE];
  begin_later();
  fairlock_use_downgrading(&client.client, &sharing);
  CHECK_EQUAL(fairlock_init_shared(&shared, &client.client, "later", 2), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_acquire(&holder, 0, 60000), FAIRLOCK_OK);
  CHECK(raw_run(&redis, "HSET fairlock:{later} needs x"));
  CHECK_EQUAL(fairlock_downgrade(&holder, &shared, 60000), FAIRLOCK_OUTDATED);
  CHECK_EQUAL(raw_number(&redis, "EXISTS later"), 0);
  CHECK(raw_run(&redis, "HDEL fairlock:{later} needs"));
  CHECK_EQUAL(fairlock_acquire(&shared.handle, 0, 60000), FAIRLOCK_OK);
  CHECK(raw_run(&redis, "HSET fairlock:{later} needs x"));
  CHECK_EQUAL(fairlock_acquire(&shared.handle, 0, 60000), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_release(&shared.handle), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_release(&shared.handle), FAIRLOCK_OK);
  CHECK_EQUAL(raw_number(&redis, "EXISTS later"), 0);
  fairlock_id(&shared.handle, id, sizeof id); /* of a share whose lease has ended */
  CHECK(raw_run(&redis, "HSET later %s %s", id, "1 1 1 1000"));
  CHECK_EQUAL(fairlock_try_acquire(&shared.handle, 60000), FAIRLOCK_OUTDATED);
  CHECK(raw_run(&redis, "DEL later"));
  CHECK_EQUAL(fairlock_deinit(&shared.handle), FAIRLOCK_OK);
  end_later();
}

const struct check_test check_tests[] = {
    {"later: what a later release needs", test_needs},
    {"later: needs: a late leave", test_needs_late_leave},
    {"later: needs: from alone to shared", test_needs_downgrade},
    {"later: a note that cannot be read", test_note_that_cannot_be_read},
    {"later: a note with leading zeros", test_note_with_leading_zeros},
    {"later: a note that says more", test_note_that_says_more},
    {"later: fields of a later release", test_fields_of_a_later_release},
    {NULL, NULL},
};
