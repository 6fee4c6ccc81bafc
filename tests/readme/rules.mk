# SPDX-License-Identifier: Apache-2.0
# What the pages tell the reader to type does what they say.
PAGES_TEST := tests/readme/test_pages.sh
SUITES += $(PAGES_TEST)
$(call needs,$(PAGES_TEST),cmake git compiler/arm-none-eabi-gcc bearssl-library openssl-library openssl $(BUILD)/lwip/src $(BUILD)/redis-server)
$(call needs,readme-tests,$(PAGES_TEST))
$(PAGES_TEST): | all $(BUILD)/lwip/src $(BUILD)/redis-server

.PHONY: readme-tests
readme-tests: $(PAGES_TEST) ## try what the pages tell the reader to type
	@sh tests/tools/run.sh $<
