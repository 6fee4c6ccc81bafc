# SPDX-License-Identifier: Apache-2.0
# Chaos: processes, a real redis-server, and everything that can happen to them. The suite is a
# short run.
CHAOS := $(BUILD)/tests/chaos/chaos
SUITES += $(CHAOS)
$(call needs,chaos $(CHAOS),$(BUILD)/redis-server)

$(CHAOS).o: CPPFLAGS += -Itests/server

$(CHAOS): $(CHAOS).o $(BUILD)/tests/server/harness.o \
  $(FRAME) $(SUPPORT) $(BUILD)/liblock.a | $(BUILD)/redis-server
	$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ $(LDLIBS)

# The judge of histories, for programs that write theirs as a text.
JUDGE := $(BUILD)/tests/chaos/judge
$(JUDGE): $(JUDGE).o $(SUPPORT)
	$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ $(LDLIBS)

.PHONY: chaos
chaos: $(CHAOS) ## kill, freeze and cut off clients of a real redis-server for TIME=seconds (120), and check; SEED=n
	@TIME=$(or $(TIME),120) SEED=$(SEED) $(CHAOS)
