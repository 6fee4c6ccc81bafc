/*
 * A client of the server, from a URL and a password; and what its failures mean to whoever typed
 * the command. The password stands in this process's memory alone: never in a message, an argument
 * or a file.
 */
#define _DEFAULT_SOURCE 1 /* what -std=c11 hides */

#include "session.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "command.h"
#include "text.h"

/* The first line of the file. Returns what is wrong, or NULL. */
static const char *read_first_line(FILE *file, char *line, size_t size)
{
  size_t read = fread(line, 1, size, file);
  if (ferror(file)) return strerror(errno);
  char *end = memchr(line, '\n', read);
  size_t length = end != NULL ? (size_t)(end - line) : read;
  if (length > 0 && end != NULL && line[length - 1] == '\r') length--;
  if (length == size) return "its first line is too long for a password";
  if (length == 0) return "its first line is empty";
  if (memchr(line, 0, length) != NULL) return "it has a NUL byte, which no password can have";
  line[length] = 0;
  return NULL;
}

/* A pipe, such as a shell's <(...), is nobody else's in spite of its bits. */
static void warn_if_others_can_read(FILE *file, const char *path)
{
  struct stat status;
  if (fstat(fileno(file), &status) != 0 || !S_ISREG(status.st_mode)) return;
  if ((status.st_mode & (S_IRWXG | S_IRWXO)) == 0) return;
  complain("warning: others than its owner can get at the password in %s (mode %03o): chmod 600 it",
           path, (unsigned)(status.st_mode & 0777));
}

static int read_password(struct session *session, const char *path)
{
  const char *wrong;
  FILE *file = fopen(path, "re");
  if (file == NULL) {
    wrong = strerror(errno);
  } else {
    warn_if_others_can_read(file, path);
    wrong = read_first_line(file, session->password, sizeof session->password);
    fclose(file);
  }
  if (wrong == NULL) return EXIT_DONE;
  complain("cannot take the password from %s: %s", path, wrong);
  return EXIT_NO_INPUT;
}

static int choose_password(struct session *session, const struct command_line *line)
{
  const char *from_environment = getenv("FAIRLOCK_PASSWORD");
  session->config.user = session->url.user;
  if (line->password_file != NULL) {
    session->config.password = session->password;
    return read_password(session, line->password_file);
  }
  session->config.password = session->url.password;
  if (session->config.password == NULL && from_environment != NULL && *from_environment != 0) {
    session->config.password = from_environment;
  }
  if (session->config.user != NULL && session->config.password == NULL) {
    complain("the URL has a user but no password: write user:password@host, set FAIRLOCK_PASSWORD, "
             "or use --password-file");
    return EXIT_USAGE;
  }
  return EXIT_DONE;
}

int session_prepare(struct session *session, const struct command_line *line)
{
  memset(session, 0, sizeof *session);
  const char *from_environment = getenv("FAIRLOCK_URL");
  const char *source = line->url != NULL ? "--url" : "FAIRLOCK_URL";
  const char *text = line->url != NULL ? line->url : from_environment;
  if (text == NULL || (line->url == NULL && *text == 0)) text = "redis://127.0.0.1:6379";
  const char *wrong = url_parse(&session->url, text);
  if (wrong != NULL) {
    complain("the URL in %s is of no use: %s", source, wrong);
    fputs("A URL looks like redis://user:password@host:6379/0, redis://[::1]:6379 or "
          "unix:///run/redis/redis.sock.\n",
          stderr);
    return EXIT_USAGE;
  }
  session->config.database = session->url.database;
  session->config.client_name = "fairlock";
  session->config.receive_buffer = session->receive;
  session->config.receive_size = sizeof session->receive;
  session->config.send_buffer = session->send;
  session->config.send_size = sizeof session->send;
  return choose_password(session, line);
}

int session_open(struct session *session)
{
  if (session->url.path == NULL)
    port_posix_tcp(&session->socket, session->url.host, session->url.port);
  else port_posix_unix(&session->socket, session->url.path);
  return fairlock_client_init(&session->client, &session->config, &session->socket.transport);
}

int session_connect(struct session *session)
{
  int status = session_open(session);
  if (status != FAIRLOCK_OK) return session_failed(session, status, "");
  status = fairlock_connect(&session->client);
  return status == FAIRLOCK_OK ? EXIT_DONE : session_complain(session, status);
}

int exit_status_of(int status)
{
  switch (status) {
  case FAIRLOCK_OK:
    return EXIT_DONE;
  case FAIRLOCK_BUSY:
  case FAIRLOCK_TIMEOUT:
  case FAIRLOCK_NOT_HELD:
    return EXIT_CONFLICT;
  case FAIRLOCK_LOST:
    return EXIT_LOST;
  case FAIRLOCK_DENIED:
    return EXIT_DENIED;
  case FAIRLOCK_READONLY:
    return EXIT_READ_ONLY;
  case FAIRLOCK_UNSUPPORTED:
  case FAIRLOCK_REFUSED:
  case FAIRLOCK_PROTOCOL:
    return EXIT_PROTOCOL;
  case FAIRLOCK_INVALID:
  case FAIRLOCK_TOO_LONG:
    return EXIT_USAGE;
  default:
    return EXIT_UNREACHABLE;
  }
}

static const char *advice(int status)
{
  switch (status) {
  case FAIRLOCK_UNREACHABLE:
    return "Is it running there? Name the right one by --url or FAIRLOCK_URL.";
  case FAIRLOCK_DENIED:
    return "Check the user and password (--url, FAIRLOCK_PASSWORD, --password-file) and the user's "
           "rules (ACL LIST).";
  case FAIRLOCK_UNSUPPORTED:
  case FAIRLOCK_PROTOCOL:
    return "Is it a Redis server, 6.2 or newer, without TLS? See --url.";
  case FAIRLOCK_UNAVAILABLE:
    return "It is loading its data, or busy with a script. Try again later.";
  case FAIRLOCK_READONLY:
    return "Name the master by --url or FAIRLOCK_URL.";
  case FAIRLOCK_OOM:
    return "Free some of its memory, or raise its maxmemory.";
  case FAIRLOCK_MISCONF:
    return "See its log: it cannot save its data, or misses its replicas.";
  default:
    return NULL;
  }
}

/* Failures that the server did not put into words; an error text would be of an earlier one. */
static bool wordless(int status)
{
  return status == FAIRLOCK_UNREACHABLE || status == FAIRLOCK_PROTOCOL;
}

int session_failed(const struct session *session, int status, const char *error)
{
  char *said = printable(error, strlen(error));
  bool quoted = said != NULL && *said != 0 && !wordless(status);
  complain("%s: %s%s%s", session->url.shown, fairlock_status_text(status), quoted ? ": " : "",
           quoted ? said : "");
  const char *what_to_do = advice(status);
  if (what_to_do != NULL) fprintf(stderr, "%s\n", what_to_do);
  free(said);
  return exit_status_of(status);
}

int session_complain(struct session *session, int status)
{
  char error[FAIRLOCK_ERROR_SIZE];
  fairlock_error(&session->client, error);
  return session_failed(session, status, error);
}
