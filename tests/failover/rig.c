/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Nodes, and the Sentinel set-up; see rig.h. Each node has a configuration file, as in production:
 * Sentinel needs one, and rewrites those of the servers that it reconfigures.
 */
#include "rig.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cluster.h"

#ifndef REDIS_SERVER
#define REDIS_SERVER "build/redis-server"
#endif

#define TILT_MS     3000
#define LOOK_MS     1000  /* how often a Sentinel looks at a server */
#define GIVEN_UP_MS 20000 /* a fail-over that has not come since has been given up */
#define BUS_OFFSET  10000 /* of a server before 7.0, which knows no cluster-port */

static char root[40]; /* of all rigs of the program */

/* The server that is tested */

static const char *version_line(void)
{
  static char line[256];
  if (line[0] != 0) return line;
  FILE *output = popen(REDIS_SERVER " --version", "r");
  if (output == NULL || fgets(line, sizeof line, output) == NULL) give_up("no version");
  (void)pclose(output);
  return line;
}

int server_version(void)
{
  const char *at = strstr(version_line(), "v=");
  char *dot;
  if (at == NULL) give_up("no version");
  long major = strtol(at + 2, &dot, 10);
  return (int)(major * 100 + strtol(dot + 1, NULL, 10));
}

bool server_is_valkey(void)
{
  return strncmp(version_line(), "Valkey", 6) == 0;
}

/* The folder */

/*
 * Starts a process that removes the folder when this program has ended, for whatever reason: then
 * the program's end of the pipe is closed. The servers die at the same moment; it tries again
 * because they may still write.
 */
static void leave_janitor(void)
{
  int ends[2];
  char byte;
  if (pipe(ends) != 0) give_up("pipe");
  (void)fflush(stdout);
  if (fork() != 0) {
    (void)close(ends[0]);
    (void)fcntl(ends[1], F_SETFD, FD_CLOEXEC);
    return;
  }
  (void)close(ends[1]);
  (void)signal(SIGINT, SIG_IGN);
  (void)signal(SIGTERM, SIG_IGN);
  (void)signal(SIGHUP, SIG_IGN);
  (void)alarm(0);
  int nothing = open("/dev/null", O_RDWR);
  for (int i = 0; i < 3; i++)
    (void)dup2(nothing, i);
  while (read(ends[0], &byte, 1) < 0 && errno == EINTR) {
  }
  for (int attempt = 0; attempt < 20 && access(root, F_OK) == 0; attempt++) {
    if (fork() == 0) {
      (void)execlp("rm", "rm", "-rf", "--", root, (char *)NULL);
      _exit(1);
    }
    (void)wait(NULL);
    sleep_ms(100);
  }
  _exit(0);
}

static void make_root(void)
{
  if (root[0] != 0) return;
  (void)snprintf(root, sizeof root, "/tmp/fairlock-failover-XXXXXX");
  if (mkdtemp(root) == NULL) give_up("mkdtemp");
  leave_janitor();
}

/* Nodes */

static void path_of(const struct node *node, const char *file, char path[96])
{
  (void)snprintf(path, 96, "%s/%s", node->folder, file);
}

static pid_t run_node(const struct node *node)
{
  char path[96];
  path_of(node, "conf", path);
  const char *const words[] = {REDIS_SERVER, path, node->sentinel ? "--sentinel" : NULL, NULL};
  return spawn_program(words, NULL, NULL);
}

static bool log_in(const struct node *node, struct raw *raw)
{
  const struct rig_options *options = &node->rig->options;
  const char *password = node->sentinel ? options->sentinel_password : options->password;
  if (password == NULL) return true;
  const char *user = node->sentinel ? options->sentinel_user : NULL;
  return raw_run(raw, "AUTH %s %s", user != NULL ? user : "default", password);
}

static bool open_raw(const struct node *node, int port, struct raw *raw)
{
  if (!raw_open(raw, port)) return false;
  if (log_in(node, raw)) return true;
  raw_close(raw);
  return false;
}

