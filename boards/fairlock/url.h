/* SPDX-License-Identifier: Apache-2.0 */
/* Keeps the password of a URL from those who must not see it. The library reads URLs: port_posix.h. */
#ifndef URL_H
#define URL_H

/* Overwrites the password in text with asterisks, which the process list then shows. */
void url_hide_password(char *text);

/* Removes the password from text, if it has one, and leaves the rest as it was. */
void url_drop_password(char *text);

#endif
