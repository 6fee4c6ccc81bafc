# SPDX-License-Identifier: Apache-2.0
# The suites of the fairlock command, as its users know it: each test_*.sh runs it against a real
# server.
COMMAND_TESTS := $(wildcard tests/command/test_*.sh)
SUITES += $(COMMAND_TESTS)
$(call needs,$(COMMAND_TESTS),$(BUILD)/redis-server bash jq pkgconf netcat-openbsd bsdutils util-linux coreutils zsh \
  systemd python3-yaml python3-prometheus-client)

$(BUILD)/tests/command/adopt: $(BUILD)/tests/command/adopt.o
	$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^

$(BUILD)/tests/command/%.so: tests/command/%.c
	@mkdir -p $(@D)
	$(CC) $(TEST_CFLAGS) $(LDFLAGS) -fPIC -shared -o $@ $< -ldl

$(COMMAND_TESTS): $(BUILD)/tests/command/adopt $(BUILD)/tests/command/jump.so $(BUILD)/tests/command/slow.so
