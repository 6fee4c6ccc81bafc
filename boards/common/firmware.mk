# SPDX-License-Identifier: Apache-2.0
# The images of one board: make -f boards/common/firmware.mk BOARD=mps2-an385, from the top folder;
# `make firmware` does it.
#
# A board's board.mk only sets variables:
#   CPU      the compiler's options for the processor
#   MEMORY   symbols for firmware.ld: where flash and RAM begin, and their sizes
#   DRIVERS  files of boards/common that drive its peripherals
#   DEFINES  where their registers are
#   QEMU     how to start it, and NIC, its network there, by the name of net0
# and, where the defaults below do not fit, TOOLS, LIBC and IMAGES.
BUILD ?= build
TOOLS := arm-none-eabi-
LIBC := -lc
STACK := 2048
IMAGES := superloop tasks contender station test_resp test_engine
include boards/$(BOARD)/board.mk

OUT := $(BUILD)/firmware/$(BOARD)
LWIP := $(BUILD)/lwip/src
BEARSSL := $(BUILD)/bearssl
MBEDTLS := $(BUILD)/mbedtls
CC := $(TOOLS)gcc
AR := $(TOOLS)ar

# The Makefile says whether a warning is an error.
WARNINGS := -Wall -Wextra -Wpedantic -Wconversion -Wshadow -Wmissing-prototypes $(if $(filter 1,$(WERROR)),-Werror)
CFLAGS := $(CPU) -Os -g -ffunction-sections -fdata-sections -fno-common -fcallgraph-info=su
LWIP_INCLUDES := -Iboards/common -isystem $(LWIP)/include
INCLUDES := -Iresp -Iport -Ilock -Iport/lwip -Iport/uart -Iboards/examples/modem -Iport/bearssl -Iport/conformance -Itests $(LWIP_INCLUDES) \
  -isystem $(BEARSSL)/inc -I$(BUILD)/tests/tls/keys
FLAGS := -std=c11 $(WARNINGS) $(INCLUDES) $(DEFINES:%=-D%) $(CFLAGS)
LDFLAGS := $(CFLAGS) -nostdlib -static -Wl,--gc-sections -T boards/common/firmware.ld $(MEMORY:%=-Wl,--defsym=%)

.SECONDARY:

.PHONY: images
images: $(IMAGES:%=$(OUT)/%.elf) $(OUT)/run

