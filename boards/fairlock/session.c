/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes a client from a URL and a password, and prints messages about its failures. The password is
 * only in the memory of our processes, which others cannot read: never in a message, an argument, a
 * file, or the environment that /proc shows.
 */
#define _DEFAULT_SOURCE 1 /* what -std=c11 hides */

#include "session.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "command.h"
#include "system.h"
#include "text.h"
#include "url.h"

/* The library's defaults for one server, which fairlock_follow() would change. */
#define CONNECT_MS 5000U
#define OFFLINE_MS 10000U

/* What stands in our id for the middle of a long host's name. */
#define CUT ".."

/* How long to wait until somebody opens the other end of a pipe from which we read the password. */
#define WRITER_MS      5000U
#define WRITER_STEP_MS 20

/* The reason for UNREACHABLE when there was a connection and neither side has closed it. */
static const char mute[] = "it accepts the connection, but does not answer";

/*
 * Reads to the end of the line, at most size bytes. Returns -1, with errno set, if that fails.
 * Somebody has to open the other end of a pipe within WRITER_MS, and may then take any time to
 * write.
 */
static ssize_t read_line(int file, bool pipe, char *line, size_t size)
{
  size_t length = 0;
  uint32_t began = port_clock_ms();
  while (length < size) {
    struct pollfd source = {.fd = file, .events = POLLIN};
    ssize_t got = read(file, line + length, size - length);
    if (got < 0 && errno == EAGAIN) { /* somebody has opened it for writing */
      (void)poll(&source, 1, -1);
    } else if (got == 0 && length == 0 && pipe && port_clock_ms() - began < WRITER_MS) {
      (void)poll(NULL, 0, WRITER_STEP_MS);
    } else if (got < 0 && errno != EINTR) {
      return -1;
    } else if (got == 0) {
      break;
    } else if (got > 0) {
      length += (size_t)got;
      if (memchr(line, '\n', length) != NULL) break;
    }
  }
  return (ssize_t)length;
}

/* Reads the first line of a file; line has PASSWORD_SIZE bytes. Returns what is wrong, or NULL. */
static const char *read_first_line(int file, bool pipe, char *line)
{
  ssize_t got = read_line(file, pipe, line, PASSWORD_SIZE);
  if (got < 0) return strerror(errno);
  if (got == 0 && pipe) return "nobody writes to this pipe";
  char *end = memchr(line, '\n', (size_t)got);
  size_t length = end != NULL ? (size_t)(end - line) : (size_t)got;
  if (length > 0 && end != NULL && line[length - 1] == '\r') length--;
  if (length > PASSWORD_MAX) return "its first line is too long for a password (16384 bytes)";
  if (length == 0) return "its first line is empty";
  if (memchr(line, 0, length) != NULL) return "it has a NUL byte, which no password can have";
  line[length] = 0;
  return NULL;
}

/*
 * Reads a password. Returns what is wrong, or NULL. again: for another connection, by which time
 * the file may be missing, empty or something else while somebody replaces it. The first time a
 * file that others can read is warned of, but not a pipe, such as a shell's <(...), which is
 * private anyway.
 */
static const char *read_password(struct secret *secret, const char *path, bool again)
{
  struct stat status;
  int file = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
  if (file < 0) return strerror(errno);
  bool known = fstat(file, &status) == 0;
  bool regular = known && S_ISREG(status.st_mode);
  bool pipe = known && S_ISFIFO(status.st_mode);
  if (!again && regular && (status.st_mode & (S_IRWXG | S_IRWXO)) != 0)
    complain("warning: users other than its owner have access to the password in %s (mode %03o): "
             "chmod 600 it",
             path, (unsigned)(status.st_mode & 0777));
  if (!again && regular) secret->file = path;
  const char *wrong =
      again && !regular ? "it is no longer a file" : read_first_line(file, pipe, secret->text);
  (void)close(file);
  return wrong;
}

/* A credentials function: gives the client user and password for a new connection. */
static bool give_login(struct fairlock_login *login, void *context)
{
  struct session *session = context;
  bool sentinel = login->sentinel;
  struct secret *secret = sentinel ? &session->sentinel_secret : &session->secret;
  const char *wrong = secret->file != NULL ? read_password(secret, secret->file, true) : NULL;
  pthread_mutex_lock(&session->addresses.mutex);
  snprintf(session->no_password, sizeof session->no_password, "%s%s",
           wrong != NULL ? "password file: " : "", wrong != NULL ? wrong : "");
  pthread_mutex_unlock(&session->addresses.mutex);
  login->user = sentinel ? session->topology.sentinel_user : session->config.user;
  login->password = sentinel ? session->topology.sentinel_password : session->config.password;
  return wrong == NULL;
}

/* Overwrites a variable's value in place, because /proc/PID/environ would still show it. */
static void wipe(char *value)
{
  memset(value, 0, strlen(value));
}

