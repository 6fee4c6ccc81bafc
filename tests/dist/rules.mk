# SPDX-License-Identifier: Apache-2.0
# What is handed on: the version, and the tarball.
VERSION_TEST := tests/dist/test_version.sh
SUITES += $(VERSION_TEST)
$(VERSION_TEST): | $(BUILD)/fairlock $(BUILD)/fairlock.pc

# What a program relies on: lock/STABILITY.md.
ABI_TEST := tests/dist/test_abi.sh
SUITES += $(ABI_TEST)
$(call needs,abi,abigail-tools binutils gcc libc6-dev python3)
$(call needs,$(ABI_TEST),abi)
$(ABI_TEST): | $(BUILD)/liblock.a

.PHONY: abi
abi: $(BUILD)/liblock.a ## compare public headers, library and manual with the last release; what lock/STABILITY.md forbids fails
	@sh tests/dist/abi.sh $<

.PHONY: print-headers
print-headers:
	@echo $(HEADERS)

# What is committed, and so the same bytes for all who make it of the same commit by the same gzip;
# what is in it, and digests of both.
TARBALL := $(BUILD)/fairlock-$(VERSION).tar.gz
BOM := $(BUILD)/fairlock-$(VERSION).spdx

$(call needs,dist dist-check,git=git)

.PHONY: dist
dist: ## pack what is committed into build/fairlock-VERSION.tar.gz, with its digest and bill of materials
	@test -e .git || { echo "make dist needs a clone of the repository: it packs a commit" >&2; exit 1; }
	@git diff --quiet HEAD || echo "not all is committed: what is not is left out" >&2
	@mkdir -p $(BUILD)
	@sh tests/dist/pack.sh HEAD fairlock-$(VERSION)/ >$(BUILD)/dist.tar
	@env -u GZIP gzip -9 -n -c $(BUILD)/dist.tar >$(TARBALL).new && mv $(TARBALL).new $(TARBALL) && rm $(BUILD)/dist.tar
	@sh tests/dist/bom.sh $(TARBALL) >$(BOM).new && mv $(BOM).new $(BOM)
	@cd $(BUILD) && sha256sum $(notdir $(TARBALL) $(BOM)) >$(notdir $(TARBALL)).sha256
	@echo "$(TARBALL), $(TARBALL).sha256, $(BOM)"

DIST_TEST := tests/dist/test_dist.sh
RELEASE_TEST := tests/dist/test_release_check.sh
SUITES += $(DIST_TEST) $(RELEASE_TEST)
SPDX_TOOLS := $(BUILD)/spdx-tools/ready
$(call needs,$(SPDX_TOOLS),python3 pip3=python3-pip)
$(call needs,$(RELEASE_TEST),fresh gcc git)
$(call needs,$(DIST_TEST),git gpg gpg-agent openssh-client $(SPDX_TOOLS))
$(DIST_TEST): | $(SPDX_TOOLS)

$(SPDX_TOOLS): tests/dist/spdx_tools.txt
	rm -rf $(@D) && python3 -m pip -q install --root-user-action=ignore --require-hashes --only-binary :all: --target $(@D) -r $<
	@touch $@

.PHONY: dist-check
dist-check: dist ## unpack that tarball elsewhere, build it without git, and run its unit suites
	@sh tests/tools/run.sh "sh tests/dist/check.sh $(TARBALL)"

DIST_TESTS := $(ABI_TEST) $(DIST_TEST) $(RELEASE_TEST)
$(call needs,dist-tests,$(DIST_TESTS))

.PHONY: dist-tests
dist-tests: $(DIST_TESTS) ## see that tarball, bill of materials, signatures, make abi and make release-check do what they should
	@sh tests/tools/run.sh $(DIST_TESTS)

# The suites ask for theirs, step by step, as .ci/run has them.
$(call needs,release-check,fresh abi misra dist-tests dist-check $(BUILD)/tests/qemu/sizes)

.PHONY: release-check
release-check: ## see whether this commit can be released; QUICK=1 leaves out the suites and fresh Debians, and then does not pass
	@sh tests/dist/release_check.sh
