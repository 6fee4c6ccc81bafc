# SPDX-License-Identifier: Apache-2.0
# The Python package, in an environment of its own: from the sdist, with the system's OpenSSL.
PYTHON_SUITES := $(patsubst tests/python/%.py,$(BUILD)/tests/python/%,$(wildcard tests/python/test_*.py)) $(BUILD)/tests/python/compat
PYTHON_PACKAGE_TEST := tests/python/test_package.sh
PYTHON_AARCH64_TEST := tests/python/test_aarch64.sh
PYTHON_TESTS := $(PYTHON_SUITES) $(PYTHON_PACKAGE_TEST) $(PYTHON_AARCH64_TEST)
PYTHON_MADE := $(BUILD)/python/fairlock-$(subst -,,$(VERSION)).tar.gz
PYTHON_USED := $(BUILD)/python/used
SUITES += $(PYTHON_TESTS)
$(call needs,$(PYTHON_SUITES),$(PYTHON_MADE) openssl-library openssl $(BUILD)/redis-server)
$(call needs,$(PYTHON_PACKAGE_TEST),$(BUILD)/tests/python/test_use $(BUILD)/python/wheels binutils)
$(call needs,$(PYTHON_AARCH64_TEST),$(BUILD)/python/wheels mmdebstrap qemu-user $(BUILD)/redis-server)

$(PYTHON_USED)/ready: tests/python/requirements.txt boards/python/requirements.txt $(PYTHON_MADE) | openssl-library
	rm -rf $(@D) && python3 -m venv $(@D)
	$(@D)/bin/python -m pip -q install --disable-pip-version-check --require-hashes --only-binary :all: -r $< -r boards/python/requirements.txt
	FAIRLOCK_TLS=1 $(@D)/bin/python -m pip -q install --disable-pip-version-check --no-build-isolation --no-deps $(PYTHON_MADE)
	@touch $@

$(PYTHON_TESTS): | $(PYTHON_USED)/ready $(BUILD)/redis-server $(BUILD)/tls/certificates/made
$(PYTHON_PACKAGE_TEST) $(PYTHON_AARCH64_TEST): | $(BUILD)/python/wheels

# Each is a program, as the suites in C are.
$(PYTHON_SUITES): $(BUILD)/tests/python/%: tests/python/rules.mk
	@mkdir -p $(@D)
	@printf '%s\n' '#!/bin/sh' '$(if $(filter compat,$*),LACKS="force inspection" exec tests/languages/peer.sh,exec) $(PYTHON_USED)/bin/python tests/python/$*.py "$$@"' >$@
	@chmod +x $@