/* Removes a variable from the environment. Returns its value, to be freed, or NULL. */
static char *take_from_environment(const char *name)
{
  char *value = getenv(name);
  if (value == NULL) return NULL;
  char *copy = copied(value, strlen(value));
  wipe(value);
  (void)unsetenv(name);
  if (*copy != 0) return copy;
  free(copy);
  return NULL;
}

/* The command that we run need not be trustworthy. The URL stays, without its password. */
static void take_secrets(struct session *session)
{
  char *url = getenv("FAIRLOCK_URL");
  session->secret.given = take_from_environment("FAIRLOCK_PASSWORD");
  session->sentinel_secret.given = take_from_environment("FAIRLOCK_SENTINEL_PASSWORD");
  if (url == NULL) return;
  char *without = copied(url, strlen(url));
  url_drop_password(without);
  if (strcmp(without, url) != 0) {
    wipe(url);
    if (setenv("FAIRLOCK_URL", without, 1) != 0) (void)unsetenv("FAIRLOCK_URL");
  }
  free(without);
}

const char *from_environment(const char *name)
{
  const char *value = getenv(name);
  return value != NULL && *value != 0 ? value : NULL;
}

static void choose(const char **option, const char *variable)
{
  if (*option == NULL) *option = from_environment(variable);
}

#define NOT_PASSED_ON                                                                              \
  "This one has no password: a fairlock run does not pass its password on to what it runs. Give "  \
  "one with --password-file."

/* True if we run under a `fairlock run`, which has taken the password, and have none. */
static bool lacks_password(const struct session *session)
{
  return session->config.password == NULL && from_environment("FAIRLOCK_HOLDER") != NULL;
}

/* Takes the password of the file, of the URL, or of the environment. Returns an exit status. */
static int choose_password(struct secret *secret, const char *path, const char *of_url,
                           const char **password)
{
  *password = path != NULL ? secret->text : of_url != NULL ? of_url : secret->given;
  const char *wrong = path != NULL ? read_password(secret, path, false) : NULL;
  if (wrong != NULL) {
    complain("cannot take the password from %s: %s", path, wrong);
    return EXIT_NO_INPUT;
  }
  if (*password == NULL || strlen(*password) <= PASSWORD_MAX) return EXIT_DONE;
  complain("the password has %zu bytes, and a server takes no more than %d", strlen(*password),
           PASSWORD_MAX);
  return EXIT_USAGE;
}

static int choose_login(struct session *session, const struct command_line *line)
{
  struct fairlock_config *config = &session->config;
  config->user = session->server.user;
  int status = choose_password(&session->secret, line->password_file, session->server.password,
                               &config->password);
  if (status != EXIT_DONE || config->user == NULL || config->password != NULL) return status;
  complain("the URL has a user but no password: write user:password@host, set FAIRLOCK_PASSWORD, "
           "or use --password-file");
  if (lacks_password(session)) fputs(NOT_PASSED_ON "\n", stderr);
  return EXIT_USAGE;
}

/* Finds user and password for the Sentinels, which have users of their own. */
static int choose_sentinel_login(struct session *session, const struct command_line *line)
{
  struct fairlock_topology *topology = &session->topology;
  topology->service = session->server.service;
  if (topology->service == NULL) {
    if (line->sentinel_user == NULL && line->sentinel_password_file == NULL) return EXIT_DONE;
    return misused(line, "--sentinel-user and --sentinel-password-file need a URL that begins with "
                         "redis+sentinel://");
  }
  topology->sentinel_user = line->sentinel_user;
  choose(&topology->sentinel_user, "FAIRLOCK_SENTINEL_USER");
  int status = choose_password(&session->sentinel_secret, line->sentinel_password_file, NULL,
                               &topology->sentinel_password);
  if (status != EXIT_DONE || topology->sentinel_user == NULL || topology->sentinel_password != NULL)
    return status;
  complain("there is a user for the Sentinels but no password: set FAIRLOCK_SENTINEL_PASSWORD, or "
           "use --sentinel-password-file");
  return EXIT_USAGE;
}

/* Finds out which CAs to trust, and our certificate and key. */
static int choose_tls(struct session *session, const struct command_line *line)
{
  struct port_openssl_config config = line->tls;
  bool given = config.ca_file != NULL || config.ca_folder != NULL || config.certificate != NULL ||
               config.key != NULL || config.name != NULL || config.insecure;
  session->below = session->server.transport;
  if (!session->server.tls) {
    if (!given) return EXIT_DONE;
    return misused(line, "--cacert, --cacertdir, --cert, --key, --sni and --insecure need a URL "
                         "with TLS: rediss://");
  }
  if (config.ca_file == NULL && config.ca_folder == NULL) {
    choose(&config.ca_file, "FAIRLOCK_CACERT");
    choose(&config.ca_folder, "FAIRLOCK_CACERTDIR");
  }
  if (config.certificate == NULL && config.key == NULL) {
    choose(&config.certificate, "FAIRLOCK_CERT");
    choose(&config.key, "FAIRLOCK_KEY");
  }
  choose(&config.name, "FAIRLOCK_SNI");
  config.host = port_posix_host;
  int status = tls_prepare(&session->tls, &config, &session->server.socket.transport);
  if (status != EXIT_DONE) return status;
  port_posix_use_tls(&session->server, &session->tls.transport);
  session->below = session->server.transport;
  return EXIT_DONE;
}

