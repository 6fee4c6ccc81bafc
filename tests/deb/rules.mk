# SPDX-License-Identifier: Apache-2.0
# Debian packages: built, looked at, installed, used and removed.
DEB_TEST := tests/deb/test_deb.sh
SUITES += $(DEB_TEST)
$(call needs,$(DEB_TEST),deb cmake jq lintian pkgconf $(BUILD)/redis-server $(BUILD)/tls/certificates/made)
$(call needs,deb-tests,$(DEB_TEST))
$(DEB_TEST): | $(BUILD)/fairlock $(BUILD)/redis-server $(BUILD)/tls/certificates/made

.PHONY: deb-tests
deb-tests: $(DEB_TEST) ## make the Debian packages, install them into a folder, and use them there
	@sh tests/tools/run.sh $<

# It installs them where it runs.
$(call needs,deb-installed,deb cmake pkgconf $(BUILD)/redis-server)

.PHONY: deb-installed
deb-installed: $(BUILD)/fairlock $(BUILD)/redis-server ## install the Debian packages by apt, use them and purge them, on a system to be thrown away: make fresh TARGET=deb-installed
	@sh tests/tools/run.sh tests/deb/installed.sh
