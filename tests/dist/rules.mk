# What is handed on: the version.
VERSION_TEST := tests/dist/test_version.sh
SUITES += $(VERSION_TEST)
$(VERSION_TEST): | $(BUILD)/fairlock $(BUILD)/fairlock.pc