/*
 * Sets our id, for people: what they have said or, by default, the host's name up to its first dot,
 * and our process id. Of a long name both ends stay, because those of pods differ only at the end.
 */
static void name_client(struct session *session, const char *given)
{
  struct utsname host;
  char process[16];
  session->config.client_id = given;
  if (given != NULL || uname(&host) < 0) return;
  size_t room = FAIRLOCK_ID_MAX - (size_t)snprintf(process, sizeof process, ".%d", (int)getpid());
  size_t size = strcspn(host.nodename, ".");
  host.nodename[size] = 0;
  for (char *at = host.nodename; *at != 0; at++) {
    if (!isalnum((unsigned char)*at)) *at = '-';
  }
  bool fits = size <= room;
  size_t end = fits ? 0 : (room - strlen(CUT)) / 2;
  size_t begin = fits ? size : room - strlen(CUT) - end;
  snprintf(session->client_id, sizeof session->client_id, "%.*s%s%s%s", (int)begin, host.nodename,
           fits ? "" : CUT, host.nodename + size - end, process);
  session->config.client_id = session->client_id;
}

/* Returns what is wrong with the URL, or NULL. */
static const char *parse_url(struct session *session, const struct command_line *line)
{
  const char *text = line->url != NULL ? line->url : from_environment("FAIRLOCK_URL");
  if (text == NULL) text = "redis://127.0.0.1:6379";
  return port_posix_read_url(&session->server, text);
}

int session_prepare(struct session *session, const struct command_line *line)
{
  memset(session, 0, sizeof *session);
  const char *source = line->url != NULL ? "--url" : "FAIRLOCK_URL";
  const char *wrong = parse_url(session, line);
  take_secrets(session);
  if (wrong != NULL) {
    complain("the URL in %s cannot be used: %s", source, wrong);
    fputs("A URL looks like redis://user:password@host:6379/0, redis://[::1]:6379,\n"
          "redis+sentinel://host1:26379,host2:26379/service, redis+cluster://host1:6379,host2:6379 "
          "or\nunix:///run/redis/redis.sock; with TLS rediss instead of redis.\n",
          stderr);
    return EXIT_USAGE;
  }
  session->config.database = session->server.database;
  session->config.client_name = "fairlock";
  name_client(session, line->id);
  session->config.receive_buffer = session->receive;
  session->config.receive_size = sizeof session->receive;
  session->config.send_buffer = session->send;
  session->config.send_size = sizeof session->send;
  session->topology.replicas = line->replicas;
  session->topology.cluster = session->server.cluster;
  int status = choose_login(session, line);
  if (status == EXIT_DONE) status = choose_sentinel_login(session, line);
  if (session->config.password != NULL || session->topology.sentinel_password != NULL)
    system_hide_memory();
  return status == EXIT_DONE ? choose_tls(session, line) : status;
}

/* True if address is that of a Sentinel, which the URL names; all others are those of servers. */
static bool is_sentinel(const struct session *session, const char *address)
{
  const struct port_posix_server *server = &session->server;
  const char *seed = server->service != NULL ? server->socket.seeds : NULL;
  size_t size = strlen(address);
  while (seed != NULL) {
    const char *end = seed + strcspn(seed, ",");
    if ((size_t)(end - seed) == size && memcmp(seed, address, size) == 0) return true;
    seed = *end != 0 ? end + 1 : NULL;
  }
  return false;
}

static bool uses_tls(const struct session *session, const char *address)
{
  return is_sentinel(session, address) ? session->server.sentinel_tls : session->server.server_tls;
}

/* A transport around the real one, which notes addresses */

/* Notes where the connection goes next: to address, or, if that is NULL, to the seed in use. */
static void note_address(struct session *session, const char *address)
{
  struct addresses *addresses = &session->addresses;
  const struct port_posix *below = &session->server.socket;
  const char *seed = below->seed != NULL ? below->seed : below->seeds;
  int size = seed != NULL ? (int)strcspn(seed, ",") : 0;
  const char *open = seed == NULL && strchr(below->host, ':') != NULL ? "[" : "";
  if (address != NULL && *address != ':') {
    snprintf(addresses->current, sizeof addresses->current, "%s", address);
    return;
  }
  if (seed != NULL) snprintf(addresses->current, sizeof addresses->current, "%.*s", size, seed);
  else
    snprintf(addresses->current, sizeof addresses->current, "%s%.255s%s:%.5s", open, below->host,
             *open != 0 ? "]" : "", below->service);
  if (address == NULL) return;
  char *port = strrchr(addresses->current, ':');
  snprintf(port, sizeof addresses->current - (size_t)(port - addresses->current), "%s", address);
}

