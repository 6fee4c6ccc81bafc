/* SPDX-License-Identifier: Apache-2.0 */
/*
 * FAIRLOCK_ASSERT: each public function calls it when it is handed NULL, or a handle or
 * client that was never initialised, before it touches either.
 */
#include <setjmp.h>
#include <stdio.h>
#include <string.h>

#include "check.h"

static jmp_buf caller;
static int failures;

static _Noreturn void fail(void)
{
  failures++;
  longjmp(caller, 1);
}

#undef FAIRLOCK_ASSERT
#define FAIRLOCK_ASSERT(condition) ((condition) ? (void)0 : fail())
#include "../../lock/client.c"
#include "support/counters.h"

static int no_connect(void *context, uint32_t timeout_ms)
{
  (void)context;
  (void)timeout_ms;
  return PORT_UNREACHABLE;
}

static void no_close(void *context)
{
  (void)context;
}

static struct port_transport transport = {.connect = no_connect, .close = no_close};
static uint8_t buffer[512];
static const struct fairlock_config config = {.receive_buffer = buffer,
                                              .receive_size = 256,
                                              .send_buffer = buffer + 256,
                                              .send_size = 256,
                                              .client_id = "id"};
static struct fairlock_client good;

static bool ignore(const struct fairlock_report *report, void *context)
{
  (void)report;
  (void)context;
  return true;
}

/* What is called: with NULL, and with memory that holds nothing but zeros. */
static struct fairlock *handle;
static struct fairlock_client *client;

static void call_client_init(void)
{
  if (client != NULL) (void)fairlock_client_init(client, NULL, &transport);
  else (void)fairlock_client_init(NULL, &config, &transport);
}

static void call_client_deinit(void)
{
  fairlock_client_deinit(client);
}

static void call_follow(void)
{
  static struct fairlock_topology topology;
  if (client != NULL) (void)fairlock_follow(client, &topology);
  else (void)fairlock_follow(&good, NULL);
}

static void call_use_keeping(void)
{
  static struct fairlock_keeping keeper = {.keep_ms = 1000};
  if (client != NULL) (void)fairlock_use_keeping(client, &keeper);
  else (void)fairlock_use_keeping(&good, NULL);
}

static void call_use_downgrading(void)
{
  static struct fairlock_downgrading option;
  if (client != NULL) fairlock_use_downgrading(client, &option);
  else fairlock_use_downgrading(&good, NULL);
}

static void ignore_event(enum fairlock_log_event event, int status, const char *text, void *context)
{
  (void)event;
  (void)status;
  (void)text;
  (void)context;
}

static void call_set_log(void)
{
  static struct fairlock_log journal = {.function = ignore_event};
  if (client != NULL) fairlock_set_log(client, &journal);
  else fairlock_set_log(&good, NULL);
}

static bool no_credentials(struct fairlock_login *login, void *context)
{
  (void)login;
  (void)context;
  return false;
}

static void call_use_credentials(void)
{
  static struct fairlock_credentials credentials = {.function = no_credentials};
  if (client != NULL) fairlock_use_credentials(client, &credentials);
  else fairlock_use_credentials(&good, NULL);
}

static void call_connect(void)
{
  (void)fairlock_connect(client);
}

static void call_init(void)
{
  if (client != NULL) (void)fairlock_init(handle, client, "door");
  else (void)fairlock_init(NULL, &good, "door");
}

static void call_init_bytes(void)
{
  if (client != NULL) (void)fairlock_init_bytes(handle, client, "door", 4);
  else (void)fairlock_init_bytes(NULL, &good, "door", 4);
}

static void call_init_shared(void)
{
  static struct fairlock_shared shared;
  if (client != NULL) (void)fairlock_init_shared(&shared, client, "door", 0);
  else (void)fairlock_init_shared(NULL, &good, "door", 0);
}

static void call_init_shared_bytes(void)
{
  static struct fairlock_shared shared;
  if (client != NULL) (void)fairlock_init_shared_bytes(&shared, client, "door", 4, 0);
  else (void)fairlock_init_shared_bytes(NULL, &good, "door", 4, 0);
}