/* What did not come in time would be taken for the next reply. */
static bool stands(struct raw *raw)
{
  char byte;
  if (raw->socket <= 0 || raw->count == 0) return false;
  ssize_t got = recv(raw->socket, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  return got > 0 || (got < 0 && errno == EAGAIN);
}

/* Not through the network, so that it does not depend on what the test does there. */
struct raw *node_raw(struct node *node)
{
  if (stands(&node->raw)) return &node->raw;
  if (node->raw.socket > 0) raw_close(&node->raw);
  if (!open_raw(node, node->own_port, &node->raw)) node->raw.socket = -1;
  return &node->raw;
}

/* What INFO says of a field; "" for none. */
static const char *info(struct node *node, const char *section, const char *field)
{
  static char value[128];
  value[0] = 0;
  const struct raw *raw = node_raw(node);
  if (raw->socket < 0) return value;
  const char *at = raw_text(node_raw(node), "INFO %s", section);
  size_t size = strlen(field);
  for (; at != NULL && *at != 0; at = strchr(at, '\n')) {
    at += *at == '\n';
    if (strncmp(at, field, size) != 0 || at[size] != ':') continue;
    (void)snprintf(value, sizeof value, "%.*s", (int)strcspn(at + size + 1, "\r\n"), at + size + 1);
    break;
  }
  return value;
}

/* Why a server did not start. */
static void show_log(const struct node *node)
{
  char path[96], line[400];
  path_of(node, "log", path);
  FILE *log = fopen(path, "r");
  while (log != NULL && fgets(line, sizeof line, log) != NULL)
    printf("# %s", line);
  if (log != NULL) (void)fclose(log);
}

/* Another program's server may answer on its port: that one has another process id. */
static bool answers_itself(struct node *node)
{
  int64_t until = now_ms() + SOON;
  while (now_ms() < until) {
    if (waitpid(node->pid, NULL, WNOHANG) != 0) return false;
    if (atoi(info(node, "server", "process_id")) == (int)node->pid) return true;
    sleep_ms(10);
  }
  return false;
}

/*
 * A Sentinel that was not run for two seconds trusts nothing that it has seen (TILT), and does nothing
 * for a while: usually 30 s, as long as a lease. A machine that stands still for a moment stops
 * all three. It looks at a server every 10 s. Before 7.0 these times cannot be changed.
 */
static bool is_up(struct node *node)
{
  if (!answers_itself(node)) return false;
  if (node->sentinel && server_version() >= 700)
    CHECK(
        raw_run(node_raw(node), "SENTINEL DEBUG tilt-period %d info-period %d", TILT_MS, LOOK_MS));
  return true;
}

static void say(FILE *file, const char *format, ...)
{
  va_list values;
  va_start(values, format);
  (void)vfprintf(file, format, values);
  va_end(values);
  (void)fputc('\n', file);
}

/* A Sentinel finds the others and the replicas by itself, through the master. */
static void configure_sentinel(FILE *file, const struct node *node)
{
  const struct rig_options *options = &node->rig->options;
  say(file, "sentinel monitor " SERVICE " 127.0.0.1 %d 2", node->rig->node[0].port);
  say(file, "sentinel down-after-milliseconds " SERVICE " %d", 2 * MOVED_SOON);
  say(file, "sentinel failover-timeout " SERVICE " 5000");
  if (options->password != NULL) say(file, "sentinel auth-pass " SERVICE " %s", options->password);
  say(file, "sentinel announce-ip 127.0.0.1");
  say(file, "sentinel announce-port %d", node->port);
  if (options->sentinel_password == NULL) return;
  say(file, "sentinel sentinel-pass %s", options->sentinel_password);
  if (options->sentinel_user == NULL) {
    say(file, "requirepass %s", options->sentinel_password);
    return;
  }
  say(file, "sentinel sentinel-user %s", options->sentinel_user);
  say(file, "user %s on >%s allkeys allchannels +@all", options->sentinel_user,
      options->sentinel_password);
  say(file, "user default off");
}

static void configure_server(FILE *file, const struct node *node)
{
  const struct rig_options *options = &node->rig->options;
  say(file, "save \"\"\nappendonly no\nrepl-diskless-sync yes\nrepl-diskless-sync-delay 0");
  say(file, "repl-ping-replica-period 1");
  if (options->password != NULL)
    say(file, "requirepass %s\nmasterauth %s", options->password, options->password);
  if (options->config != NULL) (void)fputs(options->config, file);
  if (node->rig->cluster) {
    say(file, "cluster-enabled yes\ncluster-config-file nodes.conf");
    say(file, "cluster-node-timeout %d", NODE_TIMEOUT_MS); /* so short, they meet sooner */
    say(file, "cluster-replica-no-failover yes");
    say(file, "cluster-announce-ip 127.0.0.1\ncluster-announce-port %d", node->port);
    say(file, "cluster-announce-bus-port %d", node->bus_port);
    return;
  }
  say(file, "replica-announce-ip 127.0.0.1\nreplica-announce-port %d", node->port);
  if (node->index > 0) say(file, "replicaof 127.0.0.1 %d", node->rig->node[0].port);
}

/* Without TLS, too, at its own port: that is for the rig. */
static void configure_tls(FILE *file, const struct node *node)
{
  const char *folder = node->rig->options.certificates;
  if (folder == NULL) return;
  say(file, "tls-port %d\ntls-cert-file %s/server.crt\ntls-key-file %s/server.key", node->port,
      folder, folder);
  say(file, "tls-ca-cert-file %s/ca.crt\ntls-auth-clients no\ntls-replication yes", folder);
}

static void configure(const struct node *node)
{
  char path[96], source[24];
  path_of(node, "conf", path);
  FILE *file = fopen(path, "w");
  if (file == NULL) give_up("fopen");
  net_source(node->index, source);
  say(file, "port %d\nbind %s 127.0.0.1", node->own_port, node->rig->options.parted ? source : "");
  if (node->rig->options.parted && server_version() >= 700)
    say(file, "bind-source-addr %s", source); /* before 7.0 it is the first of bind */
  say(file, "protected-mode no\ndir %s\nlogfile %s/log", node->folder, node->folder);
  configure_tls(file, node);
  if (node->sentinel) configure_sentinel(file, node);
  else configure_server(file, node);
  if (fclose(file) != 0) give_up("fclose");
}

static bool is_free(int port)
{
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_ANY)};
  int tried = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  address.sin_port = htons((uint16_t)port);
  bool done = bind(tried, (struct sockaddr *)&address, sizeof address) == 0;
  (void)close(tried);
  return done;
}

