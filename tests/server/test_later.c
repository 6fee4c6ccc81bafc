/*
 * What another release may have written: waiters whose notes say more, or cannot be read, and
 * fields that this one does not know.
 */
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

const struct check_test check_tests[] = {
    {"later: a note that cannot be read", test_note_that_cannot_be_read},
    {"later: a note with leading zeros", test_note_with_leading_zeros},
    {"later: a note that says more", test_note_that_says_more},
    {"later: fields of a later release", test_fields_of_a_later_release},
    {NULL, NULL},
};
