# SPDX-License-Identifier: Apache-2.0
# The module for ports of MicroPython that are built by make: USER_C_MODULES=FAIRLOCK/boards/micropython
FAIRLOCK_TOP := $(patsubst %/boards/micropython/module,%,$(USERMOD_DIR))
SRC_USERMOD_C += $(USERMOD_DIR)/modfairlock.c
SRC_USERMOD_LIB_C += $(FAIRLOCK_TOP)/boards/core/core.c $(wildcard $(FAIRLOCK_TOP)/resp/*.c) \
  $(patsubst %,$(FAIRLOCK_TOP)/lock/%.c,abandon engine handle links pipeline reply request schedule scripts share status \
  texts turns version)
CFLAGS_USERMOD += $(patsubst %,-I$(FAIRLOCK_TOP)/%,resp port port/single lock) -DFAIRLOCK_CORE_SEND_SIZE=512