static void call_deinit(void)
{
  (void)fairlock_deinit(handle);
}

static void call_start_deinit(void)
{
  (void)fairlock_start_deinit(handle);
}

static void call_acquire(void)
{
  (void)fairlock_acquire(handle, 0, 1000);
}

static void call_try_acquire(void)
{
  (void)fairlock_try_acquire(handle, 1000);
}

static void call_release(void)
{
  (void)fairlock_release(handle);
}

static void call_remaining_ms(void)
{
  (void)fairlock_remaining_ms(handle);
}

static void call_hold_count(void)
{
  (void)fairlock_hold_count(handle);
}

static void call_token(void)
{
  (void)fairlock_token(handle);
}

static void call_cancel(void)
{
  (void)fairlock_cancel(handle);
}

static void call_adopt(void)
{
  (void)fairlock_adopt(handle);
}

static void call_force_release(void)
{
  (void)fairlock_force_release(client, "door", 4, FAIRLOCK_ANY_TOKEN);
}

static void call_ask_release(void)
{
  (void)fairlock_ask_release(client, "door", 4, FAIRLOCK_ANY_TOKEN);
}

static void call_inspect(void)
{
  (void)fairlock_inspect(client, "door", 4, ignore, NULL);
}

static void call_wait(void)
{
  (void)fairlock_wait(handle, 0);
}

static void call_abandon(void)
{
  static struct fairlock_rest rest;
  (void)fairlock_abandon(handle, &rest);
}

static void call_start_acquire(void)
{
  (void)fairlock_start_acquire(handle, 0, 1000);
}

static void call_start_release(void)
{
  (void)fairlock_start_release(handle);
}

static void call_downgrade(void)
{
  static struct fairlock_shared shared;
  (void)fairlock_downgrade(handle, &shared, 0);
}

static void call_start_downgrade(void)
{
  static struct fairlock_shared shared;
  (void)fairlock_start_downgrade(handle, &shared, 0);
}

static void call_start_force_release(void)
{
  (void)fairlock_start_force_release(handle, NULL);
}

static void call_start_ask_release(void)
{
  (void)fairlock_start_ask_release(handle, NULL);
}

static void call_start_inspect(void)
{
  (void)fairlock_start_inspect(handle, ignore, NULL);
}

static void call_result(void)
{
  (void)fairlock_result(handle);
}

static void call_poll(void)
{
  (void)fairlock_poll(client, 0);
}

static void call_wants(void)
{
  (void)fairlock_wants(client);
}

static void call_run(void)
{
  fairlock_run(client);
}

static void call_stop(void)
{
  fairlock_stop(client);
}

static void call_server_status(void)
{
  (void)fairlock_server_status(NULL);
}

static void call_error(void)
{
  char text[FAIRLOCK_ERROR_SIZE];
  if (client != NULL) fairlock_error(client, text, FAIRLOCK_ERROR_SIZE);
  else fairlock_error(&good, NULL, FAIRLOCK_ERROR_SIZE);
}

static void call_read_counters(void)
{
  (void)counters_of(client);
}

static void call_id(void)
{
  char text[FAIRLOCK_HOLDER_ID_SIZE];
  fairlock_id(handle, text, FAIRLOCK_HOLDER_ID_SIZE);
}

#define CALL(name)                                                                                 \
  {                                                                                                \
    "fairlock_" #name, call_##name                                                                 \
  }
static const struct {
  const char *name;
  void (*run)(void);
} calls[] = {CALL(client_init),
             CALL(client_deinit),
             CALL(follow),
             CALL(use_keeping),
             CALL(set_log),
             CALL(use_credentials),
             CALL(connect),
             CALL(init),
             CALL(init_bytes),
             CALL(deinit),
             CALL(acquire),
             CALL(try_acquire),
             CALL(release),
             CALL(remaining_ms),
             CALL(hold_count),
             CALL(token),
             CALL(cancel),
             CALL(adopt),
             CALL(force_release),
             CALL(ask_release),
             CALL(inspect),
             CALL(start_acquire),
             CALL(start_release),
             CALL(start_force_release),
             CALL(result),
             CALL(start_inspect),
             CALL(start_deinit),
             CALL(abandon),
             CALL(wait),
             CALL(start_ask_release),
             CALL(poll),
             CALL(wants),
             CALL(run),
             CALL(stop),
             CALL(error),
             CALL(server_status),
             CALL(read_counters),
             CALL(id),
             CALL(use_downgrading),
             CALL(init_shared),
             CALL(init_shared_bytes),
             CALL(downgrade),
             CALL(start_downgrade)};
