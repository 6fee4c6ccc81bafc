/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The module _fairlock for MicroPython: boards/core with the types that fairlock.py needs. It does no
 * I/O, and waits for nothing.
 *
 * Cores and locks lie on MicroPython's heap. The collector moves nothing, and takes each word of a
 * live piece for a possible address, so an object Core keeps its core alive, and the core its locks,
 * dropped ones too. Who services a core has to keep its Core: fairlock.py's task does. There are no
 * finalizers, because the collector may free a core before its locks.
 */
#include "../../core/core.h"

#include "py/gc.h"
#include "py/mphal.h"
#include "py/objstr.h"
#include "py/runtime.h"

#include <string.h>

typedef struct {
  mp_obj_base_t base;
  struct fairlock_core *core;
} core_obj_t;

typedef struct {
  mp_obj_base_t base;
  core_obj_t *owner;
  struct fairlock_core_lock *lock; /* NULL: dropped */
} lock_obj_t;

void *fairlock_core_allocate(size_t size)
{
  return gc_alloc(size, 0);
}

void fairlock_core_free(void *memory)
{
  gc_free(memory);
}

static uint32_t now(void)
{
  return (uint32_t)mp_hal_ticks_ms();
}

static mp_obj_t text(const char *words)
{
  return mp_obj_new_str(words, strlen(words));
}

