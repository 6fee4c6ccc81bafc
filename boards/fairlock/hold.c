/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `fairlock hold`, `acquire` and `release`: a hold that a script begins with one command and ends with
 * another. It is that of a `fairlock run` (run.c) in a session of its own, so that what ends the script
 * does not end it before the script has cleaned up. In place of a command it has a process that waits
 * until nobody reads its output (hold), or until the owner has ended or `fairlock release` asks
 * (acquire). There is no hold without somebody who can die, or a time that ends.
 *
 * What says that it is held is a socket, and no file that could outlive the hold: whoever can connect has
 * found the process that holds, and gets its answer.
 */
#define _DEFAULT_SOURCE 1 /* what -std=c11 hides */

#include "hold.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "command.h"
#include "system.h"

#define OWNER_STEP_MS 200 /* looks whether the owner lives, where the system does not tell */
#define WAITING_MOST  16  /* may ask for the release at the same time                     */
#define LINE_SIZE     (MOST_LOCKS * (sizeof(struct grant) + 24))

/* The socket. Returns -1, with errno set, if the path is too long. */
static int socket_at(const char *path, int kind, struct sockaddr_un *address)
{
  memset(address, 0, sizeof *address);
  address->sun_family = AF_UNIX;
  errno = ENAMETOOLONG;
  if (strlen(path) >= sizeof address->sun_path) return -1;
  memcpy(address->sun_path, path, strlen(path));
  return socket(AF_UNIX, kind, 0);
}

static bool is_socket(const char *path)
{
  struct stat what;
  return stat(path, &what) == 0 && S_ISSOCK(what.st_mode);
}

/* Listens at the path. A socket at which nobody listens any more is replaced, and nothing else. */
static int listen_at(const char *path)
{
  struct sockaddr_un address;
  const struct sockaddr *place = (const struct sockaddr *)(void *)&address;
  int listener = socket_at(path, SOCK_STREAM, &address);
  /* one of another kind is refused only if nobody listens, and asks for no release otherwise */
  int other = listener < 0 ? -1 : socket_at(path, SOCK_DGRAM, &address);
  if (other < 0) return -1;
  bool refused = connect(other, place, sizeof address) != 0 && errno == ECONNREFUSED;
  if (refused && is_socket(path)) (void)unlink(path);
  (void)close(other);
  mode_t mask = umask(077); /* whoever can connect can end the hold */
  int bound = bind(listener, place, sizeof address);
  int error = errno;
  (void)umask(mask);
  errno = error;
  if (bound != 0 || listen(listener, WAITING_MOST) != 0) return -1;
  (void)fcntl(listener, F_SETFL, O_NONBLOCK);
  return listener;
}

