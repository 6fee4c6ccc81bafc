# SPDX-License-Identifier: Apache-2.0
# The suites against a real redis-server: each test_*.c is one, and so is each test_*.sh.
SERVER_TESTS := $(patsubst tests/server/%.c,$(BUILD)/tests/server/%,$(wildcard tests/server/test_*.c))
SERVER_HARNESS := $(patsubst %,$(BUILD)/tests/server/%.o,harness dialect)
SUITES += $(SERVER_TESTS) $(wildcard tests/server/test_*.sh)
$(call needs,$(SERVER_TESTS),$(BUILD)/redis-server)
$(call needs,$(BUILD)/tests/server/test_loops,loops)
$(call needs,tests/server/test_generated.sh,original-awk)

$(BUILD)/tests/server/dialect.o: CPPFLAGS += -DREDIS_SERVER='"$(BUILD)/redis-server"'

$(BUILD)/tests/server/test_replies: $(BUILD)/tests/server/story.o

# What stands in front of the library is taken in place of what that has.
$(BUILD)/tests/server/test_no_texts.o: CPPFLAGS += -DFAIRLOCK='"$(BUILD)/fairlock"'
$(BUILD)/tests/server/test_no_texts: $(BUILD)/lock/scripts/hashes.o | $(BUILD)/fairlock

$(BUILD)/tests/server/test_loops.o: CPPFLAGS += -DEXAMPLES='"$(BUILD)/examples"'
$(BUILD)/tests/server/test_loops: | $(addprefix $(BUILD)/examples/,epoll libuv pool coroutine)

$(SERVER_TESTS): %: %.o $(SERVER_HARNESS) $(FRAME) $(SUPPORT) $(BUILD)/liblock.a | $(BUILD)/redis-server
	$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $(filter %.o,$^) $(filter %.a,$^) $(LDLIBS)

# Two suites once more, on port/sockets: the port_posix.h of tests/server/sockets comes before
# port/posix's. And its names.
SOCKETS := $(BUILD)/tests/server/sockets
SOCKETS_TESTS := $(SOCKETS)/threads $(SOCKETS)/transport $(SOCKETS)/names
SUITES += $(SOCKETS_TESTS)
$(call needs,$(SOCKETS)/threads,$(BUILD)/redis-server)

define compile_on_sockets
@mkdir -p $(@D)
$(CC) -Itests/server/sockets -Iport/sockets $(TEST_CFLAGS) -MMD -MP $(CPPFLAGS) -c -o $@ $<
endef

$(SOCKETS)/%.o: tests/server/%.c
	$(compile_on_sockets)

$(SOCKETS)/%.o: tests/unit/%.c
	$(compile_on_sockets)

$(SOCKETS)/threads: $(addprefix $(SOCKETS)/,test_threads.o harness.o) | $(BUILD)/redis-server
$(SOCKETS)/test_port: $(SOCKETS)/test_port.o
$(SOCKETS)/threads $(SOCKETS)/test_port: $(BUILD)/port/sockets/sockets.o $(FRAME) $(SUPPORT) $(BUILD)/liblock.a
	$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $(filter %.o,$^) $(filter %.a,$^) $(LDLIBS)

$(SOCKETS)/names: tests/server/sockets/test_names.c $(wildcard port/sockets/*.c) $(FRAME) $(SUPPORT) $(BUILD)/liblock.a \
  $(wildcard port/*.h port/sockets/*.h)
	@mkdir -p $(@D)
	$(CC) -Iport/sockets $(TEST_CFLAGS) $(CPPFLAGS) $(LDFLAGS) -o $@ $(filter %.c %.o,$^) $(filter %.a,$^) $(LDLIBS)

$(SOCKETS)/transport: $(SOCKETS)/test_port
	@printf '%s\n' '#!/bin/sh' 'exec $< transport:' >$@
	@chmod +x $@

# Other servers to test with, by name and version, unpacked under build/; Debian 12 installs Redis
# 7.0. SERVER= of any make target takes their path.
SERVERS := redis-6.2 redis-7.0 redis-8.0 valkey-8.1 valkey-9.1
COMPARED = $(SERVER_TESTS) $(SOCKETS_TESTS) $(wildcard tests/server/test_*.sh) $(COMMAND_TESTS) $(DIFFERENTIAL) $(HOSTILE_KEYS)
# Those that have found a difference between servers, or are the first to find one.
TELLING = $(addprefix $(BUILD)/tests/server/test_,acl errors names rlock scripts shared stopped) tests/command/test_server.sh \
  $(DIFFERENTIAL) $(HOSTILE_KEYS)

$(SERVERS:%=$(BUILD)/servers/%/redis-server): $(BUILD)/servers/%/redis-server: tests/server/get_server.sh tests/server/wheels.txt
	sh tests/server/get_server.sh $* $(BUILD)/servers

# SHORT=1: the suites that tell servers apart, without SERVERS= against the oldest and the newest.
CHOSEN := $(if $(and $(SHORT),$(filter-out command,$(firstword $(origin SERVERS)))),$(firstword $(SERVERS)) $(lastword $(SERVERS)),$(SERVERS))
ON_SERVERS = $(if $(SHORT),$(TELLING),$(COMPARED))
$(call needs,servers,python3 pip3=python3-pip $$(ON_SERVERS) $(BUILD)/redis-server)

.PHONY: servers
servers: $(CHOSEN:%=$(BUILD)/servers/%/redis-server) ## run the suites of a server against each of SERVERS=, five by default; SHORT=1: those that tell servers apart against the oldest and the newest, or SERVERS=
	@$(MAKE) --no-print-directory -s $(PARALLEL) all $(ON_SERVERS) $(BUILD)/redis-server
	@JOBS=$${JOBS:-6} sh tests/server/compare.sh "$(CHOSEN)" $(ON_SERVERS)
