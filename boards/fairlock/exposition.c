/*
 * What `fairlock run --metrics-file` and `fairlock list --metrics` share: the text format of
 * Prometheus, as the textfile collector of its node_exporter reads it, and files that change all at
 * once.
 */
#define _DEFAULT_SOURCE 1 /* what -std=c11 hides */

#include "exposition.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

void exposition_begin(FILE *to, const char *name, const char *type, const char *help)
{
  fprintf(to, "# HELP fairlock_%s %s\n", name, help);
  fprintf(to, "# TYPE fairlock_%s %s\n", name, type);
}

void exposition_print_label(FILE *to, const char *text)
{
  for (; *text != 0; text++) {
    if (*text == '"' || *text == '\\') fputc('\\', to);
    fputc(*text, to);
  }
}

void exposition_print_seconds(FILE *to, int64_t ms)
{
  fprintf(to, "%" PRId64 ".%03d", ms / 1000, (int)(ms % 1000));
}

/* Writes a new file. Returns whether all of it was written. */
static bool write_new(const char *path, exposition_function *write, const void *context)
{
  (void)unlink(path); /* left by a process that had our number and was killed */
  int descriptor = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  FILE *file = descriptor >= 0 ? fdopen(descriptor, "w") : NULL;
  if (file == NULL) {
    if (descriptor >= 0) (void)close(descriptor);
    return false;
  }
  bool written = write(file, context) && !ferror(file);
  return fclose(file) == 0 && written;
}

/*
 * Only a file gives way to a new one: to take the place of a device, a pipe or a link (/dev/stdout
 * is one) would destroy it. A folder refuses by itself.
 */
static bool may_replace(const char *path)
{
  struct stat there;
  return lstat(path, &there) != 0 || S_ISREG(there.st_mode) || S_ISDIR(there.st_mode);
}

const char *exposition_replace(const char *path, exposition_function *write, const void *context)
{
  if (!may_replace(path)) return "Not a regular file";
  size_t size = strlen(path) + 24;
  char *temporary = malloc(size);
  if (temporary == NULL) return strerror(ENOMEM);
  snprintf(temporary, size, "%s.%ld", path, (long)getpid());
  bool done = write_new(temporary, write, context) && rename(temporary, path) == 0;
  int error = errno;
  if (!done) (void)unlink(temporary);
  free(temporary);
  return done ? NULL : strerror(error);
}
