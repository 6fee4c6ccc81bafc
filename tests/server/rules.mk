# The suites against a real redis-server: each test_*.c is one, and so is each test_*.sh.
SERVER_TESTS := $(patsubst tests/server/%.c,$(BUILD)/tests/server/%,$(wildcard tests/server/test_*.c))
SERVER_HARNESS := $(BUILD)/tests/server/harness.o $(BUILD)/tests/server/proxy.o
SUITES += $(SERVER_TESTS) $(wildcard tests/server/test_*.sh)
PACKAGES += redis-tools

$(SERVER_HARNESS): CPPFLAGS += -DREDIS_SERVER='"$(BUILD)/redis-server"'

$(BUILD)/tests/server/test_replies $(BUILD)/tests/server/test_late: $(BUILD)/tests/server/story.o

$(SERVER_TESTS): %: %.o $(SERVER_HARNESS) $(FRAME) $(BUILD)/liblock.a | $(BUILD)/redis-server
	$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ $(LDLIBS)

.PHONY: server-tests
server-tests: $(SERVER_TESTS) ## run the suites against a real redis-server alone
	@sh tests/run.sh $(SERVER_TESTS) $(wildcard tests/server/test_*.sh)
