# SPDX-License-Identifier: Apache-2.0
# Mutants: the lock with one rule taken out, and what finds them.
# What the scripts copy has to be there when they run.
FINDERS = $(filter-out $(ONLY_RELEASE),$(UNIT) $(REPLAYS) $(SERVER_TESTS)) $(BUILD)/tests/sim/sim $(CHAOS) \
  $(BUILD)/tests/portable/zephyr/zephyr
$(call needs,mutants-found mutants-changed,$$(FINDERS) proof $(BUILD)/redis-server)

# What the kill matrix asks: the programs of matrix.sh.
ASKED = $(UNIT) $(REPLAYS) $(BUILD)/tests/sim/sim $(BUILD)/tests/sim/test_sweep $(DIFFERENTIAL) \
  $(HOSTILE_KEYS) $(SERVER_TESTS) $(SOCKETS)/threads $(CHAOS) $(FAILOVER_TESTS) \
  $(BUILD)/tests/portable/zephyr/zephyr

$(call needs,mutants,$$(ASKED) $(BUILD)/redis-server)

.PHONY: mutants mutants-found mutants-changed
mutants: ## print which suite finds which mutant; ONLY=, SUITE=text: some
	@$(MAKE) --no-print-directory -s $(ASKED) $(BUILD)/redis-server
	@sh tests/mutants/matrix.sh

mutants-found: ## see that each mutant and planted fault is found by what its entry says, and write it down; ONLY=text: some
	@$(MAKE) --no-print-directory -s $(PARALLEL) $(FINDERS) $(BUILD)/redis-server
	@sh tests/mutants/found.sh

mutants-changed: ## as mutants-found, for the mutants whose text, file or tests have changed since it was last run; MOST=number: so many of them
	@$(MAKE) --no-print-directory -s $(PARALLEL) $(FINDERS) $(BUILD)/redis-server
	@sh tests/mutants/found.sh --changed

# That each entry changes its file, and the choice itself.
APPLY_TEST := tests/mutants/test_apply.sh
FOUND_TEST := tests/mutants/test_found.sh
SUITES += $(APPLY_TEST) $(FOUND_TEST)
$(FOUND_TEST): | $(BUILD)/tests/unit/test_resp $(BUILD)/liblock.a $(BUILD)/redis-server
$(call needs,$(FOUND_TEST),$(BUILD)/redis-server)
