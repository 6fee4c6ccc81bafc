/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fails to compile when boards/service has other structs than src/service.rs, which has these.
 */
#include "service.h"

struct raw_options {
  size_t size;
  const char *texts[11];
  uint32_t numbers[9];
};

struct raw_event {
  size_t size;
  uintptr_t user;
  uint64_t token, lost, asked;
  uint32_t what;
  int32_t status, reason;
  char words[216];
};

_Static_assert(sizeof(struct raw_options) == sizeof(struct fls_options) &&
                   offsetof(struct raw_options, texts) == offsetof(struct fls_options, url) &&
                   offsetof(struct raw_options, numbers) ==
                       offsetof(struct fls_options, lease_ms) &&
                   offsetof(struct raw_options, numbers[7]) ==
                       offsetof(struct fls_options, keep_ms),
               "RawOptions");
_Static_assert(sizeof(struct raw_event) == sizeof(struct fls_event) &&
                   offsetof(struct raw_event, user) == offsetof(struct fls_event, user) &&
                   offsetof(struct raw_event, what) == offsetof(struct fls_event, what) &&
                   offsetof(struct raw_event, status) == offsetof(struct fls_event, status),
               "RawEvent");
_Static_assert(FLS_PENDING == 1 && FLS_EXCLUSIVE == -1 && FLS_ENDED == 1 && FLS_LOST == 2 &&
                   FLS_ERROR_SIZE == 512 && FLS_ID_SIZE == 80,
               "the constants");
