/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What port/posix's transport has and one without Unix sockets, several addresses and texts of errors
 * has not. For a port_posix.h that takes its place: it includes this when it has defined port_posix and
 * port_posix_tcp(), and, where a socket is not a descriptor, port_posix_fd().
 */
#ifndef ONLY_TCP_H
#define ONLY_TCP_H

static inline bool port_posix_seeds(struct port_posix *socket, const char *seeds)
{
  (void)seeds;
  port_posix_tcp(socket, "127.0.0.1", "0");
  return false;
}

static inline bool port_posix_unix(struct port_posix *socket, const char *path)
{
  (void)path;
  port_posix_tcp(socket, "127.0.0.1", "0");
  return false;
}

#define PORT_POSIX_HOST_SIZE 256

static inline void port_posix_host(const void *context, char *host, size_t size)
{
  (void)context, (void)size;
  host[0] = 0;
}

#define PORT_POSIX_ERROR_SIZE 64

static inline void port_posix_error(const struct port_posix *socket, char *text, size_t size)
{
  (void)socket, (void)size;
  text[0] = 0;
}

#ifndef port_posix_fd
static inline int port_posix_fd(const struct port_posix *socket)
{
  return socket->socket;
}
#endif

#endif
