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
abi: $(BUILD)/liblock.a ## compare public headers, library and manual with the last release; what lock/STABILITY.md forbids fails
	@sh tests/tools/need.sh $(PACKAGES_ABI)
	@sh tests/dist/abi.sh $<

.PHONY: print-headers
print-headers:
	@echo $(HEADERS)

# What is committed, and so the same bytes for all who make it of the same commit by the same gzip;
# what is in it, and digests of both.
TARBALL := $(BUILD)/fairlock-$(VERSION).tar.gz
BOM := $(BUILD)/fairlock-$(VERSION).spdx

.PHONY: dist
dist: ## pack what is committed into build/fairlock-VERSION.tar.gz, with its digest and bill of materials
	@test -e .git || { echo "make dist needs a clone of the repository: it packs a commit" >&2; exit 1; }
	@command -v git >/dev/null || sh tests/tools/need.sh git
	@git diff --quiet HEAD || echo "not all is committed: what is not is left out" >&2
	@mkdir -p $(BUILD)
	@sh tests/dist/pack.sh HEAD fairlock-$(VERSION)/ >$(BUILD)/dist.tar
	@env -u GZIP gzip -9 -n -c $(BUILD)/dist.tar >$(TARBALL).new && mv $(TARBALL).new $(TARBALL) && rm $(BUILD)/dist.tar
	@sh tests/dist/bom.sh $(TARBALL) >$(BOM).new && mv $(BOM).new $(BOM)
	@cd $(BUILD) && sha256sum $(notdir $(TARBALL) $(BOM)) >$(notdir $(TARBALL)).sha256
	@echo "$(TARBALL), $(TARBALL).sha256, $(BOM)"

DIST_TEST := tests/dist/test_dist.sh
RELEASE_TEST := tests/dist/test_release_check.sh
PACKAGES_DIST := git gpg gpg-agent openssh-client python3 python3-pip
SUITES += $(DIST_TEST) $(RELEASE_TEST)
PACKAGES_ALL += $(PACKAGES_DIST)
SPDX_TOOLS := $(BUILD)/spdx-tools/ready
$(DIST_TEST): | $(SPDX_TOOLS)

$(SPDX_TOOLS): tests/dist/spdx_tools.txt
	@python3 -m pip --version >/dev/null 2>&1 || sh tests/tools/need.sh python3-pip
	rm -rf $(@D) && python3 -m pip -q install --root-user-action=ignore --require-hashes --only-binary :all: --target $(@D) -r $<
	@touch $@

.PHONY: dist-check
dist-check: dist ## unpack that tarball elsewhere, build it without git, and run its unit suites
	@sh tests/tools/run.sh "sh tests/dist/check.sh $(TARBALL)"

DIST_TESTS := $(ABI_TEST) $(DIST_TEST) $(RELEASE_TEST)

.PHONY: dist-tests
dist-tests: $(DIST_TESTS) ## see that tarball, bill of materials, signatures, make abi and make release-check do what they should
	@sh tests/tools/need.sh $(PACKAGES_ABI) $(PACKAGES_DIST)
	@sh tests/tools/run.sh $(DIST_TESTS)

.PHONY: release-check
release-check: ## see whether this commit can be released; QUICK=1 leaves out the suites, and then does not pass
	@sh tests/dist/release_check.sh
