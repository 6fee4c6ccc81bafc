/*
 * Where the servers are:
 *   redis://[user:password@]host[:port][/db]                      a server, or a node of a cluster
 *   redis+sentinel://[user:password@]host[:port],.../service[/db] Sentinels, which know the master
 *   redis+cluster://[user:password@]host[:port],...[/db]          some nodes of a cluster
 *   unix://[user:password@]/path[?db=number]
 * rediss means the same with TLS; valkey and valkeys mean the same as redis and rediss. User and
 * password are those of the data server, not of the Sentinels.
 */
#ifndef URL_H
#define URL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Room for the longest URL without its password, with its terminating 0. */
#define URL_SIZE 2048

/* The longest password that Redis accepts from a client that has not logged in. */
#define PASSWORD_MAX 16384

struct url {
  const char *host;     /* of the one server; NULL: there are seeds, or a path */
  const char *port;     /* digits                               */
  const char *seeds;    /* "host:port,host:port"; NULL: none    */
  const char *service;  /* the seeds are Sentinels; NULL: nodes */
  const char *path;     /* of a Unix socket                     */
  const char *user;     /* NULL: none                           */
  const char *password; /* NULL: none                           */
  bool tls;
  uint32_t database;
  char shown[2 * URL_SIZE];                  /* for messages: without password  */
  char places[URL_SIZE];                     /* seeds points to it              */
  char storage[URL_SIZE + 3 * PASSWORD_MAX]; /* the other pointers point into it; %41 is one byte */
};

/* Parses text. Returns NULL, or what is wrong with it, in words. */
const char *url_parse(struct url *url, const char *text);

/*
 * Overwrites the password in text, if it has one, with asterisks, which the process list then
 * shows.
 */
void url_hide_password(char *text);

/* Removes the password from text, if it has one, and leaves the rest as it was. */
void url_drop_password(char *text);

#endif
