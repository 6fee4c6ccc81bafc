# What is handed on: the version, and the tarball.
VERSION_TEST := tests/dist/test_version.sh
SUITES += $(VERSION_TEST)
$(VERSION_TEST): | $(BUILD)/fairlock $(BUILD)/fairlock.pc

# What a program relies on: lock/STABILITY.md.
ABI_TEST := tests/dist/test_abi.sh
PACKAGES_ABI := abigail-tools binutils gcc libc6-dev python3
SUITES += $(ABI_TEST)
PACKAGES_ALL += $(PACKAGES_ABI)
$(ABI_TEST): | $(BUILD)/liblock.a

.PHONY: abi
abi: $(BUILD)/liblock.a ## compare public headers and library with the last release; what lock/STABILITY.md forbids fails
	@sh tests/tools/need.sh $(PACKAGES_ABI)
	@sh tests/dist/abi.sh $<

.PHONY: print-headers
print-headers:
	@echo $(HEADERS)

# What is committed, and so the same bytes for all who make it of the same commit by the same gzip.
TARBALL := $(BUILD)/fairlock-$(VERSION).tar.gz

.PHONY: dist
dist: ## pack what is committed into build/fairlock-VERSION.tar.gz
	@test -e .git || { echo "make dist needs a clone of the repository: it packs a commit" >&2; exit 1; }
	@command -v git >/dev/null || sh tests/tools/need.sh git
	@git diff --quiet HEAD || echo "not all is committed: what is not is left out" >&2
	@mkdir -p $(BUILD)
	git archive --prefix=fairlock-$(VERSION)/ HEAD >$(BUILD)/dist.tar
	@gzip -9 -n -c $(BUILD)/dist.tar >$(TARBALL).new && mv $(TARBALL).new $(TARBALL) && rm $(BUILD)/dist.tar

.PHONY: dist-check
dist-check: dist ## unpack that tarball elsewhere, build it without git, and run its unit suites
	@sh tests/tools/run.sh "sh tests/dist/check.sh $(TARBALL)"

DIST_TESTS := $(ABI_TEST)

.PHONY: dist-tests
dist-tests: $(DIST_TESTS) ## see that make abi does what it should
	@sh tests/tools/need.sh $(PACKAGES_ABI)
	@sh tests/tools/run.sh $(DIST_TESTS)