static bool is_connected(struct session *session)
{
  pthread_mutex_lock(&session->addresses.mutex);
  bool connected = session->addresses.connected;
  pthread_mutex_unlock(&session->addresses.mutex);
  return connected;
}

/*
 * Notes that the connection has ended, or was never made: why, and whether it has sent us
 * elsewhere. A Sentinel is not to blame while others answer, or if the server that they name does
 * not.
 */
static void note_end(struct session *session, const char *why, bool sent_elsewhere)
{
  struct addresses *addresses = &session->addresses;
  bool sentinel_dead = is_sentinel(session, addresses->dead);
  bool server_dead = addresses->dead[0] != 0 && !sentinel_dead;
  if (addresses->tried && !addresses->heard &&
      !(server_dead && is_sentinel(session, addresses->current))) {
    memcpy(addresses->dead, addresses->current, sizeof addresses->dead);
    memcpy(addresses->why_dead, why, sizeof addresses->why_dead);
  } else if (sent_elsewhere && sentinel_dead) {
    addresses->dead[0] = 0;
  }
  if (addresses->connected) {
    memcpy(addresses->left, addresses->current, sizeof addresses->left);
    memcpy(addresses->why_left, why, sizeof addresses->why_left);
  }
}

static bool note_aim(void *context, const char *address)
{
  struct session *session = context;
  struct addresses *addresses = &session->addresses;
  char why[FAIRLOCK_ERROR_SIZE];
  session_reason(session, is_connected(session), why);
  bool done = session->below->aim(session->below->context, address);
  if (address != NULL && !done) return false;
  if (address != NULL) why[0] = 0; /* it sends us there, and has not failed */
  pthread_mutex_lock(&addresses->mutex);
  note_end(session, why, address != NULL);
  addresses->connected = false;
  addresses->heard = false;
  addresses->tried = false;
  note_address(session, address);
  pthread_mutex_unlock(&addresses->mutex);
  return done;
}

static int note_connect(void *context, uint32_t timeout_ms)
{
  struct session *session = context;
  struct addresses *addresses = &session->addresses;
  int status = session->below->connect(session->below->context, timeout_ms);
  pthread_mutex_lock(&addresses->mutex);
  addresses->tried = true;
  if (status == PORT_OK) addresses->connected = true;
  pthread_mutex_unlock(&addresses->mutex);
  return status;
}

static int pass_send(void *context, const void *data, size_t size)
{
  const struct port_transport *below = ((struct session *)context)->below;
  return below->send(below->context, data, size);
}

static int note_recv(void *context, void *data, size_t size, uint32_t timeout_ms)
{
  struct session *session = context;
  struct addresses *addresses = &session->addresses;
  int got = session->below->recv(session->below->context, data, size, timeout_ms);
  if (got <= 0 || addresses->heard) return got;
  pthread_mutex_lock(&addresses->mutex);
  addresses->heard = true;
  /* a server that answers is the one we looked for: with Sentinels, the master */
  if (strcmp(addresses->current, addresses->dead) == 0 ||
      (session->server.service != NULL && !is_sentinel(session, addresses->current)))
    addresses->dead[0] = 0;
  pthread_mutex_unlock(&addresses->mutex);
  return got;
}

static void pass_close(void *context)
{
  const struct port_transport *below = ((struct session *)context)->below;
  below->close(below->context);
}

static void pass_wake(void *context)
{
  const struct port_transport *below = ((struct session *)context)->below;
  below->wake(below->context);
}

int session_second(struct session *second, const struct session *session,
                   const struct command_line *line)
{
  memset(second, 0, sizeof *second);
  (void)parse_url(second, line); /* it was checked for the first session */
  second->config.user = session->config.user;
  second->config.password = session->config.password; /* a pipe can be read only once */
  second->config.database = session->config.database;
  second->config.client_name = session->config.client_name;
  return choose_tls(second, line);
}

void session_renew_password(struct session *session)
{
  struct secret *secret = &session->secret;
  if (secret->file != NULL) (void)read_password(secret, secret->file, true);
}

/* Puts our transport around the real one. A Unix socket has no address to note. */
static void note_addresses(struct session *session)
{
  session->noting.connect = note_connect;
  session->noting.send = pass_send;
  session->noting.recv = note_recv;
  session->noting.close = pass_close;
  session->noting.context = session;
  session->noting.aim = session->below->aim != NULL ? note_aim : NULL;
  session->noting.wake = session->below->wake != NULL ? pass_wake : NULL;
}