/* A method that only calls the function of its name, and makes an object of what it returns. */
#define METHOD(type, name, ...)                                                                    \
  static mp_obj_t type##_##name(mp_obj_t self)                                                     \
  {                                                                                                \
    return __VA_ARGS__;                                                                            \
  }                                                                                                \
  static MP_DEFINE_CONST_FUN_OBJ_1(type##_##name##_obj, type##_##name)

#define MEMBER(type, name)                                                                         \
  {                                                                                                \
    MP_ROM_QSTR(MP_QSTR_##name), MP_ROM_PTR(&type##_##name##_obj)                                  \
  }

/* Lock */

static struct fairlock_core_lock *lock_of(mp_obj_t self)
{
  struct fairlock_core_lock *lock = ((lock_obj_t *)MP_OBJ_TO_PTR(self))->lock;
  if (lock == NULL) mp_raise_ValueError(MP_ERROR_TEXT("dropped"));
  return lock;
}

static mp_obj_t lock_acquire(mp_obj_t self, mp_obj_t wait_ms, mp_obj_t lease_ms)
{
  return mp_obj_new_int(fairlock_core_acquire(lock_of(self),
                                              (uint32_t)mp_obj_get_int_truncated(wait_ms),
                                              (uint32_t)mp_obj_get_int_truncated(lease_ms), now()));
}
static MP_DEFINE_CONST_FUN_OBJ_3(lock_acquire_obj, lock_acquire);

static mp_obj_t lock_drop(mp_obj_t self)
{
  fairlock_core_drop(lock_of(self), now());
  ((lock_obj_t *)MP_OBJ_TO_PTR(self))->lock = NULL;
  return mp_const_none;
}
static MP_DEFINE_CONST_FUN_OBJ_1(lock_drop_obj, lock_drop);

METHOD(lock, release, mp_obj_new_int(fairlock_core_release(lock_of(self), now())));
METHOD(lock, token, mp_obj_new_int_from_ull(fairlock_core_token(lock_of(self), now())));
METHOD(lock, remaining, mp_obj_new_int_from_uint(fairlock_core_remaining(lock_of(self), now())));
METHOD(lock, id, text(fairlock_core_id(lock_of(self))));

static const mp_rom_map_elem_t lock_members[] = {
    MEMBER(lock, acquire), MEMBER(lock, release),   MEMBER(lock, drop),
    MEMBER(lock, token),   MEMBER(lock, remaining), MEMBER(lock, id),
};
static MP_DEFINE_CONST_DICT(lock_dict, lock_members);
static MP_DEFINE_CONST_OBJ_TYPE(lock_type, MP_QSTR_Lock, MP_TYPE_FLAG_NONE, locals_dict,
                                &lock_dict);

/* Core */

static struct fairlock_core *core_of(mp_obj_t self)
{
  return ((core_obj_t *)MP_OBJ_TO_PTR(self))->core;
}

/* Core(user=, password=, client_id=, database=, lease_ms=, waiter_ms=, name_max=) */
static mp_obj_t core_new(const mp_obj_type_t *type, size_t count, size_t named,
                         const mp_obj_t *args)
{
  enum { OF_USER, OF_PASSWORD, OF_CLIENT_ID, OF_DATABASE, OF_LEASE, OF_WAITER, OF_NAME, OPTIONS };
  static const mp_arg_t options_of[OPTIONS] = {
      {MP_QSTR_user, MP_ARG_OBJ, {.u_rom_obj = MP_ROM_NONE}},
      {MP_QSTR_password, MP_ARG_OBJ, {.u_rom_obj = MP_ROM_NONE}},
      {MP_QSTR_client_id, MP_ARG_OBJ, {.u_rom_obj = MP_ROM_NONE}},
      {MP_QSTR_database, MP_ARG_INT, {.u_int = 0}},
      {MP_QSTR_lease_ms, MP_ARG_INT, {.u_int = 0}},
      {MP_QSTR_waiter_ms, MP_ARG_INT, {.u_int = 0}},
      {MP_QSTR_name_max, MP_ARG_INT, {.u_int = 128}},
  };
  mp_arg_val_t given[OPTIONS];
  mp_arg_parse_all_kw_array(count, named, args, OPTIONS, options_of, given);
  const char *texts[OF_DATABASE];
  for (int i = 0; i < OF_DATABASE; i++)
    texts[i] = given[i].u_obj == mp_const_none ? NULL : mp_obj_str_get_str(given[i].u_obj);
  struct fairlock_core_options options = {.user = texts[OF_USER],
                                          .password = texts[OF_PASSWORD],
                                          .client_id = texts[OF_CLIENT_ID],
                                          .database = (uint32_t)given[OF_DATABASE].u_int,
                                          .lease_ms = (uint32_t)given[OF_LEASE].u_int,
                                          .waiter_ms = (uint32_t)given[OF_WAITER].u_int,
                                          .name_max = (uint32_t)given[OF_NAME].u_int};
  core_obj_t *self = mp_obj_malloc(core_obj_t, type);
  self->core = fairlock_core_create(&options);
  if (self->core == NULL)
    mp_raise_ValueError((mp_rom_error_text_t)fairlock_core_status_text(options.status));
  return MP_OBJ_FROM_PTR(self);
}

/* core.lock(name, limit, key): a Lock, or a status */
static mp_obj_t core_lock(size_t count, const mp_obj_t *args)
{
  (void)count;
  size_t size;
  const char *name = mp_obj_str_get_data(args[1], &size);
  lock_obj_t *self = mp_obj_malloc(lock_obj_t, &lock_type);
  self->owner = MP_OBJ_TO_PTR(args[0]);
  self->lock = fairlock_core_lock(self->owner->core, name, size, (int32_t)mp_obj_get_int(args[2]),
                                  (uint32_t)mp_obj_get_int_truncated(args[3]));
  if (self->lock == NULL) return mp_obj_new_int(fairlock_core_status(self->owner->core));
  return MP_OBJ_FROM_PTR(self);
}
static MP_DEFINE_CONST_FUN_OBJ_VAR_BETWEEN(core_lock_obj, 4, 4, core_lock);

/* The next event: (kind, key, status), or None */
static mp_obj_t core_next(mp_obj_t self)
{
  const struct fairlock_core_event *event = fairlock_core_next(core_of(self));
  if (event == NULL) return mp_const_none;
  mp_obj_t items[] = {mp_obj_new_int_from_uint(event->kind), mp_obj_new_int_from_uint(event->key),
                      mp_obj_new_int(event->status)};
  return mp_obj_new_tuple(3, items);
}
static MP_DEFINE_CONST_FUN_OBJ_1(core_next_obj, core_next);

static mp_obj_t core_closed(mp_obj_t self, mp_obj_t status)
{
  fairlock_core_closed(core_of(self), (int32_t)mp_obj_get_int(status), now());
  return mp_const_none;
}
static MP_DEFINE_CONST_FUN_OBJ_2(core_closed_obj, core_closed);

/* Bytes to send, which from then on count as sent; they are a copy. */
static mp_obj_t core_output(mp_obj_t self)
{
  struct fairlock_core *core = core_of(self);
  uint32_t size = fairlock_core_output(core, now());
  mp_obj_t bytes = mp_obj_new_bytes(fairlock_core_output_at(core), size);
  fairlock_core_sent(core, size);
  return bytes;
}
static MP_DEFINE_CONST_FUN_OBJ_1(core_output_obj, core_output);

/* b"": there was nothing. False: the connection has to be closed. */
static mp_obj_t core_received(mp_obj_t self, mp_obj_t bytes)
{
  struct fairlock_core *core = core_of(self);
  mp_buffer_info_t data;
  mp_get_buffer_raise(bytes, &data, MP_BUFFER_READ);
  const uint8_t *at = data.buf;
  size_t left = data.len;
  do {
    size_t size = fairlock_core_input(core);
    if (size == 0) return mp_const_false;
    if (size > left) size = left;
    memcpy(fairlock_core_input_at(core), at, size);
    fairlock_core_received(core, (uint32_t)size, now());
    at += size;
    left -= size;
  } while (left > 0);
  return mp_const_true;
}
static MP_DEFINE_CONST_FUN_OBJ_2(core_received_obj, core_received);

METHOD(core, wants, mp_obj_new_int_from_uint(fairlock_core_wants(core_of(self), now())));
METHOD(core, deadline, mp_obj_new_int_from_uint(fairlock_core_deadline(core_of(self), now())));
METHOD(core, connect, (fairlock_core_connect(core_of(self), now()), mp_const_none));
METHOD(core, opening, (fairlock_core_opening(core_of(self), now()), mp_const_none));
METHOD(core, opened, (fairlock_core_opened(core_of(self), now()), mp_const_none));
METHOD(core, ready, mp_obj_new_bool(fairlock_core_ready(core_of(self))));
METHOD(core, leaving, mp_obj_new_int_from_uint(fairlock_core_leaving(core_of(self))));
METHOD(core, error, text(fairlock_core_error(core_of(self))));

static const mp_rom_map_elem_t core_members[] = {
    MEMBER(core, lock),    MEMBER(core, next),   MEMBER(core, wants),    MEMBER(core, deadline),
    MEMBER(core, connect), MEMBER(core, ready),  MEMBER(core, opening),  MEMBER(core, opened),
    MEMBER(core, closed),  MEMBER(core, output), MEMBER(core, received), MEMBER(core, leaving),
    MEMBER(core, error),
};
static MP_DEFINE_CONST_DICT(core_dict, core_members);
static MP_DEFINE_CONST_OBJ_TYPE(core_type, MP_QSTR_Core, MP_TYPE_FLAG_NONE, make_new, core_new,
                                locals_dict, &core_dict);

static mp_obj_t status_text(mp_obj_t status)
{
  int32_t number = (int32_t)mp_obj_get_int(status);
  mp_obj_t both[] = {text(fairlock_core_status_name(number)),
                     text(fairlock_core_status_text(number))};
  return mp_obj_new_tuple(2, both);
}
static MP_DEFINE_CONST_FUN_OBJ_1(status_text_obj, status_text);

static const mp_rom_map_elem_t module_members[] = {
    {MP_ROM_QSTR(MP_QSTR___name__), MP_ROM_QSTR(MP_QSTR__fairlock)},
    {MP_ROM_QSTR(MP_QSTR_Core), MP_ROM_PTR(&core_type)},
    {MP_ROM_QSTR(MP_QSTR_status_text), MP_ROM_PTR(&status_text_obj)},
};
static MP_DEFINE_CONST_DICT(module_dict, module_members);

const mp_obj_module_t fairlock_module = {.base = {&mp_type_module},
                                         .globals = (mp_obj_dict_t *)&module_dict};
MP_REGISTER_MODULE(MP_QSTR__fairlock, fairlock_module);
