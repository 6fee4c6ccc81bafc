# SPDX-License-Identifier: Apache-2.0
# The Python package: build/python has an sdist and wheels.
PYTHON := $(BUILD)/python
PYTHON_NAME := fairlock-$(subst -,,$(VERSION))
PYTHON_SDIST := $(PYTHON)/$(PYTHON_NAME).tar.gz
PYTHON_WHEELS := $(PYTHON)/wheels
PYTHON_CORE := $(CORE) $(wildcard resp/*.h lock/*.h port/*.h port/posix/*.[ch] port/openssl/*.[ch] boards/service/*.[ch])
PYTHON_OWN := $(filter-out %/rules.mk,$(wildcard boards/python/*.* boards/python/src/fairlock/*))
PYTHON_TOOLS := $(PYTHON)/tools
$(call needs,python-tools,python3 python3-venv python3-dev gcc)
$(call needs,$(PYTHON_SDIST),python-tools)
$(call needs,python $(PYTHON_WHEELS),python-tools pip3=python3-pip openssl-library)

$(PYTHON_TOOLS)/ready: boards/python/requirements.txt
	rm -rf $(@D) && python3 -m venv $(@D)
	$(@D)/bin/python -m pip -q install --disable-pip-version-check --require-hashes --only-binary :all: -r $<
	@touch $@

$(PYTHON_SDIST): $(PYTHON_CORE) $(PYTHON_OWN) LICENSE $(PYTHON_TOOLS)/ready
	@sh boards/python/package.sh $(PYTHON) $(VERSION) $(PYTHON_TOOLS)/bin/python

$(PYTHON_WHEELS): $(PYTHON_SDIST) $(BUILD)/zig/ready | openssl-library
	@sh boards/python/package.sh $(PYTHON) $(VERSION) $(PYTHON_TOOLS)/bin/python $(BUILD)/zig/ziglang/zig
	@touch $@

.PHONY: python
python: $(PYTHON_WHEELS) ## make the Python package: an sdist, and wheels for Linux, in build/python
	@echo "$(PYTHON_SDIST), $(PYTHON)/$(PYTHON_NAME)-*.whl"