void session_address(struct session *session, int status, char address[ADDRESS_SIZE])
{
  struct addresses *addresses = &session->addresses;
  address[0] = 0;
  if (session->noting.aim == NULL) return;
  pthread_mutex_lock(&addresses->mutex);
  bool failed = status == FAIRLOCK_UNREACHABLE || status == FAIRLOCK_UNTRUSTED;
  const char *where = addresses->current;
  if (failed && addresses->dead[0] != 0) where = addresses->dead;
  /* the server that has refused us was left, and no other was connected since */
  else if (!failed && !addresses->connected && addresses->left[0] != 0) where = addresses->left;
  memcpy(address, where, ADDRESS_SIZE);
  pthread_mutex_unlock(&addresses->mutex);
}

void session_current(struct session *session, char address[ADDRESS_SIZE])
{
  struct addresses *addresses = &session->addresses;
  address[0] = 0;
  if (session->noting.aim == NULL) return;
  pthread_mutex_lock(&addresses->mutex);
  memcpy(address, addresses->current, ADDRESS_SIZE);
  pthread_mutex_unlock(&addresses->mutex);
}

void session_reason(struct session *session, bool connected, char text[FAIRLOCK_ERROR_SIZE])
{
  _Static_assert(FAIRLOCK_ERROR_SIZE >= PORT_OPENSSL_ERROR_SIZE &&
                     FAIRLOCK_ERROR_SIZE >= PORT_POSIX_ERROR_SIZE &&
                     FAIRLOCK_ERROR_SIZE >= sizeof mute,
                 "there is room");
  char address[ADDRESS_SIZE];
  session_current(session, address);
  text[0] = 0;
  if (uses_tls(session, address)) tls_error(&session->tls, text);
  if (text[0] == 0) port_posix_error(&session->server.socket, text, PORT_POSIX_ERROR_SIZE);
  if (text[0] == 0 && connected) memcpy(text, mute, sizeof mute);
}

void session_current_reason(struct session *session, char text[FAIRLOCK_ERROR_SIZE])
{
  session_reason(session, is_connected(session), text);
}

/* Why the address that session_address() gives for UNREACHABLE cannot be reached. */
static void reason_of_address(struct session *session, char text[FAIRLOCK_ERROR_SIZE])
{
  struct addresses *addresses = &session->addresses;
  pthread_mutex_lock(&addresses->mutex);
  const char *why = addresses->dead[0] != 0 ? addresses->why_dead : addresses->why_left;
  bool noted = addresses->dead[0] != 0 || !addresses->tried;
  if (noted) memcpy(text, why, sizeof addresses->why_dead);
  pthread_mutex_unlock(&addresses->mutex);
  if (!noted) session_current_reason(session, text);
}

/* Tells the client where the servers are, and that they may move. */
static int follow(struct session *session)
{
  struct fairlock_topology *topology = &session->topology;
  if (session->noting.aim != NULL) {
    topology->address = session->server.address;
    topology->address_size = sizeof session->server.address;
  }
  return fairlock_follow(&session->client, topology);
}

int session_open(struct session *session)
{
  struct fairlock_config *config = &session->config;
  if (pthread_mutex_init(&session->addresses.mutex, NULL) != 0) return FAIRLOCK_INVALID;
  if (!session->server
           .moves) { /* there is one server: the times of a client that does not follow */
    if (config->connect_ms == 0) config->connect_ms = CONNECT_MS;
    if (config->offline_ms == 0) config->offline_ms = OFFLINE_MS;
  } else {
    config->connect_ms = 0; /* the library's default for several seeds, which is shorter */
  }
  note_addresses(session);
  int status = fairlock_client_init(&session->client, config, &session->noting);
  if (status != FAIRLOCK_OK) return status;
  if (session->secret.file != NULL || session->sentinel_secret.file != NULL) {
    session->credentials.function = give_login;
    session->credentials.context = session;
    status = fairlock_use_credentials(&session->client, &session->credentials);
  }
  return status == FAIRLOCK_OK ? follow(session) : status;
}

void session_close(struct session *session)
{
  fairlock_client_deinit(&session->client);
  pthread_mutex_destroy(&session->addresses.mutex);
}

int session_connect(struct session *session)
{
  int status = session_open(session);
  if (status != FAIRLOCK_OK) return session_failed(session, status, "", "");
  status = fairlock_connect(&session->client);
  return status == FAIRLOCK_OK ? EXIT_DONE : session_complain(session, status);
}

/* True if a password is refused that was good. File and server do not change at once. */
static bool changes(struct session *session)
{
  struct fairlock_counters counters;
  fairlock_read_counters(&session->client, &counters, sizeof counters);
  return session->credentials.function != NULL &&
         fairlock_server_status(&session->client) == FAIRLOCK_DENIED && counters.connections > 0;
}

