# SPDX-License-Identifier: Apache-2.0
# What the suites share, in an archive: each takes of it what it needs.
$(BUILD)/tests/support/server.o: CPPFLAGS += -DREDIS_SERVER='"$(BUILD)/redis-server"'

$(SUPPORT): $(patsubst %.c,$(BUILD)/%.o,$(wildcard tests/support/*.c))
	rm -f $@ && $(AR) rcs $@ $^
