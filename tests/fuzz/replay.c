/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs a fuzz target on existing inputs, without a fuzzer: the files and folders given, or, without
 * arguments, the target's corpus, which is unpacked beside the program, and its regressions; the
 * program has the target's name. An input is in memory of exactly its size, so that a sanitizer
 * sees each byte read beyond it. What the target or a sanitizer finds ends the program, after a
 * line that names the input.
 */
#define _DEFAULT_SOURCE 1

#include <dirent.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
const char *__asan_default_options(void);

static size_t inputs;
static bool complete = true; /* all that was to be run could be read */
static char current[4096];

/* So that on_abort() hears of what a sanitizer finds, too. */
const char *__asan_default_options(void)
{
  return "abort_on_error=1:detect_leaks=1";
}

static void on_abort(int number)
{
  static const char before[] = "not ok ";
  (void)!write(STDOUT_FILENO, before, sizeof before - 1);
  (void)!write(STDOUT_FILENO, current, strlen(current));
  (void)!write(STDOUT_FILENO, "\n", 1);
  _exit(128 + number);
}

/* Returns the file's bytes in memory of their own, or NULL. */
static uint8_t *read_file(const char *path, size_t *size)
{
  static uint8_t bytes[1 << 20];
  FILE *file = fopen(path, "rb");
  if (file == NULL) return NULL;
  *size = fread(bytes, 1, sizeof bytes, file);
  (void)fclose(file);
  uint8_t *copy = malloc(*size > 0 ? *size : 1);
  if (copy != NULL) memcpy(copy, bytes, *size);
  return copy;
}

static void replay_file(const char *path)
{
  size_t size;
  uint8_t *data = read_file(path, &size);
  if (data == NULL) {
    printf("# cannot be read: %s\n", path);
    complete = false;
    return;
  }
  (void)snprintf(current, sizeof current, "%s", path);
  (void)LLVMFuzzerTestOneInput(data, size);
  free(data);
  inputs++;
}

static void replay(const char *path)
{
  DIR *folder = opendir(path);
  if (folder == NULL) {
    replay_file(path);
    return;
  }
  for (const struct dirent *entry; (entry = readdir(folder)) != NULL;) {
    char name[4096];
    if (entry->d_name[0] == '.') continue;
    int length = snprintf(name, sizeof name, "%s/%s", path, entry->d_name);
    if (length > 0 && (size_t)length < sizeof name) replay_file(name);
  }
  (void)closedir(folder);
}

/* folder: the program's, up to its last slash. */
static void replay_committed(const char *folder, int length, const char *target)
{
  char path[4096];
  (void)snprintf(path, sizeof path, "%.*scorpus/%s", length, folder, target);
  replay(path);
  (void)snprintf(path, sizeof path, "tests/fuzz/regressions/%s", target);
  if (access(path, F_OK) == 0) replay(path); /* there may have been none */
}

int main(int argc, char **argv)
{
  const char *slash = strrchr(argv[0], '/');
  const char *name = slash != NULL ? slash + 1 : argv[0];
  (void)signal(SIGABRT, on_abort);
  for (int i = 1; i < argc; i++)
    replay(argv[i]);
  if (argc == 1)
    replay_committed(argv[0], (int)(name - argv[0]),
                     strncmp(name, "fuzz_", 5) == 0 ? name + 5 : name);
  complete = complete && inputs > 0;
  printf("# %zu inputs\n%sok replay of %s\n", inputs, complete ? "" : "not ", name);
  return !complete;
}
