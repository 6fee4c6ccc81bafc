/*
 * Zephyr's transport in place of port/posix's, for suites that are compiled with this folder before
 * that one: they and the harness then run on it as they are.
 */
#ifndef PORT_POSIX_H
#define PORT_POSIX_H

#include "port_zephyr.h"

#define port_posix     port_zephyr
#define port_posix_tcp port_zephyr_tcp

static inline bool port_posix_seeds(struct port_posix *socket, const char *seeds)
{
  (void)seeds;
  port_zephyr_tcp(socket, "127.0.0.1", "0");
  return false;
}

static inline bool port_posix_unix(struct port_posix *socket, const char *path)
{
  (void)path;
  port_zephyr_tcp(socket, "127.0.0.1", "0");
  return false;
}

#define PORT_POSIX_HOST_SIZE 256

static inline void port_posix_host(const void *context, char host[PORT_POSIX_HOST_SIZE])
{
  (void)context;
  host[0] = 0;
}

#define PORT_POSIX_ERROR_SIZE 64

static inline void port_posix_error(const struct port_posix *socket,
                                    char text[PORT_POSIX_ERROR_SIZE])
{
  (void)socket;
  text[0] = 0;
}

static inline int port_posix_fd(const struct port_posix *socket)
{
  return socket->socket;
}

#endif
