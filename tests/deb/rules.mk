# Debian packages: built, looked at, installed, used and removed.
DEB_TEST := tests/deb/test_deb.sh
PACKAGES_DEB_TEST := build-essential cmake debhelper libssl-dev lintian openssl pkgconf redis-tools
SUITES += $(DEB_TEST)
PACKAGES_ALL += $(PACKAGES_DEB_TEST)
$(DEB_TEST): | $(BUILD)/fairlock $(BUILD)/redis-server $(BUILD)/tls/certificates/made

.PHONY: deb-tests
deb-tests: $(DEB_TEST) ## make the Debian packages, install them into a folder, and use them there
	@sh tests/tools/need.sh $(PACKAGES_DEB_TEST)
	@sh tests/tools/run.sh $<
