# What the pages tell the reader to type does what they say.
PAGES_TEST := tests/readme/test_pages.sh
PACKAGES_PAGES := cmake git gcc-arm-none-eabi libbearssl-dev libnewlib-arm-none-eabi openssl redis-tools
SUITES += $(PAGES_TEST)
PACKAGES_ALL += $(PACKAGES_PAGES)
$(PAGES_TEST): | all $(BUILD)/lwip/src $(BUILD)/redis-server

.PHONY: readme-tests
readme-tests: $(PAGES_TEST) ## try what the pages tell the reader to type
	@sh tests/tools/need.sh $(PACKAGES_PAGES)
	@sh tests/tools/run.sh $<
