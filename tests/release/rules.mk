# SPDX-License-Identifier: Apache-2.0
# What is handed on: the version, and the tarball.
VERSION_TEST := tests/release/test_version.sh
SUITES += $(VERSION_TEST)
$(VERSION_TEST): | $(BUILD)/fairlock $(BUILD)/fairlock.pc

# What a program relies on: lock/STABILITY.md.
ABI_TEST := tests/release/test_abi.sh
SUITES += $(ABI_TEST)
$(call needs,abi,abigail-tools binutils gcc libc6-dev python3)
$(call needs,$(ABI_TEST),abi)
$(ABI_TEST): | $(BUILD)/liblock.a

.PHONY: abi
abi: $(BUILD)/liblock.a ## compare public headers, library and manual with the last release; what lock/STABILITY.md forbids fails
	@sh tests/release/abi.sh $<

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
	@sh tests/release/pack.sh HEAD fairlock-$(VERSION)/ >$(BUILD)/dist.tar
	@env -u GZIP gzip -9 -n -c $(BUILD)/dist.tar >$(TARBALL).new && mv $(TARBALL).new $(TARBALL) && rm $(BUILD)/dist.tar
	@sh tests/release/bom.sh $(TARBALL) >$(BOM).new && mv $(BOM).new $(BOM)
	@cd $(BUILD) && sha256sum $(notdir $(TARBALL) $(BOM)) >$(notdir $(TARBALL)).sha256
	@echo "$(TARBALL), $(TARBALL).sha256, $(BOM)"

DIST_TEST := tests/release/test_dist.sh
RELEASE_TEST := tests/release/test_release_check.sh
SUITES += $(DIST_TEST) $(RELEASE_TEST)
SPDX_TOOLS := $(BUILD)/spdx-tools/ready
$(call needs,$(SPDX_TOOLS),python3 pip3=python3-pip)
$(call needs,$(RELEASE_TEST),fresh gcc git)
$(call needs,$(DIST_TEST),git gpg gpg-agent openssh-client $(SPDX_TOOLS))
$(DIST_TEST): | $(SPDX_TOOLS)

$(SPDX_TOOLS): tests/release/spdx_tools.txt
	rm -rf $(@D) && python3 -m pip -q install --root-user-action=ignore --require-hashes --only-binary :all: --target $(@D) -r $<
	@touch $@

.PHONY: dist-check
dist-check: dist ## unpack that tarball elsewhere, build it without git, and run its unit suites
	@sh tests/tools/run.sh "sh tests/release/check_tarball.sh $(TARBALL)"

DIST_TESTS := $(ABI_TEST) $(DIST_TEST) $(RELEASE_TEST)

# The suites ask for theirs, step by step, as .ci/run has them.
$(call needs,release-check,fresh abi misra $(DIST_TESTS) dist-check $(BUILD)/tests/boards/sizes)

.PHONY: release-check
release-check: ## see whether this commit can be released; QUICK=1 leaves out the suites and fresh Debians, and then does not pass
	@sh tests/release/release_check.sh

# Debian packages: built, looked at, installed, used and removed.
DEB_TEST := tests/release/test_deb.sh
SUITES += $(DEB_TEST)
$(call needs,$(DEB_TEST),deb cmake jq lintian pkgconf $(BUILD)/redis-server $(BUILD)/tls/certificates/made)
$(DEB_TEST): | $(BUILD)/fairlock $(BUILD)/redis-server $(BUILD)/tls/certificates/made

# It installs them where it runs.
$(call needs,deb-installed,deb cmake pkgconf $(BUILD)/redis-server)

.PHONY: deb-installed
deb-installed: $(BUILD)/fairlock $(BUILD)/redis-server ## install the Debian packages by apt, use them and purge them, on a system to be thrown away: make fresh TARGET=deb-installed
	@sh tests/tools/run.sh tests/release/deb_installed.sh

# Pages of the public headers.
DOCS := $(BUILD)/docs

.PHONY: docs
docs: ## make pages of the public headers in build/docs/html; a name without a comment fails
	@rm -rf $(DOCS) && mkdir -p $(DOCS)
	@(cat tests/release/Doxyfile; echo 'PROJECT_NUMBER=$(VERSION)'; echo 'OUTPUT_DIRECTORY=$(DOCS)') | doxygen -
	@echo $(DOCS)/html/index.html

# It fails when it should.
DOCS_TEST := tests/release/test_docs.sh
SUITES += $(DOCS_TEST)
$(call needs,docs $(DOCS_TEST),doxygen=doxygen)

# The pages and the manual as HTML.
SITE := $(BUILD)/site
SITE_TEST := tests/release/test_site.sh
SUITES += $(SITE_TEST)
$(call needs,site,cmark-gfm mandoc python3)
$(call needs,$(SITE_TEST),site)

.PHONY: site
site: ## make HTML of the pages and the manual in build/site, with all that they link to
	@rm -rf $(SITE) && python3 tests/release/site.py $(SITE)
	@echo $(SITE)/index.html

# What the pages tell the reader to type does what they say.
PAGES_TEST := tests/release/test_pages.sh
SUITES += $(PAGES_TEST)
$(call needs,$(PAGES_TEST),cmake git jq compiler/arm-none-eabi-gcc bearssl-library openssl-library openssl $(BUILD)/lwip/src $(BUILD)/redis-server)
$(PAGES_TEST): | all $(BUILD)/lwip/src $(BUILD)/redis-server

# The examples for operators, and the statement that checks a token, by the tools and the databases
# that they are for. They take a minute to get, so these suites are in `make test-all` only.
OPERATORS_TEST := tests/release/test_operators.sh tests/release/test_fencing.sh
OPERATORS_TOOLS := $(BUILD)/operators
SUITES += $(OPERATORS_TEST)
$(call needs,$(OPERATORS_TEST),$(BUILD)/redis-server python3-yaml python3-jsonschema pip3=python3-pip)
$(call needs,tests/release/test_fencing.sh,sqlite3)

$(OPERATORS_TOOLS)/ready: tests/release/get_tools.sh
	sh $< $(@D)
	@touch $@

$(OPERATORS_TEST): $(BUILD)/fairlock $(BUILD)/redis-server $(OPERATORS_TOOLS)/ready
