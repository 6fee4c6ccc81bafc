/* SPDX-License-Identifier: Apache-2.0 */
/* The tests of the engine, by file, and the steps that many of them take. */
#ifndef ENGINE_TESTS_H
#define ENGINE_TESTS_H

#include "engine_fixture.h"

static inline void reconnect(void)
{
  break_connection();
  pass(50);
  greet();
}

static inline void begin(void)
{
  set_up();
  greet();
}

/* The handle asks for the lock, and sends that. */
static inline void request(struct fairlock *handle, uint32_t wait_ms, uint32_t lease_ms)
{
  CHECK_EQUAL(fairlock_engine_acquire(handle, wait_ms, lease_ms, now), FAIRLOCK_PENDING);
  drain();
}

/* The answers to a's SUBSCRIBE and acquire. */
static inline void join(int state, int64_t value)
{
  push("subscribe", CHANNEL("1"), NULL);
  answer(state, value, 0);
}

static inline void release_a(void)
{
  CHECK_EQUAL(fairlock_engine_release(&a, now), FAIRLOCK_PENDING);
  drain();
  answer(1, 0, 0);
}

static inline void cancel_a(void)
{
  CHECK_EQUAL(fairlock_engine_cancel(&a, now), FAIRLOCK_OK);
  drain();
  answer(0, 0, 0);
}

static inline void lose_while_subscribing(void)
{
  begin();
  pass(4000);
  CHECK_EQUAL(fairlock_engine_acquire(&a, FAIRLOCK_FOREVER, 1000, now), FAIRLOCK_PENDING);
  CHECK(sends("SUBSCRIBE\r\n"));
  grant(CHANNEL("1"), "99", 4000);
  CHECK(fairlock_engine_remaining_ms(&a, now) > 0);
  pass(1000);
  CHECK_EQUAL(losses, 1);
}

/* engine_acquire.c */
void test_acquire_and_release(void);
void test_token_that_is_not_newer(void);
void test_lease_shorter_than_the_round_trip(void);
void test_token_after_the_largest(void);
void test_try_is_busy(void);
void test_noscript(void);
void test_noscript_of_one(void);
void test_deadline_while_writing(void);
void test_frozen_waiter_goes_on(void);
void test_peer_wakes(void);
void test_first_in_line_asks_when_the_lease_ends(void);
void test_timeout_leaves_the_queue(void);
void test_leave_refused_for_now(void);
void test_cancel_before_anything_was_sent(void);
void test_cancel_while_subscribing(void);
void test_wait_without_an_answer(void);
void test_try_gives_up(void);
void test_try_in_doubt_that_is_refused(void);
void test_leave_survives_a_refused_try(void);
void test_braces(void);
void test_id_is_the_servers(void);
void test_bytes_of_a_pair(void);
void test_one_client_id_for_two(void);
void test_small_send_buffer(void);
void test_acquire_in_doubt_is_left(void);

/* engine_subscribe.c */
void test_subscribe_refused(void);
void test_refused_subscription_is_repeated(void);
void test_denied_subscription_is_repeated(void);
void test_denied_unsubscription(void);
void test_subscription_without_a_message(void);
void test_messages_that_are_not_ours(void);
void test_messages_of_unknown_kinds(void);
void test_messages_to_an_idle_handle(void);
void test_message_without_a_subscription(void);

/* engine_grant.c */
void test_grant_to_an_earlier_place(void);
void test_heartbeat_and_grant(void);
void test_grant_that_is_too_old(void);
void test_try_after_a_grant_that_is_too_old(void);
void test_grant_after_a_slow_greeting(void);
void test_forged_grant(void);
void test_grant_that_says_more(void);
void test_grant_from_another_time(void);
void test_grant_from_the_future(void);
void test_unexpected_grant_is_given_back(void);
void test_grant_for_no_time(void);
void test_grant_for_too_long(void);
void test_short_lease_after_a_grant(void);
void test_short_lease_after_a_poll(void);
void test_renewed_lease_after_a_poll(void);

/* engine_reentry.c */
void test_reentry(void);
void test_reentry_of_a_longer_hold(void);
void test_reentry_that_starts_renewals(void);
void test_reentry_of_a_longer_hold_says_nothing(void);
void test_reentry_asks_for_what_is_left(void);
void test_reentry_confirms_a_longer_hold(void);
void test_too_many_holds(void);
void test_reentry_beyond_32767(void);
void test_refused_reentry_keeps_the_lease(void);
void test_expired_while_asleep(void);

/* engine_renewal.c */
void test_renewal_and_loss(void);
void test_released_token_is_named(void);
void test_older_token_is_not_believed(void);
void test_another_token_is_a_loss(void);
void test_loss_while_subscribing(void);
void test_lease_runs_out(void);
void test_lease_ran_out_long_ago(void);
void test_asks_after_a_break(void);
void test_longest_lease(void);
void test_lost_hold_leaves_the_queue(void);
void test_lost_hold_leaves(void);
void test_renewals_go_out_by_the_clock(void);

/* engine_release.c */
void test_release_finds_nothing(void);
void test_release_finds_nothing_and_leaves(void);
void test_release_in_the_background_finds_nothing(void);
void test_release_outlasts_a_shorter_wait(void);
void test_release_outlasts_a_shorter_wait_in_doubt(void);
void test_void_request_is_repeated(void);
void test_reply_lost_on_release(void);
void test_release_without_an_answer_is_unknown(void);
void test_release_outlasts_a_confirmation(void);
void test_release_outlasts_a_longer_lease(void);
void test_release_overtakes(void);
void test_partial_release_of_a_lost_hold(void);
void test_unknown_release_and_a_refused_try(void);

