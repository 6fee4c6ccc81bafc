/*
 * Where the server is: redis://[user:password@]host[:port][/db] or
 * unix://[user:password@]/path[?db=number].
 */
#ifndef URL_H
#define URL_H

#include <stddef.h>
#include <stdint.h>

#define URL_SIZE 2048 /* the longest, its end mark included */

struct url {
  const char *host;     /* NULL: path is set                    */
  const char *port;     /* digits                               */
  const char *path;     /* of a Unix socket                     */
  const char *user;     /* NULL: none                           */
  const char *password; /* NULL: none                           */
  uint32_t database;
  char shown[URL_SIZE + 16]; /* for messages: without password  */
  char storage[URL_SIZE];    /* what the pointers point into    */
};

/* Takes text apart. Returns NULL, or what is wrong with it, in plain words. */
const char *url_parse(struct url *url, const char *text);

/*
 * Overwrites the password in text, if it has one, with asterisks: for a URL that stands in a
 * process list.
 */
void url_hide_password(char *text);

/* Takes the password out of text, if it has one, and leaves the rest as good as it was. */
void url_drop_password(char *text);

#endif
