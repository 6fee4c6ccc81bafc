/* SPDX-License-Identifier: Apache-2.0 */
/* Zephyr's atomic number, by the compiler: see ../kernel.h. */
#ifndef ZEPHYR_SYS_ATOMIC_H
#define ZEPHYR_SYS_ATOMIC_H

typedef long atomic_t;
typedef atomic_t atomic_val_t;

static inline atomic_val_t atomic_get(const atomic_t *target)
{
  return __atomic_load_n(target, __ATOMIC_SEQ_CST);
}

static inline atomic_val_t atomic_set(atomic_t *target, atomic_val_t value)
{
  return __atomic_exchange_n(target, value, __ATOMIC_SEQ_CST);
}

#endif
