# Mutants: the lock with one rule taken out, and what finds them.
# What the script copies has to be there when it runs.
MUTANTS_TEST := tests/mutants/test_mutants.sh
SUITES += $(MUTANTS_TEST)
$(MUTANTS_TEST): | $(UNIT) $(REPLAYS) $(BUILD)/tests/sim/sim $(BUILD)/tests/server/test_rlock \
  $(BUILD)/tests/server/test_break $(BUILD)/tests/portable/zephyr/zephyr $(BUILD)/redis-server

$(call needs,$(MUTANTS_TEST),$(REPLAYS) $(BUILD)/tests/sim/sim $(BUILD)/redis-server)
$(call needs,mutants-found,$(MUTANTS_TEST))

# What the kill matrix asks: the programs of matrix.sh.
ASKED = $(UNIT) $(REPLAYS) $(BUILD)/tests/sim/sim $(BUILD)/tests/sim/test_sweep $(DIFFERENTIAL) \
  $(HOSTILE_KEYS) $(SERVER_TESTS) $(SOCKETS)/threads $(CHAOS) $(FAILOVER_TESTS) \
  $(BUILD)/tests/portable/zephyr/zephyr

$(call needs,mutants,$$(ASKED) $(BUILD)/redis-server)

.PHONY: mutants mutants-found
mutants: ## print which suite finds which mutant; ONLY=, SUITE=text: some
	@$(MAKE) --no-print-directory -s $(ASKED) $(BUILD)/redis-server
	@sh tests/mutants/matrix.sh

mutants-found: $(MUTANTS_TEST) ## see that each mutant is found by what its entry says; ONLY=text: some
	@sh $<
