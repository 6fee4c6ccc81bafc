# fairlock: `make` builds the library and the command; `make help` lists the rest.

CC ?= cc
AR ?= ar
PREFIX ?= /usr/local
BUILD ?= build
VERSION := 0.1.0

WARNINGS := -Wall -Wextra -Wpedantic -Wconversion -Wshadow -Wmissing-prototypes -Werror
CFLAGS ?= -O2 -g
INCLUDES := -Iresp -Iport -Iport/posix -Ilock
LIB_CFLAGS = -std=c11 $(WARNINGS) $(INCLUDES) $(CFLAGS)
LDLIBS += -pthread

CORE := $(wildcard resp/*.c) $(wildcard lock/*.c)
LIB_SOURCES := $(CORE) $(wildcard port/posix/*.c)
LIB_OBJECTS := $(LIB_SOURCES:%.c=$(BUILD)/%.o)
HOST_OBJECTS := $(patsubst %.c,$(BUILD)/%.o,$(wildcard boards/host/*.c))
HEADERS := resp/resp.h port/port.h port/posix/port_types.h port/posix/posix.h lock/engine.h lock/fairlock.h

.PHONY: all
all: $(BUILD)/liblock.a $(BUILD)/fairlock ## build the library and the fairlock command

$(BUILD)/liblock.a: $(LIB_OBJECTS)
	rm -f $@ && $(AR) rcs $@ $^

$(BUILD)/fairlock: $(HOST_OBJECTS) $(BUILD)/liblock.a
	$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ $(LDLIBS)

$(BUILD)/%.o: %.c
	@mkdir -p $(@D)
	$(CC) $(LIB_CFLAGS) -MMD -MP $(CPPFLAGS) -c -o $@ $<

# Tests. A folder of tests adds its programs to SUITES, the packages it needs to PACKAGES, and its rules, in rules.mk.
SUITES :=
PACKAGES := redis-tools
TEST_CFLAGS = $(LIB_CFLAGS) -Itests -D_DEFAULT_SOURCE
FRAME := $(BUILD)/tests/check.o $(BUILD)/tests/check_host.o

$(BUILD)/tests/%.o: tests/%.c
	@mkdir -p $(@D)
	$(CC) $(TEST_CFLAGS) -MMD -MP $(CPPFLAGS) -c -o $@ $<

UNIT := $(patsubst tests/unit/test_%.c,$(BUILD)/tests/unit/test_%,$(wildcard tests/unit/test_*.c))
SUITES += $(UNIT)

$(UNIT): %: %.o $(FRAME) $(BUILD)/liblock.a
	$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ $(LDLIBS)

# Debian's redis-tools holds the server under another name, and, unlike redis-server, starts no service.
$(BUILD)/redis-server:
	@mkdir -p $(@D)
	@sh tests/need.sh redis-tools
	@ln -sf "$$(command -v redis-server || command -v redis-check-rdb)" $@

include $(wildcard tests/*/rules.mk boards/*/rules.mk)

.PHONY: packages
packages: ## install the Debian packages that the tests need
	@sh tests/need.sh $(PACKAGES)

.PHONY: test
test: packages ## run all tests
	@$(MAKE) --no-print-directory all $(SUITES) $(BUILD)/redis-server
	@sh tests/run.sh $(SUITES)

.PHONY: unit
unit: $(UNIT) ## run the unit tests alone
	@sh tests/run.sh $(UNIT)

.PHONY: scripts
scripts: ## write lock/scripts.c anew from lock/scripts/*.lua
	@mkdir -p $(BUILD)
	sh lock/scripts/generate.sh > $(BUILD)/scripts.c.new && mv $(BUILD)/scripts.c.new lock/scripts.c

.PHONY: help
help: ## list the targets
	@sed -n 's/^\([a-z][a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | sort -u | \
	  while IFS="$$(printf '\t')" read -r name text; do printf '  %-14s %s\n' "$$name" "$$text"; done

.PHONY: clean
clean: ## remove what was built
	rm -rf $(BUILD)

-include $(shell find $(BUILD) -name '*.d' 2>/dev/null)