bool session_may_pass(struct session *session, int status)
{
  bool follows = session->server.moves;
  return status == FAIRLOCK_UNREACHABLE || status == FAIRLOCK_UNAVAILABLE ||
         (status == FAIRLOCK_READONLY && follows) ||
         (status == FAIRLOCK_DENIED && changes(session));
}

#define NOT_REDIS                                                                                  \
  "Is it a Redis server, 6.2 or newer, or a proxy that speaks RESP3 (for redis+sentinel://, a "    \
  "Sentinel; with TLS, rediss://)? See --url."

/* The exit statuses of the library's statuses, and what to do; others exit with UNREACHABLE. */
static const struct meaning {
  int status, exit;
  const char *advice; /* NULL: none, or it depends on more */
} meanings[] = {
    {FAIRLOCK_OK, EXIT_DONE, NULL},
    {FAIRLOCK_BUSY, EXIT_CONFLICT, NULL},
    {FAIRLOCK_TIMEOUT, EXIT_CONFLICT, NULL},
    {FAIRLOCK_NOT_HELD, EXIT_CONFLICT, NULL},
    {FAIRLOCK_NOT_LISTENING, EXIT_CONFLICT, NULL},
    {FAIRLOCK_LOST, EXIT_LOST, NULL},
    {FAIRLOCK_DENIED, EXIT_DENIED, NULL},
    {FAIRLOCK_UNTRUSTED, EXIT_DENIED,
     "Check the trusted CAs (--cacert, --cacertdir), the server's name (--sni), and our "
     "certificate "
     "(--cert, --key)."},
    {FAIRLOCK_READONLY, EXIT_READ_ONLY, "Name the master with --url or FAIRLOCK_URL."},
    {FAIRLOCK_WRONG_SHARD, EXIT_READ_ONLY,
     "Name the nodes of the cluster with --url redis+cluster://HOST:PORT,HOST:PORT."},
    {FAIRLOCK_UNSUPPORTED, EXIT_PROTOCOL, NOT_REDIS},
    {FAIRLOCK_REFUSED, EXIT_PROTOCOL, NULL},
    {FAIRLOCK_PROTOCOL, EXIT_PROTOCOL, NOT_REDIS},
    {FAIRLOCK_INVALID, EXIT_USAGE, NULL},
    {FAIRLOCK_TOO_LONG, EXIT_USAGE, NULL},
    {FAIRLOCK_OUTDATED, EXIT_OUTDATED,
     "Use that release, or wait until nobody needs it: fairlock status says who holds."},
    {FAIRLOCK_UNAVAILABLE, EXIT_UNREACHABLE,
     "It is loading its data, busy with a script, has reached maxclients, or its cluster has a "
     "part "
     "without a master (CLUSTER INFO). Try again later."},
    {FAIRLOCK_OOM, EXIT_UNREACHABLE, "Free some of its memory, or raise its maxmemory."},
    {FAIRLOCK_MISCONF, EXIT_UNREACHABLE,
     "See its log: it cannot save its data, or lacks replicas."},
    {FAIRLOCK_UNSYNCED, EXIT_UNREACHABLE,
     "See whether its replicas are connected (INFO replication), or ask for fewer with "
     "--replicas."},
    {0, EXIT_UNREACHABLE, NULL},
};

static const struct meaning *meaning_of(int status)
{
  const struct meaning *at = meanings;
  while (at + 1 < meanings + sizeof meanings / sizeof meanings[0] && at->status != status)
    at++;
  return at;
}

int exit_status_of(int status)
{
  return meaning_of(status)->exit;
}

/* True if the reason is `words`, which the system or the resolver says. Both may be cut off. */
static bool is_reason(const char *reason, const char *words)
{
  return *reason != 0 && strncmp(reason, words, PORT_POSIX_ERROR_SIZE - 1) == 0;
}

static bool is_error(const char *reason, int error)
{
  return is_reason(reason, strerror(error));
}

#define NO_TLS           "redis+sentinel://.../SERVICE"
#define TLS_TO_ALL       "rediss+sentinel://.../SERVICE"
#define TLS_TO_SENTINELS "redis+sentinel://.../SERVICE?sentinel_tls=true"
#define TLS_TO_SERVERS   "rediss+sentinel://.../SERVICE?sentinel_tls=false"

#define NO_SERVER "Or is it not a Redis server, or a proxy whose server is gone?"