/* engine_late.c */
void test_ghost_of_an_acquire(void);
void test_ghost_of_an_acquire_with_a_long_lease(void);
void test_doubt_ends_with_later_answers(void);
void test_ghost_of_an_acquire_before_the_answer(void);
void test_ghost_of_an_acquire_between_releases(void);
void test_ghost_of_a_try(void);
void test_ghost_of_a_leave(void);
void test_grant_crosses_a_leave(void);
void test_ghost_of_a_leave_in_the_past(void);
void test_ghost_of_a_leave_in_the_far_past(void);
void test_a_wrong_time_is_forgotten(void);
void test_ghost_of_a_leave_is_forgotten(void);
void test_ghost_of_a_leave_beside_another_clock(void);
void test_ghost_of_a_very_slow_link(void);
void test_ghost_of_a_leave_after_an_idle_hour(void);
void test_answered_requests_are_not_feared(void);
void test_answered_requests_are_not_feared_after_a_failover(void);
void test_ghost_of_a_leave_by_a_fast_clock(void);
void test_ghost_of_a_leave_when_the_clock_is_set_back(void);
void test_doubt_has_a_bound(void);

/* engine_connection.c */
void test_silent_greeting(void);
void test_offline(void);
void test_connecting_takes_too_long(void);
void test_too_many_clients(void);
void test_greeting_with_everything(void);
void test_time_that_is_none(void);
void test_bytes_before_the_connection(void);
void test_back_off_has_an_end(void);
void test_back_off_differs(void);
void test_greeting_is_not_taken(void);
void test_no_answer_breaks_the_connection(void);
void test_half_an_answer_and_a_reconnect(void);
void test_endless_bytes(void);
void test_nonsense_breaks_the_connection(void);
void test_long_error(void);
void test_nonsense_is_no_answer(void);
void test_nonsense_for_an_acquire_leaves_a_doubt(void);

/* engine_time.c */
void test_suspended_before_an_answer(void);
void test_frozen_for_weeks(void);
void test_idle_for_weeks(void);
void test_nothing_is_due_when_free(void);
void test_nothing_is_due_when_lost(void);
void test_no_heartbeat_when_doubt_ends(void);
void test_slow_link(void);
void test_long_round_trip(void);
void test_claim(void);
void test_late_answers_and_the_waiter_timeout(void);
void test_nothing_is_sent_behind_a_late_answer(void);
void test_three_unanswered(void);
void test_fast_clock_and_doubt(void);
void test_second_answer_is_late(void);
void test_answers_in_order(void);
void test_too_many_unanswered(void);
void test_turns(void);
void test_oldest_request(void);
void test_ends_before_it_can_send(void);
void test_answer_before_the_end_of_a_request(void);
void test_frozen_device_reads_first(void);
void test_frozen_device_reads_one_by_one(void);
void test_longest_patience(void);
void test_late_greeting_is_forgotten(void);
void test_doubt_across_the_half_of_the_time(void);
void test_long_round_trip_is_forgotten(void);

/* engine_inspect.c */
void test_force_release(void);
void test_force_release_words(void);
void test_force_release_of_nothing(void);
void test_force_release_again(void);
void test_noscript_of_queries(void);
void test_force_release_half_written(void);
void test_ask(void);
void test_told_the_token(void);
void test_told_why_it_is_lost(void);
void test_inspect_stopped(void);
void test_asked(void);
void test_asked_for_another_hold(void);
void test_asked_nobody(void);
void test_asked_while_waiting(void);
void test_told_of_a_break(void);
void test_asked_after_a_break(void);
void test_asked_and_denied(void);
void test_renewal_is_announced(void);
void test_inspect_holder(void);
void test_inspect_last(void);
void test_inspect(void);
void test_inspect_sharers(void);
void test_inspect_rounded_end(void);
void test_inspect_limits(void);
void test_inspect_later_release(void);
void test_inspect_oddities(void);
void test_inspect_nonsense(void);

/* engine_remove.c */
void test_remove_ends_the_subscription(void);
void test_remove_unsubscribes_long_after_a_loss(void);
void test_refused_release_of_the_longest_lease(void);
void test_remove_unsubscribes_again(void);
void test_remove_comes_to_an_end(void);
void test_remove_is_refused_for_now(void);
void test_remove_has_no_time_to_unsubscribe(void);
void test_remove_ends_what_was_refused(void);
void test_refused_leave_is_owed(void);
void test_remove_while_subscribing(void);
void test_remove_in_the_middle_of_a_request(void);
void test_remove_in_the_middle_of_a_message(void);
void test_acquire_after_a_removal(void);
void test_remove_one_of_several(void);
void test_remove_offline(void);
void test_remove_offline_for_long(void);
void test_remove_with_a_subscription_unanswered(void);

/* engine_ended.c */
void test_told_of_each_operation(void);
void test_not_told_of_what_was_not_begun(void);
void test_told_of_a_cancelled_wait(void);
void test_told_of_a_loss_first(void);

/* engine_refusals.c */
void test_init_refuses(void);
void test_arguments(void);
void test_greeting_refused(void);
void test_requests_refused(void);
void test_denied_inside_a_script(void);
void test_slot_that_moves_is_not_followed(void);
void test_redis_6_2_says_where_first(void);
void test_an_error_that_may_pass_is_waited_out(void);
void test_refused_heartbeats_end_a_wait(void);
void test_refused_until_the_limit(void);
void test_repeated_heartbeats_end_a_wait(void);
void test_breaks_end_a_wait(void);
void test_others_refusals_end_no_wait(void);
void test_refusals_of_others_and_the_next_wait(void);
void test_a_refusal_is_not_why_the_server_is_gone(void);
void test_a_greeting_refused_is_not_why_the_server_is_gone(void);
void test_status_words(void);
void test_version_of_the_library(void);
void test_error_text_has_an_end(void);

#endif
