# SPDX-License-Identifier: Apache-2.0
# The model of the protocol (README.md), and the replays that hold the code against it.
MODEL_CLOCK := $(BUILD)/tests/model/clock.so
MODEL_DRIVER := $(BUILD)/tests/model/engine
MODEL_TESTS := $(wildcard tests/model/test_*.py)
SUITES += $(MODEL_TESTS)
$(call needs,model $(MODEL_TESTS),spin tcc python3 libc6-dev)
$(call needs,$(MODEL_TESTS),$(BUILD)/redis-server)
$(MODEL_TESTS): | $(MODEL_CLOCK) $(MODEL_DRIVER) $(BUILD)/redis-server

$(MODEL_DRIVER): $(BUILD)/tests/model/engine.o $(BUILD)/liblock.a
	$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ $(LDLIBS)

# What redis-server is given as the time; without a sanitizer, because it has none.
$(MODEL_CLOCK): tests/model/clock.c
	@mkdir -p $(@D)
	$(CC) -std=c11 -O1 -fPIC -shared $(WARNINGS) -o $@ $<

.PHONY: model
model: ## explore the model of the protocol: all states, and each planted fault; ONLY=text: some; LARGE=1: its large runs, an hour, 8 GB
	@tests/model/run.py $(if $(LARGE),--large) $(ONLY)
