# The suites against a real redis-server: each test_*.c is one, and so is each test_*.sh.
SERVER_TESTS := $(patsubst tests/server/%.c,$(BUILD)/tests/server/%,$(wildcard tests/server/test_*.c))
SERVER_HARNESS := $(patsubst %,$(BUILD)/tests/server/%.o,harness proxy dialect)
SUITES += $(SERVER_TESTS) $(wildcard tests/server/test_*.sh)
PACKAGES += redis-tools original-awk

$(SERVER_HARNESS): CPPFLAGS += -DREDIS_SERVER='"$(BUILD)/redis-server"'

$(BUILD)/tests/server/test_replies $(BUILD)/tests/server/test_late: $(BUILD)/tests/server/story.o

$(BUILD)/tests/server/test_loops.o: CPPFLAGS += -DEXAMPLES='"$(BUILD)/examples"'
$(BUILD)/tests/server/test_loops: | $(BUILD)/examples/epoll $(BUILD)/examples/libuv

$(SERVER_TESTS): %: %.o $(SERVER_HARNESS) $(FRAME) $(BUILD)/liblock.a | $(BUILD)/redis-server
	$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ $(LDLIBS)

# Two suites once more, on port/sockets: the posix.h of tests/server/sockets comes before port/posix's.
SOCKETS := $(BUILD)/tests/server/sockets
SOCKETS_TESTS := $(SOCKETS)/threads $(SOCKETS)/transport
SUITES += $(SOCKETS_TESTS)

define compile_on_sockets
@mkdir -p $(@D)
$(CC) -Itests/server/sockets -Iport/sockets $(TEST_CFLAGS) -MMD -MP $(CPPFLAGS) -c -o $@ $<
endef

$(SOCKETS)/%.o: tests/server/%.c
	$(compile_on_sockets)

$(SOCKETS)/%.o: tests/unit/%.c
	$(compile_on_sockets)

$(SOCKETS)/harness.o: CPPFLAGS += -DREDIS_SERVER='"$(BUILD)/redis-server"'

$(SOCKETS)/threads: $(addprefix $(SOCKETS)/,test_threads.o harness.o proxy.o) | $(BUILD)/redis-server
$(SOCKETS)/test_port: $(SOCKETS)/test_port.o
$(SOCKETS)/threads $(SOCKETS)/test_port: $(BUILD)/port/sockets/sockets.o $(FRAME) $(BUILD)/liblock.a
	$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $(filter %.o,$^) $(filter %.a,$^) $(LDLIBS)

$(SOCKETS)/transport: $(SOCKETS)/test_port
	@printf '%s\n' '#!/bin/sh' 'exec $< transport:' >$@
	@chmod +x $@

.PHONY: server-tests
server-tests: $(SERVER_TESTS) $(SOCKETS_TESTS) ## run the suites against a real redis-server alone
	@sh tests/run.sh $(SERVER_TESTS) $(SOCKETS_TESTS) $(wildcard tests/server/test_*.sh)
