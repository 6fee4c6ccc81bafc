# SPDX-License-Identifier: Apache-2.0
# Pages of the public headers.
DOCS := $(BUILD)/docs

.PHONY: docs
docs: ## make pages of the public headers in build/docs/html; a name without a comment fails
	@rm -rf $(DOCS) && mkdir -p $(DOCS)
	@(cat tests/docs/Doxyfile; echo 'PROJECT_NUMBER=$(VERSION)'; echo 'OUTPUT_DIRECTORY=$(DOCS)') | doxygen -
	@echo $(DOCS)/html/index.html

# It fails when it should.
DOCS_TEST := tests/docs/test_docs.sh
SUITES += $(DOCS_TEST)
$(call needs,docs $(DOCS_TEST),doxygen=doxygen)