static void choose_ports(struct node *node)
{
  struct net *net = (struct net *)(uintptr_t)&node->rig->net;
  do
    node->own_port = free_port();
  while (node->rig->cluster &&
         (node->own_port + BUS_OFFSET > 65535 || !is_free(node->own_port + BUS_OFFSET)));
  node->own_bus_port = node->own_port + BUS_OFFSET;
  node->port = node->rig->options.certificates != NULL ? free_port() : node->own_port;
  node->bus_port = node->own_bus_port;
  if (!node->rig->options.parted) return;
  net_serve(net, node->index, NET_COMMANDS, node->own_port);
  net_serve(net, node->index, NET_BUS, node->own_bus_port);
  node->port = net->port[node->index][NET_COMMANDS];
  node->bus_port = net->port[node->index][NET_BUS];
}

void node_start(struct rig *rig, int index, bool sentinel)
{
  static int number;
  struct node *node = &rig->node[index];
  memset(node, 0, sizeof *node);
  node->rig = rig;
  node->index = index;
  node->sentinel = sentinel;
  node->raw.socket = -1;
  (void)snprintf(node->folder, sizeof node->folder, "%s/%d", root, ++number);
  if (mkdir(node->folder, 0700) != 0) give_up("mkdir");
  /* somebody else may have taken the port meanwhile */
  for (int attempt = 0; attempt < 5; attempt++) {
    choose_ports(node);
    configure(node);
    node->pid = run_node(node);
    if (is_up(node)) return;
    slay(node->pid);
  }
  show_log(node);
  give_up("a server does not start");
}

void rig_start(struct rig *rig, const struct rig_options *options, bool cluster)
{
  begin();
  (void)alarm(RIG_TEST_S);
  make_root();
  memset(rig, 0, sizeof *rig);
  if (options != NULL) rig->options = *options;
  rig->cluster = cluster;
  if (rig->options.parted) net_start(&rig->net);
}

void node_kill(struct node *node)
{
  if (node->pid > 0) slay(node->pid);
  raw_close(&node->raw);
  node->pid = 0;
  node->frozen = false;
}

void node_revive(struct node *node)
{
  int64_t until = now_ms() + SOON;
  do { /* another program's connection may use the port as its own end for a moment */
    node_kill(node);
    node->pid = run_node(node);
    if (is_up(node)) return;
    sleep_ms(50);
  } while (now_ms() < until);
  give_up("a server does not start again");
}

void node_freeze(struct node *node)
{
  int status;
  CHECK(kill(node->pid, SIGSTOP) == 0);
  CHECK(waitpid(node->pid, &status, WUNTRACED) == node->pid && WIFSTOPPED(status));
  node->frozen = true;
}

void node_thaw(struct node *node)
{
  CHECK(kill(node->pid, SIGCONT) == 0);
  node->frozen = false;
}

