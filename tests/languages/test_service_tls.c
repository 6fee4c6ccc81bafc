/* SPDX-License-Identifier: Apache-2.0 */
/* The client for other languages with TLS: what its options say of certificates, and what errors say. */
#include "scene.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#ifndef CERTIFICATES
#define CERTIFICATES "build/tls/certificates" /* the makefile says where they really are */
#endif
#define FILE_OF(name) CERTIFICATES "/" name

static char url[64];
static const struct fls_options trusting = {
    .size = sizeof trusting, .url = url, .ca_file = FILE_OF("ca.crt")};

/* The suite's server speaks TLS, too. clients: whether they must have a certificate. */
static void serve(const char *clients)
{
  static int port;
  begin();
  for (int attempt = 0; attempt < 5; attempt++) {
    if (port == 0 || attempt > 0) port = free_port();
    (void)snprintf(url, sizeof url, "rediss://localhost:%d", port);
    if (raw_run(&redis,
                "CONFIG SET tls-cert-file " FILE_OF("server.crt") " tls-key-file " FILE_OF(
                    "server.key") " tls-ca-cert-file " FILE_OF("ca.crt") " tls-auth-clients %s "
                                                                         "tls-port %d",
                clients, port))
      return;
  }
  give_up(redis.element[0].text);
}

static void test_locks(void)
{
  serve("no");
  struct fls_client *client = open_by_url(&trusting);
  struct fls_lock *lock = make_lock(client, "door", 0);
  CHECK_EQUAL(acquire(lock), FLS_OK);
  CHECK_EQUAL(raw_number(&redis, "EXISTS door"), 1);
  pid_t child = fork();
  if (child == 0) {
    fls_forked(client);
    fls_forked(client);
    _exit(fls_held(lock) == 0 ? 0 : 1);
  }
  CHECK_EQUAL(reap(child), 0);
  CHECK_EQUAL(release(lock), FLS_OK);
  fls_close(client, SOON);
  CHECK(nothing_left(&redis, "door"));
}

/* Connecting ends so, and for that reason. */
static void connecting_comes_to(const struct fls_options *options, int status, const char *words)
{
  char text[FLS_ERROR_SIZE];
  struct fls_client *client = open_by_url(options);
  CHECK_EQUAL(fls_connect(client), status);
  fls_error(client, text);
  if (!CHECK(strstr(text, words) != NULL)) printf("# \"%s\"\n", text);
  fls_close(client, SOON);
}

static void test_trust(void)
{
  struct fls_options options = trusting;
  serve("no");
  options.ca_file = FILE_OF("others.crt");
  connecting_comes_to(&options, FAIRLOCK_UNTRUSTED, "certificate");
  options.ca_file = trusting.ca_file;
  options.tls_name = "redis.example";
  connecting_comes_to(&options, FAIRLOCK_UNTRUSTED, "mismatch");
  options.tls_name = "127.0.0.1";
  connecting_comes_to(&options, FLS_OK, "");
}

static void test_certificate_of_ours(void)
{
  struct fls_options options = trusting;
  serve("yes");
  connecting_comes_to(&options, FAIRLOCK_UNTRUSTED, "certificate");
  options.certificate = FILE_OF("client.crt");
  options.key = FILE_OF("client.key");
  connecting_comes_to(&options, FLS_OK, "");
}

static void test_missing_file(void)
{
  char error[FLS_ERROR_SIZE];
  struct fls_options options = trusting;
  serve("no");
  options.ca_file = "/nowhere/ca.crt";
  CHECK(fls_open(&options, error) == NULL);
  CHECK(strstr(error, "/nowhere/ca.crt") != NULL);
}

const struct check_test check_tests[] = {{"locks", test_locks},
                                         {"trust", test_trust},
                                         {"certificate_of_ours", test_certificate_of_ours},
                                         {"missing_file", test_missing_file},
                                         {0}};
