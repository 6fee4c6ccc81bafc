/* SPDX-License-Identifier: Apache-2.0 */
/* TCP sockets on 127.0.0.1; see loopback.h. */
#include "loopback.h"
#include "process.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

static struct sockaddr_in address_of(int port)
{
  return (struct sockaddr_in){.sin_family = AF_INET,
                              .sin_port = htons((uint16_t)port),
                              .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
}

static void set_options(int opened)
{
  int one = 1;
  (void)fcntl(opened, F_SETFD, FD_CLOEXEC);
  (void)setsockopt(opened, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
}

int dial(int port)
{
  struct sockaddr_in address = address_of(port);
  int opened = socket(AF_INET, SOCK_STREAM, 0);
  if (opened < 0) give_up("socket");
  set_options(opened);
  if (connect(opened, (struct sockaddr *)&address, sizeof address) == 0) return opened;
  (void)close(opened);
  return -1;
}

int take_call(int listener)
{
  int taken = accept(listener, NULL, NULL);
  if (taken >= 0) set_options(taken);
  return taken;
}

static int bind_anywhere(int *port)
{
  struct sockaddr_in address = address_of(0);
  socklen_t size = sizeof address;
  int opened = socket(AF_INET, SOCK_STREAM, 0);
  if (opened < 0 || bind(opened, (struct sockaddr *)&address, size) != 0 ||
      getsockname(opened, (struct sockaddr *)&address, &size) != 0)
    give_up("bind");
  set_options(opened);
  *port = ntohs(address.sin_port);
  return opened;
}

int listen_anywhere(int *port)
{
  int opened = bind_anywhere(port);
  if (listen(opened, 128) != 0) give_up("listen");
  return opened;
}

int free_port(void)
{
  int port;
  (void)close(bind_anywhere(&port));
  return port;
}