/* acquire: waits for what its background process prints, and ends as that says. */
static void relay(pid_t background, int from)
{
  char line[LINE_SIZE];
  size_t size = 0;
  int status = 0;
  while (size < sizeof line && (size == 0 || line[size - 1] != '\n')) {
    ssize_t got = read(from, line + size, sizeof line - size);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    size += (size_t)got;
  }
  if (size > 0) {
    (void)fwrite(line, 1, size, stdout);
    exit(end_output(EXIT_DONE));
  }
  (void)waitpid(background, &status, 0);
  exit(WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
}

/* hold, if it leads its process group: waits, so that whoever waits for us gets the status. */
static void stand_by(pid_t background)
{
  int status = 0;
  (void)close(STDOUT_FILENO); /* the end of the output is that of the background process */
  (void)waitpid(background, &status, 0);
  exit(WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
}

/* Leaves the session. Returns false, with errno set, if the system refuses that. */
static bool leave(bool background)
{
  int ends[2] = {-1, -1};
  if (!background && setsid() >= 0) return true;
  if (background && pipe(ends) != 0) return false;
  pid_t pid = fork();
  if (pid < 0) return false;
  if (pid > 0) {
    (void)close(ends[1]);
    if (background) relay(pid, ends[0]);
    else stand_by(pid);
  }
  if (background) {
    int nothing = open("/dev/null", O_RDONLY);
    (void)dup2(nothing, STDIN_FILENO);
    (void)dup2(ends[1], STDOUT_FILENO);
    (void)close(nothing);
    (void)close(ends[0]);
    (void)close(ends[1]);
  }
  return setsid() >= 0;
}

int hold_prepare(struct holding *holding, const struct command_line *line)
{
  struct stat output;
  bool background = holding->state != NULL;
  holding->listener = -1;
  holding->owner = -1;
  bool read_by_somebody =
      fstat(STDOUT_FILENO, &output) == 0 && (S_ISFIFO(output.st_mode) || S_ISSOCK(output.st_mode));
  if (!background && !read_by_somebody)
    return misused(line, "stdout has to be a pipe: the lock is held while somebody reads it");
  if (holding->pid > 0) holding->owner = system_watch((pid_t)holding->pid);
  if (holding->owner < 0 && holding->pid > 0 && kill((pid_t)holding->pid, 0) != 0 && errno == ESRCH)
    return misused(line, "there is no process %u", (unsigned)holding->pid);
  if (!leave(background)) {
    complain("cannot start a process: %s", strerror(errno));
    return EXIT_SYSTEM;
  }
  if (background) holding->listener = listen_at(holding->state);
  if (!background || holding->listener >= 0) return EXIT_DONE;
  complain("cannot listen at %s: %s", holding->state, strerror(errno));
  return EXIT_NO_INPUT;
}

static bool print_grants(int to, const struct grant *grants, size_t count)
{
  char line[LINE_SIZE];
  size_t size = 0;
  for (size_t i = 0; i < count; i++)
    size += (size_t)snprintf(line + size, sizeof line - size, "%llu %s%c",
                             (unsigned long long)grants[i].token, grants[i].holder,
                             i + 1 < count ? ' ' : '\n');
  return write(to, line, size) == (ssize_t)size;
}

int hold_keep(const void *context, const struct grant *grants, size_t count)
{
  const struct holding *holding = context;
  bool polled = holding->pid > 0 && holding->owner < 0;
  int output = dup(STDOUT_FILENO);
  int kept[] = {output, holding->listener, holding->owner};
  system_let_go(kept, sizeof kept / sizeof kept[0]);
  (void)signal(SIGPIPE, SIG_IGN);
  if (!print_grants(output, grants, count)) return EXIT_DONE; /* nobody reads it any more */
  if (holding->state != NULL) {
    (void)close(output);
    output = -1;
  }
  for (;;) {
    struct pollfd sources[] = {{.fd = output},
                               {.fd = holding->listener, .events = POLLIN},
                               {.fd = holding->owner, .events = POLLIN}};
    int ready = poll(sources, 3, polled ? OWNER_STEP_MS : -1);
    bool ended = polled && kill((pid_t)holding->pid, 0) != 0 && errno == ESRCH;
    if (ready > 0 || ended) return EXIT_DONE;
  }
}

void hold_let_go(void)
{
  int nothing = open("/dev/null", O_RDWR);
  for (int i = 0; i < 3; i++)
    (void)dup2(nothing, i);
  (void)close(nothing);
}

void hold_answer(const struct holding *holding, bool was_held, int status)
{
  unsigned char byte = (unsigned char)status;
  int asking;
  if (holding->listener < 0) return;
  if (!was_held) (void)unlink(holding->state); /* else a later release finds that it is over */
  while ((asking = accept(holding->listener, NULL, NULL)) >= 0) {
    (void)unlink(holding->state);
    ssize_t written = send(asking, &byte, 1, 0);
    (void)written;
    (void)close(asking);
  }
}

static const struct option_row no_options[] = {{0}};

static const struct command_line usage = {
    .command = "release",
    .usage = "fairlock release [OPTION]... FILE",
    .about = "\nReleases the lock that fairlock acquire --state FILE has acquired.\n",
    .statuses = "Exit status: 0 released, 79 it was lost, or its time was over, before; or",
    .options = no_options,
};

int release_command(int argc, char **argv)
{
  struct command_line line = usage;
  struct sockaddr_un address;
  unsigned char status = EXIT_LOST;
  if (parse_options(&line, NULL, argc, argv) != EXIT_DONE) return EXIT_USAGE;
  if (line.count != 1) return misused(&line, "one FILE is needed");
  const char *path = line.arguments[0];
  int to = socket_at(path, SOCK_STREAM, &address);
  bool made = to >= 0 && connect(to, (struct sockaddr *)(void *)&address, sizeof address) == 0;
  if (!made && (errno != ECONNREFUSED || !is_socket(path))) {
    complain("cannot release by %s: %s", path, strerror(errno));
    return EXIT_NO_INPUT;
  }
  ssize_t got;
  do
    got = made ? read(to, &status, 1) : 0;
  while (got < 0 && errno == EINTR);
  if (status == EXIT_DONE) return EXIT_DONE;
  complain("the hold of %s was lost, or had ended, before", path);
  return EXIT_LOST;
}
