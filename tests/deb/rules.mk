# Debian packages: built, looked at, installed, used and removed.
DEB_TEST := tests/deb/test_deb.sh
SUITES += $(DEB_TEST)
$(call needs,$(DEB_TEST),deb cmake jq lintian pkgconf $(BUILD)/redis-server $(BUILD)/tls/certificates/made)
$(call needs,deb-tests,$(DEB_TEST))
$(DEB_TEST): | $(BUILD)/fairlock $(BUILD)/redis-server $(BUILD)/tls/certificates/made

.PHONY: deb-tests
deb-tests: $(DEB_TEST) ## make the Debian packages, install them into a folder, and use them there
	@sh tests/tools/run.sh $<