/* Which URL is right if the one at address has TLS and we have not used it, or the reverse. */
static const char *advice_sentinel_tls(const struct session *session, const char *address)
{
  /* a Sentinel; there is TLS to servers; there is TLS to Sentinels */
  static const char *const texts[2][2][2] = {
      {{"Does that server want TLS? Then the URL is " TLS_TO_SERVERS ". " NO_SERVER,
        "Does that server want TLS? Then the URL is " TLS_TO_ALL ". " NO_SERVER},
       {"Does that server speak TLS? If not, the URL is " NO_TLS ".",
        "Does that server speak TLS? If not, the URL is " TLS_TO_SENTINELS "."}},
      {{"Does that Sentinel want TLS? Then the URL is " TLS_TO_ALL ", or, if the servers have no "
        "TLS, " TLS_TO_SENTINELS ".",
        "Does that Sentinel speak TLS? If not, the URL is " NO_TLS "."},
       {"Does that Sentinel want TLS? Then the URL is " TLS_TO_ALL ".",
        "Does that Sentinel speak TLS? If not, the URL is " TLS_TO_SERVERS ", or, if the servers "
        "have no TLS either, " NO_TLS "."}}};
  const struct port_posix_server *server = &session->server;
  return texts[is_sentinel(session, address)][server->server_tls][server->sentinel_tls];
}

static const char *advice_unreachable(const struct session *session, const char *address,
                                      const char *reason)
{
  bool tls = uses_tls(session, address);
  bool path = session->server.socket.service == NULL;
  if (is_error(reason, ECONNREFUSED))
    return "Nothing listens there: is the server running, and is that its address? Name the right "
           "one with --url or FAIRLOCK_URL.";
  if (is_error(reason, ENOENT) && path)
    return "There is no such socket: is the server running, and is that its unixsocket?";
  if (is_error(reason, EACCES) && path)
    return "This user may not use the socket: see its mode (the server's unixsocketperm), its "
           "owner, and its folders.";
  if (is_error(reason, ETIMEDOUT) || is_error(reason, EHOSTUNREACH) ||
      is_error(reason, ENETUNREACH))
    return "Nothing answers at that address: is it right, is the machine up, and does a firewall "
           "let us through?";
  if (is_reason(reason, gai_strerror(EAI_NONAME)) || is_reason(reason, gai_strerror(EAI_AGAIN)) ||
      is_reason(reason, gai_strerror(EAI_FAIL)))
    return "The name cannot be resolved here: check it, and this machine's resolver (DNS, "
           "/etc/hosts).";
  if ((tls || session->server.service != NULL) && strcmp(reason, mute) == 0)
    return "Is it stopped, or busy?";
  if (tls && strcmp(reason, "the server closed TLS") == 0)
    return "Is it being stopped, or does it end connections? See its log.";
  if (session->server.service != NULL && *reason != 0) return advice_sentinel_tls(session, address);
  if (tls) return "Does that port speak TLS? If not, write redis instead of rediss in the URL.";
  if (strcmp(reason, mute) == 0)
    return "Is it stopped, or busy? Or does that port want TLS: rediss instead of redis in the "
           "URL?";
  if (*reason != 0)
    return "Does that port want TLS? Then write rediss instead of redis in the URL. Or is it not a "
           "Redis server, or a proxy that does not speak RESP3?";
  return "Is it running there? Name the right one with --url or FAIRLOCK_URL.";
}

/* True if text contains words, which are in lower case; the case of text does not matter. */
static bool contains(const char *text, const char *words)
{
  size_t size = strlen(words);
  while (*text != 0 && strncasecmp(text, words, size) != 0)
    text++;
  return *text != 0;
}

/* True if the password ends in white space, which nobody sees. */
static bool is_padded(const char *password)
{
  size_t size = password != NULL ? strlen(password) : 0;
  return size > 0 && isspace((unsigned char)password[size - 1]);
}

static const char *advice_denied(const struct session *session, const char *words)
{
  bool wrong = contains(words, "wrongpass");
  if (lacks_password(session)) return NOT_PASSED_ON;
  if (wrong && is_padded(session->config.password))
    return "The password ends in white space, which counts: if that is not meant, take it out "
           "(--url, FAIRLOCK_PASSWORD, --password-file).";
  if (wrong && is_padded(session->topology.sentinel_password))
    return "The password for the Sentinels ends in white space, which counts: if that is not "
           "meant, take it out (FAIRLOCK_SENTINEL_PASSWORD, --sentinel-password-file).";
  return "Check the user and password (--url, FAIRLOCK_PASSWORD, --password-file) and the user's "
         "rules (ACL LIST; ACL LOG has the command that was refused).";
}

/* Advice if the words are those of a server before Redis 6, or of a proxy, to HELLO 3; or NULL. */
static const char *advice_unsupported(const char *words)
{
  bool unknown = contains(words, "unknown command") || contains(words, "unsupported command");
  if (contains(words, "noproto") || (unknown && contains(words, "hello")))
    return "It does not speak RESP3 (HELLO 3), which fairlock needs: it is older than Redis 6, or "
           "a proxy without it. Name the server behind the proxy with --url or FAIRLOCK_URL.";
  if (unknown)
    return "It lacks a command that fairlock needs: HELLO 3 (RESP3), SUBSCRIBE, EVALSHA and EVAL, "
           "for example. Is it a proxy, or was a command renamed? Name the server itself with "
           "--url or FAIRLOCK_URL.";
  return NULL;
}

