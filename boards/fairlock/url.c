/* SPDX-License-Identifier: Apache-2.0 */
/* Takes passwords out of URLs, also of those that are wrong: there, any '@' may be a password's end. */
#include "url.h"

#include <string.h>

#include "port_posix.h"

/* Where "user:password@..." begins; NULL: nowhere. */
static char *login_of(char *text)
{
  char *mark = strstr(text, "://");
  return mark != NULL ? mark + 3 : NULL;
}

/* The last '@' in text. */
static char *last_at(char *text, size_t size)
{
  while (size > 0 && text[size - 1] != '@')
    size--;
  return size > 0 ? text + size - 1 : NULL;
}

/* The ':' before the password; NULL: there is none. */
static char *colon_in(char *login, const char *at)
{
  return at != NULL ? memchr(login, ':', (size_t)(at - login)) : NULL;
}

void url_hide_password(char *text)
{
  char *login = login_of(text);
  if (login == NULL) return;
  char *at = last_at(login, strlen(login));
  char *colon = colon_in(login, at);
  if (colon != NULL) memset(colon + 1, '*', (size_t)(at - colon - 1));
}

void url_drop_password(char *text)
{
  struct port_posix_server server;
  char *login = login_of(text);
  if (login == NULL) login = text;
  bool right = port_posix_read_url(&server, text) == NULL;
  char *at = last_at(login, right ? strcspn(login, "/?#") : strlen(login));
  char *colon = colon_in(login, at);
  if (colon == NULL) return;
  /* if there is no user, the '@' goes, too */
  char *rest = colon > login ? at : at + 1;
  memmove(colon, rest, strlen(rest) + 1);
}
