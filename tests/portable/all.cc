/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The library from C++: calls every function that the public headers declare, as a program in C++11 does. Given a port, it
 * goes on with a server. The exit status is 0, or the line of the first check that failed, cut to a byte.
 */
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <fairlock/driver.h>
#include <fairlock/fairlock.h>
#include <fairlock/fairlock_abandon.h>
#include <fairlock/fairlock_credentials.h>
#include <fairlock/fairlock_follow.h>
#include <fairlock/fairlock_keep.h>
#include <fairlock/fairlock_log.h>
#include <fairlock/fairlock_operate.h>
#include <fairlock/fairlock_several.h>
#include <fairlock/port.h>
#include <fairlock/port_posix.h>
#include <fairlock/resp.h>
#if __has_include(<fairlock/port_openssl.h>)
#include <fairlock/port_openssl.h>
#define HAS_TLS 1
#else
#define HAS_TLS 0
#endif

#define CHECK(condition)                                                                           \
  do {                                                                                             \
    if (!(condition)) {                                                                            \
      std::fprintf(stderr, "line %d: %s\n", __LINE__, #condition);                                 \
      std::exit(__LINE__ % 255 + 1);                                                               \
    }                                                                                              \
  } while (0)

static void codec()
{
  unsigned char bytes[128];
  char text[RESP_NUMBER_SIZE];
  resp_writer writer;
  resp_writer_init(&writer, bytes, sizeof bytes, 0);
  resp_write_header(&writer, RESP_ARRAY, 4);
  resp_write_bulk(&writer, "a", 1);
  resp_write_bulk_number(&writer, -7);
  resp_write_payload(&writer, RESP_VERBATIM_STRING, "txt:b", 5);
  resp_write_header(&writer, RESP_BULK_STRING, 1);
  resp_write_raw(&writer, "c", 1);
  resp_write_end(&writer);
  CHECK(resp_write_line(&writer, RESP_SIMPLE_STRING, "OK", 2));

  resp_decoder decoder;
  resp_event event;
  std::size_t used, at = 0;
  int events = 0;
  resp_decoder_init(&decoder, 64);
  while (resp_decode(&decoder, bytes + at, writer.used - at, &used, &event) == RESP_EVENT) {
    at += used;
    events++;
  }
  CHECK(events == 6 && at == writer.used);

  int64_t number = 0;
  CHECK(resp_parse_number(text, resp_format_number(text, -12), &number) && number == -12);
}

static bool count_report(const fairlock_report *report, void *context)
{
  if (report->place == 0) ++*static_cast<int *>(context);
  return true;
}

static unsigned char received[FAIRLOCK_RECEIVE_SIZE(64, 0)], sent[1024];

static fairlock_config configure()
{
  fairlock_config config = fairlock_config();
  config.receive_buffer = received;
  config.receive_size = sizeof received;
  config.send_buffer = sent;
  config.send_size = sizeof sent;
  return config;
}

static void count_connections(fairlock_log_event event, int, const char *, void *context)
{
  if (event == FAIRLOCK_LOG_CONNECTED) ++*static_cast<int *>(context);
}

/* As of a server without users. */
static bool give_credentials(fairlock_login *login, void *)
{
  return !login->refused;
}

/* Nobody answers. */
static void engine()
{
  const fairlock_config config = configure();
  fairlock_engine engine;
  fairlock door;
  std::size_t size;
  CHECK(fairlock_engine_init(&engine, &config) == FAIRLOCK_OK);
  CHECK(fairlock_engine_add(&engine, &door, "door", 4) == FAIRLOCK_OK);
  fairlock_downgrading downgrading = fairlock_downgrading();
  fairlock_engine_use_downgrading(&engine, &downgrading);
  fairlock_shared reader;
  CHECK(fairlock_engine_add_shared(&engine, &reader, "door", 4, 2) == FAIRLOCK_OK);
  CHECK(fairlock_engine_downgrade(&door, &reader, FAIRLOCK_RENEW, 0) == FAIRLOCK_NOT_HELD);
  CHECK(fairlock_slot("123456789", 9) == 12739);
  fairlock_engine_connect(&engine, 0);
  CHECK(fairlock_engine_wants(&engine, 0) == FAIRLOCK_CONNECT);
  fairlock_engine_opening(&engine, 0);
  fairlock_engine_opened(&engine, 0);
  CHECK(fairlock_engine_output(&engine, &size, 0) != nullptr && size > 0);
  fairlock_engine_sent(&engine, size);
  CHECK(fairlock_engine_input(&engine, &size) == received && size == sizeof received);
  received[0] = '%';
  fairlock_engine_received(&engine, 1, 0);
  CHECK(!fairlock_engine_ready(&engine));
  CHECK(fairlock_engine_acquire(&door, 1000, FAIRLOCK_RENEW, 0) == FAIRLOCK_PENDING);
  CHECK(fairlock_engine_result(&door) == FAIRLOCK_PENDING);
  CHECK(fairlock_engine_remaining_ms(&door, 0) == 0 && fairlock_engine_token(&door, 0) == 0);
  CHECK(fairlock_engine_hold_count(&door, 0) == 0);
  fairlock_engine_tick(&engine, 1);
  CHECK(fairlock_engine_deadline(&engine, 1) <= 1000);
  CHECK(fairlock_engine_cancel(&door, 1) == FAIRLOCK_OK);
  CHECK(fairlock_engine_release(&door, 1) == FAIRLOCK_NOT_HELD);
  fairlock_engine_fail(&engine, FAIRLOCK_UNREACHABLE);
  CHECK(fairlock_engine_wants(&engine, 1) == FAIRLOCK_CLOSE);
  fairlock_engine_closed(&engine, FAIRLOCK_UNREACHABLE, 2);
  CHECK(fairlock_engine_remove(&door, 3) == FAIRLOCK_OK);
  fairlock_rest rest = fairlock_rest();
  CHECK(fairlock_engine_abandon(&reader.handle, &rest, 3) == FAIRLOCK_OK);
  fairlock_engine_deinit(&engine);
  CHECK(std::strcmp(fairlock_status_name(FAIRLOCK_LOST), "LOST") == 0);
  CHECK(fairlock_status_text(FAIRLOCK_LOST)[0] != 0);
  CHECK(std::strcmp(fairlock_version(), FAIRLOCK_VERSION) == 0);
}

static void port()
{
  port_mutex mutex;
  port_event event;
  port_posix posix;
  port_idle(0);
  port_posix_tcp(&posix, "127.0.0.1", "1");
  CHECK(port_posix_fd(&posix) == -1);
  char host[PORT_POSIX_HOST_SIZE];
  port_posix_host(&posix, host, PORT_POSIX_HOST_SIZE);
  char error[PORT_POSIX_ERROR_SIZE];
  port_posix_error(&posix, error, PORT_POSIX_ERROR_SIZE);
  CHECK(error[0] == 0);
  CHECK(std::strcmp(host, "127.0.0.1") == 0);
  CHECK(port_task_self() != 0);
  port_mutex_init(&mutex);
  CHECK(!port_mutex_forked(&mutex));
  port_event_init(&event);
  port_event_expect_signals(&event);
  CHECK(!port_task_interrupted());
  port_mutex_lock(&mutex);
  port_event_set(&event);
  uint32_t began = port_clock_ms();
  port_event_wait(&event, &mutex, 60000);
  CHECK(port_clock_ms() - began < 30000);
  port_mutex_unlock(&mutex);
  port_event_destroy(&event);
  port_mutex_destroy(&mutex);
  CHECK(port_posix_unix(&posix, "/nowhere"));
  CHECK(port_posix_seeds(&posix, "127.0.0.1:1,[::1]:2"));
}

static void url()
{
  static port_posix_server server;
  CHECK(port_posix_url(&server, "redis+sentinel://me:secret@[::1]:1/doors/2") == nullptr);
  CHECK(server.transport == &server.socket.transport && server.moves && !server.cluster);
  CHECK(std::strcmp(server.password, "secret") == 0 && server.database == 2);
  CHECK(port_posix_url(&server, "rediss://h") != nullptr);
  CHECK(port_posix_read_url(&server, "rediss://h") == nullptr);
  CHECK(server.tls && server.transport == nullptr);
  port_posix_use_tls(&server, &server.socket.transport);
  CHECK(server.transport == &server.socket.transport);
}

#if HAS_TLS
/* In a library that was made with it. */
static void tls()
{
  port_posix posix;
  port_openssl safe;
  port_openssl_config config = port_openssl_config();
  char error[PORT_OPENSSL_ERROR_SIZE];
  config.ca_file = "/nowhere";
  config.host = port_posix_host;
  port_posix_tcp(&posix, "127.0.0.1", "1");
  CHECK(port_openssl_init(&safe, &posix.transport, &config) == config.ca_file);
  port_openssl_error(&safe, error, PORT_OPENSSL_ERROR_SIZE);
  CHECK(error[0] != 0);
  config.ca_file = nullptr;
  CHECK(port_openssl_init(&safe, &posix.transport, &config) == nullptr);
  CHECK(safe.transport.connect(&safe, 1000) == PORT_UNREACHABLE);
  port_openssl_deinit(&safe);
  static port_posix_server server;
  CHECK(port_openssl_url(&safe, &server, "rediss://127.0.0.1:1", nullptr) == nullptr);
  CHECK(server.transport == &safe.transport);
  port_openssl_deinit(&safe);
}
#endif

/* Services the client until the operation is over. */
static int finish(fairlock_client *client, fairlock *handle)
{
  while (fairlock_result(handle) == FAIRLOCK_PENDING)
    fairlock_poll(client, 100);
  return fairlock_result(handle);
}

static void client(const char *service)
{
  const fairlock_config config = configure();
  port_posix posix;
  fairlock_client client;
  fairlock door, visitor;
  char id[FAIRLOCK_HOLDER_ID_SIZE], error[FAIRLOCK_ERROR_SIZE];
  int holders = 0;
  port_posix_tcp(&posix, "127.0.0.1", service);
  CHECK(fairlock_client_init(&client, &config, &posix.transport) == FAIRLOCK_OK);
  fairlock_topology topology = fairlock_topology();
  CHECK(fairlock_follow(&client, &topology) == FAIRLOCK_OK);
  fairlock_log log = fairlock_log();
  int connections = 0;
  log.function = count_connections;
  log.context = &connections;
  CHECK(fairlock_set_log(&client, &log) == FAIRLOCK_OK);
  fairlock_credentials credentials = fairlock_credentials();
  credentials.function = give_credentials;
  CHECK(fairlock_use_credentials(&client, &credentials) == FAIRLOCK_OK);
  fairlock_keeping keeper = fairlock_keeping();
  keeper.keep_ms = 1000;
  CHECK(fairlock_use_keeping(&client, &keeper) == FAIRLOCK_OK);
  fairlock_downgrading downgrading = fairlock_downgrading();
  CHECK(fairlock_use_downgrading(&client, &downgrading) == FAIRLOCK_OK);
  CHECK(fairlock_connect(&client) == FAIRLOCK_OK);
  CHECK(connections == 1);
  CHECK(fairlock_init(&door, &client, "door") == FAIRLOCK_OK);
  CHECK(fairlock_init_bytes(&visitor, &client, "door", 4) == FAIRLOCK_OK);
  fairlock_id(&door, id, FAIRLOCK_HOLDER_ID_SIZE);
  CHECK(std::strlen(id) > 2);
  fairlock_shared reader, beside;
  CHECK(fairlock_init_shared(&reader, &client, "door", 2) == FAIRLOCK_OK);
  CHECK(fairlock_init_shared_bytes(&beside, &client, "door", 4, 2) == FAIRLOCK_OK);
  CHECK(fairlock_downgrade(&door, &reader, FAIRLOCK_RENEW) == FAIRLOCK_NOT_HELD);
  CHECK(fairlock_start_downgrade(&door, &reader, FAIRLOCK_RENEW) == FAIRLOCK_NOT_HELD);

  CHECK(fairlock_acquire(&door, FAIRLOCK_FOREVER, FAIRLOCK_RENEW) == FAIRLOCK_OK);
  CHECK(fairlock_try_acquire(&door, FAIRLOCK_RENEW) == FAIRLOCK_OK);
  CHECK(fairlock_hold_count(&door) == 2);
  CHECK(fairlock_remaining_ms(&door) > 0 && fairlock_token(&door) > 0);
  CHECK(fairlock_cancel(&door) == FAIRLOCK_NOT_HELD);
  CHECK(fairlock_adopt(&door) == FAIRLOCK_OK);
  CHECK(fairlock_release(&door) == FAIRLOCK_OK);
  CHECK(fairlock_start_release(&door) == FAIRLOCK_PENDING);
  CHECK(fairlock_wait(&door, FAIRLOCK_FOREVER) == FAIRLOCK_OK);

  CHECK(fairlock_start_acquire(&door, 0, 30000) == FAIRLOCK_PENDING);
  CHECK(finish(&client, &door) == FAIRLOCK_OK);
  CHECK(fairlock_inspect(&client, "door", 4, count_report, &holders) == FAIRLOCK_OK);
  CHECK(fairlock_start_inspect(&visitor, count_report, &holders) == FAIRLOCK_PENDING);
  CHECK(finish(&client, &visitor) == FAIRLOCK_OK);
  CHECK(holders == 2);
  fairlock_target hold = {};
  hold.token = FAIRLOCK_ANY_TOKEN;
  CHECK(fairlock_start_ask_release(&visitor, &hold) == FAIRLOCK_PENDING);
  CHECK(finish(&client, &visitor) == FAIRLOCK_OK); /* it listens, as it has asked to wait */
  CHECK(fairlock_ask_release(&client, "door", 4, 1) == FAIRLOCK_NOT_HELD);
  CHECK(fairlock_start_force_release(&visitor, &hold) == FAIRLOCK_PENDING);
  CHECK(finish(&client, &visitor) == FAIRLOCK_OK);
  CHECK(fairlock_force_release(&client, "door", 4, FAIRLOCK_ANY_TOKEN) == FAIRLOCK_NOT_HELD);
  CHECK(fairlock_release(&door) == FAIRLOCK_LOST);

  fairlock *const both[] = {&door};
  CHECK(fairlock_acquire_all(both, 1, 0, FAIRLOCK_RENEW) == FAIRLOCK_OK);
  CHECK(fairlock_release_all(both, 1) == FAIRLOCK_OK);

  fairlock_stop(&client);
  CHECK(fairlock_run(&client) == FAIRLOCK_OK);
  CHECK(fairlock_wants(&client) & FAIRLOCK_RECEIVE);
  fairlock_error(&client, error, FAIRLOCK_ERROR_SIZE);
  CHECK(fairlock_server_status(&client) == FAIRLOCK_OK);
  CHECK(error[0] == 0);
  fairlock_counters counters;
  fairlock_read_counters(&client, &counters, sizeof counters);
  CHECK(counters.acquisitions == 3);
  CHECK(fairlock_start_deinit(&visitor) == FAIRLOCK_OK);
  CHECK(fairlock_deinit(&door) == FAIRLOCK_OK);
  fairlock_rest rest = fairlock_rest();
  CHECK(fairlock_abandon(&beside.handle, &rest) == FAIRLOCK_OK);
  fairlock_client_deinit(&client);
}

int main(int argc, char **argv)
{
  codec();
  engine();
  port();
  url();
#if HAS_TLS
  tls();
#endif
  if (argc > 1) client(argv[1]);
  return 0;
}