static const char *advice(const struct session *session, int status, const char *address,
                          const char *words)
{
  if (status == FAIRLOCK_UNREACHABLE) return advice_unreachable(session, address, words);
  if (status == FAIRLOCK_DENIED) return advice_denied(session, words);
  const struct meaning *meaning = meaning_of(status);
  const char *unsupported = meaning->exit == EXIT_PROTOCOL ? advice_unsupported(words) : NULL;
  return unsupported != NULL ? unsupported : meaning->advice;
}

void session_no_password(struct session *session, char text[FAIRLOCK_ERROR_SIZE])
{
  pthread_mutex_lock(&session->addresses.mutex);
  memcpy(text, session->no_password, sizeof session->no_password);
  pthread_mutex_unlock(&session->addresses.mutex);
}

void session_error(struct session *session, int status, char text[FAIRLOCK_ERROR_SIZE])
{
  switch (status) {
  case FAIRLOCK_DENIED:
    session_no_password(session, text);
    if (text[0] == 0) fairlock_error(&session->client, text, FAIRLOCK_ERROR_SIZE);
    break;
  case FAIRLOCK_UNREACHABLE:
    reason_of_address(session, text);
    break;
  case FAIRLOCK_UNTRUSTED:
    tls_error(&session->tls, text);
    break;
  case FAIRLOCK_PROTOCOL:
  case FAIRLOCK_UNKNOWN:
    text[0] = 0; /* the server has said nothing; an error text would be of an earlier failure */
    break;
  default:
    fairlock_error(&session->client, text, FAIRLOCK_ERROR_SIZE);
    break;
  }
}

char *session_place(const struct session *session, const char *address)
{
  char text[sizeof session->server.shown + ADDRESS_SIZE + 16];
  const char *url = session->server.shown;
  const char *authority = strstr(url, "://");
  bool said = *address == 0 || (authority != NULL && strcmp(authority + 3, address) == 0);
  const char *sentinel = is_sentinel(session, address) ? "Sentinel " : "";
  snprintf(text, sizeof text, said ? "%s" : "%s (%s%s)", url, sentinel, address);
  return printable(text, strlen(text));
}

char *session_url(const struct session *session)
{
  const struct port_posix_server *server = &session->server;
  char text[sizeof server->shown + 16];
  unsigned long number = server->database;
  const char *begin = server->socket.service == NULL ? "?db=" : "/"; /* a path has no service */
  size_t size = strlen(server->shown);
  size_t end = server->sentinel_tls != server->server_tls && server->service != NULL
                   ? strlen(strrchr(server->shown, '?'))
                   : 0; /* of the parameter, which follows the database */
  if (number == 0) snprintf(text, sizeof text, "%s", server->shown);
  else
    snprintf(text, sizeof text, "%.*s%s%lu%s", (int)(size - end), server->shown, begin, number,
             server->shown + size - end);
  return printable(text, strlen(text));
}

char *session_words(const char *error)
{
  char text[FAIRLOCK_ERROR_SIZE + 5];
  bool cut = strlen(error) == FAIRLOCK_ERROR_SIZE - 1;
  snprintf(text, sizeof text, "%s%s%s", *error != 0 ? ": " : "", error, cut ? "..." : "");
  return printable(text, strlen(text));
}

static int failed(const struct session *session, int status, const char *address, const char *error,
                  const char *what_to_do)
{
  char *place = session_place(session, address);
  char *words = session_words(error);
  complain("%s: %s%s", place, fairlock_status_text(status), words);
  if (what_to_do != NULL) fprintf(stderr, "%s\n", what_to_do);
  if (status == FAIRLOCK_UNREACHABLE && session->server.moves)
    fputs("Where servers move, a fail-over may be under way.\n", stderr);
  free(words);
  free(place);
  return exit_status_of(status);
}

int session_failed(const struct session *session, int status, const char *address,
                   const char *error)
{
  int result = failed(session, status, address, error, advice(session, status, address, error));
  if (status == FAIRLOCK_DENIED && session->server.moves)
    fputs("Where servers move, each has users of its own: after a fail-over, the new master may "
          "lack this one.\n",
          stderr);
  return result;
}

int session_other_failed(const struct session *session, int status, const char *address,
                         const char *error)
{
  const char *what_to_do =
      status != FAIRLOCK_DENIED
          ? advice(session, status, address, error)
          : "Another server has accepted this user. Redis replicates no users: make this one, with "
            "the same password and rules, on each server, because each may become the master.";
  return failed(session, status, address, error, what_to_do);
}

int session_complain(struct session *session, int status)
{
  char address[ADDRESS_SIZE];
  char error[FAIRLOCK_ERROR_SIZE];
  session_address(session, status, address);
  session_error(session, status, error);
  return session_failed(session, status, address, error);
}
