# The examples for operators, by the tools that they are for. They take a minute to get, so this suite
# is in `make test-all` only.
OPERATORS_TEST := tests/operators/test_operators.sh
OPERATORS_TOOLS := $(BUILD)/operators
PACKAGES_OPERATORS := redis-tools python3-yaml python3-jsonschema
SUITES += $(OPERATORS_TEST)
PACKAGES_ALL += $(PACKAGES_OPERATORS)

$(OPERATORS_TOOLS)/ready: tests/operators/get_tools.sh
	sh $< $(@D)
	@touch $@

$(OPERATORS_TEST): $(BUILD)/fairlock $(BUILD)/redis-server $(OPERATORS_TOOLS)/ready

.PHONY: operators
operators: ## run the suite of the examples for operators alone: metrics, alerts, a CronJob
	@sh tests/tools/need.sh $(PACKAGES_OPERATORS)
	@$(MAKE) --no-print-directory $(OPERATORS_TEST)
	@sh tests/tools/run.sh $(OPERATORS_TEST)