bool node_answers(const struct node *node)
{
  return node->pid > 0 && !node->frozen;
}

const char *node_role(struct node *node)
{
  const struct raw *raw = node_raw(node);
  if (raw->socket < 0 || !raw_run(node_raw(node), "ROLE") || raw->count < 2) return "";
  return raw->element[1].text;
}

bool node_becomes(struct node *node, const char *role)
{
  int64_t until = now_ms() + MOVED_SOON;
  while (strcmp(node_role(node), role) != 0) {
    if (now_ms() > until) return false;
    sleep_ms(10);
  }
  return true;
}

bool node_follows(struct node *node)
{
  int64_t until = now_ms() + MOVED_SOON;
  while (strcmp(info(node, "replication", "master_link_status"), "up") != 0) {
    if (now_ms() > until) return false;
    sleep_ms(20);
  }
  return true;
}

void rig_part(struct rig *rig, unsigned nodes)
{
  net_part(&rig->net, nodes);
  rig->cut_off = nodes;
}

void rig_stop(struct rig *rig)
{
  for (int i = 0; i < NODES; i++)
    node_kill(&rig->node[i]);
  if (rig->options.parted) net_stop(&rig->net);
}

void rig_url(const struct rig *rig, int first, char *url, size_t size)
{
  int low = rig->cluster ? 0 : 3, count = NODES - low;
  const char *tls = rig->options.certificates != NULL ? "s" : "";
  size_t used =
      (size_t)snprintf(url, size, "redis%s+%s://", tls, rig->cluster ? "cluster" : "sentinel");
  for (int i = 0; i < count && used < size; i++) {
    const struct node *node = &rig->node[low + (first - low + i) % count];
    used +=
        (size_t)snprintf(url + used, size - used, "%s127.0.0.1:%d", i > 0 ? "," : "", node->port);
  }
  if (!rig->cluster && used < size) used += (size_t)snprintf(url + used, size - used, "/" SERVICE);
  if (used >= size) give_up("an address is too long");
}

/* Sentinel */

/* A field of the list of names and values that begins at an element; "" for none. */
static const char *field_of(const struct raw *raw, size_t at, const char *name)
{
  size_t end = at + 1 + (size_t)raw->element[at].integer;
  for (size_t i = at + 1; i < end && i + 1 < raw->count; i += 2) {
    if (strcmp(raw->element[i].text, name) == 0) return raw->element[i + 1].text;
  }
  return "";
}

/* What a Sentinel says of the master in a field; "" for nothing. */
static const char *told(struct node *sentinel, const char *field)
{
  struct raw *raw = node_raw(sentinel);
  if (raw->socket < 0 || raw_number(raw, "SENTINEL MASTER " SERVICE) < 0) return "";
  return field_of(raw, 0, field);
}

/* A Sentinel knows the others and the replicas, and would find a majority. */
static bool knows_all(struct node *sentinel)
{
  return strcmp(told(sentinel, "num-other-sentinels"), "2") == 0 &&
         strcmp(told(sentinel, "num-slaves"), "2") == 0 &&
         strcmp(told(sentinel, "flags"), "master") == 0 &&
         raw_run(node_raw(sentinel), "SENTINEL CKQUORUM " SERVICE);
}

void sentinels_start(struct rig *rig, const struct rig_options *options)
{
  rig_start(rig, options, false);
  for (int i = 0; i < 3; i++)
    node_start(rig, i, false);
  for (int i = 1; i < 3; i++) {
    if (!node_follows(&rig->node[i])) give_up("a replica does not follow");
  }
  for (int i = 3; i < 6; i++)
    node_start(rig, i, true);
  int64_t until = now_ms() + MOVED_SOON;
  for (int i = 3; i < 6; i++) {
    while (!knows_all(&rig->node[i])) {
      if (now_ms() > until) give_up("the Sentinels do not find each other");
      sleep_ms(50);
    }
  }
}

int sentinel_names(struct rig *rig, int sentinel)
{
  struct raw *raw = node_raw(&rig->node[sentinel]);
  if (raw->socket < 0 || raw_number(raw, "SENTINEL GET-MASTER-ADDR-BY-NAME " SERVICE) != 2)
    return -1;
  for (int i = 0; i < 3; i++) {
    if (rig->node[i].port == atoi(raw->element[2].text)) return i;
  }
  return -1;
}