# What images are made of. One library for programs of one task, one for those with a kernel: the
# size of a client, which holds a mutex, differs. The linker takes what an image needs.
LIBRARY := $(wildcard resp/*.c lock/*.c) $(wildcard port/lwip/*.c boards/examples/modem/*.c) port/uart/uart.c
SUPPORT := $(addprefix boards/common/,stack.c string.c log.c semihosting.c network.c $(DRIVERS:%=%.c))
LWIP_SOURCES := $(addprefix core/,def.c inet_chksum.c init.c ip.c mem.c memp.c netif.c pbuf.c tcp.c tcp_in.c \
  tcp_out.c timeouts.c ipv4/etharp.c ipv4/icmp.c ipv4/ip4.c ipv4/ip4_addr.c) netif/ethernet.c

SINGLE := $(patsubst %.c,$(OUT)/single/%.o,$(LIBRARY) $(SUPPORT))
KERNEL := $(patsubst %.c,$(OUT)/kernel/%.o,$(LIBRARY) $(SUPPORT) boards/examples/kernel/kernel.c \
  boards/examples/kernel/threads.c)

$(OUT)/single/%.o: %.c | $(LWIP)
	@mkdir -p $(@D)
	@$(CC) $(FLAGS) -Iport/single -MMD -MP -c -o $@ $<

$(OUT)/kernel/%.o: %.c | $(LWIP)
	@mkdir -p $(@D)
	@$(CC) $(FLAGS) -Iboards/examples/kernel -MMD -MP -c -o $@ $<

$(OUT)/lwip/%.o: $(LWIP)/%.c $(wildcard boards/common/lwip*.h boards/common/arch/*.h)
	@mkdir -p $(@D)
	@$(CC) -std=c11 $(LWIP_INCLUDES) $(CFLAGS) -c -o $@ $<

$(OUT)/bearssl/%.o: $(BEARSSL)/src/%.c
	@mkdir -p $(@D)
	@$(CC) -std=c11 -I$(BEARSSL)/inc -I$(BEARSSL)/src $(CFLAGS) -c -o $@ $<

# Mbed TLS as its configuration says, with its transport and what uses that.
MBEDTLS_FLAGS := -isystem $(MBEDTLS)/include -Iboards/common -DMBEDTLS_CONFIG_FILE='"mbedtls_config.h"'
PORT_MBEDTLS := $(OUT)/single/port/mbedtls/mbedtls.o
$(OUT)/mbedtls/%.o: $(MBEDTLS)/library/%.c boards/common/mbedtls_config.h
	@mkdir -p $(@D)
	@$(CC) -std=c11 -w -I$(MBEDTLS)/library $(MBEDTLS_FLAGS) $(CFLAGS) -c -o $@ $<

$(PORT_MBEDTLS) $(OUT)/single/boards/common/link_mbedtls.o: FLAGS += -Iport/mbedtls $(MBEDTLS_FLAGS)

# Otherwise the loop inside memcpy would become a call of memcpy.
$(OUT)/%/boards/common/string.o: FLAGS += -fno-tree-loop-distribute-patterns

$(OUT)/%.a:
	@rm -f $@
	@$(AR) rcs $@ $^

$(OUT)/single.a: $(SINGLE)
$(OUT)/kernel.a: $(KERNEL)
$(OUT)/lwip.a: $(LWIP_SOURCES:%.c=$(OUT)/lwip/%.o)
# With its transport: images without TLS need nothing of it.
$(OUT)/bearssl.a: $(patsubst $(BEARSSL)/src/%.c,$(OUT)/bearssl/%.o,$(wildcard $(BEARSSL)/src/*.c $(BEARSSL)/src/*/*.c)) \
  $(patsubst %.c,$(OUT)/single/%.o,$(wildcard port/bearssl/*.c))

$(OUT)/mbedtls.a: $(patsubst $(MBEDTLS)/library/%.c,$(OUT)/mbedtls/%.o,$(wildcard $(MBEDTLS)/library/*.c))

# Images: a main program, and what the linker takes of the libraries. None may contain a heap, or
# functions that print or exit.
OBJECT := $(OUT)/single
$(OUT)/superloop.elf: $(OBJECT)/boards/examples/superloop.o $(OBJECT)/boards/common/link_lwip.o
$(OUT)/superloop_follow.elf: $(OBJECT)/boards/examples/superloop.o $(OBJECT)/boards/common/link_follow.o
$(OUT)/superloop_uart.elf: $(OBJECT)/boards/examples/superloop.o $(OBJECT)/boards/common/link_uart.o
$(OUT)/superloop_modem.elf: $(OBJECT)/boards/examples/superloop.o $(OBJECT)/boards/common/link_modem.o
$(OUT)/superloop_shared.elf: $(OBJECT)/boards/examples/download.o $(OBJECT)/boards/common/link_lwip.o
# Without the scripts' texts: what is linked itself is taken in place of what the library has.
HASHES := $(OBJECT)/lock/scripts/hashes.o
$(OUT)/superloop_hashes.elf: $(OBJECT)/boards/examples/superloop.o $(OBJECT)/boards/common/link_lwip.o $(HASHES)
$(OUT)/superloop_uart_hashes.elf: $(OBJECT)/boards/examples/superloop.o $(OBJECT)/boards/common/link_uart.o $(HASHES)
TLS := $(OUT)/superloop_pinned.elf $(OUT)/superloop_ca.elf
HANDSHAKES := $(OUT)/handshake_pinned.elf $(OUT)/handshake_ca.elf
BY_MBEDTLS := $(OUT)/superloop_mbedtls.elf $(OUT)/handshake_mbedtls.elf
$(TLS) $(HANDSHAKES): STACK := 5120
$(TLS): $(OUT)/superloop_%.elf: $(OBJECT)/boards/examples/superloop.o $(OBJECT)/boards/common/link_%.o
$(BY_MBEDTLS): STACK := 5120
$(BY_MBEDTLS): $(OUT)/%_mbedtls.elf: $(OBJECT)/boards/common/link_mbedtls.o $(PORT_MBEDTLS) $(OUT)/mbedtls.a
$(OUT)/superloop_mbedtls.elf: $(OBJECT)/boards/examples/superloop.o
$(OUT)/handshake_mbedtls.elf: $(OBJECT)/tests/boards/handshake.o
$(HANDSHAKES): $(OUT)/handshake_%.elf: $(OBJECT)/tests/boards/handshake.o $(OBJECT)/boards/common/link_%.o
$(OUT)/lowpower.elf: $(addprefix $(OBJECT)/boards/,examples/lowpower.o common/cmsdk_sleep.o)
$(OUT)/reset.elf: $(OBJECT)/boards/examples/reset.o $(OBJECT)/boards/common/link_lwip.o
$(OUT)/keep.elf: $(OBJECT)/boards/examples/keep/keep.o
$(OUT)/tasks.elf: $(OUT)/kernel/boards/examples/tasks.o
$(OUT)/station.elf: $(OBJECT)/tests/boards/station.o $(OBJECT)/boards/common/link_lwip.o
$(OUT)/station_uart.elf: $(OBJECT)/tests/boards/station.o $(OBJECT)/boards/common/link_uart.o
CONFORMANCE := $(addprefix $(OBJECT)/,tests/boards/conformance.o port/conformance/conformance.o)
$(OUT)/conformance.elf: $(CONFORMANCE) $(OBJECT)/boards/common/link_lwip.o
$(OUT)/conformance_uart.elf: $(CONFORMANCE) $(OBJECT)/boards/common/link_uart.o
$(OUT)/contender.elf: $(OBJECT)/tests/boards/contender.o $(OBJECT)/tests/boards/contender_board.o
SUITES := $(filter $(OUT)/test_%,$(IMAGES:%=$(OUT)/%.elf))
$(SUITES): STACK := 8192
$(SUITES): $(OUT)/test_%.elf: $(OBJECT)/tests/unit/test_%.o $(OBJECT)/tests/check.o $(OBJECT)/tests/boards/check_board.o
$(OUT)/test_engine.elf: $(patsubst %.c,$(OBJECT)/%.o,$(wildcard tests/unit/engine_*.c))
$(filter-out %/tasks.elf,$(IMAGES:%=$(OUT)/%.elf)): $(OUT)/single.a $(OUT)/lwip.a
$(OUT)/tasks.elf: $(OUT)/kernel.a $(OUT)/lwip.a
$(TLS) $(HANDSHAKES): $(OUT)/bearssl.a

$(OUT)/%.elf:
	$(link)

define link
@echo "  $@"
@$(CC) $(LDFLAGS) -Wl,--defsym=STACK_SIZE=$(STACK) -Wl,-Map=$(@:.elf=.map) -o $@ \
  -Wl,--start-group $^ $(LIBC) -lgcc -Wl,--end-group
@sh boards/common/forbidden.sh $(TOOLS)nm $@
endef

# Runs an image of this board, its log going to stdout: run IMAGE [ARGUMENT...]
$(OUT)/run: boards/$(BOARD)/board.mk boards/common/firmware.mk
	@printf '%s\n' '#!/bin/sh' 'image=$$1' 'shift' 'arguments=arg=fw' \
	  'for argument; do arguments=$$arguments,arg=$$(printf %s "$$argument" | sed s/,/,,/g); done' \
	  'exec $(QEMU) -nographic -monitor none -serial stdio $(NIC) -kernel "$$image" \' \
	  '  -semihosting-config enable=on,target=native,$$arguments $$QEMU_FLAGS </dev/null' >$@
	@chmod +x $@

-include $(shell find $(OUT) -name '*.d' 2>/dev/null)