enum { CALLS = sizeof calls / sizeof calls[0] };

static void run_guarded(void (*run)(void))
{
  if (setjmp(caller) == 0) run();
}

static void call_all(struct fairlock *with_handle, struct fairlock_client *with_client)
{
  for (size_t i = 0; i < CALLS; i++) {
    failures = 0;
    handle = with_handle;
    client = with_client;
    run_guarded(calls[i].run);
    if (!CHECK_EQUAL(failures, 1)) check_write(calls[i].name);
  }
}

static void test_null(void)
{
  CHECK_EQUAL(fairlock_client_init(&good, &config, &transport), FAIRLOCK_OK);
  call_all(NULL, NULL);
  fairlock_client_deinit(&good);
}

static void test_never_initialised(void)
{
  static struct fairlock blank;
  static struct fairlock_client blank_client;
  call_all(&blank, &blank_client);
}

/*
 * None is missing above: every function in the public headers whose first parameter is a client or a handle.
 */
static void test_all_are_called(void)
{
  char line[256];
  unsigned found = 0;
  FILE *header = popen("cat lock/fairlock*.h", "r");
  if (!CHECK(header != NULL)) return;
  while (fgets(line, sizeof line, header) != NULL) {
    const char *name = strstr(line, "fairlock_");
    while (name != NULL && name[strcspn(name, " *;,(\n")] != '(')
      name = strstr(name + 1, "fairlock_");
    if (strstr(line, "*const handles[]") != NULL) continue; /* it calls others for each */
    bool takes_one = strstr(line, "(struct fairlock *") ||
                     strstr(line, "(struct fairlock_client *") ||
                     strstr(line, "(struct fairlock_shared *");
    bool declares = line[0] >= 'a' && line[0] <= 'z' && strncmp(line, "typedef", 7) != 0;
    if (!declares || name == NULL || !takes_one) continue;
    size_t size = strcspn(name, "(");
    bool called = false;
    for (size_t i = 0; i < CALLS; i++)
      called = called || (strlen(calls[i].name) == size && memcmp(calls[i].name, name, size) == 0);
    if (!CHECK(called)) check_write(line);
    found++;
  }
  (void)pclose(header);
  CHECK_EQUAL(found, CALLS);
}

/* Whether fairlock_init() takes this memory. */
static bool takes(struct fairlock *memory)
{
  failures = 0;
  if (setjmp(caller) == 0) CHECK_EQUAL(fairlock_init(memory, &good, "door"), FAIRLOCK_OK);
  else port_mutex_unlock(&good.mutex);
  return failures == 0;
}

/* A handle that is in use already, wherever in the schedule it is. */
static void test_initialised_twice(void)
{
  static struct fairlock handles[5];
  CHECK_EQUAL(fairlock_client_init(&good, &config, &transport), FAIRLOCK_OK);
  for (int i = 0; i < 5; i++)
    CHECK(takes(&handles[i]));
  for (int i = 0; i < 5; i++)
    CHECK(!takes(&handles[i]));
  for (int i = 0; i < 5; i++) {
    CHECK_EQUAL(fairlock_deinit(&handles[i]), FAIRLOCK_OK);
    CHECK(takes(&handles[i]));
  }
  fairlock_client_deinit(&good);
}

const struct check_test check_tests[] = {{"assert: NULL", test_null},
                                         {"assert: initialised twice", test_initialised_twice},
                                         {"assert: never initialised", test_never_initialised},
                                         {"assert: all functions are called", test_all_are_called},
                                         {0}};