static int agreed_master(struct rig *rig)
{
  int agreed = -1;
  for (int i = 3; i < 6; i++) {
    if (!node_answers(&rig->node[i])) continue;
    int named = sentinel_names(rig, i);
    if (agreed >= 0 && named != agreed) return -1;
    agreed = named;
  }
  return agreed;
}

bool sentinels_be_patient(struct rig *rig, bool patient)
{
  bool good = true;
  for (int i = 3; i < NODES; i++) {
    if (node_answers(&rig->node[i]))
      good &=
          raw_run(node_raw(&rig->node[i]), "SENTINEL SET " SERVICE " down-after-milliseconds %d",
                  patient ? 2 * MOVED_SOON : DOWN_AFTER_MS);
  }
  return good;
}

/* Waits until all live Sentinels name a new master, and it says that it is one. */
static int promoted(struct rig *rig, int old, int limit_ms)
{
  int64_t until = now_ms() + limit_ms;
  while (now_ms() < until) {
    int master = agreed_master(rig);
    if (master >= 0 && master != old && strcmp(node_role(&rig->node[master]), "master") == 0)
      return master;
    sleep_ms(20);
  }
  return -1;
}

int sentinels_promote(struct rig *rig, int old)
{
  CHECK(sentinels_be_patient(rig, false));
  int master = promoted(rig, old, MOVED_SOON);
  CHECK(sentinels_be_patient(rig, true));
  return master;
}

void sentinels_show(struct rig *rig)
{
  for (int i = 0; i < NODES; i++) {
    struct node *node = &rig->node[i];
    if (!node_answers(node)) printf("\n# node %d: dead or frozen", i);
    else if (!node->sentinel) printf("\n# node %d: %s", i, node_role(node));
    else printf("\n# node %d: names %d", i, sentinel_names(rig, i));
  }
  printf("\n");
}

/* Another live node than the master, on its side of the network. */
static bool beside(const struct rig *rig, int node, int master)
{
  bool apart = ((rig->cut_off >> node) & 1U) != ((rig->cut_off >> master) & 1U);
  return node != master && !apart && node_answers(&rig->node[node]);
}

/* For how long a Sentinel has not heard from a replica. */
static int64_t unheard_ms(struct node *sentinel, const struct node *replica)
{
  struct raw *raw = node_raw(sentinel);
  if (raw->socket < 0 || raw_number(raw, "SENTINEL SLAVES " SERVICE) < 0) return INT64_MAX;
  for (size_t at = 1; at < raw->count; at += 1 + (size_t)raw->element[at].integer) {
    if (atoi(field_of(raw, at, "port")) == replica->port)
      return atoll(field_of(raw, at, "info-refresh"));
  }
  return INT64_MAX;
}

/* A Sentinel has ended the fail-over, and has heard from all replicas since they follow the master. */
static bool has_settled(struct rig *rig, int sentinel, int master, int64_t since)
{
  struct node *node = &rig->node[sentinel];
  for (int i = 0; i < 3; i++) {
    int64_t passed = now_ms() - since;
    if (beside(rig, i, master) && unheard_ms(node, &rig->node[i]) >= passed) return false;
  }
  return strcmp(told(node, "flags"), "master") == 0;
}

bool sentinels_settle(struct rig *rig, int master)
{
  for (int i = 0; i < 3; i++) {
    struct node *node = &rig->node[i];
    if (beside(rig, i, master) && (!node_becomes(node, "slave") || !node_follows(node)))
      return false;
  }
  int64_t since = now_ms(), until = since + MOVED_SOON;
  for (int i = 3; i < NODES; i++) {
    while (beside(rig, i, master) && !has_settled(rig, i, master, since)) {
      if (now_ms() > until) return false;
      sleep_ms(20);
    }
  }
  return true;
}

/* It refuses until it has looked at the replicas since it started. */
static bool begins_fail_over(struct rig *rig)
{
  for (int i = 3; i < NODES; i++) {
    struct node *node = &rig->node[i];
    if (node_answers(node) && raw_run(node_raw(node), "SENTINEL FAILOVER " SERVICE)) return true;
  }
  return false;
}

/*
 * They give up a fail-over when no replica seems good, as after a moment in which none answered: so
 * they are asked again, while the old master is still the one that all name.
 */
int sentinels_fail_over(struct rig *rig, int old)
{
  int64_t until = now_ms() + MOVED_SOON;
  int master = -1;
  while (master < 0 && now_ms() < until) {
    bool begun = agreed_master(rig) == old && begins_fail_over(rig);
    master = promoted(rig, old, begun ? GIVEN_UP_MS : 100);
  }
  return master;
}
