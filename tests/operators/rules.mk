# SPDX-License-Identifier: Apache-2.0
# The examples for operators, and the statement that checks a token, by the tools and the databases
# that they are for. They take a minute to get, so these suites are in `make test-all` only.
OPERATORS_TEST := tests/operators/test_operators.sh tests/operators/test_fencing.sh
OPERATORS_TOOLS := $(BUILD)/operators
SUITES += $(OPERATORS_TEST)
$(call needs,$(OPERATORS_TEST),$(BUILD)/redis-server python3-yaml python3-jsonschema pip3=python3-pip)
$(call needs,tests/operators/test_fencing.sh,sqlite3)
$(call needs,operators,$(OPERATORS_TEST))

$(OPERATORS_TOOLS)/ready: tests/operators/get_tools.sh
	sh $< $(@D)
	@touch $@

$(OPERATORS_TEST): $(BUILD)/fairlock $(BUILD)/redis-server $(OPERATORS_TOOLS)/ready

.PHONY: operators
operators: ## run the suites for operators alone: metrics, alerts, a CronJob, fencing in databases
	@$(MAKE) --no-print-directory $(OPERATORS_TEST)
	@sh tests/tools/run.sh $(OPERATORS_TEST)
